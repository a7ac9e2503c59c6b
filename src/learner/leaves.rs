//! Where rows end: for those who keep figures of their own per leaf.

use super::dataset::Dataset;
use super::forest::Forest;
use super::sample::Sampler;

impl Forest {
    /// The leaf in which every row of the table it was fitted on ends, tree by tree: numbers below [`Forest::most_nodes`].
    ///
    /// # Panics
    /// If the table is another one.
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

    /// Which rows of the table it was fitted on a tree was grown on.
    ///
    /// # Panics
    /// If the table is another one.
    pub fn bag(&self, data: &Dataset, tree: usize) -> Vec<bool> {
        assert!(self.knows(data), "bags are of the table fitted on");
        let mut sampler = Sampler::new(self.seed, tree);
        let mut is_drawn = vec![false; data.rows()];
        for _ in 0..self.draws {
            is_drawn[self.rows[sampler.below(self.rows.len())] as usize] = true;
        }
        is_drawn
    }

    /// No tree has more nodes than this.
    pub fn most_nodes(&self) -> usize {
        let nodes = self.trees.iter().map(|tree| tree.nodes.len());
        nodes.max().unwrap_or(0)
    }
}
