//! Only regular files are read and written, and none is read that gzip has compressed. A pipe would hang, a device would never end.

use std::fs::{File, OpenOptions};
use std::io::{Error, ErrorKind, Read as _, Result};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

/// The first bytes of a file that gzip has compressed.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Opens a regular file to read it. Anything else is an error, without waiting.
pub(crate) fn open(path: &Path) -> Result<File> {
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(path)?;
    let file = regular(file)?;
    refuse_gzip(&file)?;
    Ok(file)
}

/// Opens a file that captime writes itself, private if it is new. A symbolic link is an error, wherever it leads.
pub(crate) fn open_own(path: &Path, options: &mut OpenOptions) -> Result<File> {
    let opened = options
        .mode(0o600)
        .custom_flags(libc::O_NONBLOCK | libc::O_NOFOLLOW)
        .open(path);
    match opened {
        Ok(file) => regular(file),
        Err(error) => Err(match error.raw_os_error() {
            Some(libc::ELOOP) => Error::new(ErrorKind::InvalidInput, "it is a symbolic link"),
            Some(libc::ENXIO) => not_regular(),
            _ => error,
        }),
    }
}

/// A compressed table would only be called a table with strange columns.
fn refuse_gzip(file: &File) -> Result<()> {
    let mut start = [0; 2];
    match file.read_exact_at(&mut start, 0) {
        Ok(()) if start == GZIP => Err(Error::new(
            ErrorKind::InvalidData,
            "it is compressed with gzip; unpack it with `gunzip --keep` and name the unpacked file",
        )),
        _ => Ok(()),
    }
}

/// Reads a regular file of at most `most` bytes.
pub(crate) fn read(path: &Path, most: u64) -> Result<Vec<u8>> {
    let mut bytes = vec![];
    open(path)?
        .take(most.saturating_add(1))
        .read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(Error::new(ErrorKind::FileTooLarge, "file too large"));
    }
    Ok(bytes)
}

fn regular(file: File) -> Result<File> {
    let kind = file.metadata()?.file_type();
    if kind.is_file() {
        Ok(file)
    } else if kind.is_dir() {
        Err(ErrorKind::IsADirectory.into())
    } else {
        Err(not_regular())
    }
}

fn not_regular() -> Error {
    Error::new(ErrorKind::InvalidInput, "not a regular file")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_compressed_file_says_how_to_unpack_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("data.csv.gz");
        std::fs::write(&file, [0x1f, 0x8b, 8, 0]).unwrap();
        let said = open(&file).unwrap_err().to_string();
        assert!(said.contains("gunzip"), "{said}");
        for text in ["", "x", "x,y\n"] {
            std::fs::write(&file, text).unwrap();
            assert_eq!(read(&file, 10).unwrap(), text.as_bytes());
        }
    }
}
