//! One policy on one setting, once.

use rand::Rng;

use super::in_flight::InFlight;
use super::setting::{Regrets, Setting};
use crate::policy::PolicyKind;
use crate::round::{Observation, Price, Purpose, Round, Seen, randomness};

/// How many rounds pass between two progress reports of a repetition.
const ROUNDS_PER_NEWS: u64 = 1 << 14;

/// The result of one repetition. Sums are cumulative, at the checkpoints.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Played {
    /// Of regrets. Empty if gains are not known.
    pub(super) regret: Vec<f64>,
    /// Of rewards.
    pub(super) reward: Vec<f64>,
    /// Of gains, as observed.
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

/// Plays all rounds up to the last checkpoint with `slots` pulls in flight. Reports regularly how many more were
/// played.
pub(super) fn play(
    setting: &Setting,
    policy: &PolicyKind,
    (seed, slots): (u64, usize),
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
    let (mut launched, mut flight) = (0, InFlight::new(slots));
    for number in 1..=rounds {
        while launched < rounds && flight.has_free_slot() {
            launched += 1;
            let round = Round(launched);
            let pull = policy.choose(round, &mut randomness(seed, round, Purpose::Choose));
            let pull = target.with_instance(seed, round, pull);
            policy.launched(round, pull);
            let ran = target.run(seed, round, pull);
            flight.launch(round, ran, ran.consumption);
        }
        let landed = flight.land().expect("a pull was launched for every round");
        let mut rng = randomness(seed, landed.pull, Purpose::Observe);
        policy.observe(landed.pull, landed.seen, &mut rng);
        regret += regrets.of(landed.seen.pull());
        course.add(&landed.seen, &setting.problem.price);
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

/// What is observed in a repetition, round by round.
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

    /// Adds a round.
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

    /// The result.
    pub(super) fn played(self) -> Played {
        Played {
            reward: self.rewards,
            gain: self.gains,
            censored: self.censored as f64 / self.rounds.max(1) as f64,
            ..Played::default()
        }
    }
}
