//! One run: its state, its journal, and its lost pulls.
//!
//! A pull goes through four steps. [`next`](Run::next) says what to start. [`launch`](Run::launch) journals it.
//! [`settle`](Run::settle) journals its outcome. [`durable`](Run::durable) learns from outcomes that are on disk. The
//! [`Driver`](super::Driver) takes these steps for `captime run` and everything else that captime runs itself.
//! `captime ask` takes them for programs that run the pulls themselves.

use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::time::{Duration, Instant};

use super::event::{Now, Running, Watch};
use super::losses::{Fate, Losses, PAUSES};
use super::{Budget, Clock, Earlier, Next, OpenedRun, Plan, RunError, Schedule, State, open};
use crate::journal::{
    Appender, Calibrated, Durable, End, EndReason, Learned, Lost, OutcomeRecord, PullRecord,
    RunLock, Session, Syncing, timestamp,
};
use crate::round::{Observation, Round, Seen};
use crate::scenario::Scenario;
use crate::target::{Ending, Failing, Outcome, PreparedTarget};

/// A pull that took more nodes down than this counts as lost.
const MOST_NODES: u32 = 10;

/// A run that is open for more pulls.
pub struct Run<W = ()> {
    state: State,
    journal: Option<Appender>,
    /// Keeps other processes away while the run is open.
    lock: Option<RunLock>,
    /// Whether times are worth recording.
    is_timed: bool,
    pub(super) clock: Clock,
    budget: Budget,
    before: Before,
    /// Pulls to run again, before anything new is chosen.
    again: VecDeque<PullRecord>,
    /// How many pulls run.
    running: usize,
    /// Outcomes that are written but not learned from yet, each with its line.
    unlearned: VecDeque<(u64, Box<Learned>)>,
    losses: Losses,
    /// How often rounds were lost with their node, in this session.
    node_losses: BTreeMap<u64, u32>,
    /// Whether the schedule waits for an outcome.
    is_waiting: bool,
    /// Why no new pull is chosen, if the schedule has ended.
    over: Option<EndReason>,
    /// Why running pulls are being stopped, if they are.
    stopping: Option<EndReason>,
    /// Whether this session is in the journal.
    has_begun: bool,
    /// Is notified of everything that happens.
    pub watch: W,
}

/// What a recorded run needs.
pub struct RunSetup<'a> {
    /// The scenario. An existing run in the folder must have the same one.
    pub scenario: &'a Scenario,
    /// The plan for the run.
    pub plan: Plan,
    /// When lines are synced to disk.
    pub syncing: Syncing,
    /// Which limits can be enforced, for the journal's header.
    pub enforcement: serde_json::Value,
    /// What a new run takes over from an earlier one.
    pub earlier: Option<Earlier>,
}

impl<'a> RunSetup<'a> {
    /// The run of a scenario whose target was prepared.
    pub fn of(scenario: &'a Scenario, target: &PreparedTarget) -> Self {
        Self {
            scenario,
            plan: Plan::of(scenario, target.instances()),
            syncing: if target.is_virtual() {
                Syncing::AtEnd
            } else {
                Syncing::Outcomes
            },
            enforcement: target.enforcement(),
            earlier: None,
        }
    }

    /// A new run starts with this.
    #[must_use]
    pub fn taking_over(mut self, earlier: Option<Earlier>) -> Self {
        self.earlier = earlier;
        if let Some(earlier) = &mut self.earlier {
            earlier.on_instances(&self.plan.instance_names);
        }
        self
    }
}

/// What earlier sessions of a run left.
#[derive(Debug, Default)]
pub struct Before {
    sessions: u64,
    /// Whether the run has just been made.
    pub is_new: bool,
    /// Whether an incomplete last line was cut from its journal.
    pub is_cut: bool,
    /// How limits were enforced when the run was started.
    pub enforcement: serde_json::Value,
    /// How the last session ended, if the journal says so.
    pub end: Option<EndReason>,
}

impl<W: Watch> Run<W> {
    /// A run without a journal.
    pub fn unrecorded(state: State, watch: W) -> Self {
        Self {
            state,
            journal: None,
            lock: None,
            is_timed: false,
            clock: Clock::paused(0.0),
            budget: Budget::default(),
            before: Before::default(),
            again: VecDeque::new(),
            running: 0,
            unlearned: VecDeque::new(),
            losses: Losses::default(),
            node_losses: BTreeMap::new(),
            is_waiting: false,
            over: None,
            stopping: None,
            has_begun: false,
            watch,
        }
    }

    /// Creates the run of a scenario in `folder`, or resumes it. Budget and retries come from the scenario.
    pub fn open(folder: &Path, setup: &RunSetup<'_>, mut watch: W) -> Result<Self, RunError> {
        let scenario = setup.scenario;
        let opened = open(folder, setup, |step| watch.replayed(step))?;
        let run = Self::recorded(opened, watch).with_retries(scenario.retries, PAUSES);
        Ok(run.with_budget(scenario.budget))
    }

    /// Continues an opened journal.
    pub(super) fn recorded(opened: OpenedRun, watch: W) -> Self {
        let OpenedRun {
            state,
            progress,
            journal,
            lock,
            enforcement,
            is_new,
            is_cut,
        } = opened;
        let mut run = Self {
            journal: Some(journal),
            lock: Some(lock),
            clock: Clock::paused(progress.seconds),
            before: Before {
                sessions: progress.sessions,
                is_new,
                is_cut,
                enforcement,
                end: progress.ended,
            },
            again: progress.in_flight,
            losses: Losses::after(progress.lost),
            ..Self::unrecorded(state, watch)
        };
        let waiting = progress.waiting.into_iter();
        run.unlearned = waiting.map(|learned| (0, learned)).collect();
        run
    }

    /// Ends when this budget is used up.
    #[must_use]
    pub fn with_budget(mut self, budget: Budget) -> Self {
        self.budget = budget;
        self.over = self.ended_before();
        self
    }

    /// Runs a lost pull again up to this many times. Nothing is started for a while after the first, second and any
    /// later loss in a row.
    #[must_use]
    pub fn with_retries(mut self, retries: u32, pauses: [Duration; 3]) -> Self {
        self.losses.retry(retries, pauses);
        self
    }

    /// Pulls these instead of what the policy would choose.
    #[must_use]
    pub fn following(mut self, sequence: impl Schedule + 'static) -> Self {
        self.state.follow(sequence);
        self
    }

    /// Why there is nothing left to do for a run that had ended when it was opened.
    fn ended_before(&self) -> Option<EndReason> {
        if self.before.is_new {
            return None;
        }
        let waiting = self.unlearned.iter();
        let consumption: f64 = waiting
            .filter_map(|(_, learned)| learned.outcome.consumption)
            .sum();
        let tally = self.state.tally();
        let consumption = tally.consumption + consumption;
        let spent = self
            .budget
            .ended(tally.own_launched(), self.clock.seconds(), consumption);
        match spent {
            Some(EndReason::Wall) => spent,
            Some(_) => spent.filter(|_| self.again.is_empty()),
            None => {
                let last = self.before.end;
                last.filter(|end| *end == EndReason::FirstFailures)
            }
        }
    }

    /// What it knows.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// When it ends.
    pub fn budget(&self) -> Budget {
        self.budget
    }

    /// Seconds over all sessions.
    pub fn seconds(&self) -> f64 {
        self.clock.seconds()
    }

    /// What earlier sessions left.
    pub fn before(&self) -> &Before {
        &self.before
    }

    /// Rounds that have an outcome in the journal, learned from or not.
    pub fn outcomes(&self) -> u64 {
        self.state.tally().learned + self.unlearned.len() as u64
    }

    /// Pulls that were launched earlier and have no outcome yet.
    pub fn open_pulls(&self) -> impl Iterator<Item = &PullRecord> {
        self.again.iter()
    }

    /// Treats the pulls that were launched earlier as still running, instead of running them again.
    pub fn take_open(&mut self) -> VecDeque<PullRecord> {
        self.running += self.again.len();
        std::mem::take(&mut self.again)
    }

    /// Why there was nothing left to do when it was opened, or why its schedule ended.
    pub fn over(&self) -> Option<EndReason> {
        self.over
    }

    /// Rounds that have an outcome or will have one without a further launch.
    pub(super) fn rounds(&self) -> u64 {
        self.state.tally().learned + (self.running + self.unlearned.len()) as u64
    }

    /// Outcomes that are written but not learned from yet.
    pub(super) fn unlearned(&self) -> usize {
        self.unlearned.len()
    }

    /// When pulls may start again, if one was lost.
    pub(super) fn pause(&self) -> Option<Instant> {
        self.losses.not_before
    }

    /// Starts pulls again if the pause is over.
    pub(super) fn end_pause(&mut self) {
        if !self.losses.is_pausing() {
            self.losses.not_before = None;
        }
    }

    /// Whether the journal syncs each outcome, and times are worth recording.
    pub(super) fn is_synced(&self) -> bool {
        let journal = self.journal.as_ref();
        journal.is_some_and(|journal| journal.syncing() == Syncing::Outcomes)
    }

    /// Records that a session begins, with `slots` pulls at a time.
    pub fn begin(&mut self, slots: usize, enforcement: serde_json::Value) -> Result<(), RunError> {
        self.has_begun = true;
        let Some(journal) = &mut self.journal else {
            return Ok(());
        };
        let is_virtual = journal.syncing() == Syncing::AtEnd;
        let session = Session {
            session: self.before.sessions + 1,
            started: (!is_virtual).then(timestamp),
            slots,
            budget: serde_json::to_value(self.budget).unwrap_or_default(),
            enforcement,
        };
        journal.append(&session)?;
        self.state.began(&session);
        if !is_virtual {
            journal.sync()?;
        }
        if let Some(found) = self.state.due_calibration() {
            self.calibrated(found, &[])?;
        }
        Ok(())
    }

    /// Records times, and syncs on a separate thread that reports to `tell`.
    pub(super) fn sync_elsewhere(
        &mut self,
        tell: impl Fn(Durable) + Send + 'static,
    ) -> Result<(), RunError> {
        if self.is_synced()
            && let Some(journal) = &mut self.journal
        {
            self.is_timed = true;
            journal.sync_elsewhere(tell)?;
        }
        Ok(())
    }

    /// What to do with a free slot. Nothing changes until you `launch` it.
    #[expect(
        clippy::should_implement_trait,
        reason = "a run never ends for good: it may be asked again after any outcome"
    )]
    pub fn next(&mut self) -> Next {
        if self.stopping.is_some() || self.losses.is_pausing() {
            return Next::Wait;
        }
        if let Some(pull) = self.again.front() {
            return Next::Pull(*pull);
        }
        if let Some(reason) = self.over.or_else(|| self.spent()) {
            return Next::Over(reason);
        }
        let next = self.state.choose();
        self.is_waiting = next == Next::Wait;
        match next {
            Next::Over(reason) => self.over = Some(reason),
            // Programs get a seed. Virtual targets draw from the run's seed.
            Next::Pull(mut pull) if self.is_timed => {
                pull.seed = pull
                    .seed
                    .or_else(|| Some(self.state.target_seed(pull.round)));
                return Next::Pull(pull);
            }
            Next::Pull(_) | Next::Wait => {}
        }
        next
    }

    /// Records a pull that is about to start. One that was launched before keeps its round, seed and instance.
    pub fn launch(&mut self, pull: &PullRecord) -> Result<(), RunError> {
        self.running += 1;
        if self.again.front() == Some(pull) {
            self.again.pop_front();
            return Ok(());
        }
        if let Some(arm) = self.state.opening(pull.arm) {
            if let Some(journal) = &mut self.journal {
                journal.append(&arm)?;
            }
            self.state.open(&arm);
        }
        if let Some(journal) = &mut self.journal {
            journal.append(pull)?;
        }
        self.state.launched(pull);
        Ok(())
    }

    /// A launched pull ended, in this slot if there are several. If nothing has to reach the disk first, returns the
    /// line up to which `durable` can learn at once.
    pub fn settle(
        &mut self,
        slot: Option<u32>,
        pull: PullRecord,
        ending: Ending,
    ) -> Result<Option<u64>, RunError> {
        self.running = self.running.saturating_sub(1);
        let tally = self.state.tally();
        let has_run = tally.learned > tally.failed;
        match ending.settled(has_run) {
            Ending::Brought(outcome) | Ending::NotStarted(outcome) => {
                let given_up = self.losses.brought();
                self.brought(slot, pull, *outcome)?;
                for lost in given_up {
                    self.brought(lost.slot, lost.pull, lost.outcome())?;
                }
                self.request_sync()
            }
            Ending::Stopped => {
                self.again.push_back(pull);
                Ok(None)
            }
            Ending::Lost { why } => self.lost(slot, pull, why),
            Ending::NodeLost { node, why } => self.node_lost(slot, pull, &node, why),
        }
    }

    /// Records an outcome.
    fn brought(
        &mut self,
        slot: Option<u32>,
        pull: PullRecord,
        outcome: Outcome,
    ) -> Result<(), RunError> {
        let observation = outcome.observation;
        // The slot is not on the pull's line, because a pull that runs again may use another slot.
        let outcome = OutcomeRecord {
            slot: slot.filter(|_| self.is_timed),
            at: self.is_timed.then(|| self.clock.seconds()),
            ..outcome_record(pull.round, outcome)
        };
        let line = match &mut self.journal {
            Some(journal) => journal.append(&outcome)?,
            None => 0,
        };
        let learned = Learned {
            pull,
            observation,
            outcome,
        };
        self.unlearned.push_back((line, Box::new(learned)));
        Ok(())
    }

    fn request_sync(&mut self) -> Result<Option<u64>, RunError> {
        match &mut self.journal {
            Some(journal) => Ok(journal.request_sync()?),
            None => Ok(Some(0)),
        }
    }

    /// A pull whose runner went away has no outcome. It runs again, but not forever.
    fn lost(
        &mut self,
        slot: Option<u32>,
        pull: PullRecord,
        why: String,
    ) -> Result<Option<u64>, RunError> {
        if self.stopping.is_some() {
            self.again.push_back(pull);
            return Ok(None);
        }
        // Only `info`: the watch reports it, and stderr may be a terminal that blocks.
        tracing::info!(round = pull.round.0, why, "lost");
        self.watch.lost(&pull, &why);
        let fate = self.losses.lost(slot, pull, &why);
        if let Some(journal) = &mut self.journal {
            journal.append(&Lost {
                lost: pull.round,
                why,
                node: None,
            })?;
        }
        match fate {
            Fate::Again => self.again.push_back(pull),
            Fate::GivenUp => {}
            Fate::NoHope => return Err(self.losses.no_hope()),
        }
        Ok(None)
    }

    /// A pull whose node went away runs again at once, on another node. But a pull that keeps taking its nodes down
    /// finally counts as lost.
    fn node_lost(
        &mut self,
        slot: Option<u32>,
        pull: PullRecord,
        node: &str,
        why: String,
    ) -> Result<Option<u64>, RunError> {
        if self.stopping.is_some() {
            self.again.push_back(pull);
            return Ok(None);
        }
        let times = self.node_losses.entry(pull.round.0).or_default();
        *times += 1;
        if *times > MOST_NODES {
            return self.lost(slot, pull, why);
        }
        tracing::info!(round = pull.round.0, node, why, "lost with its node");
        self.state.node_lost(node);
        self.watch.lost(&pull, &why);
        if let Some(journal) = &mut self.journal {
            journal.append(&Lost {
                lost: pull.round,
                why,
                node: Some(node.to_owned()),
            })?;
        }
        self.again.push_back(pull);
        Ok(None)
    }

    /// If nothing runs, and nothing can start before the given-up pulls have an outcome, gives them one.
    pub(super) fn settle_losses(&mut self) -> Result<Option<u64>, RunError> {
        let is_due = self.losses.has_given_up()
            && self.stopping.is_none()
            && self.is_idle()
            && (self.is_waiting || !self.has_more())
            && !self.losses.is_pausing();
        if !is_due {
            return Ok(None);
        }
        for lost in self.losses.settle()? {
            self.brought(lost.slot, lost.pull, lost.outcome())?;
        }
        self.request_sync()
    }

    /// The journal is on disk up to this line. Learns from the first outcome that waited for it, and returns false if
    /// none did.
    pub fn durable(&mut self, line: u64, slots: &[Option<Running>]) -> Result<bool, RunError> {
        let is_due = |(written, _): &(u64, _)| *written <= line;
        if !self.unlearned.front().is_some_and(is_due) {
            return Ok(false);
        }
        let Some((_, learned)) = self.unlearned.pop_front() else {
            return Ok(false);
        };
        self.is_waiting = false;
        tracing::debug!(round = learned.outcome.outcome, seen = ?learned.observation.seen(), "learn");
        let found = self.state.learned(&learned);
        let now = now(&self.state, slots, &self.clock, self.budget);
        self.watch.learned(&learned, &now);
        if let Some(found) = found {
            self.calibrated(found, slots)?;
        }
        Ok(true)
    }

    fn calibrated(
        &mut self,
        mut found: Calibrated,
        slots: &[Option<Running>],
    ) -> Result<(), RunError> {
        found.at = self.is_timed.then(|| self.clock.seconds());
        // A run that had already ended is only read.
        if self.has_begun
            && let Some(journal) = &mut self.journal
        {
            journal.append(&found)?;
        }
        // They were made from a grid, so this cannot fail.
        let _ = self.state.calibrated(&found.limits);
        let now = now(&self.state, slots, &self.clock, self.budget);
        self.watch.calibrated(&found, &now);
        Ok(())
    }

    /// An error of the syncing thread.
    pub(super) fn cannot_sync(&self, error: std::io::Error) -> RunError {
        match &self.journal {
            Some(journal) => journal.failed(error).into(),
            None => error.into(),
        }
    }

    /// Notifies the watch of the current state.
    pub(super) fn watched(
        &mut self,
        slots: &[Option<Running>],
        tell: impl FnOnce(&mut W, &Now<'_>),
    ) {
        let now = now(&self.state, slots, &self.clock, self.budget);
        tell(&mut self.watch, &now);
    }

    /// Starts nothing more, and learns nothing from the pulls that are stopped.
    pub(super) fn stop(&mut self, reason: EndReason) {
        self.stopping.get_or_insert(reason);
    }

    /// Which part of the budget is used up.
    fn spent(&self) -> Option<EndReason> {
        let tally = self.state.tally();
        let wall = self.budget.wall.map_or(0.0, |_| self.clock.seconds());
        self.budget
            .ended(tally.own_launched(), wall, tally.consumption)
    }

    /// Whether anything may still be started.
    pub(super) fn has_more(&self) -> bool {
        self.has_begun
            && (!self.again.is_empty() || (self.over.is_none() && self.spent().is_none()))
    }

    /// Whether nothing runs and every outcome has been learned from.
    pub(super) fn is_idle(&self) -> bool {
        self.running == 0 && self.unlearned.is_empty()
    }

    /// Why this session is over, if it is.
    pub(super) fn finished(&self) -> Option<EndReason> {
        if !self.is_idle() {
            return None;
        }
        if self.has_more() || self.losses.has_given_up() {
            return self.stopping;
        }
        // A stop after the last outcome makes no difference.
        self.over.or_else(|| self.spent()).or(self.stopping)
    }

    /// Forgets everything but its watch. As long as the lock is kept, the run is not opened elsewhere.
    pub fn close(self) -> (Option<RunLock>, W) {
        (self.lock, self.watch)
    }

    /// Records that the session ended. Everything is on disk when this returns.
    pub fn finish(&mut self, reason: Option<EndReason>) -> Result<(), RunError> {
        let at = self.is_timed.then(|| self.clock.seconds());
        if self.has_begun
            && let Some(journal) = &mut self.journal
        {
            if let Some(end) = reason {
                journal.append(&End { end, at })?;
            }
            journal.sync()?;
        }
        Ok(())
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

impl<W> std::fmt::Debug for Run<W> {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.debug_struct("Run")
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}

/// An outcome as the journal records it, without slot and time.
fn outcome_record(round: Round, outcome: Outcome) -> OutcomeRecord<'static> {
    let Outcome {
        observation,
        failure,
        consumption,
        score,
        is_clamped,
        read: _,
        measured,
        node,
    } = outcome;
    let (reward, censored, is_failed) = match Observation::seen(&observation) {
        Seen::Rewarded { reward, .. } => (Some(reward), None, false),
        Seen::Censored { at } => (None, Some(at.get()), false),
        Seen::Failed => (None, None, true),
    };
    let consumption = match observation.seen() {
        Seen::Rewarded { consumption, .. } => Some(consumption),
        _ => consumption,
    };
    let failing = failure.filter(|_| is_failed);
    let (reason, guard, stderr) = match failing {
        Some(Failing {
            reason,
            guard,
            stderr,
        }) => (
            Some(reason),
            guard,
            Some(stderr).filter(|text| !text.is_empty()),
        ),
        None => (is_failed.then(|| "failed".to_owned()), None, None),
    };
    OutcomeRecord {
        outcome: round.0,
        reward,
        censored,
        failed: reason.map(Into::into),
        consumption,
        guard,
        score,
        clamped: is_clamped,
        wall: measured.wall,
        cpu: measured.cpu,
        memory: measured.memory,
        exit: measured.exit,
        signal: measured.signal,
        inexact: measured.inexact,
        stderr: stderr.map(Into::into),
        node: node.map(|node| node.to_string().into()),
        ..OutcomeRecord::default()
    }
}
