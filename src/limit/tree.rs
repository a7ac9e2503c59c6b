//! The live process tree below this process, which as child subreaper inherits every orphan of its run.
//!
//! Whatever a command does (`setsid`, double fork, another cgroup), its processes stay our descendants.

use std::collections::HashSet;
use std::fs;
use std::time::Duration;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::sys;

/// One process, identified beyond the reuse of its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Member {
    pub pid: i32,
    parent: i32,
    start: u64,
    is_zombie: bool,
    /// CPU time of children it has waited for.
    waited: Duration,
}

/// Reads what we need of `/proc/PID/stat`.
fn member(pid: i32) -> Option<Member> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name may contain anything, also spaces and parentheses; the fields begin after the last one.
    let fields: Vec<&str> = text[text.rfind(')')? + 1..]
        .split_ascii_whitespace()
        .collect();
    let number = |index: usize| {
        fields
            .get(index)
            .and_then(|field| field.parse::<u64>().ok())
    };
    let ticks = number(13)? + number(14)?;
    Some(Member {
        pid,
        parent: i32::try_from(number(1)?).ok()?,
        start: number(19)?,
        is_zombie: matches!(fields.first(), Some(&("Z" | "X"))),
        waited: Duration::from_secs_f64(ticks as f64 / sys::ticks_per_second() as f64),
    })
}

/// Children of one process, from the kernel's own list; `None` where the kernel was built without it.
fn listed_children(pid: i32) -> Option<Vec<i32>> {
    let mut children = Vec::new();
    for task in fs::read_dir(format!("/proc/{pid}/task")).ok()? {
        let Ok(task) = task else { continue };
        let list = match fs::read_to_string(task.path().join("children")) {
            Ok(list) => list,
            // A thread that ended between the two looks.
            Err(_) if !task.path().exists() => continue,
            Err(_) => return None,
        };
        children.extend(
            list.split_ascii_whitespace()
                .filter_map(|pid| pid.parse::<i32>().ok()),
        );
    }
    Some(children)
}

/// All processes of the machine, for kernels without lists of children.
fn everyone() -> Vec<Member> {
    fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter_map(member)
        .collect()
}

/// Every live descendant of this process but our own `keeper`, parents before children; zombies are left out but
/// looked through.
pub(super) fn descendants(keeper: Option<i32>) -> Vec<Member> {
    let ourselves = rustix::process::getpid().as_raw_nonzero().get();
    let mut found = Vec::new();
    let mut seen: HashSet<i32> = keeper.into_iter().chain([ourselves]).collect();
    let mut queue = vec![ourselves];
    if listed_children(ourselves).is_some() {
        while let Some(pid) = queue.pop() {
            for child in listed_children(pid).unwrap_or_default() {
                if seen.insert(child)
                    && let Some(member) = member(child)
                {
                    queue.push(child);
                    found.push(member);
                }
            }
        }
    } else {
        let all = everyone();
        while let Some(pid) = queue.pop() {
            for member in all.iter().filter(|member| member.parent == pid) {
                if seen.insert(member.pid) {
                    queue.push(member.pid);
                    found.push(*member);
                }
            }
        }
    }
    found.retain(|member| !member.is_zombie);
    found
}

/// Sends a signal to exactly these processes, never to one that took over a number.
pub(super) fn signal(members: &[Member], signal: Signal) {
    for member in members {
        let Some(pid) = Pid::from_raw(member.pid) else {
            continue;
        };
        let Ok(descriptor) = pidfd_open(pid, PidfdFlags::empty()) else {
            continue;
        };
        if self::member(member.pid).is_some_and(|now| now.start == member.start) {
            let _ = pidfd_send_signal(&descriptor, signal);
        }
    }
}

/// CPU time of live processes and of the children they have waited for.
pub(super) fn cpu_time(members: &[Member]) -> Duration {
    members
        .iter()
        .map(|member| member.waited + sys::cpu_time(member.pid).unwrap_or_default())
        .sum()
}

/// Memory of live processes: their resident sets, or if these together are above `limit`, their proportional ones, in
/// which pages shared between them count once.
pub(super) fn memory(members: &[Member], limit: u64) -> u64 {
    let page = sys::page_size();
    let resident: u64 = members
        .iter()
        .filter_map(|member| {
            let text = fs::read_to_string(format!("/proc/{}/statm", member.pid)).ok()?;
            text.split_ascii_whitespace().nth(1)?.parse::<u64>().ok()
        })
        .map(|pages| pages * page)
        .sum();
    if resident <= limit || members.len() <= 1 {
        return resident;
    }
    members
        .iter()
        .filter_map(|member| {
            let text = fs::read_to_string(format!("/proc/{}/smaps_rollup", member.pid)).ok()?;
            let line = text.lines().find_map(|line| line.strip_prefix("Pss:"))?;
            line.split_ascii_whitespace()
                .next()?
                .parse::<u64>()
                .ok()
                .map(|kib| kib * 1024)
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn a_child_is_found_measured_and_signalled() {
        let mut child = Command::new("sleep")
            .arg("20")
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        let members = descendants(None);
        let found: Vec<Member> = members.into_iter().filter(|m| m.pid == pid).collect();
        assert_eq!(found.len(), 1);
        assert!(everyone().iter().any(|member| member.pid == pid));
        assert!(memory(&found, u64::MAX) > 0);
        let other = Member {
            start: found[0].start + 1,
            ..found[0]
        };
        signal(&[other], Signal::KILL);
        assert!(
            child.try_wait().unwrap().is_none(),
            "killed a process that only shares the number"
        );
        signal(&found, Signal::KILL);
        assert!(!child.wait().unwrap().success());
    }
}
