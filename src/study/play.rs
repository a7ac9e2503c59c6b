//! One policy on one setting, once.

use rand::Rng;

use super::setting::{Regrets, Setting};
use crate::policy::PolicyKind;
use crate::round::{Observation, Price, Purpose, Round, Seen, randomness};

/// How often somebody is told how far a repetition is.
const ROUNDS_PER_NEWS: u64 = 1 << 14;

/// What one repetition brought. Sums are cumulative, at the checkpoints.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Played {
    /// Of regrets; empty where gains are not known.
    pub(super) regret: Vec<f64>,
    /// Of rewards.
    pub(super) reward: Vec<f64>,
    /// Of gains, as they were seen.
    pub(super) gain: Vec<f64>,
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
    let mut course = Course::new(checkpoints);
    let mut curve = Vec::with_capacity(checkpoints.len());
    let (mut regret, mut told) = (0.0, 0);
    let rounds = checkpoints.last().copied().unwrap_or(0);
    for number in 1..=rounds {
        let round = Round(number);
        let pull = policy.choose(round, &mut randomness(seed, round, Purpose::Choose));
        let pull = target.with_instance(seed, round, pull);
        policy.launched(round, pull);
        let seen = target.run(seed, round, pull).observation;
        policy.observe(round, seen, &mut randomness(seed, round, Purpose::Observe));
        regret += regrets.of(pull);
        course.add(&seen, &setting.problem.price);
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
        simple_regret: policy.recommend().map(|answer| regrets.of(answer.pull)),
        ..course.played()
    }
}

/// What can be seen of a repetition, round by round.
#[derive(Debug, Clone)]
pub(super) struct Course<'a> {
    checkpoints: &'a [u64],
    rounds: u64,
    censored: u64,
    reward: f64,
    gain: f64,
    rewards: Vec<f64>,
    gains: Vec<f64>,
}

impl<'a> Course<'a> {
    pub(super) fn new(checkpoints: &'a [u64]) -> Self {
        Self {
            checkpoints,
            rounds: 0,
            censored: 0,
            reward: 0.0,
            gain: 0.0,
            rewards: Vec::with_capacity(checkpoints.len()),
            gains: Vec::with_capacity(checkpoints.len()),
        }
    }

    /// One more round.
    pub(super) fn add(&mut self, seen: &Observation, price: &Price) {
        self.rounds += 1;
        match seen.seen() {
            Seen::Rewarded { reward, .. } => self.reward += reward,
            Seen::Censored { .. } | Seen::Failed => self.censored += 1,
        }
        self.gain += seen.gain(price);
        if self.checkpoints.get(self.rewards.len()) == Some(&self.rounds) {
            self.rewards.push(self.reward);
            self.gains.push(self.gain);
        }
    }

    /// What it has come to.
    pub(super) fn played(self) -> Played {
        Played {
            reward: self.rewards,
            gain: self.gains,
            censored: self.censored as f64 / self.rounds.max(1) as f64,
            ..Played::default()
        }
    }
}
