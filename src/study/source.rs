//! Where settings come from: the paper, or a scenario. And why a scenario may have none.

use super::setting::StudySetting;
use crate::journal::{Learned, OutcomeRecord};
use crate::orchestrator::{Next, Plan, State};
use crate::policy::Problem;
use crate::round::LimitGrid;
use crate::scenario::{LimitSource, Scenario, Target};
use crate::target::recorded::Recorded;
use crate::target::synthetic::{Grid, Synthetic, SyntheticProblem};
use crate::target::{TargetError, VirtualTarget};

/// The name of the limits if a scenario has its own.
pub(super) const OWN_GRID: &str = "scenario";

/// The limits, which a study must know from the start.
pub(super) fn limits_of(scenario: &Scenario) -> Result<LimitGrid, StudyError> {
    scenario.limits.from.grid().ok_or(StudyError::Calibrated)
}

impl StudySetting {
    /// One of the paper's problems on one of its grids, at its prices.
    pub fn of_paper(problem: SyntheticProblem, grid: Grid) -> Self {
        let target = Synthetic::new(problem);
        let known = Problem {
            arms: target.arms(),
            limits: grid.limits(problem),
            price: Synthetic::price(),
            space: None,
            instances: 0,
            instance_names: [].into(),
        };
        Self::new(
            problem.to_string(),
            grid.to_string(),
            known,
            Box::new(target),
        )
    }

    /// The problem of a scenario, under its name. Held-out instances are not met. If limits are to be calibrated, they
    /// are found first, in virtual time, and policies learn only the limits.
    pub fn of_scenario(scenario: &Scenario) -> Result<Self, StudyError> {
        let (own, target): (Option<LimitGrid>, Box<dyn VirtualTarget>) = match &scenario.target {
            Target::Synthetic(spec) => (
                Some(spec.grid.limits(spec.problem)),
                Box::new(Synthetic::new(spec.problem)),
            ),
            Target::Recorded(recorded) => {
                let all = Recorded::open(&recorded.spec)?;
                let is_for_training = |name: &str| !recorded.test.iter().any(|kept| kept == name);
                let training = all.with_instances_where(is_for_training);
                let training = training.ok_or(StudyError::NothingToTrainOn)?;
                if !matches!(scenario.limits.from, LimitSource::Calibrate(_)) {
                    training.check_limits(&limits_of(scenario)?)?;
                }
                (None, Box::new(training))
            }
            Target::Surrogate(surrogate) => {
                let training = surrogate.open(&scenario.space)?;
                let training = training.ok_or(StudyError::NothingToTrainOn)?;
                (None, Box::new(training))
            }
            Target::External(_) => return Err(StudyError::External),
            other => {
                return Err(StudyError::NotVirtual {
                    target: other.name(),
                });
            }
        };
        let limits = match &scenario.limits.from {
            LimitSource::Calibrate(_) => calibrated(scenario, target.as_ref()),
            LimitSource::Grid(_) | LimitSource::Max(_) => limits_of(scenario)?,
        };
        let grid = match (&scenario.target, own) {
            (Target::Synthetic(spec), Some(own)) if own == limits => spec.grid.name(),
            _ => OWN_GRID,
        };
        let problem = scenario
            .problem(limits)
            .with_named_instances(target.instance_names());
        Ok(Self::new(
            scenario.name.clone(),
            grid.to_owned(),
            problem,
            target,
        ))
    }
}

/// The limits that `captime run` would find on this target.
fn calibrated(scenario: &Scenario, target: &dyn VirtualTarget) -> LimitGrid {
    let mut state = State::new(Plan::of(scenario, target.instance_names()));
    while let (Some(_), Next::Pull(pull)) = (state.calibration(), state.choose()) {
        state.launched(&pull);
        let observation = target
            .run(scenario.seed, pull.round, pull.pull())
            .observation;
        let outcome = OutcomeRecord {
            outcome: pull.round.0,
            ..OutcomeRecord::default()
        };
        let found = state.learned(&Learned {
            pull,
            observation,
            outcome,
        });
        if found.is_some() {
            break;
        }
    }
    state.limits()
}

/// Why a scenario cannot be studied.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum StudyError {
    /// A study on real runs needs a folder to resume from.
    #[error(
        "the target is `{target}`, which takes real time: choose a folder for the journals with `--out`"
    )]
    NotVirtual {
        /// What the scenario calls it.
        target: &'static str,
    },
    /// captime cannot run its pulls.
    #[error("the target is `external`, so captime does not run its pulls")]
    External,
    /// The best pair must be known before the first round.
    #[error("limits are to be calibrated, but a study compares policies on the same limits")]
    Calibrated,
    /// All instances are held out.
    #[error("every instance is held out for the test")]
    NothingToTrainOn,
    /// Answers are judged on unseen instances.
    #[error(
        "the target is `{target}`, but a budget of CPU time needs runs on instances: a `recorded` one"
    )]
    NotRecorded {
        /// What the scenario calls it.
        target: &'static str,
    },
    /// No instance is held out.
    #[error("there is no instance to judge an answer on")]
    NothingToTestOn,
    /// The target itself cannot be used.
    #[error(transparent)]
    Target(#[from] TargetError),
}

impl StudyError {
    /// What the user can change to get past this.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::NotVirtual { .. } => Some(
                "or measure every arm once: `captime record` writes a matrix that `recorded` replays in no time"
                    .into(),
            ),
            Self::External => Some(
                "`captime ask` plays with it, one policy at a time; a study needs a command, a forest, recorded runs or a synthetic problem"
                    .into(),
            ),
            Self::Calibrated => Some("write them down, like `grid: [1s, 10s, 100s]`".into()),
            Self::NothingToTrainOn => Some("list fewer instances under `test`".into()),
            Self::NotRecorded { .. } => Some(
                "`--rounds` compares policies by their regret on any target in virtual time".into(),
            ),
            Self::NothingToTestOn => Some("record at least two instances".into()),
            Self::Target(error) => error.hint(),
        }
    }
}
