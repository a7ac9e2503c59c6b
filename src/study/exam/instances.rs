//! What is played on, and what answers are worth.

use serde::Serialize;

use super::super::error::StudyError;
use super::super::source::limits_of;
use crate::policy::Problem;
use crate::round::{ArmId, Limit};
use crate::scenario::{Scenario, Target};
use crate::target::VirtualTarget;
use crate::target::recorded::Recorded;

/// Recorded runs in two parts: one to learn from, one to be judged on.
pub struct Exam {
    /// The scenario's name.
    pub name: String,
    /// What policies know of it.
    pub problem: Problem,
    /// What a pull runs on.
    pub training: Recorded,
    /// How many instances answers are judged on.
    pub test_instances: usize,
    /// PAR10 of every arm on the training and on the test instances.
    pub(super) par10: Vec<Par10>,
    /// What answers can be compared with.
    pub baselines: Baselines,
}

/// PAR10 of one arm.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Par10 {
    pub(super) train: f64,
    pub(super) test: f64,
}

/// What answers can be compared with: test PAR10 of arms that nobody can know before.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Baselines {
    /// The arm that is best on the test instances.
    pub best_test: Known,
    /// The arm that is best on the training instances: what endless training would answer.
    pub best_training: Known,
    /// The arm in the middle of the training order: what answering at random is about worth.
    pub median_training: Known,
}

/// An arm with its PAR10 on either part.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Known {
    /// Which.
    pub arm: ArmId,
    /// On the training instances.
    pub train: f64,
    /// On the test instances.
    pub test: f64,
}

impl Exam {
    /// The runs of a scenario: training instances are all but those under `test`, or else the first half of the file.
    pub fn of_scenario(scenario: &Scenario) -> Result<Self, StudyError> {
        let Target::Recorded(recorded) = &scenario.target else {
            return Err(StudyError::NotRecorded {
                target: scenario.target.name(),
            });
        };
        let limits = limits_of(scenario)?;
        let all = Recorded::open(&recorded.spec)?;
        all.check_limits(&limits)?;
        let is_kept = |name: &str| recorded.test.iter().any(|kept| kept == name);
        let (training, test) = if recorded.test.is_empty() {
            all.halves().ok_or(StudyError::NothingToTestOn)?
        } else {
            let training = all.with_instances_where(|name| !is_kept(name));
            let test = all.with_instances_where(is_kept);
            (
                training.ok_or(StudyError::NothingToTrainOn)?,
                test.ok_or(StudyError::NothingToTestOn)?,
            )
        };
        let problem = scenario
            .problem(limits)
            .with_instances(training.instances());
        Ok(Self::new(scenario.name.clone(), problem, training, &test))
    }

    fn new(name: String, problem: Problem, training: Recorded, test: &Recorded) -> Self {
        let par10: Vec<Par10> = (0..training.arms())
            .map(ArmId::from_index)
            .map(|arm| Par10 {
                train: training.par10(arm),
                test: test.par10(arm),
            })
            .collect();
        Self {
            name,
            problem,
            test_instances: test.instances(),
            baselines: Baselines::of(&par10),
            par10,
            training,
        }
    }

    /// The limit at which the answer is asked for.
    pub(super) fn full_limit(&self) -> Limit {
        self.problem.limits.max()
    }
}

impl Baselines {
    fn of(par10: &[Par10]) -> Self {
        let known = |place: usize| Known {
            arm: ArmId::from_index(place),
            train: par10[place].train,
            test: par10[place].test,
        };
        // Of equals the first, as everywhere: the sorts are stable.
        let sorted = |of: fn(&Par10) -> f64| {
            let mut places: Vec<usize> = (0..par10.len()).collect();
            places.sort_by(|a, b| of(&par10[*a]).total_cmp(&of(&par10[*b])));
            places
        };
        let (by_test, by_training) = (sorted(|arm| arm.test), sorted(|arm| arm.train));
        Self {
            best_test: known(by_test[0]),
            best_training: known(by_training[0]),
            median_training: known(by_training[by_training.len() / 2]),
        }
    }
}
