//! Where this process is among the control groups, and where it may make its own.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use super::{read_file, unless_short};

/// Where captime itself goes when its own group must have no processes; shared, so never killed.
pub(super) const SHELTER: &str = "captime.shelter";

/// The groups this process is in, as folders.
#[derive(Debug, Clone, Default)]
pub(crate) struct Places {
    /// The group of this process in the cgroup2 hierarchy.
    pub unified: Option<PathBuf>,
    /// Where that hierarchy is mounted.
    pub unified_mount: Option<PathBuf>,
    /// Which group of it the mount shows as its top.
    pub unified_root: PathBuf,
    /// Its group in the v1 memory hierarchy, on machines that have one.
    pub memory: Option<PathBuf>,
    /// All mounts that this process sees, as the kernel lists them.
    pub mounts: String,
}

/// All mounts that this process sees.
pub(crate) fn mounts() -> io::Result<String> {
    read_file(rustix::fs::CWD, "/proc/self/mountinfo")
}

impl Places {
    /// Fails only for want of descriptors or memory, which says nothing about the machine.
    pub(crate) fn locate() -> io::Result<Self> {
        let membership = unless_short(read_file(rustix::fs::CWD, "/proc/self/cgroup"))?;
        let mounts = unless_short(mounts())?.unwrap_or_default();
        let places = Self::parse(&membership.unwrap_or_default(), &mounts);
        Ok(Self { mounts, ..places })
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
                if let Some(found) = mounted(mounts, "cgroup2", None, group) {
                    places.unified = Some(found.folder);
                    places.unified_mount = Some(found.mount);
                    places.unified_root = found.root;
                }
            } else if controllers.split(',').any(|name| name == "memory") {
                places.memory =
                    mounted(mounts, "cgroup", Some("memory"), group).map(|found| found.folder);
            }
        }
        places
    }

    /// What `/proc/PID/cgroup` says of processes in the cgroup2 group `folder`.
    pub(crate) fn membership(&self, folder: &Path) -> Option<PathBuf> {
        let below = folder.strip_prefix(self.unified_mount.as_ref()?).ok()?;
        Some(self.unified_root.join(below))
    }
}

/// A hierarchy, and the folder of a group in it.
struct Mounted {
    mount: PathBuf,
    root: PathBuf,
    folder: PathBuf,
}

/// Where the hierarchy of a kind and controller is mounted, and the folder of `group` below it.
fn mounted(mounts: &str, kind: &str, controller: Option<&str>, group: &str) -> Option<Mounted> {
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
        let mount = PathBuf::from(point);
        let folder = if below.as_os_str().is_empty() {
            mount.clone()
        } else {
            mount.join(below)
        };
        Some(Mounted {
            mount,
            root: root.into(),
            folder,
        })
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

/// Thaws a process that was frozen through its groups; until then not even SIGKILL ends one in a v1 freezer.
pub(crate) fn thaw(pid: i32) {
    let membership = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
    let mounts = mounts().unwrap_or_default();
    for line in membership.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(group)) = (parts.next(), parts.next()) else {
            continue;
        };
        let found = if controllers.is_empty() {
            mounted(&mounts, "cgroup2", None, group).map(|found| (found, "cgroup.freeze", "0"))
        } else if controllers.split(',').any(|name| name == "freezer") {
            mounted(&mounts, "cgroup", Some("freezer"), group)
                .map(|found| (found, "freezer.state", "THAWED"))
        } else {
            None
        };
        let Some((found, file, word)) = found else {
            continue;
        };
        for group in found.folder.ancestors() {
            if group == found.mount || !group.starts_with(&found.mount) {
                break;
            }
            let _ = fs::write(group.join(file), word);
        }
    }
}

/// True if this process may make groups below `group` and put processes there.
pub(crate) fn may_use(group: &Path) -> io::Result<()> {
    use rustix::fs::{Access, access};
    access(group, Access::WRITE_OK | Access::EXEC_OK)?;
    access(group.join("cgroup.procs"), Access::WRITE_OK)?;
    Ok(())
}

pub(crate) fn lists(group: &Path, file: &str, controller: &str) -> io::Result<bool> {
    let text = unless_short(fs::read_to_string(group.join(file)))?;
    Ok(text.is_some_and(|text| text.split_ascii_whitespace().any(|name| name == controller)))
}

/// The nearest group at or above that of this process where new groups get the v2 memory controller.
///
/// Own group first; where it holds nothing but captimes, these move into a group of their own below it, since cgroup2
/// wants processes in leaves only.
pub(crate) fn base_with_memory(places: &Places) -> io::Result<Option<PathBuf>> {
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
        // Whatever is in a shelter has its groups beside it.
        let is_own = group == own && !group.ends_with(SHELTER);
        if is_own && lists(group, "cgroup.controllers", "memory")? {
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
        let run = Path::new("/sys/fs/cgroup/inner/run");
        assert_eq!(places.membership(run), Some("/docker/x/inner/run".into()));
        let outside = Places::parse("0::/elsewhere\n", mounts);
        assert_eq!(outside.unified, None);
    }

    #[test]
    fn no_cgroup_filesystem_is_no_place() {
        let places = Places::parse("0::/\n", "");
        assert!(places.unified.is_none() && places.memory.is_none());
    }
}
