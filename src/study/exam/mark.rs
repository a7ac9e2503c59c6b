//! What policies scored, as it is written down.

use serde::Serialize;
use serde_json::{Map, Value};

use super::super::result::{Estimate, label};
use super::super::statistics::Running;
use super::instances::Baselines;
use super::judge::{ExamPlan, Judged};
use crate::policy::PolicyKind;

/// How one policy did.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Marks {
    /// The scenario's name.
    pub problem: String,
    /// The bare name of the policy.
    pub policy: &'static str,
    /// Every option in force, defaults included.
    pub parameters: Map<String, Value>,
    /// How many arms there were.
    pub arms: usize,
    /// How many limits there were.
    pub limits: usize,
    /// How many instances it played on.
    pub training: usize,
    /// How many instances its answers were judged on.
    pub test: usize,
    /// The cutoff of PAR10.
    pub cutoff: f64,
    /// Repetitions.
    pub repetitions: u64,
    /// What answers can be compared with.
    pub baselines: Baselines,
    /// How it stood when each budget was spent, in the order of the budgets' size.
    pub budgets: Vec<Mark>,
    /// How it stood on the way, budgets included.
    pub curve: Vec<Mark>,
    /// The policy with the options that differ from its defaults.
    #[serde(skip)]
    pub label: String,
}

/// How a policy stood when so much CPU time was spent.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Mark {
    /// The CPU time, in seconds.
    pub cpu: f64,
    /// PAR10 of its answer for the full limit, on the test instances.
    pub test: Estimate,
    /// The same on the training instances.
    pub train: Estimate,
    /// PAR10 on the test instances of the arm of its best pair.
    pub pair: Estimate,
    /// CPU time of the runs observed; the run in flight is missing.
    pub spent: Estimate,
    /// How many runs were observed.
    pub runs: Estimate,
    /// Share of them that brought no reward; unknown if a repetition had none.
    pub censored: Estimate,
    /// Sum of their gains.
    pub gain: Estimate,
    /// Share of repetitions that had an answer; the others are judged by the first arm.
    pub answered: f64,
}

/// Marks in the making: repetitions are added one by one, in order.
pub(super) struct Tally(Vec<(f64, At)>);

#[derive(Debug, Clone, Copy, Default)]
struct At {
    test: Running,
    train: Running,
    pair: Running,
    spent: Running,
    runs: Running,
    censored: Running,
    gain: Running,
    answered: u64,
}

impl Tally {
    pub(super) fn new(points: &[f64]) -> Self {
        Self(points.iter().map(|cpu| (*cpu, At::default())).collect())
    }

    pub(super) fn add(&mut self, judged: &[Judged]) {
        for ((_, at), judged) in self.0.iter_mut().zip(judged) {
            at.test.add(judged.test);
            at.train.add(judged.train);
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

    pub(super) fn marks(&self, plan: &ExamPlan, policy: &PolicyKind) -> Marks {
        let exam = &plan.exam;
        let curve: Vec<Mark> = self.0.iter().map(|(cpu, at)| at.mark(*cpu)).collect();
        let is_budget = |mark: &&Mark| plan.budgets.contains(&mark.cpu);
        Marks {
            problem: exam.name.clone(),
            policy: policy.name(),
            parameters: policy.parameters(),
            arms: exam.problem.arms,
            limits: exam.problem.limits.len(),
            training: exam.training.instance_names().len(),
            test: exam.test_instances,
            cutoff: exam.training.cutoff(),
            repetitions: plan.repetitions,
            baselines: exam.baselines,
            budgets: curve.iter().filter(is_budget).copied().collect(),
            curve,
            label: label(policy),
        }
    }
}

impl At {
    fn mark(&self, cpu: f64) -> Mark {
        let repetitions = self.test.count();
        let estimate = |running: &Running| {
            let is_known = running.count() == repetitions;
            Estimate {
                mean: is_known.then(|| running.mean()),
                se: running.error().filter(|_| is_known),
            }
        };
        Mark {
            cpu,
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
