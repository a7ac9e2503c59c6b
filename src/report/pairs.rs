//! What is known about every pair, from the same source as the answer.
//!
//! Most policies answer from the plain estimates that all share. If a policy's answer is based on more (similar arms,
//! what is usual), its estimates of the other pairs are used as well: a mean over one lucky pull cannot be compared
//! with them.

use super::History;
use crate::policy::{Known, Recommendation};
use crate::round::{ArmId, Price};

/// What is known about every pair.
pub struct Pairs<'a> {
    known: Option<&'a Known>,
    price: Option<&'a Price>,
    /// By arm, limits ascending. Empty if there are only the plain estimates.
    believed: Vec<Vec<Recommendation>>,
}

impl<'a> Pairs<'a> {
    /// What is known now. Of arms that were never pulled, only the first, the default, is included.
    pub fn of(history: &'a History) -> Self {
        let mut is_asked = vec![false; history.space.len()];
        for played in &history.rounds {
            is_asked[played.arm.index()] = true;
        }
        if let Some(first) = is_asked.first_mut() {
            *first = true;
        }
        let believed = history.space.arms().map(|arm| {
            if is_asked[arm.index()] {
                history.believed(arm)
            } else {
                Some(vec![])
            }
        });
        Self {
            known: history.known(),
            price: history.price(),
            believed: believed.collect::<Option<_>>().unwrap_or_default(),
        }
    }

    /// Whether these are a policy's beliefs, not the plain estimates.
    pub fn is_believed(&self) -> bool {
        !self.believed.is_empty()
    }

    /// What is known about an arm at every limit that one of its pulls reached, limits ascending.
    pub fn reached(&self, arm: ArmId) -> Vec<Recommendation> {
        if self.is_believed() {
            let all = self.believed[arm.index()].iter();
            return all.filter(|there| there.pulls > 0).copied().collect();
        }
        let Some(known) = self.known else {
            return vec![];
        };
        let limits = 0..known.limits().len();
        limits.filter_map(|limit| known.at(arm, limit)).collect()
    }

    /// What is known about an arm at this limit. Posterior estimates reach further than pulls do.
    pub fn at(&self, arm: ArmId, limit: f64) -> Option<Recommendation> {
        let place = self.known?.place(limit)?;
        if self.is_believed() {
            self.believed[arm.index()].get(place).copied()
        } else {
            self.known?.at(arm, place)
        }
    }

    /// An arm at its best limit, among those that its pulls reached.
    pub fn best_of(&self, arm: ArmId) -> Option<Recommendation> {
        if self.is_believed() {
            return highest(self.reached(arm));
        }
        self.known?.at(arm, self.known?.best_of(arm)?)
    }

    /// What a pair is ranked by: its posterior gain, or the gain estimated as if one more run had earned the penalty.
    pub fn worth(&self, pair: &Recommendation) -> f64 {
        if self.is_believed() {
            return pair.gain;
        }
        let penalty = self
            .price
            .map_or(0.0, |price| price.penalty(pair.pull.limit));
        let pulls = pair.pulls as f64;
        (pulls * pair.gain - penalty) / (pulls + 1.0)
    }

    /// The median arm, by the worth of each at its own best limit.
    pub fn median(&self, history: &History) -> Option<ArmId> {
        let mut gains: Vec<(f64, ArmId)> = history
            .space
            .arms()
            .filter_map(|arm| Some((self.best_of(arm)?.gain, arm)))
            .collect();
        gains.sort_by(|a, b| a.0.total_cmp(&b.0));
        gains.get(gains.len() / 2).map(|(_, arm)| *arm)
    }
}

/// The first with the largest gain.
fn highest(pairs: Vec<Recommendation>) -> Option<Recommendation> {
    pairs.into_iter().reduce(
        |best, other| {
            if other.gain > best.gain { other } else { best }
        },
    )
}
