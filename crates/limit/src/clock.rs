//! Moments on the monotonic clock.
//!
//! `std::time::Instant` cannot be made from the time a child wrote on the shared page, hence this one.

use std::time::Duration;

use super::sys;

/// A moment, as the time since an arbitrary origin that is the same for all processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Instant(Duration);

impl Instant {
    pub(super) fn now() -> Self {
        Self(sys::monotonic())
    }

    pub(super) fn at(since_origin: Duration) -> Self {
        Self(since_origin)
    }

    /// Time from `earlier` to this moment; zero if it is not earlier.
    pub(super) fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }

    /// This moment and a while later.
    pub(super) fn after(self, delay: Duration) -> Self {
        Self(self.0.saturating_add(delay))
    }
}
