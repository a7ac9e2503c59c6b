//! Random forests by ranger's rules that can be stopped within a millisecond.
//!
//! 1. [`Dataset`] reads a table and codes its columns once; fits only select rows of it.
//! 2. [`Split`] chooses rows to train on and rows to test.
//! 3. [`fit_until`] grows a [`Forest`] until it is done, its [`Allowance`] of time or work is used up, or its [`Stop`] flag is raised.
//! 4. [`Dataset::evaluate`] turns predictions into errors and a reward in [0, 1].
//! 5. [`Model`] saves a forest and predicts from other tables.
//!
//! [`engine`] has the forests of other crates behind one trait, and `ForestParams` makes this one a linfa estimator (feature
//! `linfa`). The crate knows nothing of arms, rounds or limits on processes.
//!
//! ```
//! use captime_forest::{Allowance, Dataset, FitOutcome, Params, ReadOptions, Resource, Split, Stop, fit_until};
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
#[cfg(feature = "linfa")]
mod estimator;
mod evaluate;
mod fixed;
mod forest;
mod gini;
mod importance;
mod kernel;
mod model;
mod params;
mod predict;
mod report;
mod sample;
mod split;
mod stop;
#[cfg(test)]
mod tests;
mod tree;

pub use dataset::{
    At, Codes, Column, Dataset, DatasetError, LevelOrder, NewRows, Predictor, ReadOptions, Target,
    Task,
};
#[cfg(feature = "linfa")]
pub use estimator::{EstimatorError, FittedForest, ForestParams, ForestTarget, ValidForestParams};
pub use evaluate::{Evaluation, Metric, Normalise, Scoring};
pub use forest::{FitError, FitOutcome, Forest, fit_until};
pub use model::{Model, ModelError};
pub use params::{Importance, Params, ParamsError, Simd};
pub use report::{Deviations, ForestReport};
pub use split::{Split, SplitError};
pub use stop::{Allowance, Consumed, Resource, Stop};

/// The examples of the README are tested too.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
