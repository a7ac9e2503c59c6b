//! The built-in learner: random forests by ranger's rules, in process, stoppable within a millisecond. Knows no arms.
//!
//! A table is read and coded once ([`Dataset`]), a [`Split`] selects rows, [`fit_until`] grows a [`Forest`] on them until it is
//! done or has to stop, and [`Dataset::evaluate`] turns its predictions into a reward.
//!
//! ```
//! use captime::learner::{Allowance, Dataset, FitOutcome, Params, ReadOptions, Resource, Split, Stop, fit_until};
//!
//! let csv = "size,zone,price\n50,a,100\n60,b,120\n70,a,140\n80,b,170\n90,a,180\n100,b,210\n";
//! let data = Dataset::parse(csv.as_bytes(), &ReadOptions::predict("price"))?;
//! let split = Split::random(data.rows(), 0.7, 1)?;
//! let params = Params { trees: 50, mtry: Some(2), ..Params::default() };
//! let allowance = Allowance { resource: Resource::Work, amount: 1e6 };
//! match fit_until(&data, &split.train, &params, &Stop::new(), Some(allowance))? {
//!     FitOutcome::Done { forest, consumed } => {
//!         let prices = forest.predict(&data, &split.test);
//!         assert!(prices.iter().all(|price| (100.0..=210.0).contains(price)));
//!         assert!(consumed.work <= 1_000_000);
//!     }
//!     FitOutcome::Stopped { .. } => unreachable!("a million units of work are plenty here"),
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod dataset;
pub mod engine;
mod estimator;
mod evaluate;
mod fixed;
mod forest;
mod gini;
mod importance;
mod kernel;
#[cfg(target_arch = "x86_64")]
mod kernel_avx2;
mod leaves;
mod params;
mod predict;
mod report;
mod sample;
mod split;
mod stop;
#[cfg(test)]
mod tests;
mod tree;

pub use crate::resource::Resource;
pub use dataset::{
    At, Codes, Column, Dataset, DatasetError, LevelOrder, ReadOptions, Target, Task,
};
pub use estimator::{EstimatorError, FittedForest, ForestParams, ForestTarget, ValidForestParams};
pub use evaluate::{Evaluation, Normalise, Quality};
pub use forest::{FitError, FitOutcome, Forest, fit_until};
pub use params::{Importance, Params, ParamsError, Simd};
pub use report::ForestReport;
pub use split::{Split, SplitError};
pub use stop::{Allowance, Consumed, Stop};
