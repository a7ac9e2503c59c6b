//! The product-limit (Kaplan-Meier) estimate of survival, exact for any limits, kept in counts per cell.
//!
//! As long as pulls are cut off at grid points only, the product over the events inside a cell telescopes to one
//! factor, 1 - ended / at risk. A cell in which something was cut off is worked out from its events.

use serde::Serialize;

use super::estimate::PullEvidence;

/// Which estimate of P(C > tau) a policy uses; see docs/paper.md for why not the printed one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Survival {
    /// The share of pulls that exceeded tau among those that reached it.
    Restricted,
    /// Product-limit, from all pulls of the arm.
    KaplanMeier,
}

impl Survival {
    /// As options spell it; the first is the default.
    pub(super) const WORDS: [(&'static str, Self); 2] = [
        ("restricted", Self::Restricted),
        ("kaplan-meier", Self::KaplanMeier),
    ];
}

/// Counts of one arm in the cell (previous limit, limit].
#[derive(Debug, Clone, Copy, Default)]
struct Cell {
    /// Under observation and running at the cell's left end.
    at_risk: u32,
    /// Ended inside.
    ended: u32,
    /// Cut off inside, before the right end.
    cut_off: u32,
}

/// The product-limit estimate of one arm; the limits are the caller's, always the same ascending ones.
#[derive(Debug, Clone)]
pub(super) struct ProductLimit {
    cells: Vec<Cell>,
    /// When each pull of the arm stopped being observed, and whether it had ended.
    history: Vec<(f64, bool)>,
}

impl ProductLimit {
    pub fn new(points: usize) -> Self {
        Self {
            cells: vec![Cell::default(); points],
            history: vec![],
        }
    }

    pub fn learn(&mut self, limits: &[f64], pulled: &PullEvidence) {
        let until = pulled.ended.map_or(pulled.reach, |ended| ended.consumption);
        self.history.push((until, pulled.ended.is_some()));
        enter(limits, &mut self.cells, until, pulled.ended.is_some());
    }

    /// Starts again from the whole history with other limits.
    pub fn regrid(&mut self, limits: &[f64]) {
        self.cells = vec![Cell::default(); limits.len()];
        for &(until, has_ended) in &self.history {
            enter(limits, &mut self.cells, until, has_ended);
        }
    }

    /// Survival at every limit.
    pub fn curve(&self, limits: &[f64]) -> Vec<f64> {
        let mut survival = 1.0;
        let mut left = 0.0;
        let mut curve = Vec::with_capacity(limits.len());
        for (&right, cell) in limits.iter().zip(&self.cells) {
            survival *= if cell.at_risk == 0 {
                // No run was observed there: hazard 1. Carrying survival forward makes runs get stuck.
                0.0
            } else if cell.cut_off == 0 {
                f64::from(cell.at_risk - cell.ended) / f64::from(cell.at_risk)
            } else {
                mixed_factor(cell.at_risk, &self.history, left, right)
            };
            curve.push(survival);
            left = right;
        }
        curve
    }
}

fn enter(limits: &[f64], cells: &mut [Cell], until: f64, has_ended: bool) {
    let mut left = 0.0;
    for (&right, cell) in limits.iter().zip(cells) {
        // An end at the left border belongs to the cell before, except at 0, which has none before it.
        if until <= left && left > 0.0 {
            break;
        }
        cell.at_risk += 1;
        if has_ended && until <= right {
            cell.ended += 1;
        } else if until < right {
            cell.cut_off += 1;
        }
        left = right;
    }
}

/// The product over the events inside a cell in which pulls were also cut off.
fn mixed_factor(at_risk: u32, history: &[(f64, bool)], left: f64, right: f64) -> f64 {
    let is_inside = |&(until, has_ended): &(f64, bool)| {
        (until > left || left == 0.0) && (until < right || (has_ended && until == right))
    };
    let mut inside: Vec<(f64, bool)> = history.iter().copied().filter(is_inside).collect();
    // Of an end and a cut at the same moment the end comes first, as is the custom.
    inside.sort_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1)));
    let mut at_risk = f64::from(at_risk);
    let mut factor = 1.0;
    for (_, has_ended) in inside {
        if has_ended {
            factor *= (at_risk - 1.0) / at_risk;
        }
        at_risk -= 1.0;
    }
    // Those still under observation at the right end survive; if none is left, the rest of the cell was not observed.
    if at_risk > 0.0 { factor } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::estimate::Ended;
    use proptest::prelude::*;

    /// The textbook: sort all times, multiply (1 - 1/at risk) at each end, 0 once no run is left before the limit.
    fn by_the_book(history: &[(f64, bool)], limit: f64) -> f64 {
        let mut sorted = history.to_vec();
        sorted.sort_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1)));
        let mut at_risk = sorted.len() as f64;
        let mut survival = 1.0;
        for (until, has_ended) in sorted {
            if until > limit || (until == limit && !has_ended) {
                return survival;
            }
            if has_ended {
                survival *= (at_risk - 1.0) / at_risk;
            }
            at_risk -= 1.0;
        }
        0.0
    }

    proptest! {
        #[test]
        fn cells_give_what_the_textbook_gives(
            history in prop::collection::vec((0u32..40, any::<bool>()), 1..60),
        ) {
            let limits = [0.5, 1.0, 1.5, 3.0];
            let mut estimate = ProductLimit::new(limits.len());
            let mut times = vec![];
            for (tenths, has_ended) in history {
                let until = f64::from(tenths) / 10.0 + if has_ended { 0.0 } else { 0.05 };
                times.push((until, has_ended));
                let ended = has_ended.then_some(Ended { consumption: until, net: 0.0 });
                estimate.learn(&limits, &PullEvidence { reach: until.max(0.01), granted: 4.0, ended });
            }
            for (k, &limit) in limits.iter().enumerate() {
                let expected = by_the_book(&times, limit);
                prop_assert!((estimate.curve(&limits)[k] - expected).abs() < 1e-9, "limit {limit}");
            }
        }
    }
}
