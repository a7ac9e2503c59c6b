//! Sends rows down the trees.
//!
//! Rows of the table that a forest was fitted on are sent down by their codes, others by their values and the
//! thresholds. Trees are processed one after another, each for all rows, so that a tree stays in the cache. Sums are
//! made in tree order, whatever the number of rows.

use super::dataset::{Codes, Column, Dataset, Task};
use super::forest::Forest;
use super::sample::Sampler;
use super::tree::{Node, Tree};

/// Finds the values of the leaves of some rows in a tree.
type Descent<'a> = Box<dyn Fn(&Tree, &mut [f64]) + 'a>;

impl Forest {
    /// Predicts rows of a table: numbers, or indices of classes.
    ///
    /// A table other than the one it was fitted on must have the same columns in the same order, with the same levels.
    pub fn predict(&self, data: &Dataset, rows: &[u32]) -> Vec<f64> {
        match self.task {
            Task::Regression => self.means(rows.len(), self.descent(data, rows)),
            Task::Classification => self.winners(&self.votes(rows.len(), self.descent(data, rows))),
        }
    }

    /// The share of trees that vote for each class, row by row. Empty for numbers.
    pub fn probabilities(&self, data: &Dataset, rows: &[u32]) -> Vec<f64> {
        self.shares(&self.votes(rows.len(), self.descent(data, rows)))
    }

    /// Predictions and probabilities at the cost of one of them. No probabilities for numbers.
    pub(crate) fn predict_both(
        &self,
        data: &Dataset,
        rows: &[u32],
    ) -> (Vec<f64>, Option<Vec<f64>>) {
        match self.task {
            Task::Regression => (self.predict(data, rows), None),
            Task::Classification => {
                let votes = self.votes(rows.len(), self.descent(data, rows));
                (self.winners(&votes), Some(self.shares(&votes)))
            }
        }
    }

    /// Predicts from plain values, `predictors` per row. NaN means missing, and a factor is the index of its level.
    pub fn predict_values(&self, values: &[f64], predictors: usize) -> Vec<f64> {
        let rows = values.len() / predictors.max(1);
        match self.task {
            Task::Regression => self.means(rows, self.descent_of_values(values, predictors)),
            Task::Classification => {
                self.winners(&self.votes(rows, self.descent_of_values(values, predictors)))
            }
        }
    }

    /// The share of trees that vote for each class, row by row, from plain values. Empty for numbers.
    pub fn probabilities_of_values(&self, values: &[f64], predictors: usize) -> Vec<f64> {
        let rows = values.len() / predictors.max(1);
        self.shares(&self.votes(rows, self.descent_of_values(values, predictors)))
    }

    /// How to find the leaves of some rows of a table in a tree.
    fn descent(&self, data: &Dataset, rows: &[u32]) -> Descent<'_> {
        if !self.knows(data) {
            let row_values = |&row: &u32| {
                let columns = data.columns().iter();
                columns.map(move |column| column.value(row as usize))
            };
            let values: Vec<f64> = rows.iter().flat_map(row_values).collect();
            let predictors = data.predictors();
            return Box::new(move |tree, leaves| {
                self.descend_values(tree, &values, predictors, leaves);
            });
        }
        let is_short = |column: &Column| matches!(column.codes(), Codes::Short(_));
        if data.columns().iter().all(is_short) {
            let coded = CodedRows::<u16>::new(self, data, rows);
            Box::new(move |tree, leaves| coded.descend(tree, leaves))
        } else {
            let coded = CodedRows::<u32>::new(self, data, rows);
            Box::new(move |tree, leaves| coded.descend(tree, leaves))
        }
    }

    fn descent_of_values(&self, values: &[f64], predictors: usize) -> impl Fn(&Tree, &mut [f64]) {
        move |tree: &Tree, leaves: &mut [f64]| self.descend_values(tree, values, predictors, leaves)
    }

    fn descend_values(&self, tree: &Tree, values: &[f64], predictors: usize, leaves: &mut [f64]) {
        for (leaf, row) in leaves
            .iter_mut()
            .zip(values.chunks_exact(predictors.max(1)))
        {
            *leaf = self.leaf_of(tree, row);
        }
    }

    /// The value of the leaf in which a row of values ends.
    fn leaf_of(&self, tree: &Tree, row: &[f64]) -> f64 {
        tree.leaf(|node, threshold| {
            let predictor = usize::from(node.predictor);
            let mut value = row.get(predictor).copied().unwrap_or(f64::NAN);
            if value.is_nan() {
                return node.is_missing_left;
            }
            if let Some(Some(_)) = self.ranks.get(predictor) {
                value = f64::from(self.rank(predictor, value as u32));
            }
            value <= threshold
        })
    }

    /// The mean of all trees.
    fn means(&self, rows: usize, descend: impl Fn(&Tree, &mut [f64])) -> Vec<f64> {
        let mut leaves = vec![0.0; rows];
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

    /// The votes of all trees by class, row by row. Empty for numbers.
    fn votes(&self, rows: usize, descend: impl Fn(&Tree, &mut [f64])) -> Vec<u32> {
        let mut votes = vec![0_u32; rows * self.classes];
        if votes.is_empty() {
            return votes;
        }
        let mut leaves = vec![0.0; rows];
        for tree in &self.trees {
            descend(tree, &mut leaves);
            for (place, &class) in leaves.iter().enumerate() {
                votes[place * self.classes + class as usize] += 1;
            }
        }
        votes
    }

    /// The winner of each row. A tied vote goes to the first class, so that it is reproducible.
    fn winners(&self, votes: &[u32]) -> Vec<f64> {
        votes.chunks_exact(self.classes).map(winner).collect()
    }

    fn shares(&self, votes: &[u32]) -> Vec<f64> {
        let trees = self.trees.len() as f64;
        votes
            .iter()
            .map(|&votes| f64::from(votes) / trees)
            .collect()
    }

    /// The leaf in which every row of the table it was fitted on ends, tree by tree: numbers below
    /// [`Forest::most_nodes`].
    ///
    /// # Panics
    /// If this is not the table it was fitted on.
    pub fn leaves(&self, data: &Dataset, tree: usize) -> Vec<u32> {
        assert!(self.knows(data), "leaves are those of the table fitted on");
        let nodes = &self.trees[tree].nodes;
        let leaf_of = |row: usize| {
            let mut at = 0;
            while !nodes[at].is_leaf() {
                let node = &nodes[at];
                let predictor = usize::from(node.predictor);
                let column = &data.columns()[predictor];
                let code = column.codes().get(row);
                let is_missing = column.missing() == Some(code);
                let is_left =
                    self.rank(predictor, code) <= node.split || is_missing && node.is_missing_left;
                at = node.left as usize + usize::from(!is_left);
            }
            at as u32
        };
        (0..data.rows()).map(leaf_of).collect()
    }

    /// Which rows of the table it was fitted on a tree drew.
    ///
    /// # Panics
    /// If this is not the table it was fitted on.
    pub fn bag(&self, data: &Dataset, tree: usize) -> Vec<bool> {
        assert!(self.knows(data), "bags are of the table fitted on");
        let mut sampler = Sampler::new(self.seed, tree);
        let mut is_drawn = vec![false; data.rows()];
        for _ in 0..self.draws {
            is_drawn[self.rows[sampler.below(self.rows.len())] as usize] = true;
        }
        is_drawn
    }

    /// An upper bound on the nodes of any tree.
    pub fn most_nodes(&self) -> usize {
        let nodes = self.trees.iter().map(|tree| tree.nodes.len());
        nodes.max().unwrap_or(0)
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

/// Rows that go down a tree together: while one waits for memory, the others continue.
const ABREAST: usize = 16;
/// Steps between two checks of whether all of them have arrived.
const STEPS: usize = 3;

/// Codes of some rows, row by row.
///
/// If numbers are missing, every predictor has two codes: one above all others, which goes right, and one below all
/// others, which goes left. A node reads the one it needs, so that missing numbers cost the others nothing.
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
