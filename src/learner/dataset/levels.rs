//! The order of the levels of a factor, by which it is split.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use super::{Column, Dataset};

/// How the levels of text columns are ordered where no order is given for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum LevelOrder {
    /// By name, as R reads them from a CSV.
    #[default]
    Alphabetical,
    /// By the mean target of the training rows that have the level, anew for every fit.
    ByResponse,
}

/// Ranks of the levels of one factor by mean response: `ranks[code]` replaces `code`.
///
/// A level that no training row has stands where the mean of all training rows would.
pub(crate) fn ranks_by_response(column: &Column, y: &[f64], rows: &[u32]) -> Option<Vec<u32>> {
    let levels = column.levels()?.len();
    let mut sums = vec![(0.0, 0_u32); levels];
    for &row in rows {
        let (sum, count) = &mut sums[column.codes().get(row as usize) as usize];
        *sum += y[row as usize];
        *count += 1;
    }
    let all = sums.iter().map(|(sum, _)| sum).sum::<f64>() / rows.len().max(1) as f64;
    let mean = |&(sum, count): &(f64, u32)| {
        if count == 0 {
            all
        } else {
            sum / f64::from(count)
        }
    };
    let mut order: Vec<usize> = (0..levels).collect();
    order.sort_by(|&a, &b| mean(&sums[a]).total_cmp(&mean(&sums[b])).then(a.cmp(&b)));
    let mut ranks = vec![0; levels];
    for (rank, level) in order.into_iter().enumerate() {
        ranks[level] = rank as u32;
    }
    Some(ranks)
}

impl Dataset {
    /// The same table with the levels of factors ordered in another way. Orders given by name stay as they are.
    #[must_use]
    pub fn with_level_order(mut self, order: LevelOrder) -> Self {
        self.order = order;
        self
    }
}
