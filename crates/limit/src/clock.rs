//! Moments on the monotonic clock.
//!
//! `std::time::Instant` cannot be made from the time a child wrote on the shared page, hence this one.

use std::time::Duration;

use nix::sys::signal::{SigEvent, SigevNotify, Signal};
use nix::sys::time::TimeSpec;
use nix::sys::timer::{Expiration, Timer, TimerSetTimeFlags};
use nix::time::ClockId;

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

/// Makes the kernel continue this process soon after a given moment, should another process have stopped it by then.
///
/// A stopped process cannot continue itself, and one of the same user can stop all that could do it.
#[derive(Debug)]
pub(super) struct Alarm {
    timer: Option<Timer>,
    /// The moment it is set to.
    moment: Option<Instant>,
}

/// How long after the moment in question: enough for a process that is not stopped to have set the next one.
const ALARM_DELAY: Duration = Duration::from_millis(20);
/// An alarm may ring this much too early, or the kernel would have to be asked twice for most runs.
const ALARM_SLACK: Duration = Duration::from_millis(5);

impl Alarm {
    /// One that is not set. Does nothing if the kernel grants no timer.
    pub(super) fn new() -> Self {
        // In processes that supervise it interrupts a wait, whose time would otherwise begin again where they were stopped.
        let event = SigEvent::new(SigevNotify::SigevSignal {
            signal: Signal::SIGCONT,
            si_value: 0,
        });
        Self {
            timer: Timer::new(ClockId::CLOCK_MONOTONIC, event).ok(),
            moment: None,
        }
    }

    /// Sets it, in place of the moment it was set to before.
    pub(super) fn set(&mut self, moment: Instant) {
        if (self.moment).is_some_and(|set| set <= moment && moment.since(set) <= ALARM_SLACK) {
            return;
        }
        self.moment = Some(moment);
        let at = moment.after(ALARM_DELAY).0;
        let at = TimeSpec::new(
            at.as_secs().min(1 << 40).cast_signed(),
            i64::from(at.subsec_nanos()),
        );
        if let Some(timer) = &mut self.timer {
            let _ = timer.set(
                Expiration::OneShot(at),
                TimerSetTimeFlags::TFD_TIMER_ABSTIME,
            );
        }
    }
}
