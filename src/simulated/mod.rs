//! Targets in virtual time: a pull takes no real time, and its expected gain is known exactly.
//!
//! `synthetic` draws from the paper's distributions, `recorded` replays recorded runs. This is a leaf of the module
//! tree: scenarios check such targets while they are read, and [`target`](crate::target) runs them. Both are public as
//! `captime::target::synthetic` and `captime::target::recorded`.

mod error;
pub mod recorded;
pub mod synthetic;

pub use error::TargetError;

use crate::round::{ArmId, Limit, Observation, Price, Pull, Round};
use crate::space::Configuration;

/// A target whose pulls take no time, and whose gains are known.
pub trait VirtualTarget: Send + Sync {
    /// How many arms it has.
    fn arms(&self) -> usize;

    /// How many instances it draws from. 0 if it has none.
    fn instances(&self) -> usize {
        0
    }

    /// Their names. Empty if they have none.
    fn instance_names(&self) -> &[String] {
        &[]
    }

    /// The pull with its instance: the one it names, or, if there are instances and it names none, one drawn by (seed,
    /// round).
    fn with_instance(&self, _seed: u64, _round: Round, pull: Pull) -> Pull {
        pull
    }

    /// Runs a pull. A function of its arguments only, so that a journal can be replayed.
    ///
    /// A pull without an instance gets that of [`with_instance`](Self::with_instance). The observation's pull has it.
    fn run(&self, seed: u64, round: Round, pull: Pull) -> Ran;

    /// The same for an arm of an open space, which is identified by its configuration.
    fn run_configuration(
        &self,
        seed: u64,
        round: Round,
        pull: Pull,
        _configuration: &Configuration,
    ) -> Ran {
        self.run(seed, round, pull)
    }

    /// The expected gain of a pair, the paper's nu(i, tau), exactly.
    fn gain(&self, arm: ArmId, limit: Limit, price: &Price) -> f64;

    /// The probability that a pull of this pair returns no reward, the paper's 1 - P_i^(c)(tau).
    fn censored(&self, arm: ArmId, limit: Limit) -> f64;
}

/// A pull that was run in virtual time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ran {
    /// What was observed about it.
    pub observation: Observation,
    /// What it used until it ended or was stopped.
    pub consumption: f64,
}
