//! The live process tree below this process, which as child subreaper inherits every orphan of its run.
//!
//! Whatever a command does (`setsid`, double fork, another cgroup), its processes stay descendants of this one.

use std::collections::HashSet;
use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::time::Duration;

use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, kill_process, pidfd_open, pidfd_send_signal,
    waitid,
};

use super::clock::Instant;
use super::sys;

/// One process, identified beyond the reuse of its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Member {
    pub pid: i32,
    parent: i32,
    pub session: i32,
    start: u64,
    is_zombie: bool,
    /// CPU time of children it has waited for.
    waited: Duration,
}

/// Reads what is needed of `/proc/PID/stat`.
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
        session: i32::try_from(number(3)?).ok()?,
        start: number(19)?,
        is_zombie: matches!(fields.first(), Some(&("Z" | "X"))),
        waited: Duration::from_secs_f64(
            ticks as f64 / rustix::param::clock_ticks_per_second() as f64,
        ),
    })
}

/// Children of one process, from the kernel's own list; `None` where the kernel was built without it.
fn listed_children(pid: i32) -> Option<Vec<i32>> {
    let tasks = format!("/proc/{pid}/task");
    let mut children = Vec::new();
    let mut add = |list: &str| {
        let numbers = list.split_ascii_whitespace();
        children.extend(numbers.filter_map(|pid| pid.parse::<i32>().ok()));
    };
    // The kernel counts the threads among the links. Most processes have one, whose number is known.
    if fs::metadata(&tasks).ok()?.nlink() == 3
        && let Ok(list) = fs::read_to_string(format!("{tasks}/{pid}/children"))
    {
        add(&list);
        return Some(children);
    }
    for task in fs::read_dir(tasks).ok()? {
        let Ok(task) = task else { continue };
        match fs::read_to_string(task.path().join("children")) {
            Ok(list) => add(&list),
            // A thread that ended between the two looks.
            Err(_) if !task.path().exists() => {}
            Err(_) => return None,
        }
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

/// This process, as the root of a tree.
pub(super) fn ourselves() -> i32 {
    rustix::process::getpid().as_raw_nonzero().get()
}

/// The children of a process, the dead that were not waited for included.
pub(super) fn children(root: i32) -> Vec<Member> {
    match listed_children(root) {
        Some(children) => children.into_iter().filter_map(member).collect(),
        None => everyone()
            .into_iter()
            .filter(|member| member.parent == root)
            .collect(),
    }
}

/// Every live descendant of `root`, parents before children; zombies are left out but looked through.
pub(super) fn descendants(root: i32) -> Vec<Member> {
    descendants_until(root, None)
}

/// As [`descendants`], but stops looking at this moment. Among many busy processes this one may have to wait for each look.
pub(super) fn descendants_until(root: i32, end: Option<Instant>) -> Vec<Member> {
    let mut walk = Walk {
        end,
        ..Walk::below(root)
    };
    walk.go();
    walk.found
}

/// A search for the live descendants of a process.
struct Walk {
    root: i32,
    /// What each process gets when it is found, before its children are looked for.
    signal: Option<Signal>,
    /// What it gets after that.
    last: Option<Signal>,
    /// When to stop.
    end: Option<Instant>,
    found: Vec<Member>,
    seen: HashSet<i32>,
}

/// A process whose children are still to be looked for.
struct Queued {
    pid: i32,
    /// If it was signalled.
    descriptor: Option<OwnedFd>,
}

impl Walk {
    fn below(root: i32) -> Self {
        Self {
            root,
            signal: None,
            last: None,
            end: None,
            found: Vec::new(),
            seen: HashSet::new(),
        }
    }

    /// Looks at the whole tree. Gives how many processes were found that were not found before.
    fn go(&mut self) -> usize {
        let before = self.found.len();
        if self.root <= 0 {
            // No process; to the kernel it is the parent of all.
            return 0;
        }
        // Only where the kernel lists no children.
        let all = listed_children(self.root).is_none().then(everyone);
        let mut looked_at = HashSet::from([self.root]);
        let mut queue = vec![Queued {
            pid: self.root,
            descriptor: None,
        }];
        while let Some(Queued { pid, descriptor }) = queue.pop()
            && self.end.is_none_or(|end| Instant::now() < end)
        {
            let children = match &all {
                None => listed_children(pid).unwrap_or_default(),
                Some(all) => {
                    let children = all.iter().filter(|member| member.parent == pid);
                    children.map(|member| member.pid).collect()
                }
            };
            for child in children {
                if looked_at.insert(child) {
                    if let Some(child) = self.look_at(child, &looked_at) {
                        queue.push(child);
                    } else {
                        looked_at.remove(&child);
                    }
                }
            }
            if let (Some(signal), Some(descriptor)) = (self.last, &descriptor) {
                let _ = pidfd_send_signal(descriptor, signal);
            }
        }
        self.found.len() - before
    }

    /// Takes in one process; `None` if it is not in the tree any more.
    fn look_at(&mut self, pid: i32, tree: &HashSet<i32>) -> Option<Queued> {
        // Opened before it is read: if the number is taken over in between, the signal reaches no process.
        let descriptor = match self.signal {
            Some(_) if !self.seen.contains(&pid) => open(pid),
            _ => None,
        };
        // Another parent than one in the tree means that the number was already taken over.
        let member = member(pid).filter(|member| tree.contains(&member.parent))?;
        if member.is_zombie || !self.seen.insert(pid) {
            return Some(Queued {
                pid,
                descriptor: None,
            });
        }
        if let (Some(signal), Some(descriptor)) = (self.signal, &descriptor) {
            let _ = pidfd_send_signal(descriptor, signal);
        }
        self.found.push(member);
        Some(Queued { pid, descriptor })
    }
}

/// How often a tree is walked for what was born during the last walk.
const MOST_WALKS: usize = 5;

/// Kills every descendant of `root`, or as many as it finds before this moment. Gives those that were alive.
///
/// Each is stopped before its children are looked for, so that it makes no others and does not compete with this process for the CPU.
pub(super) fn kill_all(root: i32, end: Option<Instant>) -> Vec<Member> {
    signal_all(Walk {
        signal: Some(Signal::STOP),
        last: Some(Signal::KILL),
        end,
        ..Walk::below(root)
    })
}

/// Stops every descendant of `root`.
pub(super) fn stop_all(root: i32) -> Vec<Member> {
    signal_all(Walk {
        signal: Some(Signal::STOP),
        ..Walk::below(root)
    })
}

/// A stopped process makes no others. So a walk that finds none that is new has found all.
fn signal_all(mut walk: Walk) -> Vec<Member> {
    for _ in 0..MOST_WALKS {
        if walk.go() == 0 {
            break;
        }
    }
    walk.found
}

/// What the kernel says a process is doing, as a letter.
fn state(pid: i32) -> Option<char> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    text[text.rfind(')')? + 1..].trim_start().chars().next()
}

/// Whether another process has stopped this one, by a signal or because it traces it.
pub(super) fn is_halted(pid: i32) -> bool {
    matches!(state(pid), Some('T' | 't'))
}

/// What the kernel says a process is doing, in words.
pub(super) fn state_in_words(pid: i32) -> String {
    match state(pid) {
        Some('T') => "is stopped".to_owned(),
        Some('t') => "is being traced".to_owned(),
        Some('Z' | 'X') | None => "is gone".to_owned(),
        Some('D') => "is frozen, or waits for a disk".to_owned(),
        Some(other) => format!("is in state {other}"),
    }
}

/// The groups of a process, as the kernel lists them.
pub(super) fn memberships(pid: i32) -> Option<String> {
    fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()
}

/// Whether this user may send signals to a process.
pub(super) fn may_signal(pid: i32) -> bool {
    Pid::from_raw(pid)
        .is_some_and(|pid| rustix::process::test_kill_process(pid) != Err(rustix::io::Errno::PERM))
}

/// Whether this process can look at others. It cannot if another one took its descriptors away (`prlimit`).
pub(super) fn can_look() -> bool {
    fs::File::open("/proc/self/stat").is_ok()
}

/// A search for children of this process that opens no files: it asks the kernel, number by number, which processes are its
/// children. All descendants become children once the processes between are gone.
#[derive(Debug)]
pub(super) struct BlindSearch {
    next: i32,
}

/// How many numbers are tried in one step. That takes some 10 ms.
const BLIND_STEP: i32 = 1 << 15;
/// The kernel's largest process number.
const LAST_NUMBER: i32 = 1 << 22;

impl BlindSearch {
    /// Begins with this number; young processes have larger ones than old processes, until they start again.
    pub(super) fn from(next: i32) -> Self {
        Self { next }
    }

    /// Kills the children found in one step. The next step tries other numbers if there were none.
    pub(super) fn kill_some(&mut self) {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let mut has_found = false;
        for number in self.next..self.next + BLIND_STEP {
            let Some(pid) = Pid::from_raw(number) else {
                continue;
            };
            // A child keeps its number until this process has waited for it.
            if let Ok(None) = waitid(WaitId::Pid(pid), options) {
                let _ = kill_process(pid, Signal::KILL);
                has_found = true;
            }
        }
        if !has_found {
            self.next += BLIND_STEP;
        }
        if self.next > LAST_NUMBER {
            self.next = 1;
        }
    }
}

/// Whether everything alive below this process belongs to a user whose processes it may not signal.
pub(super) fn is_out_of_reach() -> bool {
    let members = descendants(ourselves());
    !members.is_empty() && members.iter().all(|member| !may_signal(member.pid))
}

fn open(pid: i32) -> Option<OwnedFd> {
    pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty()).ok()
}

/// Sends a signal to exactly these processes, never to one that took over a number.
pub(super) fn signal(members: &[Member], signal: Signal) {
    for member in members {
        let Some(descriptor) = open(member.pid) else {
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
    let page = rustix::param::page_size() as u64;
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
        let members = descendants(ourselves());
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
