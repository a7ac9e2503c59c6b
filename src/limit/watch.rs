//! One run from start to end: launch, wait for whatever comes first, end the tree, count.

use std::collections::HashSet;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::process::{Signal, pidfd_send_signal};

use super::capture::Stream;
use super::cgroup::{CpuTime, Leaf};
use super::clock::Instant;
use super::error::LimitError;
use super::launch::{Launch, Limits};
use super::report::{Cause, Report};
use super::slot::Slot;
use super::spawn::Prepared;
use super::sys::{self, Reap, Reaped, Watched, readable};
use super::tree;

/// Somebody who may ask for the end of a run.
pub(super) trait Stop {
    /// Where the request would come from.
    fn descriptors(&self) -> Vec<BorrowedFd<'_>>;
    /// Called when one of them has something; true if the run is to end.
    fn is_asked(&mut self) -> bool;
    /// What was heard since the last look; asked in a grace period, which not everybody has the patience for.
    fn urgency(&mut self) -> Urgency;
}

/// Whether a grace period may go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Urgency {
    /// Nothing new.
    None,
    /// Somebody asked for the end (again).
    Again,
    /// Nobody waits for the run any more.
    Deserted,
}

/// The soonest a CPU limit is looked at again: bounds both the overshoot and the wake-ups near the end.
const CPU_FLOOR: Duration = Duration::from_micros(250);
/// How often memory is looked at where the kernel does not watch it for us.
const MEMORY_PERIOD: Duration = Duration::from_millis(10);
/// After a notice about memory it is looked soon, and then less and less often, whether the kernel has killed.
const HINT_PAUSE: Duration = Duration::from_micros(250);
/// When to stop looking.
const HINT_END: Duration = Duration::from_millis(100);
/// How often, in a grace period, it is looked at whether anybody still waits for its end.
const URGENCY_PERIOD: Duration = Duration::from_millis(50);
/// Requests this soon after the one that began a grace period are that one: `timeout`, for one, signals its child and then the
/// group it is in.
const ONE_REQUEST: Duration = Duration::from_millis(200);
/// How far the sum over dead processes may exceed the group's own count before we believe that something left the group.
const ESCAPE_MARGIN: Duration = Duration::from_millis(5);

/// Runs one command in `slot` and gives the account of it; nothing of it is alive afterwards.
pub(super) fn run(
    slot: &mut Slot,
    launch: &Launch,
    limits: &Limits,
    stop: &mut dyn Stop,
) -> Result<Report, LimitError> {
    limits.check()?;
    if launch.command.is_empty() {
        return Err(LimitError::NoCommand);
    }
    let own = std::io::stdin();
    let stdin = slot.stdin.as_ref().map_or(own.as_fd(), AsFd::as_fd);
    let prepared = Prepared::new(launch, limits, stdin, slot.timer_slack)?;
    let leaf = slot.take_leaf()?;
    // The limit comes last: from here on even a descriptor of ours may count against it.
    let started = slot
        .memory
        .arm(leaf.as_ref(), limits.memory)
        .and_then(|()| prepared.start(leaf.as_ref().map(Leaf::folder), &slot.page));
    let started = match started {
        Ok(started) => started,
        Err(error) => {
            slot.memory.disarm();
            if let Some(leaf) = leaf {
                // Where the limit is a property of the leaf, the next run wants another.
                if limits.memory.is_some() {
                    slot.discard(leaf);
                } else {
                    slot.return_leaf(leaf);
                }
            }
            return Err(error);
        }
    };
    let mut run = Run {
        slot,
        limits,
        leaf,
        main: started.child.pid,
        pidfd: started.child.pidfd,
        start: started.child.exec.unwrap_or_else(Instant::now),
        streams: [started.stdout, started.stderr],
        buffer: Vec::new(),
        main_end: None,
        reaped: CpuTime::default(),
        largest: 0,
        sampled: 0,
        cpus: usable_cpus(limits),
        wakes: 0,
        peak: None,
        memory_hit: false,
    };
    let cause = run.watch(stop)?;
    let left_behind = run.end(cause, stop);
    Ok(run.report(cause, left_behind, launch))
}

/// How many CPUs can burn time at once.
fn usable_cpus(limits: &Limits) -> u32 {
    let ours = rustix::thread::sched_getaffinity(None).map_or(1, |set| set.count());
    let pinned = limits.cpus.as_ref().map_or(ours, |cpus| cpus.len() as u32);
    pinned.clamp(1, ours.max(1))
}

struct Run<'a> {
    slot: &'a mut Slot,
    limits: &'a Limits,
    leaf: Option<Leaf>,
    main: i32,
    pidfd: OwnedFd,
    start: Instant,
    streams: [Option<Stream>; 2],
    buffer: Vec<u8>,
    main_end: Option<(Instant, Reaped)>,
    /// CPU time of the dead, by the kernel's account to their parent.
    reaped: CpuTime,
    largest: u64,
    /// Most memory seen by looking.
    sampled: u64,
    cpus: u32,
    wakes: u64,
    /// Most memory, by the kernel's account at the end.
    peak: Option<u64>,
    memory_hit: bool,
}

impl Run<'_> {
    /// Waits until the main process has ended or must be ended, and says why.
    fn watch(&mut self, stop: &mut dyn Stop) -> Result<Cause, LimitError> {
        let wall = self.limits.wall.map(|wall| self.start.after(wall));
        let mut look_at_cpu = self.limits.cpu.map(|cpu| self.start.after(cpu / self.cpus));
        let samples = self.limits.memory.is_some() && self.slot.memory.event().is_none();
        let mut look_at_memory = samples.then(|| self.start.after(MEMORY_PERIOD / 10));
        // When to look again whether the kernel has killed for memory, and how long after that.
        let mut hint: Option<(Instant, Duration)> = None;
        loop {
            self.reap();
            if self.main_end.is_some() {
                return Ok(if self.slot.memory.was_hit() {
                    Cause::Memory
                } else {
                    Cause::None
                });
            }
            if sys::stop_signal().is_some() {
                return Ok(Cause::Cancelled);
            }
            let now = Instant::now();
            if wall.is_some_and(|wall| wall <= now) {
                return Ok(Cause::Wall);
            }
            if let (Some(limit), Some(look)) = (self.limits.cpu, look_at_cpu)
                && look <= now
            {
                let used = self.cpu_used();
                if used >= limit {
                    return Ok(Cause::Cpu);
                }
                let pause = (limit.saturating_sub(used) / self.cpus).max(CPU_FLOOR);
                look_at_cpu = Some(Instant::now().after(pause));
            }
            if let (Some(limit), Some(look)) = (self.limits.memory, look_at_memory)
                && look <= now
            {
                let seen = tree::memory(&tree::descendants(self.slot.keeper), limit);
                self.sampled = self.sampled.max(seen.min(limit));
                if seen > limit {
                    self.sampled = self.sampled.max(seen);
                    return Ok(Cause::Memory);
                }
                look_at_memory = Some(Instant::now().after(MEMORY_PERIOD));
            }
            if let Some((look, pause)) = hint
                && look <= now
            {
                if self.slot.memory.was_hit() {
                    return Ok(Cause::Memory);
                }
                hint = (pause < HINT_END).then(|| (now.after(pause), pause * 2));
            }
            let look_at_hint = hint.map(|(look, _)| look);
            let next = [wall, look_at_cpu, look_at_memory, look_at_hint]
                .into_iter()
                .flatten()
                .min();
            match self.wait(next, Some(stop))? {
                Woken::Stop => return Ok(Cause::Cancelled),
                // The notice comes before the kill, or of a limit that was reached without one.
                Woken::Memory => hint = Some((now, HINT_PAUSE)),
                Woken::Other => {}
            }
        }
    }

    /// Waits for a descriptor, a dead child or the moment `next`, and takes in what was written.
    fn wait(
        &mut self,
        next: Option<Instant>,
        stop: Option<&mut dyn Stop>,
    ) -> Result<Woken, LimitError> {
        let mut watched: Vec<Watched> = Vec::with_capacity(6);
        let streams = self.streams.iter().flatten();
        watched.extend(streams.filter_map(Stream::descriptor).map(readable));
        let streams = watched.len();
        watched.extend(self.slot.memory.event());
        let stops = watched.len();
        if let Some(stop) = &stop {
            watched.extend(stop.descriptors().into_iter().map(readable));
        }
        let timeout = next.map(|next| next.since(Instant::now()));
        sys::wait(&mut watched, timeout)
            .map_err(|error| LimitError::system("wait for the command", error))?;
        self.wakes += 1;
        let is_ready =
            |range: std::ops::Range<usize>| watched[range].iter().any(|entry| entry.revents != 0);
        if is_ready(0..streams) {
            self.take_output();
        }
        if let Some(stop) = stop
            && is_ready(stops..watched.len())
            && stop.is_asked()
        {
            return Ok(Woken::Stop);
        }
        Ok(if is_ready(streams..stops) {
            Woken::Memory
        } else {
            Woken::Other
        })
    }

    fn take_output(&mut self) {
        self.buffer.resize(1 << 16, 0);
        for stream in self.streams.iter_mut().flatten() {
            stream.pull(&mut self.buffer);
        }
    }

    /// Collects the dead among our children; true if there are no children at all.
    fn reap(&mut self) -> bool {
        loop {
            match sys::reap() {
                Reap::Dead(dead) => {
                    self.reaped.user += dead.user;
                    self.reaped.system += dead.system;
                    self.largest = self.largest.max(dead.largest);
                    if dead.pid == self.main {
                        self.main_end = Some((Instant::now(), dead));
                    }
                }
                Reap::NoneDead => return false,
                Reap::NoChildren => return true,
            }
        }
    }

    /// CPU time of the whole tree so far.
    ///
    /// What our descendants say is asked first even where a group counts: it brings the scheduler's books up to date,
    /// and it sees those that left the group.
    fn cpu_used(&self) -> Duration {
        let visible = self.reaped.user
            + self.reaped.system
            + tree::cpu_time(&tree::descendants(self.slot.keeper));
        match &self.leaf {
            Some(leaf) => leaf
                .cpu_time()
                .total
                .max(visible.saturating_sub(ESCAPE_MARGIN)),
            None => visible,
        }
    }

    /// Ends whatever is alive; gives how many processes besides the main one there were.
    fn end(&mut self, cause: Cause, stop: &mut dyn Stop) -> u64 {
        if cause == Cause::None && self.is_over() {
            return 0;
        }
        let mut others: HashSet<i32> = self.alive().into_iter().collect();
        if cause != Cause::None && !self.limits.grace.is_zero() {
            self.ask_politely(cause, stop);
        }
        if self.main_end.is_none() {
            let _ = pidfd_send_signal(&self.pidfd, Signal::KILL);
        }
        if let Some(leaf) = &self.leaf {
            leaf.kill();
        }
        // Nobody can use more any longer, and what follows needs a little memory of its own.
        self.peak = self.slot.memory.peak();
        self.memory_hit |= self.slot.memory.was_hit();
        self.slot.memory.disarm();
        let mut pause = Duration::from_millis(1);
        loop {
            if self.is_over() {
                break;
            }
            // At `cgroup2` the kernel is already at it: look for those who left the group only if it takes long.
            if self.leaf.is_none() || pause > Duration::from_millis(1) {
                let members = tree::descendants(self.slot.keeper);
                tree::signal(&members, Signal::KILL);
                if self.leaf.as_ref().is_none_or(|leaf| !leaf.is_populated()) {
                    others.extend(members.iter().map(|member| member.pid));
                }
                self.reap();
                if self.is_over() {
                    break;
                }
            }
            let _ = sys::wait(&mut [], Some(pause));
            pause = (pause * 2).min(Duration::from_millis(20));
        }
        others.remove(&self.main);
        others.len() as u64
    }

    /// True when no process of the run exists any more.
    fn is_over(&mut self) -> bool {
        self.reap() && self.leaf.as_ref().is_none_or(|leaf| !leaf.is_populated())
    }

    /// The processes alive now.
    fn alive(&self) -> Vec<i32> {
        match &self.leaf {
            Some(leaf) => leaf.processes(),
            None => tree::descendants(self.slot.keeper)
                .iter()
                .map(|member| member.pid)
                .collect(),
        }
    }

    /// SIGTERM to all, then up to the grace period for them to leave; less if somebody asks (again) for the end, or
    /// nobody is left to wait for it.
    fn ask_politely(&mut self, cause: Cause, stop: &mut dyn Stop) {
        let mut now = Instant::now();
        let deadline = now.after(self.limits.grace);
        let patience = match cause {
            Cause::Cancelled => now.after(ONE_REQUEST),
            _ => now,
        };
        let members = tree::descendants(self.slot.keeper);
        tree::signal(&members, Signal::TERM);
        // A stopped process hears nothing.
        tree::signal(&members, Signal::CONT);
        while !self.is_over() && now < deadline {
            match stop.urgency() {
                Urgency::None => {}
                Urgency::Again if now < patience => {}
                Urgency::Again | Urgency::Deserted => return,
            }
            let look = deadline.min(now.after(URGENCY_PERIOD));
            if self.wait(Some(look), None).is_err() {
                return;
            }
            now = Instant::now();
        }
    }

    fn report(mut self, cause: Cause, left_behind: u64, launch: &Launch) -> Report {
        self.buffer.resize(1 << 16, 0);
        let [stdout, stderr] = std::mem::take(&mut self.streams)
            .map(|stream| stream.map(|stream| stream.finish(&mut self.buffer)));
        let (end, main) = match self.main_end {
            Some((end, main)) => (end.since(self.start), Some(main)),
            None => (Instant::now().since(self.start), None),
        };
        let rusage = CpuTime {
            total: self.reaped.user + self.reaped.system,
            ..self.reaped
        };
        let (cpu, cpu_exact) = match &self.leaf {
            Some(leaf) => {
                let group = leaf.cpu_time();
                if rusage.total > group.total + ESCAPE_MARGIN {
                    (rusage, false)
                } else {
                    (group, true)
                }
            }
            None => (rusage, false),
        };
        let peak = self.peak.or_else(|| self.slot.memory.peak());
        // The limit may have been hit in the very moment of another end.
        let hit = self.memory_hit || self.slot.memory.was_hit();
        let cause = if cause == Cause::None && hit {
            Cause::Memory
        } else {
            cause
        };
        if let Some(leaf) = self.leaf.take() {
            self.slot.retire(leaf);
        }
        tracing::debug!(wakes = self.wakes, "run ended");
        Report {
            cause,
            exit_code: main.and_then(|main| main.exit_code),
            signal: main.and_then(|main| main.signal),
            wall_seconds: end.as_secs_f64(),
            cpu_seconds: cpu.total.as_secs_f64(),
            user_seconds: cpu.user.as_secs_f64(),
            system_seconds: cpu.system.as_secs_f64(),
            peak_memory_bytes: peak.unwrap_or(self.largest.max(self.sampled)),
            left_behind,
            level: self.slot.level(),
            cpu_exact,
            memory_exact: self.slot.memory.is_exact(),
            command: launch
                .command
                .iter()
                .map(|argument| argument.to_string_lossy().into_owned())
                .collect(),
            stdout,
            stderr,
        }
    }
}

enum Woken {
    Stop,
    Memory,
    Other,
}
