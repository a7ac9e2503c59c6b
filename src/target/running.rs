//! How the driver runs pulls on any target: it starts one in a slot, and its end is reported once.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};

use super::{Measured, Outcome, VirtualTarget};
use crate::round::{Pull, Round};
use crate::space::{Configuration, Space};

/// How long slots may take to close.
const CLOSING: Duration = Duration::from_secs(5);

/// A pull to run.
#[derive(Debug, Clone, PartialEq)]
pub struct Start {
    /// The slot, counted from 0. One pull at a time runs in each.
    pub slot: usize,
    /// Its round.
    pub round: Round,
    /// The arm, the limit, and the instance if there is one.
    pub pull: Pull,
    /// The seed for the target.
    pub seed: u64,
    /// The arm's configuration, if it is not in the target's own list of arms.
    pub configuration: Option<Arc<Configuration>>,
}

impl Start {
    /// A pull that runs alone.
    pub fn alone(pull: Pull, seed: u64) -> Self {
        Self {
            slot: 0,
            round: Round(1),
            pull,
            seed,
            configuration: None,
        }
    }

    /// The arm's configuration: its own, or the one in this space.
    pub fn configuration_in(&self, space: &Space) -> Arc<Configuration> {
        let own = self.configuration.clone();
        own.unwrap_or_else(|| Arc::new(space.configuration(self.pull.arm)))
    }
}

/// How a pull ended.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Ending {
    /// It has an outcome.
    Brought(Box<Outcome>),
    /// captime stopped it, so it has no outcome.
    Stopped,
    /// Its runner went away, so it has no outcome either.
    Lost {
        /// What happened.
        why: String,
    },
    /// Its node went away or cannot run anything. It has no outcome, and runs again elsewhere.
    NodeLost {
        /// Which.
        node: Arc<str>,
        /// What happened.
        why: String,
    },
    /// It could not be started, for reasons that do not depend on arm and instance: the program is missing, is being
    /// written, or went away before its interpreter read it. What that means depends on earlier pulls: see
    /// [`Ending::settled`].
    NotStarted(Box<Outcome>),
}

impl Ending {
    /// Decides about a pull that could not be started. If other pulls of this run could (`has_run`), the program was
    /// being rebuilt or its disk was unmounted, and the pull is lost. If none ever could, the pull failed, and the
    /// scenario may be wrong.
    #[must_use]
    pub fn settled(self, has_run: bool) -> Self {
        match self {
            Self::NotStarted(outcome) if has_run => Self::Lost {
                why: outcome
                    .failure
                    .map_or_else(String::new, |failing| failing.reason),
            },
            Self::NotStarted(outcome) => Self::Brought(outcome),
            ended => ended,
        }
    }
}

/// The end of a pull.
#[derive(Debug, Clone, PartialEq)]
pub struct Ended {
    /// Where it ran.
    pub slot: usize,
    /// Its round.
    pub round: Round,
    /// How.
    pub ending: Ending,
}

/// Where ends are reported, exactly one for every start.
pub type Ends = UnboundedSender<Ended>;

/// Runs pulls. Neither method blocks.
pub trait Target {
    /// Starts a pull in a free slot.
    fn start(&mut self, start: Start);

    /// Stops the pull in this slot, if one is running. Its end is reported as usual.
    fn stop(&mut self, slot: usize);
}

/// A target that is ready to run a number of pulls at a time.
pub struct SlotPool {
    /// What runs them.
    pub target: Box<dyn Target>,
    /// Where their ends arrive.
    pub ends: UnboundedReceiver<Ended>,
    /// How many may run at a time.
    pub slots: usize,
    /// Which limits are enforced, for the journal.
    pub enforcement: serde_json::Value,
    /// The CPUs that slots are pinned to, if they are.
    #[doc(hidden)]
    pub cpus: super::CpuClaim,
    /// Changes of the slots, if they may come and go.
    #[doc(hidden)]
    pub changes: Option<UnboundedReceiver<PoolChange>>,
}

/// A change in a pool of slots.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PoolChange {
    /// This many pulls may run at a time from now on.
    Slots(usize),
    /// A node came or went.
    Node {
        /// Its name.
        node: String,
        /// How many pulls may run there at a time from now on.
        slots: usize,
        /// What the user should know about it.
        text: String,
    },
    /// No more pulls can be started in this session. Those that run may end.
    Over(String),
}

impl SlotPool {
    /// Slots on any target. `make` gets the sender for the ends of its pulls.
    pub fn new(slots: usize, make: impl FnOnce(Ends) -> Box<dyn Target>) -> Self {
        let (sender, ends) = tokio::sync::mpsc::unbounded_channel();
        Self {
            target: make(sender),
            ends,
            slots,
            enforcement: serde_json::Value::Null,
            cpus: super::CpuClaim::default(),
            changes: None,
        }
    }

    /// Ends everything, and waits until nothing of it is left: an engine may kill what outlives this process, and then
    /// control groups would stay behind.
    pub async fn close(self) {
        let Self {
            target, mut ends, ..
        } = self;
        drop(target);
        // Every slot keeps its end of the channel until it is closed.
        let closed = async { while ends.recv().await.is_some() {} };
        let _ = tokio::time::timeout(CLOSING, closed).await;
    }
}

/// A target in virtual time: a pull ends as soon as it starts.
pub struct InVirtualTime {
    target: Box<dyn VirtualTarget>,
    seed: u64,
    ends: Ends,
}

impl InVirtualTime {
    /// Runs pulls on `target`, with the run's own seed.
    pub fn new(target: Box<dyn VirtualTarget>, seed: u64, ends: Ends) -> Self {
        Self { target, seed, ends }
    }
}

impl Target for InVirtualTime {
    fn start(&mut self, start: Start) {
        let ran = match &start.configuration {
            None => self.target.run(self.seed, start.round, start.pull),
            Some(configuration) => {
                self.target
                    .run_configuration(self.seed, start.round, start.pull, configuration)
            }
        };
        let outcome = Outcome::of(ran.observation, Some(ran.consumption), Measured::default());
        // The receiver is gone only when the run is over.
        let _ = self.ends.send(Ended {
            slot: start.slot,
            round: start.round,
            ending: Ending::Brought(Box::new(outcome)),
        });
    }

    fn stop(&mut self, _: usize) {}
}
