//! How long a run has taken, over all its sessions.

use std::time::{Duration, Instant};

/// Monotonic time that can be paused. Changes of the system clock and time asleep do not count.
#[derive(Debug, Clone, Copy)]
pub(super) struct Clock {
    before: f64,
    started: Option<Instant>,
}

impl Clock {
    /// Paused, after `before` seconds of earlier sessions.
    pub(super) fn paused(before: f64) -> Self {
        Self {
            before,
            started: None,
        }
    }

    /// Continues after `before` seconds of earlier sessions.
    pub(super) fn from(before: f64) -> Self {
        Self {
            before,
            started: Some(Instant::now()),
        }
    }

    /// Seconds so far, in whole microseconds, so that they are short in the journal and read back exactly.
    pub(super) fn seconds(&self) -> f64 {
        let since = self.started.map_or(Duration::ZERO, |at| at.elapsed());
        ((self.before * 1e6).round() + since.as_micros() as f64) / 1e6
    }

    /// Pauses until `resume`.
    pub(super) fn pause(&mut self) {
        self.before = self.seconds();
        self.started = None;
    }

    pub(super) fn is_running(&self) -> bool {
        self.started.is_some()
    }

    pub(super) fn resume(&mut self) {
        self.started.get_or_insert_with(Instant::now);
    }

    /// When this many seconds will have passed, if it runs. `None` if never.
    pub(super) fn at(&self, seconds: f64) -> Option<Instant> {
        let left = Duration::try_from_secs_f64((seconds - self.before).max(0.0)).ok()?;
        self.started?.checked_add(left)
    }
}
