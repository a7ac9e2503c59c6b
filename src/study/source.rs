//! Where settings come from: the paper, or a scenario.

use super::error::StudyError;
use super::setting::StudySetting;
use crate::journal::{Learned, OutcomeRecord};
use crate::orchestrator::{Next, Plan, State};
use crate::policy::Problem;
use crate::round::LimitGrid;
use crate::scenario::{LimitSource, Scenario, Target};
use crate::target::VirtualTarget;
use crate::target::recorded::Recorded;
use crate::target::synthetic::{Grid, Synthetic, SyntheticProblem};

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
        let problem = scenario.problem(limits).with_instances(target.instances());
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
