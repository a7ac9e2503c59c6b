//! A run as its journal tells it, read as far as it has been written; may be asked again while it grows.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use super::ReportError;
use super::failures::{Failures, Reasons};
use super::played::{Kind, Played};
use crate::journal::{By, End, Header, Learned, PullRecord, Reader, Replay, Session, Step};
use crate::orchestrator::{Brief, Limits, Plan};
use crate::policy::zrcucb::{self, ZRcucb};
use crate::policy::{Known, Policy, PolicyKind, Problem, Recommendation, Survival};
use crate::round::{ArmId, Limit, LimitGrid, Observation, Price, Purpose, Round, Seen, randomness};
use crate::scenario::{Resource, Scenario};
use crate::space::Space;

/// The pair the policy would have named at some point.
#[derive(Debug, Clone, Copy)]
pub struct Incumbent {
    /// After so many outcomes.
    pub learned: u64,
    /// Seconds of the run.
    pub at: f64,
    /// The answer then.
    pub answer: Recommendation,
}

/// A session, and where the run stood when it began.
#[derive(Debug, Clone)]
pub struct SessionStart {
    /// As it was recorded.
    pub session: Session,
    /// Seconds the run had been going for.
    pub at: f64,
    /// Outcomes there were.
    pub learned: u64,
}

/// The policy brought to where the run is.
enum Mind {
    Plain(Box<dyn Policy>),
    /// Known by its type, because its grids are of interest.
    Zooming(Box<ZRcucb>),
}

/// What is there once the limits are known.
struct Stage {
    problem: Problem,
    mind: Mind,
    known: Known,
}

/// All that happened in a run so far.
pub struct History {
    replay: Replay,
    /// Where the run is, from the root.
    pub folder: PathBuf,
    /// The first line.
    pub header: Header,
    /// What the run is about.
    pub brief: Brief,
    /// The arms.
    pub space: Space,
    plan: Plan,
    scenario: OnceLock<Option<Box<Scenario>>>,
    stage: Option<Stage>,
    /// Seen while limits are being measured; told to the policy when it starts.
    backlog: Vec<(Round, Observation)>,
    /// Rounds with an outcome, in the order in which they were learned from.
    pub rounds: Vec<Played>,
    reasons: Reasons,
    /// What the answer was on the way.
    pub incumbents: Vec<Incumbent>,
    /// z-RCUCB: round, arm and limit of every point that joined a grid.
    pub refinements: Vec<(u64, ArmId, f64)>,
    /// Every time captime was started on it.
    pub sessions: Vec<SessionStart>,
    /// How the last session ended, if it said so.
    pub end: Option<End>,
    /// Pulls that were lost with their launcher.
    pub lost: u64,
    /// Limits that were measured, if they were.
    pub calibrated: Option<Vec<f64>>,
    /// Seconds the run has been going for, over all sessions.
    pub seconds: f64,
}

impl std::fmt::Debug for History {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.debug_struct("History")
            .field("name", &self.header.name)
            .field("rounds", &self.rounds.len())
            .finish_non_exhaustive()
    }
}

impl History {
    /// Opens the run in `folder`; nothing but its first line is read yet.
    pub fn open(folder: &Path) -> Result<Self, ReportError> {
        let reader = Reader::open(folder)?;
        let header = reader.header().clone();
        let foreign = || ReportError::Untold {
            path: reader.path().to_owned(),
        };
        let brief: Brief =
            serde_json::from_value(header.resolved.clone()).map_err(|_| foreign())?;
        let plan = brief.plan(header.seed).ok_or_else(foreign)?;
        let space = brief.space().ok_or_else(foreign)?;
        if space.len() != plan.arms || plan.arms == 0 {
            return Err(foreign());
        }
        let mut history = Self {
            replay: Replay::new(reader),
            folder: whole_path(folder),
            header,
            brief,
            space,
            scenario: OnceLock::new(),
            stage: None,
            backlog: vec![],
            rounds: vec![],
            reasons: Reasons::default(),
            incumbents: vec![],
            refinements: vec![],
            sessions: vec![],
            end: None,
            lost: 0,
            calibrated: None,
            seconds: 0.0,
            plan,
        };
        if let Limits::Grid(limits) = &history.plan.limits {
            history.stage = Some(history.begin(limits.clone()));
        }
        Ok(history)
    }

    /// Reads on to the end of what is written; says whether there was anything new.
    pub fn catch_up(&mut self) -> Result<bool, ReportError> {
        let before = self.replay.reader().lines();
        while let Some(step) = self.replay.next()? {
            self.step(step)?;
        }
        // Written, hence learned from next: a reader need not wait for the decision that proves it.
        while let Some(learned) = self.replay.take_waiting() {
            self.learned(&learned)?;
        }
        Ok(self.replay.reader().lines() > before)
    }

    /// Bytes read and found whole: a file shorter than this is another one.
    pub fn whole(&self) -> u64 {
        self.replay.reader().whole()
    }

    /// Whether something follows that is not a whole line.
    pub fn is_torn(&self) -> bool {
        self.replay.reader().is_torn()
    }

    /// Pulls without an outcome.
    pub fn in_flight(&self) -> impl Iterator<Item = &PullRecord> {
        self.replay.in_flight()
    }

    /// The scenario as it was, if the files it names are still there.
    pub fn scenario(&self) -> Option<&Scenario> {
        let read = || self.brief.scenario(&self.header).map(Box::new);
        self.scenario.get_or_init(read).as_deref()
    }

    /// What is limited.
    pub fn resource(&self) -> Resource {
        self.brief.resource()
    }

    /// Prices, once the limits are known.
    pub fn price(&self) -> Option<&Price> {
        self.stage.as_ref().map(|stage| &stage.problem.price)
    }

    /// The limits the policy may grant, once they are known.
    pub fn limits(&self) -> Option<&[Limit]> {
        let stage = self.stage.as_ref()?;
        Some(stage.problem.limits.as_slice())
    }

    /// What is known of every pair, once the limits are.
    pub fn known(&self) -> Option<&Known> {
        self.stage.as_ref().map(|stage| &stage.known)
    }

    /// The policy's answer.
    pub fn answer(&self) -> Option<Recommendation> {
        self.stage.as_ref()?.mind.recommend()
    }

    /// What the policy believes of an arm at every limit, if its answer rests on that.
    pub fn believed(&self, arm: ArmId) -> Option<Vec<Recommendation>> {
        match &self.stage.as_ref()?.mind {
            Mind::Plain(policy) => policy.believed(arm),
            Mind::Zooming(policy) => policy.believed(arm),
        }
    }

    /// Failures by reason.
    pub fn failures(&self) -> &[Failures] {
        self.reasons.failures()
    }

    /// Who chooses.
    pub fn policy(&self) -> &PolicyKind {
        &self.plan.policy
    }

    fn begin(&self, limits: LimitGrid) -> Stage {
        let problem = self.plan.problem(limits);
        let mind = match &self.plan.policy {
            PolicyKind::ZRcucb(parameters) => {
                Mind::Zooming(Box::new(zrcucb::new(parameters, &problem)))
            }
            other => {
                let mut policy = other.build(&problem);
                policy.retire();
                Mind::Plain(policy)
            }
        };
        let is_product_limit =
            self.brief.options.get("survival") == Some(&serde_json::json!("kaplan-meier"));
        let survival = if is_product_limit {
            Survival::KaplanMeier
        } else {
            Survival::Restricted
        };
        let shown = if self.plan.policy.finds_limits() {
            // Its own grids differ from arm to arm; this one is fine enough to show them all.
            let fine = LimitGrid::fractions(problem.limits.max().get(), 32);
            Problem {
                limits: fine.unwrap_or_else(|_| problem.limits.clone()),
                ..problem.clone()
            }
        } else {
            problem.clone()
        };
        Stage {
            known: Known::new(&shown, survival),
            problem,
            mind,
        }
    }

    fn step(&mut self, step: Step) -> Result<(), ReportError> {
        match step {
            Step::Session(session) => {
                self.end = None;
                self.sessions.push(SessionStart {
                    session,
                    at: self.seconds,
                    learned: self.rounds.len() as u64,
                });
            }
            Step::Launched(pull) => {
                if pull.arm.index() >= self.plan.arms {
                    return Err(self.foreign());
                }
                if let Some(stage) = &mut self.stage {
                    stage.mind.policy().launched(pull.round, pull.pull());
                }
            }
            Step::Learned(learned) => self.learned(&learned)?,
            Step::Calibrated(found) => {
                self.goes_on(found.at);
                let limits = LimitGrid::new(found.limits.iter().map(|limit| limit.get()));
                let limits = limits.map_err(|_| self.foreign())?;
                self.calibrated = Some(found.limits.iter().map(|limit| limit.get()).collect());
                self.stage = Some(self.begin(limits));
                let backlog = std::mem::take(&mut self.backlog);
                for (place, (round, seen)) in backlog.into_iter().enumerate() {
                    self.tell(round, seen, place);
                }
                self.note_incumbent();
            }
            Step::Lost(_) => self.lost += 1,
            Step::End(end) => {
                self.goes_on(end.at);
                self.end = Some(end);
            }
        }
        Ok(())
    }

    fn learned(&mut self, learned: &Learned) -> Result<(), ReportError> {
        let Learned {
            pull,
            observation,
            outcome,
        } = learned;
        if pull.arm.index() >= self.plan.arms {
            return Err(self.foreign());
        }
        self.goes_on(outcome.at);
        let kind = match observation.seen() {
            Seen::Rewarded { .. } => Kind::Rewarded,
            Seen::Censored { .. } => Kind::Censored,
            Seen::Failed => Kind::Failed,
        };
        let failure = match (&outcome.failed, kind) {
            (Some(reason), Kind::Failed) => {
                self.reasons.note(reason, pull, outcome.stderr.as_deref())
            }
            _ => 0,
        };
        let number = |value: Option<f64>| value.unwrap_or(f64::NAN);
        self.rounds.push(Played {
            round: pull.round.0,
            arm: pull.arm,
            limit: pull.limit.get(),
            reach: observation.reach().get(),
            instance: pull.instance.unwrap_or(0),
            is_chosen: pull.by != Some(By::Calibration) && pull.by != Some(By::Probe),
            kind,
            failure,
            reward: if kind == Kind::Rewarded {
                number(outcome.reward)
            } else {
                f64::NAN
            },
            consumption: number(outcome.consumption),
            gain: f64::NAN,
            at: number(outcome.at),
            wall: number(outcome.wall),
            slot: outcome.slot.unwrap_or(0),
        });
        if self.stage.is_some() {
            self.tell(pull.round, *observation, self.rounds.len() - 1);
            if self.is_checkpoint() {
                self.note_incumbent();
            }
        } else {
            self.backlog.push((pull.round, *observation));
        }
        Ok(())
    }

    /// Lets policy and estimates learn from the round at this place.
    fn tell(&mut self, round: Round, seen: Observation, place: usize) {
        let Some(stage) = &mut self.stage else { return };
        self.rounds[place].gain = seen.gain(&stage.problem.price);
        let mut rng = randomness(self.plan.seed, round, Purpose::Observe);
        stage.known.observe(round, &seen);
        match &mut stage.mind {
            Mind::Plain(policy) => policy.observe(round, seen, &mut rng),
            Mind::Zooming(policy) => {
                let arm = seen.pull().arm;
                let before = policy.limits_of(arm);
                policy.observe(round, seen, &mut rng);
                let after = policy.limits_of(arm);
                if after.len() > before.len() {
                    let new = after.iter().filter(|limit| !before.contains(limit));
                    self.refinements
                        .extend(new.map(|limit| (round.0, arm, limit.get())));
                }
            }
        }
    }

    /// Whether to ask for the answer now: always at first, then ever more rarely, and rarely where asking is dear.
    fn is_checkpoint(&self) -> bool {
        let pairs = self.stage.as_ref().map_or(1, |stage| {
            self.plan.arms * stage.problem.limits.as_slice().len()
        });
        let density = (10_000_000 / pairs.max(1)).clamp(10, 75);
        let learned = self.rounds.len();
        learned.is_multiple_of((learned / density).max(1))
    }

    fn note_incumbent(&mut self) {
        if let Some(answer) = self.answer() {
            self.incumbents.push(Incumbent {
                learned: self.rounds.len() as u64,
                at: if self.header.is_virtual {
                    f64::NAN
                } else {
                    self.seconds
                },
                answer,
            });
        }
    }

    fn goes_on(&mut self, at: Option<f64>) {
        self.seconds = self.seconds.max(at.unwrap_or(0.0));
    }

    fn foreign(&self) -> ReportError {
        ReportError::Foreign {
            path: self.replay.reader().path().to_owned(),
            line: self.replay.reader().lines(),
        }
    }
}

impl Mind {
    fn policy(&mut self) -> &mut dyn Policy {
        match self {
            Self::Plain(policy) => policy.as_mut(),
            Self::Zooming(policy) => policy.as_mut(),
        }
    }

    fn recommend(&self) -> Option<Recommendation> {
        match self {
            Self::Plain(policy) => policy.recommend(),
            Self::Zooming(policy) => policy.recommend(),
        }
    }
}

/// A path that means the same wherever it is used.
fn whole_path(folder: &Path) -> PathBuf {
    let whole = folder.canonicalize();
    let whole = whole.or_else(|_| std::path::absolute(folder));
    whole.unwrap_or_else(|_| folder.to_owned())
}
