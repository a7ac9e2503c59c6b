//! The report: one self-contained page per run, and the same page live.
//!
//! Everything comes from the journal. [`History`] reads it as far as it has been written, and again when it has grown.
//! [`Summary`] is what the page shows. `html.rs` writes it to a file without any reference to the outside, and
//! `serve.rs` serves it on loopback. Observable Plot, which ships in `vendor/`, draws the charts in the browser.
//!
//! ```
//! use captime::report::{History, Summary, page};
//! # use captime::journal::{OutcomeRecord, Syncing};
//! # use captime::orchestrator::{Next, Plan, RunSetup, open};
//! # let folder = tempfile::tempdir()?;
//! # let folder = folder.path().join("mine");
//! # let text = "name: mine\ntarget: external\narms: {list: [{a: 1}, {a: 2}]}\nlimits: {of: wall, grid: [1s, 5s]}\nprice: {cost: x, penalty: 10 * x}\n";
//! # let scenario = captime::scenario::parse(text, "mine.yaml".as_ref(), ".".as_ref())?.scenario;
//! # let plan = Plan::of(&scenario, &[]);
//! # let setup = RunSetup { scenario: &scenario, plan, syncing: Syncing::AtEnd, enforcement: serde_json::Value::Null, earlier: None };
//! # let mut run = open(&folder, &setup, |_| {})?;
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
mod answer_tests;
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
mod number;
mod pairs;
mod paste;
mod played;
#[cfg(feature = "serve")]
mod serve;
mod summary;
mod write;

pub use history::{History, Incumbent, SessionStart};
pub use html::page;
pub use summary::{Status, Summary};
pub use write::{FILE as REPORT, write_report};

#[cfg(feature = "serve")]
#[doc(hidden)]
pub use serve::{Explain, ServedRuns, runs, serve, token};
#[doc(hidden)]
pub use {
    failures::Failures,
    follow::{Followed, Last, News},
    html::{Live, holdout_page, study_page},
    number::Num,
    played::{Kind, Played},
    write::{ReportUpdater, write_file},
};

use std::io;
use std::path::PathBuf;

use crate::journal::JournalError;

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReportError {
    /// The journal cannot be read.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The header does not contain the scenario.
    #[error("{} was written by another version of captime: its scenario cannot be read", path.display())]
    UnreadableScenario {
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
            Self::UnreadableScenario { .. } => {
                Some("use the captime that wrote it, or a newer one".into())
            }
            Self::Foreign { .. } => None,
            Self::Write { .. } => Some("give `--out` a file in a folder you may write to".into()),
        }
    }
}
