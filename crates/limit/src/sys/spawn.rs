//! The few lines that run between `clone3` and `execve`, and what they need.

use std::ffi::{CString, c_char, c_int};
use std::io;
use std::mem::{self, MaybeUninit};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;
use std::sync::atomic::{AtomicI32, AtomicI64, AtomicU32, Ordering};
use std::time::Duration;

use super::super::clock::Instant;
use super::super::contain::Contain;
use super::{errno, wait4};

const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;
/// Signal handlers of this process must not run in a child that shares its memory.
const CLONE_CLEAR_SIGHAND: u64 = 0x1_0000_0000;
/// What a child says on the shared page once everything before `execve` has worked.
const ABOUT_TO_EXEC: u32 = u32::MAX;

/// Memory shared between the supervisor and the child it is about to start: how far the child got, why it went no
/// further, the moment of its `execve`, and the stack it runs on until then.
///
/// Cheaper than the usual close-on-exec pipe, and `CLONE_VFORK` makes it race-free: the parent continues only when the
/// child has called `execve` or is gone.
#[derive(Debug)]
pub(crate) struct Page(*mut Note);

/// The note at the lower end, the child's stack at the upper; [`become_command`] needs a few hundred bytes of it.
const PAGE_BYTES: usize = 64 << 10;

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
    pub(crate) fn new() -> io::Result<Self> {
        // SAFETY: an anonymous mapping at an address of the kernel's choice touches no memory in use.
        let address = unsafe {
            libc::mmap(
                ptr::null_mut(),
                PAGE_BYTES,
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
        unsafe { libc::munmap(self.0.cast(), PAGE_BYTES) };
    }
}

/// Where a child stopped before it became the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Step {
    Descriptors = 1,
    Directory = 2,
    Cpus = 3,
    Session = 4,
    Exec = 5,
    Contain = 6,
}

impl Step {
    fn of(number: u32) -> Self {
        match number {
            1 => Self::Descriptors,
            2 => Self::Directory,
            3 => Self::Cpus,
            4 => Self::Session,
            6 => Self::Contain,
            _ => Self::Exec,
        }
    }
}

/// Everything a child needs, allocated before it exists: between `clone3` and `execve` nothing may allocate.
#[derive(Debug)]
pub(crate) struct ChildPlan {
    candidates: Vec<CString>,
    arguments: Vec<*const c_char>,
    environment: Vec<*const c_char>,
    /// `/bin/sh FILE ARGS...` for a file without a known format, as `execvp` does; slot 1 is filled in the child.
    shell: Vec<*const c_char>,
    descriptors: [RawFd; 3],
    directory: Option<CString>,
    cpus: Option<Vec<usize>>,
    timer_slack: u64,
    contain: Contain,
    parent: i32,
    // The pointers above point into these.
    _owned: (Vec<CString>, Vec<CString>),
}

/// The parts of a [`ChildPlan`], before they are turned into what the kernel wants.
#[derive(Debug)]
pub(crate) struct ChildPlanParts {
    pub candidates: Vec<CString>,
    pub arguments: Vec<CString>,
    pub environment: Vec<CString>,
    pub descriptors: [RawFd; 3],
    pub directory: Option<CString>,
    pub cpus: Option<Vec<usize>>,
    pub timer_slack: u64,
    pub contain: Contain,
}

impl ChildPlan {
    /// The descriptors must stay open until the plan has been used.
    pub(crate) fn new(parts: ChildPlanParts) -> Self {
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
            descriptors: parts.descriptors,
            directory: parts.directory,
            cpus: parts.cpus,
            timer_slack: parts.timer_slack,
            contain: parts.contain,
            parent: rustix::process::getpid().as_raw_nonzero().get(),
            _owned: (parts.arguments, parts.environment),
        }
    }
}

/// A child that has become its command, or died trying.
#[derive(Debug)]
pub(crate) struct Spawned {
    pub pid: i32,
    pub pidfd: OwnedFd,
    /// The moment of `execve`; absent if the child was killed before it got there.
    pub exec: Option<Instant>,
}

/// Why there is no child.
#[derive(Debug)]
pub(crate) enum SpawnFailure {
    /// The kernel refused to make one.
    Clone(i32),
    /// It failed on its way to the command; it has been reaped.
    Child(Step, i32),
}

/// What the child is handed.
struct ChildTask<'a> {
    plan: &'a mut ChildPlan,
    note: &'a Note,
}

/// How a child comes into being.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CloneMode {
    /// In the memory of this process, on a stack of its own, as after `vfork`: nothing is copied, so it costs the same from any process.
    Shared,
    /// With a copy of that memory: for children under a memory limit. One that shares it cannot be chosen by the kernel's
    /// out-of-memory killer, and if it then cannot get a page, both wait forever.
    Copied,
}

/// Starts a child, born in `group`, and returns when it has called `execve`, failed to, or died.
pub(crate) fn spawn(
    plan: &mut ChildPlan,
    group: Option<BorrowedFd<'_>>,
    page: &Page,
    mode: CloneMode,
) -> Result<Spawned, SpawnFailure> {
    let note = page.note();
    note.step.store(0, Ordering::Relaxed);
    note.errno.store(0, Ordering::Relaxed);
    let mut pidfd: c_int = -1;
    // SAFETY: all-zero is a valid clone_args: no flags, no stack.
    let mut args: libc::clone_args = unsafe { mem::zeroed() };
    args.flags = (libc::CLONE_PIDFD | libc::CLONE_VFORK) as u64 | CLONE_CLEAR_SIGHAND;
    args.pidfd = ptr::from_mut(&mut pidfd) as u64;
    args.exit_signal = libc::SIGCHLD as u64;
    if let Some(group) = group {
        args.flags |= CLONE_INTO_CGROUP;
        args.cgroup = group.as_raw_fd() as u64;
    }
    let mut task = ChildTask { plan, note };
    // SAFETY: the child runs only `run_errand` on data prepared above, and never returns; we wait until it is done.
    let pid = unsafe {
        match mode {
            CloneMode::Shared => clone_shared(&mut args, page, &mut task),
            CloneMode::Copied => clone_copied(&mut args, &mut task),
        }
    };
    if pid < 0 {
        return Err(SpawnFailure::Clone(
            i32::try_from(-pid).unwrap_or(libc::EAGAIN),
        ));
    }
    let pid = pid as i32;
    // SAFETY: the kernel stored a new descriptor that nothing else owns.
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

/// Makes the child in the memory of this process, on a stack of its own; gives its number or a negated errno.
///
/// No library offers this together with `CLONE_INTO_CGROUP`, hence the few instructions here.
///
/// # Safety
/// `args` must contain `CLONE_VFORK`; `task` must be fit for [`run_errand`].
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
unsafe fn clone_shared(args: &mut libc::clone_args, page: &Page, task: &mut ChildTask<'_>) -> i64 {
    args.flags |= libc::CLONE_VM as u64;
    args.stack = page.0 as u64;
    args.stack_size = PAGE_BYTES as u64;
    let result: i64;
    // SAFETY: the child starts at the upper end of the page, which is aligned and which only it uses, calls a function
    // that never returns, and so touches nothing of this stack. This process continues when the child has left its memory. The kernel
    // keeps all registers but those named.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        std::arch::asm!(
            "syscall",
            "test rax, rax",
            "jnz 2f",
            "xor ebp, ebp",
            "mov rdi, r8",
            "call r9",
            "ud2",
            "2:",
            inlateout("rax") libc::SYS_clone3 => result,
            in("rdi") ptr::from_mut(args),
            in("rsi") size_of::<libc::clone_args>(),
            in("r8") ptr::from_mut(task),
            in("r9") run_errand as *const (),
            lateout("rcx") _,
            lateout("r11") _,
        );
    }
    // SAFETY: as above.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        std::arch::asm!(
            "svc 0",
            "cbnz x0, 2f",
            "mov x0, x9",
            "blr x10",
            "brk 1",
            "2:",
            inlateout("x0") ptr::from_mut(args) => result,
            in("x1") size_of::<libc::clone_args>(),
            in("x8") libc::SYS_clone3,
            in("x9") ptr::from_mut(task),
            in("x10") run_errand as *const (),
        );
    }
    result
}

/// The same on processors for which there are no such instructions here.
///
/// # Safety
/// As above.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
unsafe fn clone_shared(args: &mut libc::clone_args, _: &Page, task: &mut ChildTask<'_>) -> i64 {
    // SAFETY: as the caller promises.
    unsafe { clone_copied(args, task) }
}

/// Makes the child with a copy of this memory; gives its number or a negated errno.
///
/// # Safety
/// As above.
unsafe fn clone_copied(args: &mut libc::clone_args, task: &mut ChildTask<'_>) -> i64 {
    // SAFETY: without CLONE_VM this is a fork: the child has its own copy of memory and stack.
    let pid = unsafe {
        libc::syscall(
            libc::SYS_clone3,
            ptr::from_mut(args),
            size_of::<libc::clone_args>(),
        )
    };
    if pid == 0 {
        // SAFETY: this is the child.
        unsafe { run_errand(task) }
    }
    if pid < 0 {
        -i64::from(errno())
    } else {
        pid as i64
    }
}

/// The child's first function.
///
/// # Safety
/// Only in a freshly made child; `task` must be valid until the child has left this memory.
unsafe extern "C" fn run_errand(task: *mut ChildTask<'_>) -> ! {
    // SAFETY: the parent waits, so nothing else uses it.
    unsafe {
        let task = &mut *task;
        become_command(task.plan, task.note)
    }
}

/// Runs in the child: its own session, default signals, the right descriptors, then the command.
///
/// Nothing here may panic: the message of a panic takes locks and memory, and the child may share both with its parent, which
/// would find the locks taken forever. Atomics, system calls and iteration over slices do not panic. The indexed accesses are
/// within bounds: `CPU_SET`, because `Limits::check` keeps CPUs below 1024, and `plan.shell[0]` and `[1]`, because
/// `ChildPlan::new` fills both. No panic could unwind into the parent's frames either: `run_errand` is `extern "C"`, which
/// aborts the child.
///
/// # Safety
/// Only in a freshly made child, which may share its parent's memory: makes no allocation, takes no lock, and changes
/// nothing but what it was given.
unsafe fn become_command(plan: &mut ChildPlan, note: &Note) -> ! {
    let fail = |step: Step| -> ! {
        note.step.store(step as u32, Ordering::Relaxed);
        note.errno.store(errno().max(1), Ordering::Release);
        // SAFETY: ends the process at once, without running anything of the parent's.
        unsafe { libc::_exit(127) }
    };
    // SAFETY: plain system calls that change this process only, not the memory it may share; all pointers come from the plan, which outlives
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
        for (target, source) in (0..).zip(&plan.descriptors) {
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
        if plan.contain == Contain::Full && !own_temporary_folders() {
            fail(Step::Contain);
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

/// Gives this process a `/tmp` and `/dev/shm` of its own, which are charged to it.
///
/// # Safety
/// As for [`become_command`].
unsafe fn own_temporary_folders() -> bool {
    let (kind, mode) = (c"tmpfs".as_ptr(), c"mode=1777".as_ptr());
    let flags = libc::MS_NOSUID | libc::MS_NODEV;
    // SAFETY: constant strings; changes nothing but the namespaces of this process.
    unsafe {
        libc::unshare(libc::CLONE_NEWNS | libc::CLONE_NEWIPC) == 0
            && libc::mount(kind, c"/tmp".as_ptr(), kind, flags, mode.cast()) == 0
            && libc::mount(kind, c"/dev/shm".as_ptr(), kind, flags, mode.cast()) == 0
    }
}

/// Tries every candidate as `execvp` does; returns only if none could be executed, with the telling errno set.
///
/// # Safety
/// As for [`become_command`].
unsafe fn exec(plan: &mut ChildPlan) {
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
