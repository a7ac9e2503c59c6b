//! Sending rows down the trees.
//!
//! Rows of the table a forest was fitted on are sent down by their codes; others by their values and the thresholds. Trees are
//! taken one after another, each for all rows, so that a tree stays in the cache; sums are made in tree order, whatever
//! the number of rows.

use super::dataset::{Codes, Column, Dataset, Task};
use super::forest::Forest;
use super::tree::Tree;

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
        let mut at = 0;
        loop {
            let node = tree.nodes[at];
            if node.is_leaf() {
                return tree.values[at];
            }
            let predictor = usize::from(node.predictor);
            let mut value = row.get(predictor).copied().unwrap_or(f64::NAN);
            if let Some(Some(_)) = self.ranks.get(predictor) {
                value = f64::from(self.rank(predictor, value as u32));
            }
            let is_left = if value.is_nan() {
                node.is_missing_left
            } else {
                value <= tree.values[at]
            };
            at = node.left as usize + usize::from(!is_left);
        }
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
const ABREAST: usize = 8;

/// Codes of some rows, row by row.
struct CodedRows<C> {
    codes: Vec<C>,
    predictors: usize,
    /// The code of missing numbers by predictor; empty if nothing is missing in the table.
    missing: Vec<u32>,
}

impl<C: Copy + Default + TryFrom<u32> + Into<u32>> CodedRows<C> {
    fn new(forest: &Forest, data: &Dataset, rows: &[u32]) -> Self {
        let predictors = data.predictors();
        let mut codes = vec![C::default(); rows.len() * predictors];
        for (predictor, column) in data.columns().iter().enumerate() {
            for (place, &row) in rows.iter().enumerate() {
                let code = forest.rank(predictor, column.codes().get(row as usize));
                codes[place * predictors + predictor] = C::try_from(code).unwrap_or_default();
            }
        }
        let missing = data.columns().iter().map(Column::missing);
        let missing = if missing.clone().any(|code| code.is_some()) {
            missing.map(|code| code.unwrap_or(u32::MAX)).collect()
        } else {
            Vec::new()
        };
        Self {
            codes,
            predictors,
            missing,
        }
    }

    /// Finds the value of the leaf of every row.
    fn descend(&self, tree: &Tree, leaves: &mut [f64]) {
        let together = self.codes.chunks(ABREAST * self.predictors);
        for (rows, leaves) in together.zip(leaves.chunks_mut(ABREAST)) {
            if self.missing.is_empty() {
                self.descend_together(tree, rows, leaves, |_, _, _| false);
            } else {
                self.descend_together(tree, rows, leaves, |predictor, code, is_missing_left| {
                    is_missing_left && code == self.missing[predictor]
                });
            }
        }
    }

    #[inline]
    fn descend_together(
        &self,
        tree: &Tree,
        rows: &[C],
        leaves: &mut [f64],
        is_left_anyway: impl Fn(usize, u32, bool) -> bool,
    ) {
        let mut at = [0_usize; ABREAST];
        let at = &mut at[..leaves.len()];
        let mut is_moving = true;
        while is_moving {
            is_moving = false;
            for (at, row) in at.iter_mut().zip(rows.chunks_exact(self.predictors)) {
                let node = &tree.nodes[*at];
                let predictor = usize::from(node.predictor);
                let code: u32 = row[predictor].into();
                let is_left =
                    code <= node.split || is_left_anyway(predictor, code, node.is_missing_left);
                let next = node.left as usize + usize::from(!is_left);
                // A leaf stays where it is.
                *at = if node.is_leaf() { *at } else { next };
                is_moving |= !node.is_leaf();
            }
        }
        for (leaf, &at) in leaves.iter_mut().zip(at.iter()) {
            *leaf = tree.values[at];
        }
    }
}
