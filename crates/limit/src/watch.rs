//! One run from start to end: launch, wait for whatever comes first, end the tree, count.

use std::collections::HashSet;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::process::{Signal, pidfd_send_signal};

use super::capture::Stream;
use super::cgroup::{self, CpuTime, Leaf};
use super::clock::Instant;
use super::contain::Contain;
use super::cpu_looks::CpuLooks;
use super::error::LimitError;
use super::launch::{Launch, Limits};
use super::log::{self, Message};
use super::report::{Cause, Report};
use super::server::{Line, Urgency};
use super::slot::Slot;
use super::spawn::Prepared;
use super::sys::{self, Reap, Reaped, Watched, readable};
use super::tree;

/// How often memory is looked at where the kernel does not watch it.
const MEMORY_PERIOD: Duration = Duration::from_millis(10);
/// After a notice about memory it is looked soon, and then less and less often, whether the kernel has killed.
const HINT_PAUSE: Duration = Duration::from_micros(250);
/// When to stop looking.
const HINT_END: Duration = Duration::from_millis(100);
/// How often it is checked, where the kernel limits memory, that every process is still counted and the limit unchanged.
const ESCAPE_PERIOD: Duration = Duration::from_millis(100);
/// How often, in a grace period, it is checked whether the run is still waited for.
const URGENCY_PERIOD: Duration = Duration::from_millis(50);
/// Requests this soon after the one that began a grace period are that one: `timeout`, for one, signals its child and then the
/// group it is in.
const ONE_REQUEST: Duration = Duration::from_millis(200);
/// How far the sum over dead processes may exceed the group's own count before it means that something left the group.
const ESCAPE_MARGIN: Duration = Duration::from_millis(5);
/// How long processes may take to die. Those that take longer cannot be killed by any process.
const END_PATIENCE: Duration = Duration::from_secs(5);
/// How long processes are counted before they are killed. Busy ones delay that.
const COUNT_PATIENCE: Duration = Duration::from_millis(50);
/// How long they may take if this process is not allowed to kill them.
const FOREIGN_PATIENCE: Duration = Duration::from_millis(500);

/// Runs one command in `slot` and gives the account of it; nothing of it is alive afterwards.
pub(super) fn run(
    slot: &mut Slot,
    launch: &Launch,
    limits: &Limits,
    line: &mut Line,
) -> Result<Report, LimitError> {
    limits.check()?;
    if launch.command.is_empty() {
        return Err(LimitError::NoCommand);
    }
    let own = std::io::stdin();
    let stdin = slot.stdin.as_ref().map_or(own.as_fd(), AsFd::as_fd);
    let prepared = Prepared::new(launch, limits, stdin, slot.timer_slack, slot.contain)?;
    let leaf = slot.take_leaf()?;
    // Set before there is a command that could stop this process.
    let cpu = limits.cpu.map(|cpu| cpu / slot.reachable_cpus());
    if let Some(soonest) = [limits.wall, cpu].into_iter().flatten().min() {
        slot.alarm.set(Instant::now().after(soonest));
    }
    // The limit comes last: from here on even a descriptor of the supervisor may count against it.
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
    let mut run = WatchedRun {
        slot,
        limits,
        leaf,
        main: started.child.pid,
        pidfd: started.child.pidfd,
        start: started.child.exec.unwrap_or_else(Instant::now),
        streams: started.streams,
        main_end: None,
        reaped: CpuTime::default(),
        largest: 0,
        sampled: 0,
        wakes: 0,
        peak: None,
        memory_hit: false,
        has_escaped: false,
    };
    // A run that cannot be watched is ended too.
    let watched = run.watch(line);
    let ended = run.end(*watched.as_ref().unwrap_or(&Cause::Cancelled), line);
    match (watched, ended) {
        (Ok(cause), Ok(left_behind)) => Ok(run.report(cause, left_behind, launch)),
        (_, Err(error)) | (Err(error), _) => {
            run.give_up();
            Err(error)
        }
    }
}

struct WatchedRun<'a> {
    slot: &'a mut Slot,
    limits: &'a Limits,
    leaf: Option<Leaf>,
    main: i32,
    pidfd: OwnedFd,
    start: Instant,
    streams: [Option<Stream>; 2],
    main_end: Option<(Instant, Reaped)>,
    /// CPU time of the dead, by the kernel's account to their parent.
    reaped: CpuTime,
    largest: u64,
    /// Most memory seen by looking.
    sampled: u64,
    wakes: u64,
    /// Most memory, by the kernel's account at the end.
    peak: Option<u64>,
    memory_hit: bool,
    /// Whether a process was seen outside the group that counts its memory, or the limit was changed.
    has_escaped: bool,
}

impl WatchedRun<'_> {
    /// Waits until the main process has ended or must be ended, and says why.
    fn watch(&mut self, line: &mut Line) -> Result<Cause, LimitError> {
        let wall = self.limits.wall.map(|wall| self.start.after(wall));
        // Not the CPUs the tree was pinned to: it may undo that at any moment, and then use all of these at once.
        let cpu_looks = |limit| CpuLooks::new(limit, self.slot.reachable_cpus());
        let mut cpu_looks = self.limits.cpu.map(cpu_looks);
        let first_look = |looks: &CpuLooks| self.start.after(looks.pause());
        let mut look_at_cpu = cpu_looks.as_ref().map(first_look);
        let keeps = self.limits.memory.is_some() && self.slot.memory.event().is_some();
        let mut look_for_escape = keeps.then(|| self.start.after(ESCAPE_PERIOD / 5));
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
            let now = Instant::now();
            if wall.is_some_and(|wall| wall <= now) {
                return Ok(Cause::Wall);
            }
            if let (Some(looks), Some(look)) = (&mut cpu_looks, look_at_cpu)
                && look <= now
            {
                if looks.look(self.cpu_used()) {
                    return Ok(Cause::Cpu);
                }
                look_at_cpu = Some(Instant::now().after(looks.pause()));
            }
            if let (Some(limit), Some(look)) = (self.limits.memory, look_at_memory)
                && look <= now
            {
                let seen = tree::memory(&self.members(), limit);
                self.sampled = self.sampled.max(seen.min(limit));
                if seen > limit {
                    self.sampled = self.sampled.max(seen);
                    return Ok(Cause::Memory);
                }
                look_at_memory = Some(Instant::now().after(MEMORY_PERIOD));
            }
            if let (Some(limit), Some(look)) = (self.limits.memory, look_for_escape)
                && look <= now
            {
                if self.outside() + self.slot.memory.used().unwrap_or(0) > limit {
                    return Ok(Cause::Memory);
                }
                look_for_escape = Some(Instant::now().after(ESCAPE_PERIOD));
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
            let looks = [
                wall,
                look_at_cpu,
                look_at_memory,
                look_at_hint,
                look_for_escape,
            ];
            let next = looks.into_iter().flatten().min();
            match self.wait(next, Some(line))? {
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
        line: Option<&mut Line>,
    ) -> Result<Woken, LimitError> {
        let mut watched: Vec<Watched> = Vec::with_capacity(6);
        let streams = self.streams.iter().flatten();
        watched.extend(streams.filter_map(Stream::descriptor).map(readable));
        let streams = watched.len();
        watched.extend(self.slot.memory.event());
        let memory = watched.len();
        if let Some(line) = &line {
            watched.extend(line.watched());
        }
        if let Some(next) = next {
            self.slot.alarm.set(next);
        }
        let timeout = next.map(|next| next.since(Instant::now()));
        sys::wait(&mut watched, timeout)
            .map_err(|error| LimitError::system("wait for the command", error))?;
        self.wakes += 1;
        let has_output = sys::is_ready(&watched[..streams]);
        let has_memory = sys::is_ready(&watched[streams..memory]);
        let has_message = sys::is_ready(&watched[memory..]);
        drop(watched);
        if has_output {
            self.take_output();
        }
        if let Some(line) = line
            && has_message
            && line.listen() != Urgency::None
        {
            return Ok(Woken::Stop);
        }
        Ok(if has_memory {
            Woken::Memory
        } else {
            Woken::Other
        })
    }

    fn take_output(&mut self) {
        self.slot.buffer.resize(1 << 16, 0);
        for stream in self.streams.iter_mut().flatten() {
            stream.pull(&mut self.slot.buffer);
        }
    }

    /// Collects dead children; true if there are no children at all.
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
    /// The descendants are asked first even where a group counts: that updates the scheduler's counts,
    /// and includes processes that left the group.
    fn cpu_used(&self) -> Duration {
        let visible = self.reaped.user + self.reaped.system + tree::cpu_time(&self.members());
        match &self.leaf {
            Some(leaf) => leaf
                .cpu_time()
                .total
                .max(visible.saturating_sub(ESCAPE_MARGIN)),
            None => visible,
        }
    }

    /// The processes of the run, as far as they can be found before its wall limit.
    fn members(&self) -> Vec<tree::Member> {
        let wall = self.limits.wall.map(|wall| self.start.after(wall));
        tree::descendants_until(tree::ourselves(), wall)
    }

    /// Memory of processes that left the group which counts it; notes that, and a limit that was changed.
    fn outside(&mut self) -> u64 {
        if !self.slot.memory.keep() {
            self.has_escaped = true;
        }
        let mut members = tree::descendants(tree::ourselves());
        members.retain(|member| {
            let groups = tree::memberships(member.pid).unwrap_or_default();
            let is_outside = self.slot.memory.counts(self.leaf.as_ref(), &groups) == Some(false);
            // Dying processes are taken out of their groups, but hold no memory any more.
            is_outside && tree::memory(&[*member], u64::MAX) > 0
        });
        if members.is_empty() {
            return 0;
        }
        self.has_escaped = true;
        let seen = tree::memory(&members, 0);
        self.sampled = self.sampled.max(seen);
        seen
    }

    /// Ends whatever is alive; gives how many processes besides the main one there were.
    fn end(&mut self, cause: Cause, line: &mut Line) -> Result<u64, LimitError> {
        if self.slot.memory.event().is_some() && self.limits.memory.is_some() {
            self.outside();
        }
        if cause == Cause::None && self.is_over() {
            return Ok(0);
        }
        let is_polite = cause != Cause::None && !self.limits.grace.is_zero();
        // In a control group or namespace, the kernel ends all of them at once.
        let is_held = self.leaf.is_some() || self.slot.contain != Contain::Off;
        if self.leaf.is_none() && !is_polite {
            // They are counted one by one. While they run, this process may have to wait for the CPU behind each of them.
            self.signal_at_once(Signal::STOP);
        }
        let until = Instant::now().after(COUNT_PATIENCE);
        let mut others: HashSet<i32> = if is_held || is_polite {
            self.alive_until(Some(until)).into_iter().collect()
        } else {
            let killed = tree::kill_all(tree::ourselves(), Some(until));
            killed.iter().map(|member| member.pid).collect()
        };
        if is_polite {
            self.ask_politely(cause, line);
        }
        if self.main_end.is_none() {
            let _ = pidfd_send_signal(&self.pidfd, Signal::KILL);
        }
        if let Some(leaf) = &self.leaf {
            leaf.kill();
        }
        self.signal_at_once(Signal::KILL);
        // Nothing can use more any longer, and what follows needs a little memory of its own.
        self.peak = self.slot.memory.peak();
        self.memory_hit |= self.slot.memory.was_hit();
        self.slot.memory.disarm();
        let start = Instant::now();
        let mut pause = Duration::from_millis(1);
        let mut blind = tree::BlindSearch::from(self.main);
        while !self.is_over() {
            // Look for processes that left group and namespace only if it takes long.
            if !is_held || pause > Duration::from_millis(1) {
                let members = tree::kill_all(tree::ourselves(), None);
                if self.leaf.as_ref().is_none_or(|leaf| !leaf.is_populated()) {
                    others.extend(members.iter().map(|member| member.pid));
                }
                // Whatever takes this long may have been frozen.
                if pause > Duration::from_millis(10) {
                    let inside = self.alive_until(None);
                    for pid in members.iter().map(|member| member.pid).chain(inside) {
                        cgroup::thaw(pid);
                    }
                }
                if !tree::can_look() {
                    blind.kill_some();
                }
                if self.is_over() {
                    break;
                }
            }
            line.listen();
            let waited = Instant::now().since(start);
            if waited > END_PATIENCE || waited > FOREIGN_PATIENCE && tree::is_out_of_reach() {
                return Err(self.unkillable());
            }
            let _ = sys::wait(&mut [], Some(pause));
            pause = (pause * 2).min(Duration::from_millis(20));
        }
        others.remove(&self.main);
        Ok(others.len() as u64)
    }

    /// Signals, in one system call, all that can be reached so: everything in a namespace, without one what stayed in the process
    /// group of the main process.
    fn signal_at_once(&self, signal: Signal) {
        if self.slot.contain == Contain::Off {
            sys::signal_group(self.pidfd.as_fd(), signal);
        } else {
            sys::signal_namespace(signal);
        }
    }

    /// Which processes are still alive, and why.
    fn unkillable(&self) -> LimitError {
        let mut pids: Vec<i32> = tree::descendants(tree::ourselves())
            .iter()
            .map(|member| member.pid)
            .chain(self.alive_until(None))
            .collect();
        pids.sort_unstable();
        pids.dedup();
        let why = match pids.first() {
            Some(&pid) if !tree::may_signal(pid) => {
                "it runs as another user, whose processes this one may not signal".to_owned()
            }
            Some(&pid) => format!("it was killed and {}", tree::state_in_words(pid)),
            None if !tree::can_look() => {
                "the supervisor can no longer open files, so it cannot find it".to_owned()
            }
            None => "the kernel still counts it".to_owned(),
        };
        LimitError::Unkillable { pids, why }
    }

    /// Leaves a run whose processes cannot be ended.
    fn give_up(mut self) {
        if let Some(leaf) = self.leaf.take() {
            self.slot.retire(leaf);
        }
    }

    /// True when no process of the run exists any more.
    fn is_over(&mut self) -> bool {
        self.reap() && self.leaf.as_ref().is_none_or(|leaf| !leaf.is_populated())
    }

    /// The processes alive now; those found before this moment where no group lists them.
    fn alive_until(&self, end: Option<Instant>) -> Vec<i32> {
        match &self.leaf {
            Some(leaf) => leaf.processes(),
            None => tree::descendants_until(tree::ourselves(), end)
                .iter()
                .map(|member| member.pid)
                .collect(),
        }
    }

    /// SIGTERM to all, then up to the grace period for them to leave; less if the run is to end (again), or
    /// no process waits for it any more.
    fn ask_politely(&mut self, cause: Cause, line: &mut Line) {
        let mut now = Instant::now();
        let deadline = now.after(self.limits.grace);
        let patience = match cause {
            Cause::Cancelled => now.after(ONE_REQUEST),
            _ => now,
        };
        let members = tree::descendants(tree::ourselves());
        tree::signal(&members, Signal::TERM);
        // A stopped process hears nothing.
        tree::signal(&members, Signal::CONT);
        while !self.is_over() && now < deadline {
            match line.listen() {
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
        self.slot.buffer.resize(1 << 16, 0);
        let [stdout, stderr] = std::mem::take(&mut self.streams)
            .map(|stream| stream.map(|stream| stream.finish(&mut self.slot.buffer)));
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
        let hit = self.memory_hit || self.slot.memory.was_hit();
        let largest = self.largest.max(self.sampled);
        let memory_exact = self.slot.memory.is_exact() && !self.has_escaped && {
            // Mapped files count here although others may have paid for them: only what that does not explain is suspicious.
            let counted = self.limits.memory.or(peak).unwrap_or(0);
            largest <= counted.saturating_add(counted / 4).saturating_add(64 << 20)
        };
        let peak = match peak {
            Some(peak) if memory_exact => peak,
            Some(peak) => peak.max(largest),
            None => largest,
        };
        let is_past_memory =
            self.has_escaped && self.limits.memory.is_some_and(|limit| peak > limit);
        let cause = match cause {
            Cause::None if hit => Cause::Memory,
            Cause::None => cause.judged(self.limits, end, cpu.total),
            cause => cause,
        };
        let cause = match cause {
            Cause::None if is_past_memory => Cause::Memory,
            cause => cause,
        };
        if let Some(leaf) = self.leaf.take() {
            self.slot.retire(leaf);
        }
        log::note(Message::Debug(format!(
            "run ended ({cause:?}); woken {} times",
            self.wakes
        )));
        if self.has_escaped {
            log::note(Message::Warning(
                "the command left the control group that counts its memory, or changed its limit"
                    .to_owned(),
            ));
        }
        Report {
            cause,
            exit_code: main.and_then(|main| main.exit_code),
            signal: main.and_then(|main| main.signal),
            wall_seconds: end.as_secs_f64(),
            cpu_seconds: cpu.total.as_secs_f64(),
            user_seconds: cpu.user.as_secs_f64(),
            system_seconds: cpu.system.as_secs_f64(),
            peak_memory_bytes: peak,
            left_behind,
            level: self.slot.level(),
            contain: self.slot.contain,
            cpu_exact,
            memory_exact,
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
