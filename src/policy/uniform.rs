//! Every pair with the same chance: the floor that anything clever must beat.

use rand::{Rng, RngExt};
use serde::Serialize;

use super::estimate::Estimates;
use super::recommendation::Recommend;
use super::survival::Survival;
use super::{Explanation, Options, Policy, Problem, Recommendation, Why};
use crate::round::{Limit, Observation, Pull, Round};

/// As scenarios and the command line say it.
pub const NAME: &str = "uniform";

/// Its parameters.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Parameters {
    /// How the answer is picked.
    pub recommend: Recommend,
}

impl Parameters {
    /// Takes its options.
    pub fn read(options: &mut Options) -> Self {
        Self {
            recommend: options.word("recommend", &Recommend::WORDS),
        }
    }
}

/// Plays any pair at random.
#[derive(Debug)]
pub struct Uniform {
    parameters: Parameters,
    /// For the recommendation only.
    estimates: Estimates,
    last: Option<(usize, usize)>,
}

/// Puts it to work.
pub fn new(parameters: &Parameters, problem: &Problem) -> Uniform {
    let estimates = Estimates::new(problem, Survival::Restricted);
    Uniform {
        parameters: parameters.clone(),
        estimates,
        last: None,
    }
}

impl Policy for Uniform {
    fn choose(&mut self, _: Round, rng: &mut dyn Rng) -> Pull {
        let arm = rng.random_range(0..self.estimates.arms());
        let k = rng.random_range(0..self.estimates.limits().len());
        self.last = Some((arm, k));
        self.estimates.pull(arm, k)
    }

    fn launched(&mut self, round: Round, pull: Pull) {
        self.estimates.launched(round, pull);
    }

    fn observe(&mut self, round: Round, seen: Observation, _: &mut dyn Rng) {
        self.estimates.observe(round, &seen);
    }

    fn recommend(&self) -> Option<Recommendation> {
        self.estimates.recommend(self.parameters.recommend)
    }

    fn recommend_at(&self, limit: Limit) -> Option<Recommendation> {
        self.estimates
            .recommend_at(limit, self.parameters.recommend)
    }

    fn explain(&self) -> Explanation {
        let why = if self.last.is_some() {
            Why::Chance
        } else {
            Why::Nothing
        };
        let chosen = self
            .last
            .map(|(arm, k)| self.estimates.candidate(arm, k, f64::NAN));
        Explanation {
            why,
            chosen,
            runner_up: None,
        }
    }
}
