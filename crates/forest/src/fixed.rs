//! The target in fixed point, packed with the draw count into one word.
//!
//! One integer addition then updates the sum and the count of a bin, and sums do not depend on the order of the rows.
//! So the forest is the same for any number of threads and any width of SIMD.
//!
//! Precision: a target is stored as an unsigned multiple of a power of two, above the smallest target. With `b` bits
//! for the count of draws, sums get min(52, 64 - b) bits, and one target b fewer: 41 bits at 2,047 draws, 30 at
//! 131,071, 24 at a million. So a whole target below 2^24 is always exact, and any other is off by at most its range
//! times 2^-25 in the worst case (2^-42 on a table like Ames). All sums are exact, and stay exact when converted to
//! `f64`.

/// How targets are packed in one fit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Packing {
    /// The target that is stored as 0.
    lowest: f64,
    /// Stored units per unit of the target, a power of two.
    scale: f64,
    /// Bits of the count, below the sum.
    pub(super) shift: u32,
}

impl Packing {
    /// A packing for targets in this range, for trees with this many draws.
    pub(super) fn new(lowest: f64, highest: f64, draws: usize) -> Self {
        let shift = usize::BITS - draws.leading_zeros();
        let sum_bits = (64 - shift).min(52);
        // Largest power of two at which `draws` times the range still fits.
        let most = ((1_u64 << sum_bits) - 1) as f64 / draws.max(1) as f64;
        let range = highest - lowest;
        let mut exponent = (most / range).log2().floor().clamp(-1000.0, 1000.0) as i32;
        while (range * 2_f64.powi(exponent)).round() > most {
            exponent -= 1;
        }
        Self {
            lowest,
            scale: 2_f64.powi(exponent),
            shift,
        }
    }

    /// The coarsest packing that still holds all these targets exactly, or this one if none does.
    ///
    /// Whole targets are then small whole numbers, even when centred at a whole mean. So scores that tie in exact
    /// arithmetic tie here too, and the draw order decides.
    pub(super) fn coarsest(self, targets: impl Iterator<Item = f64>) -> Self {
        let mut scale = 1.0;
        // What is whole at one scale is whole at twice that, so one pass over the targets finds the common scale.
        for y in targets {
            while scale < self.scale && ((y - self.lowest) * scale).fract() != 0.0 {
                scale *= 2.0;
            }
            if scale >= self.scale {
                return self;
            }
        }
        Self { scale, ..self }
    }

    /// A packing for class indices. For two classes, 0 and 1 are summed. For more, only the draws are counted.
    pub(super) fn of_classes(draws: usize) -> Self {
        Self {
            lowest: 0.0,
            scale: 1.0,
            shift: usize::BITS - draws.leading_zeros(),
        }
    }

    /// One draw of a row with this target.
    pub(super) fn pack(&self, y: f64) -> u64 {
        let stored = ((y - self.lowest) * self.scale).round() as u64;
        (stored << self.shift) | 1
    }

    pub(super) fn count(&self, packed: u64) -> u64 {
        packed & ((1 << self.shift) - 1)
    }

    pub(super) fn sum(&self, packed: u64) -> u64 {
        packed >> self.shift
    }

    /// The mean target of the draws in a packed sum.
    pub(super) fn mean(&self, packed: u64) -> f64 {
        self.lowest + self.sum(packed) as f64 / self.count(packed) as f64 / self.scale
    }

    /// Converts impurity from stored units squared to units of the target squared.
    pub(super) fn impurity(&self, stored: f64) -> f64 {
        stored / self.scale / self.scale
    }
}

/// What a node's splits are scored against.
///
/// The sums are centred at the mean of the node, rounded to a whole stored unit. That is exact, and nothing cancels
/// when the two squares are added.
#[derive(Debug, Clone, Copy)]
pub(super) struct Total {
    pub(super) count: f64,
    /// Sum of the centred targets.
    pub(super) sum: f64,
    pub(super) centre: f64,
    pub(super) shift: u32,
}

impl Total {
    pub(super) fn new(packing: &Packing, packed: u64) -> Self {
        let (count, sum) = (packing.count(packed), packing.sum(packed));
        let centre = (sum + count / 2) / count.max(1);
        Self {
            count: count as f64,
            sum: sum as f64 - (count * centre) as f64,
            centre: centre as f64,
            shift: packing.shift,
        }
    }

    /// `sumL^2 / nL + sumR^2 / nR` of the split that sends `left` to the left, or NaN if a side is empty.
    ///
    /// Kernels compute exactly this, operation by operation. It has one division instead of two, and is symmetric in
    /// left and right, so that a predictor and its mirror image tie.
    #[inline]
    pub(super) fn score(&self, left: u64) -> f64 {
        // Below 2^52, so that signed gives the same, in one instruction.
        let n_left = (left & ((1 << self.shift) - 1)).cast_signed() as f64;
        let sum_left = (left >> self.shift).cast_signed() as f64 - n_left * self.centre;
        let n_right = self.count - n_left;
        let sum_right = self.sum - sum_left;
        (sum_left * sum_left * n_right + sum_right * sum_right * n_left) / (n_left * n_right)
    }

    /// The score of not splitting. The excess over it is the decrease of impurity.
    pub(super) fn unsplit(&self) -> f64 {
        self.sum * self.sum / self.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn whole_targets_are_exact() {
        let packing = Packing::new(12_789.0, 755_000.0, 1_640);
        for y in [12_789.0, 160_000.0, 755_000.0] {
            assert_eq!(packing.mean(packing.pack(y)), y);
        }
    }

    proptest! {
        #[test]
        fn sums_never_reach_the_count_nor_overflow(
            low in -1e12..1e12_f64, range in 1e-9..1e12_f64, draws in 1_usize..1_000_000,
        ) {
            let packing = Packing::new(low, low + range, draws);
            let packed = packing.pack(low + range);
            let all = u128::from(packed) * draws as u128;
            prop_assert!(all < 1 << 64);
            prop_assert_eq!(packing.count(all as u64), draws as u64);
            prop_assert!(packing.sum(all as u64) < 1 << 52);
            let back = packing.mean(packed);
            prop_assert!((back - (low + range)).abs() <= range * 2_f64.powi(-23) + low.abs() * 1e-15);
        }
    }
}
