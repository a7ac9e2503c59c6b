//! What the policy chooses each round: an arm and its limit.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::Limit;

/// One configuration the policy may pick. Counted from 0 inside, shown and stored from 1, as in the paper.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "u32", into = "u32")]
pub struct ArmId(u32);

impl ArmId {
    /// The arm at this index, counted from 0.
    ///
    /// # Panics
    /// If there are more than four billion arms before it.
    pub fn from_index(index: usize) -> Self {
        Self(u32::try_from(index).expect("scenarios are refused far below 2^32 arms"))
    }

    /// The arm with this number, counted from 1. `None` for 0.
    pub fn from_number(number: u32) -> Option<Self> {
        number.checked_sub(1).map(Self)
    }

    /// Its index, counted from 0.
    pub fn index(self) -> usize {
        self.0 as usize
    }

    /// Its number, counted from 1.
    pub fn number(self) -> u32 {
        self.0 + 1
    }
}

impl fmt::Display for ArmId {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.number().fmt(to)
    }
}

impl From<ArmId> for u32 {
    fn from(arm: ArmId) -> Self {
        arm.number()
    }
}

impl TryFrom<u32> for ArmId {
    type Error = &'static str;

    fn try_from(number: u32) -> Result<Self, Self::Error> {
        Self::from_number(number).ok_or("arms are numbered from 1")
    }
}

/// The number of a round, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Round(pub u64);

impl fmt::Display for Round {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(to)
    }
}

/// An arm together with the limit it may run to.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Pull {
    /// The configuration to run.
    pub arm: ArmId,
    /// How far it may run.
    pub limit: Limit,
    /// The instance, counted from 0. When chosen, `None` means that it is drawn. When launched, the one it ran on, if
    /// any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance: Option<u32>,
}

impl Pull {
    /// A pull of this arm up to this limit, on an instance that is drawn.
    pub fn new(arm: ArmId, limit: Limit) -> Self {
        Self {
            arm,
            limit,
            instance: None,
        }
    }
}
