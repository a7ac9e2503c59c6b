//! What a pull brought, with all that was measured on the way.

use crate::round::{Observation, Pull};

/// The fixed bound a pull ran into; to hit one is a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
    /// As scenarios call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Wall => "wall",
            Self::Cpu => "cpu",
            Self::Memory => "memory",
            Self::Work => "work",
        }
    }
}

/// What a pull brought.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// What the policy sees of it.
    pub observation: Observation,
    /// Why it failed, if it did.
    pub failure: Option<Failing>,
    /// What it used of the limited resource, however it ended.
    pub consumption: Option<f64>,
    /// The score as it was read, where it had to be mapped to a reward.
    pub score: Option<f64>,
    /// Whether the score lay outside of `worst` and `best`.
    pub is_clamped: bool,
    /// What else is known of it.
    pub measured: Measured,
}

/// Why a pull gave no reward.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failing {
    /// In words.
    pub reason: String,
    /// The guard it hit, if that was it.
    pub guard: Option<Guard>,
    /// The end of what it wrote to stderr.
    pub stderr: String,
}

/// What was measured of a pull that really ran.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
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
    /// What of it is less exact than the session promised.
    pub inexact: Inexact,
}

/// What was measured, and limited, less exactly than it should have been: such numbers are lower bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Inexact {
    /// CPU time.
    pub cpu: bool,
    /// Memory.
    pub memory: bool,
}

impl Inexact {
    /// As the journal has it: `cpu`, `memory` or `cpu,memory`; none if all is as it should be.
    pub fn name(self) -> Option<&'static str> {
        match (self.cpu, self.memory) {
            (false, false) => None,
            (true, false) => Some("cpu"),
            (false, true) => Some("memory"),
            (true, true) => Some("cpu,memory"),
        }
    }

    /// What is worse than `promised`, which may be inexact itself.
    #[must_use]
    pub fn beyond(self, promised: Self) -> Self {
        Self {
            cpu: self.cpu && !promised.cpu,
            memory: self.memory && !promised.memory,
        }
    }
}

impl Outcome {
    /// A pull that failed.
    pub fn failed(
        pull: Pull,
        failing: Failing,
        consumption: Option<f64>,
        measured: Measured,
    ) -> Self {
        Self {
            observation: Observation::failed(pull),
            failure: Some(failing),
            consumption,
            score: None,
            is_clamped: false,
            measured,
        }
    }
}
