//! What is known about every pair, from the estimates that all policies share.

use super::History;
use crate::policy::{Known, Recommendation};
use crate::round::{ArmId, Price};

/// What is known about every pair.
pub struct Pairs<'a> {
    known: Option<&'a Known>,
    price: Option<&'a Price>,
}

impl<'a> Pairs<'a> {
    /// What is known now.
    pub fn of(history: &'a History) -> Self {
        Self {
            known: history.known(),
            price: history.price(),
        }
    }

    /// What is known about an arm at every limit that one of its pulls reached, limits ascending.
    pub fn reached(&self, arm: ArmId) -> Vec<Recommendation> {
        let Some(known) = self.known else {
            return vec![];
        };
        let limits = 0..known.limits().len();
        limits.filter_map(|limit| known.at(arm, limit)).collect()
    }

    /// What is known about an arm at this limit.
    pub fn at(&self, arm: ArmId, limit: f64) -> Option<Recommendation> {
        self.known?.at(arm, self.known?.place(limit)?)
    }

    /// An arm at its best limit, among those that its pulls reached.
    pub fn best_of(&self, arm: ArmId) -> Option<Recommendation> {
        self.known?.at(arm, self.known?.best_of(arm)?)
    }

    /// What a pair is ranked by: its gain as if one more run had earned the penalty.
    pub fn worth(&self, pair: &Recommendation) -> f64 {
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
