//! The outcome of a pull, with everything that was measured.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::round::{Observation, Pull};

/// The fixed bound that a pull ran into. Hitting one is a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Guard {
    /// On wall time, while the policy limits something else.
    Wall,
    /// On CPU time, while the policy limits something else.
    Cpu,
    /// On memory.
    Memory,
    /// On a forest's work, while the policy limits something else.
    Work,
}

impl Guard {
    /// Its name in scenarios.
    pub fn name(self) -> &'static str {
        match self {
            Self::Wall => "wall",
            Self::Cpu => "cpu",
            Self::Memory => "memory",
            Self::Work => "work",
        }
    }
}

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

/// What was measured and limited less exactly than promised. Such numbers are lower bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Inexact {
    /// CPU time.
    pub cpu: bool,
    /// Memory.
    pub memory: bool,
}

impl Inexact {
    /// The journal's word for it: `cpu`, `memory` or `cpu,memory`. `None` if everything is exact.
    pub fn name(self) -> Option<&'static str> {
        match (self.cpu, self.memory) {
            (false, false) => None,
            (true, false) => Some("cpu"),
            (false, true) => Some("memory"),
            (true, true) => Some("cpu,memory"),
        }
    }

    /// What is less exact than `promised`, which may be inexact itself.
    #[must_use]
    pub fn beyond(self, promised: Self) -> Self {
        Self {
            cpu: self.cpu && !promised.cpu,
            memory: self.memory && !promised.memory,
        }
    }
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
