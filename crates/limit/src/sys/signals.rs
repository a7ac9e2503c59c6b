//! Signals of this process, and waiting for whatever comes first.

use std::ffi::{c_int, c_short};
use std::io;
use std::marker::PhantomData;
use std::mem;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering};
use std::time::Duration;

use nix::sys::signal::{SigSet, Signal};

use super::check;

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
#[derive(Debug)]
#[repr(transparent)]
pub(crate) struct Watched<'a> {
    entry: libc::pollfd,
    descriptor: PhantomData<BorrowedFd<'a>>,
}

impl<'a> Watched<'a> {
    fn new(descriptor: BorrowedFd<'a>, events: c_short) -> Self {
        let entry = libc::pollfd {
            fd: descriptor.as_raw_fd(),
            events,
            revents: 0,
        };
        Self {
            entry,
            descriptor: PhantomData,
        }
    }
}

/// Something to read (or the end) at this descriptor.
pub(crate) fn readable(descriptor: BorrowedFd<'_>) -> Watched<'_> {
    Watched::new(descriptor, libc::POLLIN)
}

/// A change of a cgroup file.
pub(crate) fn changed(descriptor: BorrowedFd<'_>) -> Watched<'_> {
    Watched::new(descriptor, libc::POLLPRI)
}

/// The end of this descriptor, not what can be read before it.
pub(crate) fn ended(descriptor: BorrowedFd<'_>) -> Watched<'_> {
    Watched::new(descriptor, 0)
}

/// Whether something happened at one of these, the last time it was waited for.
pub(crate) fn is_ready(watched: &[Watched]) -> bool {
    watched.iter().any(|watched| watched.entry.revents != 0)
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
    let timeout = timeout.map(|timeout| libc::timespec {
        tv_sec: timeout.as_secs().min(1 << 40).cast_signed(),
        tv_nsec: i64::from(timeout.subsec_nanos()),
    });
    let Err(refused) = poll(watched, timeout, Some(mask)) else {
        return Ok(());
    };
    match refused.raw_os_error() {
        Some(libc::EINTR) => {
            // What was ready before is not what is ready now.
            let at_once = libc::timespec {
                tv_sec: 0,
                tv_nsec: 0,
            };
            poll(watched, Some(at_once), None).or(Ok(()))
        }
        Some(libc::EINVAL) => select(watched, timeout, mask),
        _ => Err(refused),
    }
}

fn poll(
    watched: &mut [Watched],
    timeout: Option<libc::timespec>,
    mask: Option<SigSet>,
) -> io::Result<()> {
    let timeout = timeout.as_ref().map_or(ptr::null(), ptr::from_ref);
    let mask = mask
        .as_ref()
        .map_or(ptr::null(), |mask| ptr::from_ref(mask.as_ref()));
    let (entries, count) = (watched.as_mut_ptr().cast(), watched.len() as libc::nfds_t);
    // SAFETY: a `Watched` is a `pollfd`, and there are that many; the others are null or point to locals.
    check(unsafe { libc::ppoll(entries, count, timeout, mask) }).map(drop)
}

/// Waits as [`wait`] does in a process that may open no files any more, because a command took that right away (`prlimit`): `ppoll` then refuses
/// all descriptors, open ones too. Notices no [`ended`].
fn select(
    watched: &mut [Watched],
    timeout: Option<libc::timespec>,
    mask: SigSet,
) -> io::Result<()> {
    // SAFETY: all zero is the empty set.
    let (mut reads, mut changes): (libc::fd_set, libc::fd_set) =
        unsafe { (mem::zeroed(), mem::zeroed()) };
    let has_room =
        |entry: &libc::pollfd| usize::try_from(entry.fd).is_ok_and(|fd| fd < libc::FD_SETSIZE);
    let mut count = 0;
    for Watched { entry, .. } in &mut *watched {
        entry.revents = 0;
        if entry.events != 0 && has_room(entry) {
            let set = if entry.events == libc::POLLPRI {
                &raw mut changes
            } else {
                &raw mut reads
            };
            // SAFETY: a number within the set.
            unsafe { libc::FD_SET(entry.fd, set) };
            count = count.max(entry.fd + 1);
        }
    }
    let timeout = timeout.as_ref().map_or(ptr::null(), ptr::from_ref);
    let (reads, changes) = (&raw mut reads, &raw mut changes);
    let mask = ptr::from_ref(mask.as_ref());
    // SAFETY: the sets are locals, and have room for the numbers below the count.
    let found =
        check(unsafe { libc::pselect(count, reads, ptr::null_mut(), changes, timeout, mask) });
    match found {
        Err(error) if error.raw_os_error() == Some(libc::EINTR) => Ok(()),
        Err(error) => Err(error),
        Ok(_) => {
            for Watched { entry, .. } in watched {
                // SAFETY: a number within the sets.
                let is_set = has_room(entry)
                    && unsafe {
                        libc::FD_ISSET(entry.fd, reads) || libc::FD_ISSET(entry.fd, changes)
                    };
                if is_set {
                    entry.revents = entry.events;
                }
            }
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::fd::AsFd;

    #[test]
    fn without_the_right_to_open_files_descriptors_are_still_waited_for() {
        let (empty, _writer) = io::pipe().unwrap();
        let (full, mut writer) = io::pipe().unwrap();
        writer.write_all(b"x").unwrap();
        let mut watched = [
            readable(empty.as_fd()),
            readable(full.as_fd()),
            ended(full.as_fd()),
        ];
        let at = libc::timespec {
            tv_sec: 0,
            tv_nsec: 1_000_000,
        };
        select(&mut watched, Some(at), SigSet::all()).unwrap();
        let ready = watched
            .each_ref()
            .map(|one| is_ready(std::slice::from_ref(one)));
        assert_eq!(ready, [false, true, false]);
        select(&mut watched[..1], Some(at), SigSet::all()).unwrap();
        assert!(!is_ready(&watched[..1]));
    }
}
