//! Policies that spend a budget of CPU time on some instances and are judged on others.
//!
//! A policy plays on the training instances of a recorded target until the budget is spent. Along the way it is asked
//! for its answer. The answer is judged on all test instances, which the policy never meets, by PAR10 at the full
//! cutoff. Another measure needs no test instances and can be averaged over scenarios: the share of the gap from the
//! median arm to the best arm that the answer closes, by PAR10 on the training instances.
//!
//! ```
//! use captime::policy::PolicyKind;
//! use captime::study::StudyProgress;
//! use captime::study::holdout::{Holdout, HoldoutPlan, Unit, judge_all};
//!
//! // The first arm needs a second everywhere, the second one half as much.
//! let folder = tempfile::tempdir()?;
//! std::fs::write(folder.path().join("runs.csv"), "i,slow,fast\na,1,.5\nb,1,.5\nc,1,.5\nd,1,.5\n")?;
//! let text = "target: {recorded: {consumption: runs.csv, cutoff: 10s}}\nlimits: {max: 10s, grid: 5}\n";
//! let scenario = captime::scenario::parse(text, "mine.yaml".as_ref(), folder.path())?.scenario;
//! let plan = HoldoutPlan {
//!     holdouts: vec![Holdout::of_scenario(&scenario)?],
//!     policies: vec![PolicyKind::parse("halving")?],
//!     budgets: vec![60.0],
//!     unit: Unit::Seconds,
//!     repetitions: 2,
//!     seed: 1,
//!     threads: 1,
//!     slots: vec![1],
//! };
//! let marks = judge_all(&plan, &StudyProgress::silent());
//! assert!(marks[0].budgets[0].test.mean.is_some_and(|par10| (par10 - 0.5).abs() < 1e-9));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod instances;
mod judge;
mod mark;
mod points;
mod table;

pub use instances::{Baselines, Holdout, KnownArm};
pub use judge::{HoldoutPlan, Unit, judge_all};
pub use mark::{Mark, Marks};
pub use table::{curves_csv, summary_csv, text, text_of_several};
