//! What a pull runs. One pull in, one outcome out.
//!
//! `command` runs a program under limits, `forest` fits the built-in forest; both take real time. `synthetic` and `recorded`
//! live in virtual time: a pull takes no real time, and its expected gain is known exactly, so that a study can compute
//! regret. The first draws from the paper's distributions, the second replays runs that were measured once:
//!
//! ```
//! use captime::round::{ArmId, Limit};
//! use captime::target::VirtualTarget;
//! use captime::target::synthetic::{Synthetic, SyntheticProblem};
//!
//! let target = Synthetic::new(SyntheticProblem::parse("indep")?);
//! let gain = target.gain(ArmId::from_index(0), Limit::new(0.5)?, &Synthetic::price());
//! assert!((gain - 0.441776).abs() < 1e-6);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod command;
pub mod forest;
mod outcome;
pub mod paste;
mod prepare;
mod runner;
mod running;
mod serving;
mod slots;
pub mod wrapper;

pub use crate::simulated::{Ran, TargetError, VirtualTarget, recorded, synthetic};
pub use outcome::{Failing, Guard, Inexact, Measured, Outcome};
pub use prepare::{PrepareError, PreparedTarget, dataset, prepare};
pub use runner::{Cancel, Enforcement, Runner, Running};
pub use running::{Ended, Ending, Ends, InVirtualTime, PoolChange, SlotPool, Start, Target};
pub use serving::Serving;
pub use slots::{CpuClaim, allowed_cpus};
