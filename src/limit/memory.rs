//! Memory limits: by the v2 controller, by a v1 group per slot, or by looking from time to time.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::OFlags;

use super::cgroup::{
    Home, Leaf, keyed, make_locked, open_file, read_file, sweep_legacy, unless_short, write_file,
};
use super::clock::Instant;
use super::error::LimitError;
use super::sys::{Watched, changed, readable};

/// How the memory limit of a slot is kept.
pub(super) trait Memory: std::fmt::Debug {
    /// Called once, by the thread that will start the commands, before it does.
    fn enter(&mut self) -> io::Result<()> {
        Ok(())
    }
    /// Gets ready for one run in `leaf`.
    fn arm(&mut self, leaf: Option<&Leaf>, limit: Option<u64>) -> Result<(), LimitError>;
    /// Lifts the limit, once every process of the run has been killed.
    fn disarm(&mut self);
    /// What to wait for to learn at once that the limit may have been hit; [`was_hit`](Self::was_hit) knows, if not in
    /// the same instant.
    fn event(&self) -> Option<Watched>;
    /// Whether the kernel has ended a process of this run for its memory.
    fn was_hit(&mut self) -> bool;
    /// Most memory the run had, if the kernel kept count.
    fn peak(&self) -> Option<u64>;
    /// Whether limit and peak are the kernel's own, to the page.
    fn is_exact(&self) -> bool;
}

/// Nobody counts for us: the run's loop looks at the processes from time to time.
#[derive(Debug)]
pub(super) struct Sampled;

impl Memory for Sampled {
    fn arm(&mut self, _: Option<&Leaf>, _: Option<u64>) -> Result<(), LimitError> {
        Ok(())
    }

    fn disarm(&mut self) {}

    fn event(&self) -> Option<Watched> {
        None
    }

    fn was_hit(&mut self) -> bool {
        false
    }

    fn peak(&self) -> Option<u64> {
        None
    }

    fn is_exact(&self) -> bool {
        false
    }
}

/// The memory controller of cgroup2: limit, group kill and peak of each run's own leaf.
#[derive(Debug, Default)]
pub(super) struct Unified {
    events: Option<OwnedFd>,
    peak: Option<OwnedFd>,
}

impl Unified {
    /// Lets leaves below `home` have the controller.
    pub(super) fn enable(home: &Home) -> io::Result<Self> {
        write_file(home.folder(), "cgroup.subtree_control", "+memory")?;
        Ok(Self::default())
    }
}

fn number(file: &OwnedFd) -> Option<u64> {
    let mut buffer = [0; 32];
    let count = rustix::io::pread(file, &mut buffer, 0).ok()?;
    str::from_utf8(&buffer[..count]).ok()?.trim().parse().ok()
}

impl Memory for Unified {
    fn arm(&mut self, leaf: Option<&Leaf>, limit: Option<u64>) -> Result<(), LimitError> {
        let Some(leaf) = leaf else { return Ok(()) };
        let folder = leaf.folder();
        let open = |name| {
            unless_short(open_file(folder, name, OFlags::RDONLY))
                .map_err(|error| LimitError::system("watch the memory of a control group", error))
        };
        self.events = open("memory.events")?;
        // A file that nobody has read yet counts as changed.
        self.was_hit();
        // Since Linux 5.19; without it the peak is a lower bound and said to be one.
        self.peak = open("memory.peak")?;
        let Some(bytes) = limit else { return Ok(()) };
        let failed = |error: io::Error| LimitError::Memory {
            bytes,
            errno: error.into(),
        };
        write_file(folder, "memory.max", &bytes.to_string()).map_err(failed)?;
        // Without swap there is no such file; with it, a limit that only pushes pages out would be none.
        unless_short(write_file(folder, "memory.swap.max", "0")).map_err(failed)?;
        unless_short(write_file(folder, "memory.oom.group", "1")).map_err(failed)?;
        Ok(())
    }

    fn disarm(&mut self) {}

    fn event(&self) -> Option<Watched> {
        self.events.as_ref().map(|events| changed(events.as_fd()))
    }

    fn was_hit(&mut self) -> bool {
        let Some(events) = &self.events else {
            return false;
        };
        let mut buffer = [0; 512];
        let count = rustix::io::pread(events, &mut buffer, 0).unwrap_or(0);
        let text = String::from_utf8_lossy(&buffer[..count]);
        keyed(&text, "oom_kill").is_some_and(|count| count > 0)
    }

    fn peak(&self) -> Option<u64> {
        self.peak.as_ref().and_then(number)
    }

    fn is_exact(&self) -> bool {
        self.peak.is_some()
    }
}

/// A v1 memory group for one slot, on machines where the controller is still there.
///
/// v1 knows no birth in another group and moving a process costs 10 ms and more, so the *thread* that starts the commands
/// lives in the group: children are born where the thread is. The supervisor's own memory is charged where its first
/// thread is, outside, so it neither counts nor can be chosen by the kernel's out-of-memory killer.
#[derive(Debug)]
pub(super) struct Legacy {
    folder: OwnedFd,
    event: OwnedFd,
    // Open all the time: at the limit even opening a file would have to wait for memory.
    control: OwnedFd,
    limit: OwnedFd,
    swap_limit: Option<OwnedFd>,
    highest: OwnedFd,
    /// Out-of-memory kills before this run.
    before: u64,
    is_limited: bool,
}

/// What is left of earlier runs in a slot's group (page cache, mostly) that would blur the next peak.
const BLUR: u64 = 1 << 20;

impl Legacy {
    /// Makes a group below `base`; gives its path for [`remove`].
    pub(super) fn make(base: &Path) -> io::Result<(Self, PathBuf)> {
        sweep_legacy(base);
        let (folder, path) = make_locked(base)?;
        match Self::open(folder) {
            Ok(made) => Ok((made, path)),
            Err(error) => {
                remove(&path);
                Err(error)
            }
        }
    }

    fn open(folder: OwnedFd) -> io::Result<Self> {
        let event = rustix::event::eventfd(
            0,
            rustix::event::EventfdFlags::CLOEXEC | rustix::event::EventfdFlags::NONBLOCK,
        )?;
        let control = open_file(folder.as_fd(), "memory.oom_control", OFlags::RDONLY)?;
        let wish = format!("{} {}", event.as_raw_fd(), control.as_raw_fd());
        write_file(folder.as_fd(), "cgroup.event_control", &wish)?;
        let open = |name| open_file(folder.as_fd(), name, OFlags::RDWR);
        let limit = open("memory.limit_in_bytes")?;
        let swap_limit = unless_short(open("memory.memsw.limit_in_bytes"))?;
        let highest = open("memory.max_usage_in_bytes")?;
        Ok(Self {
            folder,
            event,
            control,
            limit,
            swap_limit,
            highest,
            before: 0,
            is_limited: false,
        })
    }

    fn kills(&self) -> u64 {
        let mut buffer = [0; 256];
        let count = rustix::io::pread(&self.control, &mut buffer, 0).unwrap_or(0);
        keyed(&String::from_utf8_lossy(&buffer[..count]), "oom_kill").unwrap_or(0)
    }

    fn set_limit(&mut self, limit: Option<u64>) -> io::Result<()> {
        let put = |file: &OwnedFd, text: &str| rustix::io::pwrite(file, text.as_bytes(), 0);
        if self.is_limited {
            if let Some(swap) = &self.swap_limit {
                put(swap, "-1")?;
            }
            put(&self.limit, "-1")?;
            self.is_limited = false;
        }
        if let Some(bytes) = limit {
            let bytes = bytes.to_string();
            self.is_limited = true;
            put(&self.limit, &bytes)?;
            if let Some(swap) = &self.swap_limit {
                put(swap, &bytes)?;
            }
        }
        Ok(())
    }
}

impl Memory for Legacy {
    fn enter(&mut self) -> io::Result<()> {
        write_file(self.folder.as_fd(), "tasks", "0")
    }

    fn arm(&mut self, _: Option<&Leaf>, limit: Option<u64>) -> Result<(), LimitError> {
        let used = read_file(self.folder.as_fd(), "memory.usage_in_bytes");
        if used.is_ok_and(|used| used.trim().parse::<u64>().is_ok_and(|used| used > BLUR)) {
            let _ = write_file(self.folder.as_fd(), "memory.force_empty", "0");
        }
        let mut old = [0; 8];
        let _ = rustix::io::read(&self.event, &mut old);
        self.before = self.kills();
        let _ = rustix::io::pwrite(&self.highest, b"0", 0);
        self.set_limit(limit).map_err(|error| LimitError::Memory {
            bytes: limit.unwrap_or(u64::MAX),
            errno: error.into(),
        })
    }

    fn disarm(&mut self) {
        let _ = self.set_limit(None);
    }

    fn event(&self) -> Option<Watched> {
        Some(readable(self.event.as_fd()))
    }

    fn was_hit(&mut self) -> bool {
        let mut count = [0; 8];
        let _ = rustix::io::read(&self.event, &mut count);
        self.kills() > self.before
    }

    fn peak(&self) -> Option<u64> {
        number(&self.highest)
    }

    fn is_exact(&self) -> bool {
        true
    }
}

/// Removes a v1 group once the thread that lived in it has ended (the kernel takes a moment to notice).
pub(super) fn remove(path: &Path) {
    let start = Instant::now();
    while std::fs::remove_dir(path).is_err_and(|error| error.raw_os_error() == Some(libc::EBUSY))
        && Instant::now().since(start) < Duration::from_secs(1)
    {
        std::thread::sleep(Duration::from_micros(250));
    }
}
