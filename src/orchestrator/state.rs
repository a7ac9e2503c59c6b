//! The state of a run: its schedules and everything they have learned. Live, resumed and explained runs all use it.

use std::sync::Arc;

use rand::Rng;

use super::calibration::Calibration;
use super::first_failures::FirstFailures;
use super::plan::{LimitSource, Plan};
use super::schedule::{Choice, Planned, Schedule};
use crate::answer::{Evidence, NodeStats, Setting, Verdict};
use crate::journal::{ArmRecord, By, Calibrated, EndReason, Learned, PullRecord, Session, Step};
use crate::policy::{Explanation, Policy, Problem, Recommendation};
use crate::resource::Resource;
use crate::round::{
    ArmId, Limit, LimitError, LimitGrid, Observation, Price, Purpose, Round, Seen, instance_of,
    randomness,
};
use crate::scenario::Compare;
use crate::space::open::{Opened, Origin, PARENTS};
use crate::space::{Configuration, Space};
use crate::target::Enforcement;

/// The state of a run. Only `launched` and `learned` change it.
pub struct State {
    plan: Plan,
    phase: Phase,
    first_failures: FirstFailures,
    sequence: Option<Box<dyn Schedule>>,
    tally: Tally,
    evidence: Evidence,
    nodes: NodeStats,
    enforcement: Option<Enforcement>,
    /// Of an open space, how many arms have been pulled: the next one gets the number after these.
    numbered: usize,
    /// Whether the default was pulled.
    has_default: bool,
}

enum Phase {
    Calibrating(Calibration),
    Playing(Playing),
}

struct Playing {
    policy: Box<dyn Policy>,
    problem: Problem,
    seed: u64,
}

/// The counts and sums of a run.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[non_exhaustive]
pub struct Tally {
    /// Pulls that were started.
    pub launched: u64,
    /// Pulls that were learned from.
    pub learned: u64,
    /// Those with a reward.
    pub rewarded: u64,
    /// Those that were censored.
    pub censored: u64,
    /// Those that failed.
    pub failed: u64,
    /// Those that were taken over from an earlier run. They cost this run nothing.
    pub earlier: u64,
    /// What this run's own pulls consumed of the limited resource.
    pub consumption: f64,
    /// The sum of their gains, since limits and prices became known.
    pub gain: f64,
}

impl Tally {
    /// Pulls that this run started itself.
    pub fn own_launched(&self) -> u64 {
        self.launched - self.earlier
    }

    /// Pulls of its own that were learned from.
    pub fn own_learned(&self) -> u64 {
        self.learned - self.earlier
    }
}

/// What to do with a free slot.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Next {
    /// Start this.
    Pull(PullRecord),
    /// Wait for an outcome.
    Wait,
    /// Nothing more.
    Over(EndReason),
}

impl State {
    /// A run that has not begun.
    pub fn new(plan: Plan) -> Self {
        let phase = match (&plan.limits, plan.limits.grid()) {
            (LimitSource::Calibrate(how), _) => {
                // The first arms of an open space are drawn anyway.
                let some = how
                    .arms
                    .filter(|arms| plan.space.opened().is_some() && *arms < plan.arms);
                Phase::Calibrating(Calibration::new(*how, some.unwrap_or(plan.arms), plan.seed))
            }
            (_, Some(limits)) => Phase::Playing(Playing::new(&plan, limits)),
            (_, None) => unreachable!("limits are given or calibrated"),
        };
        let largest = match &phase {
            Phase::Calibrating(calibration) => calibration.guard(),
            Phase::Playing(playing) => playing.problem.limits.max(),
        };
        Self {
            first_failures: FirstFailures::new(plan.stop_on_first_failures, plan.arms, largest),
            evidence: Evidence::scored_by(plan.metric),
            plan,
            phase,
            sequence: None,
            tally: Tally::default(),
            nodes: NodeStats::default(),
            enforcement: None,
            numbered: 0,
            has_default: false,
        }
    }

    /// Its plan.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The arms; those of an open space that have a number so far.
    pub fn space(&self) -> &Space {
        &self.plan.space
    }

    /// How many arms there are; of an open space, how many were opened.
    pub fn arms(&self) -> usize {
        let opened = self.space().opened().map(Opened::len);
        opened.unwrap_or(self.plan.arms)
    }

    /// What an arm of an open space runs with; targets know the arms of a list themselves.
    pub fn drawn_configuration(&self, arm: ArmId) -> Option<Arc<Configuration>> {
        let space = self.space();
        space.opened().map(|_| Arc::new(space.configuration(arm)))
    }

    /// What it has come to.
    pub fn tally(&self) -> Tally {
        self.tally
    }

    /// Limits and prices, once they are known.
    pub fn problem(&self) -> Option<&Problem> {
        match &self.phase {
            Phase::Playing(playing) => Some(&playing.problem),
            Phase::Calibrating(_) => None,
        }
    }

    /// The limits of an arm, if the policy finds them itself.
    pub fn limits_of(&self, arm: ArmId) -> Option<Vec<Limit>> {
        match &self.phase {
            Phase::Playing(playing) => playing.policy.limits_of(arm),
            Phase::Calibrating(_) => None,
        }
    }

    /// During calibration: how many of its pulls have an outcome, and how many there are.
    pub fn calibration(&self) -> Option<(usize, usize)> {
        match &self.phase {
            Phase::Calibrating(calibration) => Some(calibration.progress()),
            Phase::Playing(_) => None,
        }
    }

    /// Pulls this instead of what the policy would choose. The policy still learns.
    pub fn follow(&mut self, sequence: impl Schedule + 'static) {
        self.sequence = Some(Box::new(sequence));
    }

    /// What to do with a free slot. Does not change the state: call `launched` when the pull has started.
    pub fn choose(&mut self) -> Next {
        let round = Round(self.tally.launched + 1);
        let mut choice = self.first_failures.next(round);
        if choice == Choice::Pass {
            choice = match (&mut self.phase, &mut self.sequence) {
                (Phase::Calibrating(calibration), _) => calibration.next(round),
                (Phase::Playing(_), Some(sequence)) => sequence.next(round),
                (Phase::Playing(playing), None) => {
                    playing.next(round).with_default(self.has_default)
                }
            };
        }
        match choice {
            Choice::Pull(Planned { pull, seed, by }) => Next::Pull(PullRecord {
                round,
                arm: self.numbered(pull.arm),
                limit: pull.limit,
                instance: self.instance(round, pull.instance),
                seed,
                seen: self.tally.learned,
                by,
            }),
            Choice::Wait | Choice::Pass => Next::Wait,
            Choice::Over(reason) => Next::Over(reason),
        }
    }

    /// Arms of an open space that have not been pulled are all alike to a policy: the first of them is as good as any, and
    /// gets its configuration when it is pulled.
    fn numbered(&self, arm: ArmId) -> ArmId {
        let is_new = arm.index() >= self.numbered && self.space().opened().is_some();
        if is_new {
            ArmId::from_index(self.numbered)
        } else {
            arm
        }
    }

    /// What is recorded before the first pull of this arm of an open space, if that comes next.
    pub fn opening(&self, arm: ArmId) -> Option<ArmRecord> {
        let opened = self.space().opened()?;
        if arm.index() < self.numbered {
            return None;
        }
        let (configuration, origin) = if arm.index() < opened.len() {
            let origin = opened.origin(arm).clone();
            (self.space().configuration(arm), origin)
        } else {
            let ranked = match &self.phase {
                Phase::Playing(playing) => playing.policy.best_arms(PARENTS),
                Phase::Calibrating(_) => vec![],
            };
            let proposal = opened.propose(self.plan.seed, &ranked);
            let configuration = opened.space().configuration(&proposal.point);
            (configuration, proposal.origin)
        };
        let configuration = match serde_json::to_value(&configuration) {
            Ok(serde_json::Value::Object(values)) => values,
            _ => serde_json::Map::new(),
        };
        Some(ArmRecord {
            arm,
            configuration,
            origin,
        })
    }

    /// An arm of an open space was opened; false if it cannot be of this run.
    pub fn open(&mut self, arm: &ArmRecord) -> bool {
        let number = arm.arm.index();
        let Some(opened) = Arc::make_mut(&mut self.plan.space).opened_mut() else {
            return false;
        };
        let Some(point) = opened.space().read_point(&arm.configuration) else {
            return false;
        };
        if number == opened.len() {
            opened.open(point, arm.origin.clone());
            true
        } else {
            number < opened.len() && *opened.point(arm.arm) == point
        }
    }

    /// The instance of a round, counted from 1: as chosen, or drawn.
    fn instance(&self, round: Round, chosen: Option<u32>) -> Option<u32> {
        let index = instance_of(self.plan.seed, round, chosen, self.plan.instances);
        index.map(|index| index + 1)
    }

    /// The seed for the target in this round.
    pub fn target_seed(&self, round: Round) -> u64 {
        target_seed(self.plan.seed, round)
    }

    /// A pull was started.
    pub fn launched(&mut self, pull: &PullRecord) {
        self.tally.launched += 1;
        self.numbered = self.numbered.max(pull.arm.index() + 1);
        self.has_default |= pull.arm.index() == 0;
        self.first_failures.launched(pull);
        self.phase.schedule().launched(pull);
        if let Some(sequence) = &mut self.sequence {
            sequence.launched(pull);
        }
    }

    /// A pull has an outcome. Returns the limits if it was the last one that calibration waited for.
    pub fn learned(&mut self, learned: &Learned) -> Option<Calibrated> {
        let corrected = self.compared(learned);
        let learned = corrected.as_ref().unwrap_or(learned);
        let Learned {
            observation,
            outcome,
            ..
        } = learned;
        self.tally.learned += 1;
        self.evidence.add(observation, outcome.score);
        if learned.pull.by == Some(By::Earlier) {
            self.tally.earlier += 1;
        } else {
            self.tally.consumption += outcome.consumption.unwrap_or(0.0);
        }
        match observation.seen() {
            Seen::Rewarded { .. } => self.tally.rewarded += 1,
            Seen::Censored { .. } => self.tally.censored += 1,
            Seen::Failed => self.tally.failed += 1,
        }
        self.first_failures.learned(learned);
        self.phase.schedule().learned(learned);
        if let Some(sequence) = &mut self.sequence {
            sequence.learned(learned);
        }
        match &mut self.phase {
            Phase::Playing(playing) => {
                self.tally.gain += observation.gain(&playing.problem.price);
                if let Some(opened) = self.plan.space.opened() {
                    playing.grow(opened);
                }
                None
            }
            Phase::Calibrating(calibration) => calibration.found(),
        }
    }

    /// Calibration ended with these limits: the policy starts, and learns what calibration observed.
    pub fn calibrated(&mut self, limits: &[Limit]) -> Result<(), LimitError> {
        let Phase::Calibrating(calibration) = &mut self.phase else {
            return Ok(());
        };
        let limits = LimitGrid::new(limits.iter().map(|limit| limit.get()))?;
        let outcomes = std::mem::take(&mut calibration.outcomes);
        self.first_failures.limit = limits.max();
        let mut playing = Playing::new(&self.plan, limits);
        let gains = outcomes
            .iter()
            .map(|(_, seen)| seen.gain(&playing.problem.price));
        self.tally.gain += gains.sum::<f64>();
        playing.observe_all(&outcomes);
        self.phase = Phase::Playing(playing);
        Ok(())
    }

    /// Applies a step of a journal. Returns false if it cannot belong to this run.
    pub fn replay(&mut self, step: &Step) -> bool {
        match step {
            Step::Launched(pull) => {
                let is_known = pull.arm.index() < self.arms() && self.is_in_turn(pull.arm);
                if is_known {
                    self.launched(pull);
                }
                is_known
            }
            Step::Opened(arm) => self.open(arm),
            Step::Learned(learned) => {
                self.learned(learned);
                true
            }
            Step::Calibrated(found) => self.calibrated(&found.limits).is_ok(),
            Step::Lost(lost) => {
                if let Some(node) = &lost.node {
                    self.node_lost(node);
                }
                true
            }
            Step::Session(session) => {
                self.began(session);
                true
            }
            Step::End(_) => true,
        }
    }

    /// A session begins, on these nodes if it uses any.
    pub(super) fn began(&mut self, session: &Session) {
        let nodes = session.enforcement["nodes"].as_array();
        for node in nodes.into_iter().flatten() {
            if let (Some(name), Some(slots)) = (node["node"].as_str(), node["slots"].as_u64()) {
                self.nodes.set_slots(name, slots);
            }
        }
        let all = [
            self.enforcement,
            Enforcement::of_session(&session.enforcement),
        ];
        self.enforcement = all.into_iter().flatten().reduce(Enforcement::weaker);
    }

    /// How limits were enforced in every session at least. None if no command was run.
    pub fn enforcement(&self) -> Option<Enforcement> {
        self.enforcement
    }

    /// Arms of an open space are numbered as they are pulled, but for those that were given: rounds of an earlier run may
    /// lack some.
    fn is_in_turn(&self, arm: ArmId) -> bool {
        let Some(opened) = self.space().opened() else {
            return true;
        };
        let is_given = || matches!(opened.origin(arm), Origin::Default | Origin::Start);
        arm.index() <= self.numbered || is_given()
    }

    /// Notes on which node a pull ended. Gives it as the policy is to see it, if that is not as it was measured.
    fn compared(&mut self, learned: &Learned) -> Option<Learned> {
        let node = learned.outcome.node.as_deref()?;
        self.nodes.add(node, &learned.observation);
        if self.plan.compare == Compare::AsMeasured {
            return None;
        }
        let factor = self.nodes.factor(node);
        let pull = learned.observation.pull();
        let observation = match learned.observation.seen() {
            Seen::Rewarded {
                reward,
                consumption,
            } => Observation::ended(pull, reward, consumption / factor),
            Seen::Censored { at } => {
                Observation::censored(pull, (at.get() / factor).min(pull.limit.get()))
            }
            Seen::Failed => return None,
        };
        Some(Learned {
            observation: observation.ok()?,
            ..learned.clone()
        })
    }

    /// A pull was lost with its node.
    pub(super) fn node_lost(&mut self, node: &str) {
        self.nodes.add_lost(node);
    }

    /// What every node did.
    #[doc(hidden)]
    pub fn nodes(&self) -> &NodeStats {
        &self.nodes
    }

    /// Limits of a calibration that has all it needs but was killed before it recorded them.
    pub fn due_calibration(&self) -> Option<Calibrated> {
        match &self.phase {
            Phase::Calibrating(calibration) => calibration.found(),
            Phase::Playing(_) => None,
        }
    }

    /// Whether the first pulls all failed.
    pub fn is_hopeless(&self) -> bool {
        self.first_failures.is_confirmed()
    }

    /// The pair to use if the run stopped now. With a limit `at`, the arm to use if every run gets that limit, as in
    /// [`Policy::answer`]. During calibration, uses the limits that calibration would give so far. `None` before the
    /// first reward.
    pub fn answer(&self, at: Option<Limit>) -> Option<Recommendation> {
        let ask = |playing: &Playing| {
            let price = &playing.problem.price;
            let settle = |best: Recommendation| {
                let settled = self.evidence.settle(best, price)?;
                // A limit that the user asked for is not changed.
                Some(if at.is_some() { best } else { settled })
            };
            let best = match at {
                None => playing.policy.answer(None)?,
                Some(limit) => self.under_limit(playing, limit)?,
            };
            let best = settle(best)?;
            // What is said of the answer and the default holds here too: a policy may prefer an arm that it hardly knows.
            let default = self.evidence.better_default(&best, price, at.is_some());
            Some(default.and_then(settle).unwrap_or(best))
        };
        match &self.phase {
            Phase::Playing(playing) => ask(playing),
            Phase::Calibrating(calibration) if calibration.outcomes.is_empty() => None,
            Phase::Calibrating(calibration) => {
                let mut playing = Playing::new(&self.plan, calibration.limits());
                playing.observe_all(&calibration.outcomes);
                ask(&playing)
            }
        }
    }

    /// The arm to use if every run gets this limit. A policy with a model of all runs knows. Otherwise the best of what it recommends at
    /// the limits of the grid around it, and without a limit if that is less, as far as their runs show it under this one. An arm
    /// that never needed as much may never have been granted it.
    fn under_limit(&self, playing: &Playing, limit: Limit) -> Option<Recommendation> {
        let policy = &playing.policy;
        let asked = policy.answer(Some(limit))?;
        if asked.is_predicted && asked.pull.limit == limit {
            return Some(asked);
        }
        let mut limits = playing.problem.limits.as_slice().iter().copied();
        let above = if asked.pull.limit == limit {
            None
        } else {
            limits.find(|above| *above > limit)
        };
        let above = above.and_then(|above| policy.answer(Some(above)));
        let less = policy.answer(None).filter(|any| any.pull.limit <= limit);
        let shown = [Some(asked), above, less]
            .into_iter()
            .flatten()
            .filter_map(|pair| {
                let price = &playing.problem.price;
                self.evidence.estimate(pair.pull.arm, limit, price)
            });
        let known = shown.reduce(|best, other| if other.gain > best.gain { other } else { best });
        // Where no run got as far, the arm for the limit that was reached.
        known.or(Some(asked))
    }

    /// The pair to use if the run stopped now.
    pub fn recommend(&self) -> Option<Recommendation> {
        self.answer(None)
    }

    /// What the policy recommends, on its own grid of limits, whether or not a run of that arm has earned a reward. `at` as
    /// in [`answer`](Self::answer). `None` during calibration.
    pub fn recommended(&self, at: Option<Limit>) -> Option<Recommendation> {
        match &self.phase {
            Phase::Playing(playing) => playing.policy.answer(at),
            Phase::Calibrating(_) => None,
        }
    }

    /// What the runs of every arm showed.
    #[doc(hidden)]
    pub fn evidence(&self) -> &Evidence {
        &self.evidence
    }

    /// The answer with its reasons.
    #[doc(hidden)]
    pub fn verdict(&self, resource: Resource) -> Verdict {
        let setting = Setting {
            price: self.price(),
            largest: self.limits().max().get(),
            is_limit_fixed: false,
            arms: self.arms(),
            drawn: self.space().opened().map(Opened::drawn),
            resource,
        };
        Verdict::new(self.recommend(), &self.evidence, setting)
    }

    /// The limits. During calibration, those that it would give so far.
    pub fn limits(&self) -> LimitGrid {
        match &self.phase {
            Phase::Playing(playing) => playing.problem.limits.clone(),
            Phase::Calibrating(calibration) => calibration.limits(),
        }
    }

    /// Why the last choice was made. `None` if the policy did not make it.
    pub fn explain(&self) -> Option<Explanation> {
        let mut explanation = match &self.phase {
            Phase::Playing(playing) => playing.policy.explain(),
            Phase::Calibrating(_) => return None,
        };
        let weighed = [&mut explanation.chosen, &mut explanation.runner_up];
        for weighed in weighed.into_iter().flatten() {
            weighed.pull.arm = self.numbered(weighed.pull.arm);
        }
        Some(explanation)
    }

    /// Prices, once they are known.
    pub fn price(&self) -> Option<&Price> {
        self.problem().map(|problem| &problem.price)
    }
}

impl std::fmt::Debug for State {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.debug_struct("State")
            .field("plan", &self.plan)
            .field("tally", &self.tally)
            .finish_non_exhaustive()
    }
}

impl Phase {
    fn schedule(&mut self) -> &mut dyn Schedule {
        match self {
            Self::Calibrating(calibration) => calibration,
            Self::Playing(playing) => playing,
        }
    }
}

impl Playing {
    fn new(plan: &Plan, limits: LimitGrid) -> Self {
        let problem = plan.problem(limits);
        Self {
            policy: plan.policy.build(&problem),
            problem,
            seed: plan.seed,
        }
    }

    /// Gives the policy more arms of an open space to choose from if it wants that and there are more.
    fn grow(&mut self, opened: &Opened) {
        let wanted = self.policy.wanted_arms();
        let arms = wanted.map_or(0, |wanted| opened.pool(wanted));
        if arms > self.problem.arms {
            self.problem.arms = arms;
            self.policy.arms_added(&self.problem);
        }
    }

    /// Lets the policy learn what calibration observed.
    fn observe_all(&mut self, outcomes: &[(Round, Observation)]) {
        for (round, seen) in outcomes {
            self.observe(*round, *seen);
        }
    }

    fn observe(&mut self, round: Round, seen: Observation) {
        let mut rng = randomness(self.seed, round, Purpose::Observe);
        self.policy.observe(round, seen, &mut rng);
    }
}

/// The policy is a schedule like any other.
impl Schedule for Playing {
    fn next(&mut self, round: Round) -> Choice {
        let mut rng = randomness(self.seed, round, Purpose::Choose);
        Choice::Pull(Planned {
            pull: self.policy.choose(round, &mut rng),
            seed: None,
            by: None,
        })
    }

    fn launched(&mut self, pull: &PullRecord) {
        self.policy.launched(pull.round, pull.pull());
    }

    fn learned(&mut self, learned: &Learned) {
        self.observe(learned.pull.round, learned.observation);
    }
}

/// The seed for a target: below 2^31, so that any program accepts it.
pub fn target_seed(seed: u64, round: Round) -> u64 {
    randomness(seed, round, Purpose::Target).next_u64() >> 33
}
