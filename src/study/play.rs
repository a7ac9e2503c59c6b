//! One policy on one setting, once.

use std::ops::ControlFlow;

use rand::Rng;

use super::setting::{Regrets, StudySetting};
use super::virtual_time::{self, Flying, VirtualRun};
use crate::policy::{Policy, PolicyKind};
use crate::round::{Observation, Price, Purpose, Round, Seen, randomness};

/// How many rounds pass between two progress reports of a repetition.
const ROUNDS_PER_NEWS: u64 = 1 << 14;

/// The result of one repetition. Sums are cumulative, at the checkpoints.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct PlayedRepetition {
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
    setting: &StudySetting,
    policy: &PolicyKind,
    (seed, slots): (u64, usize),
    checkpoints: &[u64],
    news: &dyn Fn(u64),
) -> PlayedRepetition {
    let mut repetition = Repetition {
        setting,
        policy: policy.build(&setting.problem),
        seed,
        launched: 0,
        rounds: checkpoints.last().copied().unwrap_or(0),
        regrets: Regrets::new(setting),
        regret: 0.0,
        curve: Vec::with_capacity(checkpoints.len()),
        course: Course::new(checkpoints),
        news,
    };
    virtual_time::play(&mut repetition, slots);
    news(repetition.rounds % ROUNDS_PER_NEWS);
    let answer = repetition.policy.recommend();
    PlayedRepetition {
        simple_regret: answer.map(|answer| repetition.regrets.of(answer.pull)),
        regret: repetition.curve,
        ..repetition.course.played()
    }
}

/// A policy that plays. It has no [`State`](crate::orchestrator::State) around it: that keeps every observation, and a repetition
/// may have millions.
struct Repetition<'a> {
    setting: &'a StudySetting,
    policy: Box<dyn Policy>,
    seed: u64,
    launched: u64,
    rounds: u64,
    regrets: Regrets<'a>,
    regret: f64,
    curve: Vec<f64>,
    course: Course<'a>,
    news: &'a dyn Fn(u64),
}

impl VirtualRun for Repetition<'_> {
    type Pull = Round;

    fn launch(&mut self) -> Option<Flying<Round>> {
        if self.launched == self.rounds {
            return None;
        }
        self.launched += 1;
        let (target, round) = (self.setting.target.as_ref(), Round(self.launched));
        let mut rng = randomness(self.seed, round, Purpose::Choose);
        let pull = self.policy.choose(round, &mut rng);
        let pull = target.with_instance(self.seed, round, pull);
        self.policy.launched(round, pull);
        let ran = target.run(self.seed, round, pull);
        Some(Flying::new(round, ran, 0.0))
    }

    fn landed(&mut self, landed: Flying<Round>) -> ControlFlow<()> {
        let mut rng = randomness(self.seed, landed.pull, Purpose::Observe);
        self.policy.observe(landed.pull, landed.seen, &mut rng);
        self.regret += self.regrets.of(landed.seen.pull());
        if self.course.add(&landed.seen, &self.setting.problem.price) {
            self.curve.push(self.regret);
        }
        if self.course.rounds.is_multiple_of(ROUNDS_PER_NEWS) {
            (self.news)(ROUNDS_PER_NEWS);
        }
        ControlFlow::Continue(())
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

    /// Adds a round. Whether it is a checkpoint.
    pub(super) fn add(&mut self, seen: &Observation, price: &Price) -> bool {
        self.rounds += 1;
        match seen.seen() {
            Seen::Rewarded { reward, .. } => self.reward += reward,
            Seen::Censored { .. } | Seen::Failed => self.censored += 1,
        }
        self.gain += seen.gain(price);
        let is_checkpoint = self.checkpoints.get(self.rewards.len()) == Some(&self.rounds);
        if is_checkpoint {
            self.rewards.push(self.reward);
            self.gains.push(self.gain);
        }
        is_checkpoint
    }

    /// The result.
    pub(super) fn played(self) -> PlayedRepetition {
        PlayedRepetition {
            reward: self.rewards,
            gain: self.gains,
            censored: self.censored as f64 / self.rounds.max(1) as f64,
            ..PlayedRepetition::default()
        }
    }
}
