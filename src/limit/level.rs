//! What this machine can enforce, found out by trying.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::cgroup::{Places, may_use};
use super::slot::{self, Options};

/// How limits are enforced. Detected once, told, and recorded in every report; never silently lowered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// A control group per run: an atomic end of the whole tree, exact CPU time.
    Cgroup2,
    /// No privileges at all: every process is our descendant and ended one by one; CPU time is a lower bound.
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

/// Who keeps a memory limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MemoryControl {
    /// The memory controller of cgroup2.
    Cgroup2,
    /// A v1 memory group per slot.
    Cgroup1,
    /// Nobody: we look at the processes every few milliseconds.
    Sampled,
}

/// What this machine can enforce for this user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Detected {
    /// The best level.
    pub level: Level,
    /// Who keeps memory limits there.
    pub memory: MemoryControl,
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

    /// Whether memory limits are kept by the kernel, to the page.
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
        level: None,
        memory: true,
    };
    let (level, memory) = slot::with(&wanted, |slot| match slot {
        Ok(slot) => (slot.level(), slot.memory_control()),
        Err(_) => (Level::Subreaper, MemoryControl::Sampled),
    });
    let mut missing = Vec::new();
    let mut advice = Vec::new();
    if level == Level::Subreaper {
        let places = Places::locate();
        missing.push(
            obstacle(&places)
                .unwrap_or_else(|| "the kernel offers no `cgroup.kill` (Linux 5.14)".to_owned()),
        );
        advice.extend(advice_for_groups(&places));
    } else if memory == MemoryControl::Sampled {
        missing.push("no memory controller is delegated to this process's group".to_owned());
        advice.push(
            "run as `systemd-run --user --scope -p Delegate=yes captime ...`, alone in its scope"
                .to_owned(),
        );
    }
    Detected {
        level,
        memory,
        missing,
        advice,
    }
}

fn advice_for_groups(places: &Places) -> Vec<String> {
    let Some(own) = &places.unified else {
        return vec![
            "mount it: `mount -t cgroup2 none /sys/fs/cgroup` (as root; in containers: the host)"
                .to_owned(),
        ];
    };
    let mut advice = vec![
        "with systemd: run as `systemd-run --user --scope -p Delegate=yes captime ...`".to_owned(),
        format!(
            "without: as root, `mkdir {0}/NAME && chown USER {0}/NAME {0}/NAME/cgroup.procs`, then start captime in it",
            own.display()
        ),
    ];
    if std::fs::metadata(own).is_ok_and(|folder| folder.permissions().readonly())
        || rustix::process::getuid().is_root()
    {
        advice.push(
            "in a container: start it with a writable /sys/fs/cgroup (docker: `--cgroupns=private --privileged`)"
                .to_owned(),
        );
    }
    advice
}
