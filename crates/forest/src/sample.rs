//! Everything random in a tree: the draws of rows and of predictors.

use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// The random numbers of one tree: a function of the forest's seed and the tree's number, whichever thread grows it.
pub(super) struct Sampler {
    rng: Pcg64Mcg,
    /// Half of the last number, not used yet.
    spare: Option<u32>,
}

impl Sampler {
    pub(super) fn new(seed: u64, tree: usize) -> Self {
        let mut first = Pcg64Mcg::seed_from_u64(seed);
        let key = first.next_u64() ^ (tree as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Self {
            rng: Pcg64Mcg::seed_from_u64(key),
            spare: None,
        }
    }

    /// A number below `bound`, by multiplication. The bias is below 2^-44 for any bound used here.
    #[inline]
    pub(super) fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.rng.next_u64()) * bound as u128) >> 64) as usize
    }

    /// A number below a bound of at most 65,535, at half the cost. The bias is below 2^-16.
    #[inline]
    fn below_small(&mut self, bound: u32) -> u32 {
        let half = if let Some(half) = self.spare.take() {
            half
        } else {
            let both = self.rng.next_u64();
            self.spare = Some((both >> 32) as u32);
            both as u32
        };
        ((u64::from(half) * u64::from(bound)) >> 32) as u32
    }

    /// Moves `count` distinct predictors, uniformly drawn, to the front of `all`, in draw order.
    ///
    /// `all` holds every predictor once, in any order. A random start stays random, so the order is never restored.
    #[inline]
    pub(super) fn draw_predictors(&mut self, all: &mut [u16], count: usize) {
        for place in 0..count {
            let other = place + self.below_small((all.len() - place) as u32) as usize;
            all.swap(place, other);
        }
    }
}
