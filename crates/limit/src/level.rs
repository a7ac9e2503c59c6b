//! What this machine can enforce, found out by trying.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::cgroup::{Places, lists, may_use};
use super::contain::{self, Contain};
use super::slot::{self, Options};

/// How limits are enforced. Detected once, printed, and part of every report; never silently lowered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// A control group per run: an atomic end of the whole tree, exact CPU time.
    Cgroup2,
    /// No privileges at all: every process is a descendant of the supervisor and ended one by one; CPU time is a lower bound.
    #[default]
    Subreaper,
}

impl Level {
    /// The name used on the command line and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cgroup2 => "cgroup2",
            Self::Subreaper => "subreaper",
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(self.name())
    }
}

impl FromStr for Level {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        [Self::Cgroup2, Self::Subreaper]
            .into_iter()
            .find(|level| level.name() == text)
            .ok_or(())
    }
}

/// How a memory limit is enforced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MemoryControl {
    /// The memory controller of cgroup2.
    Cgroup2,
    /// A v1 memory group per slot.
    Cgroup1,
    /// No controller: captime looks at the processes every few milliseconds.
    #[default]
    Sampled,
}

impl fmt::Display for MemoryControl {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(match self {
            Self::Cgroup2 => "enforced by cgroup2",
            Self::Cgroup1 => "enforced by cgroup v1",
            Self::Sampled => "sampled",
        })
    }
}

/// What this machine can enforce for this user.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Detected {
    /// The best level.
    pub level: Level,
    /// How memory limits are enforced there.
    pub memory: MemoryControl,
    /// The most that commands can be kept from.
    pub contain: Contain,
    /// Why it is not better, if something is missing.
    pub missing: Vec<String>,
    /// What an administrator can do about it.
    pub advice: Vec<String>,
}

impl Detected {
    /// Whether CPU times are exact.
    pub fn is_cpu_exact(&self) -> bool {
        self.level == Level::Cgroup2
    }

    /// Whether the kernel enforces memory limits, to the page.
    pub fn is_memory_exact(&self) -> bool {
        self.memory != MemoryControl::Sampled
    }
}

/// Why groups cannot be used here, in words; `None` if nothing speaks against it.
pub(super) fn obstacle(places: &Places) -> Option<String> {
    let Some(own) = &places.unified else {
        return Some("no cgroup2 filesystem is mounted".to_owned());
    };
    if let Err(error) = may_use(own) {
        return Some(format!("no write access to `{}`: {error}", own.display()));
    }
    None
}

/// Finds out what this machine can enforce, by setting it up and removing it again.
pub fn detect() -> Detected {
    let wanted = Options {
        memory: true,
        owner: std::process::id(),
        ..Options::default()
    };
    let mut missing = Vec::new();
    let mut advice = Vec::new();
    let (level, memory) = slot::with(&wanted, |slot| {
        match slot.and_then(|slot| slot.enter().map(|()| slot)) {
            Ok(slot) => (slot.level(), slot.memory_control()),
            Err(error) => {
                missing.push(error.to_string());
                advice.extend(error.hint());
                (Level::Subreaper, MemoryControl::Sampled)
            }
        }
    });
    let places = Places::locate().unwrap_or_default();
    if !missing.is_empty() {
        // A shortage of the moment, about which nothing else can be found out.
    } else if level == Level::Subreaper {
        if let Some(obstacle) = obstacle(&places) {
            missing.push(obstacle);
            let is_readonly = places.unified.as_deref().is_some_and(|own| {
                may_use(own)
                    .is_err_and(|error| error.kind() == std::io::ErrorKind::ReadOnlyFilesystem)
            });
            let closed = is_readonly || rustix::process::getuid().is_root();
            advice.extend(advice_for_groups(&places, closed));
        } else {
            missing.push("the kernel offers no `cgroup.kill`".to_owned());
            advice.push("boot Linux 5.14 or later".to_owned());
        }
    } else if memory == MemoryControl::Sampled {
        missing.push("no memory controller is delegated to this process's group".to_owned());
        advice.extend(advice_for_groups(&places, false));
    }
    let (contain, refused) = contain::detect();
    if let Some(reason) = refused {
        missing.push(format!("commands cannot be contained: {reason}"));
        advice.push(
            "allow user namespaces (sysctl `user.max_user_namespaces`), and in a container mount its own `/proc`"
                .to_owned(),
        );
    }
    Detected {
        level,
        memory,
        contain,
        missing,
        advice,
    }
}

/// What would make groups usable; `closed` if not even root could change what there is.
fn advice_for_groups(places: &Places, closed: bool) -> Vec<String> {
    if places.unified.is_none() {
        return vec![
            "mount it: `mount -t cgroup2 none /sys/fs/cgroup` (as root; in containers: the host)"
                .to_owned(),
        ];
    }
    if closed {
        return vec![
            "in a container: start it with a writable /sys/fs/cgroup (docker: `--cgroupns=private --privileged`)"
                .to_owned(),
        ];
    }
    let mut advice = vec![SYSTEMD.to_owned()];
    advice.extend(delegation(places).map(|command| {
        format!("without systemd: `{command}` puts this shell into groups of its own; then run captime from it")
    }));
    advice
}

const SYSTEMD: &str = "with systemd: run as `systemd-run --user --scope -p Delegate=yes captime ...`, alone in its scope";

/// One command for users of `sudo`: makes groups that belong to the user, with the memory controller where there is one, and
/// moves the user's shell there, which only root may do.
///
/// Their name must not begin like those of captime's own groups, which are swept.
fn delegation(places: &Places) -> Option<String> {
    let (own, mount) = (places.unified.as_ref()?, places.unified_mount.as_ref()?);
    let has_memory = lists(mount, "cgroup.controllers", "memory").unwrap_or(false);
    let steps = if has_memory {
        // cgroup2 wants processes in leaves only, so the shell gets one of its own, and captime makes its groups beside it.
        format!(
            "cd {} && mkdir -p captime.$0/shell && echo +memory >cgroup.subtree_control && cd captime.$0 && \
             echo +memory >cgroup.subtree_control && \
             chown $0 . cgroup.procs cgroup.subtree_control shell shell/cgroup.procs && echo $1 >shell/cgroup.procs",
            mount.display()
        )
    } else {
        // No controllers, no such rule. Below the groups it is in, so that their limits still hold.
        let below: Vec<String> = [Some(own), places.memory.as_ref()]
            .into_iter()
            .flatten()
            .map(|group| format!("{}/captime.$0", group.display()))
            .collect();
        format!(
            "for g in {}; do mkdir -p $g && chown $0 $g $g/cgroup.procs && echo $1 >$g/cgroup.procs || exit; done",
            below.join(" ")
        )
    };
    Some(format!("sudo sh -c '{steps}' $(id -u) $$"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn places(unified: Option<&Path>, memory: Option<&str>) -> Places {
        Places {
            unified: unified.map(|mount| mount.join("user/session")),
            unified_mount: unified.map(Path::to_owned),
            unified_root: "/".into(),
            memory: memory.map(Into::into),
            mounts: String::new(),
        }
    }

    #[test]
    fn each_machine_gets_the_advice_that_helps_there() {
        let folder = tempfile::tempdir().unwrap();
        let mount = folder.path();
        let unmounted = advice_for_groups(&places(None, None), false);
        assert_eq!(unmounted.len(), 1);
        assert!(unmounted[0].contains("mount -t cgroup2"), "{unmounted:?}");
        let container = advice_for_groups(&places(Some(mount), None), true);
        assert_eq!(container.len(), 1);
        assert!(container[0].contains("docker"), "{container:?}");
        let hybrid = advice_for_groups(&places(Some(mount), Some("/v1/mine")), false);
        assert_eq!(hybrid[0], SYSTEMD);
        let groups = format!(
            "for g in {}/user/session/captime.$0 /v1/mine/captime.$0;",
            mount.display()
        );
        assert!(hybrid[1].contains(&groups), "{hybrid:?}");
        std::fs::write(mount.join("cgroup.controllers"), "cpu memory pids\n").unwrap();
        let pure = advice_for_groups(&places(Some(mount), None), false);
        assert!(
            pure[1].contains("+memory >cgroup.subtree_control"),
            "{pure:?}"
        );
        assert!(pure[1].contains("$1 >shell/cgroup.procs"), "{pure:?}");
        for advice in [&hybrid[1], &pure[1]] {
            assert!(advice.contains("$(id -u) $$`"), "{advice}");
            assert!(
                !advice.contains("captime-"),
                "such a group would be swept: {advice}"
            );
        }
    }
}
