//! The outcome of a pull, with everything that was measured.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::round::{Guard, Inexact, Observation, Pull};

/// The outcome of a pull.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// What the policy sees of it.
    pub observation: Observation,
    /// Why it failed, if it did.
    pub failure: Option<Failing>,
    /// What it used of the limited resource, however it ended.
    pub consumption: Option<f64>,
    /// The score as it was read, if it had to be mapped to a reward.
    pub score: Option<f64>,
    /// Whether the score was outside `worst` and `best`.
    pub is_clamped: bool,
    /// The text that the reward was read from, shortened for display.
    pub read: Option<String>,
    /// Everything else that was measured.
    pub measured: Measured,
    /// The node it ran on, if that is not this machine.
    pub node: Option<Arc<str>>,
}

/// Why a pull gave no reward.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failing {
    /// In words.
    pub reason: String,
    /// The guard it hit, if any.
    pub guard: Option<Guard>,
    /// The end of what it wrote to stderr.
    pub stderr: String,
}

/// What was measured on a pull that really ran.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Measured {
    /// Seconds on the clock.
    pub wall: Option<f64>,
    /// Seconds of CPU time.
    pub cpu: Option<f64>,
    /// Peak memory in bytes.
    pub memory: Option<u64>,
    /// Exit code.
    pub exit: Option<i32>,
    /// Signal that ended it.
    pub signal: Option<i32>,
    /// Which values are less exact than the session promised.
    pub inexact: Inexact,
}

impl Outcome {
    /// A pull with this observation, which used this much of the limited resource.
    pub fn of(observation: Observation, consumption: Option<f64>, measured: Measured) -> Self {
        Self {
            observation,
            failure: None,
            consumption,
            score: None,
            is_clamped: false,
            read: None,
            measured,
            node: None,
        }
    }

    /// A pull that failed.
    pub fn failed(
        pull: Pull,
        failing: Failing,
        consumption: Option<f64>,
        measured: Measured,
    ) -> Self {
        Self {
            failure: Some(failing),
            ..Self::of(Observation::failed(pull), consumption, measured)
        }
    }
}

impl Failing {
    /// A failure with no details but its reason.
    pub fn new(reason: impl Into<String>) -> Self {
        Self {
            reason: reason.into(),
            guard: None,
            stderr: String::new(),
        }
    }
}
