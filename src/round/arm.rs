//! Which configuration a pull runs.

use std::fmt;

use serde::{Deserialize, Serialize};

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
