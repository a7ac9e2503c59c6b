//! Configurations near others: a few parameters changed, or two configurations crossed.

use rand::{Rng, RngExt};

use super::domain::INACTIVE;
use super::{OpenSpace, Point};

/// How often a change that is forbidden is tried again.
const MOST_TRIES: usize = 100;

/// The value of a parameter that a change has made active.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NewlyActive {
    /// Its default.
    Default,
    /// A drawn one.
    Drawn,
}

impl OpenSpace {
    /// A configuration that differs in this many parameters, not counting those that become active or inactive by it.
    ///
    /// Nothing if the configuration has no parameter to change, or if all that was tried is forbidden.
    pub fn neighbour<R: Rng + ?Sized>(
        &self,
        point: &Point,
        changes: usize,
        newly: NewlyActive,
        rng: &mut R,
    ) -> Option<Point> {
        let free: Vec<usize> = (0..self.parameters.len())
            .filter(|&place| point.is_active(place) && !self.parameters[place].domain.is_constant())
            .collect();
        let changes = changes.min(free.len());
        if changes == 0 {
            return None;
        }
        let mut codes = vec![INACTIVE; self.parameters.len()];
        for _ in 0..MOST_TRIES {
            codes.copy_from_slice(&point.0);
            for chosen in rand::seq::index::sample(rng, free.len(), changes) {
                let place = free[chosen];
                codes[place] = self.parameters[place].domain.step(codes[place], rng);
            }
            self.activate(&mut codes, |place| self.fresh(place, newly, rng));
            if codes[..] != point.0[..] && self.first_forbidding(&codes).is_none() {
                return Some(Point(codes.into()));
            }
        }
        None
    }

    /// A configuration that takes every parameter from one of two parents, each with equal chance.
    ///
    /// A parameter that neither parent has is drawn. Nothing if all that was tried is forbidden.
    pub fn crossover<R: Rng + ?Sized>(
        &self,
        one: &Point,
        other: &Point,
        rng: &mut R,
    ) -> Option<Point> {
        let mut codes = vec![INACTIVE; self.parameters.len()];
        for _ in 0..MOST_TRIES {
            codes.fill(INACTIVE);
            self.activate(&mut codes, |place| {
                let (first, second) = if rng.random_bool(0.5) {
                    (one.0[place], other.0[place])
                } else {
                    (other.0[place], one.0[place])
                };
                match (first, second) {
                    (INACTIVE, INACTIVE) => self.parameters[place].domain.draw(rng),
                    (INACTIVE, code) | (code, _) => code,
                }
            });
            if self.first_forbidding(&codes).is_none() {
                return Some(Point(codes.into()));
            }
        }
        None
    }

    fn fresh<R: Rng + ?Sized>(&self, place: usize, newly: NewlyActive, rng: &mut R) -> u64 {
        match newly {
            NewlyActive::Default => self.defaults[place],
            NewlyActive::Drawn => self.parameters[place].domain.draw(rng),
        }
    }
}
