//! Every pair with the same chance: the floor that anything clever must beat.

use rand::{Rng, RngExt};
use serde::Serialize;

use super::{Explanation, Options, Policy, Problem, Recommendation, Why};
use crate::round::{ArmId, Observation, Pull, Round};

/// As scenarios and the command line say it.
pub const NAME: &str = "uniform";

/// It has none.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Parameters {}

impl Parameters {
    /// Takes its options.
    pub fn read(_: &mut Options) -> Self {
        Self {}
    }
}

/// Plays any pair at random.
#[derive(Debug)]
pub struct Uniform {
    problem: Problem,
}

/// Puts it to work.
pub fn new(_: &Parameters, problem: &Problem) -> Uniform {
    Uniform {
        problem: problem.clone(),
    }
}

impl Policy for Uniform {
    fn choose(&mut self, _: Round, rng: &mut dyn Rng) -> Pull {
        let arm = ArmId::from_index(rng.random_range(0..self.problem.arms));
        let limits = self.problem.limits.as_slice();
        Pull::new(arm, limits[rng.random_range(0..limits.len())])
    }

    fn launched(&mut self, _: Round, _: Pull) {}

    fn observe(&mut self, _: Round, _: Observation, _: &mut dyn Rng) {}

    fn recommend(&self) -> Option<Recommendation> {
        None
    }

    fn explain(&self) -> Explanation {
        Explanation {
            why: Why::Chance,
            chosen: None,
            runner_up: None,
        }
    }
}
