//! All repetitions of all policies on one exam.

use super::super::play::seed_of;
use super::super::progress::Progress;
use super::super::workers::in_order;
use super::instances::Exam;
use super::mark::{Marks, Tally};
use super::points::points;
use crate::policy::{Policy, PolicyKind};
use crate::round::{ArmId, Purpose, Round, randomness};
use crate::target::VirtualTarget;

/// What the shortest run costs, in seconds: starting a program is not free.
const LEAST_COST: f64 = 0.01;

/// What is played.
pub struct ExamPlan {
    /// On what.
    pub exam: Exam,
    /// Who.
    pub policies: Vec<PolicyKind>,
    /// CPU times to spend, in seconds; a repetition plays until the largest is spent.
    pub budgets: Vec<f64>,
    /// How often each policy plays.
    pub repetitions: u64,
    /// Where all randomness comes from.
    pub seed: u64,
    /// How many repetitions run at a time.
    pub threads: usize,
}

impl ExamPlan {
    /// Virtual seconds of a repetition.
    fn longest(&self) -> f64 {
        self.budgets.iter().copied().fold(0.0, f64::max)
    }

    /// Virtual seconds over all.
    pub fn total_seconds(&self) -> u64 {
        let repetitions = self.policies.len() as f64 * self.repetitions as f64;
        (repetitions * self.longest()) as u64
    }
}

/// One answer on the way, as one repetition gave it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Judged {
    /// CPU time of the runs observed.
    pub(super) spent: f64,
    /// How many they were.
    pub(super) runs: u64,
    /// Of these, the ones without a reward.
    pub(super) censored: u64,
    /// The sum of their gains.
    pub(super) gain: f64,
    /// The arm answered for the full limit; the first arm where there was no answer.
    pub(super) train: f64,
    pub(super) test: f64,
    /// Test PAR10 of the arm of the best pair; the first arm where there was none.
    pub(super) pair: f64,
    /// Whether there was an answer.
    pub(super) is_answered: bool,
}

/// Plays everything and gives the marks, policies in their order.
pub fn judge_all(plan: &ExamPlan, progress: &Progress) -> Vec<Marks> {
    let points = points(&plan.budgets);
    let games = (plan.policies.len() as u64).saturating_mul(plan.repetitions);
    let mut marks = Vec::with_capacity(plan.policies.len());
    let mut tally = Tally::new(&points);
    in_order(
        games,
        plan.threads,
        |game| {
            let policy = &plan.policies[(game / plan.repetitions) as usize];
            progress.at(|| format!("{} {}", plan.exam.name, policy.name()));
            let seed = seed_of(plan.seed, game % plan.repetitions);
            play(&plan.exam, policy, seed, &points, &|more| {
                progress.advance(more);
            })
        },
        |game, judged| {
            tally.add(&judged);
            if (game + 1) % plan.repetitions == 0 {
                marks.push(tally.marks(plan, &plan.policies[marks.len()]));
                tally = Tally::new(&points);
            }
        },
    );
    marks
}

/// Plays until the last point is passed. The run in flight then is lost; those in flight at the points before are not
/// known yet when the answer is asked for.
fn play(
    exam: &Exam,
    policy: &PolicyKind,
    seed: u64,
    points: &[f64],
    news: &dyn Fn(u64),
) -> Vec<Judged> {
    let mut policy = policy.build(&exam.problem);
    let mut judged: Vec<Judged> = Vec::with_capacity(points.len());
    let (mut spent, mut runs, mut censored, mut gain) = (0.0, 0, 0, 0.0);
    let mut told = 0;
    for number in 1.. {
        let round = Round(number);
        let pull = policy.choose(round, &mut randomness(seed, round, Purpose::Choose));
        let pull = exam.training.with_instance(seed, round, pull);
        policy.launched(round, pull);
        let ran = exam.training.run(seed, round, pull);
        let cost = ran.consumption.max(LEAST_COST);
        while points
            .get(judged.len())
            .is_some_and(|point| *point < spent + cost)
        {
            let answer = Judged {
                spent,
                runs,
                censored,
                gain,
                ..judge(exam, policy.as_ref())
            };
            judged.push(answer);
            let seconds = points[judged.len() - 1] as u64;
            news(seconds - told);
            told = seconds;
        }
        if judged.len() == points.len() {
            break;
        }
        let seen = ran.observation;
        policy.observe(round, seen, &mut randomness(seed, round, Purpose::Observe));
        spent += cost;
        runs += 1;
        censored += u64::from(seen.is_censored());
        gain += seen.gain(&exam.problem.price);
    }
    judged
}

/// What the answer of now is worth.
fn judge(exam: &Exam, policy: &dyn Policy) -> Judged {
    let first = ArmId::from_index(0);
    let answer = policy.answer(Some(exam.full_limit()));
    let pair = policy.recommend();
    let worth = |arm: ArmId| exam.par10[arm.index()];
    let of_answer = worth(answer.map_or(first, |answer| answer.pull.arm));
    Judged {
        spent: 0.0,
        runs: 0,
        censored: 0,
        gain: 0.0,
        train: of_answer.train,
        test: of_answer.test,
        pair: worth(pair.map_or(first, |pair| pair.pull.arm)).test,
        is_answered: answer.is_some(),
    }
}
