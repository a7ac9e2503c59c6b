//! One policy on one setting, once.

use rand::Rng;

use super::setting::{Regrets, Setting};
use crate::policy::PolicyKind;
use crate::round::{Purpose, Round, randomness};

/// How often somebody is told how far a repetition is.
const ROUNDS_PER_NEWS: u64 = 1 << 14;

/// What one repetition brought.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Played {
    /// Cumulative regret at the checkpoints.
    pub(super) regret: Vec<f64>,
    /// Share of rounds without a reward.
    pub(super) censored: f64,
    /// Regret of the pair recommended at the end, if any was.
    pub(super) simple_regret: Option<f64>,
}

/// The seed of a repetition, the same for every policy and setting.
pub(super) fn seed_of(seed: u64, repetition: u64) -> u64 {
    randomness(seed, Round(repetition), Purpose::Repetition).next_u64()
}

/// Plays all rounds up to the last checkpoint, saying now and then how many more were played.
pub(super) fn play(
    setting: &Setting,
    policy: &PolicyKind,
    seed: u64,
    checkpoints: &[u64],
    news: &dyn Fn(u64),
) -> Played {
    let target = setting.target.as_ref();
    let mut policy = policy.build(&setting.problem);
    let mut regrets = Regrets::new(setting);
    let mut curve = Vec::with_capacity(checkpoints.len());
    let (mut regret, mut censored, mut told) = (0.0, 0_u64, 0);
    let rounds = checkpoints.last().copied().unwrap_or(0);
    for number in 1..=rounds {
        let round = Round(number);
        let pull = policy.choose(round, &mut randomness(seed, round, Purpose::Choose));
        let pull = target.with_instance(seed, round, pull);
        policy.launched(round, pull);
        let seen = target.run(seed, round, pull).observation;
        policy.observe(round, seen, &mut randomness(seed, round, Purpose::Observe));
        regret += regrets.of(pull);
        censored += u64::from(seen.is_censored());
        if checkpoints[curve.len()] == number {
            curve.push(regret);
        }
        if number % ROUNDS_PER_NEWS == 0 {
            news(ROUNDS_PER_NEWS);
            told += ROUNDS_PER_NEWS;
        }
    }
    news(rounds - told);
    Played {
        regret: curve,
        censored: censored as f64 / rounds.max(1) as f64,
        simple_regret: policy.recommend().map(|answer| regrets.of(answer.pull)),
    }
}
