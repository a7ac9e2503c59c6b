//! What a supervisor keeps from run to run: its groups, its memory control, per-slot state.

use std::cell::OnceCell;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use super::cgroup::{
    self, Home, Leaf, Places, base_with_memory, end_group, is_shortage, unless_short,
};
use super::clock::Alarm;
use super::contain::{self, Contain};
use super::error::LimitError;
use super::level::{Level, MemoryControl, obstacle};
use super::memory::{Legacy, Memory, Sampled, Unified};
use super::sys::{self, Page};

/// What a slot is to offer.
#[derive(Debug, Clone, Default)]
pub(super) struct Options {
    /// The level wanted; the best there is if `None`.
    pub level: Option<Level>,
    /// Whether memory is to be counted and limited; setting that up can cost 10 ms and more.
    pub memory: bool,
    /// The process after which groups are named.
    pub owner: u32,
    /// What commands are kept from; this process was forked for it.
    pub contain: Contain,
    /// Whether one command is all that will run, so that nothing has to be prepared for another.
    pub is_single: bool,
}

/// One place where commands run, one at a time.
#[derive(Debug)]
pub(super) struct Slot {
    home: Option<Home>,
    /// Made ahead of time, between two runs.
    next: Option<Leaf>,
    /// Groups of runs that have ended.
    retired: Vec<Leaf>,
    pub(super) memory: Box<dyn Memory>,
    control: MemoryControl,
    pub(super) page: Page,
    pub(super) alarm: Alarm,
    pub(super) timer_slack: u64,
    /// For reading the output of commands.
    pub(super) buffer: Vec<u8>,
    /// The CPUs that commands can get at, once a run needed to know.
    reachable_cpus: OnceCell<u32>,
    /// What commands are kept from.
    pub(super) contain: Contain,
    /// What a command that inherits stdin gets; the supervisor's own if `None`.
    pub(super) stdin: Option<OwnedFd>,
    /// All mounts, if they were looked at already.
    mounts: String,
    /// Removed once the thread that uses the slot has ended.
    legacy: Option<PathBuf>,
    /// As it was at the start; unless only one command will run.
    standing: Option<sys::Standing>,
}

/// How many CPUs a process can use once it has undone all pinning: those of its cpuset, or all CPUs for root, which can leave its cpuset.
fn reachable_cpus() -> u32 {
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
    let Ok(before) = sched_getaffinity(None) else {
        return 1;
    };
    let mut all = CpuSet::new();
    for cpu in 0..CpuSet::MAX_CPU {
        all.set(cpu);
    }
    let _ = sched_setaffinity(None, &all);
    let widest = sched_getaffinity(None).map_or(1, |set| set.count());
    let _ = sched_setaffinity(None, &before);
    let online = if rustix::process::geteuid().is_root() {
        // A list such as 0-3,6.
        let text = std::fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
        let range = |part: &str| {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
            (last + 1).checked_sub(first)
        };
        text.trim().split(',').filter_map(range).sum()
    } else {
        0
    };
    widest.max(online).max(1)
}

/// Makes a slot, lends it to `work`, and removes all trace of it.
///
/// A v1 memory group holds the *thread* that starts commands, so where one may be needed `work` gets a thread of its own.
pub(super) fn with<T: Send, W>(options: &Options, work: W) -> T
where
    W: FnOnce(Result<&mut Slot, LimitError>) -> T + Send,
{
    // Without groups it does not matter where they are.
    let located = match options.level {
        Some(Level::Subreaper) => Ok(Places::default()),
        _ => Places::locate(),
    };
    let places = match located {
        Ok(places) => places,
        Err(error) => {
            return work(Err(LimitError::system("look for control groups", error)));
        }
    };
    let serve = |work: W| match Slot::open(options, &places) {
        Ok(mut slot) => {
            let result = work(Ok(&mut slot));
            (result, slot.legacy.take())
        }
        Err(error) => (work(Err(error)), None),
    };
    if !options.memory || places.memory.is_none() {
        return serve(work).0;
    }
    // Taken by the thread; still there if none can be had.
    let mut work = Some(work);
    let mut run = || work.take().map(serve);
    let served = std::thread::scope(|scope| -> std::io::Result<_> {
        let thread = std::thread::Builder::new().spawn_scoped(scope, &mut run)?;
        let joined = thread.join();
        Ok(joined.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    });
    match served {
        Ok(served) => {
            let (result, legacy) = served.expect("the thread took the work and did it");
            // The kernel takes a moment to notice that the thread in it has ended.
            if let Some(path) = legacy {
                end_group(&path);
            }
            result
        }
        Err(error) => {
            let work = work.expect("no thread took the work");
            work(Err(LimitError::system(
                "start a thread of the supervisor",
                error,
            )))
        }
    }
}

impl Slot {
    fn open(options: &Options, places: &Places) -> Result<Self, LimitError> {
        sys::wake_promptly();
        let page =
            Page::new().map_err(|error| LimitError::system("share a page of memory", error))?;
        let mut slot = Self {
            home: None,
            next: None,
            retired: Vec::new(),
            memory: Box::new(Sampled),
            control: MemoryControl::Sampled,
            page,
            alarm: Alarm::new(),
            timer_slack: sys::sharpen_timers(),
            buffer: Vec::new(),
            reachable_cpus: OnceCell::new(),
            contain: options.contain,
            stdin: None,
            mounts: places.mounts.clone(),
            legacy: None,
            standing: (!options.is_single).then(sys::Standing::now),
        };
        if options.level != Some(Level::Subreaper) {
            match slot.enter_groups(options, places) {
                Ok(()) => {}
                Err(error) if matches!(&error, LimitError::Group { errno, .. } if is_shortage(Some(errno.0))) =>
                {
                    return Err(error);
                }
                Err(error) if options.level == Some(Level::Cgroup2) => return Err(error),
                Err(_) => {
                    slot.home = None;
                    slot.memory = Box::new(Sampled);
                    slot.control = MemoryControl::Sampled;
                }
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
        let failed_in = |base: &Path, error: std::io::Error| LimitError::Group {
            action: "make a control group in".to_owned(),
            path: base.display().to_string(),
            errno: error.into(),
        };
        let with_memory = if options.memory {
            base_with_memory(places).map_err(|error| failed_in(&own, error))?
        } else {
            None
        };
        let base = with_memory.as_ref().unwrap_or(&own);
        let failed = |error: std::io::Error| failed_in(base, error);
        let mut home = Home::create(base, options.owner).map_err(failed)?;
        home.known_as(places.membership(home.path()));
        if with_memory.is_some()
            && let Some(unified) = unless_short(Unified::enable(&home)).map_err(failed)?
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
            && let Some(legacy) = unless_short(Legacy::make(base, options.owner))
                .map_err(|error| failed_in(base, error))?
        {
            self.legacy = Some(legacy.path().to_owned());
            self.memory = Box::new(legacy);
            self.control = MemoryControl::Cgroup1;
        }
        Ok(())
    }

    /// Moves the calling thread where commands are to be born: into a memory group, if memory is kept that way, and into its
    /// own namespaces.
    ///
    /// Not part of opening: what is forked before is neither counted with the commands nor killed in their stead, and can remove
    /// the group.
    pub(super) fn enter(&mut self) -> Result<(), LimitError> {
        let entered = self.memory.enter();
        if unless_short(entered)
            .map_err(|error| LimitError::system("enter a memory control group", error))?
            .is_none()
        {
            self.memory = Box::new(Sampled);
            self.control = MemoryControl::Sampled;
        }
        let mut entered = || {
            if self.contain == Contain::Off {
                return Ok(());
            }
            if self.mounts.is_empty() {
                self.mounts = cgroup::mounts()?;
            }
            contain::enter(self.contain, &std::mem::take(&mut self.mounts))
        };
        let contain = self.contain;
        let failed = |error: std::io::Error| LimitError::Contain {
            contain,
            errno: error.into(),
        };
        entered().map_err(failed)
    }

    /// How many CPUs commands can get at, whatever they do: not fewer than they are pinned to.
    pub(super) fn reachable_cpus(&self) -> u32 {
        *self.reachable_cpus.get_or_init(reachable_cpus)
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

    /// Whether a command gave this thread another priority, other CPUs or limits, which the next command would inherit.
    pub(super) fn has_changed(&self) -> bool {
        (self.standing.as_ref()).is_some_and(|standing| *standing != sys::Standing::now())
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

    /// Keeps the group of a run that has ended, to be removed between two runs.
    pub(super) fn retire(&mut self, leaf: Leaf) {
        self.retired.push(leaf);
    }

    /// Removes the groups of past runs and makes that of the next, between two runs.
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
