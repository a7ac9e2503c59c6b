//! How much of the resource a pull is granted.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Resource the policy grants to a pull: seconds of wall or CPU time, or a plain count of work. Positive, finite.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct Limit(f64);

/// Why numbers cannot be limits.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum LimitError {
    /// Zero, negative, infinite or not a number.
    #[error("limit {0} is not a positive number")]
    NotPositive(f64),
    /// No limit at all.
    #[error("no limits given")]
    Empty,
    /// The same limit twice.
    #[error("duplicate limit {0}")]
    Twice(f64),
}

impl Limit {
    /// A limit of this size.
    pub fn new(value: f64) -> Result<Self, LimitError> {
        if value.is_finite() && value > 0.0 {
            Ok(Self(value))
        } else {
            Err(LimitError::NotPositive(value))
        }
    }

    /// Its size in the resource's own unit.
    pub fn get(self) -> f64 {
        self.0
    }

    /// The nearest limit that a person would write down: six digits, or whole units if these need more.
    ///
    /// Limits of a grid are computed and have seventeen digits (`0.20199999999999999`). No clock is that exact.
    #[must_use]
    pub fn written(self) -> Self {
        let before_the_point = self.0.log10().floor() as i32 + 1;
        let decimals = usize::try_from(6 - before_the_point).unwrap_or(0);
        let text = format!("{:.decimals$}", self.0);
        text.parse()
            .ok()
            .and_then(|value| Self::new(value).ok())
            .unwrap_or(self)
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(to)
    }
}

impl From<Limit> for f64 {
    fn from(limit: Limit) -> Self {
        limit.0
    }
}

impl TryFrom<f64> for Limit {
    type Error = LimitError;

    fn try_from(value: f64) -> Result<Self, LimitError> {
        Self::new(value)
    }
}

/// The admissible limits, the paper's set M: never empty, strictly ascending.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Vec<f64>", into = "Vec<Limit>")]
pub struct LimitGrid(Vec<Limit>);

impl From<LimitGrid> for Vec<Limit> {
    fn from(grid: LimitGrid) -> Self {
        grid.0
    }
}

impl TryFrom<Vec<f64>> for LimitGrid {
    type Error = LimitError;

    fn try_from(values: Vec<f64>) -> Result<Self, LimitError> {
        Self::new(values)
    }
}

impl LimitGrid {
    /// A grid of these limits, in any order.
    pub fn new(values: impl IntoIterator<Item = f64>) -> Result<Self, LimitError> {
        let mut limits = values
            .into_iter()
            .map(Limit::new)
            .collect::<Result<Vec<_>, _>>()?;
        limits.sort_by(|a, b| a.0.total_cmp(&b.0));
        if let Some(pair) = limits.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(LimitError::Twice(pair[0].0));
        }
        if limits.is_empty() {
            Err(LimitError::Empty)
        } else {
            Ok(Self(limits))
        }
    }

    /// `points` equidistant limits from `from` to `to`, both included; a single point is `to`.
    pub fn equidistant(from: f64, to: f64, points: usize) -> Result<Self, LimitError> {
        let step = (to - from) / (points.max(2) - 1) as f64;
        let between = (0..points.saturating_sub(1)).map(|k| from + step * k as f64);
        Self::new(between.chain((points > 0).then_some(to)))
    }

    /// `max * k / points` for k = 1..=points.
    pub fn fractions(max: f64, points: usize) -> Result<Self, LimitError> {
        Self::new((1..=points).map(|k| max * k as f64 / points as f64))
    }

    /// `points` limits from `from` to `to` with a constant ratio; a single point is `to`.
    pub fn logarithmic(from: f64, to: f64, points: usize) -> Result<Self, LimitError> {
        Limit::new(from)?;
        Limit::new(to)?;
        let ratio = (to / from).ln() / (points.max(2) - 1) as f64;
        let between = (0..points.saturating_sub(1)).map(|k| {
            if k == 0 {
                from
            } else {
                from * (ratio * k as f64).exp()
            }
        });
        Self::new(between.chain((points > 0).then_some(to)))
    }

    /// The limits, ascending.
    pub fn as_slice(&self) -> &[Limit] {
        &self.0
    }

    /// How many limits there are, at least one.
    #[expect(clippy::len_without_is_empty, reason = "a grid is never empty")]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The grid of the largest limit alone.
    #[must_use]
    pub fn only_max(&self) -> Self {
        Self(vec![self.max()])
    }

    /// The largest limit, the paper's tau_max.
    pub fn max(&self) -> Limit {
        *self.0.last().expect("a grid is never empty")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_written_as_people_would() {
        for (value, expected) in [
            (0.201_999_999_999_999_99, "0.202"),
            (1.0 / 3.0, "0.333333"),
            (12.5, "12.5"),
            (59.999_999_999, "60"),
            (1_234_567.8, "1234568"),
            (0.000_012_345_678_9, "0.0000123457"),
            (1e-12, "0.000000000001"),
            (300.0, "300"),
        ] {
            let written = Limit::new(value).unwrap().written();
            assert_eq!(written.to_string(), expected);
            // Six digits.
            assert!((written.get() - value).abs() <= 5e-6 * value);
        }
    }

    fn values(grid: Result<LimitGrid, LimitError>) -> Vec<f64> {
        grid.unwrap()
            .as_slice()
            .iter()
            .map(|limit| limit.get())
            .collect()
    }

    #[test]
    fn grids_are_sorted_and_hit_their_ends() {
        assert_eq!(values(LimitGrid::new([3.0, 1.0, 2.0])), [1.0, 2.0, 3.0]);
        assert_eq!(
            values(LimitGrid::fractions(5.0, 5)),
            [1.0, 2.0, 3.0, 4.0, 5.0]
        );
        assert_eq!(values(LimitGrid::equidistant(0.5, 0.9, 2)), [0.5, 0.9]);
        assert_eq!(values(LimitGrid::equidistant(0.1, 0.9, 1)), [0.9]);
        let log = values(LimitGrid::logarithmic(0.1, 300.0, 8));
        assert_eq!((log.len(), log[0], log[7]), (8, 0.1, 300.0));
        assert!(log.windows(2).all(|pair| pair[0] < pair[1]));
    }

    #[test]
    fn what_is_no_limit_is_refused() {
        for value in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(Limit::new(value).is_err());
        }
        assert_eq!(LimitGrid::new([]), Err(LimitError::Empty));
        assert_eq!(LimitGrid::new([1.0, 1.0]), Err(LimitError::Twice(1.0)));
        assert!(LimitGrid::equidistant(0.1, 0.9, 0).is_err());
        assert!(LimitGrid::logarithmic(0.0, 1.0, 3).is_err());
    }
}
