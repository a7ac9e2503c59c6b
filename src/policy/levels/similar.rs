//! What parameters say about arms: prior means of an arm's effects from those of similar arms.
//!
//! The effects of an arm are taken as those of its family, the arms with similar parameters, plus its own. Families are the leaves
//! of a forest over the parameters; what a family suggests for an arm comes from the other arms in it ([`LeafPool`]). The part of the
//! variance that lies between families is the one with which the suggestions fit the runs of all arms best. If parameters say
//! nothing, that part is 0, and so are the prior means.

use std::sync::Arc;

use super::arm::Arm;
use super::belief::{Belief, MOST, Matrix, Vector, prior, updated};
use super::fit::{Scatter, scaled};
use crate::policy::leaf_pool::LeafPool;
use crate::space::Space;

/// Fewer arms than this say nothing about others.
const FEWEST_ARMS: usize = 20;
/// The forest is grown again whenever runs have grown by this part.
const REGROW: f64 = 0.25;
/// The parts of the variance between families that are compared.
const PARTS: [f64; 5] = [0.0, 0.25, 0.5, 0.75, 0.9];

/// Suggests prior means, again and again.
#[derive(Debug)]
pub(super) struct Similar {
    space: Arc<Space>,
    next: u64,
    /// Covariance of effects if nothing is known of parameters.
    covariance: Matrix,
}

impl Similar {
    /// None where arms have no parameters.
    pub(super) fn new(space: Option<&Arc<Space>>) -> Option<Self> {
        let space = space.filter(|space| !space.parameters().is_empty())?;
        Some(Self {
            space: Arc::clone(space),
            next: 1,
            covariance: [[0.0; MOST]; MOST],
        })
    }

    /// Gives all arms their prior means, if it is time for that.
    pub(super) fn suggest(&mut self, belief: &mut Belief, runs: u64) {
        if runs < self.next {
            return;
        }
        self.next = runs + ((REGROW * runs as f64) as u64).max(1);
        let has_data = |arm: &u32| belief.arms[*arm as usize].has_data();
        let arms: Vec<u32> = (0..belief.arms.len() as u32).collect();
        let seen: Vec<u32> = arms.iter().copied().filter(has_data).collect();
        if seen.len() < FEWEST_ARMS {
            return;
        }
        let worth = self.fit(belief, &seen);
        let Some(pool) = LeafPool::grow(&self.space, &arms, &seen, worth, runs) else {
            return;
        };
        let levels = belief.levels;
        let own = |arm: &Arm, level: usize| -> [f64; 2] {
            let precise = arm.seen[level].map(|(seen, variance)| {
                let precision = 1.0 / (variance + 0.5 * self.covariance[level][level]);
                [precision * seen, precision]
            });
            precise.unwrap_or_default()
        };
        let all_levels = |arm: &Arm| (0..levels).flat_map(|level| own(arm, level)).collect();
        let stats: Vec<Vec<f64>> = belief.arms.iter().map(all_levels).collect();
        let families = pool.pooled(&stats);
        // What all arms have in common says nothing about one of them.
        let mean = |of: &[f64], level: usize| of[2 * level] / of[2 * level + 1];
        let all = stats.iter().fold(vec![0.0; 2 * levels], |sum, of_arm| {
            sum.iter().zip(of_arm).map(|(a, b)| a + b).collect()
        });
        let suggested = |part: f64, family: &[f64]| -> Vector {
            let seen = |level: usize| {
                let precision = family[2 * level + 1];
                (precision > 1e-9)
                    .then(|| (mean(family, level) - mean(&all, level), 1.0 / precision))
            };
            updated([0.0; MOST], scaled(&self.covariance, part), levels, seen).0
        };
        let likelihood = |part: f64| -> f64 {
            let of_arm = |arm: &u32| {
                let place = *arm as usize;
                let seen = |level| {
                    let (seen, variance) = belief.arms[place].seen[level]?;
                    Some((seen - mean(&all, level), variance))
                };
                updated(
                    suggested(part, &families[place]),
                    self.covariance,
                    levels,
                    seen,
                )
                .2
            };
            seen.iter().map(of_arm).sum()
        };
        let likelihoods = PARTS.map(|part| (likelihood(part), part));
        let most_likely = likelihoods.into_iter().max_by(|a, b| a.0.total_cmp(&b.0));
        let part = most_likely.map_or(0.0, |(_, part)| part);
        let expected: Vec<Vector> = families
            .iter()
            .map(|family| suggested(part, family))
            .collect();
        for (arm, expected) in belief.arms.iter_mut().zip(expected) {
            arm.expected = expected;
        }
    }

    /// Fits the covariance without parameters, and returns what every arm is worth by its own runs; 0 without any.
    fn fit(&mut self, belief: &Belief, seen: &[u32]) -> Vec<f64> {
        let mut worth = vec![0.0; belief.arms.len()];
        self.covariance = prior(&belief.common.scale);
        for _ in 0..2 {
            let mut scatter = Scatter::new(&prior(&belief.common.scale));
            for place in seen {
                let arm = &belief.arms[*place as usize];
                let of_arm = |level: usize| arm.seen[level];
                let (effects, left, _) =
                    updated([0.0; MOST], self.covariance, belief.levels, of_arm);
                scatter.add(&effects, &left);
                worth[*place as usize] = effects.iter().sum();
            }
            self.covariance = scatter.mean();
        }
        worth
    }
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_pcg::Pcg64Mcg;

    use super::super::arm::Shown;
    use super::*;
    use crate::space::{Parameter, Value};

    /// A hundred arms, the first eighty of them run on ten instances; each ends in the first of two levels with its chance.
    fn played(chance: impl Fn(usize) -> f64) -> Belief {
        let mut rng = Pcg64Mcg::seed_from_u64(7);
        let mut belief = Belief::new(100, 2, 10);
        for arm in 0..80 {
            for position in 0..10 {
                let shown = if rng.random_bool(chance(arm)) {
                    Shown::Ended {
                        level: 0,
                        gain: 0.9,
                    }
                } else {
                    Shown::Outlived {
                        levels: 2,
                        assumed: 2,
                    }
                };
                belief.learn(arm, position, shown);
            }
        }
        belief.fit();
        let values = |count: usize| {
            (0..count)
                .map(|value| Value::Number(value as f64))
                .collect()
        };
        let parameters = vec![
            Parameter::new("a", values(10)),
            Parameter::new("b", values(10)),
        ];
        let space = Arc::new(Space::grid(parameters, &[], &[]).unwrap());
        Similar::new(Some(&space))
            .unwrap()
            .suggest(&mut belief, 800);
        belief.fit();
        belief
    }

    #[test]
    fn arms_that_never_ran_are_expected_to_be_like_similar_ones() {
        // The second parameter decides.
        let belief = played(|arm| if arm % 10 < 5 { 0.9 } else { 0.2 });
        for arm in 80..100 {
            let mean = belief.arms[arm].brings.mean;
            assert_eq!(arm % 10 < 5, mean > 0.5, "arm {arm}: {mean}");
        }
    }

    #[test]
    fn parameters_that_say_nothing_change_nothing() {
        let mut rng = Pcg64Mcg::seed_from_u64(8);
        let chances: Vec<f64> = (0..80).map(|_| rng.random()).collect();
        let belief = played(|arm| chances[arm]);
        let means = || (80..100).map(|arm| belief.arms[arm].brings.mean);
        let between = means().fold(0.0, f64::max) - means().fold(1.0, f64::min);
        assert!(between < 0.05, "{between}");
    }
}
