//! All repetitions of all policies on one holdout.

use std::ops::ControlFlow;

use super::super::curve::cpu_times;
use super::super::play::seed_of;
use super::super::virtual_time::{self, Flying, VirtualRun};
use super::super::workers::{StudyProgress, in_order};
use super::instances::{Holdout, Par10};
use super::mark::{MarkSums, Marks};
use crate::journal::{Learned, OutcomeRecord, PullRecord};
use crate::orchestrator::{Next, Plan, State};
use crate::policy::PolicyKind;
use crate::round::{ArmId, Pull};

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
    /// Pulls in flight in every repetition. With several numbers, all policies play with each of them.
    pub slots: Vec<usize>,
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
    /// Every policy with every number of slots.
    pub(super) fn players(&self) -> Vec<(&PolicyKind, usize)> {
        let with_slots = |policy| self.slots.iter().map(move |slots| (policy, *slots));
        self.policies.iter().flat_map(with_slots).collect()
    }

    /// How often a policy plays with one number of slots.
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
        let repetitions = self.players().len() as f64 * self.repetitions as f64;
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
    /// What the answered pair gains on the training instances, or the first arm at the largest limit if there was none.
    pub(super) pair: f64,
    /// Whether there was an answer.
    pub(super) is_answered: bool,
}

/// Plays everything and returns the marks, in the order of the policies; of each, in the order of the slots.
pub fn judge_all(plan: &HoldoutPlan, progress: &StudyProgress) -> Vec<Marks> {
    let points = cpu_times(&plan.budgets);
    let plays = plan.plays();
    let players = plan.players();
    let games = (players.len() as u64).saturating_mul(plays);
    let mut marks = Vec::with_capacity(players.len());
    let mut tally = MarkSums::new(&points);
    in_order(
        games,
        plan.threads,
        |game| {
            let (policy, slots) = players[(game / plays) as usize];
            let holdout = &plan.holdouts[(game % plays / plan.repetitions) as usize];
            progress.at(|| format!("{} {}", holdout.name, policy.name()));
            let seed = seed_of(plan.seed, game % plays);
            let unit = plan.unit.seconds(holdout);
            let points: Vec<f64> = points.iter().map(|point| point * unit).collect();
            play(holdout, policy, (seed, slots), &points, &|more| {
                progress.advance(more);
            })
        },
        |game, judged| {
            tally.add(&judged);
            if (game + 1) % plays == 0 {
                marks.push(tally.marks(plan, players[marks.len()]));
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
    let mut training = Training {
        holdout,
        state: State::new(Plan {
            policy: policy.clone(),
            seed,
            ..holdout.plan.clone()
        }),
        seed,
        points,
        judged: Vec::with_capacity(points.len()),
        spent: 0.0,
        reported: 0,
        news,
    };
    virtual_time::play(&mut training, slots);
    training.judged
}

/// A run on the training instances, whose answers are judged at some points.
struct Training<'a> {
    holdout: &'a Holdout,
    state: State,
    seed: u64,
    points: &'a [f64],
    judged: Vec<Judged>,
    spent: f64,
    /// Seconds that the progress knows of.
    reported: u64,
    news: &'a dyn Fn(u64),
}

impl VirtualRun for Training<'_> {
    type Pull = PullRecord;

    fn launch(&mut self) -> Option<Flying<PullRecord>> {
        let Next::Pull(pull) = self.state.choose() else {
            return None;
        };
        if let Some(arm) = self.state.opening(pull.arm) {
            self.state.open(&arm);
        }
        self.state.launched(&pull);
        let target = self.holdout.target();
        let ran = match self.state.drawn_configuration(pull.arm) {
            Some(configuration) => {
                target.run_configuration(self.seed, pull.round, pull.pull(), &configuration)
            }
            None => target.run(self.seed, pull.round, pull.pull()),
        };
        Some(Flying::new(pull, ran, LEAST_COST))
    }

    fn landed(&mut self, landed: Flying<PullRecord>) -> ControlFlow<()> {
        let passed = self.spent + landed.cost;
        while let Some(point) = self.points.get(self.judged.len())
            && *point < passed
        {
            self.judged
                .push(judge(self.holdout, &self.state, self.spent));
            let seconds = *point as u64;
            (self.news)(seconds - self.reported);
            self.reported = seconds;
        }
        if self.judged.len() == self.points.len() {
            return ControlFlow::Break(());
        }
        self.state.learned(&Learned {
            pull: landed.pull,
            observation: landed.seen,
            outcome: OutcomeRecord {
                outcome: landed.pull.round.0,
                consumption: Some(landed.cost),
                ..OutcomeRecord::default()
            },
        });
        self.spent = passed;
        ControlFlow::Continue(())
    }
}

/// Judges the answers that a run would give now.
fn judge(holdout: &Holdout, state: &State, spent: f64) -> Judged {
    let first = ArmId::from_index(0);
    let answer = state.answer(Some(holdout.full_limit()));
    let at_most = Pull::new(first, holdout.full_limit());
    let pair = (state.recommend()).map_or(at_most, |best| best.pull);
    let worth = |arm: ArmId| holdout.par10(state, arm);
    let of_answer = worth(answer.map_or(first, |answer| answer.pull.arm));
    let tally = state.tally();
    Judged {
        spent,
        runs: tally.learned,
        censored: tally.censored + tally.failed,
        gain: tally.gain,
        par10: of_answer,
        shares: holdout.shares(of_answer),
        pair: holdout.gain(state, pair),
        is_answered: answer.is_some(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::round::{Purpose, Round, randomness};
    use crate::target::VirtualTarget;

    /// Arms and instances with times that spread over limits; some runs never end, some fail.
    fn scenario(folder: &std::path::Path) -> crate::scenario::Scenario {
        use rand::RngExt;
        let mut rng = randomness(5, Round(1), Purpose::Target);
        let row = |instance: usize| {
            let cell = |arm: usize| match rng.random_range(0..10) {
                // The default is never the better answer.
                _ if arm == 0 => ",unsolved".to_owned(),
                0 => ",failed".to_owned(),
                1..4 => ",unsolved".to_owned(),
                _ => format!(",{:.3}", 10f64.powf(rng.random_range(-2.0..2.0))),
            };
            format!("i{instance}{}\n", (0..6).map(cell).collect::<String>())
        };
        let rows: String = (0..30).map(row).collect();
        let matrix = format!("instance,a,b,c,d,e,f\n{rows}");
        std::fs::write(folder.join("m.csv"), matrix).unwrap();
        let text = "target: {recorded: {consumption: m.csv, cutoff: 100s}}\nlimits: {grid: [0.1s, 1s, 10s, 100s]}\n";
        let scenario = crate::scenario::parse(text, "s.yaml".as_ref(), folder);
        scenario.unwrap().scenario
    }

    /// The protocol once more, by hand, without a run's state. Of most policies, answers are compared by the runs of the arms, which
    /// only a run's state has.
    #[test]
    fn a_play_is_what_the_policy_does_by_itself_on_the_training_instances() {
        let folder = tempfile::tempdir().unwrap();
        let scenario = scenario(folder.path());
        let holdouts = Holdout::random_halves(&scenario, 3, 7).unwrap();
        for name in ["levels", "race", "halving:common=true", "rcucb"] {
            let kind = PolicyKind::parse(name).unwrap();
            for (half, holdout) in (0..).zip(&holdouts) {
                let points: Vec<f64> = [0.1, 1.0, 10.0].map(|b| b * holdout.sweep).into();
                let seed = seed_of(7, half);
                let judged = play(holdout, &kind, (seed, 1), &points, &|_| ());
                let mut policy = kind.build(&holdout.problem);
                let (mut spent, mut runs, mut number) = (0.0, 0, 0);
                let mut arms = vec![];
                while arms.len() < points.len() {
                    number += 1;
                    let round = Round(number);
                    let mut rng = randomness(seed, round, Purpose::Choose);
                    let mut pull = policy.choose(round, &mut rng);
                    if number == 1 {
                        // As in every run, whichever arm the policy prefers.
                        pull.arm = ArmId::from_index(0);
                    }
                    let pull = holdout.training.with_instance(seed, round, pull);
                    policy.launched(round, pull);
                    let ran = holdout.training.run(seed, round, pull);
                    let cost = ran.consumption.max(0.01);
                    while arms.len() < points.len() && spent + cost > points[arms.len()] {
                        let answer = policy.answer(Some(holdout.full_limit()));
                        let arm = answer.map_or(ArmId::from_index(0), |answer| answer.pull.arm);
                        let par10 = holdout.training.par10(arm);
                        arms.push((spent, runs, par10));
                    }
                    let mut rng = randomness(seed, round, Purpose::Observe);
                    policy.observe(round, ran.observation, &mut rng);
                    spent += cost;
                    runs += 1;
                }
                for (judged, (spent, runs, par10)) in judged.iter().zip(arms) {
                    assert_eq!(
                        (judged.spent, judged.runs),
                        (spent, runs),
                        "{name}, half {half}"
                    );
                    if name == "levels" {
                        assert_eq!(judged.par10.train, par10, "half {half}");
                    }
                }
            }
        }
    }
}
