//! Follows the journal of a run that other processes write, cut, resume or remove.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::Serialize;

use super::{History, Kind, Num, Status, Summary};
use crate::journal::FILE;

/// What is new, small enough to be sent several times a second.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct News {
    /// Grows whenever the page's data change.
    pub version: u64,
    /// Where the run is: see [`Status`].
    pub state: &'static str,
    /// The same in words.
    pub words: String,
    /// Outcomes so far.
    pub learned: usize,
    /// The last of them.
    pub last: Option<Last>,
    /// Why the journal cannot be read right now, if so.
    pub problem: Option<String>,
}

/// The last outcome.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Last {
    /// Its round.
    pub round: u64,
    /// Its arm, counted from 1.
    pub arm: u32,
    /// How it ended.
    pub kind: Kind,
    /// Its gain.
    pub gain: Num,
}

/// A run that any number of pages follow.
#[derive(Debug)]
pub struct Followed {
    folder: PathBuf,
    inside: Mutex<Inside>,
}

#[derive(Debug, Default)]
struct Inside {
    history: Option<History>,
    /// Device and inode of the journal that `history` reads.
    file: Option<(u64, u64)>,
    /// Length and time of a journal that could not be read: retrying is useless before it changes.
    unreadable: Option<(u64, i64, i64)>,
    problem: Option<String>,
    version: u64,
    looked: Option<Instant>,
    summary: Option<(u64, Arc<Summary>)>,
}

/// How often a journal is checked, however many pages follow the run.
const PAUSE: Duration = Duration::from_millis(200);

impl Followed {
    /// The run in this folder.
    pub fn new(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
            inside: Mutex::default(),
        }
    }

    /// The run's folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    fn inside(&self) -> MutexGuard<'_, Inside> {
        // What a panic left half done is read again from the journal at the next change.
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads what is new.
    pub fn news(&self) -> News {
        let mut inside = self.inside();
        inside.look(&self.folder);
        inside.news()
    }

    /// The page's current data. An error as long as nothing could be read.
    pub fn summary(&self) -> Result<Arc<Summary>, String> {
        let mut inside = self.inside();
        inside.look(&self.folder);
        let version = inside.version;
        if let Some((made, summary)) = &inside.summary
            && *made == version
        {
            return Ok(Arc::clone(summary));
        }
        let Some(history) = &inside.history else {
            let problem = inside.problem.clone();
            return Err(problem.unwrap_or_else(|| "nothing was read yet".into()));
        };
        let summary = Arc::new(Summary::of(history));
        inside.summary = Some((version, Arc::clone(&summary)));
        Ok(summary)
    }
}

impl Inside {
    fn look(&mut self, folder: &Path) {
        if self.looked.is_some_and(|looked| looked.elapsed() < PAUSE) {
            return;
        }
        let before = self.problem.take();
        match self.read(folder) {
            Ok(is_new) => self.version += u64::from(is_new),
            Err(problem) => self.problem = Some(problem),
        }
        if self.problem != before {
            self.version += 1;
        }
        self.looked = Some(Instant::now());
    }

    /// Reads on, from the start if the journal was replaced. Returns whether there was anything new.
    fn read(&mut self, folder: &Path) -> Result<bool, String> {
        let gone = |_| "the journal is gone; this is the last that was read of it".to_owned();
        let now = fs::metadata(folder.join(FILE)).map_err(gone)?;
        let file = (now.dev(), now.ino());
        let stamp = (now.len(), now.mtime(), now.mtime_nsec());
        let is_other = self.file != Some(file)
            || self
                .history
                .as_ref()
                .is_none_or(|history| now.len() < history.whole());
        if self.unreadable == Some(stamp) {
            return Err("the journal cannot be read".to_owned());
        }
        let reopened = if is_other {
            // The old one is kept until the new one can be read.
            let history = History::open(folder).map_err(|error| error.to_string())?;
            Some(history)
        } else {
            None
        };
        let is_reopened = reopened.is_some();
        if let Some(history) = reopened {
            self.history = Some(history);
            self.file = Some(file);
        }
        let Some(history) = &mut self.history else {
            return Ok(false);
        };
        match history.catch_up() {
            Ok(is_new) => Ok(is_new || is_reopened),
            Err(error) => {
                // Rewritten in place, or damaged: read from the start again, and then only when it changes.
                if is_reopened {
                    self.unreadable = Some(stamp);
                }
                self.file = None;
                Err(error.to_string())
            }
        }
    }

    fn news(&self) -> News {
        let Some(history) = &self.history else {
            return News {
                version: self.version,
                state: "open",
                words: "not started yet".into(),
                learned: 0,
                last: None,
                problem: self.problem.clone(),
            };
        };
        let (state, words) = Status::state(history);
        News {
            version: self.version,
            state,
            words,
            learned: history.rounds.len(),
            last: history.rounds.last().map(|played| Last {
                round: played.round,
                arm: played.arm.number(),
                kind: played.kind,
                gain: Num(played.gain),
            }),
            problem: self.problem.clone(),
        }
    }
}
