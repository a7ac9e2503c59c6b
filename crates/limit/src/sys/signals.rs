//! Signals of this process, and waiting for whatever comes first.

use std::ffi::c_int;
use std::io;
use std::mem;
use std::os::fd::BorrowedFd;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering};
use std::time::Duration;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::time::TimeSpec;

extern "C" fn nothing(_: c_int) {}

/// The first request to stop that came as a signal.
static STOP: AtomicI32 = AtomicI32::new(0);
/// How many came.
static STOPS: AtomicU32 = AtomicU32::new(0);
/// Whether this process handles such requests.
static HEARS_STOP: AtomicBool = AtomicBool::new(false);
/// The signals that ask a process to stop.
const STOPPING: [Signal; 4] = [
    Signal::SIGINT,
    Signal::SIGTERM,
    Signal::SIGHUP,
    Signal::SIGQUIT,
];

extern "C" fn note_stop(signal: c_int) {
    let _ = STOP.compare_exchange(0, signal, Ordering::SeqCst, Ordering::SeqCst);
    STOPS.fetch_add(1, Ordering::SeqCst);
}

/// The first signal that asked this process to stop.
pub(crate) fn stop_signal() -> Option<c_int> {
    Some(STOP.load(Ordering::SeqCst)).filter(|&signal| signal != 0)
}

/// How many signals have asked this process to stop.
pub(crate) fn stop_signals() -> u32 {
    STOPS.load(Ordering::SeqCst)
}

/// Prepares this process to supervise: every signal blocked, none ignored (so that commands start with the defaults),
/// SIGCHLD and SIGCONT interrupting [`wait`] only; with `hears_stop` requests to stop do so too, and are noted.
pub(crate) fn quiet_signals(hears_stop: bool) {
    HEARS_STOP.store(hears_stop, Ordering::SeqCst);
    let _ = SigSet::all().thread_set_mask();
    // SAFETY: both handlers are async-signal-safe, and the structures are locals of the right size. Dispositions change before
    // this process does anything else.
    unsafe {
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
        for signal in [Signal::SIGCHLD, Signal::SIGCONT] {
            libc::sigaction(signal as c_int, &raw const action, ptr::null_mut());
        }
        if hears_stop {
            action.sa_sigaction = note_stop as *const () as libc::sighandler_t;
            for signal in STOPPING {
                libc::sigaction(signal as c_int, &raw const action, ptr::null_mut());
            }
        }
    }
}

/// One descriptor to wait for.
pub(crate) type Watched<'a> = PollFd<'a>;

/// Something to read (or the end) at this descriptor.
pub(crate) fn readable(descriptor: BorrowedFd<'_>) -> Watched<'_> {
    PollFd::new(descriptor, PollFlags::POLLIN)
}

/// A change of a cgroup file.
pub(crate) fn changed(descriptor: BorrowedFd<'_>) -> Watched<'_> {
    PollFd::new(descriptor, PollFlags::POLLPRI)
}

/// Whether something happened at one of these, the last time it was waited for.
pub(crate) fn is_ready(watched: &[Watched]) -> bool {
    watched.iter().any(|entry| entry.any().unwrap_or(true))
}

/// Waits until a descriptor is ready, a child has ended, this process was continued, or the time is up.
pub(crate) fn wait(watched: &mut [Watched], timeout: Option<Duration>) -> io::Result<()> {
    let mut mask = SigSet::all();
    mask.remove(Signal::SIGCHLD);
    mask.remove(Signal::SIGCONT);
    if HEARS_STOP.load(Ordering::Relaxed) {
        for signal in STOPPING {
            mask.remove(signal);
        }
    }
    let timeout = timeout.map(|timeout| {
        TimeSpec::new(
            timeout.as_secs().min(1 << 40).cast_signed(),
            i64::from(timeout.subsec_nanos()),
        )
    });
    match ppoll(watched, timeout, Some(mask)) {
        // What was ready before is not what is ready now.
        Err(Errno::EINTR) => ppoll(watched, Some(TimeSpec::new(0, 0)), None)
            .map(drop)
            .or(Ok(())),
        Err(error) => Err(error.into()),
        Ok(_) => Ok(()),
    }
}
