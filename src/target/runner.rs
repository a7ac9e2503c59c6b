//! Where commands run: on this machine, or on any other that can enforce the same limits.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use captime_limit::{
    Contain, Launch, Level, LimitError, Limits, MemoryControl, Report, Supervisor,
};
use tokio::sync::Notify;

/// How often a cancelled command that may not have begun yet is cancelled again.
const INSIST: Duration = Duration::from_millis(5);

/// The report of a command, available once it has ended.
pub type RunFuture<'a> = Pin<Box<dyn Future<Output = Result<Report, LimitError>> + Send + 'a>>;

/// Runs commands under limits, one at a time.
///
/// This is the seam to other machines: the [`Supervisor`] runs commands on this one. Every implementation keeps three
/// promises. No process of a command is alive once its report is there. A report holds what was measured where the
/// command ran. A cancelled command ends soon, with [`Cause::Cancelled`](captime_limit::Cause::Cancelled) unless it
/// ended by itself first.
pub trait Runner: Send {
    /// Runs one command until it ends, reaches a limit or is cancelled.
    ///
    /// If an error is the command's own fault (no such program, no such directory), its variant names the command. Any
    /// other error means that the command may not have run, and is no evidence about it.
    fn run<'a>(
        &'a mut self,
        launch: &'a Launch,
        limits: &'a Limits,
        cancel: &'a Cancel,
    ) -> RunFuture<'a>;

    /// How exactly it enforces limits.
    fn enforcement(&self) -> Enforcement;

    /// Shuts it down, and waits until it has cleaned up.
    fn close(self: Box<Self>) -> Pin<Box<dyn Future<Output = ()> + Send>>;
}

/// How exactly limits are enforced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Enforcement {
    /// How processes are kept together.
    pub level: Level,
    /// How memory is limited.
    pub memory: MemoryControl,
    /// What commands are kept from.
    pub contain: Contain,
}

impl Enforcement {
    /// The weaker of the two: what holds if either may run a command.
    #[must_use]
    pub fn weaker(self, other: Self) -> Self {
        Self {
            level: if other.level == Level::Cgroup2 {
                self.level
            } else {
                other.level
            },
            memory: if other.memory == MemoryControl::Sampled {
                other.memory
            } else {
                self.memory
            },
            contain: self.contain.min(other.contain),
        }
    }

    /// As a session of the journal has it. None for targets that run no commands.
    pub fn of_session(recorded: &serde_json::Value) -> Option<Self> {
        serde::Deserialize::deserialize(recorded).ok()
    }

    /// What this misses when it measures, a sentence each.
    pub fn not_counted(self) -> Vec<&'static str> {
        let mut sentences = vec![];
        if self.level == Level::Subreaper {
            sentences
                .push("The CPU time of processes that no other process waited for is not counted");
        }
        if self.memory == MemoryControl::Sampled {
            sentences.push(
                "Memory is sampled every 10 ms, and memory that no process maps is not counted",
            );
        }
        sentences
    }

    /// What a hostile command can do in spite of its limits. None if nothing is known that it can.
    pub fn escape(self) -> Option<&'static str> {
        match (self.contain, self.level) {
            (Contain::Pids | Contain::Full, _) => None,
            (Contain::Off, Level::Cgroup2) => Some(
                "a hostile command can stop or kill captime's own processes, run past its limit and leave processes behind",
            ),
            (Contain::Off, Level::Subreaper) => Some(
                "a hostile command can stop or kill captime's own processes, run past its limit and leave processes behind, and a \
                 fork bomb can end late",
            ),
        }
    }
}

/// Cancels the command of one slot.
#[derive(Debug, Default)]
pub struct Cancel {
    is_raised: AtomicBool,
    raised: Notify,
}

impl Cancel {
    /// Cancels the command under way.
    pub fn raise(&self) {
        self.is_raised.store(true, Ordering::SeqCst);
        self.raised.notify_waiters();
    }

    /// Prepares for the next command.
    pub fn reset(&self) {
        self.is_raised.store(false, Ordering::SeqCst);
    }

    /// Waits until the command is cancelled.
    pub async fn raised(&self) {
        loop {
            let raised = self.raised.notified();
            tokio::pin!(raised);
            // From here on, no call of `raise` is missed.
            raised.as_mut().enable();
            if self.is_raised.load(Ordering::SeqCst) {
                return;
            }
            raised.await;
        }
    }
}

impl Runner for Supervisor {
    fn run<'a>(
        &'a mut self,
        launch: &'a Launch,
        limits: &'a Limits,
        cancel: &'a Cancel,
    ) -> RunFuture<'a> {
        Box::pin(async move {
            let canceller = self.canceller();
            let run = Self::run(self, launch, limits);
            tokio::pin!(run);
            tokio::select! {
                biased;
                report = &mut run => return report,
                () = cancel.raised() => {}
            }
            // Only until it was received: another call would end the grace period.
            while !canceller.cancel() {
                tokio::select! {
                    biased;
                    report = &mut run => return report,
                    () = tokio::time::sleep(INSIST) => {}
                }
            }
            run.await
        })
    }

    fn enforcement(&self) -> Enforcement {
        Enforcement {
            level: self.level(),
            memory: self.memory_control(),
            contain: self.contain(),
        }
    }

    fn close(self: Box<Self>) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(Self::close(*self))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_that_differ_promise_the_weakest() {
        let strong = Enforcement {
            level: Level::Cgroup2,
            memory: MemoryControl::Cgroup2,
            contain: Contain::Pids,
        };
        let weak = Enforcement {
            level: Level::Subreaper,
            memory: MemoryControl::Sampled,
            contain: Contain::Off,
        };
        assert_eq!(strong.weaker(strong), strong);
        assert_eq!(strong.weaker(weak), weak);
        assert_eq!(weak.weaker(strong), weak);
    }

    #[tokio::test]
    async fn a_cancel_is_noticed_before_and_while_it_is_waited_for() {
        let cancel = std::sync::Arc::new(Cancel::default());
        cancel.raise();
        cancel.raised().await;
        cancel.reset();
        let raiser = std::sync::Arc::clone(&cancel);
        let raise = tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(5)).await;
            raiser.raise();
        });
        cancel.raised().await;
        raise.await.unwrap();
    }
}
