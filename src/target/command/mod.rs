//! A program as target: one runner per slot, the reward from the exit code or the output.
//!
//! ```
//! use captime::round::{ArmId, Limit, Pull};
//! use captime::scenario::{Guards, Resource, Target, parse};
//! use captime::target::Start;
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
//! let launch = commands.fill(&Start::alone(pull, 1), &commands.scratch);
//! assert_eq!(launch.arguments, ["solve", "-d=0.8"]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod commands;
mod judge;
mod reward;
mod scratch;

pub use commands::Commands;
pub use reward::{Reading, Source};

use std::sync::Arc;

use captime_limit::{Level, LimitError, MemoryControl, Setup, Supervisor};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::{Cancel, Ended, Ending, Ends, Enforcement, Inexact, Runner, Start, Target};

/// Runs commands in slots.
#[derive(Debug)]
pub struct CommandTarget {
    slots: Vec<Slot>,
    enforcement: Option<Enforcement>,
}

#[derive(Debug)]
struct Slot {
    starts: UnboundedSender<Start>,
    cancel: Arc<Cancel>,
}

impl CommandTarget {
    /// A slot on each runner; `cpus` are those of each slot, if they have their own. Call it inside a tokio runtime.
    pub fn on(
        runners: Vec<Box<dyn Runner>>,
        commands: &Arc<Commands>,
        cpus: Option<Vec<Vec<usize>>>,
        ends: &Ends,
    ) -> Self {
        // Slots may differ. Then the session promises what the weakest of them keeps.
        let all = runners.iter().map(|runner| runner.enforcement());
        let enforcement = all.reduce(Enforcement::weaker);
        let promised = enforcement.map_or(Inexact::default(), |enforcement| Inexact {
            cpu: enforcement.level != Level::Cgroup2,
            memory: enforcement.memory == MemoryControl::Sampled,
        });
        let slots = runners.into_iter().enumerate().map(|(number, runner)| {
            let (starts, inbox) = unbounded_channel();
            let cancel = Arc::new(Cancel::default());
            let worker = Worker {
                commands: Arc::clone(commands),
                runner,
                cpus: cpus.as_ref().and_then(|cpus| cpus.get(number).cloned()),
                promised,
                cancel: Arc::clone(&cancel),
                ends: ends.clone(),
            };
            tokio::spawn(worker.work(inbox));
            Slot { starts, cancel }
        });
        Self {
            slots: slots.collect(),
            enforcement,
        }
    }

    /// How exactly limits are kept in every slot.
    pub fn enforcement(&self) -> Option<Enforcement> {
        self.enforcement
    }
}

/// Runners on this machine, a supervisor process each.
pub async fn local_runners(
    setup: &Setup,
    slots: usize,
) -> Result<Vec<Box<dyn Runner>>, LimitError> {
    let mut runners: Vec<Box<dyn Runner>> = vec![];
    for _ in 0..slots {
        runners.push(Box::new(Supervisor::start(setup).await?));
    }
    Ok(runners)
}

impl Target for CommandTarget {
    fn start(&mut self, start: Start) {
        let slot = &self.slots[start.slot];
        slot.cancel.reset();
        // Its worker ends only when this sender is gone.
        let _ = slot.starts.send(start);
    }

    fn stop(&mut self, slot: usize) {
        self.slots[slot].cancel.raise();
    }
}

/// One slot at work.
struct Worker {
    commands: Arc<Commands>,
    runner: Box<dyn Runner>,
    cpus: Option<Vec<usize>>,
    promised: Inexact,
    cancel: Arc<Cancel>,
    ends: Ends,
}

impl Worker {
    async fn work(mut self, mut inbox: UnboundedReceiver<Start>) {
        while let Some(start) = inbox.recv().await {
            let cpus = self.cpus.clone();
            let run = self
                .commands
                .run(self.runner.as_mut(), &start, cpus, &self.cancel);
            let mut ending = run.await;
            if let Ending::Brought(outcome) | Ending::NotStarted(outcome) = &mut ending {
                let inexact = &mut outcome.measured.inexact;
                *inexact = inexact.beyond(self.promised);
            }
            let ended = Ended {
                slot: start.slot,
                round: start.round,
                ending,
            };
            if self.ends.send(ended).is_err() {
                break;
            }
        }
        self.runner.close().await;
    }
}
