//! The groups this crate makes: one folder per slot, a fresh leaf per run, and the removal of what a killed captime left.

use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{
    AtFlags, FileType, FlockOperation, Mode, OFlags, XattrFlags, flock, fstat, mkdirat, unlinkat,
};

use super::super::clock::Instant;
use super::discovery::{Places, SHELTER};
use super::{keyed, open_file, open_folder, read_again, read_file};

/// The names of captime's groups begin like this. A process number and a time follow.
const PREFIX: &str = "captime-slot-";
/// The marks that only captime writes on a folder. The value is its name. The second is for kernels that offer no `user.` there.
const MARKS: [&str; 2] = ["user.captime", "trusted.captime"];

/// A group that this process made, in any hierarchy. No other captime touches it while this lives.
///
/// The lock on it tells others that it is in use; the kernel drops the lock with the process. Everything is done by
/// descriptor, so it also works where the process has hidden the folder from itself.
#[derive(Debug)]
pub(crate) struct OwnGroup {
    base: OwnedFd,
    name: String,
    folder: OwnedFd,
    path: PathBuf,
}

impl OwnGroup {
    /// Makes a group below `base`, named after process `owner`.
    pub(crate) fn make(base: &Path, owner: u32) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = rustix::fs::open(base, flags, Mode::empty())?;
        let moment = crate::sys::monotonic().as_nanos();
        let name = format!("{PREFIX}{owner}-{moment}");
        mkdirat(&opened, &name, Mode::from_raw_mode(0o755))?;
        // Locked before it is marked: a sweep never takes the folder of a living captime for an abandoned one.
        let made = open_folder(opened.as_fd(), &name).and_then(|folder| {
            lock(folder.as_fd())?;
            mark(folder.as_fd(), &name);
            Ok(folder)
        });
        match made {
            Ok(folder) => Ok(Self {
                base: opened,
                path: base.join(&name),
                name,
                folder,
            }),
            Err(error) => {
                let _ = unlinkat(&opened, &name, AtFlags::REMOVEDIR);
                Err(error)
            }
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn folder(&self) -> BorrowedFd<'_> {
        self.folder.as_fd()
    }

    /// Makes a group inside.
    pub(crate) fn make_inner(&self, name: &str) -> io::Result<OwnedFd> {
        mkdirat(&self.folder, name, Mode::from_raw_mode(0o755))?;
        open_folder(self.folder(), name).inspect_err(|_| {
            let _ = unlinkat(&self.folder, name, AtFlags::REMOVEDIR);
        })
    }

    /// Removes a group inside, and all below it; false if some process is still in it.
    pub(crate) fn remove_inner(&self, name: &str) -> bool {
        remove_group(self.folder(), name)
    }

    /// Ends everything in the group and removes it. Waits at most a second for processes to end.
    pub(crate) fn end(&self) {
        end_and_remove(self.base.as_fd(), &self.name);
    }
}

fn mark(folder: BorrowedFd<'_>, name: &str) {
    for mark in MARKS {
        if rustix::fs::fsetxattr(folder, mark, name.as_bytes(), XattrFlags::empty()).is_ok() {
            return;
        }
    }
}

/// Whether this or an earlier captime of this user made this folder: name, mark and owner are captime's.
fn is_ours(folder: BorrowedFd<'_>, name: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let has_name = name
        .strip_prefix(PREFIX)
        .and_then(|rest| rest.split_once('-'))
        .is_some_and(|(pid, moment)| is_number(pid) && is_number(moment));
    let is_marked = || {
        MARKS.iter().any(|mark| {
            let mut value = [0; 128];
            rustix::fs::fgetxattr(folder, *mark, &mut value[..])
                .is_ok_and(|count| value.get(..count) == Some(name.as_bytes()))
        })
    };
    let belongs_to_us =
        || fstat(folder).is_ok_and(|about| about.st_uid == rustix::process::geteuid().as_raw());
    has_name && belongs_to_us() && is_marked()
}

/// Marks a group as in use for as long as the descriptor is open; fails if another captime has.
fn lock(folder: BorrowedFd<'_>) -> io::Result<()> {
    Ok(flock(folder, FlockOperation::NonBlockingLockExclusive)?)
}

/// Removes the group `name` in `base` and all below it; what is populated stays, and then this is false.
fn remove_group(base: BorrowedFd<'_>, name: &str) -> bool {
    if unlinkat(base, name, AtFlags::REMOVEDIR).is_ok() {
        return true;
    }
    let Ok(folder) = open_folder(base, name) else {
        return true;
    };
    for entry in rustix::fs::Dir::read_from(&folder)
        .into_iter()
        .flatten()
        .flatten()
    {
        let inner = entry.file_name().to_string_lossy();
        if entry.file_type() == FileType::Directory && inner != "." && inner != ".." {
            remove_group(folder.as_fd(), &inner);
        }
    }
    unlinkat(base, name, AtFlags::REMOVEDIR).is_ok()
}

fn end_and_remove(base: BorrowedFd<'_>, name: &str) {
    let start = Instant::now();
    while !remove_group(base, name) {
        if let Ok(folder) = open_folder(base, name)
            && let Ok(events) = read_file(folder.as_fd(), "cgroup.events")
            && keyed(&events, "populated") == Some(1)
        {
            let _ = super::write_file(folder.as_fd(), "cgroup.kill", "1");
        }
        if Instant::now().since(start) > Duration::from_secs(1) {
            return;
        }
        std::thread::sleep(Duration::from_micros(500));
    }
}

/// Ends everything in a group that a supervisor made, and removes it. Waits at most a second for processes to end.
pub(crate) fn end_group(path: &Path) {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    if let Some(parent) = path.parent()
        && let Some(name) = path.file_name().and_then(|name| name.to_str())
        && let Ok(base) = rustix::fs::open(parent, flags, Mode::empty())
    {
        end_and_remove(base.as_fd(), name);
    }
}

/// Ends and removes groups in `base` whose captime is no longer alive.
fn sweep_unified(base: &Path) {
    sweep(base, end_and_remove);
    // Fails if a process is in it.
    let _ = fs::remove_dir(base.join(SHELTER));
}

/// Removes v1 groups in `base` whose captime is no longer alive.
pub(crate) fn sweep_legacy(base: &Path) {
    sweep(base, |base, name| {
        remove_group(base, name);
    });
}

fn sweep(base: &Path, end: impl Fn(BorrowedFd<'_>, &str)) {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Ok(opened) = rustix::fs::open(base, flags, Mode::empty()) else {
        return;
    };
    for entry in fs::read_dir(base).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(name) = name.to_str().filter(|name| name.starts_with(PREFIX)) else {
            continue;
        };
        if let Ok(folder) = open_folder(opened.as_fd(), name)
            && is_ours(folder.as_fd(), name)
            && lock(folder.as_fd()).is_ok()
        {
            end(opened.as_fd(), name);
        }
    }
}

/// Moves this process back to the group in which it was started, and removes the one that captime made for itself. Call it when the
/// process is about to exit.
///
/// Slurm or systemd, which made that group, cannot remove it while another is inside. Does nothing while another captime works there.
pub fn leave_shelter() {
    let located = Places::locate().ok();
    let own = located.and_then(|places| places.unified);
    let Some(shelter) = own.filter(|own| own.ends_with(SHELTER)) else {
        return;
    };
    let Some(base) = shelter.parent() else { return };
    let pid = std::process::id().to_string();
    let members = fs::read_to_string(shelter.join("cgroup.procs")).unwrap_or_default();
    let entries = fs::read_dir(base).into_iter().flatten().flatten();
    let mut names = entries.map(|entry| entry.file_name());
    if members.trim() != pid || names.any(|name| name.to_string_lossy().starts_with(PREFIX)) {
        return;
    }
    // Where processes are, groups inside have no controllers.
    let _ = fs::write(base.join("cgroup.subtree_control"), "-memory");
    let _ = fs::write(base.join("cgroup.procs"), pid);
    let _ = fs::remove_dir(&shelter);
}

/// The group of one slot in the cgroup2 hierarchy; its runs have their groups inside.
#[derive(Debug)]
pub(crate) struct Home {
    group: OwnGroup,
    /// What `/proc/PID/cgroup` says of processes in it.
    membership: Option<PathBuf>,
    runs: u64,
}

impl Home {
    /// Makes one below `base` and removes those of captimes that are no longer alive.
    pub(crate) fn create(base: &Path, owner: u32) -> io::Result<Self> {
        sweep_unified(base);
        Ok(Self {
            group: OwnGroup::make(base, owner)?,
            membership: None,
            runs: 0,
        })
    }

    /// Sets how the members of its leaves are recognised.
    pub(crate) fn known_as(&mut self, membership: Option<PathBuf>) {
        self.membership = membership;
    }

    pub(crate) fn path(&self) -> &Path {
        self.group.path()
    }

    pub(crate) fn folder(&self) -> BorrowedFd<'_> {
        self.group.folder()
    }

    /// A fresh group for one run.
    pub(crate) fn leaf(&mut self) -> io::Result<Leaf> {
        self.runs += 1;
        let name = format!("run-{}", self.runs);
        let folder = self.group.make_inner(&name)?;
        let opened = || {
            let cpu = open_file(folder.as_fd(), "cpu.stat", OFlags::RDONLY)?;
            let events = open_file(folder.as_fd(), "cgroup.events", OFlags::RDONLY)?;
            let kill = open_file(folder.as_fd(), "cgroup.kill", OFlags::WRONLY)?;
            Ok((cpu, events, kill))
        };
        match opened() {
            Ok((cpu, events, kill)) => Ok(Leaf {
                membership: self.membership.as_ref().map(|home| home.join(&name)),
                name,
                folder,
                cpu,
                events,
                kill,
            }),
            Err(error) => {
                self.group.remove_inner(&name);
                Err(error)
            }
        }
    }

    /// Removes the group of a run that has ended.
    pub(crate) fn discard(&self, leaf: Leaf) {
        self.group.remove_inner(&leaf.name);
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        self.group.end();
    }
}

/// The group of one run; its processes are born in it.
#[derive(Debug)]
pub(crate) struct Leaf {
    name: String,
    membership: Option<PathBuf>,
    folder: OwnedFd,
    cpu: OwnedFd,
    events: OwnedFd,
    /// Open from the start: in an emergency nothing must be needed to use it.
    kill: OwnedFd,
}

/// CPU time of a group, all descendants included, also those long gone.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct CpuTime {
    pub total: Duration,
    pub user: Duration,
    pub system: Duration,
}

impl Leaf {
    pub(crate) fn folder(&self) -> BorrowedFd<'_> {
        self.folder.as_fd()
    }

    /// Ends every process in the group, atomically with respect to forks.
    pub(crate) fn kill(&self) {
        let _ = rustix::io::write(&self.kill, b"1");
    }

    pub(crate) fn is_populated(&self) -> bool {
        read_again(self.events.as_fd()).is_ok_and(|text| keyed(&text, "populated") == Some(1))
    }

    pub(crate) fn cpu_time(&self) -> CpuTime {
        let text = read_again(self.cpu.as_fd()).unwrap_or_default();
        let micros = |key| Duration::from_micros(keyed(&text, key).unwrap_or(0));
        CpuTime {
            total: micros("usage_usec"),
            user: micros("user_usec"),
            system: micros("system_usec"),
        }
    }

    /// The processes in the group itself.
    pub(crate) fn processes(&self) -> Vec<i32> {
        read_file(self.folder(), "cgroup.procs")
            .unwrap_or_default()
            .lines()
            .filter_map(|line| line.parse().ok())
            .collect()
    }

    /// Whether a process is in this group or below it, by its own list of groups; `None` if that cannot be known.
    pub(crate) fn has(&self, memberships: &str) -> Option<bool> {
        let expected = self.membership.as_ref()?;
        let group = memberships
            .lines()
            .find_map(|line| line.strip_prefix("0::"))?;
        Some(Path::new(group).starts_with(expected))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Marks on folders need a filesystem that has them.
    fn has_marks(folder: BorrowedFd<'_>) -> bool {
        mark(folder, "x");
        rustix::fs::fgetxattr(folder, MARKS[0], &mut [0_u8; 8][..]).is_ok()
    }

    #[test]
    fn only_groups_with_our_name_and_mark_are_swept() {
        let base = tempfile::tempdir().unwrap();
        let make = |name: &str, marked_as: Option<&str>| {
            fs::create_dir(base.path().join(name)).unwrap();
            let flags = OFlags::RDONLY | OFlags::DIRECTORY;
            let folder = rustix::fs::open(base.path().join(name), flags, Mode::empty()).unwrap();
            if let Some(value) = marked_as {
                mark(folder.as_fd(), value);
            }
            folder
        };
        let probe = make("probe", None);
        if !has_marks(probe.as_fd()) {
            return;
        }
        let others = [
            ("captime-sweep.service", None),
            ("captime-slot-12-34", None),
            ("captime-slot-12-35", Some("captime-slot-99-35")),
            ("captime-slot-x-36", Some("captime-slot-x-36")),
            (
                "captime-slot-12-36.service",
                Some("captime-slot-12-36.service"),
            ),
        ];
        for (name, value) in others {
            make(name, value);
        }
        make("captime-slot-12-37", Some("captime-slot-12-37"));
        let used = make("captime-slot-12-38", Some("captime-slot-12-38"));
        lock(used.as_fd()).unwrap();
        sweep_legacy(base.path());
        for (name, _) in others {
            assert!(base.path().join(name).exists(), "{name} is not ours");
        }
        assert!(base.path().join("captime-slot-12-38").exists(), "in use");
        assert!(!base.path().join("captime-slot-12-37").exists(), "stale");
    }
}
