//! Sending rows down the trees.
//!
//! Rows of the table a forest was fitted on are sent down by their codes; others by their values and the thresholds. Trees are
//! taken one after another, each for all rows, so that a tree stays in the cache; sums are made in tree order, whatever
//! the number of rows.

use super::dataset::{Dataset, Task};
use super::forest::Forest;
use super::tree::Tree;

impl Forest {
    /// Predicts rows of a table: numbers, or indices of classes.
    ///
    /// Another table than the one fitted on must have the same columns in the same order, with the same levels.
    pub fn predict(&self, data: &Dataset, rows: &[u32]) -> Vec<f64> {
        if self.knows(data) {
            let coded = CodedRows::new(self, data, rows);
            self.collect(rows.len(), |tree, each| coded.descend(tree, each))
        } else {
            let values: Vec<f64> = rows
                .iter()
                .flat_map(|&row| {
                    let value = move |column: &super::Column| column.value(row as usize);
                    data.columns().iter().map(value)
                })
                .collect();
            self.predict_values(&values, data.predictors())
        }
    }

    /// Predicts from plain values, `predictors` a row; not-a-number is missing, a factor is the place of its level.
    pub fn predict_values(&self, values: &[f64], predictors: usize) -> Vec<f64> {
        let rows: Vec<&[f64]> = values.chunks_exact(predictors.max(1)).collect();
        self.collect(rows.len(), |tree, each| {
            for (place, row) in rows.iter().enumerate() {
                each(place, self.leaf_of(tree, row));
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
    fn collect(
        &self,
        rows: usize,
        descend: impl Fn(&Tree, &mut dyn FnMut(usize, f64)),
    ) -> Vec<f64> {
        match self.task {
            Task::Regression => {
                let mut sums = vec![0.0; rows];
                for tree in &self.trees {
                    descend(tree, &mut |place, value| sums[place] += value);
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
                    descend(tree, &mut |place, class| {
                        votes[place * self.classes + class as usize] += 1;
                    });
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

/// Codes of some rows, row by row.
pub(super) struct CodedRows {
    codes: Vec<u32>,
    predictors: usize,
    /// The code of missing numbers by predictor; `u32::MAX`, which no code is, where there are none.
    missing: Vec<u32>,
}

impl CodedRows {
    pub(super) fn new(forest: &Forest, data: &Dataset, rows: &[u32]) -> Self {
        let predictors = data.predictors();
        let mut codes = vec![0; rows.len() * predictors];
        for (predictor, column) in data.columns().iter().enumerate() {
            for (place, &row) in rows.iter().enumerate() {
                let code = column.codes().get(row as usize);
                codes[place * predictors + predictor] = forest.rank(predictor, code);
            }
        }
        let missing = data.columns().iter();
        Self {
            codes,
            predictors,
            missing: missing
                .map(|column| column.missing().unwrap_or(u32::MAX))
                .collect(),
        }
    }

    /// Hands the value of its leaf to `each`, for all rows.
    fn descend(&self, tree: &Tree, each: &mut dyn FnMut(usize, f64)) {
        for (place, row) in self.codes.chunks_exact(self.predictors).enumerate() {
            let mut at = 0;
            loop {
                let node = tree.nodes[at];
                if node.is_leaf() {
                    break;
                }
                let predictor = usize::from(node.predictor);
                let code = row[predictor];
                let is_left =
                    code <= node.split || (node.is_missing_left && code == self.missing[predictor]);
                at = node.left as usize + usize::from(!is_left);
            }
            each(place, tree.values[at]);
        }
    }
}
