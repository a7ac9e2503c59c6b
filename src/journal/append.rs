//! Writing lines: by the loop itself, whole lines at a time; syncing happens on a thread of its own.
//!
//! A write reaches the kernel before it returns, so a killed captime loses nothing. What must survive a power cut too,
//! the outcomes, is waited for: everything written when a sync begins is covered by it, so outcomes that arrive during
//! one share the next.
//!
//! Lines are written at the place we know to be the end of ours, not at the end of the file: what a target appends to the
//! file is overwritten by the next line, where it would otherwise be damage in the middle for ever.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread::JoinHandle;

use serde::Serialize;

use super::record::write_line;
use super::{FILE, Header, JournalError, Reader};

/// When lines reach the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Syncing {
    /// Each outcome before the policy learns from it.
    Outcomes,
    /// Once, at the end: virtual targets, whose rounds cost nothing to repeat.
    AtEnd,
}

/// How far the journal is on disk: the number of the last line, or why it is not.
pub type Durable = Result<u64, io::Error>;

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
    /// After a failed write nothing more is written: what follows would stand after a gap.
    is_broken: bool,
}

impl Appender {
    /// Starts the journal of a new run in `folder`, which exists; its header is on disk when this returns.
    pub fn create(folder: &Path, header: &Header, syncing: Syncing) -> Result<Self, JournalError> {
        let path = folder.join(FILE);
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&path)
            .map_err(|error| JournalError::write(&path, error))?;
        let mut new = Self::over(file, path, syncing, 0, 0);
        new.append(header)?;
        new.sync()?;
        // The file's name must survive as well.
        let folder = File::open(folder).and_then(|folder| folder.sync_all());
        folder.map_err(|error| JournalError::write(&new.path, error))?;
        Ok(new)
    }

    /// Goes on with a journal that `reader` has read to its end, cutting off a torn tail.
    pub fn resume(reader: &Reader, syncing: Syncing) -> Result<Self, JournalError> {
        let path = reader.path().to_owned();
        let open = OpenOptions::new().write(true).open(&path);
        let file = open.map_err(|error| JournalError::write(&path, error))?;
        file.set_len(reader.whole())
            .map_err(|error| JournalError::write(&path, error))?;
        Ok(Self::over(
            file,
            path,
            syncing,
            reader.whole(),
            reader.lines(),
        ))
    }

    fn over(file: File, path: PathBuf, syncing: Syncing, length: u64, lines: u64) -> Self {
        Self {
            file,
            path,
            syncing,
            length,
            lines,
            pending: vec![],
            syncer: None,
            is_broken: false,
        }
    }

    /// Has syncs done on a thread of their own, which reports through `tell` after each.
    pub fn sync_elsewhere(
        &mut self,
        tell: impl Fn(Durable) + Send + 'static,
    ) -> Result<(), JournalError> {
        let file = self
            .file
            .try_clone()
            .map_err(|error| JournalError::write(&self.path, error))?;
        let syncer =
            Syncer::start(file, tell).map_err(|error| JournalError::write(&self.path, error))?;
        self.syncer = Some(syncer);
        Ok(())
    }

    /// When lines reach the disk.
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
        if self.is_broken || self.pending.is_empty() {
            return Ok(());
        }
        // Our line would stand behind a hole.
        let intact = whole(&self.file, self.length);
        intact.map_err(|error| {
            self.is_broken = true;
            JournalError::write(&self.path, error)
        })?;
        match self.file.write_all_at(&self.pending, self.length) {
            Ok(()) => {
                self.length += self.pending.len() as u64;
                self.pending.clear();
                Ok(())
            }
            Err(error) => {
                self.is_broken = true;
                self.pending.clear();
                // Leaves whole lines only; if this fails too, the next start cuts the torn tail.
                let _ = self.file.set_len(self.length);
                Err(JournalError::write(&self.path, error))
            }
        }
    }

    /// Asks for everything written so far to be made durable; the syncing thread tells when it is.
    ///
    /// Without such a thread it is done here and now.
    pub fn request_sync(&mut self) -> Result<(), JournalError> {
        self.flush()?;
        match &self.syncer {
            Some(syncer) => {
                syncer.request(self.lines);
                Ok(())
            }
            None => self.sync(),
        }
    }

    /// Makes everything durable before it returns.
    pub fn sync(&mut self) -> Result<(), JournalError> {
        self.flush()?;
        if self.is_broken {
            return Ok(());
        }
        let ended = || {
            if self.file.metadata()?.len() > self.length {
                // Somebody else's: ours ends here.
                self.file.set_len(self.length)?;
            }
            synced(&self.file)
        };
        ended().map_err(|error| JournalError::write(&self.path, error))
    }

    /// An error of the syncing thread, as one of the journal.
    pub fn failed(&self, error: io::Error) -> JournalError {
        JournalError::write(&self.path, error)
    }
}

/// Brings a file to disk, and makes sure that it can be found there: whoever deletes it must not cost us a night.
fn synced(file: &File) -> io::Result<()> {
    file.sync_data()?;
    if file.metadata()?.nlink() == 0 {
        return Err(gone("it was deleted while the run went on"));
    }
    Ok(())
}

/// Makes sure that nobody has cut off what we wrote.
fn whole(file: &File, length: u64) -> io::Result<()> {
    if file.metadata()?.len() < length {
        return Err(gone("it was shortened while the run went on"));
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
    fn start(file: File, tell: impl Fn(Durable) + Send + 'static) -> io::Result<Self> {
        let (requests, inbox) = mpsc::channel::<u64>();
        let work = move || {
            while let Ok(mut line) = inbox.recv() {
                while let Ok(later) = inbox.try_recv() {
                    line = later;
                }
                tell(synced(&file).map(|()| line));
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
