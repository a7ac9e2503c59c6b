//! Why a pull was chosen, in numbers.

use serde::Serialize;

use crate::round::Pull;

/// What decided a choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Why {
    /// Nothing was chosen yet.
    Nothing,
    /// The opening: something that had to be played first.
    Opening,
    /// The largest index.
    Index,
    /// The largest of random draws from what is believed.
    Sample,
    /// Plain chance.
    Chance,
}

/// A pair as the policy saw it when it chose.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Candidate {
    /// The arm and limit.
    pub pull: Pull,
    /// What was compared: mean + width + refinement, or a draw. Infinite (null in JSON) where nothing is known.
    pub index: f64,
    /// Estimated gain, nu-hat.
    pub mean: f64,
    /// Confidence width.
    pub width: f64,
    /// z-RCUCB's share for the size of the cell; 0 elsewhere.
    pub refinement: f64,
    /// Observed pulls that tell about this pair, N_{i,tau}.
    pub count: u64,
    /// Observed pulls of the arm at any limit, N_{i,0}.
    pub arm_count: u64,
    /// Pulls under way that will tell about this pair.
    pub pending: u64,
    /// Estimated share of pulls still running at the limit.
    pub survival: f64,
}

/// Why the last choice was made.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Explanation {
    /// What decided.
    pub why: Why,
    /// The pair that was chosen.
    pub chosen: Option<Candidate>,
    /// The pair that would have been next.
    pub runner_up: Option<Candidate>,
}
