//! The scores of policies, as they are written to files.

use serde::Serialize;
use serde_json::{Map, Value};

use super::super::result::{Estimate, RunningMean, label};
use super::instances::Baselines;
use super::judge::{HoldoutPlan, Judged, Unit};
use crate::policy::PolicyKind;
use crate::quantity::counted;

/// How one policy did.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Marks {
    /// The scenario's name.
    pub problem: String,
    /// The bare name of the policy.
    pub policy: &'static str,
    /// Every option in force, defaults included.
    pub parameters: Map<String, Value>,
    /// How many arms there were; on an open space, how many a run begins with.
    pub arms: usize,
    /// Whether arms were proposed on the way.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_open: bool,
    /// Pulls in flight.
    pub slots: usize,
    /// How many limits there were.
    pub limits: usize,
    /// How many instances it played on.
    pub training: usize,
    /// How many instances its answers were judged on.
    pub test: usize,
    /// The cutoff of PAR10.
    pub cutoff: f64,
    /// How often the instances were split.
    pub halves: usize,
    /// Repetitions on each split.
    pub repetitions: u64,
    /// What answers can be compared with.
    pub baselines: Baselines,
    /// Its scores when each budget was spent, in the order of the budgets' size.
    pub budgets: Vec<Mark>,
    /// Its scores along the way, budgets included.
    pub curve: Vec<Mark>,
    /// The policy with the options that differ from its defaults.
    #[serde(skip)]
    pub label: String,
}

/// The scores of a policy after this much CPU time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Mark {
    /// The CPU time in seconds. If budgets are given in B, the mean over splits.
    pub cpu: f64,
    /// The same in B, the cost of one run of every arm at the largest limit, if budgets are given so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sweeps: Option<f64>,
    /// The share of the gap from the median arm to the best arm that the answer closes, by training PAR10.
    pub share: Estimate,
    /// The same by test PAR10.
    pub test_share: Estimate,
    /// PAR10 of its answer for the full limit, on the test instances.
    pub test: Estimate,
    /// The same on the training instances.
    pub train: Estimate,
    /// What the answered pair gains per run on the training instances.
    pub pair: Estimate,
    /// CPU time of the runs observed. The run in flight does not count.
    pub spent: Estimate,
    /// How many runs were observed.
    pub runs: Estimate,
    /// Share of them without a reward. Unknown if a repetition had no run.
    pub censored: Estimate,
    /// Sum of their gains.
    pub gain: Estimate,
    /// Share of repetitions that had an answer. The others are judged by the first arm.
    pub answered: f64,
}

/// Collects marks: repetitions are added one by one, in order.
pub(super) struct MarkSums(Vec<(f64, At)>);

#[derive(Debug, Clone, Copy, Default)]
struct At {
    share: RunningMean,
    test_share: RunningMean,
    test: RunningMean,
    train: RunningMean,
    pair: RunningMean,
    spent: RunningMean,
    runs: RunningMean,
    censored: RunningMean,
    gain: RunningMean,
    answered: u64,
}

impl MarkSums {
    pub(super) fn new(points: &[f64]) -> Self {
        Self(points.iter().map(|cpu| (*cpu, At::default())).collect())
    }

    pub(super) fn add(&mut self, judged: &[Judged]) {
        for ((_, at), judged) in self.0.iter_mut().zip(judged) {
            let (train, test) = judged.shares;
            if let Some(share) = train {
                at.share.add(share);
            }
            if let Some(share) = test {
                at.test_share.add(share);
            }
            at.test.add(judged.par10.test);
            at.train.add(judged.par10.train);
            at.pair.add(judged.pair);
            at.spent.add(judged.spent);
            at.runs.add(judged.runs as f64);
            if judged.runs > 0 {
                at.censored.add(judged.censored as f64 / judged.runs as f64);
            }
            at.gain.add(judged.gain);
            at.answered += u64::from(judged.is_answered);
        }
    }

    pub(super) fn marks(&self, plan: &HoldoutPlan, (policy, slots): (&PolicyKind, usize)) -> Marks {
        let holdout = &plan.holdouts[0];
        let units = plan
            .holdouts
            .iter()
            .map(|holdout| plan.unit.seconds(holdout));
        let unit = units.sum::<f64>() / plan.holdouts.len() as f64;
        let mark = |(point, at): &(f64, At)| Mark {
            sweeps: (plan.unit == Unit::Sweeps).then_some(*point),
            ..at.mark(point * unit)
        };
        let points = || self.0.iter();
        let is_budget = |point: &&(f64, At)| plan.budgets.contains(&point.0);
        Marks {
            problem: holdout.name.clone(),
            policy: policy.name(),
            parameters: policy.parameters(),
            arms: holdout.problem.arms,
            limits: holdout.problem.limits.len(),
            training: holdout.training.instance_names().len(),
            test: holdout.test_instances,
            cutoff: holdout.training.cutoff(),
            halves: plan.holdouts.len(),
            repetitions: plan.repetitions,
            baselines: Baselines::mean(&plan.holdouts),
            budgets: points().filter(is_budget).map(mark).collect(),
            curve: points().map(mark).collect(),
            label: match plan.slots[..] {
                [1] => label(policy),
                _ => format!("{}, {}", label(policy), counted(slots as u64, "slot")),
            },
            slots,
            is_open: holdout.is_open(),
        }
    }
}

impl At {
    fn mark(&self, cpu: f64) -> Mark {
        let repetitions = self.test.count();
        let estimate = |running: &RunningMean| {
            let is_known = running.count() == repetitions;
            Estimate {
                mean: is_known.then(|| running.mean()),
                se: running.error().filter(|_| is_known),
            }
        };
        // Splits whose median arm is as good as the best have no gap to close.
        let known = |running: &RunningMean| Estimate {
            mean: (running.count() > 0).then(|| running.mean()),
            se: running.error(),
        };
        Mark {
            cpu,
            sweeps: None,
            share: known(&self.share),
            test_share: known(&self.test_share),
            test: estimate(&self.test),
            train: estimate(&self.train),
            pair: estimate(&self.pair),
            spent: estimate(&self.spent),
            runs: estimate(&self.runs),
            censored: estimate(&self.censored),
            gain: estimate(&self.gain),
            answered: self.answered as f64 / repetitions.max(1) as f64,
        }
    }
}
