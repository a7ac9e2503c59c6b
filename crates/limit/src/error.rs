//! Why a run could not take place at all. A command that crashes is a [`super::Report`], not an error.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Contain, Level, MemoryControl};

/// An error number of the kernel, written as its message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Errno(pub i32);

impl From<i32> for Errno {
    fn from(number: i32) -> Self {
        Self(number)
    }
}

impl From<std::io::Error> for Errno {
    fn from(error: std::io::Error) -> Self {
        Self(error.raw_os_error().unwrap_or(libc::EIO))
    }
}

impl From<rustix::io::Errno> for Errno {
    fn from(error: rustix::io::Errno) -> Self {
        Self(error.raw_os_error())
    }
}

impl fmt::Display for Errno {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        std::io::Error::from_raw_os_error(self.0).fmt(to)
    }
}

/// Why nothing could be run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[non_exhaustive]
pub enum LimitError {
    /// A limit that forbids everything.
    #[error("the {what} limit must not be zero")]
    ZeroLimit {
        /// Which one.
        what: String,
    },
    /// No program was named.
    #[error("no command to run")]
    NoCommand,
    /// The kernel's strings end at NUL.
    #[error("{what} contains a NUL byte: `{text}`")]
    Nul {
        /// What it was to be.
        what: String,
        /// The text, as far as it can be shown.
        text: String,
    },
    /// The program could not be executed.
    #[error("cannot run `{command}`: {errno}")]
    Exec {
        /// The program.
        command: String,
        /// Why.
        errno: Errno,
    },
    /// The directory it was to run in.
    #[error("cannot enter the directory `{directory}`: {errno}")]
    Directory {
        /// Its path.
        directory: String,
        /// Why.
        errno: Errno,
    },
    /// The file it was to read.
    #[error("cannot read the input `{path}`: {errno}")]
    Input {
        /// Its path.
        path: String,
        /// Why.
        errno: Errno,
    },
    /// The file its output was to go to.
    #[error("cannot write the output to `{path}`: {errno}")]
    Output {
        /// Its path.
        path: String,
        /// Why.
        errno: Errno,
    },
    /// The CPUs it was to be pinned to.
    #[error("cannot pin to CPUs {cpus:?}: {errno}")]
    Cpus {
        /// The CPUs asked for.
        cpus: Vec<usize>,
        /// Why.
        errno: Errno,
    },
    /// No new process could be made.
    #[error("cannot start a process for `{command}`: {errno}")]
    Spawn {
        /// The program.
        command: String,
        /// Why.
        errno: Errno,
        /// The memory limit it was to have.
        memory: Option<u64>,
    },
    /// The memory limit was refused by the kernel.
    #[error("cannot set a memory limit of {bytes} bytes: {errno}")]
    Memory {
        /// The limit.
        bytes: u64,
        /// Why.
        errno: Errno,
    },
    /// The level asked for is not available here.
    #[error("level `{level}` is not available: {reason}")]
    Level {
        /// The level.
        level: Level,
        /// Why not.
        reason: String,
    },
    /// Commands cannot be contained in this way here.
    #[error("`contain: {contain}` is not available: {errno}")]
    Contain {
        /// What was asked for.
        contain: Contain,
        /// Why it failed.
        errno: Errno,
    },
    /// A control group could not be used although the machine offers it.
    #[error("cannot {action} `{path}`: {errno}")]
    Group {
        /// What was tried.
        action: String,
        /// On what.
        path: String,
        /// Why it failed.
        errno: Errno,
    },
    /// A plain system call failed: descriptors or memory are exhausted.
    #[error("cannot {action}: {errno}")]
    System {
        /// What was tried.
        action: String,
        /// Why it failed.
        errno: Errno,
    },
    /// The program that supervises could not be started.
    #[error("cannot start the supervisor `{binary}`: {errno}")]
    Supervisor {
        /// The program.
        binary: String,
        /// Why.
        errno: Errno,
    },
    /// The supervisor went away during a run; what it ran has been ended where that was possible.
    #[error("the supervisor process of this slot was killed")]
    SupervisorLost,
    /// The supervisor stopped responding during a run. It was killed, and with it what it ran.
    #[error("the supervisor process of this slot did not respond: it {state}")]
    SupervisorStuck {
        /// What the kernel says about it.
        state: String,
    },
    /// Processes of the run are alive although they were killed, or may not be killed by this user.
    #[error("cannot end {} of the command: {why}", processes(pids))]
    Unkillable {
        /// The processes.
        pids: Vec<i32>,
        /// Why they are still alive.
        why: String,
    },
    /// The supervisor that was to replace a lost one enforces limits in another way, so results could not be compared.
    #[error(
        "the new supervisor works at level `{}` with memory {}, the one before at level `{}` with memory {}",
        has.0, has.1, had.0, had.1
    )]
    Changed {
        /// What this slot began with.
        had: (Level, MemoryControl),
        /// What there is now.
        has: (Level, MemoryControl),
    },
}

fn processes(pids: &[i32]) -> String {
    match pids {
        [pid] => format!("process {pid}"),
        pids => format!("{} processes", pids.len()),
    }
}

impl LimitError {
    /// True if the command itself caused this, so that a retry would fail in the same way.
    pub fn is_caused_by_command(&self) -> bool {
        matches!(
            self,
            Self::Exec { .. }
                | Self::Directory { .. }
                | Self::Input { .. }
                | Self::Output { .. }
                | Self::Nul { .. }
                | Self::SupervisorStuck { .. }
                | Self::Unkillable { .. }
        )
    }

    pub(super) fn system(action: &str, errno: impl Into<Errno>) -> Self {
        Self::System {
            action: action.to_owned(),
            errno: errno.into(),
        }
    }

    /// The exit status `captime exec` gives for this, by the conventions of `env` and `timeout`.
    pub fn exit_status(&self) -> u8 {
        match self {
            Self::Exec { errno, .. } if errno.0 == libc::ENOENT => 127,
            Self::Exec { .. } => 126,
            _ => 125,
        }
    }

    /// What the user can change to get past this.
    pub fn hint(&self) -> Option<String> {
        let text = match self {
            Self::ZeroLimit { .. } => "leave it out for no limit; the smallest useful limit is 1ms",
            Self::NoCommand => "write the command after `--`",
            Self::Exec { errno, .. } => match errno.0 {
                libc::ENOENT => {
                    "check the spelling, the path, and PATH; for a script, its first line"
                }
                libc::EACCES => "make it executable with `chmod +x`; a directory cannot be run",
                libc::E2BIG => {
                    "the kernel's limit on arguments and environment; pass large data in a file"
                }
                libc::ENOEXEC => "this is not a program for this machine",
                _ => return None,
            },
            Self::Spawn {
                memory: Some(_),
                errno,
                ..
            } if errno.0 == libc::ENOMEM => {
                "the memory limit is below what starting any program needs; allow at least 1MiB"
            }
            Self::Spawn { errno, .. } | Self::System { errno, .. } if errno.0 == libc::EAGAIN => {
                "the limit on processes is reached: see `ulimit -u`, or pids.max of the control group"
            }
            Self::Spawn { errno, .. } | Self::System { errno, .. } | Self::Group { errno, .. }
                if errno.0 == libc::EMFILE || errno.0 == libc::ENFILE =>
            {
                "too many files are open: raise `ulimit -n`"
            }
            Self::Contain { .. } => {
                "user namespaces may be switched off (sysctl `user.max_user_namespaces`), or this is a container without its own `/proc`; `captime check` says what is possible"
            }
            Self::Memory { .. } => "choose a larger memory limit",
            Self::Cpus { .. } => "choose CPUs listed in `nproc --all` that this process may use",
            Self::Level { .. } => {
                "`captime check` says what this machine can enforce and how to get more; or use `--level auto`"
            }
            Self::SupervisorStuck { .. } => {
                "a command that stops or traces its supervisor cannot be measured; `contain: pids` keeps it from doing so"
            }
            Self::Unkillable { .. } => {
                "end them by hand; setuid programs and dead network disks are the usual reasons"
            }
            Self::Changed { .. } => {
                "the control groups of this program were changed while it ran: start it again"
            }
            _ => return None,
        };
        Some(text.to_owned())
    }
}
