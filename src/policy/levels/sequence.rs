//! The one sequence in which all arms meet the instances, again and again.

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64Mcg;

/// Instances in a random order that is drawn with the first pull. Positions count on through further passes.
#[derive(Debug)]
pub(super) struct Sequence {
    /// Instances of one pass.
    pub(super) instances: usize,
    order: Vec<u32>,
    positions: Vec<u32>,
}

impl Sequence {
    pub(super) fn new(instances: usize) -> Self {
        Self {
            instances,
            order: vec![],
            positions: vec![],
        }
    }

    pub(super) fn is_drawn(&self) -> bool {
        !self.order.is_empty()
    }

    /// Draws it, unless that is done; it begins with the instance of the first pull.
    pub(super) fn begin(&mut self, first: u32) {
        if self.is_drawn() {
            return;
        }
        let mut rng = Pcg64Mcg::seed_from_u64(u64::from(first));
        self.order = (0..self.instances as u32).collect();
        self.order.shuffle(&mut rng);
        let first = first % self.instances as u32;
        let place = self.order.iter().position(|other| *other == first);
        self.order.swap(0, place.unwrap_or(0));
        self.positions = vec![0; self.instances];
        for (position, instance) in self.order.iter().enumerate() {
            self.positions[*instance as usize] = position as u32;
        }
    }

    pub(super) fn instance(&self, position: usize) -> Option<u32> {
        self.order.get(position % self.instances).copied()
    }

    /// Where an instance stands in the first pass.
    pub(super) fn position(&self, instance: u32) -> usize {
        self.positions[instance as usize % self.instances] as usize
    }
}
