//! A Thompson sampler that learns from similar arms and climbs to long limits.
//!
//! Beyond the paper: [`joint_ts`](super::joint_ts) for many arms of a real solver. It draws a whole gain curve per arm as
//! that does, but believes of an arm, before its first run, what is usual on instances of each kind (`baseline.rs`),
//! corrected by what arms with similar parameters did (`similar.rs`); how much that counts for is learned too
//! (`tune.rs`). No arm is opened at the largest limit: an arm climbs one limit with each run, and nobody is granted
//! more than a small part of all that was spent. Where it may choose instances, an arm runs where that tells something
//! new.

mod baseline;
mod belief;
mod evidence;
mod pool;
mod similar;
#[cfg(test)]
mod tests;
mod told;
mod tune;

use std::ops::Range;
use std::sync::Arc;

use rand::{Rng, RngExt};
use rand_pcg::Pcg64Mcg;
use serde::Serialize;

use self::baseline::{Baseline, NO_INSTANCE, Run};
use self::belief::{Draw, Ground, Mean, Ratio, Take, Weights, cells, curve};
use self::evidence::{Brought, Ends, Evidence};
use self::pool::{Drawn, Pool};
use super::beta::own_rng;
use super::estimate::{Estimates, Told};
use super::explanation::Last;
use super::recommendation::Recommend;
use super::survival::Survival;
use super::{Explanation, Options, Policy, Problem, Recommendation, Turn, Why};
use crate::round::{ArmId, Limit, Observation, Pull, Round, Seen};
use crate::space::Space;

/// As scenarios and the command line say it.
pub const NAME: &str = "similar-ts";

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
    /// Curves are drawn as if everything had been seen so many times: with very many arms, some draw of an arm that is
    /// hardly known is always the largest.
    pub sure: f64,
    /// The share of the consumption that goes to runs at the largest limit, once that can be afforded and if there are
    /// instances.
    ///
    /// The best pair often has a short limit, and whoever wants to know the best arm *at the largest limit* would wait for
    /// ever. Without instances (the paper's problems) the pair is all that is asked for.
    pub full: f64,
    /// How the answer is picked.
    pub recommend: Answer,
}

/// How the answer is picked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// The largest gain believed, similar arms included.
    Posterior,
    /// The rule of all other policies.
    Safe,
    /// The largest gain estimated.
    Best,
}

impl Parameters {
    /// Takes its options.
    pub fn read(options: &mut Options) -> Self {
        let answers = [
            ("posterior", Answer::Posterior),
            ("safe", Answer::Safe),
            ("best", Answer::Best),
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
}

/// Nobody is granted a limit of more than this part of all that was spent, ...
const PART: f64 = 0.02;
/// ... or, where arms are few, than an arm's share of it over this.
const SHARES: f64 = 2.0;
/// Curves are drawn anew for so many arms at every observation, besides the arm observed: the draws of the others are
/// still draws from what is believed of them.
const REFRESHED: usize = 48;
/// Everything is learned anew after the first so many runs, then after every fifth more.
const FIRST_FIT: usize = 16;
/// Below this weight of a repeated run, runs are taken for echoes.
const ECHO: f64 = 0.5;

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
    runs: Vec<Run>,
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
    /// The member whose curve is drawn anew next.
    refresh: usize,
    /// Whether nobody asks for choices any more: then nothing is drawn.
    is_retired: bool,
    /// Everything is learned anew when there are so many runs.
    fit_at: usize,
    /// The last choice: place and draw.
    last: Last<(usize, Drawn)>,
}

/// Puts it to work.
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

    /// Whether a member is known on every instance at this limit, and runs repeat themselves: another tells nothing.
    fn is_exhausted(&self, place: usize, k: usize) -> bool {
        if self.instances == 0 || self.baseline.again > ECHO {
            return false;
        }
        let evidence = self.pool.members[place].evidence.as_ref();
        let is_known = |reached: &u16| usize::from(*reached) > k;
        evidence.is_some_and(|evidence| evidence.reached.iter().all(is_known))
    }

    /// An instance on which a run to this limit tells something new of the member, or any.
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

/// How it learns.
impl SimilarTs {
    /// Enters what one pull told; gives the place of its arm.
    fn learn(&mut self, arm: usize, told: &Told, seen: &Observation) -> usize {
        let place = self.pool.place(arm, self.weights);
        let limits = self.estimates.limits();
        let cells = limits.len();
        let reached = limits.partition_point(|limit| *limit <= told.reach);
        let ended = told
            .ended
            .map(|ended| limits.partition_point(|limit| *limit < ended.consumption))
            .filter(|cell| *cell < reached);
        let instance = seen.pull().instance.unwrap_or(NO_INSTANCE);
        let evidence = self.pool.members[place].evidence.as_ref();
        let known = evidence.and_then(|evidence| evidence.reached.get(instance as usize));
        let run = Run {
            place: place as u32,
            instance,
            survived: ended.unwrap_or(reached) as u16,
            is_ended: ended.is_some(),
            known: known.copied().unwrap_or(0),
        };
        self.compare(&run);
        self.runs.push(run);
        self.spend(told, seen.pull().limit);
        let (classes, instances) = (self.baseline.classes(), self.baseline.instances());
        let evidence = self.pool.members[place]
            .evidence
            .get_or_insert_with(|| Box::new(Evidence::new(cells, classes, instances)));
        evidence.add(&run, &self.baseline);
        if let (Seen::Rewarded { reward, .. }, Some(cell), Some(ended)) =
            (seen.seen(), ended, told.ended)
        {
            let cost = reward - ended.net;
            evidence.brought[cell].add(reward, cost);
            self.usual[cell].add(reward, cost);
        }
        place
    }

    /// Books what a run consumed.
    fn spend(&mut self, told: &Told, limit: Limit) {
        let consumption = told.ended.map_or(told.reach, |ended| ended.consumption);
        let largest = self.estimates.limits().len() - 1;
        self.spent += consumption;
        if limit.get() >= self.estimates.limits()[largest] {
            self.spent_in_full += consumption;
        }
        if self.affordable() == largest {
            self.full_from = self.full_from.min(self.spent);
        }
    }

    /// Compares a run with an earlier one of the same arm on the same instance that had not ended so far: did this one?
    ///
    /// If runs were independent, some would. If none does, they are echoes, and hardly count.
    fn compare(&mut self, run: &Run) {
        let cells = self.costs.len();
        let known = usize::from(run.known);
        if known == 0 || known >= cells {
            return;
        }
        let member = &self.pool.members[run.place as usize];
        let until = known.min(usize::from(run.survived) + usize::from(run.is_ended));
        let hazards = self.baseline.of_class(self.baseline.class(run.instance));
        let hazards = hazards.iter().zip(&member.ratios).take(until);
        let sum: f64 = hazards.map(|(hazard, ratio)| hazard * ratio).sum();
        self.surprise.expected += 1.0 - (-sum * member.own.mean()).exp();
        if run.is_ended && run.survived < run.known {
            self.surprise.seen += 1.0;
        }
        self.baseline.again = self.surprise.ratio(1.0).min(1.0);
    }

    /// Learns everything anew from all runs.
    fn fit(&mut self, seed: u64) {
        if self.parameters.population {
            self.pool.newcomers(self.weights);
            // What is usual depends on who ran, and who is fast on what is usual.
            for _ in 0..2 {
                self.fit_baseline();
                self.fit_similar(seed);
                self.fit_weights();
                for place in 0..self.pool.members.len() {
                    self.reconsider(place);
                }
            }
            self.send_away();
        }
        self.fit_at = self.runs.len() + (self.runs.len() / 5).max(8);
    }

    fn fit_baseline(&mut self) {
        let members = &self.pool.members;
        let ratio = |place: u32, cell: usize| {
            let member = &members[place as usize];
            member.ratios[cell] * member.own.mean()
        };
        self.baseline.fit(&self.runs, ratio);
        for member in &mut self.pool.members {
            if let Some(evidence) = &mut member.evidence {
                evidence.clear(self.baseline.classes());
            }
        }
        for run in &self.runs {
            if let Some(evidence) = &mut self.pool.members[run.place as usize].evidence {
                evidence.add(run, &self.baseline);
            }
        }
    }

    fn fit_similar(&mut self, seed: u64) {
        if let Some(space) = self.space.clone() {
            let (members, strength) = (&mut self.pool.members, self.weights.ratio);
            similar::consult(&space, members, &self.baseline, &self.usual, strength, seed);
        }
    }

    /// Takes the weights under which all that was seen is most likely.
    fn fit_weights(&mut self) {
        let ground = self.ground();
        let (mut ends, mut seen) = (vec![], vec![]);
        for member in &self.pool.members {
            let Some(evidence) = &member.evidence else {
                continue;
            };
            let of_member = evidence.ends(&self.baseline, member.own.mean(), |cell| {
                member.ratios[cell]
            });
            ends.push(Ends::sum(&of_member));
            cells(&ground, &member.of_arm(0.0), member.own.mean(), |cell| {
                if cell.runs > 0.0 {
                    seen.push(cell);
                }
            });
        }
        let evidence = self
            .pool
            .members
            .iter()
            .filter_map(|member| member.evidence.as_deref());
        self.weights = Weights {
            hazard: self
                .parameters
                .strength
                .unwrap_or_else(|| tune::hazard(&seen)),
            ratio: tune::ratio(&ends),
            reward: tune::reward(evidence),
        };
    }

    /// Believes of a member what its runs and the priors say now.
    fn reconsider(&mut self, place: usize) {
        let arm = self.pool.members[place].of_arm(0.0);
        let own = Ratio::of(&self.ground(), &arm);
        self.pool.members[place].own = own;
    }

    /// Where there are too many arms to think about, those that promise least leave.
    fn send_away(&mut self) {
        let ground = Ground {
            baseline: &self.baseline,
            usual: &self.usual,
            costs: &self.costs,
            penalties: self.estimates.penalties(),
            weights: self.weights,
        };
        let stood = self.pool.keep_best(|member| {
            let mut gains = vec![];
            curve(
                &ground,
                &member.of_arm(0.0),
                member.own,
                &mut Mean,
                &mut gains,
            );
            gains.into_iter().fold(f64::NEG_INFINITY, f64::max)
        });
        if let Some(stood) = stood {
            let mut now = vec![0; stood.last().map_or(0, |last| *last as usize + 1)];
            for (place, before) in stood.iter().enumerate() {
                now[*before as usize] = place as u32;
            }
            for run in &mut self.runs {
                run.place = now[run.place as usize];
            }
        }
    }

    fn redraw(&mut self, places: impl Iterator<Item = usize>, rng: &mut Pcg64Mcg) {
        let mut gains = vec![];
        for place in places {
            self.pool.members[place].drawn = self.draw(place, rng, &mut gains);
        }
    }
}

/// How it answers.
impl SimilarTs {
    /// The arm with the largest gain believed among these limits, and its limit.
    fn best(&self, limits: Range<usize>) -> Option<Recommendation> {
        let mut best: Option<(f64, usize, usize)> = None;
        let mut gains = vec![];
        for (place, member) in self.pool.members.iter().enumerate() {
            if member.evidence.is_none() {
                continue;
            }
            self.curve(place, &mut Mean, &mut gains);
            for k in limits.clone() {
                let is_better = |(most, at, _): (f64, usize, usize)| {
                    gains[k] > most || gains[k] == most && member.arm < self.pool.members[at].arm
                };
                if best.is_none_or(is_better) {
                    best = Some((gains[k], place, k));
                }
            }
        }
        let (_, place, k) = best?;
        self.answer(place, k)
    }

    /// A member as an answer: at this limit, or at the nearest that one of its runs reached, smaller ones first.
    ///
    /// The gain and its interval are those believed: plain means would be off where runs were repeated on the instances
    /// that had not ended.
    fn answer(&self, place: usize, k: usize) -> Option<Recommendation> {
        let arm = self.pool.members[place].arm as usize;
        let stats = self.estimates.of_arm(arm);
        let by_nearness = (0..=k).rev().chain(k + 1..stats.len());
        let k = by_nearness.into_iter().find(|k| stats[*k].count > 0)?;
        let belief = self.beliefs(place, k..k + 1)[0];
        Some(Recommendation {
            gain: belief.gain,
            interval: belief.interval,
            ..self.estimates.recommendation(arm, k)
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
            turn: is_full.then_some(Turn::Largest),
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
        let (arm, told) = self.estimates.observe(round, &seen);
        let place = self.learn(arm, &told, &seen);
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

    fn recommend(&self) -> Option<Recommendation> {
        match self.parameters.recommend {
            Answer::Posterior => self.best(0..self.costs.len()),
            Answer::Safe => self.estimates.recommend(Recommend::Safe),
            Answer::Best => self.estimates.recommend(Recommend::Best),
        }
    }

    fn recommend_at(&self, limit: Limit) -> Option<Recommendation> {
        let limits = self.estimates.limits();
        let k = limits.partition_point(|&own| own <= limit.get()).max(1) - 1;
        match self.parameters.recommend {
            Answer::Posterior => self.best(k..k + 1),
            Answer::Safe => self.estimates.recommend_at(limit, Recommend::Safe),
            Answer::Best => self.estimates.recommend_at(limit, Recommend::Best),
        }
    }

    fn believed(&self, arm: ArmId) -> Option<Vec<Recommendation>> {
        self.believed_of(arm.index())
    }

    fn explain(&self) -> Explanation {
        self.last
            .explain(|drawn, index| self.candidate(drawn, index))
    }
}
