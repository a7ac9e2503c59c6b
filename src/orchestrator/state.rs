//! What a run knows: the policy and everything it was told. Live, resumed and explained runs all go through here.

use rand::{Rng, RngExt};

use super::calibration::Calibration;
use super::first_failures::FirstFailures;
use super::plan::{Limits, Plan};
use crate::journal::{By, Calibrated, Learned, PullRecord, Step};
use crate::policy::{Explanation, Policy, Problem, Recommendation};
use crate::round::{
    Limit, LimitError, LimitGrid, Observation, Price, Pull, Purpose, Round, Seen, randomness,
};

/// The knowledge of a run, changed by `launched` and `learned` only.
pub struct State {
    plan: Plan,
    phase: Phase,
    first_failures: FirstFailures,
    tally: Tally,
}

enum Phase {
    Calibrating(Calibration),
    Playing(Playing),
}

struct Playing {
    policy: Box<dyn Policy>,
    problem: Problem,
}

/// What a run has come to, in numbers.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
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
    /// What all of them consumed of the limited resource.
    pub consumption: f64,
    /// The sum of their gains, since limits and prices are known.
    pub gain: f64,
}

/// What to do with a free slot.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Next {
    /// Start this.
    Pull(PullRecord),
    /// Nothing, until an outcome comes.
    Wait,
    /// Nothing any more: the first pulls all failed.
    Hopeless,
}

impl State {
    /// A run that has not begun.
    pub fn new(plan: Plan) -> Self {
        let phase = match &plan.limits {
            Limits::Grid(limits) => Phase::Playing(Playing::new(&plan, limits.clone())),
            Limits::Calibrate(how) => {
                Phase::Calibrating(Calibration::new(*how, plan.arms, plan.seed))
            }
        };
        Self {
            first_failures: FirstFailures::new(plan.stop_on_first_failures),
            plan,
            phase,
            tally: Tally::default(),
        }
    }

    /// What it is about.
    pub fn plan(&self) -> &Plan {
        &self.plan
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

    /// How many of the calibration's pulls have come in, of how many, while it goes on.
    pub fn calibration(&self) -> Option<(usize, usize)> {
        match &self.phase {
            Phase::Calibrating(calibration) => Some(calibration.progress()),
            Phase::Playing(_) => None,
        }
    }

    /// What to do with a free slot. Changes nothing that is known: tell `launched` when it was done.
    pub fn choose(&mut self) -> Next {
        if self.first_failures.is_tripped() {
            return Next::Hopeless;
        }
        let round = Round(self.tally.launched + 1);
        let probe = self.first_failures.next();
        let (pull, by) = match &mut self.phase {
            phase if self.first_failures.is_waiting() => match probe {
                Some(arm) => (Pull::new(arm, largest(phase)), Some(By::Probe)),
                None => return Next::Wait,
            },
            Phase::Calibrating(calibration) => match calibration.next() {
                Some(arm) => (
                    Pull::new(arm, calibration.how().guard),
                    Some(By::Calibration),
                ),
                None => return Next::Wait,
            },
            Phase::Playing(playing) => {
                let mut rng = randomness(self.plan.seed, round, Purpose::Choose);
                (playing.policy.choose(round, &mut rng), None)
            }
        };
        Next::Pull(PullRecord {
            round,
            arm: pull.arm,
            limit: pull.limit,
            instance: self.instance(round, pull.instance),
            seed: None,
            seen: self.tally.learned,
            by,
        })
    }

    /// The instance of a round, counted from 1: as chosen, or drawn.
    fn instance(&self, round: Round, chosen: Option<u32>) -> Option<u32> {
        let count = u32::try_from(self.plan.instances).unwrap_or(u32::MAX);
        if count == 0 {
            return None;
        }
        let mut rng = randomness(self.plan.seed, round, Purpose::Instance);
        // Whoever counts on past the last instance begins again with the first.
        let index = chosen.map_or_else(|| rng.random_range(0..count), |instance| instance % count);
        Some(index + 1)
    }

    /// The seed handed to the target in this round: below 2^31, so that any program takes it.
    pub fn target_seed(&self, round: Round) -> u64 {
        randomness(self.plan.seed, round, Purpose::Target).next_u64() >> 33
    }

    /// A pull was started.
    pub fn launched(&mut self, pull: &PullRecord) {
        self.tally.launched += 1;
        if pull.by == Some(By::Probe) {
            self.first_failures.launched_probe();
        }
        match &mut self.phase {
            Phase::Calibrating(calibration) => calibration.launched(pull.arm),
            Phase::Playing(playing) => playing.policy.launched(pull.round, pull.pull()),
        }
    }

    /// A pull brought something. Gives the limits if this was the last that calibration waited for.
    pub fn learned(&mut self, learned: &Learned) -> Option<Calibrated> {
        let Learned {
            pull,
            observation,
            outcome,
        } = learned;
        self.tally.learned += 1;
        self.tally.consumption += outcome.consumption.unwrap_or(0.0);
        match observation.seen() {
            Seen::Rewarded { .. } => self.tally.rewarded += 1,
            Seen::Censored { .. } => self.tally.censored += 1,
            Seen::Failed => self.tally.failed += 1,
        }
        let is_plain_failure = outcome.failed.is_some() && outcome.guard.is_none();
        let is_probe = pull.by == Some(By::Probe);
        self.first_failures
            .learned(is_plain_failure, is_probe, self.plan.arms);
        match &mut self.phase {
            Phase::Playing(playing) => {
                self.tally.gain += observation.gain(&playing.problem.price);
                let mut rng = randomness(self.plan.seed, pull.round, Purpose::Observe);
                playing.policy.observe(pull.round, *observation, &mut rng);
                None
            }
            Phase::Calibrating(calibration) => {
                calibration.learned(pull.round, *observation);
                calibration.is_done().then(|| Calibrated {
                    limits: calibration.limits().as_slice().to_vec(),
                    at: None,
                })
            }
        }
    }

    /// Calibration ended with these limits: the policy starts, and is told what calibration saw.
    pub fn calibrated(&mut self, limits: &[Limit]) -> Result<(), LimitError> {
        let Phase::Calibrating(calibration) = &mut self.phase else {
            return Ok(());
        };
        let limits = LimitGrid::new(limits.iter().map(|limit| limit.get()))?;
        let outcomes = std::mem::take(&mut calibration.outcomes);
        let mut playing = Playing::new(&self.plan, limits);
        let gains = outcomes
            .iter()
            .map(|(_, seen)| seen.gain(&playing.problem.price));
        self.tally.gain += gains.sum::<f64>();
        playing.told(&outcomes, self.plan.seed);
        self.phase = Phase::Playing(playing);
        Ok(())
    }

    /// Goes through a step of a journal; false if it cannot belong to this run.
    pub fn replay(&mut self, step: &Step) -> bool {
        match step {
            Step::Launched(pull) => {
                let is_known = pull.arm.index() < self.plan.arms;
                if is_known {
                    self.launched(pull);
                }
                is_known
            }
            Step::Learned(learned) => {
                self.learned(learned);
                true
            }
            Step::Calibrated(found) => self.calibrated(&found.limits).is_ok(),
            Step::Session(_) | Step::Lost(_) | Step::End(_) => true,
        }
    }

    /// Limits of a calibration that has all it needs but was killed before it said so.
    pub fn due_calibration(&self) -> Option<Calibrated> {
        match &self.phase {
            Phase::Calibrating(calibration) if calibration.is_done() => Some(Calibrated {
                limits: calibration.limits().as_slice().to_vec(),
                at: None,
            }),
            _ => None,
        }
    }

    /// Whether the first pulls all failed.
    pub fn is_hopeless(&self) -> bool {
        self.first_failures.is_tripped()
    }

    /// The pair to use if the run stopped now, or with a limit the arm to use where every run is granted that much, as in
    /// [`Policy::answer`]; while calibration goes on, by the limits that it would give so far.
    pub fn answer(&self, at: Option<Limit>) -> Option<Recommendation> {
        match &self.phase {
            Phase::Playing(playing) => playing.policy.answer(at),
            Phase::Calibrating(calibration) if calibration.outcomes.is_empty() => None,
            Phase::Calibrating(calibration) => {
                let mut playing = Playing::new(&self.plan, calibration.limits());
                playing.told(&calibration.outcomes, self.plan.seed);
                playing.policy.answer(at)
            }
        }
    }

    /// The pair to use if the run stopped now.
    pub fn recommend(&self) -> Option<Recommendation> {
        self.answer(None)
    }

    /// The limits there are; while calibration goes on, those that it would give so far.
    pub fn limits(&self) -> LimitGrid {
        match &self.phase {
            Phase::Playing(playing) => playing.problem.limits.clone(),
            Phase::Calibrating(calibration) => calibration.limits(),
        }
    }

    /// Why the last choice was made; none if it was not the policy's.
    pub fn explain(&self) -> Option<Explanation> {
        match &self.phase {
            Phase::Playing(playing) => Some(playing.policy.explain()),
            Phase::Calibrating(_) => None,
        }
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

impl Playing {
    fn new(plan: &Plan, limits: LimitGrid) -> Self {
        let problem = plan.problem(limits);
        Self {
            policy: plan.policy.build(&problem),
            problem,
        }
    }
}

impl Playing {
    /// Tells the policy what calibration saw.
    fn told(&mut self, outcomes: &[(Round, Observation)], seed: u64) {
        for (round, seen) in outcomes {
            let mut rng = randomness(seed, *round, Purpose::Observe);
            self.policy.observe(*round, *seen, &mut rng);
        }
    }
}

/// The limit other arms are tried at.
fn largest(phase: &Phase) -> Limit {
    match phase {
        Phase::Calibrating(calibration) => calibration.how().guard,
        Phase::Playing(playing) => playing.problem.limits.max(),
    }
}
