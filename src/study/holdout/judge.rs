//! All repetitions of all policies on one holdout.

use super::super::in_flight::InFlight;
use super::super::play::seed_of;
use super::super::progress::Progress;
use super::super::workers::in_order;
use super::instances::{Holdout, Par10};
use super::mark::{MarkSums, Marks};
use super::points::points;
use crate::policy::{Policy, PolicyKind};
use crate::round::{ArmId, Purpose, Round, randomness};
use crate::target::VirtualTarget;

/// What the shortest run costs, in seconds: starting a program is not free.
const LEAST_COST: f64 = 0.01;

/// What is played.
pub struct HoldoutPlan {
    /// One way to split the instances of a scenario, or several.
    pub holdouts: Vec<Holdout>,
    /// The policies that play.
    pub policies: Vec<PolicyKind>,
    /// What to spend. A repetition plays until the largest is spent.
    pub budgets: Vec<f64>,
    /// What budgets are counted in.
    pub unit: Unit,
    /// How often each policy plays each split.
    pub repetitions: u64,
    /// The seed of all randomness.
    pub seed: u64,
    /// How many repetitions run at a time.
    pub threads: usize,
    /// Pulls in flight in every repetition.
    pub slots: usize,
}

/// What budgets are counted in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Seconds of CPU time.
    Seconds,
    /// The cost of one run of every arm at the largest limit: B.
    Sweeps,
}

impl Unit {
    /// How many seconds it is.
    pub(super) fn seconds(self, holdout: &Holdout) -> f64 {
        match self {
            Self::Seconds => 1.0,
            Self::Sweeps => holdout.sweep,
        }
    }
}

impl HoldoutPlan {
    /// How often a policy plays.
    pub(super) fn plays(&self) -> u64 {
        self.holdouts.len() as u64 * self.repetitions
    }

    /// Virtual seconds in total.
    pub fn total_seconds(&self) -> u64 {
        let longest = self.budgets.iter().copied().fold(0.0, f64::max);
        let holdouts = self
            .holdouts
            .iter()
            .map(|holdout| self.unit.seconds(holdout));
        let repetitions = self.policies.len() as f64 * self.repetitions as f64;
        (repetitions * longest * holdouts.sum::<f64>()) as u64
    }
}

/// One answer during a repetition.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Judged {
    /// CPU time of the runs observed.
    pub(super) spent: f64,
    /// How many runs there were.
    pub(super) runs: u64,
    /// How many of them had no reward.
    pub(super) censored: u64,
    /// The sum of their gains.
    pub(super) gain: f64,
    /// PAR10 of the arm answered for the full limit, or of the first arm if there was no answer.
    pub(super) par10: Par10,
    /// The share of the gap from the median arm to the best that it closes, in training and in test.
    pub(super) shares: (Option<f64>, Option<f64>),
    /// Test PAR10 of the arm of the best pair, or of the first arm if there was none.
    pub(super) pair: f64,
    /// Whether there was an answer.
    pub(super) is_answered: bool,
}

/// Plays everything and returns the marks, in the order of the policies.
pub fn judge_all(plan: &HoldoutPlan, progress: &Progress) -> Vec<Marks> {
    let points = points(&plan.budgets);
    let plays = plan.plays();
    let games = (plan.policies.len() as u64).saturating_mul(plays);
    let mut marks = Vec::with_capacity(plan.policies.len());
    let mut tally = MarkSums::new(&points);
    in_order(
        games,
        plan.threads,
        |game| {
            let policy = &plan.policies[(game / plays) as usize];
            let holdout = &plan.holdouts[(game % plays / plan.repetitions) as usize];
            progress.at(|| format!("{} {}", holdout.name, policy.name()));
            let seed = seed_of(plan.seed, game % plays);
            let unit = plan.unit.seconds(holdout);
            let points: Vec<f64> = points.iter().map(|point| point * unit).collect();
            play(holdout, policy, (seed, plan.slots), &points, &|more| {
                progress.advance(more);
            })
        },
        |game, judged| {
            tally.add(&judged);
            if (game + 1) % plays == 0 {
                marks.push(tally.marks(plan, &plan.policies[marks.len()]));
                tally = MarkSums::new(&points);
            }
        },
    );
    marks
}

/// Plays until the last point is passed. Runs in flight then are lost. Runs in flight at an earlier point are not known
/// yet when the answer is asked for.
fn play(
    holdout: &Holdout,
    policy: &PolicyKind,
    (seed, slots): (u64, usize),
    points: &[f64],
    news: &dyn Fn(u64),
) -> Vec<Judged> {
    let mut policy = policy.build(&holdout.problem);
    let mut judged: Vec<Judged> = Vec::with_capacity(points.len());
    let (mut spent, mut runs, mut censored, mut gain) = (0.0, 0, 0, 0.0);
    let mut told = 0;
    let (mut launched, mut flight) = (0, InFlight::new(slots));
    loop {
        while flight.has_free_slot() {
            launched += 1;
            let round = Round(launched);
            let pull = policy.choose(round, &mut randomness(seed, round, Purpose::Choose));
            let pull = holdout.training.with_instance(seed, round, pull);
            policy.launched(round, pull);
            let ran = holdout.training.run(seed, round, pull);
            flight.launch(round, ran, ran.consumption.max(LEAST_COST));
        }
        let landed = flight.land().expect("every slot has a pull");
        while points
            .get(judged.len())
            .is_some_and(|point| *point < spent + landed.cost)
        {
            let answer = Judged {
                spent,
                runs,
                censored,
                gain,
                ..judge(holdout, policy.as_ref())
            };
            judged.push(answer);
            let seconds = points[judged.len() - 1] as u64;
            news(seconds - told);
            told = seconds;
        }
        if judged.len() == points.len() {
            break;
        }
        let seen = landed.seen;
        let mut rng = randomness(seed, landed.round, Purpose::Observe);
        policy.observe(landed.round, seen, &mut rng);
        spent += landed.cost;
        runs += 1;
        censored += u64::from(seen.is_censored());
        gain += seen.gain(&holdout.problem.price);
    }
    judged
}

/// Judges the current answer.
fn judge(holdout: &Holdout, policy: &dyn Policy) -> Judged {
    let first = ArmId::from_index(0);
    let answer = policy.answer(Some(holdout.full_limit()));
    let pair = policy.recommend();
    let worth = |arm: ArmId| holdout.par10[arm.index()];
    let of_answer = worth(answer.map_or(first, |answer| answer.pull.arm));
    Judged {
        spent: 0.0,
        runs: 0,
        censored: 0,
        gain: 0.0,
        par10: of_answer,
        shares: holdout.shares(of_answer),
        pair: worth(pair.map_or(first, |pair| pair.pull.arm)).test,
        is_answered: answer.is_some(),
    }
}
