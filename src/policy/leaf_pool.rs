//! What similar arms suggest: a forest over the parameters, in whose leaves statistics of arms are pooled.
//!
//! Trees fit luck as well as merit: lucky arms end up in one leaf and would confirm each other. So only out-of-bag arms of
//! a tree are pooled, and only for each other. The pooled statistics of an arm are then independent of its own runs, and
//! how well they fit these runs says how far to trust them.

use crate::round::ArmId;
use crate::space::{ABSENT, Scale, Space, Value};
use captime_forest::{Dataset, FitOutcome, Forest, Params, Stop, fit_until};

/// Enough trees that the average over leaves is smooth.
const TREES: usize = 40;
/// Nodes of so few arms are not split.
const NODE: usize = 10;

/// Pools arms by the leaves of a forest over their parameters.
pub(super) struct LeafPool {
    data: Dataset,
    forest: Forest,
}

impl LeafPool {
    /// Grows it on what the arms at the places `seen` are `worth`; none where nothing differs.
    pub(super) fn grow(
        space: &Space,
        arms: &[u32],
        seen: &[u32],
        worth: Vec<f64>,
        seed: u64,
    ) -> Option<Self> {
        let codes: Vec<Vec<u32>> = arms
            .iter()
            .map(|arm| space.codes(ArmId::from_index(*arm as usize)))
            .collect();
        let parameters = space.parameters();
        let column = |place: usize| {
            let values = numbers(space, place, &codes, seen, &worth);
            let of_arm = |codes: &Vec<u32>| match codes[place] {
                ABSENT => f64::NAN,
                code => values[code as usize],
            };
            let column = codes.iter().map(of_arm).collect();
            (parameters[place].name().to_owned(), column)
        };
        let columns = (0..parameters.len()).map(column).collect();
        let data = Dataset::from_columns(columns, "worth", worth.clone(), vec![]).ok()?;
        let params = Params {
            trees: TREES,
            // Of many parameters few matter: each split may take the best.
            mtry: Some(parameters.len()),
            min_node_size: Some(NODE),
            seed,
            ..Params::default()
        };
        match fit_until(&data, seen, &params, &Stop::new(), None).ok()? {
            FitOutcome::Done { forest, .. } => Some(Self { data, forest }),
            FitOutcome::Stopped { .. } => None,
        }
    }

    /// The statistics of the other out-of-bag arms in each arm's leaf, averaged over the trees for which the arm itself is
    /// out of bag.
    pub(super) fn pooled(&self, stats: &[Vec<f64>]) -> Vec<Vec<f64>> {
        let nothing = vec![0.0; stats[0].len()];
        let mut pooled = vec![nothing.clone(); stats.len()];
        let mut trees = vec![0.0; stats.len()];
        let mut leaves = vec![nothing; self.forest.most_nodes()];
        for tree in 0..self.forest.trees() {
            let leaf_of = self.forest.leaves(&self.data, tree);
            let bag = self.forest.bag(&self.data, tree);
            let outside = || (0..stats.len()).filter(|place| !bag[*place]);
            for leaf in &mut leaves {
                leaf.fill(0.0);
            }
            for place in outside() {
                add(&mut leaves[leaf_of[place] as usize], &stats[place], 1.0);
            }
            for place in outside() {
                add(&mut pooled[place], &leaves[leaf_of[place] as usize], 1.0);
                // Without the arm itself.
                add(&mut pooled[place], &stats[place], -1.0);
                trees[place] += 1.0;
            }
        }
        for (pooled, trees) in pooled.iter_mut().zip(trees) {
            for stat in pooled {
                *stat /= f64::max(trees, 1.0);
            }
        }
        pooled
    }
}

fn add(sum: &mut [f64], stat: &[f64], times: f64) {
    for (sum, stat) in sum.iter_mut().zip(stat) {
        *sum += times * stat;
    }
}

/// The number that stands for each value of a parameter: categories in the order of what they brought, as ranger orders
/// factors.
fn numbers(
    space: &Space,
    place: usize,
    codes: &[Vec<u32>],
    seen: &[u32],
    worth: &[f64],
) -> Vec<f64> {
    let parameter = &space.parameters()[place];
    let values = parameter.values();
    match parameter.scale() {
        Scale::Number => {
            let number = values.iter().map(Value::number);
            number.map(|number| number.unwrap_or(f64::NAN)).collect()
        }
        Scale::Ordered => (0..values.len()).map(|code| code as f64).collect(),
        Scale::Category => {
            let overall = seen.iter().map(|row| worth[*row as usize]).sum::<f64>();
            let overall = overall / seen.len().max(1) as f64;
            let mut sums = vec![(overall, 1.0); values.len()];
            for &row in seen {
                if let Some(sum) = sums.get_mut(codes[row as usize][place] as usize) {
                    *sum = (sum.0 + worth[row as usize], sum.1 + 1.0);
                }
            }
            sums.iter().map(|(sum, count)| sum / count).collect()
        }
    }
}
