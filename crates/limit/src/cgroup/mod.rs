//! Control groups: where they can be made ([`discovery`]), and how they are made and removed ([`lifecycle`]).

mod discovery;
mod lifecycle;

pub(super) use discovery::{Places, base_with_memory, lists, may_use, mounts, thaw};
pub use lifecycle::leave_shelter;
pub(super) use lifecycle::{CpuTime, Home, Leaf, OwnGroup, end_group, sweep_legacy};

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags, openat};

/// True for errors of the moment: what is missing is no property of the machine, so doing with less would hide it.
pub(super) fn is_shortage(errno: Option<i32>) -> bool {
    matches!(
        errno,
        Some(libc::EMFILE | libc::ENFILE | libc::ENOMEM | libc::ENOSPC | libc::EAGAIN)
    )
}

/// What worked, `None` for what this machine does not offer, and an error only for a shortage.
pub(super) fn unless_short<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if is_shortage(error.raw_os_error()) => Err(error),
        Err(_) => Ok(None),
    }
}

fn open_folder(at: BorrowedFd<'_>, name: &str) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    Ok(openat(at, name, flags, Mode::empty())?)
}

pub(super) fn open_file(at: BorrowedFd<'_>, name: &str, flags: OFlags) -> io::Result<OwnedFd> {
    Ok(openat(at, name, flags | OFlags::CLOEXEC, Mode::empty())?)
}

pub(super) fn write_file(at: BorrowedFd<'_>, name: &str, text: &str) -> io::Result<()> {
    let file = open_file(at, name, OFlags::WRONLY)?;
    rustix::io::write(&file, text.as_bytes())?;
    Ok(())
}

pub(super) fn read_file(at: BorrowedFd<'_>, name: &str) -> io::Result<String> {
    read_again(open_file(at, name, OFlags::RDONLY)?.as_fd())
}

/// Reads a (small) kernel file that is already open, from its beginning.
pub(super) fn read_again(file: BorrowedFd<'_>) -> io::Result<String> {
    let mut text = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let count = rustix::io::pread(file, &mut buffer, text.len() as u64)?;
        text.extend_from_slice(&buffer[..count]);
        if count < buffer.len() {
            return Ok(String::from_utf8_lossy(&text).into_owned());
        }
    }
}

/// The number after `key ` in a flat keyed file.
pub(super) fn keyed(text: &str, key: &str) -> Option<u64> {
    text.lines().find_map(|line| {
        let (name, value) = line.split_once(' ')?;
        (name == key).then(|| value.trim().parse().ok())?
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keyed_files_are_read() {
        let text = "usage_usec 12\nuser_usec 7\n";
        assert_eq!(keyed(text, "user_usec"), Some(7));
        assert_eq!(keyed(text, "usage"), None);
    }
}
