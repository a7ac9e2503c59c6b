//! What one run used and why it ended.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Contain, Level, Limits};

/// Why a run ended, from the supervisor's own record, never guessed from an exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Cause {
    /// By itself.
    None,
    /// Its wall-clock limit.
    Wall,
    /// Its CPU limit.
    Cpu,
    /// Its memory limit.
    Memory,
    /// It was cancelled.
    Cancelled,
}

impl Cause {
    /// True if a limit, not the command nor the user, ended the run.
    pub fn is_limit(self) -> bool {
        matches!(self, Self::Wall | Self::Cpu | Self::Memory)
    }

    /// The cause by what was consumed: a run that ended by itself past a limit has hit it. It may have been noticed late,
    /// because the supervisor was stopped or waited for the CPU.
    pub(super) fn judged(self, limits: &Limits, wall: Duration, cpu: Duration) -> Self {
        let is_past =
            |limit: Option<Duration>, used: Duration| limit.is_some_and(|limit| used > limit);
        match self {
            Self::None if is_past(limits.wall, wall) => Self::Wall,
            Self::None if is_past(limits.cpu, cpu) => Self::Cpu,
            cause => cause,
        }
    }
}

/// The account of one run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Report {
    /// Why it ended.
    pub cause: Cause,
    /// Exit code of the main process, unless a signal ended it.
    pub exit_code: Option<i32>,
    /// Signal that ended the main process.
    pub signal: Option<i32>,
    /// From `execve` to the end of the main process.
    pub wall_seconds: f64,
    /// CPU time of the whole tree.
    pub cpu_seconds: f64,
    /// Its part in user mode.
    pub user_seconds: f64,
    /// Its part in the kernel.
    pub system_seconds: f64,
    /// Most memory the whole tree had at any moment.
    pub peak_memory_bytes: u64,
    /// Processes other than the main one that were still alive when it ended, or was ended; none is now.
    pub left_behind: u64,
    /// How the limits were enforced.
    pub level: Level,
    /// What the command was kept from.
    pub contain: Contain,
    /// Whether the CPU times are exact; otherwise lower bounds.
    pub cpu_exact: bool,
    /// Whether the memory limit was enforced, and its peak measured, exactly; otherwise sampled, and a lower bound.
    pub memory_exact: bool,
    /// The command as it was given.
    pub command: Vec<String>,
    /// What it wrote to stdout, where captured.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub stdout: Option<Captured>,
    /// What it wrote to stderr, where captured.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub stderr: Option<Captured>,
}

/// The beginning and the end of a stream.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Captured {
    /// The first bytes; everything, if nothing had to be dropped.
    #[serde(with = "lossy")]
    pub head: Vec<u8>,
    /// The last bytes; empty if nothing had to be dropped.
    #[serde(with = "lossy")]
    pub tail: Vec<u8>,
    /// Bytes dropped between them.
    pub dropped_bytes: u64,
}

impl Captured {
    /// Head and tail as one text, with a line that says so where bytes are missing between them.
    pub fn text(&self) -> String {
        let head = String::from_utf8_lossy(&self.head);
        if self.dropped_bytes == 0 && self.tail.is_empty() {
            return head.into_owned();
        }
        let tail = String::from_utf8_lossy(&self.tail);
        format!("{head}\n[{} bytes dropped]\n{tail}", self.dropped_bytes)
    }
}

/// Bytes as JSON text; what is not UTF-8 becomes U+FFFD.
mod lossy {
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&String::from_utf8_lossy(bytes))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
        String::deserialize(from).map(String::into_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_judged_by_what_it_consumed() {
        let [one, two] = [1, 2].map(Duration::from_secs);
        let both = Limits {
            wall: Some(one),
            cpu: Some(one),
            ..Limits::default()
        };
        assert_eq!(Cause::None.judged(&both, one, one), Cause::None);
        assert_eq!(Cause::None.judged(&both, two, one), Cause::Wall);
        assert_eq!(Cause::None.judged(&both, one, two), Cause::Cpu);
        // What ended it before counts first, and without a limit nothing is past it.
        assert_eq!(Cause::Memory.judged(&both, two, two), Cause::Memory);
        let none = Limits::default();
        assert_eq!(Cause::None.judged(&none, two, two), Cause::None);
    }
}
