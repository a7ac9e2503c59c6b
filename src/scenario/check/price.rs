//! `price`: what consumption and being censored cost.

use super::limits;
use super::{Check, Fields, TargetKind};
use crate::resource::Resource;
use crate::round::{Curve, Limit, Price};
use crate::scenario::model::{LimitSource, Prices};
use crate::scenario::raw::Raw;
use crate::scenario::source::Span;
use crate::scenario::{Caution, Fault};

/// The section as read, with the places that later checks point to.
#[derive(Debug)]
pub(super) struct Read {
    pub(super) prices: Prices,
    pub(super) cost_at: Span,
    pub(super) penalty_at: Span,
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
            ("x / 10", "x / 10 if x <= 0.5 else 10 * x", Some(1.0))
        } else {
            ("x", "10 * x", None)
        };
        return Some(Read {
            prices: Prices {
                cost: default(cost),
                penalty: default(penalty),
                unit,
            },
            cost_at: at,
            penalty_at: at,
        });
    };
    let mut fields = Fields::new(check, node, "price", &["cost", "penalty", "unit"])?;
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
    let ((cost, cost_at), (penalty, penalty_at)) = (cost?, penalty?);
    let unit = match unit {
        None if kind == Some(TargetKind::Synthetic) => Some(1.0),
        unit => super::budget::flat(unit)?,
    };
    Some(Read {
        prices: Prices {
            cost,
            penalty,
            unit,
        },
        cost_at,
        penalty_at,
    })
}

impl Read {
    /// Both curves, wherever a limit can reach.
    pub(super) fn check(&self, check: &mut Check<'_>, limits: &limits::Read) {
        let max = match &limits.from {
            Some(LimitSource::Grid(grid)) => Some(grid.max()),
            Some(LimitSource::Max(max)) => Some(*max),
            // The grid ends at a quantile below the guard; without a unit that quantile is x = 1.
            Some(LimitSource::Calibrate(_)) => limits
                .guards
                .of(limits.of)
                .and_then(|guard| Limit::new(guard).ok()),
            None => None,
        };
        let Some(max) = max else { return };
        let unit = self.prices.unit.unwrap_or(max.get());
        let Prices { cost, penalty, .. } = &self.prices;
        for (key, at, curve) in [
            ("cost", self.cost_at, cost),
            ("penalty", self.penalty_at, penalty),
        ] {
            // One at a time, so that each mistake is put in its place.
            let nothing = Curve::parse("none").expect("our own prices can be read");
            let price = if key == "cost" {
                Price::of(curve.clone(), nothing, unit)
            } else {
                Price::of(nothing, curve.clone(), unit)
            };
            match price.check(max) {
                Ok(warnings) => {
                    for warning in warnings {
                        check.caution(at, Caution::Price(warning));
                    }
                }
                Err(source) => check.fault(at, Fault::Price { key, source }),
            }
        }
    }
}
