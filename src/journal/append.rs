//! Writing lines. The loop writes whole lines itself, and a separate thread syncs them.
//!
//! A write reaches the kernel before it returns, so a killed captime loses nothing. Outcomes must survive a power cut
//! too, so captime waits for their sync. A sync covers everything that was written when it began, so outcomes that
//! arrive during one share the next.
//!
//! A line is written where captime's last line ends, not at the end of the file. So the next line overwrites what a
//! target appends to the file. Otherwise that would remain as damage in the middle.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread::JoinHandle;

use serde::Serialize;

use super::seal::write_line;
use super::{FILE, Header, JournalError, Reader};
use crate::regular_file;

/// When lines are synced to disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Syncing {
    /// Each outcome before the policy learns from it.
    Outcomes,
    /// Once, at the end: virtual targets, whose rounds cost nothing to repeat.
    AtEnd,
}

/// How far the journal is on disk: the number of the last line, or why it is not.
pub type Durable = Result<u64, io::Error>;

/// A new journal until its header is on disk.
const UNNAMED: &str = "journal.new";

/// Lines of virtual rounds are handed to the kernel in pieces of this size.
const PIECE: usize = 1 << 16;

/// Writes the journal of one run.
#[derive(Debug)]
pub struct Appender {
    file: File,
    path: PathBuf,
    syncing: Syncing,
    /// Bytes of whole lines in the file.
    length: u64,
    /// Lines in the file and in `pending`.
    lines: u64,
    pending: Vec<u8>,
    syncer: Option<Syncer>,
    /// Why a write failed. Nothing more is written after that, because it would follow a gap.
    broken: Option<(io::ErrorKind, String)>,
}

impl Appender {
    /// Creates the journal of a new run in `folder`, which must exist. When this returns, its header is on disk.
    pub fn create(folder: &Path, header: &Header, syncing: Syncing) -> Result<Self, JournalError> {
        Self::create_with(folder, header, syncing, |_| Ok(()))
    }

    /// The same with the lines that `fill` appends. Either all of them are on disk or there is no journal.
    pub fn create_with(
        folder: &Path,
        header: &Header,
        syncing: Syncing,
        fill: impl FnOnce(&mut Self) -> Result<(), JournalError>,
    ) -> Result<Self, JournalError> {
        let path = folder.join(FILE);
        let written = |error| JournalError::write(&path, error);
        replaceable(&path).map_err(written)?;
        // The journal gets its name with its header in it, so that a kill leaves none without.
        let unnamed = folder.join(UNNAMED);
        let _ = fs::remove_file(&unnamed);
        let file =
            regular_file::open_own(&unnamed, OpenOptions::new().write(true).create_new(true))
                .map_err(written)?;
        let mut new = Self::over(file, unnamed.clone(), syncing, 0, 0);
        let filled = new.append(header).and_then(|_| fill(&mut new));
        let named = filled.and_then(|()| new.sync()).and_then(|()| {
            let renamed = fs::rename(&unnamed, &path);
            // The name must survive a power cut as well.
            renamed
                .and_then(|()| File::open(folder)?.sync_all())
                .map_err(written)
        });
        if named.is_err() {
            let _ = fs::remove_file(&unnamed);
        }
        named?;
        new.path = path;
        Ok(new)
    }

    /// Continues a journal that `reader` has read to its end. Cuts off an incomplete last line.
    pub fn resume(reader: &Reader, syncing: Syncing) -> Result<Self, JournalError> {
        let path = reader.path().to_owned();
        let opened = regular_file::open_own(&path, OpenOptions::new().write(true));
        let file = opened.map_err(|error| JournalError::write(&path, error))?;
        whole(&file, reader.whole())
            .and_then(|()| file.set_len(reader.whole()))
            .map_err(|error| JournalError::write(&path, error))?;
        Ok(Self::over(
            file,
            path,
            syncing,
            reader.whole(),
            reader.lines(),
        ))
    }

    pub(super) fn over(
        file: File,
        path: PathBuf,
        syncing: Syncing,
        length: u64,
        lines: u64,
    ) -> Self {
        Self {
            file,
            path,
            syncing,
            length,
            lines,
            pending: vec![],
            syncer: None,
            broken: None,
        }
    }

    /// Moves syncing to a separate thread, which reports through `tell` after each sync.
    pub fn sync_elsewhere(
        &mut self,
        tell: impl Fn(Durable) + Send + 'static,
    ) -> Result<(), JournalError> {
        let file = self
            .file
            .try_clone()
            .map_err(|error| JournalError::write(&self.path, error))?;
        let syncer = Syncer::start(file, self.path.clone(), tell)
            .map_err(|error| JournalError::write(&self.path, error))?;
        self.syncer = Some(syncer);
        Ok(())
    }

    /// When lines are synced to disk.
    pub fn syncing(&self) -> Syncing {
        self.syncing
    }

    /// Where the journal is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes a record and gives its line number.
    pub fn append(&mut self, record: &impl Serialize) -> Result<u64, JournalError> {
        write_line(record, self.lines + 1, &mut self.pending);
        self.lines += 1;
        if self.syncing == Syncing::Outcomes || self.pending.len() >= PIECE {
            self.flush()?;
        }
        Ok(self.lines)
    }

    /// Hands all lines to the kernel.
    pub fn flush(&mut self) -> Result<(), JournalError> {
        if let Some((kind, what)) = &self.broken {
            let error = io::Error::new(*kind, what.clone());
            self.pending.clear();
            return Err(JournalError::write(&self.path, error));
        }
        if self.pending.is_empty() {
            return Ok(());
        }
        // A file that was shortened is not written to: the line would follow a hole.
        let written = whole(&self.file, self.length).and_then(|()| {
            let written = self.file.write_all_at(&self.pending, self.length);
            if written.is_err() {
                // Leaves whole lines only. If this fails too, the next start cuts the incomplete line.
                let _ = self.file.set_len(self.length);
            }
            written
        });
        let length = self.pending.len() as u64;
        self.pending.clear();
        written.map_err(|error| {
            self.broken = Some((error.kind(), error.to_string()));
            JournalError::write(&self.path, error)
        })?;
        self.length += length;
        Ok(())
    }

    /// Requests a sync of everything written so far. Returns the last line if that is already durable (or, in virtual
    /// time, need not be). Otherwise the syncing thread reports it later.
    pub fn request_sync(&mut self) -> Result<Option<u64>, JournalError> {
        if self.syncing == Syncing::AtEnd {
            return Ok(Some(self.lines));
        }
        self.flush()?;
        match &self.syncer {
            Some(syncer) => {
                syncer.request(self.lines);
                Ok(None)
            }
            None => self.sync().map(|()| Some(self.lines)),
        }
    }

    /// Makes everything durable before it returns.
    pub fn sync(&mut self) -> Result<(), JournalError> {
        self.flush()?;
        let ended = || {
            if self.file.metadata()?.len() > self.length {
                // Another program appended this.
                self.file.set_len(self.length)?;
            }
            synced(&self.file, &self.path)
        };
        ended().map_err(|error| JournalError::write(&self.path, error))
    }

    /// Turns an error of the syncing thread into one of the journal.
    pub fn failed(&self, error: io::Error) -> JournalError {
        JournalError::write(&self.path, error)
    }
}

/// Syncs a file, and checks that it still is the one of this name: a journal that is gone must not cost a night of work.
fn synced(file: &File, path: &Path) -> io::Result<()> {
    file.sync_data()?;
    let is_same = match fs::symlink_metadata(path) {
        Ok(named) => {
            let ours = file.metadata()?;
            (named.dev(), named.ino()) == (ours.dev(), ours.ino())
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(gone("it was deleted during the run"));
        }
        // What cannot be looked at now may still be there: a journal on a network disk that is away for a moment.
        Err(_) => true,
    };
    if !is_same {
        return Err(gone("it was replaced during the run"));
    }
    Ok(())
}

/// Checks that a new journal takes no one's place, except that of an empty file.
fn replaceable(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
        Ok(found) if found.is_file() && found.len() == 0 => Ok(()),
        Ok(found) if found.is_symlink() => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "it is a symbolic link",
        )),
        Ok(_) => Err(io::ErrorKind::AlreadyExists.into()),
    }
}

/// Checks that nothing was cut off.
fn whole(file: &File, length: u64) -> io::Result<()> {
    if file.metadata()?.len() < length {
        return Err(gone("it was shortened during the run"));
    }
    Ok(())
}

fn gone(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, what)
}

/// The thread that syncs; ends when it is dropped.
#[derive(Debug)]
struct Syncer {
    requests: Option<mpsc::Sender<u64>>,
    thread: Option<JoinHandle<()>>,
}

impl Syncer {
    fn start(
        file: File,
        path: PathBuf,
        tell: impl Fn(Durable) + Send + 'static,
    ) -> io::Result<Self> {
        let (requests, inbox) = mpsc::channel::<u64>();
        let work = move || {
            // Every slot with an outcome waits for it, among all the processes that run here.
            captime_limit::wake_promptly();
            while let Ok(mut line) = inbox.recv() {
                while let Ok(later) = inbox.try_recv() {
                    line = later;
                }
                tell(synced(&file, &path).map(|()| line));
            }
        };
        let thread = std::thread::Builder::new()
            .name("journal-sync".into())
            .spawn(work)?;
        Ok(Self {
            requests: Some(requests),
            thread: Some(thread),
        })
    }

    fn request(&self, line: u64) {
        if let Some(requests) = &self.requests {
            // The thread ends only after this sender is gone.
            let _ = requests.send(line);
        }
    }
}

impl Drop for Syncer {
    fn drop(&mut self) {
        drop(self.requests.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
