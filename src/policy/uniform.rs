//! Every pair with the same chance: the floor that anything clever must beat.

use rand::{Rng, RngExt};

use super::estimate::Estimates;
use super::explanation::Last;
pub use super::recommendation::OnlyRecommend as Parameters;
use super::survival::Survival;
use super::{Explanation, Policy, Problem, Recommendation, Why};
use crate::round::{Limit, Observation, Pull, Round};

/// Name in scenarios and on the command line.
pub const NAME: &str = "uniform";

/// Plays any pair at random.
#[derive(Debug)]
pub struct Uniform {
    parameters: Parameters,
    /// For the recommendation only.
    estimates: Estimates,
    last: Last,
}

/// Builds the policy.
pub fn new(parameters: &Parameters, problem: &Problem) -> Uniform {
    let estimates = Estimates::new(problem, Survival::Restricted);
    Uniform {
        parameters: parameters.clone(),
        estimates,
        last: Last::NOTHING,
    }
}

impl Policy for Uniform {
    fn choose(&mut self, _: Round, rng: &mut dyn Rng) -> Pull {
        let arm = rng.random_range(0..self.estimates.arms());
        let k = rng.random_range(0..self.estimates.limits().len());
        self.last = Last::plain(Why::Chance, arm * self.estimates.limits().len() + k);
        self.estimates.pull(arm, k)
    }

    fn launched(&mut self, round: Round, pull: Pull) {
        self.estimates.launched(round, pull);
    }

    fn observe(&mut self, round: Round, seen: Observation, _: &mut dyn Rng) {
        self.estimates.observe(round, &seen);
    }

    fn answer(&self, at: Option<Limit>) -> Option<Recommendation> {
        self.estimates.answer(at, self.parameters.recommend)
    }

    fn explain(&self) -> Explanation {
        self.last
            .explain(|pair, _| self.estimates.pair(pair, f64::NAN))
    }
}
