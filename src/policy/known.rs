//! What is known of every pair, for tables and reports.

use super::estimate::Estimates;
use super::{Problem, Recommend, Recommendation, Survival};
use crate::round::{ArmId, Observation, Round};

/// The estimates all policies share, on a grid of the onlooker's choice.
#[derive(Debug, Clone)]
pub struct Known {
    estimates: Estimates,
}

impl Known {
    /// Nothing yet.
    pub fn new(problem: &Problem, survival: Survival) -> Self {
        Self {
            estimates: Estimates::new(problem, survival),
        }
    }

    /// Learns from one finished, censored or failed pull.
    pub fn observe(&mut self, round: Round, seen: &Observation) {
        // An open space has more arms by and by.
        let arms = seen.pull().arm.index() + 1;
        self.estimates
            .add_arms(arms.saturating_sub(self.estimates.arms()));
        self.estimates.observe(round, seen);
    }

    /// The limits it has estimates for, ascending.
    pub fn limits(&self) -> &[f64] {
        self.estimates.limits()
    }

    /// Where this limit stands among them.
    pub fn place(&self, limit: f64) -> Option<usize> {
        self.limits()
            .binary_search_by(|other| other.total_cmp(&limit))
            .ok()
    }

    /// What is known of an arm at one of the limits; none where no pull reached it.
    pub fn at(&self, arm: ArmId, limit: usize) -> Option<Recommendation> {
        if arm.index() >= self.estimates.arms() {
            return None;
        }
        let stat = self.estimates.of_arm(arm.index()).get(limit)?;
        (stat.count > 0).then(|| self.estimates.recommendation(arm.index(), limit))
    }

    /// The limit to use an arm with, as if one more run had earned the penalty; none if it was never pulled.
    pub fn best_of(&self, arm: ArmId) -> Option<usize> {
        let (arm, points) = (arm.index(), self.limits().len());
        if arm >= self.estimates.arms() {
            return None;
        }
        let best = self.estimates.best_of(arm, 0..points, Recommend::Safe);
        best.map(|(_, k)| k)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::round::{Limit, LimitGrid, Price, Pull};

    #[test]
    fn onlookers_see_what_policies_see() {
        let price = Price::new("x", "10 * x", 2.0).unwrap();
        let limits = LimitGrid::new([1.0, 2.0]).unwrap();
        let problem = Problem::new(2, limits, price).unwrap();
        let mut known = Known::new(&problem, Survival::Restricted);
        let arm = ArmId::from_index(1);
        assert_eq!((known.best_of(arm), known.at(arm, 0)), (None, None));
        for (round, consumption) in [(1, 0.5), (2, 1.5)] {
            let pull = Pull::new(arm, Limit::new(2.0).unwrap());
            let seen = Observation::ended(pull, 0.9, consumption).unwrap();
            known.observe(Round(round), &seen);
        }
        let short = known.at(arm, 0).unwrap();
        assert_eq!((short.pulls, short.censored), (2, 0.5));
        assert_eq!(known.at(arm, 1).unwrap().censored, 0.0);
        assert_eq!(known.best_of(arm), Some(1));
        assert_eq!(known.place(2.0), Some(1));
        assert_eq!(known.place(1.5), None);
        assert_eq!(known.at(arm, 7), None);
    }
}
