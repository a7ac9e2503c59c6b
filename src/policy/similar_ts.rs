//! A Thompson sampler that learns from similar arms and climbs to long limits.
//!
//! Beyond the paper: [`joint_ts`](super::joint_ts) for many arms of a real solver. It draws a whole gain curve per arm as
//! that does, but believes of an arm, before its first run, what is usual on instances of each kind (`baseline.rs`),
//! corrected by what arms with similar parameters did (`similar.rs`); how much that counts for is learned too
//! (`tune.rs`). No arm is opened at the largest limit: an arm climbs one limit with each run, and no run is granted
//! more than a small part of all that was spent. Where it may choose instances, an arm runs where that says something
//! new.

mod baseline;
mod belief;
mod evidence;
mod learn;
mod pool;
mod posterior;
mod similar;
#[cfg(test)]
mod tests;
mod tune;

use std::sync::Arc;

use rand::{Rng, RngExt};
use rand_pcg::Pcg64Mcg;
use serde::Serialize;

use self::baseline::{Baseline, PastRun};
use self::belief::{Draw, Ground, Take, Weights, curve};
use self::evidence::{Brought, Ends};
use self::pool::{Drawn, Pool};
use super::beta::own_rng;
use super::estimate::Estimates;
use super::explanation::{Last, TurnState};
use super::recommendation::Recommend;
use super::survival::Survival;
use super::{
    Explanation, Options, Policy, PolicyParameters, Problem, Recommendation, Turn, Weighed, Why,
};
use crate::round::{ArmId, Limit, Observation, Pull, Round};
use crate::space::Space;

/// Name in scenarios and on the command line.
pub const NAME: &str = "similar-ts";

/// No run is granted a limit of more than this part of all that was spent, ...
const PART: f64 = 0.02;
/// ... or, where arms are few, than an arm's share of it over this.
const SHARES: f64 = 2.0;
/// New curves are drawn for this many arms at every observation, besides the arm observed: the draws of the others are
/// still draws from what is believed of them.
const REFRESHED: usize = 48;
/// Everything is learned again after this many runs, then after every fifth more.
const FIRST_FIT: usize = 16;
/// Below this weight of a repeated run, runs are taken for echoes.
const ECHO: f64 = 0.5;

/// The largest limit gets its share of the consumption.
#[derive(Debug, Clone, Copy)]
struct InFull;

impl TurnState for InFull {
    fn in_words(self, _: Option<&Weighed>, _: Option<&Weighed>) -> Turn {
        Turn::new(
            &"largest",
            "it had the largest random draw from the posterior at the largest limit, which gets a share of the consumption",
        )
    }
}

/// Its parameters: each ingredient can be switched off.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[expect(clippy::struct_excessive_bools, reason = "they are switches")]
pub struct Parameters {
    /// Whether similar arms are asked.
    pub similar: bool,
    /// Whether anything is believed of an arm before its first run; if not, priors are flat.
    pub population: bool,
    /// Whether limits climb.
    pub climb: bool,
    /// Whether it chooses instances, where it may.
    pub instances: bool,
    /// How many runs a prior counts for in a hazard; as many as is likely if not given.
    pub strength: Option<f64>,
    /// Curves are drawn as if everything had been seen this many times: with very many arms, some draw of an arm that is
    /// hardly known is always the largest.
    pub sure: f64,
    /// The share of the consumption that goes to runs at the largest limit, once that can be afforded and if there are
    /// instances.
    ///
    /// The best pair often has a short limit, and if you want the best arm *at the largest limit*, you would wait for
    /// ever. Without instances (the paper's problems) the pair is all that is asked for.
    pub full: f64,
    /// How the answer is picked.
    pub recommend: SimilarRecommend,
}

/// How the answer is picked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SimilarRecommend {
    /// The largest gain believed, similar arms included.
    Posterior,
    /// The rule of all other policies.
    Safe,
    /// The largest gain estimated.
    Best,
}

impl PolicyParameters for Parameters {
    fn read(options: &mut Options) -> Self {
        let answers = [
            ("posterior", SimilarRecommend::Posterior),
            ("safe", SimilarRecommend::Safe),
            ("best", SimilarRecommend::Best),
        ];
        let strength = options.number("strength", f64::NAN, "a number above 0", |number| {
            number.is_finite() && number > 0.0
        });
        Self {
            similar: options.flag("similar", true),
            population: options.flag("population", true),
            climb: options.flag("climb", true),
            instances: options.flag("instances", true),
            strength: Some(strength).filter(|strength| !strength.is_nan()),
            sure: options.positive("sure", 2.0),
            full: options.number("full", 0.5, "a number from 0 to 1", |share| {
                (0.0..=1.0).contains(&share)
            }),
            recommend: options.word("recommend", &answers),
        }
    }

    fn chooses_instances(&self) -> bool {
        self.instances
    }
}

/// The sampler at work.
#[derive(Debug)]
pub struct SimilarTs {
    parameters: Parameters,
    /// For pending counts, and for what is said of pairs.
    estimates: Estimates,
    space: Option<Arc<Space>>,
    /// c at each limit.
    costs: Vec<f64>,
    /// How many instances it may choose from.
    instances: usize,
    pool: Pool,
    runs: Vec<PastRun>,
    /// Consumption of all runs.
    spent: f64,
    /// What of it went to runs at the largest limit.
    spent_in_full: f64,
    /// How much had been spent when the largest limit could first be afforded.
    full_from: f64,
    usual: Vec<Brought>,
    baseline: Baseline,
    weights: Weights,
    /// Repeated runs that ended where an earlier one had not, and how many would have if they were independent.
    surprise: Ends,
    /// The member that gets a new curve next.
    refresh: usize,
    /// Whether no more choices will be requested. Then nothing is drawn.
    is_retired: bool,
    /// Everything is learned again when there are this many runs.
    fit_at: usize,
    /// The last choice: place and draw.
    last: Last<(usize, Drawn), InFull>,
}

/// Builds the policy.
pub fn new(parameters: &Parameters, problem: &Problem) -> SimilarTs {
    let limits = problem.limits.as_slice();
    let space = problem.space.clone();
    let has_parameters = |space: &Arc<Space>| !space.parameters().is_empty();
    let mut weights = if parameters.population {
        tune::UNKNOWN
    } else {
        tune::FLAT
    };
    weights.hazard = parameters.strength.unwrap_or(weights.hazard);
    let may_choose = parameters.instances && problem.instances > 0;
    SimilarTs {
        estimates: Estimates::new(problem, Survival::Restricted),
        space: space.filter(|space| parameters.similar && has_parameters(space)),
        costs: limits
            .iter()
            .map(|limit| problem.price.cost(limit.get()))
            .collect(),
        instances: if may_choose { problem.instances } else { 0 },
        pool: Pool::new(problem.arms, limits.len(), weights),
        runs: vec![],
        spent: 0.0,
        spent_in_full: 0.0,
        full_from: f64::INFINITY,
        usual: vec![Brought::default(); limits.len()],
        baseline: Baseline::unknown(limits.len(), problem.instances),
        weights,
        surprise: Ends::default(),
        refresh: 0,
        is_retired: false,
        fit_at: FIRST_FIT,
        last: Last::NOTHING,
        parameters: parameters.clone(),
    }
}

/// What is believed, and how curves are made of it.
impl SimilarTs {
    fn ground(&self) -> Ground<'_> {
        Ground {
            baseline: &self.baseline,
            usual: &self.usual,
            costs: &self.costs,
            penalties: self.estimates.penalties(),
            weights: self.weights,
        }
    }

    fn curve(&self, place: usize, take: &mut impl Take, gains: &mut Vec<f64>) {
        let member = &self.pool.members[place];
        let pending = self.estimates.arm_count(member.arm as usize).pending;
        let arm = member.of_arm(f64::from(pending));
        curve(&self.ground(), &arm, member.own, take, gains);
    }

    /// The largest limit that can be afforded.
    fn affordable(&self) -> usize {
        let limits = self.estimates.limits();
        if !self.parameters.climb {
            return limits.len() - 1;
        }
        let shares = SHARES * self.pool.members.len() as f64;
        let most = PART.max(1.0 / shares) * self.spent;
        limits.partition_point(|limit| *limit <= most).max(1) - 1
    }

    /// Whether the next run goes to the largest limit, whatever the best pair is.
    fn is_full_due(&self) -> bool {
        let due = self.parameters.full * (self.spent - self.full_from);
        let mut members = self.pool.members.iter();
        self.baseline.instances() > 0
            && self.spent_in_full < due
            && members.any(|member| member.drawn.full > f64::NEG_INFINITY)
    }

    /// Draws the curve of a member and gives its best pair, those only under way left out.
    ///
    /// What is compared is the gain at the best limit that can be afforded. An arm that has not climbed so far is run
    /// to the next limit on its way there.
    fn draw(&self, place: usize, rng: &mut Pcg64Mcg, gains: &mut Vec<f64>) -> Drawn {
        let sure = self.parameters.sure;
        self.curve(place, &mut Draw { rng, sure }, gains);
        let arm = self.pool.members[place].arm as usize;
        let stats = self.estimates.of_arm(arm);
        let is_open = |k: &usize| {
            let is_awaited = stats[*k].count == 0 && stats[*k].pending > 0;
            !is_awaited && !self.is_exhausted(place, *k)
        };
        let mut best = Drawn::NOTHING;
        for k in (0..=self.affordable()).filter(is_open) {
            if gains[k] > best.gain {
                (best.gain, best.aim, best.k) = (gains[k], k, k);
            }
        }
        let largest = gains.len() - 1;
        if is_open(&largest) {
            best.full = gains[largest];
        }
        if self.parameters.climb {
            let count = self.estimates.arm_count(arm);
            let next = (count.observed + count.pending) as usize;
            best.k = (next.min(best.k)..best.k).find(is_open).unwrap_or(best.k);
        }
        best
    }

    /// Whether a member is known on every instance at this limit, and runs repeat themselves: another run says nothing.
    fn is_exhausted(&self, place: usize, k: usize) -> bool {
        if self.instances == 0 || self.baseline.again > ECHO {
            return false;
        }
        let evidence = self.pool.members[place].evidence.as_ref();
        let is_known = |reached: &u16| usize::from(*reached) > k;
        evidence.is_some_and(|evidence| evidence.reached.iter().all(is_known))
    }

    /// An instance on which a run to this limit says something new about the member, or any.
    fn instance(&self, place: usize, k: usize, rng: &mut Pcg64Mcg) -> Option<u32> {
        if self.instances == 0 {
            return None;
        }
        let all = 0..self.instances as u32;
        let evidence = self.pool.members[place].evidence.as_ref();
        let is_new = |instance: &u32| {
            evidence.is_some_and(|evidence| usize::from(evidence.reached[*instance as usize]) <= k)
        };
        let new: Vec<u32> = all.clone().filter(is_new).collect();
        Some(match new.len() {
            0 => rng.random_range(all),
            count => new[rng.random_range(0..count)],
        })
    }
}

impl Policy for SimilarTs {
    fn choose(&mut self, _: Round, rng: &mut dyn Rng) -> Pull {
        let mut rng = own_rng(rng);
        let mut gains = vec![];
        let largest = self.costs.len() - 1;
        let is_full = self.is_full_due();
        let mut last = Last {
            turn: is_full.then_some(InFull),
            ..Last::by(Why::Sample)
        };
        for (place, member) in self.pool.members.iter().enumerate() {
            let arm = member.arm as usize;
            // Pulls under way narrow what is believed; before the first observation nothing was drawn yet.
            let is_still = self.estimates.arm_count(arm).pending == 0 && !self.runs.is_empty();
            let drawn = if is_still {
                member.drawn
            } else {
                self.draw(place, &mut rng, &mut gains)
            };
            let drawn = if is_full {
                drawn.in_full(largest)
            } else {
                drawn
            };
            if drawn.gain > f64::NEG_INFINITY {
                last.enter((place, drawn), drawn.gain);
            }
        }
        // Everything is known or under way.
        if last.chosen.is_none() {
            let (aim, k) = (self.affordable(), self.affordable());
            let (gain, full) = (f64::NAN, f64::NAN);
            let place = rng.random_range(0..self.pool.members.len());
            let drawn = Drawn { gain, aim, k, full };
            last = Last::plain(Why::Chance, (place, drawn));
        }
        self.last = last;
        let ((place, Drawn { k, .. }), _) = last.chosen.expect("something was entered");
        let arm = self.pool.members[place].arm as usize;
        Pull {
            instance: self.instance(place, k, &mut rng),
            ..self.estimates.pull(arm, k)
        }
    }

    fn launched(&mut self, round: Round, pull: Pull) {
        self.estimates.launched(round, pull);
    }

    fn observe(&mut self, round: Round, seen: Observation, rng: &mut dyn Rng) {
        let is_first = self.runs.is_empty();
        let (arm, pulled) = self.estimates.observe(round, &seen);
        let place = self.learn(arm, &pulled, &seen);
        let mut rng = own_rng(rng);
        let is_due = self.runs.len() >= self.fit_at;
        if is_due {
            self.fit(round.0);
        } else {
            self.reconsider(place);
        }
        let members = self.pool.members.len();
        if self.is_retired {
            return;
        }
        if is_due || is_first {
            self.redraw(0..members, &mut rng);
        } else {
            let start = self.refresh;
            let others = (0..REFRESHED.min(members)).map(|step| (start + step) % members);
            self.refresh = (start + REFRESHED) % members;
            self.redraw(std::iter::once(place).chain(others), &mut rng);
        }
    }

    fn retire(&mut self) {
        self.is_retired = true;
    }

    fn answer(&self, at: Option<Limit>) -> Option<Recommendation> {
        match self.parameters.recommend {
            SimilarRecommend::Posterior => self.best(at),
            SimilarRecommend::Safe => self.estimates.answer(at, Recommend::Safe),
            SimilarRecommend::Best => self.estimates.answer(at, Recommend::Best),
        }
    }

    fn believed(&self, arm: ArmId) -> Option<Vec<Recommendation>> {
        self.believed_of(arm.index())
    }

    fn explain(&self) -> Explanation {
        self.last.explain(|drawn, index| self.weighed(drawn, index))
    }
}
