//! What a study found for one policy on one setting, as it is written down.

use serde::Serialize;
use serde_json::{Map, Value};

use super::curve::checkpoints;
use super::play::Played;
use super::setting::{Best, Setting};
use super::source::OWN_GRID;
use super::statistics::Running;
use crate::policy::PolicyKind;

/// A mean with its standard error; unknown (null) where there is nothing to reckon it from.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Estimate {
    /// Mean over repetitions.
    pub mean: Option<f64>,
    /// Standard error of the mean, from two repetitions up.
    pub se: Option<f64>,
}

/// A mean with the standard deviation over repetitions, from two repetitions up.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Spread {
    /// Mean over repetitions.
    pub mean: f64,
    /// Standard deviation over repetitions.
    pub sd: Option<f64>,
}

/// How one policy did on one setting.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Standing {
    /// The problem as the user named it.
    pub problem: String,
    /// The grid as the user named it.
    pub grid: String,
    /// The bare name of the policy.
    pub policy: &'static str,
    /// Every option in force, defaults included.
    pub parameters: Map<String, Value>,
    /// How many arms there were.
    pub arms: usize,
    /// How many limits there were.
    pub limits: usize,
    /// Rounds of a repetition.
    pub rounds: u64,
    /// Repetitions.
    pub repetitions: u64,
    /// The pair to find.
    pub best: Best,
    /// Cumulative regret after the last round.
    pub regret: Estimate,
    /// Share of rounds without a reward.
    pub censored: Spread,
    /// Regret of the pair recommended at the end; unknown if a repetition ended without a recommendation.
    pub simple_regret: Estimate,
    /// Cumulative regret on the way: round, mean, standard error.
    pub curve: Vec<(u64, f64, Option<f64>)>,
    /// The policy with the options that differ from its defaults: `rcucb:alpha=0.25`.
    #[serde(skip)]
    pub label: String,
}

impl Standing {
    /// What it was played on: the problem, and its grid if that has a name.
    pub(super) fn played_on(&self) -> String {
        if self.grid == OWN_GRID {
            self.problem.clone()
        } else {
            format!("{} on {}", self.problem, self.grid)
        }
    }
}

/// A standing in the making: repetitions are added one by one, in order.
pub(super) struct Tally {
    checkpoints: Vec<u64>,
    regret: Vec<Running>,
    censored: Running,
    simple_regret: Running,
}

impl Tally {
    pub(super) fn new(rounds: u64) -> Self {
        let checkpoints = checkpoints(rounds);
        Self {
            regret: vec![Running::default(); checkpoints.len()],
            checkpoints,
            censored: Running::default(),
            simple_regret: Running::default(),
        }
    }

    pub(super) fn add(&mut self, played: &Played) {
        for (running, regret) in self.regret.iter_mut().zip(&played.regret) {
            running.add(*regret);
        }
        self.censored.add(played.censored);
        if let Some(regret) = played.simple_regret {
            self.simple_regret.add(regret);
        }
    }

    pub(super) fn standing(&self, setting: &Setting, policy: &PolicyKind) -> Standing {
        let known = |running: &Running| Estimate {
            mean: Some(running.mean()),
            se: running.error(),
        };
        let repetitions = self.censored.count();
        Standing {
            problem: setting.name.clone(),
            grid: setting.grid.clone(),
            policy: policy.name(),
            parameters: policy.parameters(),
            arms: setting.problem.arms,
            limits: setting.problem.limits.len(),
            rounds: self.checkpoints.last().copied().unwrap_or(0),
            repetitions,
            best: setting.best,
            regret: known(&self.regret.last().copied().unwrap_or_default()),
            censored: Spread {
                mean: self.censored.mean(),
                sd: self.censored.deviation(),
            },
            simple_regret: if self.simple_regret.count() == repetitions {
                known(&self.simple_regret)
            } else {
                Estimate {
                    mean: None,
                    se: None,
                }
            },
            curve: self
                .checkpoints
                .iter()
                .zip(&self.regret)
                .map(|(round, running)| (*round, running.mean(), running.error()))
                .collect(),
            label: label(policy),
        }
    }
}

/// The policy as one would write it on the command line, without what is default anyway.
pub(super) fn label(policy: &PolicyKind) -> String {
    let name = policy.name();
    let default = PolicyKind::from_options(name, vec![]).map(|policy| policy.parameters());
    let default = default.unwrap_or_default();
    let differing: Vec<String> = policy
        .parameters()
        .iter()
        .filter(|(option, value)| default.get(*option) != Some(value))
        .map(|(option, value)| match value {
            Value::String(text) => format!("{option}={text}"),
            other => format!("{option}={other}"),
        })
        .collect();
    if differing.is_empty() {
        name.to_owned()
    } else {
        format!("{name}:{}", differing.join(","))
    }
}
