//! What can happen, and who wants to know.

use std::time::{Duration, Instant};

use super::{Budget, State};
use crate::journal::{Calibrated, Durable, EndReason, Learned, PullRecord};
use crate::target::Ended;

/// What the loop waits for.
#[derive(Debug)]
pub(super) enum Event {
    /// A pull ended.
    Ended(Ended),
    /// The journal is on disk up to a line, or cannot be brought there.
    Durable(Durable),
    /// Somebody wants us to stop.
    Signal,
    /// The pause after a loss is over.
    PauseOver,
    /// The wall budget is over.
    WallOver,
    /// Time to show how things stand.
    Tick,
}

/// A pull in its slot.
#[derive(Debug, Clone, Copy)]
pub struct Running {
    /// The pull.
    pub pull: PullRecord,
    /// Since when.
    pub since: Instant,
}

/// How things stand.
#[derive(Debug, Clone, Copy)]
pub struct Now<'a> {
    /// What the run knows.
    pub state: &'a State,
    /// What runs in each slot.
    pub slots: &'a [Option<Running>],
    /// Seconds over all sessions.
    pub seconds: f64,
    /// When it ends.
    pub budget: Budget,
}

/// Somebody who looks on: progress, JSON events. Looking on changes nothing.
pub trait Watch {
    /// How often `tick` is wanted.
    fn period(&self) -> Option<Duration> {
        None
    }

    /// A pull was launched in this slot.
    fn launched(&mut self, _slot: usize, _pull: &PullRecord, _now: &Now<'_>) {}

    /// The policy learned from a pull.
    fn learned(&mut self, _learned: &Learned, _now: &Now<'_>) {}

    /// Calibration ended.
    fn calibrated(&mut self, _found: &Calibrated, _now: &Now<'_>) {}

    /// A pull was lost, and runs again.
    fn lost(&mut self, _pull: &PullRecord, _why: &str) {}

    /// The session is about to end: what runs is being stopped.
    fn stopping(&mut self, _reason: EndReason, _now: &Now<'_>) {}

    /// Time has passed.
    fn tick(&mut self, _now: &Now<'_>) {}

    /// Whether whoever reads what we tell went away, and with that the point of going on.
    fn is_gone(&self) -> bool {
        false
    }
}

/// Nobody looks on.
impl Watch for () {}
