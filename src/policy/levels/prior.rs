//! What is expected of an arm without instances before its own runs: what all arms did, or what similar arms did, and how many runs
//! that counts for.
//!
//! Both are learned. Where arms are alike, the prior counts for many runs, and a few pulls of an arm are enough. Where they
//! differ, it counts for little. Similar arms replace the usual arm as far as that makes the runs of all arms more likely.

use statrs::function::gamma::ln_gamma;

use crate::policy::leaf_pool::LeafPool;
use crate::space::Space;

/// Fewer arms than this say nothing about others.
const FEWEST_ARMS: usize = 20;
/// Likelihoods are computed from no more arms than this.
const MOST_ARMS: usize = 500;
/// The parts of similar arms in what is expected that are compared.
const PARTS: [f64; 3] = [0.0, 0.5, 1.0];
/// What all arms did counts for so many runs in what similar arms did.
const SHRINK: f64 = 2.0;
/// The strengths in a hazard that are compared.
const STRENGTHS: [f64; 6] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0];
/// The strengths before anything is known. A hazard's is log-normal around this one, with a standard deviation of 1.
const USUAL: Strength = Strength {
    hazard: 8.0,
    reward: 4.0,
};
/// The limits of the strength in a mean reward.
const REWARDS: (f64, f64) = (0.25, 32.0);

/// Runs of an arm, or of all arms, in the cell between two neighbouring limits.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Cell {
    /// Running at the left end, observed at least to the right end.
    pub(super) at_risk: f64,
    /// Of these, the ones that ended inside.
    pub(super) ended: f64,
    /// Sums of their rewards, of the squares of these, and of their costs.
    pub(super) rewards: f64,
    pub(super) squares: f64,
    pub(super) costs: f64,
}

impl Cell {
    /// The chance to end inside and the mean reward of a run that does, with one run of either kind added.
    fn expected(&self) -> Expected {
        Expected {
            hazard: (1.0 + self.ended) / (2.0 + self.at_risk),
            reward: (1.0 + self.rewards) / (2.0 + self.ended),
        }
    }

    /// The variance of rewards, with the same runs added.
    fn variance(&self) -> f64 {
        let mean = self.expected().reward;
        ((1.0 + self.squares) / (2.0 + self.ended) - mean * mean).max(1e-12)
    }
}

/// What is expected of an arm in a cell before its own runs.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Expected {
    hazard: f64,
    reward: f64,
}

/// How many runs that counts for.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Strength {
    hazard: f64,
    reward: f64,
}

/// What is believed of an arm in a cell.
#[derive(Debug, Clone, Copy)]
pub(super) struct Posterior {
    /// Parameters of the Beta distribution of the hazard.
    pub(super) ends: (f64, f64),
    /// Mean and standard deviation of the mean reward.
    pub(super) reward: (f64, f64),
}

/// What is expected of every arm.
#[derive(Debug)]
pub(super) struct Prior {
    /// Runs of all arms, by cell.
    pub(super) pool: Vec<Cell>,
    /// What similar arms make of that, arm by arm; empty where they say nothing.
    similar: Vec<Expected>,
    strength: Strength,
}

impl Prior {
    pub(super) fn new(cells: usize) -> Self {
        Self {
            pool: vec![Cell::default(); cells],
            similar: vec![],
            strength: USUAL,
        }
    }

    fn expected(&self, arm: usize, k: usize) -> Expected {
        let similar = self.similar.get(arm * self.pool.len() + k);
        similar.copied().unwrap_or_else(|| self.pool[k].expected())
    }

    /// What is believed of an arm in a cell, given its own runs there. Pulls under way narrow it, and it is made as narrow as if
    /// everything had been seen `sure` times.
    pub(super) fn posterior(
        &self,
        arm: usize,
        k: usize,
        own: &Cell,
        pending: f64,
        sure: f64,
    ) -> Posterior {
        let (expected, strength) = (self.expected(arm, k), self.strength);
        let ends = strength.hazard * expected.hazard + own.ended;
        let all = strength.hazard + own.at_risk;
        let narrowed = sure * (all + pending) / all;
        let rewards = strength.reward + own.ended;
        let seen = sure * (rewards + pending * ends / all);
        Posterior {
            ends: (narrowed * ends, narrowed * (all - ends)),
            reward: (
                (strength.reward * expected.reward + own.rewards) / rewards,
                (self.pool[k].variance() / seen).sqrt(),
            ),
        }
    }

    /// Learns how much is to be expected of similar arms, and for how many runs it counts, from the cells of all arms. `worth` says
    /// how good each arm seems to be.
    pub(super) fn fit(&mut self, cells: &[Cell], worth: &[f64], space: Option<&Space>, seed: u64) {
        let points = self.pool.len();
        let own = |arm: usize| &cells[arm * points..][..points];
        let has_run = |arm: &usize| own(*arm).iter().any(|cell| cell.at_risk > 0.0);
        let seen: Vec<usize> = (0..worth.len()).filter(has_run).collect();
        self.strength.reward = reward_strength(seen.iter().map(|arm| own(*arm)));
        let families = space
            .filter(|space| seen.len() >= FEWEST_ARMS && !space.parameters().is_empty())
            .and_then(|space| families(space, cells, worth, &seen, points, seed));
        let judges: Vec<usize> = (seen.iter().copied())
            .step_by(seen.len().div_ceil(MOST_ARMS).max(1))
            .collect();
        let mut best = (f64::NEG_INFINITY, USUAL.hazard);
        let mut similar = vec![];
        for part in PARTS {
            let mixed = match &families {
                Some(families) if part > 0.0 => self.mixed(families, part),
                None if part > 0.0 => break,
                _ => vec![],
            };
            self.similar = mixed;
            let trials: Vec<(f64, Cell)> = judges
                .iter()
                .flat_map(|arm| {
                    own(*arm)
                        .iter()
                        .enumerate()
                        .map(move |(k, cell)| (*arm, k, *cell))
                })
                .filter(|(_, _, cell)| cell.at_risk > 0.0)
                .map(|(arm, k, cell)| (self.expected(arm, k).hazard, cell))
                .collect();
            let (likelihood, strength) = hazard_strength(&trials);
            if likelihood > best.0 {
                best = (likelihood, strength);
                similar = std::mem::take(&mut self.similar);
            }
        }
        self.similar = similar;
        self.strength.hazard = best.1;
    }

    /// What is expected if similar arms have this part in it.
    fn mixed(&self, families: &[Cell], part: f64) -> Vec<Expected> {
        let usual: Vec<Expected> = self.pool.iter().map(Cell::expected).collect();
        let mix = |(family, usual): (&Cell, &Expected)| {
            let hazard = (family.ended + SHRINK * usual.hazard) / (family.at_risk + SHRINK);
            let reward = (family.rewards + SHRINK * usual.reward) / (family.ended + SHRINK);
            Expected {
                hazard: (1.0 - part) * usual.hazard + part * hazard,
                reward: (1.0 - part) * usual.reward + part * reward,
            }
        };
        families.iter().zip(usual.iter().cycle()).map(mix).collect()
    }
}

/// The runs of other arms with similar parameters, by arm and cell.
fn families(
    space: &Space,
    cells: &[Cell],
    worth: &[f64],
    seen: &[usize],
    points: usize,
    seed: u64,
) -> Option<Vec<Cell>> {
    let arms: Vec<u32> = (0..worth.len() as u32).collect();
    let seen: Vec<u32> = seen.iter().map(|arm| *arm as u32).collect();
    let pool = LeafPool::grow(space, &arms, &seen, worth.to_vec(), seed)?;
    let of_arm = |arm: &[Cell]| -> Vec<f64> {
        let numbers = |cell: &Cell| [cell.at_risk, cell.ended, cell.rewards];
        arm.iter().flat_map(numbers).collect()
    };
    let stats: Vec<Vec<f64>> = cells.chunks_exact(points).map(of_arm).collect();
    let pooled = pool
        .pooled(&stats)
        .into_iter()
        .flatten()
        .collect::<Vec<f64>>();
    let cell = |[at_risk, ended, rewards]: &[f64; 3]| Cell {
        at_risk: at_risk.max(0.0),
        ended: ended.clamp(0.0, at_risk.max(0.0)),
        rewards: rewards.max(0.0),
        ..Cell::default()
    };
    Some(pooled.as_chunks().0.iter().map(cell).collect())
}

/// The strength in a hazard with which what was seen is most likely, ends among runs at risk being beta-binomial, and how likely.
fn hazard_strength(trials: &[(f64, Cell)]) -> (f64, f64) {
    let likelihood = |strength: f64| {
        let of_cell = |(hazard, cell): &(f64, Cell)| {
            let hazard = hazard.clamp(1e-6, 1.0 - 1e-6);
            let (a, b) = (strength * hazard, strength * (1.0 - hazard));
            ln_gamma(a + cell.ended) - ln_gamma(a) + ln_gamma(b + cell.at_risk - cell.ended)
                - ln_gamma(b)
                + ln_gamma(strength)
                - ln_gamma(strength + cell.at_risk)
        };
        trials.iter().map(of_cell).sum::<f64>() - 0.5 * (strength / USUAL.hazard).ln().powi(2)
    };
    let all = STRENGTHS.map(|strength| (likelihood(strength), strength));
    (all.into_iter()).fold((f64::NEG_INFINITY, USUAL.hazard), |best, next| {
        if next.0 > best.0 { next } else { best }
    })
}

/// The strength in mean rewards: their variance within arms over that between arms, by the method of moments.
fn reward_strength<'a>(arms: impl Iterator<Item = &'a [Cell]>) -> f64 {
    let (mut groups, mut runs, mut within, mut sum, mut between, mut counts) =
        (0.0, 0.0, 0.0, 0.0, 0.0, 0.0);
    for cells in arms {
        let of_cells = |of: fn(&Cell) -> f64| cells.iter().map(of).sum::<f64>();
        let (count, rewards) = (of_cells(|cell| cell.ended), of_cells(|cell| cell.rewards));
        if count > 0.0 {
            groups += 1.0;
            runs += count;
            sum += rewards;
            counts += count * count;
            within += of_cells(|cell| cell.squares) - rewards * rewards / count;
            between += rewards * rewards / count;
        }
    }
    let free = runs - groups;
    if groups < 2.0 || free < 2.0 {
        return USUAL.reward;
    }
    let within = (within / free).max(0.0);
    let typical = (runs - counts / runs) / (groups - 1.0);
    let between = ((between - sum * sum / runs) / (groups - 1.0) - within) / typical.max(1e-9);
    if between <= 0.0 {
        return REWARDS.1;
    }
    (within / between).clamp(REWARDS.0, REWARDS.1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::space::{Parameter, Value};

    /// A hundred arms, on a grid of two parameters with ten values each, and their cells: ten runs at risk in one cell.
    fn prior(ended: impl Fn(usize) -> f64) -> Prior {
        let values = || {
            (0..10)
                .map(|value| Value::Number(f64::from(value)))
                .collect()
        };
        let parameters = vec![Parameter::new("a", values()), Parameter::new("b", values())];
        let space = Space::grid(parameters, &[], &[]).unwrap();
        let cell = |arm: usize| Cell {
            at_risk: 10.0,
            ended: ended(arm),
            rewards: ended(arm),
            squares: ended(arm),
            costs: 0.0,
        };
        let cells: Vec<Cell> = (0..100).map(cell).collect();
        let worth: Vec<f64> = cells.iter().map(|cell| cell.ended).collect();
        let mut prior = Prior::new(1);
        prior.pool[0] = Cell {
            at_risk: 1000.0,
            ended: worth.iter().sum(),
            ..Cell::default()
        };
        prior.fit(&cells, &worth, Some(&space), 1);
        prior
    }

    #[test]
    fn arms_that_are_alike_get_much_weight_from_each_other_and_others_little() {
        let alike = prior(|arm| if arm * 7 % 3 == 0 { 5.0 } else { 4.0 });
        assert_eq!(alike.strength.hazard, 32.0);
        // Nothing about the number of an arm is in its parameters.
        let apart = prior(|arm| {
            if (arm * 37 + arm / 10 * 11) % 16 < 8 {
                10.0
            } else {
                0.0
            }
        });
        assert!(apart.strength.hazard <= 2.0, "{:?}", apart.strength);
    }

    #[test]
    fn similar_arms_are_believed_where_parameters_decide_and_only_there() {
        let decided = prior(|arm| if arm % 10 < 5 { 9.0 } else { 1.0 });
        let hazards = |prior: &Prior| {
            (0..100)
                .map(|arm| prior.expected(arm, 0).hazard)
                .collect::<Vec<_>>()
        };
        for (arm, hazard) in hazards(&decided).into_iter().enumerate() {
            assert_eq!(arm % 10 < 5, hazard > 0.5, "arm {arm}: {hazard}");
        }
        let alike = hazards(&prior(|_| 5.0));
        assert!(
            alike.iter().all(|hazard| (hazard - 0.5).abs() < 0.01),
            "{alike:?}"
        );
    }
}
