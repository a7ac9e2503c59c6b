//! Pulls that were lost with their runner. A loss is not an outcome, so they run again, but neither at once nor
//! forever.
//!
//! A machine that is short of processes, descriptors or memory loses one pull after another. So nothing is started for
//! a while after every loss, and for longer if no outcome came in between. Some pulls take their runner down every
//! time. Such a pull is given up after its retries, and counts as failed once another pull shows that the machine
//! works. If none does, nothing is learned, and the run ends so that it can be resumed.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::RunError;
use crate::journal::PullRecord;
use crate::target::{Failing, Measured, Outcome};

/// How long nothing is started after the first, second and any later loss in a row.
pub const PAUSES: [Duration; 3] = [
    Duration::from_millis(100),
    Duration::from_secs(1),
    Duration::from_secs(10),
];

/// If this many rounds are given up with no outcome in between, the machine is at fault.
const MOST: usize = 3;

/// A pull that was given up.
#[derive(Debug, Clone)]
pub(super) struct GivenUp {
    pub(super) slot: Option<u32>,
    pub(super) pull: PullRecord,
    times: u32,
    why: String,
}

impl GivenUp {
    /// Its outcome, once another pull shows that the machine works.
    pub(super) fn outcome(&self) -> Outcome {
        let failing = Failing::new(format!("lost {} times: {}", self.times, self.why));
        Outcome::failed(self.pull.pull(), failing, None, Measured::default())
    }
}

/// The lost pulls since the last outcome.
#[derive(Debug, Default)]
pub(super) struct Losses {
    retries: u32,
    pauses: [Duration; 3],
    /// By round, over all sessions.
    times: BTreeMap<u64, u32>,
    in_a_row: usize,
    given_up: Vec<GivenUp>,
    has_brought: bool,
    /// Nothing is started before this.
    pub(super) not_before: Option<Instant>,
}

/// What happens to a lost pull.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// It runs again, after the pause.
    Again,
    /// Others are tried first.
    GivenUp,
    /// The machine is at fault: the run ends.
    NoHope,
}

impl Losses {
    /// No losses in this session yet. `times` counts those of earlier sessions by round.
    pub(super) fn after(times: BTreeMap<u64, u32>) -> Self {
        Self {
            times,
            ..Self::default()
        }
    }

    /// Lost pulls run again `retries` times, after these pauses.
    pub(super) fn retry(&mut self, retries: u32, pauses: [Duration; 3]) {
        (self.retries, self.pauses) = (retries, pauses);
    }

    /// A pull was lost.
    pub(super) fn lost(&mut self, slot: Option<u32>, pull: PullRecord, why: &str) -> Fate {
        let pause = self.pauses[self.in_a_row.min(self.pauses.len() - 1)];
        self.in_a_row += 1;
        self.not_before = Some(Instant::now() + pause);
        let times = self.times.entry(pull.round.0).or_default();
        *times += 1;
        if *times <= self.retries {
            return Fate::Again;
        }
        self.given_up.push(GivenUp {
            slot,
            pull,
            times: *times,
            why: why.to_owned(),
        });
        if self.given_up.len() < MOST {
            Fate::GivenUp
        } else {
            Fate::NoHope
        }
    }

    /// A pull has an outcome, so the machine works. Returns the pulls that were given up: they are at fault themselves.
    pub(super) fn brought(&mut self) -> Vec<GivenUp> {
        self.has_brought = true;
        self.in_a_row = 0;
        self.not_before = None;
        std::mem::take(&mut self.given_up)
    }

    /// Nothing is left to try. Returns the pulls that were given up, if the machine worked at all in this session.
    pub(super) fn settle(&mut self) -> Result<Vec<GivenUp>, RunError> {
        if self.has_brought {
            Ok(std::mem::take(&mut self.given_up))
        } else {
            Err(self.no_hope())
        }
    }

    pub(super) fn has_given_up(&self) -> bool {
        !self.given_up.is_empty()
    }

    /// The machine is at fault.
    pub(super) fn no_hope(&self) -> RunError {
        let last = self.given_up.last();
        RunError::Lost {
            rounds: self.given_up.len(),
            why: last.map(|last| last.why.clone()).unwrap_or_default(),
        }
    }

    /// Whether it is pausing now.
    pub(super) fn is_pausing(&self) -> bool {
        self.not_before.is_some_and(|until| Instant::now() < until)
    }
}
