//! The system calls no safe wrapper offers, and the few lines that run between `clone3` and `execve`.
#![allow(
    unsafe_code,
    reason = "raw clone3, wait4, ppoll and CPU clocks of other processes have no safe wrapper in our dependencies"
)]

use std::ffi::{CString, c_char, c_int};
use std::io;
use std::mem::{self, MaybeUninit};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;
use std::sync::atomic::{AtomicI32, AtomicI64, AtomicU32, Ordering};
use std::time::Duration;

use super::clock::Instant;

const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;
/// What a child says on the shared page once everything before `execve` has worked.
const ABOUT_TO_EXEC: u32 = u32::MAX;

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

/// A page shared between the supervisor and the child it is about to start: how far the child got, why it went no
/// further, and the moment of its `execve`.
///
/// Cheaper than the usual close-on-exec pipe, and `CLONE_VFORK` makes it race-free: the parent goes on only when the
/// child has called `execve` or is gone.
#[derive(Debug)]
pub(super) struct Page(*mut Note);

#[repr(C)]
struct Note {
    step: AtomicU32,
    errno: AtomicI32,
    seconds: AtomicI64,
    nanos: AtomicI64,
}

// SAFETY: the page is plain atomics in a mapping that lives as long as `Page`.
unsafe impl Send for Page {}

impl Page {
    pub(super) fn new() -> io::Result<Self> {
        // SAFETY: an anonymous mapping at an address of the kernel's choice touches no memory of ours.
        let address = unsafe {
            libc::mmap(
                ptr::null_mut(),
                size_of::<Note>(),
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        if address == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Self(address.cast()))
    }

    fn note(&self) -> &Note {
        // SAFETY: the mapping is page-aligned, zeroed, large enough, lives until drop and holds only atomics.
        unsafe { &*self.0 }
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        // SAFETY: exactly the mapping made in `new`; no reference to it outlives `self`.
        unsafe { libc::munmap(self.0.cast(), size_of::<Note>()) };
    }
}

/// Where a child stopped before it became the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub(super) enum Step {
    Descriptors = 1,
    Directory = 2,
    Cpus = 3,
    Session = 4,
    Exec = 5,
}

impl Step {
    fn of(number: u32) -> Self {
        match number {
            1 => Self::Descriptors,
            2 => Self::Directory,
            3 => Self::Cpus,
            4 => Self::Session,
            _ => Self::Exec,
        }
    }
}

/// Everything a child needs, allocated before it exists: between `clone3` and `execve` nothing may allocate.
#[derive(Debug)]
pub(super) struct Plan {
    candidates: Vec<CString>,
    arguments: Vec<*const c_char>,
    environment: Vec<*const c_char>,
    /// `/bin/sh FILE ARGS...` for a file without a known format, as `execvp` does; slot 1 is filled in the child.
    shell: Vec<*const c_char>,
    descriptors: [RawFd; 3],
    directory: Option<CString>,
    cpus: Option<Vec<usize>>,
    timer_slack: u64,
    parent: i32,
    // The pointers above point into these.
    _owned: (Vec<CString>, Vec<CString>),
}

/// The parts of a [`Plan`], before they are turned into what the kernel wants.
#[derive(Debug)]
pub(super) struct PlanParts<'a> {
    pub candidates: Vec<CString>,
    pub arguments: Vec<CString>,
    pub environment: Vec<CString>,
    pub descriptors: [BorrowedFd<'a>; 3],
    pub directory: Option<CString>,
    pub cpus: Option<Vec<usize>>,
    pub timer_slack: u64,
}

impl Plan {
    /// The descriptors must stay open until the plan has been used.
    pub(super) fn new(parts: PlanParts<'_>) -> Self {
        let pointers = |texts: &[CString]| {
            texts
                .iter()
                .map(|text| text.as_ptr())
                .chain([ptr::null()])
                .collect::<Vec<_>>()
        };
        let arguments = pointers(&parts.arguments);
        let environment = pointers(&parts.environment);
        let mut shell = vec![c"/bin/sh".as_ptr(), ptr::null()];
        shell.extend(arguments.iter().skip(1));
        Self {
            candidates: parts.candidates,
            arguments,
            environment,
            shell,
            descriptors: parts.descriptors.map(|descriptor| descriptor.as_raw_fd()),
            directory: parts.directory,
            cpus: parts.cpus,
            timer_slack: parts.timer_slack,
            parent: rustix::process::getpid().as_raw_nonzero().get(),
            _owned: (parts.arguments, parts.environment),
        }
    }
}

/// A child that has become its command, or died trying.
#[derive(Debug)]
pub(super) struct Spawned {
    pub pid: i32,
    pub pidfd: OwnedFd,
    /// The moment of `execve`; absent if the child was killed before it got there.
    pub exec: Option<Instant>,
}

/// Why there is no child.
#[derive(Debug)]
pub(super) enum SpawnFailure {
    /// The kernel refused to make one.
    Clone(i32),
    /// It failed on its way to the command; it has been reaped.
    Child(Step, i32),
}

/// Starts a child, born in `group`, and returns when it has called `execve`, failed to, or died.
pub(super) fn spawn(
    plan: &mut Plan,
    group: Option<BorrowedFd<'_>>,
    page: &Page,
) -> Result<Spawned, SpawnFailure> {
    let note = page.note();
    note.step.store(0, Ordering::Relaxed);
    note.errno.store(0, Ordering::Relaxed);
    let mut pidfd: c_int = -1;
    // SAFETY: all-zero is a valid clone_args: no flags, no stack (the child runs on its copy of ours).
    let mut args: libc::clone_args = unsafe { mem::zeroed() };
    args.flags = (libc::CLONE_PIDFD | libc::CLONE_VFORK) as u64;
    args.pidfd = ptr::from_mut(&mut pidfd) as u64;
    args.exit_signal = libc::SIGCHLD as u64;
    if let Some(group) = group {
        args.flags |= CLONE_INTO_CGROUP;
        args.cgroup = group.as_raw_fd() as u64;
    }
    // SAFETY: without CLONE_VM this is a fork: the child has its own copy of our memory and runs only `become_command`,
    // which makes raw system calls on data prepared above and never returns.
    let pid = unsafe {
        libc::syscall(
            libc::SYS_clone3,
            ptr::from_mut(&mut args),
            size_of::<libc::clone_args>(),
        )
    };
    if pid == 0 {
        // SAFETY: we are the child of the clone3 above.
        unsafe { become_command(plan, note) }
    }
    if pid < 0 {
        return Err(SpawnFailure::Clone(errno()));
    }
    let pid = pid as i32;
    // SAFETY: the kernel stored a new descriptor that nobody else owns.
    let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd) };
    let failed = note.errno.load(Ordering::Acquire);
    if failed != 0 {
        let _ = wait4(pid, 0);
        return Err(SpawnFailure::Child(
            Step::of(note.step.load(Ordering::Relaxed)),
            failed,
        ));
    }
    let exec = (note.step.load(Ordering::Acquire) == ABOUT_TO_EXEC).then(|| {
        let seconds = note.seconds.load(Ordering::Relaxed) as u64;
        let nanos = note.nanos.load(Ordering::Relaxed) as u32;
        Instant::at(Duration::new(seconds, nanos))
    });
    Ok(Spawned { pid, pidfd, exec })
}

/// Runs in the child: its own session, default signals, the right descriptors, then the command.
///
/// # Safety
/// Only in a freshly forked child; makes no allocation and takes no lock.
unsafe fn become_command(plan: &mut Plan, note: &Note) -> ! {
    let fail = |step: Step| -> ! {
        note.step.store(step as u32, Ordering::Relaxed);
        note.errno.store(errno().max(1), Ordering::Release);
        // SAFETY: leaves at once, without running anything of the parent's.
        unsafe { libc::_exit(127) }
    };
    // SAFETY: plain system calls on our own, single-threaded process; all pointers come from the plan, which outlives
    // this function, and every array of pointers ends with null.
    unsafe {
        // Dies with the supervisor, should that be killed before it can end the whole tree.
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as libc::c_ulong);
        if libc::getppid() != plan.parent {
            libc::_exit(127);
        }
        if libc::setsid() < 0 {
            fail(Step::Session);
        }
        for (target, source) in plan.descriptors.iter().enumerate() {
            let target = target as c_int;
            if *source != target && libc::dup2(*source, target) < 0 {
                fail(Step::Descriptors);
            }
        }
        libc::syscall(libc::SYS_close_range, 3 as c_int, c_int::MAX, 0 as c_int);
        if let Some(directory) = &plan.directory
            && libc::chdir(directory.as_ptr()) < 0
        {
            fail(Step::Directory);
        }
        if let Some(cpus) = &plan.cpus {
            let mut set: libc::cpu_set_t = mem::zeroed();
            for &cpu in cpus {
                libc::CPU_SET(cpu, &mut set);
            }
            if libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set) < 0 {
                fail(Step::Cpus);
            }
        }
        libc::prctl(libc::PR_SET_TIMERSLACK, plan.timer_slack);
        let mut empty = MaybeUninit::uninit();
        libc::sigemptyset(empty.as_mut_ptr());
        libc::sigprocmask(libc::SIG_SETMASK, empty.as_ptr(), ptr::null_mut());
        let mut now: libc::timespec = mem::zeroed();
        libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now);
        note.seconds.store(now.tv_sec, Ordering::Relaxed);
        note.nanos.store(now.tv_nsec, Ordering::Relaxed);
        note.step.store(ABOUT_TO_EXEC, Ordering::Release);
        exec(plan);
        fail(Step::Exec)
    }
}

/// Tries every candidate as `execvp` does; returns only if none could be executed, with the telling errno set.
///
/// # Safety
/// As for [`become_command`].
unsafe fn exec(plan: &mut Plan) {
    let mut refused = false;
    for candidate in &plan.candidates {
        // SAFETY: the plan's pointers are valid and null-terminated arrays.
        unsafe {
            libc::execve(
                candidate.as_ptr(),
                plan.arguments.as_ptr(),
                plan.environment.as_ptr(),
            );
        }
        match errno() {
            libc::ENOEXEC => {
                plan.shell[1] = candidate.as_ptr();
                // SAFETY: as above.
                unsafe {
                    libc::execve(
                        plan.shell[0],
                        plan.shell.as_ptr(),
                        plan.environment.as_ptr(),
                    );
                }
                return;
            }
            libc::EACCES => refused = true,
            libc::ENOENT | libc::ENOTDIR | libc::ESTALE | libc::ENODEV | libc::ETIMEDOUT => {}
            _ => return,
        }
    }
    // A file that may not be executed says more than the absence of the others.
    if refused {
        // SAFETY: errno is this thread's own.
        unsafe { *libc::__errno_location() = libc::EACCES };
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
        match wait4(-1, libc::WNOHANG | libc::__WALL) {
            Ok(Some(dead)) => return Reap::Dead(dead),
            Ok(None) => return Reap::NoneDead,
            Err(error) if error.raw_os_error() == Some(libc::EINTR) => {}
            Err(_) => return Reap::NoChildren,
        }
    }
}

/// Waits for one child of ours to end; gives its status as `wait` does.
pub(super) fn wait_for(pid: i32) -> io::Result<Reaped> {
    loop {
        match wait4(pid, 0) {
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

extern "C" fn nothing(_: c_int) {}

/// Prepares this process to be a supervisor: every signal blocked, none ignored (so that commands start with the
/// defaults), SIGCHLD interrupting [`wait`] only.
pub(super) fn quiet_signals() {
    // SAFETY: sigset functions write only to the local set; `nothing` is async-signal-safe; changing dispositions
    // happens before this process does anything else.
    unsafe {
        let mut all = MaybeUninit::uninit();
        libc::sigfillset(all.as_mut_ptr());
        libc::sigprocmask(libc::SIG_SETMASK, all.as_ptr(), ptr::null_mut());
        for signal in 1..=libc::SIGRTMAX() {
            // Not through libc, which hides the two signals it keeps to itself. The kernel's structure begins with
            // the handler; all zero is the default one.
            let (mut found, default) = ([0_usize; 4], [0_usize; 4]);
            let none = ptr::null_mut::<usize>();
            let (into, size) = (found.as_mut_ptr(), size_of::<u64>());
            if libc::syscall(libc::SYS_rt_sigaction, signal, none, into, size) == 0
                && found[0] == libc::SIG_IGN
            {
                libc::syscall(libc::SYS_rt_sigaction, signal, default.as_ptr(), none, size);
            }
        }
        let mut action: libc::sigaction = mem::zeroed();
        action.sa_sigaction = nothing as *const () as libc::sighandler_t;
        libc::sigaction(libc::SIGCHLD, &raw const action, ptr::null_mut());
    }
}

/// One descriptor to wait for.
pub(super) type Watched = libc::pollfd;

/// Something to read (or the end) at this descriptor.
pub(super) fn readable(descriptor: BorrowedFd<'_>) -> Watched {
    Watched {
        fd: descriptor.as_raw_fd(),
        events: libc::POLLIN,
        revents: 0,
    }
}

/// A change of a cgroup file.
pub(super) fn changed(descriptor: BorrowedFd<'_>) -> Watched {
    Watched {
        fd: descriptor.as_raw_fd(),
        events: libc::POLLPRI,
        revents: 0,
    }
}

/// Waits until a descriptor is ready, a child has ended, or the time is up.
pub(super) fn wait(watched: &mut [Watched], timeout: Option<Duration>) -> io::Result<()> {
    let timeout = timeout.map(|timeout| libc::timespec {
        tv_sec: timeout.as_secs().min(1 << 40) as i64,
        tv_nsec: i64::from(timeout.subsec_nanos()),
    });
    for entry in watched.iter_mut() {
        entry.revents = 0;
    }
    // SAFETY: the mask is initialised by sigfillset; the array and the timeout outlive the call.
    let result = unsafe {
        let mut mask = MaybeUninit::uninit();
        libc::sigfillset(mask.as_mut_ptr());
        libc::sigdelset(mask.as_mut_ptr(), libc::SIGCHLD);
        libc::ppoll(
            watched.as_mut_ptr(),
            watched.len() as libc::nfds_t,
            timeout.as_ref().map_or(ptr::null(), ptr::from_ref),
            mask.as_ptr(),
        )
    };
    match check(result) {
        Err(error) if error.raw_os_error() == Some(libc::EINTR) => Ok(()),
        Err(error) => Err(error),
        Ok(_) => Ok(()),
    }
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

/// Signals the front of `captime exec` waits for: its supervisor's end and requests to stop.
const HEARD: [c_int; 5] = [
    libc::SIGCHLD,
    libc::SIGINT,
    libc::SIGTERM,
    libc::SIGHUP,
    libc::SIGQUIT,
];

/// Blocks every signal that is to be heard by [`next_signal`] (or must not stop us: SIGTSTP and its kin).
pub(super) fn hold_signals() {
    // SAFETY: writes only to the local set and this thread's mask.
    unsafe {
        let mut set = MaybeUninit::uninit();
        libc::sigfillset(set.as_mut_ptr());
        libc::sigprocmask(libc::SIG_SETMASK, set.as_ptr(), ptr::null_mut());
        // An ignored SIGCHLD (inherited from a careless parent) would lose our supervisor's status.
        libc::signal(libc::SIGCHLD, libc::SIG_DFL);
    }
}

/// Waits for the next of the signals we listen to.
pub(super) fn next_signal() -> c_int {
    // SAFETY: the set is initialised; sigwaitinfo may be given no place for its details.
    unsafe {
        let mut set = MaybeUninit::uninit();
        libc::sigemptyset(set.as_mut_ptr());
        for signal in HEARD {
            libc::sigaddset(set.as_mut_ptr(), signal);
        }
        loop {
            let signal = libc::sigwaitinfo(set.as_ptr(), ptr::null_mut());
            if signal > 0 {
                return signal;
            }
        }
    }
}

/// Splits this process in two; gives the child's id to the parent and nothing to the child.
///
/// Only for a process with a single thread, such as `captime exec` at its start.
pub(super) fn fork() -> io::Result<Option<i32>> {
    // SAFETY: called with a single thread, so the child's memory is consistent.
    let pid = check(unsafe { libc::fork() })?;
    Ok((pid > 0).then_some(pid))
}

/// Leaves at once, running nothing that was registered for a normal exit.
pub(super) fn leave(code: u8) -> ! {
    // SAFETY: ends the process.
    unsafe { libc::_exit(c_int::from(code)) }
}

/// Sends one byte and a descriptor over a socket.
pub(super) fn send_descriptor(socket: BorrowedFd<'_>, sent: BorrowedFd<'_>) -> io::Result<()> {
    let mut byte = [0_u8];
    let mut room = ControlRoom::default();
    let mut part = libc::iovec {
        iov_base: byte.as_mut_ptr().cast(),
        iov_len: 1,
    };
    // SAFETY: the header points to live locals; the control room is aligned and large enough for one descriptor, so
    // the first header exists.
    unsafe {
        let message = room.message(&mut part);
        let header = libc::CMSG_FIRSTHDR(&raw const message);
        (*header).cmsg_level = libc::SOL_SOCKET;
        (*header).cmsg_type = libc::SCM_RIGHTS;
        (*header).cmsg_len = libc::CMSG_LEN(size_of::<RawFd>() as u32) as _;
        ptr::write_unaligned(libc::CMSG_DATA(header).cast::<RawFd>(), sent.as_raw_fd());
        let count = libc::sendmsg(socket.as_raw_fd(), &raw const message, libc::MSG_NOSIGNAL);
        check(count as c_int).map(drop)
    }
}

/// Receives one byte and the descriptor that comes with it.
pub(super) fn receive_descriptor(socket: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    let mut byte = [0_u8];
    let mut room = ControlRoom::default();
    let mut part = libc::iovec {
        iov_base: byte.as_mut_ptr().cast(),
        iov_len: 1,
    };
    // SAFETY: as in `send_descriptor`; a descriptor is taken only from a header that says it carries one, and the kernel
    // made it for us alone.
    unsafe {
        let mut message = room.message(&mut part);
        let count = libc::recvmsg(socket.as_raw_fd(), &raw mut message, libc::MSG_CMSG_CLOEXEC);
        check(count as c_int)?;
        let header = libc::CMSG_FIRSTHDR(&raw const message);
        if header.is_null()
            || (*header).cmsg_level != libc::SOL_SOCKET
            || (*header).cmsg_type != libc::SCM_RIGHTS
        {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let received = ptr::read_unaligned(libc::CMSG_DATA(header).cast::<RawFd>());
        Ok(OwnedFd::from_raw_fd(received))
    }
}

/// Room for the ancillary data of one descriptor, aligned as its header wants.
#[derive(Default)]
struct ControlRoom([u64; 4]);

impl ControlRoom {
    fn message(&mut self, part: &mut libc::iovec) -> libc::msghdr {
        // SAFETY: all-zero is a valid msghdr: no name, no flags.
        let mut message: libc::msghdr = unsafe { mem::zeroed() };
        message.msg_iov = part;
        message.msg_iovlen = 1;
        message.msg_control = self.0.as_mut_ptr().cast();
        // SAFETY: plain arithmetic.
        message.msg_controllen = unsafe { libc::CMSG_SPACE(size_of::<RawFd>() as u32) } as _;
        message
    }
}
