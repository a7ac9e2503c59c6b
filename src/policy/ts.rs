//! Thompson sampling over pairs, as printed in the paper's appendix "Compared Algorithms".
//!
//! A Beta(1 + S, 1 + F) per pair; an observation is one Bernoulli trial, with the rescaled gain as its chance, for
//! *every* limit it says something about, each with the gain that limit would have brought (eq. `def_pseudo_reward_TS`).

use rand::{Rng, RngExt};
use statrs::distribution::ContinuousCDF;
use statrs::statistics::Distribution;

use super::beta::{Beta, own_rng};
use super::estimate::Estimates;
use super::explanation::Last;
pub use super::recommendation::OnlyRecommend as Parameters;
use super::survival::Survival;
use super::ucb::rescaled;
use super::{Explanation, Policy, Problem, Recommendation, Weighed, Why};
use crate::round::{Limit, Observation, Pull, Round};

/// Name in scenarios and on the command line.
pub const NAME: &str = "ts";

/// What is believed of one pair.
#[derive(Debug, Clone, Copy)]
struct Belief {
    successes: f64,
    failures: f64,
    beta: Beta,
    /// Whether the opening has played it.
    is_played: bool,
}

/// Thompson sampling at work.
#[derive(Debug)]
pub struct Ts {
    parameters: Parameters,
    /// For pending counts and the recommendation.
    estimates: Estimates,
    beliefs: Vec<Belief>,
    /// All pairs before this one have been opened.
    opened: usize,
    last: Last,
}

/// Builds the policy.
pub fn new(parameters: &Parameters, problem: &Problem) -> Ts {
    let unknown = Belief {
        successes: 0.0,
        failures: 0.0,
        beta: Beta::new(1.0, 1.0),
        is_played: false,
    };
    Ts {
        estimates: Estimates::new(problem, Survival::Restricted),
        beliefs: vec![unknown; problem.arms * problem.limits.len()],
        opened: 0,
        last: Last::NOTHING,
        parameters: parameters.clone(),
    }
}

impl Ts {
    /// The next pair of the opening: every pair once, arm by arm, limits ascending; arms already observed at or above
    /// the largest limit are left out.
    fn opening(&mut self) -> Option<usize> {
        let points = self.estimates.limits().len();
        while self.opened < self.beliefs.len() {
            let of_arm = self.estimates.of_arm(self.opened / points);
            if !self.beliefs[self.opened].is_played && of_arm[points - 1].count == 0 {
                return Some(self.opened);
            }
            self.opened += 1;
        }
        None
    }

    fn mark_played(&mut self, pull: Pull) {
        let limits = self.estimates.limits();
        if let Some(k) = limits.iter().position(|&limit| limit == pull.limit.get()) {
            let pair = pull.arm.index() * limits.len() + k;
            self.beliefs[pair].is_played = true;
        }
    }

    /// One draw for every pair; those only pending are left out unless nothing else is left.
    fn draw(&mut self, rng: &mut dyn Rng) -> Last {
        let mut rng = own_rng(rng);
        let points = self.estimates.limits().len();
        let mut last = Last::by(Why::Sample);
        for arm in 0..self.estimates.arms() {
            for (k, stat) in self.estimates.of_arm(arm).iter().enumerate() {
                let pair = arm * points + k;
                let belief = &self.beliefs[pair];
                if stat.pending == 0 {
                    last.enter(pair, belief.beta.draw(&mut rng));
                } else if stat.count > 0 {
                    let (a, b) = (1.0 + belief.successes, 1.0 + belief.failures);
                    let by = (a + b + f64::from(stat.pending)) / (a + b);
                    last.enter(pair, Beta::narrowed(a, b, by).draw(&mut rng));
                }
            }
        }
        last
    }
}

impl Ts {
    /// A pair as it is believed, on the scale of gains; before draws are compared, as it is estimated.
    fn weighed(&self, pair: usize, draw: f64) -> Weighed {
        let estimated = self.estimates.pair(pair, draw);
        if self.last.why != Why::Sample {
            return estimated;
        }
        let belief = &self.beliefs[pair];
        let beta = statrs::distribution::Beta::new(1.0 + belief.successes, 1.0 + belief.failures)
            .expect("both are at least 1");
        let penalties = self.estimates.penalties();
        let largest = penalties[penalties.len() - 1];
        let gain = |share: f64| share * (1.0 + largest) - largest;
        let (low, high) = (gain(beta.inverse_cdf(0.025)), gain(beta.inverse_cdf(0.975)));
        Weighed {
            index: gain(draw),
            mean: gain(beta.mean().unwrap_or(0.5)),
            width: (high - low) / 2.0,
            interval: (low, high),
            ..estimated
        }
    }
}

impl Policy for Ts {
    fn choose(&mut self, _: Round, rng: &mut dyn Rng) -> Pull {
        self.last = match self.opening() {
            Some(pair) => Last::plain(Why::Opening, pair),
            None => self.draw(rng),
        };
        let points = self.estimates.limits().len();
        let (pair, _) = *self.last.chosen.get_or_insert_with(|| {
            self.last.why = Why::Chance;
            (rng.random_range(0..self.beliefs.len()), f64::NAN)
        });
        self.estimates.pull(pair / points, pair % points)
    }

    fn launched(&mut self, round: Round, pull: Pull) {
        self.estimates.launched(round, pull);
        self.mark_played(pull);
    }

    fn observe(&mut self, round: Round, seen: Observation, rng: &mut dyn Rng) {
        let (arm, pulled) = self.estimates.observe(round, &seen);
        self.mark_played(seen.pull());
        let (limits, penalties) = (self.estimates.limits(), self.estimates.penalties());
        let largest = penalties[penalties.len() - 1];
        let beliefs = &mut self.beliefs[arm * limits.len()..][..limits.len()];
        for ((belief, &limit), &penalty) in beliefs.iter_mut().zip(limits).zip(penalties) {
            if limit > pulled.reach {
                break;
            }
            let gain = match pulled.ended {
                Some(ended) if ended.consumption <= limit => ended.net,
                _ => -penalty,
            };
            if rng.random_bool(rescaled(gain, largest).clamp(0.0, 1.0)) {
                belief.successes += 1.0;
            } else {
                belief.failures += 1.0;
            }
            belief.beta = Beta::new(1.0 + belief.successes, 1.0 + belief.failures);
        }
    }

    fn answer(&self, at: Option<Limit>) -> Option<Recommendation> {
        self.estimates.answer(at, self.parameters.recommend)
    }

    fn explain(&self) -> Explanation {
        self.last.explain(|pair, draw| self.weighed(pair, draw))
    }
}
