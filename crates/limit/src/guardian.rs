//! The parent of a supervisor process: continues it when it is stopped, and ends what is left when it is killed.
//!
//! Every orphan below a child subreaper becomes its child. The supervisor is one, and so is its guardian: should the supervisor be
//! killed, its whole tree is below the guardian, which has no other children and so may end all of them.

use std::io::{PipeReader, Read};
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitOptions, kill_process, set_child_subreaper, waitid,
    waitpid,
};

use super::clock::Instant;
use super::wire::Hello;
use super::{cgroup, sys, tree};

/// How long a supervisor may take to end its run once the main process is gone.
const DESERTED_PATIENCE: Duration = Duration::from_secs(3);
/// How long killed processes may take to end.
const SWEEP_PATIENCE: Duration = Duration::from_secs(5);
/// How long they may take if this process is not allowed to kill them.
const FOREIGN_PATIENCE: Duration = Duration::from_millis(500);

/// Watches over one supervisor, a child of this process.
#[derive(Debug)]
pub(super) struct Guardian {
    supervisor: Pid,
}

/// How a supervisor ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Death {
    /// By itself, having cleaned up.
    Exited,
    /// By a signal.
    Killed,
}

impl Guardian {
    pub(super) fn of(supervisor: i32) -> Option<Self> {
        Pid::from_raw(supervisor).map(|supervisor| Self { supervisor })
    }

    /// Looks at the supervisor; called when a child of this process has changed. A stopped supervisor is continued at once.
    pub(super) fn look(&self) -> Option<Death> {
        let options = WaitIdOptions::EXITED | WaitIdOptions::STOPPED | WaitIdOptions::NOHANG;
        loop {
            match waitid(WaitId::Pid(self.supervisor), options) {
                Ok(Some(status)) if status.exited() => return Some(Death::Exited),
                Ok(Some(status)) if status.killed() || status.dumped() => {
                    return Some(Death::Killed);
                }
                Ok(Some(_)) => {
                    let _ = kill_process(self.supervisor, Signal::CONT);
                }
                Err(rustix::io::Errno::INTR) => {}
                Ok(None) => return None,
                Err(_) => return Some(Death::Killed),
            }
        }
    }

    pub(super) fn kill(&self) {
        let _ = kill_process(self.supervisor, Signal::KILL);
    }
}

/// Ends all descendants of this process, which has none it wants to keep, and the groups of the supervisor that was lost.
pub(super) fn sweep(hello: &Hello) {
    let start = Instant::now();
    let mut pause = Duration::from_micros(500);
    let mut blind = tree::BlindSearch::from(tree::ourselves());
    loop {
        match sys::reap() {
            sys::Reap::Dead(_) => continue,
            sys::Reap::NoChildren => break,
            sys::Reap::NoneDead => {}
        }
        let waited = Instant::now().since(start);
        if waited > SWEEP_PATIENCE || waited > FOREIGN_PATIENCE && tree::is_out_of_reach() {
            break;
        }
        let members = tree::kill_all(tree::ourselves(), None);
        if !tree::can_look() {
            blind.kill_some();
        }
        if pause > Duration::from_millis(50) {
            for member in &members {
                cgroup::thaw(member.pid);
            }
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(100));
    }
    clean_groups(hello);
}

static ADOPTS: AtomicBool = AtomicBool::new(false);

/// Makes this process end what is left when a supervisor and its guardian are killed together, by something that the commands
/// in it did or another program.
///
/// The kernel makes this process the parent of all orphans below it. It ends those that are in another session than its own:
/// every command is started in a session of its own, and cannot join this one. So call this only in programs that start no other
/// processes which they want to outlive a supervisor in a session of their own.
pub fn adopt_orphans() {
    let is_set = set_child_subreaper(Some(rustix::process::getpid())).is_ok();
    ADOPTS.store(is_set, Ordering::SeqCst);
}

/// Ends what this process inherited from a guardian that was lost with its supervisor, and waits for both.
pub(super) fn sweep_adopted(supervisor: i32) {
    if !ADOPTS.load(Ordering::SeqCst) {
        return;
    }
    // Not rustix: its `getsid` panics on 0, the session of a process whose session began outside its PID namespace.
    let own = nix::unistd::getsid(None).map_or(0, nix::unistd::Pid::as_raw);
    let start = Instant::now();
    let mut pause = Duration::from_micros(500);
    loop {
        let mut children = tree::children(tree::ourselves());
        children.retain(|child| child.session != own || child.pid == supervisor);
        if children.is_empty() || Instant::now().since(start) > SWEEP_PATIENCE {
            return;
        }
        for child in children {
            tree::signal(&[child], Signal::STOP);
            tree::kill_all(child.pid, None);
            tree::signal(&[child], Signal::KILL);
            let _ = waitpid(Pid::from_raw(child.pid), WaitOptions::NOHANG);
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(50));
    }
}

/// Ends and removes the groups of a supervisor that is gone.
pub(super) fn clean_groups(hello: &Hello) {
    for group in [&hello.home, &hello.legacy].into_iter().flatten() {
        cgroup::end_group(group);
    }
}

/// The guardian's whole life, where it is a process of its own. `facts` brings what the supervisor reports first.
pub(super) fn watch(supervisor: i32, socket: BorrowedFd<'_>, mut facts: PipeReader) {
    let Some(guardian) = Guardian::of(supervisor) else {
        return;
    };
    let mut deserted: Option<Instant> = None;
    let death = loop {
        if let Some(death) = guardian.look() {
            break death;
        }
        match deserted {
            None => {
                // Nothing but its end is of interest: the supervisor reads it.
                let mut watched = [sys::ended(socket)];
                let _ = sys::wait(&mut watched, None);
                if sys::is_ready(&watched) {
                    deserted = Some(Instant::now());
                }
            }
            Some(since) => {
                let _ = sys::wait(&mut [], Some(Duration::from_millis(20)));
                if Instant::now().since(since) > DESERTED_PATIENCE {
                    cgroup::thaw(supervisor);
                    guardian.kill();
                }
            }
        }
    };
    if death == Death::Killed {
        let mut text = Vec::new();
        // Its writing end is closed: only the supervisor had it.
        let _ = facts.read_to_end(&mut text);
        sweep(&serde_json::from_slice(&text).unwrap_or_default());
    }
}
