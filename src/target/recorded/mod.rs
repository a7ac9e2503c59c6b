//! Runs that somebody measured once, replayed: what a policy would have met.

use std::path::PathBuf;

/// A recorded target as a scenario asks for it: plain data. Paths are ready to open.
#[derive(Debug, Clone, PartialEq)]
pub struct Spec {
    /// `consumption:` the recorded consumptions: a CSV matrix with one row per instance (its name first) and one column per
    /// arm, with or without a header, or an ASlib `algorithm_runs.arff`, told apart by the file's name ending in `.arff`.
    pub consumption: PathBuf,
    /// `reward:` a matrix of rewards in [0, 1] of the same shape. Without it whatever ended gives 1.
    pub reward: Option<PathBuf>,
    /// `cutoff:` up to where runs were measured, in seconds or counts as the limits are.
    pub cutoff: f64,
    /// `unsolved:` the value that stands for "not ended within the cutoff"; anything above the cutoff means that too.
    pub unsolved: Option<f64>,
}
