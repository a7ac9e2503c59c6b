//! The one loop that starts pulls and waits for them: over one run or several, on a pool of slots.

use std::collections::BTreeSet;
use std::pin::Pin;
use std::time::Instant;

use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::{Interval, MissedTickBehavior, Sleep};

use super::event::{Event, Running, Watch};
use super::signal::{Signals, suspend};
use super::{Clock, Next, Run, RunError};
use crate::journal::{Durable, EndReason, PullRecord};
use crate::target::{Ended, PoolChange, SlotPool, Start};

/// A session of one run or several.
///
/// Several runs take turns, one pull each: the run with the fewest rounds is next.
pub struct Driver<'a, W> {
    runs: Vec<Run<W>>,
    pool: &'a mut SlotPool,
    slots: Vec<Option<Running>>,
    /// The slots in which nothing runs. There may be thousands, and this is asked for after every outcome.
    free: BTreeSet<usize>,
    /// How many pulls may run at a time now. Less than `slots` after some of them went away.
    capacity: usize,
    durable: UnboundedReceiver<(usize, Durable)>,
    signals: &'a mut Signals,
    /// Time over all sessions and runs.
    clock: Clock,
    wall: Option<f64>,
    /// Set once nothing more is started and what runs is being stopped.
    stopping: Option<EndReason>,
    signals_seen: u32,
}

/// How long the runs of a driver may take together.
#[derive(Debug, Clone, Copy, Default)]
pub struct Wall {
    /// Seconds over all sessions. `None` for no bound.
    pub seconds: Option<f64>,
    /// Seconds that were spent outside these runs.
    pub spent: f64,
}

/// How a session ended.
#[non_exhaustive]
pub struct Driven<W> {
    /// The runs, in the order given.
    pub runs: Vec<Run<W>>,
    /// Why it ended.
    pub reason: EndReason,
    /// Whether the user asked twice to stop, so captime should quit at once.
    pub is_hasty: bool,
}

impl<'a, W: Watch> Driver<'a, W> {
    /// Records that a session begins, for every run that has something left to do. Call it inside a tokio runtime.
    pub fn begin(
        mut runs: Vec<Run<W>>,
        pool: &'a mut SlotPool,
        signals: &'a mut Signals,
        wall: Wall,
    ) -> Result<Self, RunError> {
        let (tell, durable) = unbounded_channel();
        let seconds: f64 = runs.iter().map(Run::seconds).sum();
        for (place, run) in runs.iter_mut().enumerate() {
            if run.over().is_none() {
                let tell = tell.clone();
                // The receiver is gone only when the session is over.
                run.sync_elsewhere(move |durable| drop(tell.send((place, durable))))?;
                run.begin(pool.slots.max(1), pool.enforcement.clone())?;
            }
        }
        Ok(Self {
            runs,
            slots: vec![None; pool.slots.max(1)],
            free: (0..pool.slots.max(1)).collect(),
            capacity: pool.slots.max(1),
            pool,
            durable,
            signals,
            clock: Clock::from(wall.spent + seconds),
            wall: wall.seconds,
            stopping: None,
            signals_seen: 0,
        })
    }

    /// Runs until there is nothing left to do, the time is up or the user stops it.
    pub async fn drive(mut self) -> Result<Driven<W>, RunError> {
        let mut wall = self.wall_timer();
        let mut tick = self.ticks();
        self.turn(0);
        let mut begun = self.fill();
        for place in 0..self.runs.len() {
            begun = begun.and_then(|()| self.learn(place, 0));
        }
        if let Err(error) = begun {
            self.stop_all();
            return Err(error);
        }
        loop {
            if self.runs.iter().all(|run| run.finished().is_some()) {
                return self.finish();
            }
            let event = self.next_event(&mut wall, &mut tick).await;
            if matches!(event, Event::Suspend) {
                self.suspend();
                wall = self.wall_timer();
                continue;
            }
            if let Err(error) = self.handle(event) {
                // Nothing may outlive captime. The journals have all that could be written.
                self.stop_all();
                return Err(error);
            }
            if self.signals_seen > 1 {
                return Ok(self.leave());
            }
        }
    }

    /// Comes when the wall budget is used up.
    fn wall_timer(&self) -> Option<Pin<Box<Sleep>>> {
        let end = self.clock.at(self.wall?)?;
        Some(Box::pin(tokio::time::sleep_until(end.into())))
    }

    /// Stops this process until the user continues it. That time counts for no budget. Pulls under way continue: they have their
    /// own processes, and their own limits.
    fn suspend(&mut self) {
        let clocks = self.runs.iter_mut().map(|run| &mut run.clock);
        let mut running: Vec<_> = clocks.filter(|clock| clock.is_running()).collect();
        running.push(&mut self.clock);
        for clock in &mut running {
            clock.pause();
        }
        suspend();
        for clock in running {
            clock.resume();
        }
    }

    fn ticks(&self) -> Option<Interval> {
        let periods = self.runs.iter().filter_map(|run| run.watch.period());
        periods.min().map(|period| {
            let mut tick = tokio::time::interval(period);
            tick.set_missed_tick_behavior(MissedTickBehavior::Skip);
            tick
        })
    }

    async fn next_event(
        &mut self,
        wall: &mut Option<Pin<Box<Sleep>>>,
        tick: &mut Option<Interval>,
    ) -> Event {
        let is_running = self.stopping.is_none();
        let pause = self.runs.iter().filter_map(Run::pause).min();
        tokio::select! {
            biased;
            asked = self.signals.next_or_suspended() => asked,
            Some(()) = elapsed(wall), if is_running => Event::WallOver,
            Some((place, durable)) = self.durable.recv() => Event::Durable(place, durable),
            // Handled before ends, so that nothing is launched on slots that are gone.
            Some(change) = changed(&mut self.pool.changes) => Event::Changed(change),
            Some(ended) = self.pool.ends.recv() => Event::Ended(ended),
            Some(()) = paused(pause), if is_running => Event::PauseOver,
            Some(()) = ticked(tick) => Event::Tick,
        }
    }

    fn handle(&mut self, event: Event) -> Result<(), RunError> {
        match event {
            Event::Ended(ended) => self.ended(ended)?,
            Event::Durable(place, Ok(line)) => self.learn(place, line)?,
            Event::Durable(place, Err(error)) => return Err(self.runs[place].cannot_sync(error)),
            // The loop does that itself: its timer depends on it.
            Event::Suspend => {}
            Event::Signal => {
                self.signals_seen += 1;
                self.stop(EndReason::Interrupted);
            }
            Event::PauseOver => {
                self.runs.iter_mut().for_each(Run::end_pause);
                self.fill()?;
            }
            Event::WallOver => self.stop(EndReason::Wall),
            Event::Changed(change) => self.changed(change)?,
            Event::Tick => {
                for run in &mut self.runs {
                    run.watched(&self.slots, Watch::tick);
                }
            }
        }
        if self.runs.iter().any(|run| run.watch.is_gone()) {
            self.stop(EndReason::Interrupted);
        }
        for place in 0..self.runs.len() {
            if let Some(line) = self.runs[place].settle_losses()? {
                self.learn(place, line)?;
            }
        }
        Ok(())
    }

    /// Slots were added or removed.
    fn changed(&mut self, change: PoolChange) -> Result<(), RunError> {
        match change {
            PoolChange::Slots(count) => {
                self.capacity = count;
                if count > self.slots.len() {
                    self.free.extend(self.slots.len()..count);
                    self.slots.resize(count, None);
                }
                return self.fill();
            }
            PoolChange::Node { node, slots, text } => {
                for run in &mut self.runs {
                    run.watch.node(&node, slots);
                }
                self.notice(&text);
            }
            PoolChange::Over(why) => {
                self.notice(&why);
                // Running pulls may still end. Then the session is over and can be resumed.
                if self.stopping.is_none() {
                    self.stopping = Some(EndReason::Interrupted);
                    for run in &mut self.runs {
                        run.stop(EndReason::Interrupted);
                    }
                }
            }
        }
        Ok(())
    }

    fn notice(&mut self, text: &str) {
        for run in &mut self.runs {
            run.watch.noticed(text);
        }
    }

    /// A pull ended: its outcome is written now, and learned from once it is on disk.
    fn ended(&mut self, ended: Ended) -> Result<(), RunError> {
        let Some(Running { run, pull, .. }) = self.slots.get_mut(ended.slot).and_then(Option::take)
        else {
            return Ok(());
        };
        self.free.insert(ended.slot);
        let slot = (self.slots.len() > 1).then_some(ended.slot as u32 + 1);
        self.runs[run].watched(&self.slots, |watch, now| {
            watch.ended(&pull, &ended.ending, now);
        });
        if let Some(line) = self.runs[run].settle(slot, pull, ended.ending)? {
            self.learn(run, line)?;
        }
        self.fill()
    }

    /// Learns, in order, from the outcomes that are on disk. Each makes room for one launch, so decisions depend on the
    /// order of outcomes, not on the speed of the disk.
    fn learn(&mut self, place: usize, line: u64) -> Result<(), RunError> {
        while self.runs[place].durable(line, &self.slots)? {
            self.fill()?;
        }
        Ok(())
    }

    /// Launches as long as there is room and budget.
    fn fill(&mut self) -> Result<(), RunError> {
        while self.stopping.is_none() {
            // A slot stays taken until its outcome has been learned from.
            let running = self.slots.len() - self.free.len();
            let taken = running + self.runs.iter().map(Run::unlearned).sum::<usize>();
            let free = self.free.first().filter(|_| taken < self.capacity);
            let Some(&slot) = free else {
                return Ok(());
            };
            let open = self.runs.iter().enumerate();
            let open = open.filter(|(_, run)| run.has_more());
            let Some((place, _)) = open.min_by_key(|(_, run)| run.rounds()) else {
                return Ok(());
            };
            if self.wall.is_some_and(|wall| self.clock.seconds() >= wall) {
                self.stop(EndReason::Wall);
                return Ok(());
            }
            self.turn(place);
            match self.runs[place].next() {
                Next::Pull(pull) => self.launch(place, slot, pull)?,
                Next::Wait => return Ok(()),
                Next::Over(EndReason::FirstFailures) => self.stop(EndReason::FirstFailures),
                Next::Over(_) => {}
            }
        }
        Ok(())
    }

    /// It is this run's turn: the clock runs for it, and stops for the others.
    fn turn(&mut self, place: usize) {
        for (other, run) in self.runs.iter_mut().enumerate() {
            if other == place {
                run.clock.resume();
            } else if run.is_idle() {
                run.clock.pause();
            }
        }
    }

    fn launch(&mut self, place: usize, slot: usize, pull: PullRecord) -> Result<(), RunError> {
        self.runs[place].launch(&pull)?;
        self.free.remove(&slot);
        self.slots[slot] = Some(Running {
            run: place,
            pull,
            since: Instant::now(),
        });
        tracing::debug!(
            round = pull.round.0,
            slot,
            arm = pull.arm.number(),
            limit = pull.limit.get(),
            "launch"
        );
        self.pool.target.start(Start {
            slot,
            round: pull.round,
            pull: pull.pull(),
            seed: pull.seed.unwrap_or_default(),
            configuration: self.runs[place].state().drawn_configuration(pull.arm),
        });
        self.runs[place].watched(&self.slots, |watch, now| watch.launched(slot, &pull, now));
        Ok(())
    }

    fn stop(&mut self, reason: EndReason) {
        if self.stopping.is_none() {
            tracing::info!(?reason, "stopping");
            self.stopping = Some(reason);
            for run in &mut self.runs {
                run.stop(reason);
                run.watched(&self.slots, |watch, now| watch.stopping(reason, now));
            }
            self.stop_all();
        }
    }

    fn stop_all(&mut self) {
        for slot in 0..self.slots.len() {
            if self.slots[slot].is_some() {
                self.pool.target.stop(slot);
            }
        }
    }

    fn finish(mut self) -> Result<Driven<W>, RunError> {
        for run in &mut self.runs {
            let reason = run.finished();
            run.finish(reason)?;
        }
        Ok(self.leave())
    }

    fn leave(self) -> Driven<W> {
        let reasons: Option<Vec<EndReason>> = self.runs.iter().map(Run::finished).collect();
        let reason = match reasons {
            // A run that was stopped after its last outcome ended by itself.
            Some(all) if !all.iter().any(|reason| Some(*reason) == self.stopping) => {
                all.last().copied()
            }
            _ => self.stopping,
        };
        Driven {
            reason: reason.unwrap_or(EndReason::Rounds),
            is_hasty: self.signals_seen > 1,
            runs: self.runs,
        }
    }
}

/// Waits for a timer. Without one, waits forever.
async fn elapsed(timer: &mut Option<Pin<Box<Sleep>>>) -> Option<()> {
    timer.as_mut()?.await;
    Some(())
}

async fn paused(until: Option<Instant>) -> Option<()> {
    tokio::time::sleep_until(until?.into()).await;
    Some(())
}

async fn changed(changes: &mut Option<UnboundedReceiver<PoolChange>>) -> Option<PoolChange> {
    changes.as_mut()?.recv().await
}

async fn ticked(timer: &mut Option<Interval>) -> Option<()> {
    timer.as_mut()?.tick().await;
    Some(())
}
