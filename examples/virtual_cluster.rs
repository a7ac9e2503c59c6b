//! A run on thousands of slots in virtual time: which part of the orchestrator becomes too slow first?
//!
//! The orchestrator's own code decides, writes the journal, learns, and writes and reads the frames. What each step costs in CPU time
//! is measured as it happens. The clock is virtual: pulls, the way to a node and syncs of the journal take time there, and a
//! step waits until the thread that does it is free. What is left out is what the kernel does to wake threads.
//!
//! `cargo run --release --example virtual_cluster -- SCENARIO SLOTS SECONDS ROUNDS`: a scenario with a virtual target, the slots,
//! how long a pull takes, and how many pulls.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{Read, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use captime::cluster::frames::{Decoder, encode};
use captime::cluster::message::{FromAgent, PullEnd, ToAgent};
use captime::journal::PullRecord;
use captime::orchestrator::{Next, Run, RunSetup};
use captime::scenario::Scenario;
use captime::target::{Ended, SlotPool, Start};
use nix::time::{ClockId, clock_gettime};
use rand::{RngExt, SeedableRng};

type Failure = Box<dyn std::error::Error>;

/// To a node and back, and the start of a process there: half of it each way.
const WAY: u64 = 2_500_000;

fn main() -> Result<(), Failure> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [scenario, slots, seconds, rounds] = &words[..] else {
        return Err("give SCENARIO SLOTS SECONDS ROUNDS".into());
    };
    let path = Path::new(scenario);
    let text = std::fs::read_to_string(path)?;
    let folder = path.parent().unwrap_or(Path::new("."));
    let scenario = captime::scenario::parse(&text, path, folder)?.scenario;
    let report = play(&scenario, slots.parse()?, seconds.parse()?, rounds.parse()?)?;
    writeln!(std::io::stdout(), "{report}")?;
    Ok(())
}

/// What a run on many slots came to.
#[derive(Debug)]
struct Report {
    slots: usize,
    seconds: f64,
    /// The share of slot time in which pulls ran.
    busy: f64,
    /// Outcomes per virtual second.
    rate: f64,
    /// The share of its time in which each part was at work.
    parts: [(&'static str, f64); 4],
    /// CPU time of one outcome, in microseconds: decision, journal and learning, frames.
    costs: [f64; 3],
}

impl std::fmt::Display for Report {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { slots, seconds, .. } = self;
        let (busy, rate) = (100.0 * self.busy, self.rate);
        writeln!(
            to,
            "{slots} slots, pulls of {seconds} s: {busy:.1} % busy, {rate:.0} outcomes/s"
        )?;
        for (name, share) in self.parts {
            writeln!(to, "  {name}: {:.1} % of its time", 100.0 * share)?;
        }
        let [decision, journal, frames] = self.costs;
        write!(
            to,
            "  one outcome: decision {decision:.1} µs, journal and learning {journal:.1} µs, frames {frames:.1} µs"
        )
    }
}

/// A thread, or a disk, that does one thing after the other.
#[derive(Debug, Default)]
struct Part {
    free: u64,
    worked: u64,
}

impl Part {
    /// Takes this long for something that comes at this moment. Returns when it is done.
    fn work(&mut self, at: u64, cost: u64) -> u64 {
        self.free = self.free.max(at) + cost;
        self.worked += cost;
        self.free
    }
}

/// What happens, at a moment of the virtual clock.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// The frame of a pull that ended in this slot has arrived.
    Arrived(usize),
    /// Its outcome is with the thread that writes the journal.
    Ended(usize),
    /// The journal is on disk up to this line.
    Synced(u64),
}

/// The costs that are not steps of the orchestrator's own code, each measured once.
struct Measured {
    /// To write a frame to a pipe and to read another, in nanoseconds of CPU time.
    pipe: u64,
    /// A sync of the journal, on the clock.
    sync: u64,
}

struct Cluster {
    run: Run,
    pool: SlotPool,
    running: Vec<Option<(PullRecord, Vec<u8>)>>,
    free: Vec<usize>,
    events: BinaryHeap<Reverse<(u64, Event)>>,
    main: Part,
    nodes: Part,
    disk: Part,
    measured: Measured,
    /// The last line that was written, and whether a sync is under way.
    written: Option<u64>,
    is_syncing: bool,
    deciding: u64,
    rng: rand_pcg::Pcg64Mcg,
    seconds: f64,
    /// When each pull ran.
    ran: Vec<(u64, u64)>,
}

/// Plays a scenario with this many slots.
fn play(scenario: &Scenario, slots: usize, seconds: f64, rounds: usize) -> Result<Report, Failure> {
    let folder = tempfile::tempdir()?;
    let target = captime::target::prepare(scenario, folder.path())?;
    if !target.is_virtual() {
        return Err("the scenario's target is not virtual".into());
    }
    let run = Run::open(
        &folder.path().join("run"),
        &RunSetup::of(scenario, &target),
        (),
    )?;
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let pool = runtime.block_on(target.start(1, scenario.pin))?;
    let mut cluster = Cluster {
        run,
        pool,
        running: (0..slots).map(|_| None).collect(),
        free: (0..slots).rev().collect(),
        events: BinaryHeap::new(),
        main: Part::default(),
        nodes: Part::default(),
        disk: Part::default(),
        measured: Measured {
            pipe: pipe_cost()?,
            sync: sync_time(folder.path())?,
        },
        written: None,
        is_syncing: false,
        deciding: 0,
        rng: rand_pcg::Pcg64Mcg::seed_from_u64(1),
        seconds,
        ran: vec![],
    };
    cluster.run.begin(slots, serde_json::Value::Null)?;
    for _ in 0..slots.min(rounds) {
        cluster.launch(0)?;
    }
    let filled = cluster.nodes.free + WAY;
    let mut dry = filled;
    while let Some(Reverse((now, event))) = cluster.events.pop() {
        match event {
            Event::Arrived(slot) => cluster.arrived(now, slot)?,
            Event::Ended(slot) => cluster.ended(now, slot)?,
            Event::Synced(line) => {
                cluster.is_syncing = false;
                cluster.learn(now, line, rounds)?;
                cluster.sync(now);
            }
        }
        if cluster.ran.len() < rounds {
            dry = now;
        }
    }
    Ok(cluster.report(filled, dry))
}

impl Cluster {
    /// Decides about one pull and sends it, as of this moment.
    fn launch(&mut self, now: u64) -> Result<(), Failure> {
        let slot = self.free.pop().ok_or("no slot is free")?;
        let (next, decision) = timed(|| self.run.next());
        let Next::Pull(pull) = next else {
            return Err("the scenario's budget ends too early".into());
        };
        let (launched, journal) = timed(|| self.run.launch(&pull));
        launched?;
        self.deciding += decision;
        let decided = self.main.work(now, decision + journal);
        let message = ToAgent::Pull {
            slot,
            round: pull.round,
            pull: pull.pull(),
            seed: pull.seed.unwrap_or_default(),
            is_sent: false,
        };
        let (frame, cost) = timed(|| encode(&message));
        frame?;
        let begin = self.nodes.work(decided, cost + self.measured.pipe) + WAY;
        let takes = 1e9 * self.seconds * self.rng.random_range(0.8..1.2);
        let end = begin + takes as u64;
        self.ran.push((begin, end));
        self.pool.target.start(Start {
            slot: 0,
            round: pull.round,
            pull: pull.pull(),
            seed: pull.seed.unwrap_or_default(),
            configuration: None,
        });
        let Ended { round, ending, .. } = self.pool.ends.try_recv()?;
        // The node makes this frame; reading it is the orchestrator's work.
        let end_of = Box::new(PullEnd::from(ending));
        let frame = encode(&FromAgent::Ended {
            slot,
            round,
            end: end_of,
        })?;
        self.running[slot] = Some((pull, frame));
        self.events.push(Reverse((end + WAY, Event::Arrived(slot))));
        Ok(())
    }

    fn arrived(&mut self, now: u64, slot: usize) -> Result<(), Failure> {
        let (_, frame) = self.running[slot].as_ref().ok_or("nothing runs there")?;
        let mut decoder = Decoder::default();
        decoder.buffer().extend_from_slice(frame);
        let (message, cost) = timed(|| decoder.take::<FromAgent>());
        message?.ok_or("half a frame")?;
        let done = self.nodes.work(now, cost + self.measured.pipe);
        self.events.push(Reverse((done, Event::Ended(slot))));
        Ok(())
    }

    fn ended(&mut self, now: u64, slot: usize) -> Result<(), Failure> {
        let (pull, frame) = self.running[slot].take().ok_or("nothing runs there")?;
        let mut decoder = Decoder::default();
        decoder.buffer().extend_from_slice(&frame);
        let Some(FromAgent::Ended { end, .. }) = decoder.take()? else {
            return Err("another message".into());
        };
        let ending = end.of(pull.pull())?;
        let number = u32::try_from(slot + 1)?;
        let (settled, cost) = timed(|| self.run.settle(Some(number), pull, ending));
        self.main.work(now, cost);
        // The run of a virtual target does not wait for the disk. Here it does.
        self.written = settled?.or(self.written);
        self.free.push(slot);
        self.sync(self.main.free);
        Ok(())
    }

    /// Starts a sync for all that was written, unless one is under way.
    fn sync(&mut self, now: u64) {
        if self.is_syncing {
            return;
        }
        if let Some(line) = self.written.take() {
            self.is_syncing = true;
            let done = self.disk.work(now, self.measured.sync);
            self.events.push(Reverse((done, Event::Synced(line))));
        }
    }

    /// Learns from all outcomes up to a line. Each makes room for one pull.
    fn learn(&mut self, now: u64, line: u64, rounds: usize) -> Result<(), Failure> {
        loop {
            let (learned, cost) = timed(|| self.run.durable(line, &[]));
            if !learned? {
                return Ok(());
            }
            self.main.work(now, cost);
            if self.ran.len() < rounds {
                self.launch(now)?;
            }
        }
    }

    /// From the moment all slots were filled until nothing was left to start.
    fn report(&self, filled: u64, dry: u64) -> Report {
        let inside =
            |(begin, end): &(u64, u64)| (*end).min(dry).saturating_sub((*begin).max(filled));
        let ran: u64 = self.ran.iter().map(inside).sum();
        let window = dry.saturating_sub(filled).max(1) as f64;
        let busy = ran as f64 / window / self.running.len() as f64;
        let outcomes = self.ran.len().max(1) as f64;
        let last = self.main.free.max(1) as f64;
        let share = |part: &Part| part.worked as f64 / last;
        let each = |worked: u64| worked as f64 / outcomes / 1000.0;
        Report {
            slots: self.running.len(),
            seconds: self.seconds,
            busy,
            rate: busy * self.running.len() as f64 / self.seconds,
            parts: [
                ("deciding (part of the next)", self.deciding as f64 / last),
                (
                    "main thread: decisions, journal, learning",
                    share(&self.main),
                ),
                ("thread of the nodes: frames", share(&self.nodes)),
                ("disk: syncs", share(&self.disk)),
            ],
            costs: [
                each(self.deciding),
                each(self.main.worked - self.deciding),
                each(self.nodes.worked),
            ],
        }
    }
}

/// Does something, and measures its CPU time in nanoseconds.
fn timed<T>(work: impl FnOnce() -> T) -> (T, u64) {
    let now =
        || clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map_or(Duration::ZERO, Duration::from);
    let before = now();
    let done = work();
    let cost = now().saturating_sub(before);
    (done, u64::try_from(cost.as_nanos()).unwrap_or(u64::MAX))
}

/// What it costs to write a frame to a pipe and to read it, half each.
fn pipe_cost() -> Result<u64, Failure> {
    const TIMES: u64 = 2000;
    let (mut reader, mut writer) = std::io::pipe()?;
    let mut frame = [b'x'; 300];
    let (done, cost) = timed(|| {
        for _ in 0..TIMES {
            writer.write_all(&frame)?;
            reader.read_exact(&mut frame)?;
        }
        Ok::<_, std::io::Error>(())
    });
    done?;
    Ok(cost / TIMES / 2)
}

/// How long a sync takes after one outcome was written, by the median of some.
fn sync_time(folder: &Path) -> Result<u64, Failure> {
    let mut file = std::fs::File::create(folder.join("synced"))?;
    let mut times = vec![];
    for _ in 0..21 {
        file.write_all(&[b'x'; 300])?;
        let since = Instant::now();
        file.sync_data()?;
        times.push(since.elapsed());
    }
    times.sort_unstable();
    Ok(u64::try_from(times[times.len() / 2].as_nanos())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_busy_as_long_as_the_orchestrator_keeps_up() -> Result<(), Failure> {
        let text = "target: {synthetic: {problem: poscorr}}\npolicy: uniform\n";
        let text = format!("{text}budget: {{rounds: 100000}}\n");
        let scenario = captime::scenario::parse(&text, "v.yaml".as_ref(), ".".as_ref())?.scenario;
        let report = play(&scenario, 200, 10.0, 1000)?;
        assert!(report.busy > 0.9 && report.busy <= 1.0, "{report}");
        assert!((10.0..30.0).contains(&report.rate), "{report}");
        // 200 slots cannot be served with pulls of 1 µs.
        let report = play(&scenario, 200, 1e-6, 1000)?;
        assert!(report.busy < 0.1, "{report}");
        Ok(())
    }
}
