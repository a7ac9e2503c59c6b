//! Reads the lines of a journal, finished or still growing.

use std::fs::File;
use std::io::{BufRead, BufReader, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use super::record::read_line;
use super::seal::{claimed_version, verify};
use super::{FILE, Header, JournalError, Record, VERSION};
use crate::regular_file;

/// What is wrong with a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Damage {
    /// It does not end in a CRC.
    #[error("is not a whole record")]
    Unsealed,
    /// Its CRC does not match its bytes.
    #[error("was changed after it was written (its CRC does not match)")]
    Changed,
    /// Its number does not match its position.
    #[error("has number {number}: lines are missing or repeated")]
    Misplaced {
        /// The number it has.
        number: u64,
    },
    /// Whole, but of an unknown type.
    #[error("has an unknown record type")]
    Unreadable,
}

/// A megabyte at a time: a million rounds are 200 MB.
const BUFFER: usize = 1 << 20;

/// Gives the records of a journal in order, as far as it has been written.
#[derive(Debug)]
pub struct Reader {
    path: PathBuf,
    input: BufReader<File>,
    header: Header,
    line: Vec<u8>,
    /// Lines read and found whole.
    lines: u64,
    /// Bytes they take.
    whole: u64,
    /// Whether something that is not a whole line follows them.
    is_torn: bool,
}

impl Reader {
    /// Opens the journal of the run in `folder`.
    pub fn open(folder: &Path) -> Result<Self, JournalError> {
        let path = folder.join(FILE);
        let file = regular_file::open(&path).map_err(|error| JournalError::read(&path, error))?;
        let mut input = BufReader::with_capacity(BUFFER, file);
        let mut line = vec![];
        input
            .read_until(b'\n', &mut line)
            .map_err(|error| JournalError::read(&path, error))?;
        if line.is_empty() {
            return Err(JournalError::Empty { path });
        }
        if line.pop() != Some(b'\n') {
            return Err(JournalError::NoLine { path });
        }
        if let Some(found) = claimed_version(&line).filter(|&found| found > VERSION) {
            return Err(JournalError::Newer { path, found });
        }
        let header = match verify(&line, 1).and_then(|()| read_line(&line)) {
            Ok(Record::Header(header)) => *header,
            Ok(_) => {
                return Err(JournalError::Damaged {
                    path,
                    line: 1,
                    damage: Damage::Unreadable,
                });
            }
            Err(damage) => {
                return Err(JournalError::Damaged {
                    path,
                    line: 1,
                    damage,
                });
            }
        };
        let whole = line.len() as u64 + 1;
        Ok(Self {
            path,
            input,
            header,
            line,
            lines: 1,
            whole,
            is_torn: false,
        })
    }

    /// The first line.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Where the journal is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Lines given so far, the header included.
    pub fn lines(&self) -> u64 {
        self.lines
    }

    /// Bytes of the lines given so far.
    pub fn whole(&self) -> u64 {
        self.whole
    }

    /// Whether the last `next` stopped before the end of the file, at something that is not a whole line: the line
    /// being written right now, or the incomplete last line of a run that was killed.
    pub fn is_torn(&self) -> bool {
        self.is_torn
    }

    /// The next record, or `None` if there is no further whole line yet. Call it again while the journal grows.
    #[expect(
        clippy::should_implement_trait,
        reason = "it lends from its buffer and may fail"
    )]
    pub fn next(&mut self) -> Result<Option<Record<'_>>, JournalError> {
        if self.is_torn {
            self.rewind()?;
        }
        if !self.read()? {
            self.is_torn = !self.line.is_empty();
            return Ok(None);
        }
        let number = self.lines + 1;
        if let Err(damage) = verify(&self.line, number) {
            // Only the last line may be incomplete. A whole line after it means that the file was damaged later.
            while self.read()? {
                if is_sealed(&self.line) {
                    return Err(JournalError::Damaged {
                        path: self.path.clone(),
                        line: number,
                        damage,
                    });
                }
            }
            self.is_torn = true;
            return Ok(None);
        }
        self.lines = number;
        self.whole += self.line.len() as u64 + 1;
        let read = read_line(&self.line).map_err(|damage| JournalError::Damaged {
            path: self.path.clone(),
            line: number,
            damage,
        });
        read.map(Some)
    }

    /// Reads a line without its newline. False if the newline is not there yet, with as much as there is.
    fn read(&mut self) -> Result<bool, JournalError> {
        self.line.clear();
        self.input
            .read_until(b'\n', &mut self.line)
            .map_err(|error| JournalError::read(&self.path, error))?;
        if self.line.last() == Some(&b'\n') {
            self.line.pop();
            return Ok(true);
        }
        Ok(false)
    }

    /// Goes back to the end of the last whole line, to read again what follows it.
    fn rewind(&mut self) -> Result<(), JournalError> {
        self.is_torn = false;
        self.input
            .seek(SeekFrom::Start(self.whole))
            .map(|_| ())
            .map_err(|error| JournalError::read(&self.path, error))
    }
}

/// Whether this is a record of any number.
fn is_sealed(line: &[u8]) -> bool {
    !matches!(verify(line, 0), Err(Damage::Unsealed | Damage::Changed))
}
