//! The built-in learner: random forests by ranger's rules, in process, stoppable within a millisecond. Knows no arms.
//!
//! A table is read and coded once ([`Dataset`]), a [`Split`] selects rows, [`fit_until`] grows a [`Forest`] on them until it is
//! done or has to stop, and [`Dataset::evaluate`] turns its predictions into a reward.

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
