//! z-RCUCB: RCUCB that finds its limits by zooming, the paper's Algorithm `algo_z_RCUCB`.
//!
//! Every arm has a grid of its own. A point stands for the limits down to the next smaller one; once that cell is
//! larger than the confidence width of its point, it is cut into m, and the arm's history is entered again.

mod grid;

use rand::Rng;
use serde::Serialize;

use self::grid::ArmGrid;
use super::estimate::Pending;
use super::explanation::Remembered;
use super::rcucb::Width;
use super::recommendation::{Recommend, interval};
use super::survival::Survival;
use super::tournament::Tournament;
use super::{Explanation, Options, Policy, PolicyParameters, Problem, Recommendation, Weighed};
use crate::round::{ArmId, Limit, Observation, Price, Pull, Round};

/// Name in scenarios and on the command line.
pub const NAME: &str = "z-rcucb";

/// How z-RCUCB picks its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum GridRecommend {
    /// As if one more run had earned the penalty.
    Safe,
    /// The largest nu-hat.
    Best,
    /// The smallest cell, as printed; of equals the largest nu-hat.
    Finest,
}

/// The parameters of z-RCUCB.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Parameters {
    /// How much to explore; the guarantee needs more than 1.
    pub alpha: f64,
    /// Into how many parts a cell is cut.
    pub m: u64,
    /// Confidence level.
    pub delta: f64,
    /// The number of rounds, if known; otherwise the next power of two of the rounds so far.
    pub horizon: Option<u64>,
    /// The confidence width.
    pub width: Width,
    /// The survival estimate.
    pub survival: Survival,
    /// How the answer is picked.
    pub recommend: GridRecommend,
}

impl PolicyParameters for Parameters {
    fn read(options: &mut Options) -> Self {
        let answers = [
            ("safe", GridRecommend::Safe),
            ("best", GridRecommend::Best),
            ("finest", GridRecommend::Finest),
        ];
        Self {
            alpha: options.positive("alpha", 1.0),
            // Every cut adds m - 1 points to an arm.
            m: options.number("m", 2.0, "a whole number from 2 to 1000", |m| {
                m.fract() == 0.0 && (2.0..=1000.0).contains(&m)
            }) as u64,
            delta: options.number("delta", 0.1, "a number between 0 and 1", |delta| {
                delta > 0.0 && delta < 1.0
            }),
            horizon: options.whole("horizon", 1),
            width: options.word("width", &Width::WORDS),
            survival: options.word("survival", &Survival::WORDS),
            recommend: options.word("recommend", &answers),
        }
    }

    fn finds_limits(&self) -> bool {
        true
    }

    fn survival(&self) -> Survival {
        self.survival
    }

    fn warning(&self) -> Option<String> {
        (self.alpha <= 1.0).then(|| {
            format!(
                "policy `{NAME}`: the paper's guarantee needs `alpha` above 1; {} explores less",
                self.alpha
            )
        })
    }
}

impl Parameters {
    /// What widths are multiplied by: sqrt(2 alpha ln(n T^2 / delta)).
    ///
    /// Departure: with an unknown horizon T doubles, and all data are kept; restarting, as the doubling trick has
    /// it, would never refine.
    fn scale(&self, arms: usize, t: u64) -> f64 {
        let doubled = t.checked_next_power_of_two().unwrap_or(t);
        let horizon = self
            .horizon
            .filter(|&horizon| horizon >= t)
            .unwrap_or(doubled) as f64;
        let logarithm = (arms as f64).ln() + 2.0 * horizon.ln() - self.delta.ln();
        (2.0 * self.alpha * logarithm).sqrt()
    }
}

/// z-RCUCB at work.
#[derive(Debug)]
pub struct ZRcucb {
    parameters: Parameters,
    price: Price,
    grids: Vec<ArmGrid>,
    pending: Pending,
    observed: u64,
    tournament: Tournament,
    last: Remembered,
}

/// Builds the policy. Of the problem's limits it takes the largest.
pub fn new(parameters: &Parameters, problem: &Problem) -> ZRcucb {
    let max = problem.limits.max();
    let mut first = problem.price.penalty_jumps(max);
    first.push(max);
    let grid = ArmGrid::new(&first, &problem.price, parameters);
    ZRcucb {
        price: problem.price.clone(),
        grids: vec![grid; problem.arms],
        pending: Pending::default(),
        observed: 0,
        tournament: Tournament::new(problem.arms, parameters.scale(problem.arms, u64::MAX)),
        last: Remembered::default(),
        parameters: parameters.clone(),
    }
}

impl ZRcucb {
    fn s(&self) -> f64 {
        self.parameters.scale(
            self.grids.len(),
            self.observed + self.pending.len() as u64 + 1,
        )
    }

    fn pull(&self, arm: usize, k: usize) -> Pull {
        Pull::new(ArmId::from_index(arm), self.grids[arm].limit(k))
    }

    /// The limits of an arm as they have been refined so far, ascending.
    pub fn limits_of(&self, arm: ArmId) -> Vec<Limit> {
        self.grids[arm.index()].limits().to_vec()
    }

    fn weighed(&self, arm: usize, k: usize) -> Weighed {
        let grid = &self.grids[arm];
        let stat = grid.stat(k);
        Weighed {
            pull: self.pull(arm, k),
            compared_at: grid.limits()[k],
            index: f64::NAN,
            mean: grid.gain(k),
            width: f64::NAN,
            interval: interval(stat, grid.gain(k), grid.penalty(k)),
            refinement: grid.refinement(k),
            count: u64::from(stat.count),
            arm_count: u64::from(grid.count().observed),
            pending: u64::from(stat.pending),
            survival: grid.survival(k),
        }
    }
}

impl Policy for ZRcucb {
    fn choose(&mut self, _: Round, _: &mut dyn Rng) -> Pull {
        let s = self.s();
        let (arm, k) = self.tournament.best(s, |arm| self.grids[arm].lines());
        let stat = self.grids[arm].stat(k);
        self.last = Remembered::choice((arm, k), stat, s);
        self.pull(arm, k)
    }

    fn launched(&mut self, round: Round, pull: Pull) {
        if self.pending.insert(round, pull) {
            let arm = pull.arm.index();
            self.grids[arm].launched(pull.limit);
            self.tournament.touch(arm);
        }
    }

    fn observe(&mut self, round: Round, seen: Observation, _: &mut dyn Rng) {
        let arm = seen.pull().arm.index();
        if let Some(pull) = self.pending.remove(round) {
            self.grids[pull.arm.index()].landed(pull.limit);
            self.tournament.touch(pull.arm.index());
        }
        self.observed += 1;
        let s = self.s();
        self.grids[arm].observe(&seen, &self.price, s);
        self.tournament.touch(arm);
    }

    /// Every arm has a grid of its own, but the largest limit is on all of them.
    fn answer(&self, at: Option<Limit>) -> Option<Recommendation> {
        let Some(limit) = at else {
            return self.best_where(|_| true);
        };
        let reached = || {
            let grids = self.grids.iter();
            grids.flat_map(|grid| {
                let limits = grid.limits().iter().enumerate();
                let reached = limits.filter(|(k, _)| grid.stat(*k).has_reward());
                reached.map(|(_, own)| *own)
            })
        };
        let below = reached()
            .filter(|own| *own <= limit)
            .max_by(|a, b| a.get().total_cmp(&b.get()));
        let above = || reached().min_by(|a, b| a.get().total_cmp(&b.get()));
        let nearest = below.or_else(above)?;
        self.best_where(|own| own == nearest)
    }

    fn limits_of(&self, arm: ArmId) -> Option<Vec<Limit>> {
        Some(self.limits_of(arm))
    }

    fn explain(&self) -> Explanation {
        self.last.explain(
            self.grids.len(),
            |arm| self.grids[arm].lines(),
            |arm, k| self.weighed(arm, k),
        )
    }
}

impl ZRcucb {
    /// The answer among the pairs at these limits.
    fn best_where(&self, is_wanted: impl Fn(Limit) -> bool) -> Option<Recommendation> {
        let mut best: Option<((f64, f64), usize, usize)> = None;
        for (arm, grid) in self.grids.iter().enumerate() {
            for (k, &limit) in grid.limits().iter().enumerate() {
                let (stat, gain) = (grid.stat(k), grid.gain(k));
                if !stat.has_reward() || !is_wanted(limit) {
                    continue;
                }
                let value = match self.parameters.recommend {
                    GridRecommend::Safe => (
                        Recommend::Safe.value(stat.count, gain, grid.penalty(k)),
                        0.0,
                    ),
                    GridRecommend::Best => (gain, 0.0),
                    GridRecommend::Finest => (-grid.refinement(k), gain),
                };
                if best.is_none_or(|(highest, ..)| value > highest) {
                    best = Some((value, arm, k));
                }
            }
        }
        let (_, arm, k) = best?;
        let (grid, stat) = (&self.grids[arm], self.grids[arm].stat(k));
        Some(Recommendation {
            pull: self.pull(arm, k),
            gain: grid.gain(k),
            interval: interval(stat, grid.gain(k), grid.penalty(k)),
            pulls: u64::from(stat.count),
            censored: grid.survival(k),
            is_predicted: false,
        })
    }
}

#[cfg(test)]
mod tests;
