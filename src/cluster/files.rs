//! Files that must exist, and be the same, on every node.

use std::io::Read;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// Instances and programs up to this size are compared by content, larger ones by their size.
pub const HASHED: u64 = 64 << 20;

/// A file where the orchestrator runs, to compare with the one on a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileMark {
    /// Where it is.
    pub path: PathBuf,
    /// Its size in bytes.
    pub size: u64,
    /// BLAKE3 of its content, unless it is large.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash: Option<String>,
}

impl FileMark {
    /// Describes a plain file, with its content if it has at most this many bytes. `None` if there is no such file here.
    pub fn of(path: &Path, hashed: u64) -> Option<Self> {
        let path = std::path::absolute(path).ok()?;
        let meta = std::fs::metadata(&path).ok()?;
        let hash = || hash(&path).ok();
        meta.is_file().then(|| Self {
            size: meta.len(),
            hash: (meta.len() <= hashed).then(hash).flatten(),
            path: path.clone(),
        })
    }

    /// What is wrong with the file on this machine, if anything.
    pub fn fault(&self) -> Option<String> {
        let shown = self.path.display();
        let meta = match std::fs::metadata(&self.path) {
            Ok(meta) => meta,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Some(format!("`{shown}` is missing"));
            }
            Err(error) => return Some(format!("cannot read `{shown}`: {error}")),
        };
        let is_other = meta.len() != self.size
            || match &self.hash {
                Some(wanted) => match hash(&self.path) {
                    Ok(found) => found != *wanted,
                    Err(error) => return Some(format!("cannot read `{shown}`: {error}")),
                },
                None => false,
            };
        is_other.then(|| format!("`{shown}` differs from the one where captime was started"))
    }
}

fn hash(path: &Path) -> std::io::Result<String> {
    let mut file = std::fs::File::open(path)?;
    let mut hasher = blake3::Hasher::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hasher.finalize().to_hex().to_string()),
            count => hasher.update(&buffer[..count]),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_missing_or_different_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.cnf");
        assert_eq!(FileMark::of(&path, HASHED), None);
        std::fs::write(&path, "p cnf 1 1").unwrap();
        let mark = FileMark::of(&path, HASHED).unwrap();
        assert_eq!(mark.fault(), None);
        std::fs::write(&path, "p cnf 2 1").unwrap();
        assert!(mark.fault().unwrap().contains("differs"));
        // A large file is known by its size alone.
        let mark = FileMark::of(&path, 8).unwrap();
        assert_eq!(mark.hash, None);
        std::fs::write(&path, "p cnf 3 1").unwrap();
        assert_eq!(mark.fault(), None);
        std::fs::remove_file(&path).unwrap();
        assert!(mark.fault().unwrap().contains("missing"));
        assert_eq!(
            FileMark::of(folder.path(), HASHED),
            None,
            "a folder is no file"
        );
    }
}
