//! Runs: what is pulled next, and one loop that starts pulls and learns from them.
//!
//! A [`Run`] knows its [`State`] and writes its journal. A [`Schedule`] decides what is pulled next: the policy,
//! calibration, or a fixed [`Sequence`]. The [`Driver`] starts the pulls of one run or several in a pool of slots.
//!
//! The order is a promise: journal the pull, launch it, journal the outcome, wait until that is on disk, then let the
//! policy learn. A slot stays taken until its outcome was learned from, and every outcome is followed by at most one
//! launch, so decisions depend only on the order of outcomes, never on the speed of the disk.
//!
//! Without a driver, your own program runs the pulls:
//!
//! ```
//! use captime::orchestrator::{Next, Plan, Run, State};
//! use captime::round::Observation;
//! use captime::target::{Ending, Measured, Outcome};
//!
//! let text = "target: external\narms: {list: [{name: a}, {name: b}]}\nlimits: {of: wall, grid: [1s, 10s]}\n";
//! let scenario = captime::scenario::parse(text, "mine.yaml".as_ref(), ".".as_ref())?.scenario;
//! let mut run = Run::unrecorded(State::new(Plan::of(&scenario, &[])), ());
//! let Next::Pull(pull) = run.next() else { return Err("nothing to do".into()) };
//! run.launch(&pull)?;
//! let observation = Observation::ended(pull.pull(), 0.9, 0.4)?;
//! let outcome = Outcome::of(observation, Some(0.4), Measured::default());
//! if let Some(line) = run.settle(None, pull, Ending::Brought(Box::new(outcome)))? {
//!     run.durable(line, &[])?;
//! }
//! assert_eq!(run.state().recommend().map(|best| best.pull.arm), Some(pull.arm));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod calibration;
mod clock;
mod driver;
mod earlier;
mod event;
mod first_failures;
mod losses;
mod opening;
mod plan;
mod run;
mod run_reader;
mod schedule;
mod signal;
mod state;
mod testing;
#[cfg(test)]
mod tests;

pub use driver::{Driven, Driver, Wall};
pub use earlier::Earlier;
pub use event::{Now, Running, Watch};
pub use plan::Plan;
pub use run::{Before, Run, RunSetup};
pub use schedule::{Choice, Planned, Schedule, Sequence};
pub use signal::Signals;
pub use state::{Next, State, Tally};

#[doc(hidden)]
pub use {
    first_failures::spread,
    losses::PAUSES,
    opening::{OpenedRun, open},
    plan::{Budget, Calibrate, LimitSource, ResolvedScenario},
    run_reader::{Progress, RunReader, resume},
    schedule::Nothing,
    state::target_seed,
    testing::{TestError, TestOn, TestReader, test_folder, tests_in},
};

use clock::Clock;

use crate::journal::JournalError;
use crate::quantity::counted;

/// Why a run cannot start or continue.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The journal cannot be read or written.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The journal belongs to another run.
    #[error("line {line} of the journal does not belong to this scenario")]
    Foreign {
        /// The line.
        line: u64,
    },
    /// The scenario is not the one the run was started with.
    #[error("the scenario has changed since this run was started:\n    {}", changes.join("\n    "))]
    Changed {
        /// The old and new values.
        changes: Vec<String>,
    },
    /// The journal has a budget that does not make sense.
    #[error("the journal's last session has a budget that cannot be read: {error}")]
    UnreadableBudget {
        /// What is wrong with it.
        error: serde_json::Error,
    },
    /// A budget below what the run has used.
    #[error("the budget is {bound} already")]
    Lowered {
        /// Which bound it is, and how much of it is used.
        bound: String,
    },
    /// One pull after another was lost, more often than they may be retried.
    #[error("{rounds} lost in a row, so the machine seems to be at fault: {why}", rounds = counted(*rounds as u64, "round"))]
    Lost {
        /// How many.
        rounds: usize,
        /// What happened to the last one.
        why: String,
    },
    /// The system refused signals or threads.
    #[error("cannot start the run: {0}")]
    System(#[from] std::io::Error),
}

impl RunError {
    /// What the user can change to get past this.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Journal(error) => error.hint(),
            Self::Foreign { .. } | Self::UnreadableBudget { .. } => {
                Some("start a new run with `--fresh`".into())
            }
            Self::Changed { .. } => Some(
                "change it back, or start a new run with `--fresh`; only `budget` may change"
                    .into(),
            ),
            Self::Lowered { .. } => {
                Some("raise the budget, or start a new run with `--fresh`".into())
            }
            Self::Lost { .. } => Some(
                "nothing was learned from them; fix the cause, then run the same command to resume"
                    .into(),
            ),
            Self::System(_) => None,
        }
    }
}
