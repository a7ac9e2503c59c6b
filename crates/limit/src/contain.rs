//! Containment: namespaces that keep a command from everything but its own tree.
//!
//! The supervisor is the first process of a PID namespace of its own, which lives as long as the slot: between runs it is empty but for the
//! supervisor. So a run pays nothing for it. Inside, the command sees and signals its own tree only; SIGKILL and SIGSTOP do not reach the
//! first process from inside; and should that be killed from outside, the kernel ends all others.

use std::fmt;
use std::io;
use std::str::FromStr;

use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change, mount_remount};
use rustix::process::{DumpableBehavior, set_dumpable_behavior};
use rustix::thread::UnshareFlags;
use serde::{Deserialize, Serialize};

use super::connection::Setup;
use super::level::Level;
use super::{blocking, sys};

/// What a command is kept from.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Contain {
    /// Nothing.
    #[default]
    Off,
    /// Other processes: it has a PID namespace of its own, and control groups are read-only.
    Pids,
    /// Also the network, System V objects and leftovers of others: `/tmp` and `/dev/shm` are its own, empty at first and gone
    /// afterwards.
    Full,
}

impl Contain {
    /// What is tried where nothing was asked for.
    pub(super) const DEFAULT: Self = Self::Pids;
    /// All of them, the weakest first.
    pub const ALL: [Self; 3] = [Self::Off, Self::Pids, Self::Full];

    /// The name used on the command line and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Pids => "pids",
            Self::Full => "full",
        }
    }
}

impl fmt::Display for Contain {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(self.name())
    }
}

impl FromStr for Contain {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        Self::ALL
            .into_iter()
            .find(|contain| contain.name() == text)
            .ok_or(())
    }
}

/// Whether namespaces need a user namespace around them: for all but root.
fn needs_user_namespace() -> bool {
    !rustix::process::geteuid().is_root()
}

/// The flags with which to fork a supervisor that contains commands.
pub(super) fn fork_flags(contain: Contain) -> u64 {
    match contain {
        Contain::Off => 0,
        Contain::Pids | Contain::Full if needs_user_namespace() => {
            (libc::CLONE_NEWPID | libc::CLONE_NEWUSER) as u64
        }
        Contain::Pids | Contain::Full => libc::CLONE_NEWPID as u64,
    }
}

/// In a supervisor that was forked with [`fork_flags`]: maps `user` and `group`, which it had before, to themselves.
pub(super) fn settle(contain: Contain, user: u32, group: u32) -> io::Result<()> {
    if contain == Contain::Off || user == 0 {
        return Ok(());
    }
    // The files in question belong to root for a process that is closed to others.
    set_dumpable_behavior(DumpableBehavior::Dumpable)?;
    let settled = std::fs::write("/proc/self/setgroups", "deny")
        .and_then(|()| std::fs::write("/proc/self/uid_map", format!("{user} {user} 1")))
        .and_then(|()| std::fs::write("/proc/self/gid_map", format!("{group} {group} 1")));
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    settled
}

/// Gives the calling thread, and all it starts, its own view of processes and control groups. What it has opened stays open. `mounts`
/// are all that it sees.
pub(super) fn enter(contain: Contain, mounts: &str) -> io::Result<()> {
    if contain == Contain::Off {
        return Ok(());
    }
    let mut flags = UnshareFlags::NEWNS;
    if contain == Contain::Full {
        flags |= UnshareFlags::NEWNET | UnshareFlags::NEWIPC;
    }
    sys::unshare(flags)?;
    // Without this what follows would also be seen outside.
    mount_change(
        "/",
        MountPropagationFlags::PRIVATE | MountPropagationFlags::REC,
    )?;
    let own = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    mount("proc", "/proc", "proc", own, None)?;
    for line in mounts.lines() {
        if let Some((point, flags)) = cgroup_mount(line) {
            mount_remount(point, flags | MountFlags::BIND | MountFlags::RDONLY, "")?;
        }
    }
    if contain == Contain::Full {
        sys::start_loopback();
    }
    sys::drop_capabilities();
    Ok(())
}

/// Where a line of mountinfo says that control groups are mounted, and how; a remount must not lose that.
fn cgroup_mount(line: &str) -> Option<(&str, MountFlags)> {
    let (left, right) = line.split_once(" - ")?;
    if !matches!(right.split(' ').next(), Some("cgroup" | "cgroup2")) {
        return None;
    }
    let mut left = left.split(' ').skip(4);
    let (point, options) = (left.next()?, left.next()?);
    let mut flags = MountFlags::empty();
    for option in options.split(',') {
        flags |= match option {
            "nosuid" => MountFlags::NOSUID,
            "nodev" => MountFlags::NODEV,
            "noexec" => MountFlags::NOEXEC,
            "noatime" => MountFlags::NOATIME,
            "nodiratime" => MountFlags::NODIRATIME,
            "relatime" => MountFlags::RELATIME,
            _ => MountFlags::empty(),
        };
    }
    Some((point, flags))
}

/// The strongest containment that works for this user, found by trying it in a supervisor; and why none works, if none does.
pub(super) fn detect() -> (Contain, Option<String>) {
    let mut refused = None;
    for contain in [Contain::Full, Contain::Pids] {
        let setup = Setup {
            level: Some(Level::Subreaper),
            contain: Some(contain),
            ..Setup::default()
        };
        match blocking::Supervisor::start(&setup) {
            Ok(supervisor) => {
                supervisor.close();
                return (contain, None);
            }
            Err(error) => refused = Some(error.to_string()),
        }
    }
    (Contain::Off, refused)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_mounts_of_control_groups_become_read_only_and_keep_their_options() {
        let line =
            "31 20 0:27 / /sys/fs/cgroup rw,nosuid,noexec,relatime shared:9 - cgroup2 cgroup2 rw";
        let expected = MountFlags::NOSUID | MountFlags::NOEXEC | MountFlags::RELATIME;
        assert_eq!(cgroup_mount(line), Some(("/sys/fs/cgroup", expected)));
        let other = "31 20 0:27 / /tmp rw,nosuid - tmpfs tmpfs rw";
        assert_eq!(cgroup_mount(other), None);
    }

    #[test]
    fn names_are_read_as_they_are_written() {
        for contain in Contain::ALL {
            assert_eq!(contain.to_string().parse(), Ok(contain));
        }
        assert_eq!("docker".parse::<Contain>(), Err(()));
    }
}
