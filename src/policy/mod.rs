//! Policies: what chooses a pull each round and learns from what it brought. One file each, plus a line in `kind.rs`.
//!
//! No file, clock or thread in here: a policy is a function of its problem, its seed and what it was told.

mod beta;
mod estimate;
mod explanation;
pub mod fixed;
pub mod joint_ts;
mod kind;
mod known;
mod opening;
mod options;
mod pending;
mod problem;
pub mod rcucb;
mod recommendation;
mod survival;
mod tournament;
pub mod ts;
pub mod ucb;
pub mod uniform;
pub mod zrcucb;

#[cfg(test)]
mod conformance;

pub use explanation::{Candidate, Explanation, Why};
pub use kind::PolicyKind;
pub use known::Known;
pub use options::{OptionValue, Options, PolicyError};
pub use problem::{NoArms, Problem};
pub use recommendation::{Recommend, Recommendation};
pub use survival::Survival;

use rand::Rng;

use crate::round::{Limit, Observation, Pull, Round};

/// Chooses a pull each round and learns from what it brought.
///
/// Only `launched` and `observe` change what is known (`choose` may refresh caches), and `rng` is seeded from
/// (run seed, round, purpose): replaying both in journal order restores a policy exactly.
pub trait Policy: Send {
    /// Proposes the pull of this round.
    fn choose(&mut self, round: Round, rng: &mut dyn Rng) -> Pull;

    /// The pull was started; until it is observed it counts as pending.
    fn launched(&mut self, round: Round, pull: Pull);

    /// Learns from one finished, censored or failed pull.
    ///
    /// A round that was never `launched` is learned from all the same: calibration and replayed histories.
    fn observe(&mut self, round: Round, seen: Observation, rng: &mut dyn Rng);

    /// The pair to use if the run stopped now, with its interval; none before the first observation.
    fn recommend(&self) -> Option<Recommendation>;

    /// The arm to use where every run is granted this limit; none before the first observation.
    ///
    /// The best *pair* is often an arm at a small limit, which says little about who solves most within a large one.
    /// Where nothing was observed as far as this limit, the answer rests on the limit below it (else above it) that was
    /// reached, and says so in its own limit.
    fn recommend_at(&self, limit: Limit) -> Option<Recommendation>;

    /// Why the last choice was made: to be asked after `choose`, before anything else is told.
    fn explain(&self) -> Explanation;
}
