//! The record of a run: JSON lines in `runs/NAME/journal.jsonl`, with everything a run knows and everything its readers
//! need.
//!
//! It has a versioned header, then one line per pull and per outcome, each with its line number and a CRC. Outcomes are
//! on disk before a policy learns from them, so replaying the file through the same `launched` and `observe` restores
//! the policy exactly. Reports read nothing else.
//!
//! ```
//! use captime::journal::{OutcomeRecord, Reader, Record, Syncing};
//! use captime::orchestrator::{Next, Plan, RunSetup, open};
//! # let folder = tempfile::tempdir()?;
//! # let folder = folder.path().join("mine");
//! # let text = "name: mine\ntarget: external\narms: {list: [{a: 1}, {a: 2}]}\nlimits: {of: wall, grid: [1s, 5s]}\nprice: {cost: x, penalty: 10 * x}\n";
//! # let scenario = captime::scenario::parse(text, "mine.yaml".as_ref(), ".".as_ref())?.scenario;
//!
//! let plan = Plan::of(&scenario, &[]);
//! let setup = RunSetup { scenario: &scenario, plan, syncing: Syncing::AtEnd, enforcement: serde_json::Value::Null, earlier: None };
//! let mut run = open(&folder, &setup, |_| {})?;
//! let Next::Pull(pull) = run.state.choose() else {
//!     unreachable!("there is nothing to wait for");
//! };
//! run.journal.append(&pull)?;
//! run.journal.append(&OutcomeRecord {
//!     outcome: pull.round.0,
//!     reward: Some(1.0),
//!     consumption: Some(0.5),
//!     ..OutcomeRecord::default()
//! })?;
//! run.journal.sync()?;
//!
//! // Readers may open it while it grows:
//! let mut reader = Reader::open(&folder)?;
//! assert_eq!(reader.header().name, "mine");
//! let mut rewards = vec![];
//! while let Some(record) = reader.next()? {
//!     if let Record::Outcome(outcome) = record {
//!         rewards.extend(outcome.reward);
//!     }
//! }
//! assert_eq!(rewards, [1.0]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod append;
mod lock;
mod machine;
mod read;
mod record;
mod replay;
mod seal;
#[cfg(test)]
mod tests;

pub use append::Syncing;
pub use read::{Damage, Reader};
pub use record::{
    ArmRecord, By, Calibrated, End, EndReason, Header, Lost, Machine, OutcomeRecord, PullRecord,
    Record, Session, VERSION,
};
pub use replay::Learned;

#[doc(hidden)]
pub use {
    append::{Appender, Durable},
    lock::RunLock,
    machine::Load,
    replay::{Replay, Step},
};

use std::io;
use std::path::{Path, PathBuf};

use crate::markup::shell_word;

/// The current time as journals write it: UTC, to the second.
pub fn timestamp() -> String {
    jiff::Timestamp::now().strftime("%FT%TZ").to_string()
}

/// The journal's name in a run's folder.
pub const FILE: &str = "journal.jsonl";

/// Why a journal cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JournalError {
    /// No journal where one is needed.
    #[error("there is no journal in {}", folder.display())]
    Missing {
        /// The run's folder.
        folder: PathBuf,
    },
    /// A journal of no bytes.
    #[error("{} is empty", path.display())]
    Empty {
        /// The journal.
        path: PathBuf,
    },
    /// A journal that ends before its first line does. captime leaves none: a new journal gets its name with its header.
    #[error("{} is not a journal: it has no complete line", path.display())]
    NoLine {
        /// The journal.
        path: PathBuf,
    },
    /// Reading failed.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The journal.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Writing failed.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// The journal, the lock or the folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A line in the middle is damaged.
    #[error("{} is damaged: line {line} {damage}", path.display())]
    Damaged {
        /// The journal.
        path: PathBuf,
        /// The line, counted from 1.
        line: u64,
        /// What is wrong with it.
        damage: Damage,
    },
    /// Written by a newer captime.
    #[error("{} is of journal version {found}; this captime reads up to {VERSION}", path.display())]
    Newer {
        /// The journal.
        path: PathBuf,
        /// Its version.
        found: u64,
    },
    /// The lines are whole but contradict each other: an outcome without its pull, a round that ends twice.
    #[error("{}: line {line}: {what}", path.display())]
    Senseless {
        /// The journal.
        path: PathBuf,
        /// The line, counted from 1.
        line: u64,
        /// The contradiction.
        what: &'static str,
    },
    /// Another captime is using this run.
    #[error("another captime is working on {} ({holder})", folder.display())]
    Locked {
        /// The run's folder.
        folder: PathBuf,
        /// Its process, as far as is known.
        holder: String,
        /// Whether the file system says so. One without locks cannot, and the process may be gone.
        is_certain: bool,
    },
}

impl JournalError {
    /// What the user can change to get past this.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Missing { folder } => Some(format!(
                "give a run's folder, or its name in `runs/`; `ls {}` shows what is there",
                folder.parent().unwrap_or(Path::new(".")).display()
            )),
            Self::Write { source, .. } => match source.kind() {
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                    Some("the disk is full: make room, then run the same command to resume".into())
                }
                io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                    Some("start captime in a folder you may write to".into())
                }
                io::ErrorKind::InvalidInput => Some(
                    "captime writes to regular files only and follows no link: move it away, or use another folder"
                        .into(),
                ),
                _ => None,
            },
            Self::Damaged { line: 1, .. } | Self::NoLine { .. } => Some(
                "restore the file from a copy, or start a new run and leave this folder as it is".into(),
            ),
            Self::Damaged { path, line, .. } | Self::Senseless { path, line, .. } => {
                let word = |path: &Path| shell_word(&path.display().to_string());
                let (journal, kept) = (word(path), word(&path.with_extension("kept")));
                Some(format!(
                    "restore the file from a copy, or keep the rounds before the damage: \
                     `head -n {} {journal} > {kept} && mv {kept} {journal}`",
                    line - 1
                ))
            }
            Self::Newer { .. } => Some("use the captime that wrote it, or a newer one".into()),
            Self::Locked {
                is_certain: true, ..
            } => Some("wait for it or stop it, or start a new run with `--fresh`".into()),
            Self::Locked { folder, .. } => Some(format!(
                "wait for it or stop it; if it is gone, remove `{}`: this file system has no locks, so captime cannot tell",
                folder.join("lock").display()
            )),
            Self::Empty { .. } => Some("`captime run` starts it again".into()),
            Self::Read { .. } => None,
        }
    }

    fn read(path: &Path, source: io::Error) -> Self {
        if source.kind() == io::ErrorKind::NotFound {
            let folder = path.parent().unwrap_or(Path::new(".")).to_owned();
            return Self::Missing { folder };
        }
        Self::Read {
            path: path.to_owned(),
            source,
        }
    }

    fn write(path: &Path, source: io::Error) -> Self {
        Self::Write {
            path: path.to_owned(),
            source,
        }
    }
}
