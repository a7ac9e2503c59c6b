//! The grid of one arm and how it is refined.

use super::super::estimate::{ArmCount, PullEvidence, Standing, Stat, await_pull, learn};
use super::super::rcucb::Width;
use super::super::survival::{ProductLimit, Survival};
use super::super::tournament::Line;
use super::Parameters;
use crate::round::{Limit, Observation, Price};

/// The limits of one arm, what is known at each, and the history they were learned from.
#[derive(Debug, Clone)]
pub(super) struct ArmGrid {
    limits: Vec<Limit>,
    /// The same as plain numbers, and lambda at each.
    points: Vec<f64>,
    penalties: Vec<f64>,
    stats: Vec<Stat>,
    product_limit: Option<ProductLimit>,
    /// All evidence on this arm: a new point starts from it.
    history: Vec<PullEvidence>,
    /// Limits of the pulls under way.
    under_way: Vec<Limit>,
    /// Index lines of all points.
    lines: Vec<Line>,
    width: Width,
    parts: u64,
}

impl ArmGrid {
    pub fn new(first: &[Limit], price: &Price, parameters: &Parameters) -> Self {
        let product_limit =
            (parameters.survival == Survival::KaplanMeier).then(|| ProductLimit::new(first.len()));
        Self {
            limits: first.to_vec(),
            points: first.iter().map(|limit| limit.get()).collect(),
            penalties: first.iter().map(|&limit| price.penalty(limit)).collect(),
            stats: vec![Stat::default(); first.len()],
            product_limit,
            history: vec![],
            under_way: vec![],
            lines: vec![Line::FIRST; first.len()],
            width: parameters.width,
            parts: parameters.m,
        }
    }

    pub fn limits(&self) -> &[Limit] {
        &self.limits
    }

    pub fn limit(&self, k: usize) -> Limit {
        self.limits[k]
    }

    pub fn stat(&self, k: usize) -> &Stat {
        &self.stats[k]
    }

    pub fn penalty(&self, k: usize) -> f64 {
        self.penalties[k]
    }

    pub fn count(&self) -> ArmCount {
        ArmCount {
            observed: self.history.len() as u32,
            pending: self.under_way.len() as u32,
        }
    }

    /// tau - low(tau), with the largest limit scaled to 1; otherwise seconds and hours would zoom differently.
    pub fn refinement(&self, k: usize) -> f64 {
        let low = if k == 0 { 0.0 } else { self.points[k - 1] };
        (self.points[k] - low) / self.points[self.points.len() - 1]
    }

    pub fn survival(&self, k: usize) -> f64 {
        let curve = self.curve();
        curve.map_or_else(|| self.stats[k].survival(), |curve| curve[k])
    }

    /// Survival at every limit, where it is estimated by product-limit.
    fn curve(&self) -> Option<Vec<f64>> {
        Some(self.product_limit.as_ref()?.curve(&self.points))
    }

    /// nu-hat; not a number where nothing was observed.
    pub fn gain(&self, k: usize) -> f64 {
        let survival = self.curve().map(|curve| curve[k]);
        self.stats[k].gain_by(self.penalties[k], survival)
    }

    /// Index lines, limits ascending: nu-hat and refinement, and the confidence width.
    pub fn lines(&self) -> &[Line] {
        &self.lines
    }

    fn redraw(&mut self) {
        let mut drawn = std::mem::take(&mut self.lines);
        drawn.clear();
        let count = self.count();
        let arm_count = f64::from(count.observed + count.pending);
        let curve = self.curve();
        drawn.extend(self.stats.iter().enumerate().map(|(k, stat)| {
            let penalty = self.penalties[k];
            match stat.standing(penalty, curve.as_ref().map(|curve| curve[k])) {
                Standing::Unvisited => Line::FIRST,
                Standing::Awaited => Line::LAST,
                Standing::Known { gain, count } => Line {
                    mean: gain + self.refinement(k),
                    width: self.width.per_s(count, arm_count, penalty),
                },
            }
        }));
        self.lines = drawn;
    }

    pub fn launched(&mut self, limit: Limit) {
        self.under_way.push(limit);
        await_pull(&self.points, &mut self.stats, limit.get(), 1);
        self.redraw();
    }

    pub fn landed(&mut self, limit: Limit) {
        if let Some(place) = self.under_way.iter().position(|&other| other == limit) {
            self.under_way.swap_remove(place);
            await_pull(&self.points, &mut self.stats, limit.get(), -1);
            self.redraw();
        }
    }

    /// Learns, then refines until no cell is larger than the width of its point (eq. `def_ext_crit`).
    pub fn observe(&mut self, seen: &Observation, price: &Price, s: f64) {
        let pulled = PullEvidence::of(seen, price);
        learn(&self.points, &mut self.stats, &pulled);
        if let Some(product_limit) = &mut self.product_limit {
            product_limit.learn(&self.points, &pulled);
        }
        self.history.push(pulled);
        while let Some(k) = (0..self.points.len()).find(|&k| self.is_to_be_extended(k, s)) {
            self.extend(k, price);
        }
        self.redraw();
    }

    fn is_to_be_extended(&self, k: usize, s: f64) -> bool {
        let count = f64::from(self.stats[k].count);
        let width = s * self
            .width
            .per_s(count, self.history.len() as f64, self.penalties[k]);
        self.refinement(k) >= width
    }

    /// Cuts the cell of point k into m: the m - 1 points inside join the grid with the whole history.
    fn extend(&mut self, k: usize, price: &Price) {
        let low = if k == 0 { 0.0 } else { self.points[k - 1] };
        let high = self.points[k];
        let inside = (1..self.parts).map(|j| low + (high - low) * j as f64 / self.parts as f64);
        let inside: Vec<Limit> = inside.filter_map(|point| Limit::new(point).ok()).collect();
        let points: Vec<f64> = inside.iter().map(|limit| limit.get()).collect();
        let mut stats = vec![Stat::default(); inside.len()];
        for pulled in &self.history {
            learn(&points, &mut stats, pulled);
        }
        for limit in &self.under_way {
            await_pull(&points, &mut stats, limit.get(), 1);
        }
        self.penalties
            .splice(k..k, inside.iter().map(|&limit| price.penalty(limit)));
        self.stats.splice(k..k, stats);
        self.points.splice(k..k, points);
        self.limits.splice(k..k, inside);
        if let Some(product_limit) = &mut self.product_limit {
            product_limit.regrid(&self.points);
        }
    }
}
