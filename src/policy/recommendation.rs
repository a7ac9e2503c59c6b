//! The answer of a policy.

use serde::Serialize;

use crate::round::Pull;

/// The pair to use, and how sure we are of it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Recommendation {
    /// Configuration and limit.
    pub pull: Pull,
    /// Estimated gain, nu-hat.
    pub gain: f64,
    /// Interval around the gain.
    pub interval: (f64, f64),
    /// How many pulls the estimate rests on: those of the arm that reached this limit.
    pub pulls: u64,
    /// Share of them that had not ended at this limit.
    pub censored: f64,
}
