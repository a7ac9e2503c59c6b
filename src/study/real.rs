//! Policies against each other on targets that take real time.
//!
//! Every policy has a run of its own, with a journal like any other run's, so that whatever ends a study, it goes on. The
//! policies take turns, one pull each, so that whatever else the machine does hits all of them alike; and in the same
//! round of the same repetition all of them get the same seed.

use std::path::PathBuf;

use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::Instant;

use super::curve::checkpoints;
use super::lost::{LostPulls, Settled};
use super::play::{Course, Played, seed_of};
use super::result::{Posed, Standing, Tally};
use super::source::OWN_GRID;
use crate::journal::{
    JournalError, Learned, OutcomeRecord, PullRecord, Session, Step, Syncing, timestamp,
};
use crate::orchestrator::{Clock, Next, Opened, Plan, RunError, Signals, open, outcome_record};
use crate::policy::{PolicyKind, Problem};
use crate::round::LimitGrid;
use crate::scenario::{Budget, LimitSource, Scenario};
use crate::target::{Ended, Ending, Outcome, Start, Target};

/// What is played, and where its journals are.
pub struct RealPlan {
    /// The scenario; its policies and budget do not matter.
    pub scenario: Scenario,
    /// The instances the target draws from, by name.
    pub instances: Vec<String>,
    /// Who.
    pub policies: Vec<PolicyKind>,
    /// Rounds of a repetition; the paper's T = 2 n m if none.
    pub rounds: Option<u64>,
    /// How often each policy plays.
    pub repetitions: u64,
    /// Seconds that all rounds together may take, over all sessions; those that find the limits count.
    pub wall: Option<f64>,
    /// Where all randomness comes from.
    pub seed: u64,
    /// Where the runs are kept.
    pub folder: PathBuf,
    /// What of the limits can be enforced, for the record.
    pub enforcement: serde_json::Value,
}

/// Why a study of real runs stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Halt {
    /// Everything was played.
    Done,
    /// The wall budget is over.
    Wall,
    /// Somebody wants it to stop.
    Interrupted,
}

/// Why a study of real runs cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum RealError {
    /// A journal cannot be read, written or gone on with.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The scenario is wrong.
    #[error("the first pulls of {policy} all failed")]
    Hopeless {
        /// Who played.
        policy: String,
    },
}

impl From<JournalError> for RealError {
    fn from(error: JournalError) -> Self {
        Self::Run(error.into())
    }
}

/// What pulls are run on, one at a time, and when to stop.
pub struct Ground<'a> {
    /// What runs them.
    pub target: Box<dyn Target + 'a>,
    /// Where it tells how they ended.
    pub ends: UnboundedReceiver<Ended>,
    /// Asked after every pull; gets (rounds played, rounds in all).
    pub news: Box<dyn FnMut(u64, u64) + 'a>,
}

impl RealPlan {
    /// What the policies are called.
    pub fn labels(&self) -> impl Iterator<Item = String> {
        self.policies.iter().map(super::result::label)
    }

    /// Plays what is left, and gives the standings of what was played. To be called inside a tokio runtime.
    pub async fn play(&self, ground: &mut Ground<'_>) -> Result<(Vec<Standing>, Halt), RealError> {
        let mut session = Turns {
            ground,
            signals: Signals::listen().map_err(RunError::from)?,
            spent: 0.0,
            wall: self.wall,
        };
        let (limits, halt) = self.limits(&mut session).await?;
        let Some(limits) = limits else {
            return Ok((vec![], halt));
        };
        let rounds = self
            .rounds
            .unwrap_or(2 * self.scenario.space.len() as u64 * limits.len() as u64);
        let checkpoints = checkpoints(rounds);
        let problem = self.scenario.problem(limits.clone());
        let mut whole: Vec<Vec<Played>> = vec![];
        for repetition in 0..self.repetitions {
            let mut sides = self
                .policies
                .iter()
                .map(|policy| self.side(policy, repetition, &limits, &problem, &checkpoints))
                .collect::<Result<Vec<_>, _>>()?;
            session.spent += sides.iter().map(|side| side.seconds).sum::<f64>();
            let all = self.repetitions * rounds * sides.len() as u64;
            let before = repetition * rounds * sides.len() as u64;
            let halt = session.take_turns(&mut sides, rounds, before, all).await?;
            if halt != Halt::Done {
                if whole.is_empty() {
                    whole.push(sides.into_iter().map(Side::played).collect());
                }
                return Ok((self.standings(&whole, &checkpoints, &problem), halt));
            }
            whole.push(sides.into_iter().map(Side::played).collect());
        }
        Ok((self.standings(&whole, &checkpoints, &problem), Halt::Done))
    }

    /// The limits: those of the scenario, or found by measuring first, once for all policies.
    async fn limits(
        &self,
        session: &mut Turns<'_, '_>,
    ) -> Result<(Option<LimitGrid>, Halt), RealError> {
        let scenario = self.scenario_of(&self.scenario.policies[0], self.seed, None);
        let plan = Plan::of(&scenario, &self.instances);
        if let crate::orchestrator::Limits::Grid(grid) = plan.limits {
            return Ok((Some(grid), Halt::Done));
        }
        let folder = self.folder.join("calibration");
        let opened = open(
            &folder,
            &scenario,
            plan,
            Syncing::Outcomes,
            &self.enforcement,
            |_| {},
        )?;
        let mut side = Side::new("calibration".into(), opened, &[], self.scenario.retries);
        side.begin(&self.enforcement)?;
        session.spent += side.seconds;
        while let Some((done, wanted)) = side.opened.state.calibration() {
            if let Some(found) = side.opened.state.due_calibration() {
                side.calibrated(&found)?;
                continue;
            }
            (session.ground.news)(done as u64, wanted as u64);
            if let Some(halt) = session.one_pull(&mut side).await? {
                return Ok((None, halt));
            }
        }
        Ok((Some(side.opened.state.limits()), Halt::Done))
    }

    /// The scenario of one run.
    fn scenario_of(&self, policy: &PolicyKind, seed: u64, limits: Option<&LimitGrid>) -> Scenario {
        let mut scenario = self.scenario.clone();
        scenario.policies = vec![policy.clone()];
        scenario.budget = Budget::default();
        scenario.seed = seed;
        if let Some(limits) = limits {
            scenario.limits.from = LimitSource::Grid(limits.clone());
        }
        scenario
    }

    fn side<'a>(
        &self,
        policy: &PolicyKind,
        repetition: u64,
        limits: &LimitGrid,
        problem: &Problem,
        checkpoints: &'a [u64],
    ) -> Result<Side<'a>, RealError> {
        let label = super::result::label(policy);
        let seed = seed_of(self.seed, repetition);
        let scenario = self.scenario_of(policy, seed, Some(limits));
        let plan = Plan::of(&scenario, &self.instances);
        let folder = self
            .folder
            .join(format!("{}-{}", file_name(&label), repetition + 1));
        let mut course = Course::new(checkpoints);
        let opened = open(
            &folder,
            &scenario,
            plan,
            Syncing::Outcomes,
            &self.enforcement,
            |step| {
                if let Step::Learned(learned) = step {
                    course.add(&learned.observation, &problem.price);
                }
            },
        )?;
        let mut side = Side::new(label, opened, checkpoints, self.scenario.retries);
        side.course = course;
        side.begin(&self.enforcement)?;
        Ok(side)
    }

    /// Up to the last checkpoint that every policy of every repetition has passed; nothing before the first.
    fn standings(
        &self,
        whole: &[Vec<Played>],
        checkpoints: &[u64],
        problem: &Problem,
    ) -> Vec<Standing> {
        let passed = whole.iter().flatten().map(|played| played.gain.len());
        let passed = passed.min().unwrap_or(0);
        if passed == 0 {
            return vec![];
        }
        let posed = Posed {
            name: &self.scenario.name,
            grid: OWN_GRID,
            problem,
            best: None,
        };
        let of_policy = |(place, policy): (usize, &PolicyKind)| {
            let mut tally = Tally::over(checkpoints[..passed].to_vec());
            for repetition in whole {
                tally.add(&repetition[place]);
            }
            tally.standing(&posed, policy)
        };
        self.policies.iter().enumerate().map(of_policy).collect()
    }
}

/// A name that is safe in any folder.
pub fn file_name(name: &str) -> String {
    let safe = |letter: char| {
        if letter.is_ascii_alphanumeric() || letter == '_' {
            letter
        } else {
            '-'
        }
    };
    name.chars().map(safe).collect()
}

/// One policy's run.
struct Side<'a> {
    label: String,
    opened: Opened,
    course: Course<'a>,
    /// What its rounds took so far.
    seconds: f64,
    lost: LostPulls,
}

impl<'a> Side<'a> {
    fn new(label: String, opened: Opened, checkpoints: &'a [u64], retries: u32) -> Self {
        Self {
            label,
            lost: LostPulls::new(retries, opened.progress.lost.clone()),
            seconds: opened.progress.seconds,
            opened,
            course: Course::new(checkpoints),
        }
    }

    /// Learns what the last session could not, and writes down that another begins.
    fn begin(&mut self, enforcement: &serde_json::Value) -> Result<(), RealError> {
        while let Some(learned) = self.opened.progress.waiting.pop_front() {
            self.learned(&learned)?;
        }
        self.opened.journal.append(&Session {
            session: self.opened.progress.sessions + 1,
            started: Some(timestamp()),
            slots: 1,
            budget: serde_json::Value::default(),
            enforcement: enforcement.clone(),
        })?;
        Ok(())
    }

    fn rounds(&self) -> u64 {
        self.opened.state.tally().learned
    }

    /// What to run next: what was in flight when the study was left, or what the policy wants.
    fn next(&mut self) -> Result<PullRecord, RealError> {
        if let Some(pull) = self.opened.progress.in_flight.pop_front() {
            return Ok(pull);
        }
        match self.opened.state.choose() {
            Next::Pull(mut pull) => {
                pull.seed = Some(self.opened.state.target_seed(pull.round));
                self.opened.journal.append(&pull)?;
                self.opened.state.launched(&pull);
                Ok(pull)
            }
            // Nothing is under way that could be waited for.
            Next::Wait | Next::Hopeless => Err(RealError::Hopeless {
                policy: self.label.clone(),
            }),
        }
    }

    async fn settle(
        &mut self,
        pull: &PullRecord,
        ending: Ending,
        signals: &mut Signals,
    ) -> Result<Settled, RunError> {
        let tally = self.opened.state.tally();
        let has_run = tally.learned > tally.failed;
        let journal = &mut self.opened.journal;
        self.lost
            .settle(journal, pull, ending, has_run, signals)
            .await
    }

    /// Writes down what a pull brought, then learns from it.
    fn brought(&mut self, pull: PullRecord, outcome: Outcome) -> Result<(), RealError> {
        let observation = outcome.observation;
        let outcome = OutcomeRecord {
            at: Some(self.seconds),
            ..outcome_record(pull.round, outcome)
        };
        self.opened.journal.append(&outcome)?;
        self.opened.journal.sync()?;
        self.learned(&Learned {
            pull,
            observation,
            outcome,
        })
    }

    fn learned(&mut self, learned: &Learned) -> Result<(), RealError> {
        if let Some(problem) = self.opened.state.problem() {
            self.course.add(&learned.observation, &problem.price);
        }
        if let Some(found) = self.opened.state.learned(learned) {
            self.calibrated(&found)?;
        }
        Ok(())
    }

    fn calibrated(&mut self, found: &crate::journal::Calibrated) -> Result<(), RealError> {
        self.opened.journal.append(found)?;
        // They were made from a grid, so they are one.
        let _ = self.opened.state.calibrated(&found.limits);
        self.opened.journal.sync()?;
        Ok(())
    }

    fn played(self) -> Played {
        self.course.played()
    }
}

/// Pulls one after the other, whoever's turn it is.
struct Turns<'a, 'g> {
    ground: &'a mut Ground<'g>,
    signals: Signals,
    /// Seconds that rounds of all sessions took.
    spent: f64,
    wall: Option<f64>,
}

impl Turns<'_, '_> {
    /// Whoever has played least is next, so that a study that was left goes on in turns.
    async fn take_turns(
        &mut self,
        sides: &mut [Side<'_>],
        rounds: u64,
        before: u64,
        all: u64,
    ) -> Result<Halt, RealError> {
        loop {
            let played: u64 = sides.iter().map(|side| side.rounds().min(rounds)).sum();
            (self.ground.news)(before + played, all);
            let next = sides.iter_mut().min_by_key(|side| side.rounds());
            let Some(side) = next.filter(|side| side.rounds() < rounds) else {
                return Ok(Halt::Done);
            };
            if let Some(halt) = self.one_pull(side).await? {
                return Ok(halt);
            }
        }
    }

    /// Runs one pull of a side and lets it learn; or why nothing more may run.
    async fn one_pull(&mut self, side: &mut Side<'_>) -> Result<Option<Halt>, RealError> {
        let left = self.wall.map(|wall| wall - self.spent);
        if left.is_some_and(|left| left <= 0.0) {
            return Ok(Some(Halt::Wall));
        }
        let (before, clock) = (side.seconds, Clock::from(side.seconds));
        let began = Instant::now();
        let pull = side.next()?;
        self.ground.target.start(Start {
            slot: 0,
            round: pull.round,
            pull: pull.pull(),
            seed: pull.seed.unwrap_or_default(),
        });
        let over = left.and_then(|left| {
            let left = std::time::Duration::try_from_secs_f64(left).ok()?;
            began.checked_add(left)
        });
        let never = Instant::now() + std::time::Duration::from_secs(1 << 30);
        let mut halt = None;
        let ending = loop {
            tokio::select! {
                Some(ended) = self.ground.ends.recv() => break ended.ending,
                () = self.signals.next(), if halt.is_none() => halt = Some(Halt::Interrupted),
                () = tokio::time::sleep_until(over.unwrap_or(never)), if halt.is_none() => halt = Some(Halt::Wall),
            }
            self.ground.target.stop(0);
        };
        side.seconds = clock.seconds();
        // What was lost while it was being stopped runs again when the study goes on.
        let is_lost = matches!(ending, Ending::Lost { .. } | Ending::NotStarted(_));
        if halt.is_none() || !is_lost {
            match side.settle(&pull, ending, &mut self.signals).await? {
                Settled::Brought(outcome) => side.brought(pull, *outcome)?,
                Settled::Again => side.opened.progress.in_flight.push_front(pull),
                Settled::Interrupted => halt = halt.or(Some(Halt::Interrupted)),
            }
        }
        // Choosing and writing down take time too, with short pulls most of it.
        side.seconds = clock.seconds();
        self.spent += side.seconds - before;
        Ok(halt)
    }
}

#[cfg(test)]
mod tests;
