//! When arms join the search: as many as what was spent can look at.
//!
//! A first look at an arm is one run at the lowest limit worth one. Where most runs end soon, that costs nearly as much as a run
//! at the largest limit, and one look at each of many arms tells less than several at a few of them. So arms join one by one:
//! their number grows as the power 2/3 of the looks that were affordable, and the looks at each with the power 1/3. Where looks
//! are cheap, all arms have soon joined.

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64Mcg;

/// So many arms are there from the beginning.
const FIRST: usize = 4;

/// Which arms have joined.
#[derive(Debug)]
pub(super) struct Joining {
    /// How many have joined, and for every arm its place in the order in which they do.
    joined: usize,
    places: Vec<u32>,
}

impl Joining {
    /// Arms join by number.
    pub(super) fn new(arms: usize) -> Self {
        Self {
            joined: FIRST.min(arms),
            places: (0..arms as u32).collect(),
        }
    }

    /// Arms join in random order: those of a list are often sorted. The first one stays the first.
    pub(super) fn shuffle(&mut self, seed: u32) {
        let mut order: Vec<u32> = (1..self.places.len() as u32).collect();
        order.shuffle(&mut Pcg64Mcg::seed_from_u64(u64::from(seed)));
        for (place, arm) in (1..).zip(order) {
            self.places[arm as usize] = place;
        }
    }

    /// So many more arms may join, after all others.
    pub(super) fn add_arms(&mut self, count: usize) {
        let known = self.places.len() as u32;
        self.places.extend(known..known + count as u32);
    }

    /// Lets arms join, once this many looks were affordable.
    pub(super) fn grow(&mut self, looks: f64) {
        let wanted = looks.powf(2.0 / 3.0) as usize;
        self.joined = self.joined.max(wanted.max(FIRST)).min(self.places.len());
    }

    pub(super) fn joined(&self) -> usize {
        self.joined
    }

    pub(super) fn place(&self, arm: usize) -> u32 {
        self.places[arm]
    }

    pub(super) fn has_joined(&self, arm: usize) -> bool {
        (self.places[arm] as usize) < self.joined
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arms_of_a_list_join_in_random_order_after_the_first() {
        let mut joining = Joining::new(100);
        joining.shuffle(3);
        assert!(joining.has_joined(0));
        let mut places: Vec<u32> = (0..100).map(|arm| joining.place(arm)).collect();
        assert!(!places.is_sorted());
        places.sort_unstable();
        assert_eq!(places, (0..100).collect::<Vec<_>>());
        joining.grow(65.0);
        assert_eq!(
            (0..100).filter(|arm| joining.has_joined(*arm)).count(),
            16,
            "65 to the power 2/3"
        );
        // Cheaper looks than before do not send arms away.
        joining.grow(8.0);
        assert_eq!(joining.joined(), 16);
        joining.grow(1e9);
        assert_eq!(joining.joined(), 100);
    }
}
