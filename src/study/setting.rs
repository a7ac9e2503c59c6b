//! One problem with its limits and prices, and the gains of all its pairs.

use std::collections::HashMap;

use serde::Serialize;

use super::result::Posed;
use crate::policy::Problem;
use crate::round::{ArmId, Limit, Pull};
use crate::target::VirtualTarget;

/// What policies are compared on.
pub struct StudySetting {
    /// The problem as the user named it.
    pub name: String,
    /// The grid as the user named it.
    pub grid: String,
    /// What policies know about it.
    pub problem: Problem,
    /// What runs a pull.
    pub target: Box<dyn VirtualTarget>,
    /// Gains nu(i, tau), arm by arm, limits ascending.
    gains: Vec<f64>,
    /// The pair to find.
    pub best: Best,
}

/// The best pair on the grid, (i*, tau*).
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Best {
    /// i*.
    pub arm: ArmId,
    /// tau*.
    pub limit: Limit,
    /// nu*.
    pub gain: f64,
    /// The probability that it returns no reward.
    pub censored: f64,
}

impl StudySetting {
    /// Computes the gain of every pair.
    pub fn new(
        name: String,
        grid: String,
        mut problem: Problem,
        target: Box<dyn VirtualTarget>,
    ) -> Self {
        problem.price = problem.price.tabulated(&problem.limits);
        let pairs = || {
            let limits = problem.limits.as_slice();
            let arms = (0..problem.arms).map(ArmId::from_index);
            arms.flat_map(move |arm| limits.iter().map(move |limit| (arm, *limit)))
        };
        let gains: Vec<f64> = pairs()
            .map(|(arm, limit)| target.gain(arm, limit, &problem.price))
            .collect();
        // Of equals, the first, as everywhere.
        let mut best: Option<(f64, ArmId, Limit)> = None;
        for ((arm, limit), gain) in pairs().zip(&gains) {
            if best.is_none_or(|(most, ..)| *gain > most) {
                best = Some((*gain, arm, limit));
            }
        }
        let (gain, arm, limit) = best.expect("a problem has an arm and a limit");
        let best = Best {
            arm,
            limit,
            gain,
            censored: target.censored(arm, limit),
        };
        Self {
            name,
            grid,
            problem,
            target,
            gains,
            best,
        }
    }

    pub(super) fn posed(&self) -> Posed<'_> {
        Posed {
            name: &self.name,
            grid: &self.grid,
            problem: &self.problem,
            best: Some(self.best),
        }
    }
}

/// Regrets of pulls: those on the grid from the table, others (z-RCUCB makes its own limits) computed once each.
pub(super) struct Regrets<'a> {
    setting: &'a StudySetting,
    off_grid: HashMap<(ArmId, u64), f64>,
}

impl<'a> Regrets<'a> {
    pub(super) fn new(setting: &'a StudySetting) -> Self {
        Self {
            setting,
            off_grid: HashMap::new(),
        }
    }

    /// nu* - nu(i, tau). Negative if a limit off the grid is better than any on it.
    pub(super) fn of(&mut self, pull: Pull) -> f64 {
        let StudySetting {
            problem,
            target,
            gains,
            best,
            ..
        } = self.setting;
        let limits = problem.limits.as_slice();
        let place = limits.partition_point(|limit| *limit < pull.limit);
        let gain = if limits.get(place) == Some(&pull.limit) {
            gains[pull.arm.index() * limits.len() + place]
        } else {
            *self
                .off_grid
                .entry((pull.arm, pull.limit.get().to_bits()))
                .or_insert_with(|| target.gain(pull.arm, pull.limit, &problem.price))
        };
        best.gain - gain
    }
}
