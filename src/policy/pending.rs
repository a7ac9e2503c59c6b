//! Pulls under way.

use crate::round::{Pull, Round};

/// The pulls that were launched and not yet observed. There are about as many as slots, so a list beats a map.
#[derive(Debug, Clone, Default)]
pub(super) struct Pending(Vec<(Round, Pull)>);

impl Pending {
    /// Notes a pull under way; false if the round was under way already, as after a lost run that is tried again.
    pub fn insert(&mut self, round: Round, pull: Pull) -> bool {
        let is_new = self.0.iter().all(|&(other, _)| other != round);
        if is_new {
            self.0.push((round, pull));
        }
        is_new
    }

    /// Gives back the pull of a round that is over, if it was under way.
    pub fn remove(&mut self, round: Round) -> Option<Pull> {
        let place = self.0.iter().position(|&(other, _)| other == round)?;
        Some(self.0.remove(place).1)
    }

    pub fn contains(&self, round: Round) -> bool {
        self.0.iter().any(|&(other, _)| other == round)
    }

    /// All of them, in the order they were launched.
    pub fn pulls(&self) -> impl Iterator<Item = Pull> {
        self.0.iter().map(|&(_, pull)| pull)
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }
}
