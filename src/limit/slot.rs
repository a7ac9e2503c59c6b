//! What a supervisor keeps from run to run: its groups, its memory control, its odds and ends.

use std::os::fd::OwnedFd;
use std::path::PathBuf;

use super::cgroup::{Home, Leaf, Places, base_with_memory};
use super::error::LimitError;
use super::level::{Level, MemoryControl, obstacle};
use super::memory::{self, Legacy, Memory, Sampled, Unified};
use super::sys::{self, Page};

/// What a slot is to offer.
#[derive(Debug, Clone, Default)]
pub(super) struct Options {
    /// The level wanted; the best there is if `None`.
    pub level: Option<Level>,
    /// Whether memory is to be counted and limited; setting that up can cost 10 ms and more.
    pub memory: bool,
}

/// One place where commands run, one at a time.
#[derive(Debug)]
pub(super) struct Slot {
    home: Option<Home>,
    /// Made ahead of time, while nobody waits.
    next: Option<Leaf>,
    /// Groups of runs that have ended.
    retired: Vec<Leaf>,
    pub(super) memory: Box<dyn Memory>,
    control: MemoryControl,
    pub(super) page: Page,
    pub(super) timer_slack: u64,
    /// What a command that inherits stdin gets; our own if `None`.
    pub(super) stdin: Option<OwnedFd>,
    /// The process that cleans up should we be killed, in `captime exec`.
    pub(super) keeper: Option<i32>,
    /// Removed once the thread that uses the slot has ended.
    legacy: Option<PathBuf>,
}

/// Makes a slot, lends it to `work`, and removes all trace of it.
///
/// A v1 memory group holds the *thread* that starts commands, so where one may be needed `work` gets a thread of its own.
pub(super) fn with<T: Send>(
    options: &Options,
    work: impl FnOnce(Result<&mut Slot, LimitError>) -> T + Send,
) -> T {
    // Without groups nobody asks where they are.
    let places = match options.level {
        Some(Level::Subreaper) => Places::default(),
        _ => Places::locate(),
    };
    let needs_thread = options.memory && places.memory.is_some();
    let serve = move || match Slot::open(options, &places) {
        Ok(mut slot) => {
            let result = work(Ok(&mut slot));
            (result, slot.legacy.take())
        }
        Err(error) => (work(Err(error)), None),
    };
    if !needs_thread {
        return serve().0;
    }
    let (result, legacy) = std::thread::scope(|scope| match scope.spawn(serve).join() {
        Ok(served) => served,
        Err(panic) => std::panic::resume_unwind(panic),
    });
    if let Some(path) = legacy {
        memory::remove(&path);
    }
    result
}

impl Slot {
    fn open(options: &Options, places: &Places) -> Result<Self, LimitError> {
        let page =
            Page::new().map_err(|error| LimitError::system("share a page of memory", error))?;
        let mut slot = Self {
            home: None,
            next: None,
            retired: Vec::new(),
            memory: Box::new(Sampled),
            control: MemoryControl::Sampled,
            page,
            timer_slack: sys::sharpen_timers(),
            stdin: None,
            keeper: None,
            legacy: None,
        };
        if options.level != Some(Level::Subreaper) {
            match slot.enter_groups(options, places) {
                Ok(()) => {}
                // Out of descriptors or memory is no property of the machine: lowering the level would hide it.
                Err(error) if matches!(&error, LimitError::Group { errno, .. } if is_shortage(errno.0)) =>
                {
                    return Err(error);
                }
                Err(error) if options.level == Some(Level::Cgroup2) => return Err(error),
                Err(_) => slot.home = None,
            }
        }
        Ok(slot)
    }

    fn enter_groups(&mut self, options: &Options, places: &Places) -> Result<(), LimitError> {
        let unavailable = |reason: String| LimitError::Level {
            level: Level::Cgroup2,
            reason,
        };
        if let Some(reason) = obstacle(places) {
            return Err(unavailable(reason));
        }
        let own = places.unified.clone().unwrap_or_default();
        let with_memory = if options.memory {
            base_with_memory(places)
        } else {
            None
        };
        let base = with_memory.as_ref().unwrap_or(&own);
        let failed = |error: std::io::Error| LimitError::Group {
            action: "make a control group in".to_owned(),
            path: base.display().to_string(),
            errno: error.into(),
        };
        let mut home = Home::create(base).map_err(failed)?;
        if with_memory.is_some()
            && let Ok(unified) = Unified::enable(&home)
        {
            self.memory = Box::new(unified);
            self.control = MemoryControl::Cgroup2;
        }
        let leaf = home.leaf().map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => {
                unavailable("the kernel offers no `cgroup.kill` (Linux 5.14)".to_owned())
            }
            _ => failed(error),
        })?;
        self.next = Some(leaf);
        self.home = Some(home);
        if options.memory
            && self.control == MemoryControl::Sampled
            && let Some(base) = &places.memory
            && let Ok((legacy, path)) = Legacy::enter(base)
        {
            self.memory = Box::new(legacy);
            self.control = MemoryControl::Cgroup1;
            self.legacy = Some(path);
        }
        Ok(())
    }

    pub(super) fn level(&self) -> Level {
        if self.home.is_some() {
            Level::Cgroup2
        } else {
            Level::Subreaper
        }
    }

    pub(super) fn memory_control(&self) -> MemoryControl {
        self.control
    }

    /// The folders to clean, should this process be killed.
    pub(super) fn home(&self) -> Option<PathBuf> {
        self.home.as_ref().map(|home| home.path().to_owned())
    }

    /// The v1 memory group to remove, should this process be killed.
    pub(super) fn legacy(&self) -> Option<PathBuf> {
        self.legacy.clone()
    }

    /// A fresh group for one run, at level `cgroup2`.
    pub(super) fn take_leaf(&mut self) -> Result<Option<Leaf>, LimitError> {
        if let Some(leaf) = self.next.take() {
            return Ok(Some(leaf));
        }
        let Some(home) = &mut self.home else {
            return Ok(None);
        };
        home.leaf().map(Some).map_err(|error| LimitError::Group {
            action: "make a control group in".to_owned(),
            path: home.path().display().to_string(),
            errno: error.into(),
        })
    }

    /// Takes back a group in which nothing was ever started.
    pub(super) fn return_leaf(&mut self, leaf: Leaf) {
        self.next = Some(leaf);
    }

    /// Removes the group of a run that has ended.
    pub(super) fn discard(&self, leaf: Leaf) {
        if let Some(home) = &self.home {
            home.discard(leaf);
        }
    }

    /// Keeps the group of a run that has ended, to be removed when nobody waits.
    pub(super) fn retire(&mut self, leaf: Leaf) {
        self.retired.push(leaf);
    }

    /// Removes the groups of past runs and makes that of the next, while nobody waits.
    pub(super) fn prepare(&mut self) {
        for leaf in std::mem::take(&mut self.retired) {
            self.discard(leaf);
        }
        if self.next.is_none()
            && let Some(home) = &mut self.home
        {
            // A failure shows, and is reported, when the next run needs the group.
            self.next = home.leaf().ok();
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        for leaf in std::mem::take(&mut self.retired) {
            self.discard(leaf);
        }
        if let Some(leaf) = self.next.take() {
            self.discard(leaf);
        }
    }
}

fn is_shortage(errno: i32) -> bool {
    matches!(
        errno,
        libc::EMFILE | libc::ENFILE | libc::ENOMEM | libc::ENOSPC | libc::EAGAIN
    )
}
