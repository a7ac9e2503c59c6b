//! One round of a history, in numbers.

use crate::round::ArmId;

/// How a pull ended. Serialized as a number, because there are many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// With a reward.
    Rewarded,
    /// Cut off at its limit.
    Censored,
    /// Without a reward although it was not censored.
    Failed,
}

impl serde::Serialize for Kind {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u8(*self as u8)
    }
}

/// A round with an outcome. Missing numbers are NaN.
#[derive(Debug, Clone, Copy)]
pub struct Played {
    /// Its number.
    pub round: u64,
    /// What was pulled.
    pub arm: ArmId,
    /// Its limit.
    pub limit: f64,
    /// The largest limit for which it shows whether it would have ended.
    pub reach: f64,
    /// The instance, counted from 1, or 0 for none.
    pub instance: u32,
    /// Whether the policy chose it.
    pub is_chosen: bool,
    /// How it ended.
    pub kind: Kind,
    /// The group of its failure, if it failed.
    pub failure: u32,
    /// The reward.
    pub reward: f64,
    /// What it used.
    pub consumption: f64,
    /// Its gain.
    pub gain: f64,
    /// Seconds of the run when it ended.
    pub at: f64,
    /// Seconds it took.
    pub wall: f64,
    /// The slot it ran in, counted from 1, or 0 if that was not recorded.
    pub slot: u32,
}

impl Played {
    /// What it used of the resource, as far as is known. Without a figure, the limit it reached.
    pub fn used(&self) -> f64 {
        if self.consumption.is_finite() {
            self.consumption
        } else {
            self.reach
        }
    }
}
