//! The system calls no safe wrapper offers, and the few lines that run between `clone3` and `execve`.
#![allow(
    unsafe_code,
    reason = "raw clone3, wait4, ppoll and CPU clocks of other processes have no safe wrapper in our dependencies"
)]

mod descriptors;
mod signals;
mod spawn;

pub(super) use descriptors::{receive_descriptor, send_descriptor};
pub(super) use signals::{
    Watched, changed, next_signal, quiet_signals, readable, stop_signal, stop_signals, wait,
};
pub(super) use spawn::{Birth, Page, Plan, PlanParts, SpawnFailure, Spawned, Step, spawn};

use std::ffi::c_int;
use std::io;
use std::mem::{self, MaybeUninit};
use std::os::fd::RawFd;
use std::ptr;
use std::time::Duration;

/// The last error of this thread as an errno.
fn errno() -> i32 {
    io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

fn check(result: c_int) -> io::Result<c_int> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}

/// A dead child and what it, and the children it had waited for, used.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reaped {
    pub pid: i32,
    pub exit_code: Option<i32>,
    pub signal: Option<i32>,
    pub user: Duration,
    pub system: Duration,
    /// Largest resident set of any single process among them.
    pub largest: u64,
}

fn wait4(pid: i32, flags: c_int) -> io::Result<Option<Reaped>> {
    let mut status = 0;
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: both pointers are to live locals of the right type.
    let found = check(unsafe { libc::wait4(pid, &raw mut status, flags, usage.as_mut_ptr()) })?;
    if found == 0 {
        return Ok(None);
    }
    // SAFETY: zeroed, then filled by the kernel.
    let usage = unsafe { usage.assume_init() };
    let time = |value: libc::timeval| {
        Duration::from_secs(value.tv_sec as u64) + Duration::from_micros(value.tv_usec as u64)
    };
    Ok(Some(Reaped {
        pid: found,
        exit_code: libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status)),
        signal: libc::WIFSIGNALED(status).then(|| libc::WTERMSIG(status)),
        user: time(usage.ru_utime),
        system: time(usage.ru_stime),
        largest: usage.ru_maxrss as u64 * 1024,
    }))
}

/// What a look at our children found.
#[derive(Debug)]
pub(super) enum Reap {
    Dead(Reaped),
    /// Some are alive, none is dead.
    NoneDead,
    /// There are none at all.
    NoChildren,
}

/// Collects one dead child of this process, if there is one.
pub(super) fn reap() -> Reap {
    loop {
        match wait4(-1, libc::WNOHANG) {
            Ok(Some(dead)) => return Reap::Dead(dead),
            Ok(None) => return Reap::NoneDead,
            Err(error) if error.raw_os_error() == Some(libc::EINTR) => {}
            Err(_) => return Reap::NoChildren,
        }
    }
}

/// Waits for one child of ours, hidden or not, to end; gives its status as `wait` does.
pub(super) fn wait_for(pid: i32) -> io::Result<Reaped> {
    loop {
        match wait4(pid, libc::__WALL) {
            Ok(Some(dead)) => return Ok(dead),
            Ok(None) => {}
            Err(error) if error.raw_os_error() == Some(libc::EINTR) => {}
            Err(error) => return Err(error),
        }
    }
}

/// True once `pid`, a child of ours, is dead; it stays there to be reaped.
pub(super) fn is_dead(pid: i32) -> bool {
    // SAFETY: all-zero is a valid siginfo; the kernel fills it.
    let mut info: libc::siginfo_t = unsafe { mem::zeroed() };
    // SAFETY: a valid pointer to a local.
    let result = unsafe {
        libc::waitid(
            libc::P_PID,
            pid as libc::id_t,
            &raw mut info,
            libc::WEXITED | libc::WNOHANG | libc::WNOWAIT,
        )
    };
    // SAFETY: waitid fills the fields of a SIGCHLD.
    result < 0 || unsafe { info.si_pid() } == pid
}

/// CPU time of a live process so far, to the nanosecond.
///
/// Asking also makes the scheduler bring its books (and so those of the process's cgroup) up to date, which otherwise
/// happens once per tick.
pub(super) fn cpu_time(pid: i32) -> Option<Duration> {
    // The kernel's encoding of "the scheduler's clock of process pid".
    let clock = ((!(pid as libc::clockid_t)) << 3) | 2;
    let mut now = MaybeUninit::<libc::timespec>::zeroed();
    // SAFETY: a valid pointer to a local; an unknown process is an error, not undefined behaviour.
    let result = unsafe { libc::clock_gettime(clock, now.as_mut_ptr()) };
    // SAFETY: zeroed at first, so initialised in any case.
    let now = unsafe { now.assume_init() };
    (result == 0).then(|| Duration::new(now.tv_sec as u64, now.tv_nsec as u32))
}

/// Clock ticks per second, the unit of `/proc/PID/stat`.
pub(super) fn ticks_per_second() -> u64 {
    // SAFETY: sysconf has no preconditions.
    let ticks = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
    u64::try_from(ticks).unwrap_or(100).max(1)
}

/// Bytes per page of memory.
pub(super) fn page_size() -> u64 {
    // SAFETY: sysconf has no preconditions.
    let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    u64::try_from(size).unwrap_or(4096)
}

/// The moment "now" on the monotonic clock.
pub(super) fn monotonic() -> Duration {
    let mut now = MaybeUninit::<libc::timespec>::zeroed();
    // SAFETY: a valid pointer to a local; the monotonic clock always exists.
    let now = unsafe {
        libc::clock_gettime(libc::CLOCK_MONOTONIC, now.as_mut_ptr());
        now.assume_init()
    };
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

/// Makes timers of this thread fire on time instead of up to 50 us late; gives what commands should get back.
pub(super) fn sharpen_timers() -> u64 {
    // SAFETY: reads and sets one number of this thread.
    unsafe {
        let before = libc::prctl(libc::PR_GET_TIMERSLACK);
        libc::prctl(libc::PR_SET_TIMERSLACK, 1 as libc::c_ulong);
        u64::try_from(before).unwrap_or(50_000).max(1)
    }
}

/// Splits this process in two; gives the child's id to the parent and nothing to the child.
///
/// A `hidden` child sends no signal when it ends and is not seen by [`reap`].
/// Only for a process in which no other thread is doing anything.
pub(super) fn fork(hidden: bool) -> io::Result<Option<i32>> {
    // SAFETY: all-zero is a valid clone_args.
    let mut args: libc::clone_args = unsafe { mem::zeroed() };
    args.exit_signal = if hidden { 0 } else { libc::SIGCHLD as u64 };
    // SAFETY: a plain fork; no other thread holds a lock, so the child's memory is consistent.
    let pid = unsafe {
        libc::syscall(
            libc::SYS_clone3,
            ptr::from_mut(&mut args),
            size_of::<libc::clone_args>(),
        )
    };
    check(pid as c_int).map(|pid| (pid > 0).then_some(pid))
}

/// Makes `kept` the only open descriptor, as number 0.
pub(super) fn keep_only(kept: RawFd) {
    // SAFETY: for a process that will use none of the others, and `kept` only as number 0.
    unsafe {
        libc::dup2(kept, 0);
        libc::syscall(libc::SYS_close_range, 1 as c_int, c_int::MAX, 0 as c_int);
    }
}

/// Leaves at once, running nothing that was registered for a normal exit.
pub(super) fn leave(code: u8) -> ! {
    // SAFETY: ends the process.
    unsafe { libc::_exit(c_int::from(code)) }
}
