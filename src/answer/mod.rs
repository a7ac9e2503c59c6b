//! The answer people get: which arm to use, under which limit, how good it is and how that compares with the default.
//!
//! A policy recommends a pair on its grid of limits. This module turns that into an answer that you can act on, from what the
//! runs showed, whichever policy chose them: the smallest limit that is enough, values in your own terms, and the
//! comparison with the default configuration (arm 1).
//!
//! ```
//! use captime::answer::Evidence;
//! use captime::policy::{PolicyKind, Problem};
//! use captime::round::{LimitGrid, Observation, Price, Purpose, Round, randomness};
//!
//! // No run takes longer than 0.6 s, and the smallest limit on the grid is 1 s.
//! let price = Price::new("x", "10 * x", 8.0)?;
//! let problem = Problem::new(2, LimitGrid::new([1.0, 8.0])?, price.clone())?;
//! let mut policy = PolicyKind::parse("joint-ts").expect("a known policy").build(&problem);
//! let mut evidence = Evidence::default();
//! for number in 1..=100 {
//!     let round = Round(number);
//!     let pull = policy.choose(round, &mut randomness(1, round, Purpose::Choose));
//!     policy.launched(round, pull);
//!     let seconds = [0.6, 0.5][pull.arm.index()];
//!     let seen = Observation::ended(pull, 1.0, seconds)?;
//!     policy.observe(round, seen, &mut randomness(1, round, Purpose::Observe));
//!     evidence.add(&seen, None);
//! }
//! let best = policy.recommend().and_then(|pair| evidence.settle(pair, &price));
//! let limit = best.ok_or("there is an answer")?.pull.limit.get();
//! assert!((0.5..=0.65).contains(&limit), "{limit}");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod comparison;
mod evidence;
mod limit;
mod nodes;
mod outlook;
mod path;
mod shown;
mod tested;
mod values;
mod verdict;

pub use comparison::Comparison;
pub use evidence::{Evidence, FinishedRun};
pub use limit::LimitReason;
pub use nodes::{NodeRow, NodeStats, Pace};
pub use outlook::Outlook;
pub use path::{Change, PathStep, path, path_in_words, shortened};
pub use tested::{Difference, Differences, Tested};
pub use values::{Terms, Values};
pub use verdict::{Afforded, Setting, Verdict, quantity};
