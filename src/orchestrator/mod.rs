//! The loop of a run: one `select!` makes one event, one function handles it.
//!
//! The order is a promise: journal the pull, launch it, journal the outcome, wait until that is on disk, then let the
//! policy learn. A slot stays taken until its outcome was learned from, and every outcome is followed by at most one
//! launch, so decisions depend on the order of outcomes only, never on how fast the disk is.
//!
//! [`State`] is that without files, clocks and processes: who is to run next, and what was learned. The crate's own page
//! plays a target with it; here somebody else runs the pull.
//!
//! ```
//! use captime::journal::{Learned, OutcomeRecord};
//! use captime::orchestrator::{Next, Plan, State};
//! use captime::round::Observation;
//!
//! let text = "target: external\narms: {list: [{name: a}, {name: b}]}\nlimits: {of: wall, grid: [1s, 10s]}\n";
//! let scenario = captime::scenario::parse(text, "mine.yaml".as_ref(), ".".as_ref())?.scenario;
//! let mut state = State::new(Plan::of(&scenario, &[]));
//! let Next::Pull(pull) = state.choose() else { return Err("nothing to do".into()) };
//! state.launched(&pull);
//! let observation = Observation::ended(pull.pull(), 0.9, 0.4)?;
//! let outcome = OutcomeRecord { outcome: pull.round.0, ..OutcomeRecord::default() };
//! state.learned(&Learned { pull, observation, outcome });
//! assert_eq!(state.recommend().map(|best| best.pull.arm), Some(pull.arm));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod brief;
mod calibration;
mod clock;
mod dispatch;
mod event;
mod first_failures;
mod losses;
mod opening;
mod past;
mod plan;
mod resume;
mod signal;
mod slots;
mod state;
#[cfg(test)]
mod tests;
mod timers;
mod written;

pub use brief::{Brief, StoredArms, StoredLimits, StoredParameter};
pub use clock::Clock;
pub use dispatch::{Finished, Orchestrator, Setup};
pub use event::{Now, Running, Watch};
pub use losses::PAUSES;
pub use opening::{Opened, open};
pub use past::{Past, settled};
pub use plan::{Budget, Calibrate, Limits, Plan};
pub use resume::{Progress, resume};
pub(crate) use signal::Signals;
pub use slots::{allowed_cpus, cpus_of_slots};
pub use state::{Next, State, Tally};
pub(crate) use written::record as outcome_record;

use crate::journal::JournalError;

/// Why a run cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The journal cannot be read or written.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The journal is of another run than the scenario's.
    #[error("line {line} of the journal does not belong to this scenario")]
    Foreign {
        /// The line.
        line: u64,
    },
    /// The scenario is not the one the run was started with.
    #[error("the scenario has changed since this run was started:\n    {}", changes.join("\n    "))]
    Changed {
        /// What was and what is.
        changes: Vec<String>,
    },
    /// A smaller budget than the run had already.
    #[error("the budget may be raised while a run goes on, not lowered: {from} then, {to} now")]
    Lowered {
        /// What the last session had.
        from: Budget,
        /// What is asked for.
        to: Budget,
    },
    /// Pull after pull was lost, each more often than it is run again.
    #[error("{rounds} rounds were lost one after the other, which is no fault of theirs: {why}")]
    Lost {
        /// How many.
        rounds: usize,
        /// What became of the last.
        why: String,
    },
    /// The system refuses signals or threads.
    #[error("cannot start the run: {0}")]
    System(#[from] std::io::Error),
}

impl RunError {
    /// What the user can change to get past this.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Journal(error) => error.hint(),
            Self::Foreign { .. } => Some("start a new run with `--fresh`".into()),
            Self::Changed { .. } => Some(
                "change it back, or start a new run with `--fresh`; only `budget` may change"
                    .into(),
            ),
            Self::Lowered { .. } => {
                Some("raise it again, or start a new run with `--fresh`".into())
            }
            Self::Lost { .. } => Some(
                "nothing was learned from them; when that is mended, the same command goes on"
                    .into(),
            ),
            Self::System(_) => None,
        }
    }
}
