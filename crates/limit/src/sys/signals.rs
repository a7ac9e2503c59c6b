//! Signals of this process, and waiting for whatever comes first.

use std::ffi::c_int;
use std::io;
use std::mem;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering};
use std::time::Duration;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::select::{FD_SETSIZE, FdSet, pselect};
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

/// Lets this process be continued without waking it if it was not stopped.
pub(crate) fn sleep_through_continuation() {
    // SAFETY: the default action, which for this signal is none.
    unsafe { libc::signal(Signal::SIGCONT as c_int, libc::SIG_DFL) };
}

/// One descriptor to wait for.
#[derive(Debug)]
pub(crate) struct Watched<'a> {
    descriptor: BorrowedFd<'a>,
    events: PollFlags,
    /// Whether something happened there, the last time it was waited for.
    is_ready: bool,
}

impl<'a> Watched<'a> {
    fn new(descriptor: BorrowedFd<'a>, events: PollFlags) -> Self {
        Self {
            descriptor,
            events,
            is_ready: false,
        }
    }
}

/// Something to read (or the end) at this descriptor.
pub(crate) fn readable(descriptor: BorrowedFd<'_>) -> Watched<'_> {
    Watched::new(descriptor, PollFlags::POLLIN)
}

/// Something to read here, or room for what is to be written.
pub(crate) fn readable_or_writable(descriptor: BorrowedFd<'_>) -> Watched<'_> {
    Watched::new(descriptor, PollFlags::POLLIN | PollFlags::POLLOUT)
}

/// A change of a cgroup file.
pub(crate) fn changed(descriptor: BorrowedFd<'_>) -> Watched<'_> {
    Watched::new(descriptor, PollFlags::POLLPRI)
}

/// The end of this descriptor, not what can be read before it.
pub(crate) fn ended(descriptor: BorrowedFd<'_>) -> Watched<'_> {
    Watched::new(descriptor, PollFlags::empty())
}

/// Whether something happened at one of these, the last time it was waited for.
pub(crate) fn is_ready(watched: &[Watched]) -> bool {
    watched.iter().any(|watched| watched.is_ready)
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
    // Longer than any run, and no more than the kernel takes.
    let timeout = timeout.map(|timeout| timeout.min(Duration::from_secs(1 << 40)).into());
    match poll(watched, timeout, Some(mask)) {
        Err(Errno::EINTR) => {
            // Of these none is: the kernel looks at them before it looks at signals.
            for one in watched {
                one.is_ready = false;
            }
            Ok(())
        }
        Err(Errno::EINVAL) => Ok(select(watched, timeout, mask)?),
        waited => Ok(waited?),
    }
}

fn poll(
    watched: &mut [Watched],
    timeout: Option<TimeSpec>,
    mask: Option<SigSet>,
) -> Result<(), Errno> {
    let entries = watched.iter();
    let entries = entries.map(|watched| PollFd::new(watched.descriptor, watched.events));
    let mut entries: Vec<PollFd> = entries.collect();
    ppoll(&mut entries, timeout, mask)?;
    for (watched, entry) in watched.iter_mut().zip(&entries) {
        // Flags that are not known are none of those that are asked for, but something happened.
        watched.is_ready = entry.any().unwrap_or(true);
    }
    Ok(())
}

/// Waits as [`wait`] does in a process that can no longer open files, because a command took that right away (`prlimit`): `ppoll` then refuses
/// all descriptors, open ones too. Notices no [`ended`].
fn select(watched: &mut [Watched], timeout: Option<TimeSpec>, mask: SigSet) -> Result<(), Errno> {
    let is_asked = |watched: &Watched| {
        let number = watched.descriptor.as_raw_fd().unsigned_abs();
        !watched.events.is_empty() && (number as usize) < FD_SETSIZE
    };
    let (mut reads, mut changes) = (FdSet::new(), FdSet::new());
    for one in watched.iter().filter(|one| is_asked(one)) {
        let set = if one.events == PollFlags::POLLPRI {
            &mut changes
        } else {
            &mut reads
        };
        set.insert(one.descriptor);
    }
    let found = pselect(None, &mut reads, None, &mut changes, &timeout, &mask);
    for one in watched {
        let is_set = |set: &FdSet| set.contains(one.descriptor);
        one.is_ready = found.is_ok() && is_asked(one) && (is_set(&reads) || is_set(&changes));
    }
    match found {
        Err(Errno::EINTR) => Ok(()),
        found => found.map(drop),
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
        let at = TimeSpec::from(Duration::from_millis(1));
        select(&mut watched, Some(at), SigSet::all()).unwrap();
        let ready = watched
            .each_ref()
            .map(|one| is_ready(std::slice::from_ref(one)));
        assert_eq!(ready, [false, true, false]);
        select(&mut watched[..1], Some(at), SigSet::all()).unwrap();
        assert!(!is_ready(&watched[..1]));
    }
}
