//! A run as its journal describes it, read as far as it has been written. Can be updated while the journal grows.

use std::cell::OnceCell;
use std::path::{Path, PathBuf};

use super::ReportError;
use super::failures::{Failures, Reasons};
use super::gain_model::GainModel;
use super::pairs::Pairs;
use super::played::{Kind, Played};
use crate::answer::{
    self, Comparison, Evidence, NodeRow, Outlook, PathStep, Setting, Values, Verdict,
};
use crate::journal::{By, End, Header, JournalError, Learned, PullRecord, Session, Step};
use crate::orchestrator::{ResolvedScenario, RunError, RunReader};
use crate::policy::{Known, PolicyKind, Recommendation};
use crate::round::{ArmId, Limit, LimitGrid, Observation, Price, Round, Seen};
use crate::scenario::{Resource, Scenario};
use crate::space::open::Opened;
use crate::space::{Configuration, Space};

/// Seconds that the outlook looks ahead.
const HOUR: f64 = 3600.0;

/// The pair that the policy would have recommended at some point.
#[derive(Debug, Clone, Copy)]
pub struct Incumbent {
    /// After this many outcomes.
    pub learned: u64,
    /// Seconds of the run.
    pub at: f64,
    /// The answer then.
    pub answer: Recommendation,
}

/// A session, and how far the run had come when it began.
#[derive(Debug, Clone)]
pub struct SessionStart {
    /// As it was recorded.
    pub session: Session,
    /// Seconds since the run began.
    pub at: f64,
    /// Outcomes at that time.
    pub learned: u64,
}

/// Everything that happened in a run so far.
pub struct History {
    run: RunReader,
    /// Where the run is, as an absolute path.
    pub folder: PathBuf,
    /// The first line.
    pub header: Header,
    /// The scenario.
    #[doc(hidden)]
    pub resolved: ResolvedScenario,
    /// The arms; those of an open space that were opened so far.
    pub space: Space,
    /// Whether there are more of them since.
    has_opened: bool,
    /// What is known of every pair, once the limits are.
    known: Option<Known>,
    /// Observed during calibration.
    backlog: Vec<(Round, Observation)>,
    /// Rounds with an outcome, in the order in which they were learned from.
    #[doc(hidden)]
    pub rounds: Vec<Played>,
    reasons: Reasons,
    /// The answers during the run.
    pub incumbents: Vec<Incumbent>,
    /// If the policy finds limits itself: round, arm and limit of every limit it found.
    #[doc(hidden)]
    pub refinements: Vec<(u64, ArmId, f64)>,
    /// Every time captime was started on it.
    pub sessions: Vec<SessionStart>,
    /// How the last session ended, if the journal says so.
    pub end: Option<End>,
    /// Pulls that were lost with their runner.
    pub lost: u64,
    /// Limits that were measured, if they were.
    pub calibrated: Option<Vec<f64>>,
    /// Seconds the run has taken, over all sessions.
    pub seconds: f64,
    /// The answer to what was read so far, once it was asked for,
    answer: OnceCell<Option<Recommendation>>,
    /// and its reasons.
    verdict: OnceCell<Verdict>,
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
    /// Opens the run in `folder`. Reads only the first line.
    pub fn open(folder: &Path) -> Result<Self, ReportError> {
        let run = RunReader::open(folder).map_err(|error| match error {
            RunError::Journal(JournalError::Senseless { path, .. }) => {
                ReportError::UnreadableScenario { path }
            }
            error => failed(folder, error),
        })?;
        let mut history = Self {
            folder: whole_path(folder),
            header: run.header.clone(),
            resolved: run.resolved.clone(),
            space: run.resolved.scenario.space.clone(),
            has_opened: true,
            known: None,
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
            answer: OnceCell::new(),
            verdict: OnceCell::new(),
            run,
        };
        history.begin();
        Ok(history)
    }

    /// Reads on to the end of what is written. Returns whether there was anything new.
    pub fn catch_up(&mut self) -> Result<bool, ReportError> {
        let before = self.run.journal().lines();
        while let Some(step) = self.run.next().map_err(|error| self.failed(error))? {
            self.step(step)?;
        }
        if std::mem::take(&mut self.has_opened) {
            let space = self.run.state.space();
            self.space = space.listed_now().into_owned();
            self.resolved.scenario.space = space.clone();
        }
        Ok(self.run.journal().lines() > before)
    }

    /// Bytes read and found whole. A file shorter than this has been replaced.
    pub fn whole(&self) -> u64 {
        self.run.journal().whole()
    }

    /// Whether something follows that is not a whole line.
    pub fn is_torn(&self) -> bool {
        self.run.journal().is_torn()
    }

    /// What every node did; nothing if all pulls ran at home.
    #[doc(hidden)]
    pub fn nodes(&self) -> Vec<NodeRow> {
        self.run.state.nodes().rows()
    }

    /// Pulls without an outcome.
    pub fn in_flight(&self) -> impl Iterator<Item = &PullRecord> {
        self.run.in_flight()
    }

    /// The scenario as it was when the run was started.
    pub fn scenario(&self) -> &Scenario {
        &self.resolved.scenario
    }

    /// The limited resource.
    pub fn resource(&self) -> Resource {
        self.resolved.resource()
    }

    /// Prices, once the limits are known.
    pub fn price(&self) -> Option<&Price> {
        self.run.state.price()
    }

    /// The limits the policy may grant, once they are known.
    pub fn limits(&self) -> Option<&[Limit]> {
        let problem = self.run.state.problem()?;
        Some(problem.limits.as_slice())
    }

    /// What is known about every pair, once the limits are known.
    #[doc(hidden)]
    pub fn known(&self) -> Option<&Known> {
        self.known.as_ref()
    }

    /// What the runs of every arm showed.
    #[doc(hidden)]
    pub fn evidence(&self) -> &Evidence {
        self.run.state.evidence()
    }

    /// The pair to use, with the smallest limit that is enough. `None` before the first reward.
    pub fn answer(&self) -> Option<Recommendation> {
        let ask = || {
            self.run.state.problem()?;
            self.run.state.recommend()
        };
        *self.answer.get_or_init(ask)
    }

    /// The arm to use if every run gets this limit. `None` before the first reward.
    pub fn answer_at(&self, limit: Limit) -> Option<Recommendation> {
        self.run.state.problem()?;
        self.run.state.answer(Some(limit))
    }

    /// The answer with its reasons.
    #[doc(hidden)]
    pub fn verdict(&self) -> &Verdict {
        self.verdict.get_or_init(|| {
            let answer = self.answer();
            Verdict {
                unchanged_since: answer.and_then(|best| self.unchanged_since(best.pull.arm)),
                outlook: answer.and_then(|_| self.outlook()),
                path: answer.map_or(vec![], |best| self.path(&best)),
                ..self.verdict_on(answer, false)
            }
        })
    }

    /// What changed from the default to this answer, and what each change is worth by a model of the gain.
    #[doc(hidden)]
    pub fn path(&self, best: &Recommendation) -> Vec<PathStep> {
        let ends = (ArmId::from_index(0), best.pull.arm);
        let model = (ends.0 != ends.1).then(|| GainModel::of(self)).flatten();
        model.map_or(vec![], |model| {
            let limits = self.compared_at(best);
            // The default may need another limit than the answer, and so may what lies between them.
            let predict = |all: &[Configuration]| {
                let of = limits.map(|limit| model.predict(all, limit));
                let both = of[0].iter().zip(&of[1]);
                both.map(|(own, other)| own.max(*other)).collect()
            };
            answer::path(&self.resolved.scenario.space, ends, predict)
        })
    }

    /// The limits at which the answer and the default are compared.
    fn compared_at(&self, best: &Recommendation) -> [Limit; 2] {
        let compare = |price| self.evidence().against_default(best, price, false);
        let (own, other) = match self.price().map(compare) {
            Some(Comparison::Compared {
                answer_limit,
                limit,
                ..
            }) => (answer_limit, limit),
            _ => (best.pull.limit.get(), best.pull.limit.get()),
        };
        // The answer's limit may lie below all that were granted.
        let limits = self.limits().unwrap_or_default();
        [own, other].map(|wanted| {
            let granted = limits.iter().find(|limit| limit.get() >= wanted);
            granted.copied().unwrap_or(best.pull.limit)
        })
    }

    /// What the next hour is expected to bring; in virtual time, as many pulls again. None before arms have had a few pulls each.
    fn outlook(&self) -> Option<Outlook> {
        if self.evidence().is_thin() {
            return None;
        }
        let done = self.rounds.len() as f64;
        let is_timed = !self.header.is_virtual && self.seconds > 0.0;
        let seconds = is_timed.then_some(HOUR);
        let pulls = seconds.map_or(done, |hour| done * hour / self.seconds);
        let pairs = Pairs::of(self);
        // The interval of a plain estimate is made wider than its error, so that no fluke is called sure.
        let own = |best: Recommendation| {
            let (arm, limit) = (best.pull.arm, best.pull.limit);
            self.evidence().estimate(arm, limit, self.price()?)
        };
        let best = |(arm, _)| pairs.best_of(arm);
        let known = self.evidence().pulled().filter_map(best);
        let arms: Vec<Recommendation> = known.filter_map(own).collect();
        let unpulled = self.run.state.plan().arms.saturating_sub(arms.len());
        Outlook::of(&arms, unpulled, pulls as u64, seconds)
    }

    /// The reasons for this answer; if its limit is `fixed`, the default gets the same one.
    #[doc(hidden)]
    pub fn verdict_on(&self, answer: Option<Recommendation>, fixed: bool) -> Verdict {
        let largest = self.limits().and_then(<[_]>::last);
        let setting = Setting {
            price: self.price(),
            largest: largest.map_or(f64::INFINITY, |last| last.get()),
            is_limit_fixed: fixed,
            arms: self.run.state.arms(),
            drawn: self.run.state.space().opened().map(Opened::drawn),
            resource: self.resource(),
        };
        Verdict::new(answer, self.evidence(), setting)
    }

    /// The arms that no other beats in both reward and consumption: arm, limit, values. Arms with few pulls are left
    /// out if others have more.
    #[doc(hidden)]
    pub fn pareto(&self) -> Vec<(ArmId, f64, Values)> {
        let most = self.evidence().pulled().map(|(_, runs)| runs.len()).max();
        self.evidence().pareto(most.unwrap_or(1).min(3))
    }

    /// The arms that seem best, each at its own best limit, the best first.
    pub fn best_arms(&self, count: usize) -> Vec<ArmId> {
        let pairs = Pairs::of(self);
        let known = self.evidence().pulled().filter_map(|(arm, runs)| {
            let is_rewarded = runs.iter().any(|run| run.consumption().is_some());
            let best = pairs.best_of(arm).filter(|_| is_rewarded)?;
            Some((pairs.worth(&best), arm))
        });
        let mut known: Vec<(f64, ArmId)> = known.collect();
        known.sort_by(|a, b| b.0.total_cmp(&a.0));
        known.into_iter().take(count).map(|(_, arm)| arm).collect()
    }

    /// After how many outcomes the answer became this arm, as far as it was looked at; none if it is the default although the
    /// policy prefers another arm, which is not looked at during the run.
    fn unchanged_since(&self, arm: ArmId) -> Option<u64> {
        let all = &self.incumbents;
        let is_other = |incumbent: &Incumbent| incumbent.answer.pull.arm != arm;
        if arm.index() == 0 && all.last().is_some_and(is_other) {
            return None;
        }
        let other = all.iter().rposition(is_other);
        let first = all.get(other.map_or(0, |place| place + 1));
        Some(first.map_or(self.rounds.len() as u64, |incumbent| incumbent.learned))
    }

    /// Failures by reason.
    #[doc(hidden)]
    pub fn failures(&self) -> &[Failures] {
        self.reasons.failures()
    }

    /// The policy.
    pub fn policy(&self) -> &PolicyKind {
        &self.run.state.plan().policy
    }

    /// Starts to collect what is known about every pair, if the limits are known.
    fn begin(&mut self) {
        let Some(problem) = self.run.state.problem() else {
            return;
        };
        let policy = &self.run.state.plan().policy;
        let mut shown = problem.clone();
        if policy.finds_limits()
            // Its own grids differ from arm to arm. This one is fine enough to show them all.
            && let Ok(fine) = LimitGrid::fractions(problem.limits.max().get(), 32)
        {
            shown.limits = fine;
        }
        self.known = Some(Known::new(&shown, policy.survival()));
    }

    fn step(&mut self, step: Step) -> Result<(), ReportError> {
        (self.answer, self.verdict) = Default::default();
        let learned_about = match &step {
            Step::Learned(learned) => Some(learned.pull.arm),
            _ => None,
        };
        let before = learned_about.and_then(|arm| self.run.state.limits_of(arm));
        self.run.apply(&step).map_err(|error| self.failed(error))?;
        self.seconds = self.run.progress.seconds;
        match step {
            Step::Session(session) => {
                self.end = None;
                self.sessions.push(SessionStart {
                    session,
                    at: self.seconds,
                    learned: self.rounds.len() as u64,
                });
            }
            Step::Opened(_) => self.has_opened = true,
            Step::Launched(_) => {}
            Step::Learned(learned) => {
                if let Some(before) = before {
                    self.note_refinements(&learned.pull, &before);
                }
                self.learned(&learned);
            }
            Step::Calibrated(found) => {
                self.calibrated = Some(found.limits.iter().map(|limit| limit.get()).collect());
                self.begin();
                let backlog = std::mem::take(&mut self.backlog);
                for (place, (round, seen)) in backlog.into_iter().enumerate() {
                    self.observe(round, &seen, place);
                }
                self.note_incumbent();
            }
            Step::Lost(_) => self.lost += 1,
            Step::End(end) => self.end = Some(end),
        }
        Ok(())
    }

    /// Records the limits that the policy found when it learned from this pull.
    fn note_refinements(&mut self, pull: &PullRecord, before: &[Limit]) {
        let after = self.run.state.limits_of(pull.arm).unwrap_or_default();
        let new = after.iter().filter(|limit| !before.contains(limit));
        self.refinements
            .extend(new.map(|limit| (pull.round.0, pull.arm, limit.get())));
    }

    fn learned(&mut self, learned: &Learned) {
        let Learned {
            pull,
            observation,
            outcome,
        } = learned;
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
            is_chosen: !matches!(
                pull.by,
                Some(By::Calibration | By::Default | By::Probe | By::Earlier)
            ),
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
        if self.known.is_some() {
            self.observe(pull.round, observation, self.rounds.len() - 1);
            if self.is_checkpoint() {
                self.note_incumbent();
            }
        } else {
            self.backlog.push((pull.round, *observation));
        }
    }

    /// Adds a round to the estimates.
    fn observe(&mut self, round: Round, seen: &Observation, place: usize) {
        if let (Some(known), Some(price)) = (&mut self.known, self.run.state.price()) {
            self.rounds[place].gain = seen.gain(price);
            known.observe(round, seen);
        }
    }

    /// Whether to ask for the answer now: always at first, then ever more rarely, and rarely if asking is expensive.
    fn is_checkpoint(&self) -> bool {
        let limits = self.limits().map_or(1, <[Limit]>::len);
        let pairs = self.run.state.arms() * limits;
        let density = (10_000_000 / pairs.max(1)).clamp(10, 75);
        let learned = self.rounds.len();
        learned.is_multiple_of((learned / density).max(1))
    }

    fn note_incumbent(&mut self) {
        if let Some(answer) = self.run.state.recommended(None) {
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

    fn failed(&self, error: RunError) -> ReportError {
        failed(self.run.journal().path(), error)
    }
}

/// Why the journal at `path` cannot be read.
fn failed(path: &Path, error: RunError) -> ReportError {
    match error {
        RunError::Journal(error) => error.into(),
        RunError::Foreign { line } => ReportError::Foreign {
            path: path.to_owned(),
            line,
        },
        _ => ReportError::UnreadableScenario {
            path: path.to_owned(),
        },
    }
}

/// An absolute path.
fn whole_path(folder: &Path) -> PathBuf {
    let whole = folder.canonicalize();
    let whole = whole.or_else(|_| std::path::absolute(folder));
    whole.unwrap_or_else(|_| folder.to_owned())
}
