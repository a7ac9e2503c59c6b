//! Failures of a run, grouped by reason.

use std::collections::BTreeMap;

use crate::journal::PullRecord;
use crate::round::ArmId;

/// More reasons than this are grouped together, because reasons that contain a time or an address are all different.
const REASONS: usize = 100;
/// How many different ends of stderr are kept per reason.
const TAILS: usize = 3;
/// How many characters are kept of each, from the end.
const TAIL: usize = 2000;

/// Failures with one reason.
#[derive(Debug, Clone)]
pub struct Failures {
    /// The reason, as the journal has it.
    pub reason: String,
    /// How many.
    pub count: u64,
    /// The first and the last round.
    pub rounds: (u64, u64),
    /// Some ends of stderr, each once: round, arm, text.
    pub tails: Vec<(u64, ArmId, String)>,
}

/// Failures by reason, in the order in which the reasons came up.
#[derive(Debug, Default)]
pub(super) struct Reasons {
    failures: Vec<Failures>,
    places: BTreeMap<String, u32>,
}

impl Reasons {
    pub(super) fn failures(&self) -> &[Failures] {
        &self.failures
    }

    /// Counts a failure and returns the index of its group.
    pub(super) fn note(&mut self, reason: &str, pull: &PullRecord, stderr: Option<&str>) -> u32 {
        let known = self.places.get(reason).copied();
        let place = known.unwrap_or_else(|| self.open(reason, pull.round.0));
        let group = &mut self.failures[place as usize];
        group.count += 1;
        group.rounds.1 = pull.round.0;
        let text = last_characters(stderr.unwrap_or_default().trim_end(), TAIL);
        let is_new = !text.is_empty() && group.tails.iter().all(|(.., other)| other != text);
        if is_new && group.tails.len() < TAILS {
            group.tails.push((pull.round.0, pull.arm, text.to_owned()));
        }
        place
    }

    /// A group for a new reason. The last group takes all further ones.
    fn open(&mut self, reason: &str, round: u64) -> u32 {
        let place = self.failures.len().min(REASONS);
        if place == self.failures.len() {
            let is_last = place == REASONS;
            self.failures.push(Failures {
                reason: if is_last { "other reasons" } else { reason }.to_owned(),
                count: 0,
                rounds: (round, round),
                tails: vec![],
            });
        }
        if place < REASONS {
            self.places.insert(reason.to_owned(), place as u32);
        }
        place as u32
    }
}

fn last_characters(text: &str, count: usize) -> &str {
    let start = text
        .char_indices()
        .rev()
        .nth(count.saturating_sub(1))
        .map_or(0, |(place, _)| place);
    &text[start..]
}
