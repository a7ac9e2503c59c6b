//! What a run's pulls cost, and how they failed.

use std::collections::BTreeMap;

use crate::journal::{By, Learned, PullRecord, Step};

/// Sums over all pulls, of this session and the ones before.
#[derive(Debug, Clone, Default)]
pub struct Account {
    /// Wall time of the pulls, in seconds.
    pub wall: f64,
    /// CPU time of the pulls, in seconds.
    pub cpu: f64,
    /// Failures by their reason.
    pub failures: BTreeMap<String, FailureTally>,
    /// Scores outside `worst` and `best`.
    pub clamped: u64,
    /// Pulls that were lost and run again.
    pub lost: u64,
}

/// Failures with one reason.
#[derive(Debug, Clone)]
pub struct FailureTally {
    /// How many.
    pub count: u64,
    /// The last of them.
    pub last: PullRecord,
    /// The end of its stderr.
    pub stderr: String,
}

/// More reasons than this are counted together.
const MOST_REASONS: usize = 100;

impl Account {
    /// Adds a step of a journal.
    pub fn step(&mut self, step: &Step) {
        match step {
            Step::Learned(learned) => self.learned(learned),
            Step::Lost(_) => self.lost += 1,
            _ => {}
        }
    }

    /// Adds a pull with an outcome.
    pub fn learned(&mut self, learned: &Learned) {
        // What an earlier run spent is not this run's.
        if learned.pull.by == Some(By::Earlier) {
            return;
        }
        let outcome = &learned.outcome;
        self.wall += outcome.wall.unwrap_or(0.0);
        self.cpu += outcome.cpu.unwrap_or(0.0);
        self.clamped += u64::from(outcome.clamped);
        if let Some(reason) = &outcome.failed {
            let is_known = self.failures.contains_key(&**reason);
            let reason = if is_known || self.failures.len() < MOST_REASONS {
                &**reason
            } else {
                "other reasons"
            };
            let stderr = outcome.stderr.as_deref().unwrap_or_default();
            let failures = self
                .failures
                .entry(reason.to_owned())
                .or_insert_with(|| FailureTally {
                    count: 0,
                    last: learned.pull,
                    stderr: String::new(),
                });
            failures.count += 1;
            failures.last = learned.pull;
            stderr.clone_into(&mut failures.stderr);
        }
    }

    /// Failures, the most frequent first.
    pub fn worst(&self) -> Vec<(&str, &FailureTally)> {
        let mut all: Vec<_> = self
            .failures
            .iter()
            .map(|(reason, failures)| (reason.as_str(), failures))
            .collect();
        all.sort_by_key(|(_, failures)| std::cmp::Reverse(failures.count));
        all
    }
}
