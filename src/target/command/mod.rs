//! A program as target: one supervisor per slot, the reward from its exit code or its output.
//!
//! ```
//! use captime::round::{ArmId, Limit, Pull};
//! use captime::scenario::{Guards, Resource, Target, parse};
//! use captime::target::command::Commands;
//!
//! let text = "target: {command: [solve, '-d={decay}'], reward: {exit: [10]}}\n\
//!             arms: {grid: {decay: [0.8, 0.9]}}\nlimits: {max: 10s, grid: 5}\n";
//! let scenario = parse(text, "mine.yaml".as_ref(), ".".as_ref())?.scenario;
//! let Target::Command(command) = scenario.target else { unreachable!("that is what it says") };
//! let commands = Commands {
//!     command: *command,
//!     space: scenario.space,
//!     of: Resource::Wall,
//!     guards: Guards::default(),
//!     grace: 0.0,
//!     scratch: std::env::temp_dir(),
//! };
//! let pull = Pull::new(ArmId::from_index(0), Limit::new(4.0)?);
//! let launch = commands.launch(pull, 1, 1, &commands.scratch);
//! assert_eq!(launch.arguments, ["solve", "-d=0.8"]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod commands;
mod judge;
mod reward;
mod scratch;

pub use commands::{CommandRun, Commands};
pub use reward::{Reading, Source};

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::{Ended, Ending, Ends, Inexact, Start, Target};
use crate::limit::{Canceller, Level, LimitError, MemoryControl, Setup, Supervisor};

/// How often a run that was told to end, but may not have begun, is told again.
const INSIST: Duration = Duration::from_millis(5);

/// Runs commands in slots.
#[derive(Debug)]
pub struct CommandTarget {
    slots: Vec<Slot>,
}

#[derive(Debug)]
struct Slot {
    starts: UnboundedSender<Start>,
    is_stopped: Arc<AtomicBool>,
    canceller: Canceller,
}

impl CommandTarget {
    /// Starts a supervisor per slot; `cpus` are those of each slot, if they have their own.
    pub async fn start(
        commands: Arc<Commands>,
        setup: &Setup,
        slots: usize,
        cpus: Option<Vec<Vec<usize>>>,
        ends: Ends,
    ) -> Result<(Self, serde_json::Value), LimitError> {
        let mut supervisors = vec![];
        for _ in 0..slots {
            supervisors.push(Supervisor::start(setup).await?);
        }
        let promised = Promise::of(&supervisors);
        let mut all = vec![];
        for (number, supervisor) in supervisors.into_iter().enumerate() {
            let (starts, inbox) = unbounded_channel();
            let is_stopped = Arc::new(AtomicBool::new(false));
            let canceller = supervisor.canceller();
            let worker = Worker {
                commands: Arc::clone(&commands),
                supervisor,
                cpus: cpus.as_ref().and_then(|cpus| cpus.get(number).cloned()),
                promised: promised.inexact(),
                is_stopped: Arc::clone(&is_stopped),
                ends: ends.clone(),
            };
            tokio::spawn(worker.work(inbox));
            all.push(Slot {
                starts,
                is_stopped,
                canceller,
            });
        }
        Ok((Self { slots: all }, promised.enforcement()))
    }
}

/// What holds in every slot of a session: slots may differ, and then the weakest is what can be promised.
#[derive(Debug, Clone, Copy)]
struct Promise {
    level: Level,
    memory: MemoryControl,
}

impl Promise {
    fn of(supervisors: &[Supervisor]) -> Self {
        let mut levels = supervisors.iter().map(Supervisor::level);
        let mut memories = supervisors.iter().map(Supervisor::memory_control);
        let first = memories.next().unwrap_or(MemoryControl::Sampled);
        Self {
            level: if levels.all(|level| level == Level::Cgroup2) {
                Level::Cgroup2
            } else {
                Level::Subreaper
            },
            memory: memories.fold(first, |weakest, memory| match memory {
                MemoryControl::Sampled => memory,
                MemoryControl::Cgroup1 | MemoryControl::Cgroup2 => weakest,
            }),
        }
    }

    fn inexact(self) -> Inexact {
        Inexact {
            cpu: self.level != Level::Cgroup2,
            memory: self.memory == MemoryControl::Sampled,
        }
    }

    fn enforcement(self) -> serde_json::Value {
        serde_json::json!({"level": self.level, "memory": self.memory})
    }
}

impl Target for CommandTarget {
    fn start(&mut self, start: Start) {
        let slot = &self.slots[start.slot];
        slot.is_stopped.store(false, Ordering::SeqCst);
        // Its worker ends only when this sender is gone.
        let _ = slot.starts.send(start);
    }

    fn stop(&mut self, slot: usize) {
        self.slots[slot].is_stopped.store(true, Ordering::SeqCst);
        self.slots[slot].canceller.cancel();
    }
}

/// One slot at work.
struct Worker {
    commands: Arc<Commands>,
    supervisor: Supervisor,
    cpus: Option<Vec<usize>>,
    promised: Inexact,
    is_stopped: Arc<AtomicBool>,
    ends: Ends,
}

impl Worker {
    async fn work(mut self, mut inbox: UnboundedReceiver<Start>) {
        while let Some(start) = inbox.recv().await {
            let canceller = self.supervisor.canceller();
            let run = self
                .commands
                .run(&mut self.supervisor, &start, self.cpus.clone());
            tokio::pin!(run);
            let mut done = loop {
                tokio::select! {
                    biased;
                    done = &mut run => break done,
                    () = tokio::time::sleep(INSIST), if self.is_stopped.load(Ordering::SeqCst) => canceller.cancel(),
                    () = stopped(&self.is_stopped), if !self.is_stopped.load(Ordering::SeqCst) => {}
                }
            };
            if let Ending::Brought(outcome) | Ending::NotStarted(outcome) = &mut done.ending {
                let inexact = &mut outcome.measured.inexact;
                *inexact = inexact.beyond(self.promised);
            }
            let ended = Ended {
                slot: start.slot,
                round: start.round,
                ending: done.ending,
            };
            if self.ends.send(ended).is_err() {
                break;
            }
        }
        self.supervisor.close().await;
    }
}

/// Looks at the flag now and then: it is raised once a session, and cancelling by itself is at once.
async fn stopped(flag: &AtomicBool) {
    while !flag.load(Ordering::SeqCst) {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
