//! A slow, obvious tree: every draw separately, every split tried, scores as exact fractions. The fast tree must equal
//! it.

use std::cmp::Ordering;

use crate::sample::Sampler;

/// A plain binary tree.
#[derive(Debug, PartialEq)]
pub(super) enum Reference {
    Leaf(f64),
    Split {
        predictor: usize,
        threshold: f64,
        is_missing_left: bool,
        left: Box<Reference>,
        right: Box<Reference>,
    },
}

/// What to grow a tree on.
pub(super) struct Table<'a> {
    /// Column by column. NaN means missing.
    pub(super) x: &'a [Vec<f64>],
    /// Whole numbers, or indices of classes.
    pub(super) y: &'a [f64],
    pub(super) classes: usize,
    pub(super) train: &'a [u32],
    pub(super) draws: usize,
    pub(super) mtry: usize,
    pub(super) min_node_size: usize,
}

/// A score as a fraction, `over` positive.
#[derive(Clone, Copy)]
struct Fraction {
    part: i128,
    over: i128,
}

impl Fraction {
    fn cmp(self, other: Self) -> Ordering {
        (self.part * other.over).cmp(&(other.part * self.over))
    }
}

struct Candidate {
    score: Fraction,
    predictor: usize,
    threshold: f64,
    is_missing_left: bool,
}

impl Table<'_> {
    pub(super) fn grow(&self, seed: u64, tree: usize) -> Reference {
        let mut sampler = Sampler::new(seed, tree);
        let bag: Vec<usize> = (0..self.draws)
            .map(|_| self.train[sampler.below(self.train.len())] as usize)
            .collect();
        let mut predictors: Vec<u16> = (0..self.x.len() as u16).collect();
        self.node(&bag, &mut sampler, &mut predictors)
    }

    fn node(&self, bag: &[usize], sampler: &mut Sampler, predictors: &mut [u16]) -> Reference {
        let is_pure = bag.iter().all(|&row| self.y[row] == self.y[bag[0]]);
        if bag.len() <= self.min_node_size || is_pure {
            return self.leaf(bag, sampler);
        }
        sampler.draw_predictors(predictors, self.mtry);
        let mut best: Option<Candidate> = None;
        for &predictor in &predictors[..self.mtry] {
            self.try_predictor(bag, usize::from(predictor), &mut best);
        }
        let Some(best) = best else {
            return self.leaf(bag, sampler);
        };
        let x = &self.x[best.predictor];
        let has_missing = bag.iter().any(|&row| x[row].is_nan());
        let (left, right): (Vec<usize>, Vec<usize>) = bag.iter().partition(|&&row| {
            if x[row].is_nan() {
                best.is_missing_left
            } else {
                x[row] <= best.threshold
            }
        });
        Reference::Split {
            predictor: best.predictor,
            threshold: best.threshold,
            is_missing_left: best.is_missing_left || !has_missing,
            left: Box::new(self.node(&left, sampler, predictors)),
            right: Box::new(self.node(&right, sampler, predictors)),
        }
    }

    fn try_predictor(&self, bag: &[usize], predictor: usize, best: &mut Option<Candidate>) {
        let x = &self.x[predictor];
        let mut values: Vec<f64> = bag.iter().map(|&row| x[row]).collect();
        let has_missing = values.iter().any(|value| value.is_nan());
        values.retain(|value| !value.is_nan());
        values.sort_by(f64::total_cmp);
        values.dedup();
        for (place, &value) in values.iter().enumerate() {
            let threshold = values.get(place + 1).map_or(f64::INFINITY, |&above| {
                let middle = f64::midpoint(value, above);
                if middle == above { value } else { middle }
            });
            for is_missing_left in [false, true] {
                if is_missing_left && !has_missing {
                    continue;
                }
                let (left, right): (Vec<usize>, Vec<usize>) = bag.iter().partition(|&&row| {
                    if x[row].is_nan() {
                        is_missing_left
                    } else {
                        x[row] <= value
                    }
                });
                if left.is_empty() || right.is_empty() {
                    continue;
                }
                let score = self.score(&left, &right);
                let is_better = best
                    .as_ref()
                    .is_none_or(|best| score.cmp(best.score) == Ordering::Greater);
                if is_better {
                    *best = Some(Candidate {
                        score,
                        predictor,
                        threshold,
                        is_missing_left,
                    });
                }
            }
        }
    }

    /// `sumL^2 / nL + sumR^2 / nR`, summed over classes if there are any.
    fn score(&self, left: &[usize], right: &[usize]) -> Fraction {
        let squares = |side: &[usize]| -> i128 {
            if self.classes == 0 {
                let sum: i128 = side.iter().map(|&row| self.y[row] as i128).sum();
                sum * sum
            } else {
                (0..self.classes)
                    .map(|class| {
                        let of_class = |row: &&usize| self.y[**row] == class as f64;
                        let count = side.iter().filter(of_class).count() as i128;
                        count * count
                    })
                    .sum()
            }
        };
        let (n_left, n_right) = (left.len() as i128, right.len() as i128);
        Fraction {
            part: squares(left) * n_right + squares(right) * n_left,
            over: n_left * n_right,
        }
    }

    fn leaf(&self, bag: &[usize], sampler: &mut Sampler) -> Reference {
        if self.classes == 0 {
            let sum: f64 = bag.iter().map(|&row| self.y[row]).sum();
            return Reference::Leaf(sum / bag.len() as f64);
        }
        let count = |class: usize| {
            bag.iter()
                .filter(|&&row| self.y[row] == class as f64)
                .count()
        };
        let most = (0..self.classes).map(count).max().unwrap();
        let winners: Vec<usize> = (0..self.classes)
            .filter(|&class| count(class) == most)
            .collect();
        let chosen = if winners.len() > 1 {
            sampler.below(winners.len())
        } else {
            0
        };
        Reference::Leaf(winners[chosen] as f64)
    }
}
