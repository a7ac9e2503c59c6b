//! What is played on, and how answers are judged.

use rand::seq::SliceRandom;
use serde::Serialize;

use super::super::source::{StudyError, limits_of};
use crate::orchestrator::{Plan, State};
use crate::policy::Problem;
use crate::round::{ArmId, Limit, Pull, Purpose, Round, randomness};
use crate::scenario::{Scenario, Target};
use crate::target::VirtualTarget;
use crate::target::recorded::{Recorded, Surrogate};

/// Recorded runs in two parts: one to train on, one to judge on.
pub struct Holdout {
    /// The scenario's name.
    pub name: String,
    /// What policies know about it.
    pub problem: Problem,
    /// What a pull runs on.
    pub training: Recorded,
    /// How many instances answers are judged on.
    pub test_instances: usize,
    /// PAR10 of every recorded arm on the training and on the test instances.
    par10: Vec<Par10>,
    /// What answers can be compared with.
    pub baselines: Baselines,
    /// What one run of every arm costs at the largest limit, on the training instances: the B of budgets.
    pub sweep: f64,
    gap: Gap,
    /// What a run on the training instances begins with.
    pub(super) plan: Plan,
    made: Option<Made>,
}

/// Runs of all configurations of an open space, on the training and on the test instances.
struct Made {
    training: Surrogate,
    test: Surrogate,
}

/// From the median arm to the best one.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Gap {
    train: (f64, f64),
    test: (f64, f64),
}

/// PAR10 of one arm.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Par10 {
    pub(super) train: f64,
    pub(super) test: f64,
}

/// What answers can be compared with: test PAR10 of arms that cannot be known beforehand.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Baselines {
    /// The arm that is best on the test instances.
    pub best_test: KnownArm,
    /// The arm that is best on the training instances: the answer of endless training.
    pub best_training: KnownArm,
    /// The median arm on the training instances: about the worth of a random answer.
    pub median_training: KnownArm,
}

/// An arm with its PAR10 on either part.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct KnownArm {
    /// The arm. `None` if it differs between halves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arm: Option<ArmId>,
    /// On the training instances.
    pub train: f64,
    /// On the test instances.
    pub test: f64,
}

impl Holdout {
    /// The runs of a scenario. Training instances are all except those under `test`, or else the first half of the
    /// file.
    pub fn of_scenario(scenario: &Scenario) -> Result<Self, StudyError> {
        let (kept_back, all) = recorded(scenario)?;
        let is_kept = |name: &str| kept_back.iter().any(|kept| kept == name);
        let (training, test) = if kept_back.is_empty() {
            let in_file_order: Vec<usize> = (0..all.instances()).collect();
            all.halves(&in_file_order)
                .ok_or(StudyError::NothingToTestOn)?
        } else {
            let training = all.with_instances_where(|name| !is_kept(name));
            let test = all.with_instances_where(is_kept);
            (
                training.ok_or(StudyError::NothingToTrainOn)?,
                test.ok_or(StudyError::NothingToTestOn)?,
            )
        };
        Self::new(scenario, training, &test)
    }

    /// The runs of a scenario, `count` times: each time a random half of all instances is for training, whatever the
    /// scenario holds out.
    pub fn random_halves(
        scenario: &Scenario,
        count: u64,
        seed: u64,
    ) -> Result<Vec<Self>, StudyError> {
        let (_, all) = recorded(scenario)?;
        let half = |number| {
            let mut order: Vec<usize> = (0..all.instances()).collect();
            order.shuffle(&mut randomness(seed, Round(number), Purpose::Instance));
            let halves = all.halves(&order);
            let (training, test) = halves.ok_or(StudyError::NothingToTestOn)?;
            Self::new(scenario, training, &test)
        };
        (1..=count).map(half).collect()
    }

    fn new(scenario: &Scenario, training: Recorded, test: &Recorded) -> Result<Self, StudyError> {
        let problem = scenario
            .problem(limits_of(scenario)?)
            .with_named_instances(training.instance_names());
        let made = match &scenario.target {
            Target::Surrogate(surrogate) if scenario.space.opened().is_some() => {
                let on = |part: &Recorded| -> Result<Surrogate, StudyError> {
                    let is_in = |name: &str| part.instance_names().iter().any(|own| own == name);
                    let made = Surrogate::open(&surrogate.spec, &scenario.space, is_in)?;
                    made.ok_or(StudyError::NothingToTrainOn)
                };
                let (training, test) = (on(&training)?, on(test)?);
                Some(Made { training, test })
            }
            _ => None,
        };
        let par10: Vec<Par10> = (0..training.arms())
            .map(ArmId::from_index)
            .map(|arm| Par10 {
                train: training.par10(arm),
                test: test.par10(arm),
            })
            .collect();
        Ok(Self {
            name: scenario.name.clone(),
            sweep: training.sweep_cost(problem.limits.max()),
            problem,
            test_instances: test.instances(),
            baselines: Baselines::of(&par10),
            gap: Gap {
                train: gap(par10.iter().map(|arm| arm.train)),
                test: gap(par10.iter().map(|arm| arm.test)),
            },
            plan: Plan::of(scenario, training.instance_names()),
            made,
            par10,
            training,
        })
    }

    /// What runs a pull.
    pub(super) fn target(&self) -> &dyn VirtualTarget {
        match &self.made {
            Some(made) => &made.training,
            None => &self.training,
        }
    }

    /// PAR10 of an arm of this run.
    pub(super) fn par10(&self, state: &State, arm: ArmId) -> Par10 {
        match &self.made {
            Some(made) => {
                let configuration = state.space().configuration(arm);
                Par10 {
                    train: made.training.par10(&configuration),
                    test: made.test.par10(&configuration),
                }
            }
            None => self.par10[arm.index()],
        }
    }

    /// What a pair of this run gains on the training instances.
    pub(super) fn gain(&self, state: &State, pair: Pull) -> f64 {
        let price = &self.problem.price;
        match &self.made {
            Some(made) => {
                let configuration = state.space().configuration(pair.arm);
                made.training.gain_of(&configuration, pair.limit, price)
            }
            None => self.training.gain(pair.arm, pair.limit, price),
        }
    }

    /// Whether arms are proposed on the way.
    pub(super) fn is_open(&self) -> bool {
        self.made.is_some()
    }

    /// The share of the gap from the median arm to the best one that these PAR10 close, in training and in test. Below
    /// 0 if the arm is worse than the median. `None` if the median arm is as good as the best.
    pub(super) fn shares(&self, par10: Par10) -> (Option<f64>, Option<f64>) {
        let share = |(median, best): (f64, f64), own: f64| {
            (median > best).then(|| (median - own) / (median - best))
        };
        (
            share(self.gap.train, par10.train),
            share(self.gap.test, par10.test),
        )
    }

    /// The limit at which the answer is asked for.
    pub(super) fn full_limit(&self) -> Limit {
        self.problem.limits.max()
    }
}

/// The instances kept back, and all runs: of a surrogate those of the listed arms, or of the recorded ones if the space is
/// open.
fn recorded(scenario: &Scenario) -> Result<(&[String], Recorded), StudyError> {
    let all = match &scenario.target {
        Target::Recorded(recorded) => Recorded::open(&recorded.spec)?,
        Target::Surrogate(surrogate) => {
            let all = Surrogate::open(&surrogate.spec, &scenario.space, |_| true)?;
            let all = all.ok_or(StudyError::NothingToTrainOn)?;
            match scenario.space.opened() {
                Some(_) => all.recorded().clone(),
                None => all.tabulated(&scenario.space),
            }
        }
        other => {
            return Err(StudyError::NotRecorded {
                target: other.name(),
            });
        }
    };
    all.check_limits(&limits_of(scenario)?)?;
    Ok((scenario.target.test_instances(), all))
}

/// The median and the smallest of these.
fn gap(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let (below, above) = (values[(values.len() - 1) / 2], values[values.len() / 2]);
    (f64::midpoint(below, above), values[0])
}

impl Baselines {
    /// The average over several halves.
    pub(super) fn mean(holdouts: &[Holdout]) -> Self {
        let mean = |of: fn(&Self) -> KnownArm| {
            let known = || holdouts.iter().map(|holdout| of(&holdout.baselines));
            let first = of(&holdouts[0].baselines).arm;
            let count = holdouts.len() as f64;
            KnownArm {
                arm: first.filter(|_| known().all(|known| known.arm == first)),
                train: known().map(|known| known.train).sum::<f64>() / count,
                test: known().map(|known| known.test).sum::<f64>() / count,
            }
        };
        Self {
            best_test: mean(|all| all.best_test),
            best_training: mean(|all| all.best_training),
            median_training: mean(|all| all.median_training),
        }
    }

    fn of(par10: &[Par10]) -> Self {
        let known = |place: usize| KnownArm {
            arm: Some(ArmId::from_index(place)),
            train: par10[place].train,
            test: par10[place].test,
        };
        // Of equals, the first, as everywhere: the sorts are stable.
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
