//! How a fit ends early: a flag that any thread may raise, and an allowance of time or work.
//!
//! This is the only module of the crate that reads a clock. A fit checks the flag at every node, and the clock after
//! every stretch of counted work, so that checking costs nothing measurable. Steps that take time but are not work,
//! such as sorting levels before the first tree, call `mind`. They bring the next check nearer and count on the clocks,
//! but not as work.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A flag that ends a fit, from any thread. Once raised it stays up.
#[derive(Debug, Default)]
pub struct Stop {
    is_raised: AtomicBool,
    guards: Vec<Allowance>,
    hit: OnceLock<Resource>,
}

impl Stop {
    /// A flag that is down.
    pub fn new() -> Self {
        Self::default()
    }

    /// A flag that a fit raises itself as soon as it exceeds one of these guards, whatever its own allowance counts.
    pub fn guarded(guards: Vec<Allowance>) -> Self {
        Self {
            guards,
            ..Self::default()
        }
    }

    /// Ends the fits that check this flag.
    pub fn raise(&self) {
        self.is_raised.store(true, Ordering::Relaxed);
    }

    /// Whether it was raised.
    pub fn is_raised(&self) -> bool {
        self.is_raised.load(Ordering::Relaxed)
    }

    /// The guard that raised it, if one did.
    pub fn hit(&self) -> Option<Resource> {
        self.hit.get().copied()
    }

    fn raise_for(&self, guard: Resource) {
        let _ = self.hit.set(guard);
        self.raise();
    }
}

/// The resource of an [`Allowance`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum Resource {
    /// Seconds on the clock
    Wall,
    /// Seconds of CPU time, of all threads and processes
    Cpu,
    /// A plain count: rows times predictors examined, the same on every machine
    Work,
}

/// How much of a resource a fit may use: seconds, or units of work.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Allowance {
    /// The resource.
    pub resource: Resource,
    /// The amount.
    pub amount: f64,
}

/// What a fit used, whether it was done or stopped.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Consumed {
    /// Time on the clock.
    pub wall: Duration,
    /// CPU time of the fitting threads.
    pub cpu: Duration,
    /// Rows times predictors examined.
    pub work: u64,
}

impl Consumed {
    /// The amount of one resource, in the unit of an [`Allowance`].
    pub fn of(&self, resource: Resource) -> f64 {
        match resource {
            Resource::Wall => self.wall.as_secs_f64(),
            Resource::Cpu => self.cpu.as_secs_f64(),
            Resource::Work => self.work as f64,
        }
    }
}

/// The fit was stopped; there is no forest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stopped;

/// Work between two checks of the wall clock: about 50 us.
const WALL_STRIDE: u64 = 8 * 1024;
/// Work between two checks of the thread's CPU clock, which is a system call: about 200 us.
const CPU_STRIDE: u64 = 48 * 1024;

/// What all threads of one fit have used so far, and whether it is too much.
pub(super) struct Meter<'a> {
    stop: &'a Stop,
    allowance: Option<Allowance>,
    stride: u64,
    started: Instant,
    /// Raised by the first thread that sees the end, for the others.
    ended: AtomicBool,
    cpu_nanos: AtomicU64,
    work: AtomicU64,
}

impl<'a> Meter<'a> {
    pub(super) fn new(stop: &'a Stop, allowance: Option<Allowance>) -> Self {
        let stride = match allowance {
            Some(Allowance {
                resource: Resource::Wall | Resource::Work,
                ..
            }) => WALL_STRIDE,
            _ => CPU_STRIDE,
        };
        Self {
            stop,
            allowance,
            stride,
            started: Instant::now(),
            ended: AtomicBool::new(false),
            cpu_nanos: AtomicU64::new(0),
            work: AtomicU64::new(0),
        }
    }

    /// The view of one fitting thread. Create it on that thread.
    pub(super) fn watch(&'a self) -> Watch<'a> {
        Watch {
            meter: self,
            pending: 0,
            // Nothing before the first check.
            unseen: 0,
            minded: 0,
            unguarded: 0,
            cpu_seen: thread_cpu_nanos(),
        }
    }

    pub(super) fn consumed(&self) -> Consumed {
        Consumed {
            wall: self.started.elapsed(),
            cpu: Duration::from_nanos(self.cpu_nanos.load(Ordering::Relaxed)),
            work: self.work.load(Ordering::Relaxed),
        }
    }
}

/// One thread's account. When it is dropped, what it used is added to the meter.
pub(super) struct Watch<'a> {
    meter: &'a Meter<'a>,
    pending: u64,
    /// How much work may be pending before the next check.
    unseen: u64,
    /// Steps since the last check that are not work.
    minded: u64,
    /// Work since the guards were last checked.
    unguarded: u64,
    cpu_seen: u64,
}

impl Watch<'_> {
    /// Counts work that is about to be done, and returns whether to stop.
    #[inline]
    pub(super) fn spend(&mut self, work: u64) -> Result<(), Stopped> {
        self.pending += work;
        if self.meter.stop.is_raised() {
            return Err(Stopped);
        }
        if self.pending > self.unseen {
            self.look()
        } else {
            Ok(())
        }
    }

    /// Returns whether to stop before this many steps that take time but are not work.
    #[inline]
    pub(super) fn mind(&mut self, steps: usize) -> Result<(), Stopped> {
        self.minded += steps as u64;
        if self.meter.stop.is_raised() {
            return Err(Stopped);
        }
        if self.minded > self.meter.stride {
            self.look()
        } else {
            Ok(())
        }
    }

    /// Checks the clock that counts.
    #[cold]
    #[inline(never)]
    pub(super) fn look(&mut self) -> Result<(), Stopped> {
        if self.meter.ended.load(Ordering::Relaxed) {
            return Err(Stopped);
        }
        self.unguarded += self.pending + std::mem::take(&mut self.minded);
        let work = self.book_work();
        if let Some(allowance) = self.meter.allowance
            && self.used(allowance.resource, work) > allowance.amount
        {
            self.meter.ended.store(true, Ordering::Relaxed);
            return Err(Stopped);
        }
        self.unseen = match self.meter.allowance {
            // Up to the limit and no further, so that one thread always stops at the same count.
            Some(Allowance {
                resource: Resource::Work,
                amount,
            }) => self.meter.stride.min((amount - work as f64) as u64),
            _ => self.meter.stride,
        };
        // Seldom enough for the most expensive clock, however often the allowance must be checked.
        if self.unguarded > CPU_STRIDE {
            self.unguarded = 0;
            for guard in &self.meter.stop.guards {
                if self.used(guard.resource, work) > guard.amount {
                    self.meter.stop.raise_for(guard.resource);
                    return Err(Stopped);
                }
            }
        }
        Ok(())
    }

    /// What all threads have used of a resource. `work` is already known.
    fn used(&mut self, resource: Resource, work: u64) -> f64 {
        match resource {
            Resource::Wall => self.meter.started.elapsed().as_secs_f64(),
            Resource::Cpu => self.book_cpu() as f64 / 1e9,
            Resource::Work => work as f64,
        }
    }

    fn book_work(&mut self) -> u64 {
        let pending = std::mem::take(&mut self.pending);
        self.meter.work.fetch_add(pending, Ordering::Relaxed) + pending
    }

    fn book_cpu(&mut self) -> u64 {
        let now = thread_cpu_nanos();
        let used = now.saturating_sub(self.cpu_seen);
        self.cpu_seen = now;
        self.meter.cpu_nanos.fetch_add(used, Ordering::Relaxed) + used
    }
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        self.book_work();
        self.book_cpu();
    }
}

/// CPU time of the calling thread so far.
///
/// Through the C library, because the vDSO that rustix looks for is hidden under valgrind, which is used to count
/// instructions.
fn thread_cpu_nanos() -> u64 {
    let now = nix::time::ClockId::CLOCK_THREAD_CPUTIME_ID
        .now()
        .expect("every thread has this clock");
    now.tv_sec() as u64 * 1_000_000_000 + now.tv_nsec() as u64
}
