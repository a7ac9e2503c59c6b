//! What a pull runs. One pull in, one outcome out.
//!
//! `command` runs a program under limits, `forest` fits the built-in forest; both take real time. `synthetic` and `recorded`
//! live in virtual time: a pull costs no time of ours, and its expected gain is known exactly, which is what a study needs to
//! speak of regret. The first draws from the paper's distributions, the second replays runs that somebody measured once:
//!
//! ```
//! use captime::round::{ArmId, Limit};
//! use captime::target::VirtualTarget;
//! use captime::target::synthetic::{Synthetic, SyntheticProblem};
//!
//! let target = Synthetic::new(SyntheticProblem::parse("indep")?);
//! let gain = target.gain(ArmId::from_index(0), Limit::new(0.5)?, &Synthetic::price());
//! assert!((gain - 0.441776).abs() < 1e-6);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod command;
mod error;
pub mod forest;
mod outcome;
pub mod paste;
pub mod recorded;
mod running;
pub mod synthetic;

pub use error::TargetError;
pub use outcome::{Failing, Guard, Inexact, Measured, Outcome};
pub use running::{Ended, Ending, Ends, InVirtualTime, Start, Target};

use crate::round::{ArmId, Limit, Observation, Price, Pull, Round};

/// A target whose pulls take no time, and whose gains are known.
pub trait VirtualTarget: Send + Sync {
    /// How many arms it has.
    fn arms(&self) -> usize;

    /// How many instances it draws from; 0 if it knows no instances.
    fn instances(&self) -> usize {
        0
    }

    /// Their names; empty where they have none.
    fn instance_names(&self) -> &[String] {
        &[]
    }

    /// The pull with its instance: the one it names, or where there are instances and it names none, one drawn by
    /// (seed, round).
    fn with_instance(&self, _seed: u64, _round: Round, pull: Pull) -> Pull {
        pull
    }

    /// Runs a pull: a function of its arguments only, so that a journal can be replayed.
    ///
    /// A pull without instance gets that of [`with_instance`](Self::with_instance); the observation's pull says which.
    fn run(&self, seed: u64, round: Round, pull: Pull) -> Ran;

    /// The expected gain of a pair, the paper's nu(i, tau), exactly.
    fn gain(&self, arm: ArmId, limit: Limit, price: &Price) -> f64;

    /// The probability that a pull of this pair brings no reward, the paper's 1 - P_i^(c)(tau).
    fn censored(&self, arm: ArmId, limit: Limit) -> f64;
}

/// A pull that was run in virtual time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ran {
    /// What was seen of it.
    pub observation: Observation,
    /// What it used until it ended or was stopped.
    pub consumption: f64,
}
