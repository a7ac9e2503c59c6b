//! One round of a history, in numbers.

use crate::round::ArmId;

/// How a pull ended; as a number where there are many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// With a reward.
    Rewarded,
    /// Cut off at its limit.
    Censored,
    /// Without a reward although it was not cut off.
    Failed,
}

impl serde::Serialize for Kind {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u8(*self as u8)
    }
}

/// A round with an outcome. Numbers that are not there are not numbers.
#[derive(Debug, Clone, Copy)]
pub struct Played {
    /// Its number.
    pub round: u64,
    /// What was pulled.
    pub arm: ArmId,
    /// What it was granted.
    pub limit: f64,
    /// Up to where it tells whether it had ended.
    pub reach: f64,
    /// The instance, counted from 1; 0 for none.
    pub instance: u32,
    /// Whether the policy chose it.
    pub is_chosen: bool,
    /// How it ended.
    pub kind: Kind,
    /// Of the failure, its group.
    pub failure: u32,
    /// The reward.
    pub reward: f64,
    /// What it used.
    pub consumption: f64,
    /// What it was worth.
    pub gain: f64,
    /// Seconds of the run when it ended.
    pub at: f64,
    /// Seconds it took.
    pub wall: f64,
    /// The slot it ran in, counted from 1; 0 where that was not written down.
    pub slot: u32,
}

impl Played {
    /// What it took of the resource, as far as is known: a pull without a figure took what it reached.
    pub fn used(&self) -> f64 {
        if self.consumption.is_finite() {
            self.consumption
        } else {
            self.reach
        }
    }
}
