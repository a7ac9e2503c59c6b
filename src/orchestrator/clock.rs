//! How long a run has been going for, over all its sessions.

use std::time::{Duration, Instant};

/// Monotonic time: steps of the system clock, and time asleep, do not count.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    before: f64,
    started: Instant,
}

impl Clock {
    /// Goes on from `before` seconds of earlier sessions.
    pub fn from(before: f64) -> Self {
        Self {
            before,
            started: Instant::now(),
        }
    }

    /// Seconds so far, in whole microseconds: what is written reads well, and as it is.
    pub fn seconds(&self) -> f64 {
        let micros = (self.before * 1e6).round() + self.started.elapsed().as_micros() as f64;
        micros / 1e6
    }

    /// When that many seconds will be over; none if never.
    pub fn at(&self, seconds: f64) -> Option<Instant> {
        let left = Duration::try_from_secs_f64((seconds - self.before).max(0.0)).ok()?;
        self.started.checked_add(left)
    }
}
