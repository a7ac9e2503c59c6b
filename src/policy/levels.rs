//! The default policy: starts with short limits, gives all arms the same instances, and learns how far to trust short limits.
//!
//! With instances ([`staged`]) it looks for the arm that is best at the largest limit. *Continuous halving*: rungs at
//! consecutive levels of the limit, each with fewer arms than the one below; the rung that has had the least consumption
//! plays, and in it the arm that has met the fewest instances. All arms meet the instances in one sequence. Rungs rise with the
//! square root of what was spent, so no budget needs to be known, and once the largest limit is reached they close from below: in
//! the end every arm that can still be best has met every instance, and the answer is exact. Arms are ranked by the
//! posterior means of a linear model of what each level changes ([`belief`]). With many arms and a small budget not all of them
//! join ([`joining`]). A falling share of the consumption goes to Thompson draws from it. Instances that no arm solves are left
//! out, and arms that cannot catch up are dropped.
//!
//! Without instances ([`pairs`]) a run tells about the pair alone, and the gain of every pull counts: Thompson sampling over
//! pairs with priors pooled from all arms.
//!
//! Either way the first pulls climb through the limits until something ends, so the scale of limits need not be known.

mod arm;
mod belief;
mod fit;
mod joining;
mod pairs;
mod pooled;
mod prior;
mod rungs;
mod sequence;
mod similar;
mod staged;
mod swift;
#[cfg(test)]
mod tests;
mod turn;

use rand::Rng;

use self::pairs::Pairs;
use self::staged::Staged;
use super::recommendation::Recommend;
use super::{Explanation, Options, Policy, PolicyParameters, Problem, Recommendation};
use crate::round::{ArmId, Limit, Observation, Pull, Round};

/// Name in scenarios and on the command line.
pub const NAME: &str = "levels";

/// Its parameters.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Parameters {
    /// How the pair is picked from the estimates; with instances, the arm by the lower bound of what it is predicted to bring, or by
    /// the mean.
    pub recommend: Recommend,
}

impl PolicyParameters for Parameters {
    fn read(options: &mut Options) -> Self {
        Self {
            recommend: options.word("recommend", &Recommend::WORDS),
        }
    }

    fn chooses_instances(&self) -> bool {
        true
    }

    fn takes_more_arms(&self) -> bool {
        true
    }
}

/// The policy at work: with instances, or without.
#[derive(Debug)]
pub(super) enum Levels {
    Staged(Box<Staged>),
    Pairs(Box<Pairs>),
}

/// Builds it.
pub(super) fn new(parameters: &Parameters, problem: &Problem) -> Levels {
    if problem.instances > 0 {
        Levels::Staged(Box::new(Staged::new(parameters, problem)))
    } else {
        Levels::Pairs(Box::new(Pairs::new(parameters, problem)))
    }
}

/// From one level to the next, limits grow at least by this factor.
const STEP: f64 = 2.5;

/// The places of the limits that serve as levels, ascending: the largest one, and down from there.
fn levels_of(limits: &[f64]) -> Vec<usize> {
    let mut levels = vec![limits.len() - 1];
    for (place, limit) in limits.iter().enumerate().rev() {
        let above = limits[levels[levels.len() - 1]];
        if limit * STEP <= above && levels.len() < belief::MOST {
            levels.push(place);
        }
    }
    levels.reverse();
    levels
}

impl Levels {
    fn search(&self) -> &dyn Policy {
        match self {
            Self::Staged(search) => search.as_ref(),
            Self::Pairs(search) => search.as_ref(),
        }
    }

    fn search_mut(&mut self) -> &mut dyn Policy {
        match self {
            Self::Staged(search) => search.as_mut(),
            Self::Pairs(search) => search.as_mut(),
        }
    }
}

impl Policy for Levels {
    fn choose(&mut self, round: Round, rng: &mut dyn Rng) -> Pull {
        self.search_mut().choose(round, rng)
    }

    fn launched(&mut self, round: Round, pull: Pull) {
        self.search_mut().launched(round, pull);
    }

    fn observe(&mut self, round: Round, seen: Observation, rng: &mut dyn Rng) {
        self.search_mut().observe(round, seen, rng);
    }

    fn answer(&self, at: Option<Limit>) -> Option<Recommendation> {
        self.search().answer(at)
    }

    fn arms_added(&mut self, problem: &Problem) -> bool {
        self.search_mut().arms_added(problem)
    }

    fn wanted_arms(&self) -> Option<usize> {
        self.search().wanted_arms()
    }

    fn best_arms(&self, count: usize) -> Vec<ArmId> {
        self.search().best_arms(count)
    }

    fn explain(&self) -> Explanation {
        self.search().explain()
    }
}
