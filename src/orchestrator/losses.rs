//! Pulls whose launcher went away: they say nothing, so they run again; but neither at once nor for ever.
//!
//! A machine that is short of processes, descriptors or memory loses one pull after the other until that is over: so there is
//! a pause after every loss, longer if nothing came in between. A pull that takes its launcher with it every time is its
//! own fault: given up after its retries, it counts as failed once another pull shows that the machine works. Where none does,
//! nothing is learned, and the run ends where it can go on.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::journal::PullRecord;

/// How long nothing is started after the first, second and any later loss in a row.
pub const PAUSES: [Duration; 3] = [
    Duration::from_millis(100),
    Duration::from_secs(1),
    Duration::from_secs(10),
];

/// So many rounds given up with no outcome in between are not their own fault.
const MOST: usize = 3;

/// A pull that was given up.
#[derive(Debug, Clone)]
pub(super) struct GivenUp {
    pub(super) slot: usize,
    pub(super) pull: PullRecord,
    pub(super) times: u32,
    pub(super) why: String,
}

/// What was lost, and since when nothing else came.
#[derive(Debug)]
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

/// What is to become of a lost pull.
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
    pub(super) fn new(retries: u32, pauses: [Duration; 3], times: BTreeMap<u64, u32>) -> Self {
        Self {
            retries,
            pauses,
            times,
            in_a_row: 0,
            given_up: vec![],
            has_brought: false,
            not_before: None,
        }
    }

    /// A pull was lost.
    pub(super) fn lost(&mut self, slot: usize, pull: PullRecord, why: &str) -> Fate {
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

    /// A pull brought something: the machine works, and those that were given up are at fault themselves.
    pub(super) fn brought(&mut self) -> Vec<GivenUp> {
        self.has_brought = true;
        self.in_a_row = 0;
        self.not_before = None;
        std::mem::take(&mut self.given_up)
    }

    /// Nothing is left to be tried: those that were given up, if the machine has been seen to work in this session.
    pub(super) fn settle(&mut self) -> Option<Vec<GivenUp>> {
        self.has_brought.then(|| std::mem::take(&mut self.given_up))
    }

    pub(super) fn has_given_up(&self) -> bool {
        !self.given_up.is_empty()
    }

    pub(super) fn rounds(&self) -> usize {
        self.given_up.len()
    }

    /// What became of the last one.
    pub(super) fn why(&self) -> String {
        let last = self.given_up.last();
        last.map(|last| last.why.clone()).unwrap_or_default()
    }

    /// Whether a pause is on.
    pub(super) fn is_pausing(&self) -> bool {
        self.not_before.is_some_and(|until| Instant::now() < until)
    }
}
