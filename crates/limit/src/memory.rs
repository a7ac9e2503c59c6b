//! Memory limits: by the v2 controller, by a v1 group per slot, or by looking from time to time.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;

use rustix::fs::OFlags;

use super::cgroup::{
    Home, Leaf, OwnGroup, keyed, open_file, read_again, read_file, sweep_legacy, unless_short,
    write_file,
};
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
    fn event(&self) -> Option<Watched<'_>>;
    /// Whether the kernel has ended a process of this run for its memory.
    fn was_hit(&mut self) -> bool;
    /// Most memory the run had, if the kernel kept count.
    fn peak(&self) -> Option<u64>;
    /// Whether limit and peak are the kernel's own, to the page.
    fn is_exact(&self) -> bool;
    /// Whether the limit is still the one that was set. If the command changed it, it is set again.
    fn keep(&mut self) -> bool {
        true
    }
    /// What the group holds now, if there is one.
    fn used(&self) -> Option<u64> {
        None
    }
    /// Whether a process with these groups is counted here; `None` if that cannot be known.
    fn counts(&self, leaf: Option<&Leaf>, memberships: &str) -> Option<bool> {
        let _ = (leaf, memberships);
        None
    }
}

/// No kernel support: the run's loop looks at the processes from time to time.
#[derive(Debug)]
pub(super) struct Sampled;

impl Memory for Sampled {
    fn arm(&mut self, _: Option<&Leaf>, _: Option<u64>) -> Result<(), LimitError> {
        Ok(())
    }

    fn disarm(&mut self) {}

    fn event(&self) -> Option<Watched<'_>> {
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
    current: Option<OwnedFd>,
    /// The limit of this run, and where it stands.
    limit: Option<(String, OwnedFd)>,
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
        // A file that was never read counts as changed.
        self.was_hit();
        // Since Linux 5.19; without it the peak is a lower bound and said to be one.
        self.peak = open("memory.peak")?;
        self.current = open("memory.current")?;
        self.limit = None;
        let Some(bytes) = limit else { return Ok(()) };
        let failed = |error: io::Error| LimitError::Memory {
            bytes,
            errno: error.into(),
        };
        let file = open_file(folder, "memory.max", OFlags::RDWR).map_err(failed)?;
        rustix::io::pwrite(&file, bytes.to_string().as_bytes(), 0)
            .map_err(|error| failed(error.into()))?;
        let set = read_again(file.as_fd()).unwrap_or_default();
        self.limit = Some((set, file));
        // Without swap there is no such file; with it, a limit that only pushes pages out would be none.
        unless_short(write_file(folder, "memory.swap.max", "0")).map_err(failed)?;
        unless_short(write_file(folder, "memory.oom.group", "1")).map_err(failed)?;
        Ok(())
    }

    fn disarm(&mut self) {}

    fn event(&self) -> Option<Watched<'_>> {
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

    fn keep(&mut self) -> bool {
        self.limit
            .as_ref()
            .is_none_or(|(set, file)| kept(file, set))
    }

    fn used(&self) -> Option<u64> {
        self.current.as_ref().and_then(number)
    }

    fn counts(&self, leaf: Option<&Leaf>, memberships: &str) -> Option<bool> {
        leaf?.has(memberships)
    }
}

/// Whether `file` still holds the value that was set; sets it again if not.
fn kept(file: &OwnedFd, set: &str) -> bool {
    let is_kept = read_again(file.as_fd()).is_ok_and(|now| now == set);
    if !is_kept {
        let _ = rustix::io::pwrite(file, set.trim().as_bytes(), 0);
    }
    is_kept
}

/// v1 memory groups for one slot, on machines where the controller is still there.
///
/// v1 knows no birth in another group and moving a process costs 10 ms and more, so the *thread* that starts the commands
/// lives in the group: children are born where the thread is. The supervisor's own memory is charged where its first
/// thread is, outside, so it neither counts nor can be chosen by the kernel's out-of-memory killer.
///
/// Runs share a group for as long as it can be emptied between them. What a run leaves in tmpfs, for one, stays charged to its
/// group: then the thread moves to a fresh one, so that the next run does not pay for it.
#[derive(Debug)]
pub(super) struct Legacy {
    home: OwnGroup,
    group: LegacyGroup,
    made: u64,
    /// What `/proc/PID/cgroup` says of processes in the group.
    membership: Option<String>,
    /// Out-of-memory kills before this run.
    before: u64,
    /// The limit as the kernel reads it back.
    limit: Option<String>,
}

/// One group and its files, open all the time: at the limit even opening a file would have to wait for memory.
#[derive(Debug)]
struct LegacyGroup {
    name: String,
    folder: OwnedFd,
    event: OwnedFd,
    control: OwnedFd,
    limit: OwnedFd,
    swap_limit: Option<OwnedFd>,
    highest: OwnedFd,
    usage: OwnedFd,
}

/// How much an ended run may leave in a group (a few pages of kernel objects) before the next one gets another: this many bytes, and
/// no more than this part of the next limit, which could not be set otherwise.
const BLUR: u64 = 1 << 20;
const BLUR_OF_LIMIT: u64 = 8;

impl LegacyGroup {
    fn make(home: &OwnGroup, number: u64) -> io::Result<Self> {
        let name = format!("slot-{number}");
        let folder = home.make_inner(&name)?;
        Self::open(name.clone(), folder).inspect_err(|_| {
            home.remove_inner(&name);
        })
    }

    fn open(name: String, folder: OwnedFd) -> io::Result<Self> {
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
        let usage = open_file(folder.as_fd(), "memory.usage_in_bytes", OFlags::RDONLY)?;
        Ok(Self {
            name,
            folder,
            event,
            control,
            limit,
            swap_limit,
            highest,
            usage,
        })
    }

    fn used(&self) -> u64 {
        number(&self.usage).unwrap_or(0)
    }

    fn enter(&self) -> io::Result<()> {
        write_file(self.folder.as_fd(), "tasks", "0")
    }
}

impl Legacy {
    /// Makes the groups of a slot below `base`.
    pub(super) fn make(base: &Path, owner: u32) -> io::Result<Self> {
        sweep_legacy(base);
        let home = OwnGroup::make(base, owner)?;
        let group = LegacyGroup::make(&home, 0).inspect_err(|_| home.end())?;
        Ok(Self {
            home,
            group,
            made: 0,
            membership: None,
            before: 0,
            limit: None,
        })
    }

    /// The folder to remove, should this process be killed.
    pub(super) fn path(&self) -> &Path {
        self.home.path()
    }

    fn kills(&self) -> u64 {
        let mut buffer = [0; 256];
        let count = rustix::io::pread(&self.group.control, &mut buffer, 0).unwrap_or(0);
        keyed(&String::from_utf8_lossy(&buffer[..count]), "oom_kill").unwrap_or(0)
    }

    fn set_limit(&mut self, limit: Option<u64>) -> io::Result<()> {
        let put = |file: &OwnedFd, text: &str| rustix::io::pwrite(file, text.as_bytes(), 0);
        if self.limit.take().is_some() {
            if let Some(swap) = &self.group.swap_limit {
                put(swap, "-1")?;
            }
            put(&self.group.limit, "-1")?;
        }
        if let Some(bytes) = limit {
            let bytes = bytes.to_string();
            self.limit = Some(bytes.clone());
            put(&self.group.limit, &bytes)?;
            if let Some(swap) = &self.group.swap_limit {
                put(swap, &bytes)?;
            }
            // In whole pages, as the kernel rounds it.
            self.limit = read_again(self.group.limit.as_fd()).ok().or(Some(bytes));
        }
        Ok(())
    }

    /// Moves to a group in which nothing of an earlier run is left.
    fn renew(&mut self) -> io::Result<()> {
        let fresh = LegacyGroup::make(&self.home, self.made + 1)?;
        fresh.enter()?;
        self.made += 1;
        let old = std::mem::replace(&mut self.group, fresh);
        self.home.remove_inner(&old.name);
        self.remember();
        Ok(())
    }

    /// Notes how the kernel names the group that this thread is in.
    fn remember(&mut self) {
        let groups = read_file(rustix::fs::CWD, "/proc/thread-self/cgroup").unwrap_or_default();
        self.membership = membership_in_memory(&groups).map(str::to_owned);
    }
}

/// The v1 memory group among the groups of a process.
fn membership_in_memory(memberships: &str) -> Option<&str> {
    memberships.lines().find_map(|line| {
        let (_, rest) = line.split_once(':')?;
        let (controllers, group) = rest.split_once(':')?;
        let is_memory = controllers.split(',').any(|name| name == "memory");
        is_memory.then_some(group)
    })
}

impl Memory for Legacy {
    fn enter(&mut self) -> io::Result<()> {
        self.group.enter()?;
        self.remember();
        Ok(())
    }

    fn arm(&mut self, _: Option<&Leaf>, limit: Option<u64>) -> Result<(), LimitError> {
        let blur = limit.map_or(BLUR, |limit| BLUR.min(limit / BLUR_OF_LIMIT));
        if self.group.used() > blur {
            let _ = write_file(self.group.folder.as_fd(), "memory.force_empty", "0");
            if self.group.used() > blur {
                self.renew().map_err(|error| {
                    LimitError::system("make a fresh memory control group", error)
                })?;
            }
        }
        let mut old = [0; 8];
        let _ = rustix::io::read(&self.group.event, &mut old);
        self.before = self.kills();
        let _ = rustix::io::pwrite(&self.group.highest, b"0", 0);
        self.set_limit(limit).map_err(|error| LimitError::Memory {
            bytes: limit.unwrap_or(u64::MAX),
            errno: error.into(),
        })
    }

    fn disarm(&mut self) {
        let _ = self.set_limit(None);
    }

    fn event(&self) -> Option<Watched<'_>> {
        Some(readable(self.group.event.as_fd()))
    }

    fn was_hit(&mut self) -> bool {
        let mut count = [0; 8];
        let _ = rustix::io::read(&self.group.event, &mut count);
        self.kills() > self.before
    }

    fn peak(&self) -> Option<u64> {
        number(&self.group.highest)
    }

    fn is_exact(&self) -> bool {
        true
    }

    fn keep(&mut self) -> bool {
        let is_kept = |set: &String| kept(&self.group.limit, set);
        self.limit.as_ref().is_none_or(is_kept)
    }

    fn used(&self) -> Option<u64> {
        Some(self.group.used())
    }

    fn counts(&self, _: Option<&Leaf>, memberships: &str) -> Option<bool> {
        let group = membership_in_memory(memberships)?;
        let expected = self.membership.as_deref()?;
        Some(Path::new(group).starts_with(expected))
    }
}
