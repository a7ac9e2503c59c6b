//! Where settings come from: the paper, or a scenario.

use super::error::StudyError;
use super::setting::Setting;
use crate::policy::Problem;
use crate::round::LimitGrid;
use crate::scenario::{LimitSource, Scenario, Target};
use crate::target::VirtualTarget;
use crate::target::recorded::Recorded;
use crate::target::synthetic::{Grid, Synthetic, SyntheticProblem};

/// What the limits are called where a scenario has its own.
pub(super) const OWN_GRID: &str = "scenario";

/// The limits, which a study must know from the start.
pub(super) fn limits_of(scenario: &Scenario) -> Result<LimitGrid, StudyError> {
    match &scenario.limits.from {
        LimitSource::Grid(grid) => Ok(grid.clone()),
        LimitSource::Max(max) => Ok(LimitGrid::new([max.get()]).expect("a limit is a grid of one")),
        LimitSource::Calibrate(_) => Err(StudyError::Calibrated),
    }
}

impl Setting {
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

    /// The problem a scenario poses, under its name. Instances kept back for the test are not met.
    pub fn of_scenario(scenario: &Scenario) -> Result<Self, StudyError> {
        let limits = limits_of(scenario)?;
        let (grid, target): (&str, Box<dyn VirtualTarget>) = match &scenario.target {
            Target::Synthetic(spec) => {
                let is_its_own = limits == spec.grid.limits(spec.problem);
                let grid = if is_its_own {
                    spec.grid.name()
                } else {
                    OWN_GRID
                };
                (grid, Box::new(Synthetic::new(spec.problem)))
            }
            Target::Recorded(recorded) => {
                let all = Recorded::open(&recorded.spec)?;
                all.check_limits(&limits)?;
                let is_for_training = |name: &str| !recorded.test.iter().any(|kept| kept == name);
                let training = all.with_instances_where(is_for_training);
                (
                    OWN_GRID,
                    Box::new(training.ok_or(StudyError::NothingToTrainOn)?),
                )
            }
            other => {
                return Err(StudyError::NotVirtual {
                    target: other.name(),
                });
            }
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
