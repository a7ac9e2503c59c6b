//! Control groups: where ours may be made, one fresh leaf per run, and the removal of what a killed captime left.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags, flock, mkdirat, openat, unlinkat};

use super::clock::Instant;

/// Every group of ours is called this, then a process number and a moment.
const PREFIX: &str = "captime-";
/// Where captime itself goes when its own group must have no processes; shared, so never killed.
const SHELTER: &str = "captime.shelter";

/// The groups this process is in, as folders.
#[derive(Debug, Clone, Default)]
pub(super) struct Places {
    /// Our group in the cgroup2 hierarchy.
    pub unified: Option<PathBuf>,
    /// Where that hierarchy is mounted.
    pub unified_mount: Option<PathBuf>,
    /// Our group in the v1 memory hierarchy, on machines that have one.
    pub memory: Option<PathBuf>,
}

impl Places {
    /// Fails only for want of descriptors or memory, which says nothing about the machine.
    pub(super) fn locate() -> io::Result<Self> {
        let read = |path| unless_short(read_file(rustix::fs::CWD, path));
        let membership = read("/proc/self/cgroup")?.unwrap_or_default();
        let mounts = read("/proc/self/mountinfo")?.unwrap_or_default();
        Ok(Self::parse(&membership, &mounts))
    }

    fn parse(membership: &str, mounts: &str) -> Self {
        let mut places = Self::default();
        for line in membership.lines() {
            let mut parts = line.splitn(3, ':');
            let (Some(_), Some(controllers), Some(group)) =
                (parts.next(), parts.next(), parts.next())
            else {
                continue;
            };
            if controllers.is_empty() {
                if let Some((mount, folder)) = mounted(mounts, "cgroup2", None, group) {
                    places.unified = Some(folder);
                    places.unified_mount = Some(mount);
                }
            } else if controllers.split(',').any(|name| name == "memory") {
                places.memory =
                    mounted(mounts, "cgroup", Some("memory"), group).map(|(_, folder)| folder);
            }
        }
        places
    }
}

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

/// The mount point of a hierarchy and the folder of `group` below it.
fn mounted(
    mounts: &str,
    kind: &str,
    controller: Option<&str>,
    group: &str,
) -> Option<(PathBuf, PathBuf)> {
    mounts.lines().find_map(|line| {
        let (left, right) = line.split_once(" - ")?;
        let mut right = right.split(' ');
        if right.next()? != kind {
            return None;
        }
        let options = right.nth(1)?;
        if controller.is_some_and(|wanted| options.split(',').all(|option| option != wanted)) {
            return None;
        }
        let mut left = left.split(' ').skip(3);
        let (root, point) = (unescape(left.next()?), unescape(left.next()?));
        let below = Path::new(group).strip_prefix(&root).ok()?;
        let point = PathBuf::from(point);
        let folder = if below.as_os_str().is_empty() {
            point.clone()
        } else {
            point.join(below)
        };
        Some((point, folder))
    })
}

/// Undoes the octal escapes of mountinfo.
fn unescape(text: &str) -> OsString {
    let bytes = text.as_bytes();
    let mut plain = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let code = bytes
            .get(at + 1..at + 4)
            .filter(|_| bytes[at] == b'\\')
            .and_then(|digits| u8::from_str_radix(str::from_utf8(digits).ok()?, 8).ok());
        plain.push(code.unwrap_or(bytes[at]));
        at += if code.is_some() { 4 } else { 1 };
    }
    OsString::from_vec(plain)
}

fn open_folder(at: BorrowedFd<'_>, name: &str) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
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
fn read_again(file: BorrowedFd<'_>) -> io::Result<String> {
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

/// A folder of groups that belongs to one supervisor, for as long as that lives.
///
/// The lock on it is what tells others that it is in use; the kernel drops the lock with the process.
#[derive(Debug)]
pub(super) struct Home {
    folder: OwnedFd,
    path: PathBuf,
    runs: u64,
}

impl Home {
    /// Makes a folder of ours below `base` and removes those of captimes that are no longer alive.
    pub(super) fn create(base: &Path) -> io::Result<Self> {
        sweep_unified(base);
        let (folder, path) = make_locked(base)?;
        Ok(Self {
            folder,
            path,
            runs: 0,
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn folder(&self) -> BorrowedFd<'_> {
        self.folder.as_fd()
    }

    /// A fresh group for one run.
    pub(super) fn leaf(&mut self) -> io::Result<Leaf> {
        self.runs += 1;
        let name = format!("run-{}", self.runs);
        mkdirat(&self.folder, &name, Mode::from_raw_mode(0o755))?;
        let opened = open_folder(self.folder(), &name).and_then(|folder| {
            let cpu = open_file(folder.as_fd(), "cpu.stat", OFlags::RDONLY)?;
            let events = open_file(folder.as_fd(), "cgroup.events", OFlags::RDONLY)?;
            let kill = open_file(folder.as_fd(), "cgroup.kill", OFlags::WRONLY)?;
            Ok((folder, cpu, events, kill))
        });
        match opened {
            Ok((folder, cpu, events, kill)) => Ok(Leaf {
                name,
                folder,
                cpu,
                events,
                kill,
            }),
            Err(error) => {
                let _ = unlinkat(&self.folder, &name, AtFlags::REMOVEDIR);
                Err(error)
            }
        }
    }

    /// Removes the group of a run that has ended.
    pub(super) fn discard(&self, leaf: Leaf) {
        if unlinkat(&self.folder, &leaf.name, AtFlags::REMOVEDIR).is_err() {
            remove_below(&self.path.join(&leaf.name));
        }
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        if rustix::fs::rmdir(&self.path).is_err() {
            end_group(&self.path);
        }
    }
}

/// The group of one run; its processes are born in it.
#[derive(Debug)]
pub(super) struct Leaf {
    name: String,
    folder: OwnedFd,
    cpu: OwnedFd,
    events: OwnedFd,
    /// Open from the start: in an emergency nothing must be needed to use it.
    kill: OwnedFd,
}

/// CPU time of a group, all descendants included, also those long gone.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct CpuTime {
    pub total: Duration,
    pub user: Duration,
    pub system: Duration,
}

impl Leaf {
    pub(super) fn folder(&self) -> BorrowedFd<'_> {
        self.folder.as_fd()
    }

    /// Ends every process in the group, atomically with respect to forks.
    pub(super) fn kill(&self) {
        let _ = rustix::io::write(&self.kill, b"1");
    }

    pub(super) fn is_populated(&self) -> bool {
        read_again(self.events.as_fd()).is_ok_and(|text| keyed(&text, "populated") == Some(1))
    }

    pub(super) fn cpu_time(&self) -> CpuTime {
        let text = read_again(self.cpu.as_fd()).unwrap_or_default();
        let micros = |key| Duration::from_micros(keyed(&text, key).unwrap_or(0));
        CpuTime {
            total: micros("usage_usec"),
            user: micros("user_usec"),
            system: micros("system_usec"),
        }
    }

    /// The processes in the group itself.
    pub(super) fn processes(&self) -> Vec<i32> {
        read_file(self.folder(), "cgroup.procs")
            .unwrap_or_default()
            .lines()
            .filter_map(|line| line.parse().ok())
            .collect()
    }
}

/// Removes a group and all below it; what is populated stays.
fn remove_below(path: &Path) {
    for entry in fs::read_dir(path).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove_below(&entry.path());
        }
    }
    let _ = fs::remove_dir(path);
}

/// Ends everything in a group of ours and removes it, waiting at most a second for the dying.
pub(super) fn end_group(path: &Path) {
    let start = Instant::now();
    loop {
        if fs::read_to_string(path.join("cgroup.events"))
            .is_ok_and(|text| keyed(&text, "populated") == Some(1))
        {
            let _ = fs::write(path.join("cgroup.kill"), "1");
        }
        remove_below(path);
        if !path.exists() || Instant::now().since(start) > Duration::from_secs(1) {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A name no other group has.
pub(super) fn fresh_name(base: &Path) -> PathBuf {
    let pid = rustix::process::getpid().as_raw_nonzero();
    let moment = super::sys::monotonic().as_nanos();
    base.join(format!("{PREFIX}{pid}-{moment}"))
}

/// Makes a group of ours below `base`, marked as in use for as long as the descriptor is open.
pub(super) fn make_locked(base: &Path) -> io::Result<(OwnedFd, PathBuf)> {
    // Somebody who sweeps may take a folder that is not locked yet for a stale one, and remove it: then we make another.
    for _ in 0..64 {
        let path = fresh_name(base);
        rustix::fs::mkdir(&path, Mode::from_raw_mode(0o755))?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = match rustix::fs::open(&path, flags, Mode::empty()) {
            Ok(folder) => folder,
            Err(rustix::io::Errno::NOENT) => continue,
            Err(error) => {
                let _ = rustix::fs::rmdir(&path);
                return Err(error.into());
            }
        };
        match lock(folder.as_fd()) {
            Ok(()) if path.exists() => return Ok((folder, path)),
            // Whoever has the lock removes the folder.
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => {
                let _ = rustix::fs::rmdir(&path);
                return Err(error);
            }
        }
    }
    Err(io::Error::from_raw_os_error(libc::EAGAIN))
}

/// Marks a group as in use for as long as the descriptor is open; fails if somebody else has.
fn lock(folder: BorrowedFd<'_>) -> io::Result<()> {
    Ok(flock(folder, FlockOperation::NonBlockingLockExclusive)?)
}

/// Ends and removes groups whose captime is no longer alive.
pub(super) fn sweep_unified(base: &Path) {
    sweep(base, end_group);
}

/// Removes v1 groups whose captime is no longer alive.
pub(super) fn sweep_legacy(base: &Path) {
    sweep(base, |path| {
        let _ = fs::remove_dir(path);
    });
}

/// Ends groups in `base` whose captime is no longer alive.
fn sweep(base: &Path, end: impl Fn(&Path)) {
    for entry in fs::read_dir(base).into_iter().flatten().flatten() {
        let name = entry.file_name();
        if !name.as_encoded_bytes().starts_with(PREFIX.as_bytes()) {
            continue;
        }
        let Ok(folder) = fs::File::open(entry.path()) else {
            continue;
        };
        if lock(folder.as_fd()).is_ok() {
            end(&entry.path());
        }
    }
    // Only goes if nobody is in it.
    let _ = fs::remove_dir(base.join(SHELTER));
}

/// True if we may make groups below `group` and put processes there.
pub(super) fn may_use(group: &Path) -> io::Result<()> {
    use rustix::fs::{Access, access};
    access(group, Access::WRITE_OK | Access::EXEC_OK)?;
    access(group.join("cgroup.procs"), Access::WRITE_OK)?;
    Ok(())
}

pub(super) fn lists(group: &Path, file: &str, controller: &str) -> io::Result<bool> {
    let text = unless_short(fs::read_to_string(group.join(file)))?;
    Ok(text.is_some_and(|text| text.split_ascii_whitespace().any(|name| name == controller)))
}

/// The nearest group at or above our own where groups of ours get the v2 memory controller.
///
/// Own group first; where it holds nothing but captimes, these move into a group of their own below it, since cgroup2
/// wants processes in leaves only.
pub(super) fn base_with_memory(places: &Places) -> io::Result<Option<PathBuf>> {
    let (Some(own), Some(mount)) = (&places.unified, &places.unified_mount) else {
        return Ok(None);
    };
    for group in own.ancestors().take_while(|group| group.starts_with(mount)) {
        if may_use(group).is_err() {
            continue;
        }
        if lists(group, "cgroup.subtree_control", "memory")? {
            return Ok(Some(group.to_owned()));
        }
        if group == own && lists(group, "cgroup.controllers", "memory")? {
            let enable = || {
                let enabled = fs::write(group.join("cgroup.subtree_control"), "+memory");
                unless_short(enabled).map(|enabled| enabled.is_some())
            };
            if enable()? || (shelter_captimes(group) && enable()?) {
                return Ok(Some(group.to_owned()));
            }
        }
    }
    Ok(None)
}

/// Moves the captimes in `group` into a group below it; false if others live there too.
fn shelter_captimes(group: &Path) -> bool {
    let program = |pid: &str| fs::read_link(format!("/proc/{pid}/exe")).ok();
    let Some(ours) = program("self") else {
        return false;
    };
    let members = fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
    if members.is_empty()
        || !members
            .lines()
            .all(|pid| program(pid).as_ref() == Some(&ours))
    {
        return false;
    }
    let shelter = group.join(SHELTER);
    let _ = fs::create_dir(&shelter);
    members
        .lines()
        .all(|pid| fs::write(shelter.join("cgroup.procs"), pid).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    const HYBRID: &str = "30 20 0:26 / /sys/fs/cgroup/memory rw shared:9 - cgroup cgroup rw,memory\n\
        31 20 0:27 / /sys/fs/cgroup/uni\\040fied rw - cgroup2 cgroup2 rw\n";

    #[test]
    fn groups_are_found_on_hybrid_machines() {
        let places = Places::parse("4:memory:/a/b\n0::/\n", HYBRID);
        assert_eq!(places.memory, Some("/sys/fs/cgroup/memory/a/b".into()));
        assert_eq!(places.unified, Some("/sys/fs/cgroup/uni fied".into()));
    }

    #[test]
    fn a_mount_of_a_part_of_the_hierarchy_is_honoured() {
        let mounts = "31 20 0:27 /docker/x /sys/fs/cgroup ro - cgroup2 cgroup2 rw\n";
        let places = Places::parse("0::/docker/x/inner\n", mounts);
        assert_eq!(places.unified, Some("/sys/fs/cgroup/inner".into()));
        let outside = Places::parse("0::/elsewhere\n", mounts);
        assert_eq!(outside.unified, None);
    }

    #[test]
    fn no_cgroup_filesystem_is_no_place() {
        let places = Places::parse("0::/\n", "");
        assert!(places.unified.is_none() && places.memory.is_none());
    }

    #[test]
    fn keyed_files_are_read() {
        let text = "usage_usec 12\nuser_usec 7\n";
        assert_eq!(keyed(text, "user_usec"), Some(7));
        assert_eq!(keyed(text, "usage"), None);
    }
}
