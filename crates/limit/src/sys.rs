//! The system calls no safe wrapper offers, and the few lines that run between `clone3` and `execve`.
#![allow(
    unsafe_code,
    reason = "raw clone3, wait4, signal handlers and code before main have no safe wrapper in our dependencies"
)]

mod signals;
mod spawn;
mod startup;

pub(super) use signals::{
    Watched, changed, ended, is_ready, quiet_signals, readable, readable_or_writable,
    sleep_through_continuation, stop_signal, stop_signals, wait,
};
pub(super) use spawn::{
    ChildPlan, ChildPlanParts, CloneMode, Page, SpawnFailure, Spawned, Step, spawn,
};
pub(super) use startup::{SUPERVISE, is_linked};

use std::ffi::c_int;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::{self, MaybeUninit};
use std::num::NonZeroU64;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::ptr;
use std::time::Duration;

use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags,
    SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg,
    sendmsg,
};
use rustix::process::Signal;
use rustix::thread::{CpuSet, sched_getaffinity};

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

/// Not `waitid` or a safe wrapper: only `wait4` says what the child used.
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

/// What a look at the children of this process found.
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

/// CPU time of a live process so far, to the nanosecond.
///
/// Asking also makes the scheduler update its counts (and so those of the process's cgroup), which otherwise happens once
/// per tick.
pub(super) fn cpu_time(pid: i32) -> Option<Duration> {
    // The kernel's encoding of "the scheduler's clock of process pid".
    let clock = ((!(pid as libc::clockid_t)) << 3) | 2;
    nix::time::clock_gettime(nix::time::ClockId::from_raw(clock))
        .ok()
        .map(Duration::from)
}

/// The moment "now" on the monotonic clock.
pub(super) fn monotonic() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

/// Makes timers of this thread fire on time instead of up to 50 us late; gives what commands should get back.
pub(super) fn sharpen_timers() -> u64 {
    let before = rustix::thread::current_timer_slack().unwrap_or(50_000);
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
    before.max(1)
}

/// Asks the scheduler to run this thread soon after it wakes, for a short time each: it does little, and commands wait for it. No
/// more of the CPU than before, and what it starts gets the usual treatment.
///
/// Linux 6.12 and later. Does nothing for a thread with a priority of its own.
pub fn wake_promptly() {
    /// The least that the kernel allows.
    const SLICE: u64 = 100_000;
    /// The kernel's `sched_attr`.
    #[repr(C)]
    #[derive(Default)]
    struct Attributes {
        size: u32,
        policy: u32,
        flags: u64,
        nice: i32,
        priority: u32,
        runtime: u64,
        deadline: u64,
        period: u64,
    }
    let size = size_of::<Attributes>() as u32;
    let mut found = Attributes::default();
    // SAFETY: the structure is a local of the size that is given, with which the kernel fills it.
    let asked = unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut found, size, 0) };
    let is_ordinary = found.policy == libc::SCHED_OTHER as u32 && found.nice >= 0;
    if asked != 0 || !is_ordinary {
        return;
    }
    let wanted = Attributes {
        size,
        flags: libc::SCHED_FLAG_RESET_ON_FORK as u64,
        nice: found.nice,
        runtime: SLICE,
        ..Attributes::default()
    };
    // SAFETY: as above; changes how this thread is scheduled, nothing else.
    unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const wanted, 0) };
}

/// Takes from what this thread starts the powers with which root could leave its namespaces, trace captime or change mounts; those of
/// ordinary work with files stay. Other users have none anyway. Its own powers stay as they are.
pub(super) fn drop_capabilities() {
    // CHOWN, DAC_OVERRIDE, DAC_READ_SEARCH, FOWNER, FSETID, KILL, SETGID, SETUID, SETPCAP, NET_BIND_SERVICE, IPC_LOCK, SYS_CHROOT,
    // SYS_NICE, SYS_RESOURCE, SETFCAP.
    const KEPT: u64 = 0x1ff | 1 << 10 | 1 << 14 | 1 << 18 | 1 << 23 | 1 << 24 | 1 << 31;
    for capability in (0..64_u64).filter(|capability| KEPT >> capability & 1 == 0) {
        // SAFETY: changes what this thread may execute, nothing else.
        let result = unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability) };
        if result < 0 {
            // The kernel knows no more of them, or this user has none.
            break;
        }
    }
}

/// Registers a descriptor with tokio, which reports when something can be read.
#[cfg(feature = "tokio")]
pub(super) fn register(descriptor: OwnedFd) -> io::Result<tokio::io::unix::AsyncFd<OwnedFd>> {
    use tokio::io::Interest;
    use tokio::io::unix::AsyncFd;
    // SAFETY: an `OwnedFd` is open, and stays the same one, for as long as tokio owns it.
    Ok(unsafe { AsyncFd::register_with_interest(descriptor, Interest::READABLE) }?)
}

/// Splits this process in two; gives the child's id to the parent and nothing to the child. `namespaces` are the
/// `CLONE_NEW*` flags of what the child gets of its own.
///
/// # Safety
/// No other thread of this process may exist: it could hold a lock, such as the allocator's, that the child could
/// never release.
unsafe fn fork(namespaces: u64) -> io::Result<Option<i32>> {
    // SAFETY: all-zero is a valid clone_args.
    let mut args: libc::clone_args = unsafe { mem::zeroed() };
    args.flags = namespaces;
    args.exit_signal = libc::SIGCHLD as u64;
    // SAFETY: a plain fork; the caller promises that no other thread exists, so the child's memory is consistent.
    let pid = unsafe {
        libc::syscall(
            libc::SYS_clone3,
            ptr::from_mut(&mut args),
            size_of::<libc::clone_args>(),
        )
    };
    check(pid as c_int).map(|pid| (pid > 0).then_some(pid))
}

/// As [`fork`], refused with `EBUSY` where another thread exists.
pub(super) fn fork_alone(namespaces: u64) -> io::Result<Option<i32>> {
    // The kernel counts the threads of a process among the links to the folder of its tasks.
    if rustix::fs::stat("/proc/self/task")?.st_nlink != 3 {
        return Err(io::Error::from_raw_os_error(libc::EBUSY));
    }
    // SAFETY: this is the only thread, and only it could start another.
    unsafe { fork(namespaces) }
}

/// Gives this thread namespaces of its own, but for those that change what memory or descriptors mean.
pub(super) fn unshare(flags: rustix::thread::UnshareFlags) -> io::Result<()> {
    use rustix::thread::UnshareFlags;
    let harmless = UnshareFlags::NEWNS | UnshareFlags::NEWNET | UnshareFlags::NEWIPC;
    // SAFETY: none of these flags takes away a table of descriptors, or anything else that other code relies on.
    unsafe { rustix::thread::unshare_unsafe(flags & harmless) }?;
    Ok(())
}

/// Signals every other process of the PID namespace at once, forks included, if this process is its first.
pub(super) fn signal_namespace(signal: Signal) {
    let every_other = nix::unistd::Pid::from_raw(-1);
    if rustix::process::getpid().is_init()
        && let Ok(signal) = nix::sys::signal::Signal::try_from(signal.as_raw())
    {
        // If this fails, no process is left to signal.
        let _ = nix::sys::signal::kill(every_other, signal);
    }
}

/// Signals the process group that this process leads, or led before it ended, at once, forks included. Does nothing before Linux 6.9.
pub(super) fn signal_group(leader: BorrowedFd<'_>, signal: Signal) {
    const PIDFD_SIGNAL_PROCESS_GROUP: c_int = 4;
    let (descriptor, none) = (leader.as_raw_fd(), ptr::null::<libc::siginfo_t>());
    // SAFETY: no memory is handed over. The descriptor stands for the group beyond the reuse of its number.
    unsafe {
        let call = libc::SYS_pidfd_send_signal;
        libc::syscall(
            call,
            descriptor,
            signal.as_raw(),
            none,
            PIDFD_SIGNAL_PROCESS_GROUP,
        );
    }
}

/// Switches on the loopback interface of a fresh network namespace; without it, programs cannot even talk to themselves.
pub(super) fn start_loopback() {
    #[repr(C)]
    struct Request {
        name: [u8; libc::IFNAMSIZ],
        flags: libc::c_short,
        rest: [u8; 22],
    }
    let mut request = Request {
        name: [0; libc::IFNAMSIZ],
        flags: (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short,
        rest: [0; 22],
    };
    request.name[..2].copy_from_slice(b"lo");
    let (family, kind) = (AddressFamily::INET, SocketType::DGRAM);
    let Ok(socket) = rustix::net::socket_with(family, kind, SocketFlags::CLOEXEC, None) else {
        return;
    };
    // SAFETY: the request is as large as the kernel's, and lives longer than the call, which only reads it.
    unsafe {
        libc::ioctl(
            socket.as_raw_fd(),
            libc::SIOCSIFFLAGS,
            ptr::from_ref(&request),
        );
    }
}

/// What any process of the same user can change about a thread, even the first one of its PID namespace, and what children inherit.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Standing {
    policy: c_int,
    nice: c_int,
    io_priority: c_int,
    cpus: Option<CpuSet>,
    limits: Vec<(u64, u64)>,
}

impl Standing {
    /// That of the calling thread.
    pub(super) fn now() -> Self {
        const IOPRIO_WHO_PROCESS: c_int = 1;
        // The kernel's list ends where it refuses.
        let limit = |resource: u32| {
            // SAFETY: all zero is a valid structure, of which the pointer is to a local.
            unsafe {
                let mut found: libc::rlimit64 = mem::zeroed();
                let none = ptr::null::<libc::rlimit64>();
                let into = &raw mut found;
                let asked = libc::syscall(libc::SYS_prlimit64, 0, resource, none, into);
                (asked == 0).then_some((found.rlim_cur, found.rlim_max))
            }
        };
        // SAFETY: takes no pointers and changes nothing.
        let io_priority =
            unsafe { libc::syscall(libc::SYS_ioprio_get, IOPRIO_WHO_PROCESS, 0) as c_int };
        Self {
            policy: scheduling_policy(),
            nice: nice(),
            io_priority,
            cpus: sched_getaffinity(None).ok(),
            limits: (0..).map_while(limit).collect(),
        }
    }
}

/// How the scheduler treats the calling thread.
fn scheduling_policy() -> c_int {
    // SAFETY: takes no pointers and changes nothing.
    unsafe { libc::sched_getscheduler(0) }
}

fn nice() -> i32 {
    rustix::process::getpriority_process(None).unwrap_or(0)
}

/// What decides how soon a thread gets the CPU, and which.
#[derive(Debug)]
pub(super) struct Share {
    policy: c_int,
    nice: c_int,
    cpus: Option<CpuSet>,
}

impl Share {
    /// That of the calling thread, which processes started by it inherit.
    pub(super) fn now() -> Self {
        Self {
            policy: scheduling_policy(),
            nice: nice(),
            cpus: sched_getaffinity(None).ok(),
        }
    }

    /// Gives it to another process, as far as this one may.
    pub(super) fn give_to(&self, pid: i32) {
        let Some(process) = rustix::process::Pid::from_raw(pid).filter(|_| pid > 0) else {
            return;
        };
        // SAFETY: all zero is a valid structure, of which the pointer is to a local; the first call changes nothing.
        unsafe {
            // Of its own a supervisor has only the flag, which must stay: without it, it would pass for one that a command changed.
            let found = libc::sched_getscheduler(pid);
            if found & !libc::SCHED_RESET_ON_FORK != self.policy & !libc::SCHED_RESET_ON_FORK {
                let parameters: libc::sched_param = mem::zeroed();
                libc::sched_setscheduler(pid, self.policy, &raw const parameters);
            }
        }
        let _ = rustix::process::setpriority_process(Some(process), self.nice);
        if let Some(cpus) = &self.cpus {
            let _ = rustix::thread::sched_setaffinity(Some(process), cpus);
        }
    }
}

/// Sends one byte and a descriptor over a socket.
pub(super) fn send_descriptor(socket: BorrowedFd<'_>, sent: BorrowedFd<'_>) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let sent = [sent];
    if !control.push(SendAncillaryMessage::ScmRights(&sent)) {
        return Err(io::ErrorKind::OutOfMemory.into());
    }
    sendmsg(
        socket,
        &[IoSlice::new(&[0])],
        &mut control,
        SendFlags::NOSIGNAL,
    )?;
    Ok(())
}

/// Receives one byte and the descriptor that comes with it.
pub(super) fn receive_descriptor(socket: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let received = recvmsg(
        socket,
        &mut [IoSliceMut::new(&mut byte)],
        &mut control,
        RecvFlags::CMSG_CLOEXEC,
    )?;
    // The kernel drops descriptors for which it finds no number: then there is none to wait for.
    if received.flags.contains(ReturnFlags::CTRUNC) {
        return Err(io::Error::from_raw_os_error(libc::EMFILE));
    }
    control
        .drain()
        .find_map(|message| match message {
            RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
            _ => None,
        })
        .ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
}

/// Leaves at once, running nothing that was registered for a normal exit.
pub(super) fn leave(code: u8) -> ! {
    // SAFETY: ends the process.
    unsafe { libc::_exit(c_int::from(code)) }
}
