//! One command under limits: wall-clock time, CPU time and memory of its whole process tree.
//!
//! ```
//! use captime_limit::{Cause, Launch, Limits, Output, blocking};
//! use std::time::Duration;
//!
//! let launch = Launch { output: Output::Capture { limit: 1000 }, ..Launch::new(["sh", "-c", "echo started; sleep 10"]) };
//! let limits = Limits { wall: Some(Duration::from_millis(500)), ..Limits::default() };
//! let report = blocking::run(&launch, &limits)?;
//! assert_eq!(report.cause, Cause::Wall);
//! assert_eq!(report.stdout.unwrap().text(), "started\n");
//! # Ok::<(), captime_limit::LimitError>(())
//! ```
//!
//! When the call returns, no process of the command is alive, whatever it did. A [`blocking::Supervisor`] keeps its process
//! from run to run, which makes a run about as cheap as a plain spawn. With the feature `tokio`, [`Supervisor`] does the same
//! without blocking. Linux only.
//!
//! # Processes
//!
//! | name | is | code |
//! |---|---|---|
//! | main process | the program that uses this crate | `connection`, `blocking`, `supervisor` |
//! | supervisor | starts one command at a time, watches it and ends its tree | `server`, `watch` |
//! | guardian | parent of a supervisor: continues it when stopped, ends its orphans when killed | `guardian` |
//! | command | what is run, with all its descendants | |
//!
//! Supervisor and guardian are your program, started once more. They take over before its `main` begins, so `main` needs no
//! hook. They end when the main process closes their socket, or dies.
//!
//! # A run
//!
//! The main process sends a [`Launch`] and its [`Limits`] over a socket (`wire`). The supervisor makes a fresh control group (`slot`,
//! `cgroup`, `memory`), starts the command in it (`spawn`), waits for whatever comes first (`watch`), ends the tree (`tree`), and
//! answers with a [`Report`]. [`detect`] finds out what the machine can enforce; every report says it too ([`Level`],
//! `cpu_exact`, `memory_exact`).

pub mod blocking;
mod cancel;
mod capture;
mod cgroup;
mod clock;
mod connection;
mod contain;
mod cpu_looks;
mod error;
mod foreground;
mod guardian;
mod launch;
mod level;
mod log;
mod memory;
mod report;
mod server;
mod slot;
mod spawn;
#[cfg(feature = "tokio")]
mod supervisor;
mod sys;
mod tree;
mod watch;
mod wire;

pub use cancel::Canceller;
pub use cgroup::leave_shelter;
pub use connection::Setup;
pub use contain::Contain;
pub use error::{Errno, LimitError};
pub use foreground::{Finished, Foreground};
pub use guardian::adopt_orphans;
pub use launch::{Input, Launch, Limits, Output};
pub use level::{Detected, Level, MemoryControl, detect};
pub use report::{Captured, Cause, Report};
pub use spawn::is_program_there;
#[cfg(feature = "tokio")]
pub use supervisor::Supervisor;
pub use sys::wake_promptly;
