//! Policies against each other over repetitions: regret, share of censored rounds, and how good the answer is.
//!
//! Regret needs known gains, which only targets in virtual time have; what is really run ([`RealPlan`]) is compared by reward and
//! gain. A [`Setting`] is one problem with its limits
//! and prices; every policy meets every setting `repetitions` times, and the same repetition of any policy meets the same
//! random numbers. Repetitions run on all cores and are folded in their order, so that the number of threads changes nothing.
//!
//! ```
//! use captime::policy::{PolicyKind, Problem};
//! use captime::study::{Plan, Progress, Setting, play_all};
//! use captime::target::synthetic::{Grid, Synthetic, SyntheticProblem};
//!
//! let problem = SyntheticProblem::parse("poscorr")?;
//! let limits = Grid::parse("recovered")?.limits(problem);
//! let known = Problem::new(problem.arms(), limits, Synthetic::price())?;
//! let setting = Setting::new("poscorr".into(), "recovered".into(), known, Box::new(Synthetic::new(problem)));
//! let policies = ["joint-ts", "uniform"].map(|name| PolicyKind::parse(name).expect("a known policy"));
//! let plan =
//!     Plan { settings: vec![setting], policies: policies.into(), rounds: 2000, repetitions: 4, seed: 1, threads: 2 };
//! let standings = play_all(&plan, &Progress::silent());
//! assert!(standings[0].regret.mean < standings[1].regret.mean);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod curve;
mod error;
pub mod exam;
mod figure;
mod lost;
mod play;
mod progress;
mod real;
mod result;
mod setting;
mod source;
mod statistics;
mod table;
mod workers;

pub use error::StudyError;
pub use figure::{Sum, figure};
pub(crate) use lost::{LostPulls, Settled};
pub use progress::Progress;
pub use real::{Ground, Halt, RealError, RealPlan, file_name};
pub use result::{Curve, Estimate, Spread, Standing};
pub use setting::{Best, Setting};
pub use table::{curves_csv, summary_csv, text};
pub use workers::{Plan, play_all};
