//! The order of the levels of a factor, by which it is split.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use serde::{Deserialize, Serialize};

use super::Column;
use super::column::STRETCH;

/// How the levels of text columns are ordered, unless an order is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum LevelOrder {
    /// By name, as R reads them from a CSV
    #[default]
    Alphabetical,
    /// By the mean target of the training rows with that level, computed for every fit
    ByResponse,
}

/// Ranks of the levels of one factor by mean response: `ranks[code]` replaces `code`. `None` for numbers, and for a
/// factor whose order was given explicitly.
///
/// A level without training rows ranks where the mean of all training rows would. `mind` is called with the number of
/// steps ahead and may end it.
pub(crate) fn ranks_by_response<E>(
    column: &Column,
    y: &[f64],
    rows: &[u32],
    mind: &mut impl FnMut(usize) -> Result<(), E>,
) -> Result<Option<Vec<u32>>, E> {
    let Some(levels) = column.levels().filter(|_| !column.has_given_order) else {
        return Ok(None);
    };
    let mut sums = vec![(0.0, 0_u32); levels.len()];
    for stretch in rows.chunks(STRETCH) {
        mind(stretch.len())?;
        for &row in stretch {
            let (sum, count) = &mut sums[column.codes().get(row as usize) as usize];
            *sum += y[row as usize];
            *count += 1;
        }
    }
    let all = sums.iter().map(|(sum, _)| sum).sum::<f64>() / rows.len().max(1) as f64;
    let mean = |&(sum, count): &(f64, u32)| {
        if count == 0 {
            all
        } else {
            sum / f64::from(count)
        }
    };
    // A heap, because an id read as a factor has as many levels as rows, and a sort cannot be interrupted.
    mind(levels.len())?;
    let by_mean = sums.iter().zip(0_u32..);
    let mut order: BinaryHeap<_> = by_mean
        .map(|(sum, level)| Reverse((ordered(mean(sum)), level)))
        .collect();
    let mut ranks = vec![0; levels.len()];
    let mut rank = 0;
    while let Some(Reverse((_, level))) = order.pop() {
        if rank % SORT_STRETCH == 0 {
            mind(STRETCH)?;
        }
        ranks[level as usize] = rank;
        rank += 1;
    }
    Ok(Some(ranks))
}

/// Levels sorted between two checks of whether to continue. Each sinks down a heap.
const SORT_STRETCH: u32 = 256;

/// A whole number in the order of `f64::total_cmp`.
fn ordered(number: f64) -> i64 {
    let bits = number.to_bits().cast_signed();
    bits ^ ((bits >> 63).cast_unsigned() >> 1).cast_signed()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn whole_numbers_stand_for_numbers_in_their_total_order(a: f64, b: f64) {
            prop_assert_eq!(ordered(a).cmp(&ordered(b)), a.total_cmp(&b));
        }
    }
}
