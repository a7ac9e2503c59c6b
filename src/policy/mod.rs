//! Policies: what chooses a pull each round and learns from what it brought. One file each, plus a line in the list below.
//!
//! Outside of this folder a policy is known by its name ([`PolicyKind::parse`]) and by what it says about itself
//! ([`PolicyParameters`], [`Policy`]).
//!
//! A policy uses no file, clock or thread. It is a function of its problem, its seed and its observations, so it can be
//! embedded anywhere:
//!
//! ```
//! use captime::policy::{PolicyKind, Problem};
//! use captime::round::{LimitGrid, Observation, Price, Purpose, Round, randomness};
//!
//! // Three arms, four limits up to 10 s, PAR10; the second arm is the fastest.
//! let problem = Problem::new(3, LimitGrid::logarithmic(1.0, 10.0, 4)?, Price::new("linear", "par10", 10.0)?)?;
//! let mut policy = PolicyKind::parse("joint-ts")?.build(&problem);
//! for number in 1..=200 {
//!     let round = Round(number);
//!     let pull = policy.choose(round, &mut randomness(1, round, Purpose::Choose));
//!     policy.launched(round, pull);
//!     let seconds = [8.0, 0.5, 20.0][pull.arm.index()];
//!     let seen = if seconds <= pull.limit.get() {
//!         Observation::ended(pull, 1.0, seconds)?
//!     } else {
//!         Observation::censored(pull, pull.limit.get())?
//!     };
//!     policy.observe(round, seen, &mut randomness(1, round, Purpose::Observe));
//! }
//! let answer = policy.recommend().ok_or("something was observed")?;
//! assert_eq!(answer.pull.arm.index(), 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod beta;
mod estimate;
mod explanation;
#[macro_use]
mod kind;
mod known;
mod leaf_pool;
mod options;
mod problem;
mod recommendation;
mod survival;
mod tournament;

policies! {
    Levels => levels,
    Rcucb => rcucb,
    ZRcucb => zrcucb,
    Ucb => ucb,
    Ts => ts,
    JointTs => joint_ts,
    Halving => halving,
    Race => race,
    Fixed => fixed,
    Uniform => uniform,
}

#[cfg(test)]
mod conformance;

pub use explanation::{Explanation, Turn, Weighed, Why};
pub use kind::PolicyParameters;
pub use known::Known;
pub use options::{OptionValue, Options, PolicyError, PolicyErrors};
pub use problem::{Problem, ProblemError};
pub use recommendation::{Recommend, Recommendation};
pub use survival::Survival;

#[doc(hidden)]
pub use recommendation::OnlyRecommend;

use rand::Rng;

use crate::round::{ArmId, Limit, Observation, Pull, Round};

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

    /// The best pair so far, with its interval. With a limit: the arm to use if every run gets that limit. None before the
    /// first observation. The one method about answers that a policy writes.
    ///
    /// The best *pair* often has a small limit, which says little about which arm solves most within a large one. Where nothing was
    /// observed as far as the limit asked for, the answer either is predicted, or rests on the limit below it (else above it) that
    /// was reached, and says so in its own limit.
    fn answer(&self, at: Option<Limit>) -> Option<Recommendation>;

    /// The best pair so far.
    fn recommend(&self) -> Option<Recommendation> {
        self.answer(None)
    }

    /// More arms joined the problem, after those it knows; `problem` has all of them. A replay repeats this where it happened.
    /// False, and nothing changes, if the policy cannot take more arms.
    fn arms_added(&mut self, _problem: &Problem) -> bool {
        false
    }

    /// How many arms it could make use of by now, where more can be drawn from a space; none if those it has are enough.
    fn wanted_arms(&self) -> Option<usize> {
        None
    }

    /// The arms to derive new ones from, the best first, at most `count`.
    fn best_arms(&self, count: usize) -> Vec<ArmId> {
        let answer = self.recommend().map(|answer| answer.pull.arm);
        answer.into_iter().take(count).collect()
    }

    /// The limits of an arm, ascending, where the policy finds them itself; none where it plays those of the problem.
    fn limits_of(&self, _arm: ArmId) -> Option<Vec<Limit>> {
        None
    }

    /// Why the last choice was made. Call it directly after `choose`.
    fn explain(&self) -> Explanation;
}

/// The example of CONTRIBUTING.md: its file and its line, through the same macro as the list above.
#[cfg(test)]
#[path = "../../tests/fixtures"]
mod walk_through {
    use super::*;

    policies! {
        EpsilonGreedy => epsilon_greedy,
    }
}
