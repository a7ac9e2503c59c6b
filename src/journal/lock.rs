//! Only one captime at a time may write to a run's folder.
//!
//! The lock is an open-file-description lock. NFS servers honour it too, and it ends with its process, however that
//! dies. The lock file holds host and process, to name the holder, and to decide if a file system has no locks.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, fcntl};

use super::JournalError;
use crate::regular_file;

/// The lock file's name in a run's folder.
const FILE: &str = "lock";

/// Held while a captime writes to a run's folder.
#[derive(Debug)]
pub struct RunLock {
    file: File,
    path: PathBuf,
}

impl RunLock {
    /// Takes the lock of this folder, or names the process that has it.
    pub fn take(folder: &Path) -> Result<Self, JournalError> {
        let ask = |file: &File| fcntl(file, FcntlArg::F_OFD_SETLK(&whole_file(libc::F_WRLCK)));
        Self::take_by(folder, |file| ask(file).map(drop))
    }

    /// The same, with another answer of the file system.
    fn take_by(
        folder: &Path,
        ask: impl FnOnce(&File) -> Result<(), Errno>,
    ) -> Result<Self, JournalError> {
        let path = folder.join(FILE);
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let file = regular_file::open_own(&path, &mut options)
            .map_err(|error| JournalError::write(&path, error))?;
        let mut holder = String::new();
        // The text only serves to name the holder.
        let _ = (&file).take(1000).read_to_string(&mut holder);
        let holder = holder.trim().to_owned();
        let (is_taken, is_certain) = match ask(&file) {
            Ok(()) => (false, true),
            Err(Errno::EAGAIN | Errno::EACCES) => (true, true),
            Err(Errno::ENOLCK | Errno::ENOTSUP | Errno::ENOSYS | Errno::EINVAL) => {
                (is_alive(&holder), false)
            }
            Err(error) => return Err(JournalError::write(&path, error.into())),
        };
        if is_taken {
            let holder = if holder.is_empty() {
                "of unknown process".into()
            } else {
                holder
            };
            return Err(JournalError::Locked {
                folder: folder.to_owned(),
                holder,
                is_certain,
            });
        }
        let lock = Self { file, path };
        lock.write(&format!("{}\n", myself()))?;
        Ok(lock)
    }

    /// Which process is writing to this folder now, if any. Does not take the lock.
    pub fn holder(folder: &Path) -> Option<String> {
        let file =
            regular_file::open_own(&folder.join(FILE), OpenOptions::new().read(true)).ok()?;
        let mut holder = String::new();
        (&file).take(1000).read_to_string(&mut holder).ok()?;
        let holder = holder.trim();
        let mut found = whole_file(libc::F_WRLCK);
        let is_held = match fcntl(&file, FcntlArg::F_OFD_GETLK(&mut found)) {
            Ok(_) => i32::from(found.l_type) != libc::F_UNLCK,
            Err(_) => is_alive(holder),
        };
        is_held.then(|| holder.to_owned())
    }

    fn write(&self, text: &str) -> Result<(), JournalError> {
        let mut file = &self.file;
        file.set_len(0)
            .and_then(|()| file.seek(SeekFrom::Start(0)))
            .and_then(|_| file.write_all(text.as_bytes()))
            .map_err(|error| JournalError::write(&self.path, error))
    }
}

impl Drop for RunLock {
    fn drop(&mut self) {
        // For file systems without locks, where the text decides. The lock itself ends with the descriptor.
        let _ = self.file.set_len(0);
    }
}

fn whole_file(kind: i32) -> libc::flock {
    libc::flock {
        l_type: kind as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: 0,
        l_len: 0,
        l_pid: 0,
    }
}

fn myself() -> String {
    format!("process {} on {}", std::process::id(), host())
}

fn host() -> String {
    sysinfo::System::host_name().unwrap_or_default()
}

/// Whether the process that this text names may still be running. On another host it may be, so true.
fn is_alive(holder: &str) -> bool {
    let mut words = holder.split_whitespace();
    let (Some("process"), Some(process), Some("on"), Some(on)) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return false;
    };
    on != host() || Path::new("/proc").join(process).exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_is_refused_and_learns_who_has_it() {
        let folder = tempfile::tempdir().unwrap();
        let first = RunLock::take(folder.path()).unwrap();
        let refused = RunLock::take(folder.path()).unwrap_err();
        let message = refused.to_string();
        assert!(
            message.contains(&format!("process {}", std::process::id())),
            "{message}"
        );
        let holder = RunLock::holder(folder.path()).unwrap();
        assert_eq!(holder, myself());
        drop(first);
        assert_eq!(RunLock::holder(folder.path()), None);
        RunLock::take(folder.path()).unwrap();
    }

    /// A run's folder that two hosts share, on a file system without locks.
    #[test]
    fn without_locks_a_run_of_another_host_is_refused_until_its_lock_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let take = || RunLock::take_by(folder.path(), |_| Err(Errno::ENOLCK));
        let path = folder.path().join(FILE);
        std::fs::write(&path, "process 12 on alpha\n").unwrap();
        let refused = take().unwrap_err();
        let message = refused.to_string();
        assert!(message.contains("process 12 on alpha"), "{message}");
        let hint = refused.hint().unwrap();
        assert!(
            hint.contains(&format!("remove `{}`", path.display())),
            "{hint}"
        );
        std::fs::remove_file(&path).unwrap();
        // The text of one that ended normally is empty, and one of this host that was killed is known to be gone.
        drop(take().unwrap());
        std::fs::write(&path, format!("process 999999999 on {}\n", host())).unwrap();
        let first = take().unwrap();
        assert!(matches!(take(), Err(JournalError::Locked { .. })));
        drop(first);
    }

    #[test]
    fn without_locks_the_text_decides() {
        assert!(!is_alive(""));
        assert!(is_alive(&myself()));
        assert!(!is_alive(&format!("process 999999999 on {}", host())));
        assert!(is_alive("process 1 on some-other-host"));
    }
}
