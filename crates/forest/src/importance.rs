//! The importance of predictors, and the out-of-bag error.

use super::dataset::{Dataset, Task};
use super::forest::Forest;
use super::predict::winner;
use super::sample::Sampler;
use super::stop::{Stopped, Watch};
use super::tree::{GrowthPlan, Tree};

/// Decrease of impurity by predictor, per tree.
pub(super) fn impurity(trees: &[Tree], predictors: usize) -> Vec<f64> {
    let mut sums = vec![0.0; predictors];
    for tree in trees {
        for (sum, decrease) in sums.iter_mut().zip(&tree.importance) {
            *sum += decrease;
        }
    }
    let count = trees.len() as f64;
    for sum in &mut sums {
        *sum /= count;
    }
    sums
}

/// How much a tree's error on its out-of-bag rows grows when a predictor is shuffled among them, averaged over trees.
pub(super) fn permutation(
    plan: &GrowthPlan<'_>,
    trees: &[Tree],
    watch: &mut Watch<'_>,
) -> Result<Vec<f64>, Stopped> {
    let mut sums = vec![0.0; plan.columns.len()];
    let mut counts = Vec::new();
    for (number, tree) in trees.iter().enumerate() {
        let mut sampler = Sampler::new(plan.seed, number);
        plan.draw_rows(&mut sampler, &mut counts, watch)?;
        let out: Vec<u32> = out_of_bag(plan.rows, &counts).collect();
        if out.is_empty() {
            continue;
        }
        let mut used: Vec<u16> = tree
            .nodes
            .iter()
            .filter(|node| !node.is_leaf())
            .map(|node| node.predictor)
            .collect();
        used.sort_unstable();
        used.dedup();
        watch.spend(out.len() as u64)?;
        let plain = error(plan, tree, &out, None, watch)?;
        let mut shuffled = out.clone();
        for predictor in used {
            watch.spend(out.len() as u64)?;
            for place in (1..shuffled.len()).rev() {
                shuffled.swap(place, sampler.below(place + 1));
            }
            let worse = error(plan, tree, &out, Some((predictor, &shuffled)), watch)?;
            sums[usize::from(predictor)] += worse - plain;
        }
    }
    let trees = trees.len() as f64;
    for sum in &mut sums {
        *sum /= trees;
    }
    Ok(sums)
}

fn out_of_bag<'a>(rows: &'a [u32], counts: &'a [u32]) -> impl Iterator<Item = u32> + 'a {
    rows.iter()
        .zip(counts)
        .filter(|&(_, &count)| count == 0)
        .map(|(&row, _)| row)
}

/// Mean squared error or share of wrong classes of one tree, with one predictor taken from other rows.
fn error(
    plan: &GrowthPlan<'_>,
    tree: &Tree,
    rows: &[u32],
    shuffled: Option<(u16, &[u32])>,
    watch: &mut Watch<'_>,
) -> Result<f64, Stopped> {
    let mut sum = 0.0;
    for (place, &row) in rows.iter().enumerate() {
        if place % LEAF_STRETCH == 0 {
            watch.mind(LEAF_STRETCH * LEAF_STEPS)?;
        }
        let value = leaf(plan, tree, |predictor| match shuffled {
            Some((other, rows)) if other == predictor => rows[place],
            _ => row,
        });
        let y = plan.y[row as usize];
        sum += if plan.class_count == 0 {
            (value - y) * (value - y)
        } else {
            f64::from(u8::from(value != y))
        };
    }
    Ok(sum / rows.len() as f64)
}

/// Rows sent down a tree between two checks of whether to continue.
const LEAF_STRETCH: usize = 256;
/// Roughly the steps from the root to a leaf.
const LEAF_STEPS: usize = 16;

/// The value of the leaf in which a row ends. The row that is read may depend on the predictor.
fn leaf(plan: &GrowthPlan<'_>, tree: &Tree, row: impl Fn(u16) -> u32) -> f64 {
    tree.leaf(|node, _| {
        let column = &plan.columns[usize::from(node.predictor)];
        let code = column.code(row(node.predictor));
        code <= node.split || (node.is_missing_left && column.missing() == Some(code))
    })
}

impl Forest {
    /// The error on training rows, each predicted only by the trees that did not draw it: mean squared error, or the
    /// share of wrong classes. `None` if every tree drew every row, or if this is not the table it was fitted on.
    pub fn out_of_bag_error(&self, data: &Dataset) -> Option<f64> {
        if !self.knows(data) {
            return None;
        }
        let mut sums = vec![(0.0, 0_u32); self.rows.len()];
        let mut votes = vec![0_u32; self.rows.len() * self.classes];
        let mut counts = vec![0_u32; self.rows.len()];
        for (number, tree) in self.trees.iter().enumerate() {
            let mut sampler = Sampler::new(self.seed, number);
            counts.fill(0);
            for _ in 0..self.draws {
                counts[sampler.below(self.rows.len())] += 1;
            }
            for (place, &row) in self.rows.iter().enumerate() {
                if counts[place] > 0 {
                    continue;
                }
                let value = self.leaf_of_row(tree, data, row);
                sums[place].0 += value;
                sums[place].1 += 1;
                if self.task == Task::Classification {
                    votes[place * self.classes + value as usize] += 1;
                }
            }
        }
        let y = data.target().y();
        let mut total = 0.0;
        let mut seen = 0_u32;
        for (place, &(sum, count)) in sums.iter().enumerate() {
            if count == 0 {
                continue;
            }
            seen += 1;
            let truth = y[self.rows[place] as usize];
            total += match self.task {
                Task::Regression => (sum / f64::from(count) - truth).powi(2),
                Task::Classification => {
                    let votes = &votes[place * self.classes..(place + 1) * self.classes];
                    f64::from(u8::from(winner(votes) != truth))
                }
            };
        }
        (seen > 0).then(|| total / f64::from(seen))
    }

    fn leaf_of_row(&self, tree: &Tree, data: &Dataset, row: u32) -> f64 {
        tree.leaf(|node, _| {
            let predictor = usize::from(node.predictor);
            let column = &data.columns()[predictor];
            let code = column.codes().get(row as usize);
            self.rank(predictor, code) <= node.split
                || (node.is_missing_left && column.missing() == Some(code))
        })
    }
}
