//! One command under limits: wall-clock time, CPU time and memory of its whole process tree.
//!
//! A run travels like this: a [`Supervisor`] (async, in the main process) sends a [`Launch`] and its [`Limits`] over a
//! socket to a small process of its own (`keeper`), which makes a fresh control group (`slot`, `cgroup`, `memory`), starts
//! the command in it (`spawn`), waits for whatever comes first (`watch`), ends the tree, and answers with a [`Report`].
//! `captime exec` (`front`) does the same without a socket. What the machine cannot do is found out once ([`detect`])
//! and said in every report ([`Level`], `cpu_exact`, `memory_exact`).
//!
//! ```standalone_crate
//! use captime::limit::{Cause, Launch, Limits, SUPERVISE, Setup, Supervisor, supervise};
//! use std::time::Duration;
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     // The small process is this very program, started once more: it must say so before anything else.
//!     let words: Vec<_> = std::env::args_os().skip(1).collect();
//!     if words.first().is_some_and(|word| word == SUPERVISE) {
//!         std::process::exit(supervise(&words[1..]).into());
//!     }
//!     tokio::runtime::Runtime::new()?.block_on(async {
//!         let mut supervisor = Supervisor::start(&Setup::default()).await?;
//!         let limits = Limits { wall: Some(Duration::from_millis(200)), ..Limits::default() };
//!         let report = supervisor.run(&Launch::new(["sleep", "10"]), &limits).await?;
//!         assert_eq!(report.cause, Cause::Wall);
//!         supervisor.close().await;
//!         Ok(())
//!     })
//! }
//! ```

mod capture;
mod cgroup;
mod clock;
mod error;
mod front;
mod keeper;
mod launch;
mod level;
mod memory;
mod report;
mod slot;
mod spawn;
mod supervisor;
mod sys;
mod tree;
mod watch;
mod wire;

pub use error::{Errno, LimitError};
pub use front::{Ended, Single, run_single};
pub use keeper::{SUPERVISE, supervise};
pub use launch::{Input, Launch, Limits, Output};
pub use level::{Detected, Level, MemoryControl, detect};
pub use report::{Captured, Cause, Report};
pub(crate) use spawn::is_program_there;
pub use supervisor::{Canceller, Setup, Supervisor};
