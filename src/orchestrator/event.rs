//! What can happen in a session, and how watchers learn of it.

use std::time::{Duration, Instant};

use super::{Budget, State};
use crate::journal::{Calibrated, Durable, EndReason, Learned, PullRecord, Step};
use crate::target::{Ended, Ending, PoolChange};

/// What the driver waits for.
#[derive(Debug)]
pub(super) enum Event {
    /// A pull ended.
    Ended(Ended),
    /// The journal of this run is on disk up to a line, or cannot be synced.
    Durable(usize, Durable),
    /// The user wants captime to stop.
    Signal,
    /// The user suspends captime with Ctrl-Z.
    Suspend,
    /// The pause after a lost pull is over.
    PauseOver,
    /// The wall budget is used up.
    WallOver,
    /// The pool of slots changed.
    Changed(PoolChange),
    /// Time to update the progress display.
    Tick,
}

/// A pull in its slot.
#[derive(Debug, Clone, Copy)]
pub struct Running {
    /// The run it belongs to, of those that share the slots.
    pub run: usize,
    /// The pull.
    pub pull: PullRecord,
    /// When it started.
    pub since: Instant,
}

/// The current state of a session.
#[derive(Debug, Clone, Copy)]
pub struct Now<'a> {
    /// What the run knows.
    pub state: &'a State,
    /// What runs in each slot.
    pub slots: &'a [Option<Running>],
    /// Seconds over all sessions.
    pub seconds: f64,
    /// The budget, which says when it ends.
    pub budget: Budget,
}

/// Is notified of everything that happens in a run, to show progress or JSON events. It cannot change the run.
pub trait Watch {
    /// How often to call `tick`.
    fn period(&self) -> Option<Duration> {
        None
    }

    /// Something happened in an earlier session: the journal is being read.
    fn replayed(&mut self, _step: &Step) {}

    /// A pull was launched in this slot.
    fn launched(&mut self, _slot: usize, _pull: &PullRecord, _now: &Now<'_>) {}

    /// A pull ended. Its outcome, if it has one, is not in the journal yet.
    fn ended(&mut self, _pull: &PullRecord, _ending: &Ending, _now: &Now<'_>) {}

    /// The policy learned from a pull.
    fn learned(&mut self, _learned: &Learned, _now: &Now<'_>) {}

    /// Calibration ended.
    fn calibrated(&mut self, _found: &Calibrated, _now: &Now<'_>) {}

    /// A pull was lost, and runs again.
    fn lost(&mut self, _pull: &PullRecord, _why: &str) {}

    /// This many pulls may run on a node at a time from now on.
    fn node(&mut self, _node: &str, _slots: usize) {}

    /// Something happened to the slots that the user should know about.
    fn noticed(&mut self, _text: &str) {}

    /// The session is about to end: running pulls are being stopped.
    fn stopping(&mut self, _reason: EndReason, _now: &Now<'_>) {}

    /// Time has passed.
    fn tick(&mut self, _now: &Now<'_>) {}

    /// Whether the output can no longer be written, so that the run should stop.
    fn is_gone(&self) -> bool {
        false
    }
}

/// Ignores everything.
impl Watch for () {}
