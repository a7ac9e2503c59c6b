//! `price`: what consumption and being censored cost.

use super::limits;
use super::{Check, Fields, TargetKind};
use crate::resource::Resource;
use crate::round::{Curve, Limit, Price};
use crate::scenario::keys;
use crate::scenario::model::{LimitSource, Prices};
use crate::scenario::raw::Raw;
use crate::scenario::{Caution, Fault};
use crate::yaml::Span;

/// The section as far as it could be read, with the positions that later checks point to.
#[derive(Debug)]
pub(super) struct Read {
    cost: Option<(Curve, Span)>,
    penalty: Option<(Curve, Span)>,
    unit: Unit,
}

/// What x = 1 means.
#[derive(Debug, Clone, Copy)]
enum Unit {
    /// The largest limit.
    Largest,
    Given(f64),
    /// Given, but it cannot be read.
    Wrong,
}

pub(super) fn read(
    check: &mut Check<'_>,
    fields: &mut Fields<'_>,
    kind: Option<TargetKind>,
    limits: Option<&limits::Read>,
) -> Option<Read> {
    let default = |text: &str| Curve::parse(text).expect("our own prices can be read");
    let Some(node) = fields.take(check, "price") else {
        let at = Span::default();
        let (cost, penalty, unit) = if kind == Some(TargetKind::Synthetic) {
            // The paper's own, on its scale from 0 to 1.
            ("x / 10", "x / 10 if x <= 0.5 else 10 * x", Unit::Given(1.0))
        } else {
            ("x", "10 * x", Unit::Largest)
        };
        return Some(Read {
            cost: Some((default(cost), at)),
            penalty: Some((default(penalty), at)),
            unit,
        });
    };
    let mut fields = Fields::of(check, node, &keys::PRICE)?;
    let mut curve = |check: &mut Check<'_>, key: &'static str, otherwise: &str| {
        let Some(node) = fields.take(check, key) else {
            return Some((default(otherwise), Span::default()));
        };
        let text = match &node.value {
            Raw::List(_) | Raw::Map(_) => {
                check.wrong_type(node, key, "an expression in x");
                return None;
            }
            _ => check.text(node, key)?,
        };
        match Curve::parse(&text) {
            Ok(curve) => Some((curve, node.at)),
            Err(source) => {
                check.fault(node.at, Fault::Price { key, source });
                None
            }
        }
    };
    let cost = curve(check, "cost", "x");
    let penalty = curve(check, "penalty", "10 * x");
    let of = limits.map_or(Resource::Wall, |limits| limits.of);
    let unit = fields.take(check, "unit").map(|node| match kind {
        Some(TargetKind::Synthetic) => check.amount(node, "unit", Resource::Work),
        _ => check.amount(node, "unit", of),
    });
    fields.finish(check);
    let unit = match unit {
        None if kind == Some(TargetKind::Synthetic) => Unit::Given(1.0),
        None => Unit::Largest,
        Some(Some(unit)) => Unit::Given(unit),
        Some(None) => Unit::Wrong,
    };
    Some(Read {
        cost,
        penalty,
        unit,
    })
}

impl Read {
    /// The prices, if the whole section could be read.
    pub(super) fn finish(self) -> Option<Prices> {
        Some(Prices {
            cost: self.cost?.0,
            penalty: self.penalty?.0,
            unit: match self.unit {
                Unit::Largest => None,
                Unit::Given(unit) => Some(unit),
                Unit::Wrong => return None,
            },
        })
    }

    /// Checks each curve that could be read, up to the largest limit.
    pub(super) fn check(&self, check: &mut Check<'_>, limits: Option<&limits::Read>) {
        let Some((max, unit)) = self.reach(limits) else {
            return;
        };
        let is_calibrated =
            limits.is_some_and(|limits| matches!(limits.from, Some(LimitSource::Calibrate(_))));
        // Limits end at a quantile that is not known yet, perhaps far below the guard.
        let is_guess = is_calibrated && matches!(self.unit, Unit::Given(_));
        for (key, curve) in [("cost", &self.cost), ("penalty", &self.penalty)] {
            let Some((curve, at)) = curve else { continue };
            // One at a time, so that each mistake gets its own position.
            let nothing = Curve::parse("none").expect("our own prices can be read");
            let price = if key == "cost" {
                Price::of(curve.clone(), nothing, unit)
            } else {
                Price::of(nothing, curve.clone(), unit)
            };
            match price.check(max) {
                Ok(warnings) => {
                    for warning in warnings.into_iter().filter(|_| !is_guess) {
                        check.caution(*at, Caution::Price(warning));
                    }
                }
                Err(source) => check.fault(*at, Fault::Price { key, source }),
            }
        }
        if let (Some((cost, _)), Some((penalty, at))) = (&self.cost, &self.penalty) {
            let end = max.get() / unit;
            let (cost, penalty) = (cost.at(end), penalty.at(end));
            if penalty < cost && !is_guess {
                check.caution(*at, Caution::PenaltyBelowCost { cost, penalty });
            }
        }
    }

    /// The largest limit and the unit. If the unit is the largest limit, x ends at 1 whatever that limit is.
    fn reach(&self, limits: Option<&limits::Read>) -> Option<(Limit, f64)> {
        let unit = match self.unit {
            Unit::Largest => return Some((Limit::new(1.0).ok()?, 1.0)),
            Unit::Given(unit) => unit,
            Unit::Wrong => return None,
        };
        match limits {
            Some(limits) => Some((limits.from.as_ref()?.largest(), unit)),
            // The paper's own limits, which end at 1 or before.
            None => Some((Limit::new(1.0).ok()?, unit)),
        }
    }
}
