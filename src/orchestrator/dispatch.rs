//! The loop itself: events in, one state change each, journal before learning.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::event::{Event, Now, Running, Watch};
use super::losses::{Fate, GivenUp, Losses};
use super::signal::Signals;
use super::timers::{Timers, elapsed, ticked};
use super::written::record;
use super::{Budget, Clock, Next, Progress, RunError, State};
use crate::journal::{
    Appender, Durable, End, EndReason, Learned, Lost, OutcomeRecord, PullRecord, Session, Syncing,
    timestamp,
};
use crate::target::{Ended, Ending, Failing, Measured, Outcome, Start, Target};

/// What a session is made of.
pub struct Setup<'a> {
    /// What the run knows so far.
    pub state: State,
    /// Where it stood when it was last left; the default for a new run.
    pub progress: Progress,
    /// Its journal, read or written up to here.
    pub journal: Appender,
    /// What pulls run on.
    pub target: Box<dyn Target + 'a>,
    /// Where the target tells how pulls ended.
    pub ends: UnboundedReceiver<Ended>,
    /// Pulls at a time.
    pub slots: usize,
    /// When to stop.
    pub budget: Budget,
    /// How often a lost pull is run again before it counts as failed.
    pub retries: u32,
    /// How long nothing is started after the first, second and any later loss in a row.
    pub pauses: [Duration; 3],
    /// What of the limits is enforced in this session, for the record.
    pub enforcement: serde_json::Value,
    /// Who looks on.
    pub watch: &'a mut dyn Watch,
}

/// How a session ended.
#[derive(Debug)]
pub struct Finished {
    /// Why.
    pub reason: EndReason,
    /// What the run knows.
    pub state: State,
    /// Seconds over all sessions.
    pub seconds: f64,
    /// Whether somebody asked twice, and wants us gone.
    pub is_hasty: bool,
}

/// A session under way.
pub struct Orchestrator<'a> {
    state: State,
    journal: Appender,
    target: Box<dyn Target + 'a>,
    ends: UnboundedReceiver<Ended>,
    durable: UnboundedReceiver<Durable>,
    signals: Signals,
    clock: Clock,
    budget: Budget,
    watch: &'a mut dyn Watch,
    slots: Vec<Option<Running>>,
    /// Pulls to run again, before anything new is chosen.
    again: VecDeque<PullRecord>,
    /// Outcomes that are written, with their line, and not learned from yet.
    unlearned: VecDeque<(u64, Box<Learned>)>,
    losses: Losses,
    /// Set once nothing more is started and what runs is being stopped.
    stopping: Option<EndReason>,
    signals_seen: u32,
}

impl<'a> Orchestrator<'a> {
    /// Writes down that a session begins. To be called inside a tokio runtime.
    pub fn begin(setup: Setup<'a>) -> Result<Self, RunError> {
        let Setup {
            state,
            progress,
            mut journal,
            target,
            ends,
            slots,
            budget,
            retries,
            pauses,
            enforcement,
            watch,
        } = setup;
        let is_virtual = journal.syncing() == Syncing::AtEnd;
        let (tell, durable) = unbounded_channel();
        journal.append(&Session {
            session: progress.sessions + 1,
            started: (!is_virtual).then(timestamp),
            slots,
            budget: serde_json::to_value(budget).unwrap_or_default(),
            enforcement,
        })?;
        if !is_virtual {
            journal.sync()?;
            // Nobody listens any more only when the session is over.
            journal.sync_elsewhere(move |durable| drop(tell.send(durable)))?;
        }
        Ok(Self {
            state,
            journal,
            target,
            ends,
            durable,
            signals: Signals::listen()?,
            clock: Clock::from(progress.seconds),
            budget,
            watch,
            slots: vec![None; slots.max(1)],
            again: progress.in_flight,
            unlearned: progress
                .waiting
                .into_iter()
                .map(|learned| (0, learned))
                .collect(),
            losses: Losses::new(retries, pauses, progress.lost),
            stopping: None,
            signals_seen: 0,
        })
    }

    /// Runs until the budget ends or somebody stops it.
    pub async fn run(mut self) -> Result<Finished, RunError> {
        let end = self.budget.wall.and_then(|wall| self.clock.at(wall));
        let mut timers = Timers::new(end, self.watch.period());
        self.catch_up()?;
        loop {
            if let Some(reason) = self.finished() {
                return self.finish(reason);
            }
            let event = self.next_event(&mut timers).await;
            if let Err(error) = self.handle(event) {
                // Whatever runs must not outlive us; the journal has all that could be written.
                self.stop_all();
                return Err(error);
            }
            if self.signals_seen > 1 {
                return Ok(self.leave(EndReason::Interrupted));
            }
        }
    }

    async fn next_event(&mut self, timers: &mut Timers) -> Event {
        tokio::select! {
            biased;
            () = self.signals.next() => Event::Signal,
            () = elapsed(&mut timers.wall), if timers.wall.is_some() && self.stopping.is_none() => Event::WallOver,
            Some(durable) = self.durable.recv() => Event::Durable(durable),
            Some(ended) = self.ends.recv() => Event::Ended(ended),
            () = paused(self.losses.not_before), if self.stopping.is_none() => Event::PauseOver,
            () = ticked(&mut timers.tick), if timers.tick.is_some() => Event::Tick,
        }
    }

    fn handle(&mut self, event: Event) -> Result<(), RunError> {
        match event {
            Event::Ended(ended) => self.ended(ended)?,
            Event::Durable(Ok(line)) => self.learn_up_to(line)?,
            Event::Durable(Err(error)) => return Err(self.journal.failed(error).into()),
            Event::Signal => {
                self.signals_seen += 1;
                self.stop(EndReason::Interrupted);
            }
            Event::PauseOver => {
                self.losses.not_before = None;
                self.fill()?;
            }
            Event::WallOver => self.stop(EndReason::Wall),
            Event::Tick => {
                self.watch
                    .tick(&now(&self.state, &self.slots, &self.clock, self.budget));
            }
        }
        if self.watch.is_gone() {
            self.stop(EndReason::Interrupted);
        }
        self.settle_losses()
    }

    /// Runs again what was in flight, and learns what the last session could not.
    fn catch_up(&mut self) -> Result<(), RunError> {
        if let Some(found) = self.state.due_calibration() {
            self.calibrated(found)?;
        }
        self.fill()?;
        self.learn_up_to(0)
    }

    /// A pull ended: its outcome is written, and learned from when that is on disk.
    fn ended(&mut self, ended: Ended) -> Result<(), RunError> {
        let Some(running) = self.slots.get_mut(ended.slot).and_then(Option::take) else {
            return Ok(());
        };
        let pull = running.pull;
        let tally = self.state.tally();
        match ended.ending.settled(tally.learned > tally.failed) {
            Ending::Brought(outcome) | Ending::NotStarted(outcome) => {
                let given_up = self.losses.brought();
                self.brought(ended.slot, pull, *outcome)?;
                self.failed_for_good(given_up)
            }
            Ending::Stopped => {
                if self.stopping.is_none() {
                    self.again.push_back(pull);
                    self.fill()?;
                }
                Ok(())
            }
            Ending::Lost { why } => self.was_lost(ended.slot, pull, why),
        }
    }

    fn brought(&mut self, slot: usize, pull: PullRecord, outcome: Outcome) -> Result<(), RunError> {
        let at = (self.journal.syncing() == Syncing::Outcomes).then(|| self.clock.seconds());
        let observation = outcome.observation;
        // Not on the pull's line: a pull that runs again may do so in another slot.
        let outcome = OutcomeRecord {
            slot: at.filter(|_| self.slots.len() > 1).map(|_| slot as u32 + 1),
            at,
            ..record(pull.round, outcome)
        };
        let line = self.journal.append(&outcome)?;
        self.unlearned.push_back((
            line,
            Box::new(Learned {
                pull,
                observation,
                outcome,
            }),
        ));
        match self.journal.syncing() {
            Syncing::Outcomes => self.journal.request_sync().map_err(RunError::from),
            Syncing::AtEnd => self.learn_up_to(line),
        }
    }

    /// A pull whose launcher went away says nothing: it runs again, but not for ever.
    fn was_lost(&mut self, slot: usize, pull: PullRecord, why: String) -> Result<(), RunError> {
        if self.stopping.is_some() {
            return Ok(());
        }
        // Not louder: whoever looks on says it, and stderr may be a terminal that takes nothing.
        tracing::info!(round = pull.round.0, why, "lost");
        self.watch.lost(&pull, &why);
        let fate = self.losses.lost(slot, pull, &why);
        self.journal.append(&Lost {
            lost: pull.round,
            why,
        })?;
        match fate {
            Fate::Again => self.again.push_back(pull),
            Fate::GivenUp => {}
            Fate::NoHope => return Err(self.no_hope()),
        }
        self.fill()
    }

    /// Pulls that take their launcher with them on a machine that works count as failed.
    fn failed_for_good(&mut self, given_up: Vec<GivenUp>) -> Result<(), RunError> {
        for GivenUp {
            slot,
            pull,
            times,
            why,
        } in given_up
        {
            let failing = Failing {
                reason: format!("lost {times} times: {why}"),
                guard: None,
                stderr: String::new(),
            };
            let outcome = Outcome::failed(pull.pull(), failing, None, Measured::default());
            self.brought(slot, pull, outcome)?;
        }
        Ok(())
    }

    /// Where nothing runs and nothing can be started before the pulls that were given up have an outcome, they get one.
    fn settle_losses(&mut self) -> Result<(), RunError> {
        let is_over = self.losses.has_given_up()
            && self.is_idle()
            && self.again.is_empty()
            && !self.losses.is_pausing()
            && self.stopping.is_none();
        if !is_over {
            return Ok(());
        }
        match self.losses.settle() {
            Some(given_up) => self.failed_for_good(given_up),
            None => Err(self.no_hope()),
        }
    }

    fn no_hope(&self) -> RunError {
        RunError::Lost {
            rounds: self.losses.rounds(),
            why: self.losses.why(),
        }
    }

    /// Learns, in order, from the outcomes that are on disk; each makes room for one launch.
    fn learn_up_to(&mut self, line: u64) -> Result<(), RunError> {
        while self
            .unlearned
            .front()
            .is_some_and(|(written, _)| *written <= line)
        {
            let Some((_, learned)) = self.unlearned.pop_front() else {
                break;
            };
            tracing::debug!(round = learned.outcome.outcome, seen = ?learned.observation.seen(), "learn");
            let found = self.state.learned(&learned);
            let now = now(&self.state, &self.slots, &self.clock, self.budget);
            self.watch.learned(&learned, &now);
            if let Some(found) = found {
                self.calibrated(found)?;
            }
            self.fill()?;
        }
        Ok(())
    }

    fn calibrated(&mut self, mut found: crate::journal::Calibrated) -> Result<(), RunError> {
        found.at = (self.journal.syncing() == Syncing::Outcomes).then(|| self.clock.seconds());
        self.journal.append(&found)?;
        // They were made from a grid, so they are one.
        let _ = self.state.calibrated(&found.limits);
        let now = now(&self.state, &self.slots, &self.clock, self.budget);
        self.watch.calibrated(&found, &now);
        Ok(())
    }

    /// Launches as long as there is room and budget.
    fn fill(&mut self) -> Result<(), RunError> {
        while self.stopping.is_none() && !self.losses.is_pausing() {
            let running = self.slots.iter().flatten().count();
            if running + self.unlearned.len() >= self.slots.len() {
                return Ok(());
            }
            let Some(slot) = self.slots.iter().position(Option::is_none) else {
                return Ok(());
            };
            if let Some(pull) = self.again.pop_front() {
                self.start(slot, pull);
                continue;
            }
            if self.spent().is_some() {
                return Ok(());
            }
            match self.state.choose() {
                Next::Pull(pull) => self.launch(slot, pull)?,
                Next::Wait => return Ok(()),
                Next::Hopeless => self.stop(EndReason::FirstFailures),
            }
        }
        Ok(())
    }

    fn launch(&mut self, slot: usize, mut pull: PullRecord) -> Result<(), RunError> {
        if self.journal.syncing() == Syncing::Outcomes {
            pull.seed = Some(self.state.target_seed(pull.round));
        }
        self.journal.append(&pull)?;
        self.state.launched(&pull);
        self.start(slot, pull);
        Ok(())
    }

    fn start(&mut self, slot: usize, pull: PullRecord) {
        self.slots[slot] = Some(Running {
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
        self.target.start(Start {
            slot,
            round: pull.round,
            pull: pull.pull(),
            seed: pull.seed.unwrap_or_default(),
        });
        let now = now(&self.state, &self.slots, &self.clock, self.budget);
        self.watch.launched(slot, &pull, &now);
    }

    fn stop(&mut self, reason: EndReason) {
        if self.stopping.is_none() {
            tracing::info!(?reason, "stopping");
            self.stopping = Some(reason);
            let now = now(&self.state, &self.slots, &self.clock, self.budget);
            self.watch.stopping(reason, &now);
            self.stop_all();
        }
    }

    fn stop_all(&mut self) {
        for slot in 0..self.slots.len() {
            if self.slots[slot].is_some() {
                self.target.stop(slot);
            }
        }
    }

    fn spent(&self) -> Option<EndReason> {
        let tally = self.state.tally();
        self.budget
            .ended(tally.launched, self.clock.seconds(), tally.consumption)
    }

    /// Why the session is over, if it is: nothing runs, nothing waits, and nothing more is started.
    fn finished(&self) -> Option<EndReason> {
        if !self.is_idle() {
            return None;
        }
        self.stopping.or_else(|| {
            if self.again.is_empty() && !self.losses.has_given_up() {
                self.spent()
            } else {
                None
            }
        })
    }

    fn is_idle(&self) -> bool {
        self.slots.iter().all(Option::is_none) && self.unlearned.is_empty()
    }

    fn finish(mut self, reason: EndReason) -> Result<Finished, RunError> {
        let at = (self.journal.syncing() == Syncing::Outcomes).then(|| self.clock.seconds());
        self.journal.append(&End { end: reason, at })?;
        self.journal.sync()?;
        Ok(self.leave(reason))
    }

    fn leave(self, reason: EndReason) -> Finished {
        Finished {
            reason,
            seconds: self.clock.seconds(),
            is_hasty: self.signals_seen > 1,
            state: self.state,
        }
    }
}

/// Waits until a pause is over; for ever without one.
async fn paused(until: Option<Instant>) {
    match until {
        Some(until) => tokio::time::sleep_until(until.into()).await,
        None => std::future::pending().await,
    }
}

fn now<'a>(
    state: &'a State,
    slots: &'a [Option<Running>],
    clock: &Clock,
    budget: Budget,
) -> Now<'a> {
    Now {
        state,
        slots,
        seconds: clock.seconds(),
        budget,
    }
}
