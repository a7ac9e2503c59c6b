//! The one sequence in which all arms meet the instances, again and again.
//!
//! Instances with similar names are often of one family, on which arms do equally well. So every beginning of the sequence is spread
//! evenly over the sorted names: the first few instances are of different families, and represent the others better than drawn
//! ones. Where names say nothing, the sequence is as good as a random one.

use rand::{Rng, RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// Instances in an order that is drawn with the first pull. Positions count on through further passes.
#[derive(Debug)]
pub(super) struct Sequence {
    /// Instances of one pass.
    pub(super) instances: usize,
    /// The same, neighbours being alike.
    sorted: Vec<u32>,
    order: Vec<u32>,
    positions: Vec<u32>,
}

impl Sequence {
    /// Without names, neighbours in the list are taken to be alike.
    pub(super) fn new(instances: usize, names: &[String]) -> Self {
        let mut sorted: Vec<u32> = (0..instances as u32).collect();
        sorted.sort_by_key(|instance| names.get(*instance as usize));
        Self {
            instances,
            sorted,
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
        self.order = spread(&self.sorted, first % self.instances as u32, &mut rng);
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

/// These in a random order that begins with `first`, if that is among them. Every beginning of it is spread evenly: the two halves
/// take turns, and so do the halves of each.
fn spread(instances: &[u32], first: u32, rng: &mut impl Rng) -> Vec<u32> {
    if instances.len() < 2 {
        return instances.to_vec();
    }
    let is_larger = instances.len() % 2 == 1 && rng.random_bool(0.5);
    let halves = instances.split_at(instances.len() / 2 + usize::from(is_larger));
    let begins = halves.0.contains(&first) || !halves.1.contains(&first) && rng.random_bool(0.5);
    let (one, other) = if begins { halves } else { (halves.1, halves.0) };
    let (one, other) = (spread(one, first, rng), spread(other, first, rng));
    let mut turns = Vec::with_capacity(instances.len());
    let (mut ones, mut others) = (one.iter(), other.iter());
    while turns.len() < instances.len() {
        // The half of which the smaller part was taken.
        let taken = |rest: usize, of: usize| (of - rest) as f64 / of as f64;
        let is_one = taken(ones.len(), one.len()) <= taken(others.len(), other.len());
        turns.extend(if is_one { ones.next() } else { others.next() });
    }
    turns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_instances_are_of_different_families() {
        // Eight families of nine, in an order that hides them.
        let name = |instance: usize| format!("family-{}/{}", instance * 5 % 8, instance);
        let names: Vec<String> = (0..72).map(name).collect();
        for seed in 0..72 {
            let mut sequence = Sequence::new(72, &names);
            sequence.begin(seed);
            assert_eq!(sequence.position(seed), 0);
            let mut met: Vec<u32> = (0..72)
                .filter_map(|position| sequence.instance(position))
                .collect();
            let mut families: Vec<u32> = met[..8].iter().map(|met| met * 5 % 8).collect();
            families.sort_unstable();
            assert_eq!(families, (0..8).collect::<Vec<_>>());
            met.sort_unstable();
            assert_eq!(met, (0..72).collect::<Vec<_>>());
        }
    }

    #[test]
    fn sequences_that_begin_with_the_same_instance_are_alike_and_others_differ() {
        let drawn = |first| {
            let mut sequence = Sequence::new(21, &[]);
            sequence.begin(first);
            sequence.order
        };
        assert_eq!(drawn(3), drawn(3));
        assert_ne!(drawn(3)[1..], drawn(4)[1..]);
    }
}
