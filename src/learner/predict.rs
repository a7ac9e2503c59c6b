//! Sending rows down the trees.
//!
//! Rows of the table a forest was fitted on are sent down by their codes; others by their values and the thresholds. Trees are
//! taken one after another, each for all rows, so that a tree stays in the cache; sums are made in tree order, whatever
//! the number of rows.

use super::dataset::{Codes, Column, Dataset, Task};
use super::forest::Forest;
use super::tree::{Node, Tree};

impl Forest {
    /// Predicts rows of a table: numbers, or indices of classes.
    ///
    /// Another table than the one fitted on must have the same columns in the same order, with the same levels.
    pub fn predict(&self, data: &Dataset, rows: &[u32]) -> Vec<f64> {
        if self.knows(data) {
            let is_short = |column: &Column| matches!(column.codes(), Codes::Short(_));
            if data.columns().iter().all(is_short) {
                let coded = CodedRows::<u16>::new(self, data, rows);
                self.collect(rows.len(), |tree, leaves| coded.descend(tree, leaves))
            } else {
                let coded = CodedRows::<u32>::new(self, data, rows);
                self.collect(rows.len(), |tree, leaves| coded.descend(tree, leaves))
            }
        } else {
            let row_values = |&row: &u32| {
                let columns = data.columns().iter();
                columns.map(move |column| column.value(row as usize))
            };
            let values: Vec<f64> = rows.iter().flat_map(row_values).collect();
            self.predict_values(&values, data.predictors())
        }
    }

    /// Predicts from plain values, `predictors` a row; not-a-number is missing, a factor is the place of its level.
    pub fn predict_values(&self, values: &[f64], predictors: usize) -> Vec<f64> {
        let rows: Vec<&[f64]> = values.chunks_exact(predictors.max(1)).collect();
        self.collect(rows.len(), |tree, leaves| {
            for (leaf, row) in leaves.iter_mut().zip(&rows) {
                *leaf = self.leaf_of(tree, row);
            }
        })
    }

    /// The value of the leaf in which a row of values ends.
    fn leaf_of(&self, tree: &Tree, row: &[f64]) -> f64 {
        tree.leaf(|node, threshold| {
            let predictor = usize::from(node.predictor);
            let mut value = row.get(predictor).copied().unwrap_or(f64::NAN);
            if let Some(Some(_)) = self.ranks.get(predictor) {
                value = f64::from(self.rank(predictor, value as u32));
            }
            if value.is_nan() {
                node.is_missing_left
            } else {
                value <= threshold
            }
        })
    }

    /// The mean of all trees, or their vote; a tied vote goes to the first class, so that it repeats.
    fn collect(&self, rows: usize, descend: impl Fn(&Tree, &mut [f64])) -> Vec<f64> {
        let mut leaves = vec![0.0; rows];
        match self.task {
            Task::Regression => {
                let mut sums = vec![0.0; rows];
                for tree in &self.trees {
                    descend(tree, &mut leaves);
                    for (sum, leaf) in sums.iter_mut().zip(&leaves) {
                        *sum += leaf;
                    }
                }
                let trees = self.trees.len() as f64;
                for sum in &mut sums {
                    *sum /= trees;
                }
                sums
            }
            Task::Classification => {
                let mut votes = vec![0_u32; rows * self.classes];
                for tree in &self.trees {
                    descend(tree, &mut leaves);
                    for (place, &class) in leaves.iter().enumerate() {
                        votes[place * self.classes + class as usize] += 1;
                    }
                }
                votes.chunks_exact(self.classes).map(winner).collect()
            }
        }
    }
}

/// The first class with most votes.
pub(super) fn winner(votes: &[u32]) -> f64 {
    let mut best = 0;
    for (class, &count) in votes.iter().enumerate() {
        if count > votes[best] {
            best = class;
        }
    }
    best as f64
}

/// Rows that go down a tree together: each waits for memory while the others are looked at.
const ABREAST: usize = 16;
/// Steps between two looks at whether all of them have arrived.
const STEPS: usize = 3;

/// Codes of some rows, row by row.
///
/// Where numbers are missing every predictor has two codes: one that is above all others and goes right, one that is the
/// least and goes left. A node reads the one it wants, so that missing numbers cost the others nothing.
struct CodedRows<C> {
    codes: Vec<C>,
    /// Codes per row.
    width: usize,
    has_missing: bool,
}

impl<C: Copy + Default + TryFrom<u32> + Into<u32>> CodedRows<C> {
    fn new(forest: &Forest, data: &Dataset, rows: &[u32]) -> Self {
        let has_missing = data
            .columns()
            .iter()
            .any(|column| column.missing().is_some());
        let sides = if has_missing { 2 } else { 1 };
        let width = sides * data.predictors();
        let mut codes = vec![C::default(); rows.len() * width];
        for (predictor, column) in data.columns().iter().enumerate() {
            for (row, codes) in rows.iter().zip(codes.chunks_exact_mut(width)) {
                let code = column.codes().get(*row as usize);
                let rank = C::try_from(forest.rank(predictor, code)).unwrap_or_default();
                let own = &mut codes[sides * predictor..sides * (predictor + 1)];
                own.fill(rank);
                if column.missing() == Some(code) {
                    own[sides - 1] = C::default();
                }
            }
        }
        Self {
            codes,
            width,
            has_missing,
        }
    }

    /// Finds the value of the leaf of every row.
    fn descend(&self, tree: &Tree, leaves: &mut [f64]) {
        if self.has_missing {
            self.descend_by(tree, leaves, |node| {
                2 * usize::from(node.predictor) + usize::from(node.is_missing_left)
            });
        } else {
            self.descend_by(tree, leaves, |node| usize::from(node.predictor));
        }
    }

    #[inline]
    fn descend_by(&self, tree: &Tree, leaves: &mut [f64], place: impl Fn(&Node) -> usize) {
        let nodes = &*tree.nodes;
        let together = self.codes.chunks(ABREAST * self.width);
        for (codes, leaves) in together.zip(leaves.chunks_mut(ABREAST)) {
            let mut all_at = [0_u32; ABREAST];
            let all_at = &mut all_at[..leaves.len()];
            let mut is_moving = true;
            while is_moving {
                is_moving = false;
                for (at, row) in all_at.iter_mut().zip(codes.chunks_exact(self.width)) {
                    let before = *at;
                    for _ in 0..STEPS {
                        let node = &nodes[*at as usize];
                        let code: u32 = row[place(node)].into();
                        *at = node.left + u32::from(code > node.split);
                    }
                    is_moving |= *at != before;
                }
            }
            for (leaf, &at) in leaves.iter_mut().zip(all_at.iter()) {
                *leaf = tree.values[at as usize];
            }
        }
    }
}
