//! Splits for three or more classes: `sum nL_k^2 / nL + sum nR_k^2 / nR` in exact integers, always with portable code.
//!
//! Two classes do not need this: with 0 and 1 as targets, the best split by variance is the best by Gini.

use super::kernel::{Best, View};
use super::stop::{Stopped, Watch};
use super::tree::WORDS_PER_STEP;

/// Rows between two checks of the stop flag.
const STRETCH: usize = 4096;

/// What one thread needs to find splits between classes, reused from node to node.
pub(super) struct ClassScratch {
    classes: usize,
    /// Draws by code and class; all zero between uses.
    counts: Vec<u32>,
    /// One bit per code that was met; all zero between uses.
    touched: Vec<u64>,
    /// Draws on the left side by class.
    left: Vec<u64>,
    /// Draws by class whose predictor is missing.
    lost: Vec<u64>,
    /// Draws of the node by class.
    pub(super) total: Vec<u64>,
}

/// The draws in a node: its distinct rows, the number of draws of each, and the class of every row of the table.
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
            lost: vec![0; classes],
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

    /// Examines one predictor, after `count` was called for this node. Returns whether there was a split.
    ///
    /// Many values times many classes take longer than the rows that are counted as work, so this calls `mind` as it
    /// goes. If stopped, it leaves counts behind, and must not be used again.
    pub(super) fn scan(
        &mut self,
        column: &View<'_>,
        slot: usize,
        draws: &ClassDraws<'_>,
        best: &mut Best,
        watch: &mut Watch<'_>,
    ) -> Result<bool, Stopped> {
        let has_lost = self.count_codes(column, draws, watch)?;
        let mut sides = Sides::new(&self.total, &self.lost);
        self.left.fill(0);
        let classes = self.classes;
        let mut is_split = false;
        let touched = &mut self.touched[..column.distinct().div_ceil(64)];
        watch.mind(touched.len() / WORDS_PER_STEP)?;
        for (place, word) in touched.iter_mut().enumerate() {
            if *word == 0 {
                continue;
            }
            let mut bits = std::mem::take(word);
            watch.mind(bits.count_ones() as usize * classes)?;
            while bits != 0 {
                let code = place * 64 + bits.trailing_zeros() as usize;
                bits &= bits - 1;
                let here = &mut self.counts[code * classes..(code + 1) * classes];
                for (class, here) in here.iter_mut().enumerate() {
                    let moved = u64::from(std::mem::take(here));
                    if moved > 0 {
                        sides.go_left(
                            moved,
                            &mut self.left[class],
                            self.total[class],
                            self.lost[class],
                        );
                    }
                }
                let score = sides.score();
                is_split |= !score.is_nan();
                best.offer(score, Best::id(slot, code, false));
                if has_lost {
                    best.offer(sides.score_lost_left(), Best::id(slot, code, true));
                }
            }
        }
        Ok(is_split)
    }

    /// Counts the draws of a node by code and class, without the missing ones. Returns whether there are any of those.
    fn count_codes(
        &mut self,
        column: &View<'_>,
        draws: &ClassDraws<'_>,
        watch: &mut Watch<'_>,
    ) -> Result<bool, Stopped> {
        self.lost.fill(0);
        let mut has_lost = false;
        let stretches = draws.rows.chunks(STRETCH).zip(draws.counts.chunks(STRETCH));
        for (rows, counts) in stretches {
            watch.mind(rows.len())?;
            for (&row, &count) in rows.iter().zip(counts) {
                let code = column.code(row);
                let class = usize::from(draws.classes[row as usize]);
                if column.missing() == Some(code) {
                    self.lost[class] += count;
                    has_lost = true;
                } else {
                    let code = code as usize;
                    self.counts[code * self.classes + class] += count as u32;
                    self.touched[code / 64] |= 1 << (code % 64);
                }
            }
        }
        Ok(has_lost)
    }
}

/// Both sides of a split while draws move from the right to the left, and what they would be with the missing ones on
/// the left.
///
/// All sums are exact whole numbers, so updating them is the same as summing again, but only costs the classes that a
/// value has instead of all classes.
struct Sides {
    n_left: u64,
    n_right: u64,
    left_squares: u64,
    right_squares: u64,
    /// Missing draws, their sum of squares, and their products with both sides.
    lost: u64,
    lost_squares: u64,
    left_by_lost: u64,
    right_by_lost: u64,
}

impl Sides {
    /// Everything on the right.
    fn new(total: &[u64], lost: &[u64]) -> Self {
        Self {
            n_left: 0,
            n_right: total.iter().sum(),
            left_squares: 0,
            right_squares: total.iter().map(|n| n * n).sum(),
            lost: lost.iter().sum(),
            lost_squares: lost.iter().map(|n| n * n).sum(),
            left_by_lost: 0,
            right_by_lost: total.iter().zip(lost).map(|(n, lost)| n * lost).sum(),
        }
    }

    /// Moves draws of one class, of which `left` are already on the left.
    #[inline]
    fn go_left(&mut self, moved: u64, left: &mut u64, total: u64, lost: u64) {
        let right = total - *left;
        self.n_left += moved;
        self.n_right -= moved;
        self.left_squares += (2 * *left + moved) * moved;
        self.right_squares -= (2 * right - moved) * moved;
        self.left_by_lost += moved * lost;
        self.right_by_lost -= moved * lost;
        *left += moved;
    }

    #[inline]
    fn score(&self) -> f64 {
        score(
            self.n_left,
            self.n_right,
            self.left_squares,
            self.right_squares,
        )
    }

    /// The score with the missing draws, which are counted on the right, moved to the left.
    #[inline]
    fn score_lost_left(&self) -> f64 {
        score(
            self.n_left + self.lost,
            self.n_right - self.lost,
            self.left_squares + 2 * self.left_by_lost + self.lost_squares,
            self.right_squares + self.lost_squares - 2 * self.right_by_lost,
        )
    }
}

/// NaN if a side is empty.
#[inline]
fn score(n_left: u64, n_right: u64, left_squares: u64, right_squares: u64) -> f64 {
    // With at most 2^20 draws, every product is below 2^60.
    (left_squares * n_right + right_squares * n_left) as f64 / (n_left * n_right) as f64
}
