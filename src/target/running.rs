//! How the orchestrator runs pulls on any target: start one in a slot, and be told once how it ended.

use tokio::sync::mpsc::UnboundedSender;

use super::{Outcome, VirtualTarget};
use crate::round::{Pull, Round};

/// A pull to run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Start {
    /// Where; slots are counted from 0, and one pull at a time runs in each.
    pub slot: usize,
    /// Its round.
    pub round: Round,
    /// The arm, the limit, and the instance if there is one.
    pub pull: Pull,
    /// The seed for the target.
    pub seed: u64,
}

/// How a pull ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Ending {
    /// It brought something.
    Brought(Box<Outcome>),
    /// We stopped it: it says nothing.
    Stopped,
    /// What ran it went away: it says nothing either.
    Lost {
        /// What became of it.
        why: String,
    },
    /// It could not be started, whatever its arm and instance: the program is not there, or is being written, or went away
    /// before its interpreter read it. What that means depends on whether it has ever been; see [`Ending::settled`].
    NotStarted(Box<Outcome>),
}

impl Ending {
    /// With what is known of a pull that could not be started: if pulls of this run have been (`has_run`), somebody has
    /// rebuilt the program or unmounted its disk, which says nothing about the pull; if none ever was, it failed, and
    /// the scenario may be wrong.
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

/// Where ends are told; exactly one for every start.
pub type Ends = UnboundedSender<Ended>;

/// Something that pulls are run on. Neither method waits for anything.
pub trait Target {
    /// Starts a pull in a free slot.
    fn start(&mut self, start: Start);

    /// Stops the pull in this slot, if one is running; its end is told as ever.
    fn stop(&mut self, slot: usize);
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
        let ran = self.target.run(self.seed, start.round, start.pull);
        let outcome = Outcome {
            observation: ran.observation,
            failure: None,
            consumption: Some(ran.consumption),
            score: None,
            is_clamped: false,
            measured: super::Measured::default(),
        };
        // Nobody listens any more only when the run is over.
        let _ = self.ends.send(Ended {
            slot: start.slot,
            round: start.round,
            ending: Ending::Brought(Box::new(outcome)),
        });
    }

    fn stop(&mut self, _: usize) {}
}
