//! A fresh scratch folder for each round, removed afterwards.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::round::Round;

/// The scratch folder of one round. Its content is removed with it.
#[derive(Debug)]
pub(super) struct Scratch {
    path: PathBuf,
}

impl Scratch {
    /// Where the folder of a round is.
    pub(super) fn folder(parent: &Path, round: Round) -> PathBuf {
        parent.join(format!("round-{round}"))
    }

    pub(super) fn make(parent: &Path, round: Round) -> io::Result<Self> {
        let path = Self::folder(parent, round);
        // Left by a captime that was killed in this very round.
        if path.exists() {
            remove(&path)?;
        }
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&path)?;
        Ok(Self { path })
    }

    /// Puts a file next to the folder's content, for the command to read.
    pub(super) fn write(&self, name: &str, text: &str) -> io::Result<PathBuf> {
        let path = self.path.join(name);
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)?;
        file.write_all(text.as_bytes())?;
        Ok(path)
    }

    /// Removes it; what cannot be removed is left to the next start.
    pub(super) async fn remove(self) {
        let path = self.path;
        let _ = tokio::task::spawn_blocking(move || remove(&path)).await;
    }
}

/// Whether the disk of this folder has no room for another file.
pub(super) fn is_full(folder: &Path) -> bool {
    let room = rustix::fs::statvfs(folder);
    room.is_ok_and(|room| room.f_bavail == 0 || (room.f_files > 0 && room.f_favail == 0))
}

/// Removes a folder, even if it denies access to its owner.
fn remove(path: &Path) -> io::Result<()> {
    fs::remove_dir_all(path).or_else(|_| {
        allow(path);
        fs::remove_dir_all(path)
    })
}

fn allow(folder: &Path) {
    use std::os::unix::fs::PermissionsExt;
    let _ = fs::set_permissions(folder, fs::Permissions::from_mode(0o700));
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            allow(&entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_scratch_folder_is_fresh_and_private_and_goes_away() {
        let parent = tempfile::tempdir().unwrap();
        let left = parent.path().join("round-3").join("deep");
        fs::create_dir_all(&left).unwrap();
        fs::set_permissions(&left, fs::Permissions::from_mode(0o000)).unwrap();
        let scratch = Scratch::make(parent.path(), Round(3)).unwrap();
        assert_eq!(fs::read_dir(&scratch.path).unwrap().count(), 0);
        assert_eq!(
            fs::metadata(&scratch.path).unwrap().permissions().mode() & 0o777,
            0o700
        );
        scratch.write("stdin", "text").unwrap();
        remove(&scratch.path).unwrap();
        assert!(!parent.path().join("round-3").exists());
    }
}
