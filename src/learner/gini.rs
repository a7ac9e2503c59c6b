//! Splits for three or more classes: `sum nL_k^2 / nL + sum nR_k^2 / nR` in exact integers, always the portable way.
//!
//! Two classes need none of this: with 0 and 1 as targets the best split by variance is the best by Gini.

use super::kernel::{Best, View};

/// What one thread needs to look for splits between classes, kept between nodes.
pub(super) struct ClassScratch {
    classes: usize,
    /// Draws by code and class; all zero between uses.
    counts: Vec<u32>,
    /// One bit per code that was met; all zero between uses.
    touched: Vec<u64>,
    left: Vec<u64>,
    right: Vec<u64>,
    /// Draws of the node by class.
    pub(super) total: Vec<u64>,
}

/// The draws in a node: distinct rows, the number of draws of each, the class of every row of the table.
pub(super) struct ClassDraws<'a> {
    pub(super) rows: &'a [u32],
    pub(super) counts: &'a [u64],
    pub(super) classes: &'a [u16],
}

impl ClassScratch {
    pub(super) fn new(classes: usize, most_distinct: usize) -> Self {
        Self {
            classes,
            counts: vec![0; classes * most_distinct],
            touched: vec![0; most_distinct / 64 + 1],
            left: vec![0; classes],
            right: vec![0; classes],
            total: vec![0; classes],
        }
    }

    /// Counts the classes of a node.
    pub(super) fn count(&mut self, draws: &ClassDraws<'_>) {
        self.total.fill(0);
        for (&row, &count) in draws.rows.iter().zip(draws.counts) {
            self.total[usize::from(draws.classes[row as usize])] += count;
        }
    }

    /// The score of not splitting.
    pub(super) fn unsplit(&self) -> f64 {
        let squares: u64 = self.total.iter().map(|n| n * n).sum();
        squares as f64 / self.total.iter().sum::<u64>() as f64
    }

    /// Looks at one predictor; `count` was called for this node. Tells whether there was a split.
    pub(super) fn scan(
        &mut self,
        column: &View<'_>,
        slot: usize,
        draws: &ClassDraws<'_>,
        best: &mut Best,
    ) -> bool {
        let classes = self.classes;
        let mut lost = vec![0_u64; if column.missing.is_some() { classes } else { 0 }];
        let mut has_lost = false;
        for (&row, &count) in draws.rows.iter().zip(draws.counts) {
            let code = column.code(row);
            let class = usize::from(draws.classes[row as usize]);
            if column.missing == Some(code) {
                lost[class] += count;
                has_lost = true;
            } else {
                let code = code as usize;
                self.counts[code * classes + class] += count as u32;
                self.touched[code / 64] |= 1 << (code % 64);
            }
        }
        self.left.fill(0);
        self.right.copy_from_slice(&self.total);
        let mut is_split = false;
        for (place, word) in self.touched.iter_mut().enumerate() {
            let mut bits = std::mem::take(word);
            while bits != 0 {
                let code = place * 64 + bits.trailing_zeros() as usize;
                bits &= bits - 1;
                let here = &mut self.counts[code * classes..(code + 1) * classes];
                for ((left, right), here) in self
                    .left
                    .iter_mut()
                    .zip(&mut self.right)
                    .zip(here.iter_mut())
                {
                    *left += u64::from(*here);
                    *right -= u64::from(*here);
                    *here = 0;
                }
                let score = score(&self.left, &self.right);
                is_split |= !score.is_nan();
                best.offer(score, Best::id(slot, code, false));
                if has_lost {
                    let left: Vec<u64> = self.left.iter().zip(&lost).map(|(a, b)| a + b).collect();
                    let right: Vec<u64> =
                        self.right.iter().zip(&lost).map(|(a, b)| a - b).collect();
                    best.offer(self::score(&left, &right), Best::id(slot, code, true));
                }
            }
        }
        is_split
    }
}

/// Not a number if a side is empty.
fn score(left: &[u64], right: &[u64]) -> f64 {
    let (mut n_left, mut n_right, mut left_squares, mut right_squares) = (0, 0, 0_u64, 0_u64);
    for (&l, &r) in left.iter().zip(right) {
        n_left += l;
        n_right += r;
        left_squares += l * l;
        right_squares += r * r;
    }
    // At most 2^20 draws: every product is below 2^60.
    (left_squares * n_right + right_squares * n_left) as f64 / (n_left * n_right) as f64
}
