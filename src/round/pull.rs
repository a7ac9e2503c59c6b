//! What the policy chooses each round.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{ArmId, Limit};

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
