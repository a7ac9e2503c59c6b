//! What a run pulls next.

use crate::journal::{By, EndReason, Learned, PullRecord};
use crate::round::{ArmId, Pull, Round};

/// Decides what a run pulls next.
///
/// The policy is a schedule. So are calibration, the probing of other arms when the first pulls all failed, and any
/// fixed [`Sequence`] of pulls. Only `launched` and `learned` change what a schedule knows, so replaying a journal
/// restores it.
pub trait Schedule: Send {
    /// What to do with a free slot in this round. Asking does not change the schedule's state.
    fn next(&mut self, round: Round) -> Choice;

    /// A pull was started, whichever schedule chose it.
    fn launched(&mut self, _pull: &PullRecord) {}

    /// A pull has an outcome, whichever schedule chose it.
    fn learned(&mut self, _learned: &Learned) {}
}

/// What a schedule wants done with a free slot.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Choice {
    /// Start this.
    Pull(Planned),
    /// Nothing until the next outcome.
    Wait,
    /// Nothing more.
    Over(EndReason),
    /// Another schedule decides.
    Pass,
}

/// A pull that a schedule wants.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Planned {
    /// The arm, the limit, and the instance unless it is to be drawn.
    pub pull: Pull,
    /// The seed for the target, unless it is to be drawn.
    pub seed: Option<u64>,
    /// What chose it, if not the policy.
    pub by: Option<By>,
}

impl Planned {
    /// A pull that the policy did not choose, with an instance and a seed that are drawn.
    pub(super) fn by(by: By, pull: Pull) -> Self {
        Self {
            pull,
            seed: None,
            by: Some(by),
        }
    }
}

impl Choice {
    /// The first pull goes to the default, with which every answer is compared, whichever arm the policy prefers.
    pub(super) fn with_default(self, is_pulled: bool) -> Self {
        let arm = ArmId::from_index(0);
        match self {
            Self::Pull(Planned { pull, .. }) if !is_pulled && pull.arm != arm => {
                Self::Pull(Planned::by(By::Default, Pull { arm, ..pull }))
            }
            other => other,
        }
    }
}

/// A fixed sequence of pulls: what `record` measures and `check --try` shows.
///
/// The pull of round n is a function of n, so a sequence resumes anywhere.
pub struct Sequence<F> {
    rounds: u64,
    pull: F,
}

impl<F: Fn(Round) -> Planned + Send> Sequence<F> {
    /// A sequence of `rounds` pulls. `pull` returns the pull of each round, counted from 1.
    pub fn new(rounds: u64, pull: F) -> Self {
        Self { rounds, pull }
    }
}

impl<F: Fn(Round) -> Planned + Send> Schedule for Sequence<F> {
    fn next(&mut self, round: Round) -> Choice {
        if round.0 > self.rounds {
            Choice::Over(EndReason::Rounds)
        } else {
            Choice::Pull((self.pull)(round))
        }
    }
}

/// No pulls: for a run that only calibrates.
pub struct Nothing;

impl Schedule for Nothing {
    fn next(&mut self, _: Round) -> Choice {
        Choice::Over(EndReason::Rounds)
    }
}
