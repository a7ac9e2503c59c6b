//! The results of one policy on one setting, as they are written to files.

use serde::Serialize;
use serde_json::{Map, Value};

use super::curve::checkpoints;
use super::play::PlayedRepetition;
use super::setting::Best;
use super::source::OWN_GRID;
use crate::policy::{PolicyKind, Problem};

/// A mean with its standard error. Unknown (null) if there is nothing to compute it from.
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

/// A sum over the rounds: round, mean over repetitions, standard error.
pub type MeanCurve = Vec<(u64, f64, Option<f64>)>;

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
    /// The pair to find. Unknown for real runs.
    pub best: Option<Best>,
    /// Cumulative regret after the last round. Unknown if the best pair is.
    pub regret: Estimate,
    /// Cumulative reward after the last round.
    pub reward: Estimate,
    /// Cumulative gain after the last round, as observed.
    pub gain: Estimate,
    /// Share of rounds without a reward.
    pub censored: Spread,
    /// Regret of the pair recommended at the end. Unknown if a repetition ended without a recommendation.
    pub simple_regret: Estimate,
    /// Cumulative regret over the rounds. Empty if it is unknown.
    pub curve: MeanCurve,
    /// Cumulative reward over the rounds.
    pub reward_curve: MeanCurve,
    /// Cumulative gain over the rounds.
    pub gain_curve: MeanCurve,
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

/// What policies are compared on.
pub(super) struct Posed<'a> {
    pub(super) name: &'a str,
    pub(super) grid: &'a str,
    pub(super) problem: &'a Problem,
    pub(super) best: Option<Best>,
}

/// Collects a standing: repetitions are added one by one, in order.
pub(super) struct Repetitions {
    checkpoints: Vec<u64>,
    regret: Vec<RunningMean>,
    reward: Vec<RunningMean>,
    gain: Vec<RunningMean>,
    censored: RunningMean,
    simple_regret: RunningMean,
}

impl Repetitions {
    pub(super) fn new(rounds: u64) -> Self {
        Self::over(checkpoints(rounds))
    }

    /// With points at these rounds.
    pub(super) fn over(checkpoints: Vec<u64>) -> Self {
        let none = || vec![RunningMean::default(); checkpoints.len()];
        Self {
            regret: none(),
            reward: none(),
            gain: none(),
            checkpoints,
            censored: RunningMean::default(),
            simple_regret: RunningMean::default(),
        }
    }

    pub(super) fn add(&mut self, played: &PlayedRepetition) {
        for (sums, values) in [
            (&mut self.regret, &played.regret),
            (&mut self.reward, &played.reward),
            (&mut self.gain, &played.gain),
        ] {
            for (running, value) in sums.iter_mut().zip(values) {
                running.add(*value);
            }
        }
        self.censored.add(played.censored);
        if let Some(regret) = played.simple_regret {
            self.simple_regret.add(regret);
        }
    }

    pub(super) fn standing(&self, posed: &Posed<'_>, policy: &PolicyKind) -> Standing {
        let repetitions = self.censored.count();
        // Known only if every repetition has it.
        let known = |running: &RunningMean| {
            let is_known = running.count() == repetitions && repetitions > 0;
            Estimate {
                mean: is_known.then(|| running.mean()),
                se: running.error().filter(|_| is_known),
            }
        };
        let last = |sums: &[RunningMean]| known(&sums.last().copied().unwrap_or_default());
        let curve = |sums: &[RunningMean]| {
            let points = self.checkpoints.iter().zip(sums);
            points
                .filter(|(_, running)| running.count() == repetitions)
                .map(|(round, running)| (*round, running.mean(), running.error()))
                .collect()
        };
        Standing {
            problem: posed.name.to_owned(),
            grid: posed.grid.to_owned(),
            policy: policy.name(),
            parameters: policy.parameters(),
            arms: posed.problem.arms,
            limits: posed.problem.limits.len(),
            rounds: self.checkpoints.last().copied().unwrap_or(0),
            repetitions,
            best: posed.best,
            regret: last(&self.regret),
            reward: last(&self.reward),
            gain: last(&self.gain),
            censored: Spread {
                mean: self.censored.mean(),
                sd: self.censored.deviation(),
            },
            simple_regret: known(&self.simple_regret),
            curve: curve(&self.regret),
            reward_curve: curve(&self.reward),
            gain_curve: curve(&self.gain),
            label: label(policy),
        }
    }
}

/// The policy as written on the command line, without its defaults.
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

/// Welford's running mean and sum of squares: one pass, no values kept, no digits lost.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct RunningMean {
    count: u64,
    mean: f64,
    squares: f64,
}

impl RunningMean {
    /// Adds a value.
    pub(super) fn add(&mut self, value: f64) {
        self.count += 1;
        let before = value - self.mean;
        self.mean += before / self.count as f64;
        self.squares += before * (value - self.mean);
    }

    /// How many values there were.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// Their mean, or 0 without values.
    pub(super) fn mean(&self) -> f64 {
        self.mean
    }

    /// The sample standard deviation. `None` with fewer than two values.
    pub(super) fn deviation(&self) -> Option<f64> {
        (self.count > 1).then(|| (self.squares / (self.count - 1) as f64).sqrt())
    }

    /// The standard error of the mean. `None` with fewer than two values.
    pub(super) fn error(&self) -> Option<f64> {
        self.deviation()
            .map(|deviation| deviation / (self.count as f64).sqrt())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mean_deviation_and_error_are_those_of_the_textbook() {
        let mut running = RunningMean::default();
        assert_eq!(running.deviation(), None);
        for value in [2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0] {
            running.add(value);
        }
        assert_eq!(running.mean(), 5.0);
        let deviation = (32.0f64 / 7.0).sqrt();
        assert!((running.deviation().unwrap() - deviation).abs() < 1e-12);
        assert!((running.error().unwrap() - deviation / 8f64.sqrt()).abs() < 1e-12);
    }
}
