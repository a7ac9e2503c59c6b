//! What consumption costs and what being censored costs: the paper's c and lambda, as the user writes them.

mod curve;

pub use curve::{Curve, PriceError};

use super::{Limit, LimitGrid};

/// Cost c and penalty lambda of a scenario, on the scale where they are compared with rewards.
///
/// Both are functions of x = consumption / unit. The paper assumes this scaling without saying so.
#[derive(Debug, Clone)]
pub struct Price {
    cost: Curve,
    penalty: Curve,
    unit: f64,
    /// Limits, ascending, with the penalties there.
    table: Vec<(f64, f64)>,
}

/// Something about a price that is allowed, but that the user should know.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum PriceWarning {
    /// The paper assumes c in [0, 1]. Beyond that, the confidence widths are too narrow.
    #[error(
        "the cost is {cost} at the largest limit; above 1 the confidence intervals are too narrow"
    )]
    CostAboveOne {
        /// c at the largest limit.
        cost: f64,
    },
}

impl Price {
    /// Reads cost and penalty, with x = consumption / `unit`.
    pub fn new(cost: &str, penalty: &str, unit: f64) -> Result<Self, PriceError> {
        Ok(Self::of(Curve::parse(cost)?, Curve::parse(penalty)?, unit))
    }

    /// A price with these curves, where x = consumption / `unit`.
    ///
    /// # Panics
    /// If the unit is not a positive number. The scenario's check refuses that.
    pub fn of(cost: Curve, penalty: Curve, unit: f64) -> Self {
        assert!(unit.is_finite() && unit > 0.0, "a unit is positive");
        Self {
            cost,
            penalty,
            unit,
            table: vec![],
        }
    }

    /// The same price, with the penalties at these limits computed once: they are asked for in every round, and an expression
    /// takes a while.
    #[must_use]
    pub fn tabulated(mut self, limits: &LimitGrid) -> Self {
        let penalty = |limit: &Limit| (limit.get(), self.penalty.at(limit.get() / self.unit));
        self.table = limits.as_slice().iter().map(penalty).collect();
        self
    }

    /// c of what a pull consumed.
    pub fn cost(&self, consumption: f64) -> f64 {
        self.cost.at(consumption / self.unit)
    }

    /// lambda of the limit a pull ran into.
    pub fn penalty(&self, limit: Limit) -> f64 {
        let limit = limit.get();
        let place = self
            .table
            .binary_search_by(|(own, _)| own.total_cmp(&limit));
        place.map_or_else(
            |_| self.penalty.at(limit / self.unit),
            |place| self.table[place].1,
        )
    }

    /// Consumption per x.
    pub fn unit(&self) -> f64 {
        self.unit
    }

    /// Checks that both curves are finite and never fall on (0, max], and returns warnings.
    pub fn check(&self, max: Limit) -> Result<Vec<PriceWarning>, PriceError> {
        let end = max.get() / self.unit;
        self.cost.check(end)?;
        self.penalty.check(end)?;
        let cost = self.cost.at(end);
        Ok(if cost > 1.0 {
            vec![PriceWarning::CostAboveOne { cost }]
        } else {
            vec![]
        })
    }

    /// The limits below `max` after which the penalty jumps, ascending: each is the largest with the lower penalty.
    ///
    /// z-RCUCB needs them in its first grid, because it judges a cell of limits by its right end.
    pub fn penalty_jumps(&self, max: Limit) -> Vec<Limit> {
        let end = max.get() / self.unit;
        let jumps = self.penalty.jumps(end).into_iter().filter_map(|x| {
            // Scaling back may round past the jump; then the next number below is the last cheap limit.
            let cheap = self.penalty.at(x);
            let mut limit = x * self.unit;
            while self.penalty.at(limit / self.unit) > cheap {
                limit = limit.next_down();
            }
            Limit::new(limit).ok()
        });
        jumps.filter(|limit| *limit < max).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit(value: f64) -> Limit {
        Limit::new(value).unwrap()
    }

    #[test]
    fn the_papers_prices_read_as_printed() {
        let price = Price::new("x / 10", "x / 10 if x <= 0.5 else 10 * x", 1.0).unwrap();
        assert_eq!(price.cost(0.4), 0.04);
        assert_eq!(price.penalty(limit(0.5)), 0.05);
        assert_eq!(price.penalty(limit(0.6)), 6.0);
        assert_eq!(price.check(limit(0.9)), Ok(vec![]));
        assert_eq!(price.penalty_jumps(limit(0.9)), [limit(0.5)]);
    }

    #[test]
    fn penalties_at_known_limits_are_those_of_the_expression() {
        let plain = Price::new("x", "x / 10 if x <= 0.5 else 10 * x", 3.0).unwrap();
        let known = plain
            .clone()
            .tabulated(&LimitGrid::new([0.3, 1.5, 3.0]).unwrap());
        for value in [0.1, 0.3, 1.0, 1.5, 1.5_f64.next_up(), 3.0, 4.0] {
            assert_eq!(
                known.penalty(limit(value)),
                plain.penalty(limit(value)),
                "{value}"
            );
        }
    }

    #[test]
    fn x_is_consumption_in_units() {
        let price = Price::new("linear", "par10", 300.0).unwrap();
        assert_eq!(price.cost(150.0), 0.5);
        assert_eq!(price.penalty(limit(300.0)), 10.0);
        assert!(price.penalty_jumps(limit(300.0)).is_empty());
    }

    #[test]
    fn a_jump_is_given_as_the_last_limit_with_the_lower_penalty() {
        for unit in [0.3, 1.0, 7.0, 300.0] {
            let price = Price::new(
                "none",
                "x if x < 0.1 else (2 * x if x <= 0.7 else 5 * x)",
                unit,
            )
            .unwrap();
            let jumps = price.penalty_jumps(limit(unit));
            assert_eq!(jumps.len(), 2, "unit {unit}");
            for jump in jumps {
                let next = limit(jump.get().next_up().next_up());
                assert!(
                    price.penalty(next) > 1.5 * price.penalty(jump),
                    "unit {unit}, jump {jump}"
                );
            }
        }
    }

    #[test]
    fn a_cost_above_one_is_a_warning() {
        let price = Price::new("2 * x", "10 * x", 1.0).unwrap();
        assert_eq!(
            price.check(limit(1.0)),
            Ok(vec![PriceWarning::CostAboveOne { cost: 2.0 }])
        );
    }
}
