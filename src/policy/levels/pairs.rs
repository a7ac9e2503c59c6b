//! The search without instances: Thompson sampling over pairs, with priors pooled from all arms.

use std::sync::Arc;

use rand::seq::index::sample;
use rand::{Rng, SeedableRng};
use rand_distr::{Distribution, StandardNormal};
use rand_pcg::Pcg64Mcg;

use super::prior::{Cell, Posterior, Prior};
use super::turn::LevelsTurn;
use super::{Parameters, levels_of};
use crate::policy::beta::{draw_beta, own_rng};
use crate::policy::estimate::{Estimates, PullEvidence};
use crate::policy::explanation::Last;
use crate::policy::recommendation::interval_of;
use crate::policy::survival::Survival;
use crate::policy::{Explanation, Policy, Problem, Recommendation, Weighed, Why};
use crate::round::{ArmId, Limit, Observation, Pull, Round, Seen};
use crate::space::Space;

/// Draws are made as if everything had been seen this many times: among many arms, some draw of an arm that is hardly known is
/// always the largest.
const SURE: f64 = 2.0;
/// With more pairs than this, curves are drawn for some arms only: the most promising and as many others.
const ALL: usize = 2048;
/// On an open space there are this many times as many arms as were tried: each is an invitation to leave the good ones alone.
const RESERVE: usize = 20;
/// What is expected of arms is learned again after this many runs, then after every fifth more.
const FIRST_FIT: u64 = 8;
/// Curves drawn for the interval of an explanation.
const CURVES: usize = 400;

/// The search at work.
#[derive(Debug)]
pub(in crate::policy) struct Pairs {
    parameters: Parameters,
    estimates: Estimates,
    cells: Vec<Cell>,
    prior: Prior,
    space: Option<Arc<Space>>,
    /// When the prior is learned again, in runs.
    next_fit: u64,
    runs: u64,
    /// c at each limit: what ends there costs at most.
    costs: Vec<f64>,
    /// The limits to climb through while nothing has ended.
    levels: Vec<usize>,
    climbed: usize,
    has_ended: bool,
    /// Per arm the largest gain of any of its pairs, by posterior means.
    promise: Vec<f64>,
    /// How many arms were tried, where they are tried in their order, as on an open space.
    tried: usize,
    last: Last<usize, LevelsTurn>,
}

impl Pairs {
    pub(super) fn new(parameters: &Parameters, problem: &Problem) -> Self {
        let estimates = Estimates::new(problem, Survival::Restricted);
        let limits = estimates.limits();
        Self {
            parameters: parameters.clone(),
            cells: vec![Cell::default(); problem.arms * limits.len()],
            prior: Prior::new(limits.len()),
            space: problem.space.clone(),
            next_fit: FIRST_FIT,
            runs: 0,
            costs: limits
                .iter()
                .map(|limit| problem.price.cost(*limit))
                .collect(),
            levels: levels_of(limits),
            climbed: 0,
            has_ended: false,
            promise: vec![f64::NEG_INFINITY; problem.arms],
            tried: 0,
            last: Last::NOTHING,
            estimates,
        }
    }

    fn points(&self) -> usize {
        self.costs.len()
    }

    /// Gains of an arm at every limit, with the hazards and mean rewards that `take` makes of what is believed.
    fn curve(
        &self,
        arm: usize,
        sure: f64,
        mut take: impl FnMut(Posterior) -> (f64, f64),
        mut each: impl FnMut(usize, f64, f64),
    ) {
        let cells = &self.cells[arm * self.points()..][..self.points()];
        let (mut survival, mut net) = (1.0, 0.0);
        for (k, (cell, pool)) in cells.iter().zip(&self.prior.pool).enumerate() {
            let pending = f64::from(self.estimates.of_arm(arm)[k].pending);
            let (hazard, reward) = take(self.prior.posterior(arm, k, cell, pending, sure));
            let of = if cell.ended > 0.0 { cell } else { pool };
            let cost = if of.ended > 0.0 {
                of.costs / of.ended
            } else {
                self.costs[k]
            };
            net += survival * hazard * (reward - cost);
            survival *= 1.0 - hazard;
            each(k, net - self.estimates.penalties()[k] * survival, survival);
        }
    }

    fn draw(&self, rng: &mut dyn Rng) -> Last<usize, LevelsTurn> {
        let mut rng = own_rng(rng);
        let (arms, points) = (self.estimates.arms(), self.points());
        let arms: Vec<usize> = if arms * points <= ALL {
            (0..arms).collect()
        } else {
            let count = (ALL / points / 2).clamp(1, arms);
            let mut promising: Vec<usize> = (0..arms).collect();
            promising.select_nth_unstable_by(count - 1, |a, b| {
                self.promise[*b].total_cmp(&self.promise[*a]).then(a.cmp(b))
            });
            promising.truncate(count);
            promising.extend(sample(&mut rng, arms, count));
            promising
        };
        let mut last = Last::by(Why::Sample);
        for arm in arms {
            let stats = self.estimates.of_arm(arm);
            self.curve(
                arm,
                SURE,
                |of| drawn(of, &mut rng),
                |k, gain, _| {
                    if stats[k].count > 0 || stats[k].pending == 0 {
                        last.enter(arm * points + k, gain);
                    }
                },
            );
        }
        last
    }

    /// Nothing has ended yet: every pull gets the next larger limit and another arm.
    fn climb(&self) -> usize {
        let level = self.climbed.min(self.levels.len() - 1);
        let tried = |arm: &usize| {
            let count = self.estimates.arm_count(*arm);
            count.observed + count.pending
        };
        let arm = (0..self.estimates.arms()).min_by_key(tried).unwrap_or(0);
        // With more slots than arms the same arm gets other limits.
        let pending = self.estimates.arm_count(arm).pending as usize;
        let level = (level + pending) % self.levels.len();
        arm * self.points() + self.levels[level]
    }

    /// The largest gain of any pair of an arm, by posterior means.
    fn most(&self, arm: usize) -> f64 {
        let mut most = f64::NEG_INFINITY;
        self.curve(arm, 1.0, means, |_, gain, _| most = most.max(gain));
        most
    }

    /// Learns again what is expected of arms.
    fn fit(&mut self) {
        let space = self.space.as_deref();
        self.prior.fit(&self.cells, &self.promise, space, self.runs);
        for arm in 0..self.promise.len() {
            self.promise[arm] = self.most(arm);
        }
        self.next_fit = self.runs + (self.runs / 5).max(FIRST_FIT);
    }

    fn weighed(&self, pair: usize, draw: f64) -> Weighed {
        let estimated = self.estimates.pair(pair, draw);
        if self.last.why != Why::Sample {
            return estimated;
        }
        let (arm, own) = (pair / self.points(), pair % self.points());
        let (mut mean, mut survival) = (0.0, 0.0);
        self.curve(arm, 1.0, means, |k, gain, alive| {
            if k == own {
                (mean, survival) = (gain, alive);
            }
        });
        let mut rng = Pcg64Mcg::seed_from_u64(pair as u64);
        let mut gains = Vec::with_capacity(CURVES);
        for _ in 0..CURVES {
            self.curve(
                arm,
                1.0,
                |of| drawn(of, &mut rng),
                |k, gain, _| {
                    if k == own {
                        gains.push(gain);
                    }
                },
            );
        }
        let (low, high) = interval_of(gains);
        Weighed {
            mean,
            width: (high - low) / 2.0,
            interval: (low, high),
            survival,
            ..estimated
        }
    }
}

fn means(of: Posterior) -> (f64, f64) {
    (of.ends.0 / (of.ends.0 + of.ends.1), of.reward.0)
}

fn drawn(of: Posterior, rng: &mut Pcg64Mcg) -> (f64, f64) {
    let normal: f64 = StandardNormal.sample(rng);
    let reward = (of.reward.0 + of.reward.1 * normal).clamp(0.0, 1.0);
    (draw_beta(of.ends.0, of.ends.1, rng), reward)
}

/// Enters the evidence from one pull.
fn learn(limits: &[f64], cells: &mut [Cell], pulled: &PullEvidence, reward: f64) {
    let mut left = 0.0;
    for (&right, cell) in limits.iter().zip(cells) {
        if right > pulled.reach {
            break;
        }
        match pulled.ended {
            Some(ended) if ended.consumption <= left && left > 0.0 => break,
            Some(ended) if ended.consumption <= right => {
                cell.at_risk += 1.0;
                cell.ended += 1.0;
                cell.rewards += reward;
                cell.squares += reward * reward;
                cell.costs += reward - ended.net;
            }
            _ => cell.at_risk += 1.0,
        }
        left = right;
    }
}

impl Policy for Pairs {
    fn choose(&mut self, _: Round, rng: &mut dyn Rng) -> Pull {
        self.last = if self.has_ended {
            self.draw(rng)
        } else {
            Last::climb(self.climb())
        };
        if self.last.chosen.is_none() {
            self.last = Last::climb(self.climb());
        }
        let (pair, _) = self.last.chosen.expect("something is always chosen");
        self.estimates
            .pull(pair / self.points(), pair % self.points())
    }

    fn launched(&mut self, round: Round, pull: Pull) {
        self.estimates.launched(round, pull);
        self.tried = self.tried.max(pull.arm.index() + 1);
    }

    fn observe(&mut self, round: Round, seen: Observation, _: &mut dyn Rng) {
        let (arm, pulled) = self.estimates.observe(round, &seen);
        self.tried = self.tried.max(arm + 1);
        let reward = match seen.seen() {
            Seen::Rewarded { reward, .. } => reward,
            Seen::Censored { .. } | Seen::Failed => 0.0,
        };
        let points = self.points();
        let limits = self.estimates.limits();
        learn(
            limits,
            &mut self.cells[arm * points..][..points],
            &pulled,
            reward,
        );
        learn(limits, &mut self.prior.pool, &pulled, reward);
        self.has_ended |= pulled.ended.is_some();
        let granted = |level: &&usize| limits[**level] <= pulled.granted;
        let granted = self.levels.iter().take_while(granted).count();
        self.climbed = self.climbed.max(granted);
        self.runs += 1;
        if self.runs >= self.next_fit {
            self.fit();
        } else {
            self.promise[arm] = self.most(arm);
        }
    }

    fn answer(&self, at: Option<Limit>) -> Option<Recommendation> {
        self.estimates.answer(at, self.parameters.recommend)
    }

    fn arms_added(&mut self, problem: &Problem) -> bool {
        let more = problem.arms.saturating_sub(self.estimates.arms());
        self.estimates.add_arms(more);
        let arms = self.estimates.arms();
        self.cells.resize(arms * self.points(), Cell::default());
        for arm in self.promise.len()..arms {
            self.promise.push(self.most(arm));
        }
        true
    }

    fn wanted_arms(&self) -> Option<usize> {
        let (arms, wanted) = (self.estimates.arms(), self.tried + RESERVE);
        let enough = arms + arms.div_ceil(10).min(RESERVE);
        (wanted >= enough).then_some(wanted)
    }

    fn best_arms(&self, count: usize) -> Vec<ArmId> {
        let is_known = |arm: &usize| self.estimates.arm_count(*arm).observed > 0;
        let mut arms: Vec<usize> = (0..self.promise.len()).filter(is_known).collect();
        let by_promise =
            |a: &usize, b: &usize| self.promise[*b].total_cmp(&self.promise[*a]).then(a.cmp(b));
        if count < arms.len() {
            arms.select_nth_unstable_by(count, by_promise);
            arms.truncate(count);
        }
        arms.sort_unstable_by(by_promise);
        arms.into_iter().map(ArmId::from_index).collect()
    }

    fn explain(&self) -> Explanation {
        self.last.explain(|pair, draw| self.weighed(pair, draw))
    }
}
