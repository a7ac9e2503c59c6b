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

#[doc(hidden)]
pub mod command;
#[doc(hidden)]
pub mod forest;
mod outcome;
#[doc(hidden)]
pub mod paste;
mod prepare;
mod runner;
mod running;
mod serving;
mod slots;
#[doc(hidden)]
pub mod wrapper;

pub use crate::round::{Guard, Inexact};
pub use outcome::{Failing, Measured, Outcome};
pub use prepare::{PrepareError, PreparedTarget, prepare};
pub use runner::{Cancel, Enforcement, RunFuture, Runner};
pub use running::{Ended, Ending, Ends, SlotPool, Start, Target};

#[doc(hidden)]
pub use {
    crate::simulated::{Ran, TargetError, VirtualTarget, recorded, synthetic},
    prepare::{dataset, measures_memory},
    running::{InVirtualTime, PoolChange},
    serving::Serving,
    slots::{CpuClaim, allowed_cpus},
};
