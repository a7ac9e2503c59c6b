//! Compares policies on targets that take real time.
//!
//! Every policy has its own run, with a journal like any other, so that a study resumes however it ended. The policies
//! take turns, one pull each, so that other work on the machine affects all of them alike. In the same round of the
//! same repetition, all of them get the same seed.

use std::cell::Cell;
use std::path::PathBuf;

use super::curve::checkpoints;
use super::play::{Course, PlayedRepetition, seed_of};
use super::result::{Posed, Repetitions, Standing};
use super::source::OWN_GRID;
use crate::journal::{EndReason, Learned, Step, Syncing};
use crate::orchestrator::{
    Budget, Driver, Nothing, Now, Plan, Run, RunError, RunSetup, Signals, State, Wall, Watch,
};
use crate::policy::{PolicyKind, Problem};
use crate::round::{LimitGrid, Price};
use crate::scenario::{LimitSource, Scenario};
use crate::target::SlotPool;

/// What is played, and where its journals are.
pub struct RealStudy {
    /// The scenario. Its policies and budget are not used.
    pub scenario: Scenario,
    /// The instances the target draws from, by name.
    pub instances: Vec<String>,
    /// The policies that play.
    pub policies: Vec<PolicyKind>,
    /// Rounds of a repetition. By default, the paper's T = 2 n m.
    pub rounds: Option<u64>,
    /// How often each policy plays.
    pub repetitions: u64,
    /// Seconds that all rounds together may take, over all sessions, including calibration.
    pub wall: Option<f64>,
    /// The seed of all randomness.
    pub seed: u64,
    /// Where the runs are kept.
    pub folder: PathBuf,
    /// Which limits can be enforced, for the journals.
    pub enforcement: serde_json::Value,
}

/// Why a study of real runs cannot start or continue.
#[derive(Debug, thiserror::Error)]
pub enum RealError {
    /// A journal cannot be read, written or resumed.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The scenario is wrong.
    #[error("the first pulls of {policy} all failed")]
    Hopeless {
        /// The policy that played.
        policy: String,
    },
}

/// Is called with the number of finished rounds and their total.
pub type News<'a> = dyn Fn(u64, u64) + 'a;

impl RealStudy {
    /// The names of the policies.
    pub fn labels(&self) -> impl Iterator<Item = String> {
        self.policies.iter().map(super::result::label)
    }

    /// Plays what is left. Returns the standings of what was played and why the study ended: `Rounds` if it is
    /// complete. Call it inside a tokio runtime.
    pub async fn play(
        &self,
        pool: &mut SlotPool,
        news: &News<'_>,
    ) -> Result<(Vec<Standing>, EndReason), RealError> {
        let mut session = StudySession {
            pool,
            signals: Signals::listen().map_err(RunError::from)?,
            wall: Wall {
                seconds: self.wall,
                spent: 0.0,
            },
        };
        let limits = match self.limits(&mut session, news).await? {
            Ok(limits) => limits,
            Err(reason) => return Ok((vec![], reason)),
        };
        let rounds = self
            .rounds
            .unwrap_or(2 * self.scenario.space.first_arms() as u64 * limits.len() as u64);
        let checkpoints = checkpoints(rounds);
        let problem = self.scenario.problem(limits.clone());
        let each = rounds * self.policies.len() as u64;
        let mut whole: Vec<Vec<PlayedRepetition>> = vec![];
        for repetition in 0..self.repetitions {
            let count = Count {
                done: Cell::new(repetition * each),
                all: self.repetitions * each,
                news,
            };
            let sides = self.policies.iter().map(|policy| {
                let side = Side {
                    label: super::result::label(policy),
                    course: Course::new(&checkpoints),
                    price: Some(&problem.price),
                    count: &count,
                };
                let seed = seed_of(self.seed, repetition);
                let scenario = self.scenario_of(policy, seed, Some(&limits));
                let folder = format!("{}-{}", file_name(&side.label), repetition + 1);
                self.open(&scenario, &folder, Some(rounds), side)
            });
            let sides = sides.collect::<Result<Vec<_>, _>>()?;
            let (sides, reason) = session.drive(sides).await?;
            let is_whole = reason == EndReason::Rounds;
            if is_whole || whole.is_empty() {
                let played = sides.into_iter().map(|side| side.watch.course.played());
                whole.push(played.collect());
            }
            if !is_whole {
                return Ok((self.standings(&whole, &checkpoints, &problem), reason));
            }
        }
        let standings = self.standings(&whole, &checkpoints, &problem);
        Ok((standings, EndReason::Rounds))
    }

    /// The limits: those of the scenario, or found by calibration, once for all policies. Or why they were not found.
    async fn limits(
        &self,
        session: &mut StudySession<'_>,
        news: &News<'_>,
    ) -> Result<Result<LimitGrid, EndReason>, RealError> {
        let policy = &self.scenario.policies[0];
        let scenario = self.scenario_of(policy, self.seed, None);
        let plan = Plan::of(&scenario, &self.instances);
        if let Some(grid) = plan.limits.grid() {
            return Ok(Ok(grid));
        }
        let count = Count {
            done: Cell::new(0),
            all: State::new(plan)
                .calibration()
                .map_or(0, |(_, all)| all as u64),
            news,
        };
        let side = Side {
            label: "calibration".into(),
            course: Course::new(&[]),
            price: None,
            count: &count,
        };
        let run = self.open(&scenario, "calibration", None, side)?;
        let (runs, reason) = session.drive(vec![run.following(Nothing)]).await?;
        let is_found = reason == EndReason::Rounds;
        let limits = runs.first().map(|run| run.state().limits());
        Ok(limits.filter(|_| is_found).ok_or(reason))
    }

    fn open<'a>(
        &self,
        scenario: &Scenario,
        folder: &str,
        rounds: Option<u64>,
        side: Side<'a>,
    ) -> Result<Run<Side<'a>>, RealError> {
        let setup = RunSetup {
            earlier: None,
            scenario,
            plan: Plan::of(scenario, &self.instances),
            syncing: Syncing::Outcomes,
            enforcement: self.enforcement.clone(),
        };
        let run = Run::open(&self.folder.join(folder), &setup, side)?;
        Ok(run.with_budget(Budget {
            rounds,
            ..Budget::default()
        }))
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

    /// The standings up to the last checkpoint that every policy of every repetition has passed. Empty before the
    /// first.
    fn standings(
        &self,
        whole: &[Vec<PlayedRepetition>],
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
            let mut tally = Repetitions::over(checkpoints[..passed].to_vec());
            for repetition in whole {
                tally.add(&repetition[place]);
            }
            tally.standing(&posed, policy)
        };
        self.policies.iter().enumerate().map(of_policy).collect()
    }
}

/// A name that is safe as a folder name.
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

/// Watches one policy's run.
struct Side<'a> {
    label: String,
    course: Course<'a>,
    price: Option<&'a Price>,
    count: &'a Count<'a>,
}

/// How far a study is.
struct Count<'a> {
    done: Cell<u64>,
    all: u64,
    news: &'a News<'a>,
}

impl Side<'_> {
    fn add(&mut self, learned: &Learned) {
        self.count.done.update(|done| done + 1);
        if let Some(price) = self.price {
            self.course.add(&learned.observation, price);
        }
    }
}

impl Watch for Side<'_> {
    fn replayed(&mut self, step: &Step) {
        if let Step::Learned(learned) = step {
            self.add(learned);
        }
    }

    fn learned(&mut self, learned: &Learned, _: &Now<'_>) {
        self.add(learned);
        (self.count.news)(self.count.done.get(), self.count.all);
    }
}

/// What all runs of a study share.
struct StudySession<'a> {
    pool: &'a mut SlotPool,
    signals: Signals,
    wall: Wall,
}

impl StudySession<'_> {
    /// Lets runs take turns until all of them are done.
    async fn drive<'a>(
        &mut self,
        runs: Vec<Run<Side<'a>>>,
    ) -> Result<(Vec<Run<Side<'a>>>, EndReason), RealError> {
        hopeful(&runs)?;
        let driver = Driver::begin(runs, self.pool, &mut self.signals, self.wall)?;
        let driven = driver.drive().await?;
        hopeful(&driven.runs)?;
        self.wall.spent += driven.runs.iter().map(Run::seconds).sum::<f64>();
        Ok((driven.runs, driven.reason))
    }
}

/// Refuses to continue if the first pulls of a run all failed.
fn hopeful(runs: &[Run<Side<'_>>]) -> Result<(), RealError> {
    let is_hopeless = |run: &&Run<Side<'_>>| run.over() == Some(EndReason::FirstFailures);
    match runs.iter().find(is_hopeless) {
        Some(run) => Err(RealError::Hopeless {
            policy: run.watch.label.clone(),
        }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
