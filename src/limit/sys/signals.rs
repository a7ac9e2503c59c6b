//! Signals of this process, and waiting for whatever comes first.

use std::ffi::c_int;
use std::io;
use std::mem::{self, MaybeUninit};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering};
use std::time::Duration;

use super::check;

extern "C" fn nothing(_: c_int) {}

/// The first request to stop that came as a signal.
static STOP: AtomicI32 = AtomicI32::new(0);
/// How many came.
static STOPS: AtomicU32 = AtomicU32::new(0);
/// Whether such requests are listened to.
static HEARS_STOP: AtomicBool = AtomicBool::new(false);
/// The signals that ask us to stop.
const STOPPING: [c_int; 4] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT];

extern "C" fn note_stop(signal: c_int) {
    let _ = STOP.compare_exchange(0, signal, Ordering::SeqCst, Ordering::SeqCst);
    STOPS.fetch_add(1, Ordering::SeqCst);
}

/// The signal that asked us to stop, if one did.
pub(in crate::limit) fn stop_signal() -> Option<c_int> {
    Some(STOP.load(Ordering::SeqCst)).filter(|&signal| signal != 0)
}

/// How many signals have asked us to stop.
pub(in crate::limit) fn stop_signals() -> u32 {
    STOPS.load(Ordering::SeqCst)
}

/// Prepares this process to supervise: every signal blocked, none ignored (so that commands start with the defaults),
/// SIGCHLD interrupting [`wait`] only; with `hears_stop` requests to stop do so too, and are noted.
pub(in crate::limit) fn quiet_signals(hears_stop: bool) {
    HEARS_STOP.store(hears_stop, Ordering::SeqCst);
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
        if hears_stop {
            action.sa_sigaction = note_stop as *const () as libc::sighandler_t;
            for signal in STOPPING {
                libc::sigaction(signal, &raw const action, ptr::null_mut());
            }
        }
    }
}

/// One descriptor to wait for.
pub(in crate::limit) type Watched = libc::pollfd;

/// Something to read (or the end) at this descriptor.
pub(in crate::limit) fn readable(descriptor: BorrowedFd<'_>) -> Watched {
    Watched {
        fd: descriptor.as_raw_fd(),
        events: libc::POLLIN,
        revents: 0,
    }
}

/// A change of a cgroup file.
pub(in crate::limit) fn changed(descriptor: BorrowedFd<'_>) -> Watched {
    Watched {
        fd: descriptor.as_raw_fd(),
        events: libc::POLLPRI,
        revents: 0,
    }
}

/// Waits until a descriptor is ready, a child has ended, or the time is up.
pub(in crate::limit) fn wait(watched: &mut [Watched], timeout: Option<Duration>) -> io::Result<()> {
    let timeout = timeout.map(|timeout| libc::timespec {
        tv_sec: timeout.as_secs().min(1 << 40).cast_signed(),
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
        if HEARS_STOP.load(Ordering::Relaxed) {
            for signal in STOPPING {
                libc::sigdelset(mask.as_mut_ptr(), signal);
            }
        }
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

/// Waits for the next of the signals we listen to.
pub(in crate::limit) fn next_signal() -> c_int {
    // SAFETY: the set is initialised; sigwaitinfo may be given no place for its details.
    unsafe {
        let mut set = MaybeUninit::uninit();
        libc::sigemptyset(set.as_mut_ptr());
        libc::sigaddset(set.as_mut_ptr(), libc::SIGCHLD);
        for signal in STOPPING {
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
