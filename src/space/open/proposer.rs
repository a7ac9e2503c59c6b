//! Which configurations to open next: drawn ones and children of the best, without a model.
//!
//! The recipe did best in trials on surrogates of two real solvers: 50 drawn arms first. After that a quarter of the new
//! ones is drawn, the others are uniform crossovers of two of the ten best arms, half of these with one or two parameters
//! changed. How many arms there are is up to the policy.

use rand::seq::IndexedRandom;
use rand::{Rng, RngExt};

use super::{NewlyActive, Opened, Origin, Point};
use crate::round::{ArmId, Purpose, Round, randomness};

/// So many arms are drawn at first, not counting the default and those to start with.
const FIRST: usize = 50;
/// A policy can choose among this many new arms from the beginning, on the same count.
pub(super) const POOL: usize = 200;
/// Parents are taken from this many of the best arms.
pub const PARENTS: usize = 10;
/// The share of drawn arms after the first ones.
const DRAWN: f64 = 0.25;
/// How often a proposal that is already open is made again.
const MOST_REPEATS: usize = 20;
/// Of a space with at most this many configurations, those that are left can be listed.
pub(super) const MOST_LISTED: usize = 10_000;

/// A configuration to open.
#[derive(Debug, Clone, PartialEq)]
pub struct Proposal {
    /// The configuration.
    pub point: Point,
    /// Where it came from.
    pub origin: Origin,
}

impl Opened {
    /// The configuration for the next arm, given the best arms so far, the best first.
    ///
    /// A function of the seed, of the arms that are open, and of the ranking, so a resumed run proposes the same. It is a
    /// new configuration unless the space seems to hold no other.
    pub fn propose(&self, seed: u64, ranked: &[ArmId]) -> Proposal {
        let mut rng = randomness(seed, Round(self.len() as u64 + 1), Purpose::Propose);
        let parents = &ranked[..ranked.len().min(PARENTS)];
        let is_drawn = self.drawn() < FIRST || parents.len() < 2 || rng.random_bool(DRAWN);
        let crossed = (!is_drawn).then(|| self.crossed(parents, &mut rng));
        crossed.flatten().unwrap_or_else(|| self.fresh(&mut rng))
    }

    /// A crossover of two of these arms, perhaps changed.
    fn crossed<R: Rng>(&self, parents: &[ArmId], rng: &mut R) -> Option<Proposal> {
        let space = self.space();
        for _ in 0..MOST_REPEATS {
            let pair = rand::seq::index::sample(rng, parents.len(), 2);
            let (one, other) = (parents[pair.index(0)], parents[pair.index(1)]);
            let crossed = space.crossover(self.point(one), self.point(other), rng);
            let Some(mut point) = crossed else { continue };
            let mut changed = vec![];
            if rng.random_bool(0.5) {
                let changes = if rng.random_bool(0.3) { 2 } else { 1 };
                let newly = if rng.random_bool(0.5) {
                    NewlyActive::Default
                } else {
                    NewlyActive::Drawn
                };
                if let Some(next) = space.neighbour(&point, changes, newly, rng) {
                    let named = |place: usize| space.parameters()[place].name.to_string();
                    changed = point.differences(&next).map(named).collect();
                    point = next;
                }
            }
            if self.arm(&point).is_none() {
                let from = vec![one, other];
                let origin = Origin::Proposed { from, changed };
                return Some(Proposal { point, origin });
            }
        }
        None
    }

    /// A drawn configuration, if possible one that is not open.
    fn fresh<R: Rng>(&self, rng: &mut R) -> Proposal {
        let space = self.space();
        let is_new = |point: &Point| self.arm(point).is_none();
        let mut drawn = (0..MOST_REPEATS).map_while(|_| space.draw(rng).ok());
        let point = drawn.find(is_new).or_else(|| {
            let all = space.all(MOST_LISTED)?;
            let left: Vec<Point> = all.into_iter().filter(is_new).collect();
            left.choose(rng).cloned()
        });
        Proposal {
            point: point.unwrap_or_else(|| space.default_point().clone()),
            origin: Origin::Sampled,
        }
    }
}

/// The best of `drawn` uniformly drawn arms is, with 95 % confidence, within this share of the best of the space.
///
/// The chance that all miss the top share s is (1 - s)^N, which is below exp(-s N): 5 % at s = ln(20) / N.
pub fn confident_share(drawn: usize) -> f64 {
    (20_f64.ln() / drawn as f64).min(1.0)
}
