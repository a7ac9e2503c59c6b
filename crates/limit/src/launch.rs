//! What to run and what it may use.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use super::LimitError;

/// What one run may use; `None` is unlimited.
///
/// New limits may be added: write `..Limits::default()` when you make one.
///
/// ```
/// use captime_limit::{LimitError, Limits};
/// use std::time::Duration;
///
/// let limits = Limits { cpu: Some(Duration::from_millis(2500)), memory: Some(200 << 20), ..Limits::default() };
/// assert_eq!(limits.check(), Ok(()));
/// let nothing = Limits { wall: Some(Duration::ZERO), ..Limits::default() };
/// assert!(matches!(nothing.check(), Err(LimitError::ZeroLimit { .. })));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Limits {
    /// Time on the clock, from `execve` to the end of the main process.
    pub wall: Option<Duration>,
    /// CPU time of the whole process tree.
    pub cpu: Option<Duration>,
    /// Memory of the whole process tree, in bytes.
    pub memory: Option<u64>,
    /// How long the tree may take to end after a polite SIGTERM; zero (the default) is SIGKILL at once.
    pub grace: Duration,
    /// The CPUs the tree may run on; `None` is all that this process may use.
    pub cpus: Option<Vec<usize>>,
}

impl Limits {
    /// Refuses limits that no command could keep.
    pub fn check(&self) -> Result<(), LimitError> {
        let zero = |what: &str| {
            Err(LimitError::ZeroLimit {
                what: what.to_owned(),
            })
        };
        if self.wall.is_some_and(|wall| wall.is_zero()) {
            return zero("wall");
        }
        if self.cpu.is_some_and(|cpu| cpu.is_zero()) {
            return zero("CPU");
        }
        if self.memory == Some(0) {
            return zero("memory");
        }
        if let Some(cpus) = &self.cpus {
            // Larger numbers do not fit the kernel's mask.
            if cpus.is_empty() || cpus.iter().any(|&cpu| cpu >= 1024) {
                return Err(LimitError::Cpus {
                    cpus: cpus.clone(),
                    errno: libc::EINVAL.into(),
                });
            }
        }
        Ok(())
    }
}

/// What the command reads.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Input {
    /// Nothing: it sees the end at once.
    #[default]
    Empty,
    /// A file.
    File(PathBuf),
    /// The stdin of this process.
    Inherit,
}

/// Where the command's stdout and stderr go.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Output {
    /// To those of this process.
    #[default]
    Inherit,
    /// Nowhere.
    Discard,
    /// Both into this file, which is emptied first, or made for its owner only.
    File(PathBuf),
    /// Into the report: the beginning and the end of each, at most this many bytes of each.
    Capture {
        /// Bytes kept of each stream.
        limit: u64,
    },
}

/// One program to run.
///
/// New fields may be added: write `..Launch::new(command)` when you make one.
///
/// ```
/// use captime_limit::{Launch, Output};
///
/// let launch = Launch { output: Output::Capture { limit: 1 << 16 }, ..Launch::new(["echo", "hello"]) };
/// assert_eq!(launch.command, ["echo", "hello"]);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Launch {
    /// The program and its arguments. A name without `/` is looked for on `PATH`.
    pub command: Vec<OsString>,
    /// Variables set on top of the environment of this process.
    pub env: Vec<(OsString, OsString)>,
    /// Where it runs; the current directory if absent.
    pub directory: Option<PathBuf>,
    /// What it reads.
    pub input: Input,
    /// Where its output goes.
    pub output: Output,
}

impl Launch {
    /// A launch of `command` with empty input, and the output, environment and directory of this process.
    pub fn new(command: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        Self {
            command: command.into_iter().map(Into::into).collect(),
            ..Self::default()
        }
    }
}
