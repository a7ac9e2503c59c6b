//! UCB1 over arms, always at the largest limit: what people do today when they tune under a fixed time-out.

use rand::Rng;

use super::estimate::Estimates;
use super::explanation::Remembered;
use super::rcucb::scale;
pub use super::recommendation::OnlyRecommend as Parameters;
use super::survival::Survival;
use super::tournament::{Line, Tournament};
use super::ucb::line;
use super::{Explanation, Policy, Problem, Recommendation};
use crate::round::{Limit, Observation, Pull, Round};

/// Name in scenarios and on the command line.
pub const NAME: &str = "fixed";

/// UCB1 at work.
#[derive(Debug)]
pub struct Fixed {
    parameters: Parameters,
    /// On a grid of one limit, the largest.
    estimates: Estimates,
    /// The index of every arm.
    lines: Vec<Line>,
    tournament: Tournament,
    last: Remembered,
}

/// Builds the policy.
pub fn new(parameters: &Parameters, problem: &Problem) -> Fixed {
    let mut problem = problem.clone();
    problem.limits = problem.limits.only_max();
    Fixed {
        estimates: Estimates::new(&problem, Survival::Restricted),
        lines: vec![Line::FIRST; problem.arms],
        tournament: Tournament::new(problem.arms, scale(1.0, u64::MAX)),
        last: Remembered::default(),
        parameters: parameters.clone(),
    }
}

impl Fixed {
    /// Computes the line of an arm again.
    fn redraw(&mut self, arm: usize) {
        let penalty = self.estimates.penalties()[0];
        let standing = self.estimates.standings(arm).next();
        self.lines[arm] = standing.map_or(Line::FIRST, |standing| line(standing, penalty));
        self.tournament.touch(arm);
    }
}

impl Policy for Fixed {
    fn choose(&mut self, _: Round, _: &mut dyn Rng) -> Pull {
        let s = scale(1.0, self.estimates.t());
        let (arm, k) = self.tournament.best(s, |arm| &self.lines[arm..=arm]);
        let stat = &self.estimates.of_arm(arm)[k];
        self.last = Remembered::choice((arm, k), stat, s);
        self.estimates.pull(arm, k)
    }

    fn launched(&mut self, round: Round, pull: Pull) {
        let arm = self.estimates.launched(round, pull);
        self.redraw(arm);
    }

    fn observe(&mut self, round: Round, seen: Observation, _: &mut dyn Rng) {
        let (arm, _) = self.estimates.observe(round, &seen);
        self.redraw(arm);
    }

    fn answer(&self, at: Option<Limit>) -> Option<Recommendation> {
        self.estimates.answer(at, self.parameters.recommend)
    }

    fn explain(&self) -> Explanation {
        self.last.explain(
            self.estimates.arms(),
            |arm| &self.lines[arm..=arm],
            |arm, k| self.estimates.weighed(arm, k, f64::NAN),
        )
    }
}
