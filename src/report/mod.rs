//! The report: one self-contained page per run, and the same page live.
//!
//! Everything comes from the journal. [`History`] reads it as far as it has been written, and again when it has grown.
//! [`Summary`] is what the page shows. `html.rs` writes it to a file without any reference to the outside, and
//! `serve.rs` serves it on loopback. Observable Plot, which ships in `vendor/`, draws the charts in the browser.
//!
//! ```
//! use captime::report::{History, Summary, page};
//! # use captime::journal::{OutcomeRecord, Syncing};
//! # use captime::orchestrator::{Next, Plan, open};
//! # let folder = tempfile::tempdir()?;
//! # let folder = folder.path().join("mine");
//! # let text = "name: mine\ntarget: external\narms: {list: [{a: 1}, {a: 2}]}\nlimits: {of: wall, grid: [1s, 5s]}\nprice: {cost: x, penalty: 10 * x}\n";
//! # let scenario = captime::scenario::parse(text, "mine.yaml".as_ref(), ".".as_ref())?.scenario;
//! # let plan = Plan::of(&scenario, &[]);
//! # let mut run = open(&folder, &scenario, plan, Syncing::AtEnd, &serde_json::Value::Null, |_| {})?;
//! # let Next::Pull(pull) = run.state.choose() else {
//! #     unreachable!("there is nothing to wait for");
//! # };
//! # run.journal.append(&pull)?;
//! # run.journal.append(&OutcomeRecord {
//! #     outcome: pull.round.0,
//! #     reward: Some(1.0),
//! #     consumption: Some(0.5),
//! #     ..OutcomeRecord::default()
//! # })?;
//! # run.journal.sync()?;
//!
//! // The folder of a run, finished or not.
//! let mut history = History::open(&folder)?;
//! history.catch_up()?;
//! assert_eq!(history.answer().map(|best| best.pulls), Some(1));
//! let html = page(&Summary::of(&history), None);
//! assert!(html.contains("mine"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod answer;
mod arms;
mod course;
mod curves;
mod failures;
mod follow;
mod gain_model;
mod history;
mod html;
mod importance;
mod instances;
mod json;
mod number;
mod pairs;
mod paste;
mod played;
#[cfg(feature = "serve")]
mod serve;
mod summary;
mod tests;
mod write;

pub use failures::Failures;
pub use follow::{Followed, Last, News};
pub use history::{History, Incumbent, SessionStart};
pub use html::{Live, holdout_page, page, study_page};
pub use json::write_json;
pub use number::Num;
pub use played::{Kind, Played};
#[cfg(feature = "serve")]
pub use serve::{Explain, Place, runs, serve, token};
pub use summary::{Status, Summary};
pub use write::{FILE as REPORT, Keeper, write_file, write_report};

use std::io;
use std::path::PathBuf;

use crate::journal::JournalError;

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// The journal cannot be read.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The header does not contain the scenario.
    #[error("{} does not say what the run is about in a way this captime understands", path.display())]
    Untold {
        /// The journal.
        path: PathBuf,
    },
    /// A line does not belong to this run.
    #[error("{}: line {line} does not belong to this run", path.display())]
    Foreign {
        /// The journal.
        path: PathBuf,
        /// The line, counted from 1.
        line: u64,
    },
    /// The page cannot be written.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// Where to.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl ReportError {
    /// What the user can change to get past this.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Journal(error) => error.hint(),
            Self::Untold { .. } => Some("use the captime that wrote it, or a newer one".into()),
            Self::Foreign { .. } => None,
            Self::Write { .. } => Some("give `--out` a file in a folder you may write to".into()),
        }
    }
}
