//! Policies: what chooses a pull each round and learns from what it brought. One file each, plus a line in `kind.rs`.
//!
//! The files are nobody else's business: a policy is named as in scenarios, [`PolicyKind::parse`], and built from that.
//!
//! No file, clock or thread in here: a policy is a function of its problem, its seed and what it was told. Hence it can be
//! embedded anywhere:
//!
//! ```
//! use captime::policy::{PolicyKind, Problem};
//! use captime::round::{LimitGrid, Observation, Price, Purpose, Round, randomness};
//!
//! // Three arms, four limits up to 10 s, PAR10; the second arm is the fastest.
//! let problem = Problem::new(3, LimitGrid::logarithmic(1.0, 10.0, 4)?, Price::new("linear", "par10", 10.0)?)?;
//! let mut policy = PolicyKind::parse("joint-ts").expect("a known policy").build(&problem);
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
pub(crate) mod fixed;
pub(crate) mod halving;
pub(crate) mod joint_ts;
mod kind;
mod known;
mod opening;
mod options;
mod pending;
mod problem;
pub(crate) mod race;
pub(crate) mod rcucb;
mod recommendation;
pub(crate) mod similar_ts;
mod survival;
mod tournament;
pub(crate) mod ts;
pub(crate) mod ucb;
pub(crate) mod uniform;
pub(crate) mod zrcucb;

#[cfg(test)]
mod conformance;

/// What CONTRIBUTING.md writes as an example, so that it goes on compiling and passing the suite.
#[cfg(test)]
#[path = "../../tests/fixtures/epsilon_greedy.rs"]
mod walk_through;

pub use explanation::{Explanation, Turn, Weighed, Why};
pub use kind::PolicyKind;
pub use known::Known;
pub use options::{OptionValue, Options, PolicyError};
pub use problem::{NoArms, Problem};
pub use recommendation::{OnlyRecommend, Recommend, Recommendation};
pub use survival::Survival;

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

    /// Nobody will ask for a choice any more, as in a report: what only choices need may be left out from now on.
    fn retire(&mut self) {}

    /// The pair to use if the run stopped now, or with a limit the arm to use where every run is granted that much, with
    /// its interval; none before the first observation. The one method about answers that a policy writes.
    ///
    /// The best *pair* is often an arm at a small limit, which says little about who solves most within a large one, hence
    /// the two questions. Where nothing was observed as far as the limit asked for, the answer rests on the limit below it
    /// (else above it) that was reached, and says so in its own limit.
    fn answer(&self, at: Option<Limit>) -> Option<Recommendation>;

    /// The pair to use if the run stopped now: [`answer`](Self::answer) to the question that nearly everybody asks.
    fn recommend(&self) -> Option<Recommendation> {
        self.answer(None)
    }

    /// What is believed of an arm at every limit, for a policy whose answer rests on more than the plain estimates; none
    /// for all others.
    ///
    /// The gain of the answer is one of these, so whoever sets other pairs against it takes theirs from here too. Limits
    /// that no pull of the arm has reached are told with no pulls; of an arm it does not think about there are none.
    fn believed(&self, _arm: ArmId) -> Option<Vec<Recommendation>> {
        None
    }

    /// Why the last choice was made: to be asked after `choose`, before anything else is told.
    fn explain(&self) -> Explanation;
}
