//! What one parameter of an open space can be set to.
//!
//! Inside a [`Point`](super::Point) every value is one 64-bit code: the bits of a real, an integer, or the place of a
//! category. Codes are unique: equal values have equal codes, so points are compared and hashed as plain words.

mod scale;

use std::collections::HashMap;
use std::fmt;

use crate::space::Value;
use scale::with_digits;

/// The code of a parameter that is inactive. No value has it: it would be the real -0.0, which is stored as 0.0, or an
/// integer beyond [`LARGEST`].
pub const INACTIVE: u64 = 1 << 63;

/// Integers reach from minus to plus this number, the largest that survives every tool that stores numbers as doubles.
pub const LARGEST: i64 = 1 << 53;

/// More values of one choice than this are refused.
pub const MOST_VALUES: usize = 10_000;

/// More digits after the point are refused.
pub const MOST_DIGITS: u8 = 15;

/// How drawn numbers spread over a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Spacing {
    /// Equal differences are equally likely.
    #[default]
    Linear,
    /// Equal ratios are equally likely.
    Log,
}

/// The values of one parameter.
#[derive(Debug, Clone, PartialEq)]
pub enum Domain {
    /// Any number from `low` to `high`.
    Real {
        /// The smallest value.
        low: f64,
        /// The largest value.
        high: f64,
        /// How drawn values spread.
        spacing: Spacing,
        /// How many digits drawn values have after the point.
        digits: Option<u8>,
    },
    /// A whole number from `low` to `high`.
    Integer {
        /// The smallest value.
        low: i64,
        /// The largest value.
        high: i64,
        /// How drawn values spread.
        spacing: Spacing,
    },
    /// One of several values without an order. A single value makes a constant.
    Choice(Categories),
    /// One of several values that stand in their order.
    Ordered(Categories),
}

/// Why a domain is refused.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum DomainError {
    /// The bounds are the wrong way round.
    #[error("lower bound {low} is above upper bound {high}")]
    EmptyRange {
        /// The lower bound.
        low: f64,
        /// The upper bound.
        high: f64,
    },
    /// A bound that is infinite or not a number.
    #[error("bounds must be finite numbers")]
    NotFinite,
    /// A logarithm of zero or less.
    #[error("a log scale needs a lower bound above 0, not {low}")]
    LogOfZero {
        /// The lower bound.
        low: f64,
    },
    /// Integers that doubles cannot hold.
    #[error("integers must lie between -2^53 and 2^53")]
    TooLarge,
    /// Digits that a double cannot have.
    #[error("a number has 0 to {MOST_DIGITS} digits after its point, not {digits}")]
    TooManyDigits {
        /// As given.
        digits: f64,
    },
    /// No number of the range has so few digits.
    #[error("no number from {low} to {high} has {digits} digits after its point")]
    TooFewDigits {
        /// The lower bound.
        low: f64,
        /// The upper bound.
        high: f64,
        /// How many digits.
        digits: u8,
    },
    /// No values at all.
    #[error("no values to choose from")]
    NoValues,
    /// Too many values.
    #[error("too many values: {count} (at most {MOST_VALUES})")]
    TooMany {
        /// How many.
        count: usize,
    },
    /// A value given twice, perhaps in two ways of writing.
    #[error("duplicate value `{value}`")]
    Duplicate {
        /// The value.
        value: String,
    },
}

/// The values of a choice or of an ordered parameter, each once.
#[derive(Debug, Clone, PartialEq)]
pub struct Categories {
    values: Vec<Value>,
    by_text: HashMap<String, u32>,
    numbers: Option<Vec<f64>>,
}

impl Categories {
    /// These values, in this order. Two that would look the same on a command line are refused.
    pub fn new(values: Vec<Value>) -> Result<Self, DomainError> {
        if values.is_empty() {
            return Err(DomainError::NoValues);
        }
        if values.len() > MOST_VALUES {
            let count = values.len();
            return Err(DomainError::TooMany { count });
        }
        let mut by_text = HashMap::with_capacity(values.len());
        for (place, value) in (0..).zip(&values) {
            if by_text.insert(value.to_string(), place).is_some() {
                let value = value.to_string();
                return Err(DomainError::Duplicate { value });
            }
        }
        let numbers = values.iter().map(number_of).collect();
        Ok(Self {
            values,
            by_text,
            numbers,
        })
    }

    /// The values in their order.
    pub fn values(&self) -> &[Value] {
        &self.values
    }

    /// The place of a value: written the same, or the same number.
    pub fn place(&self, value: &Value) -> Option<u32> {
        self.place_of_text(&value.to_string()).or_else(|| {
            let same = |known: &Value| known.means(value);
            self.values.iter().position(same).map(|place| place as u32)
        })
    }

    /// The place of the value that is written like this, or is the same number.
    pub(super) fn place_of_text(&self, text: &str) -> Option<u32> {
        self.by_text.get(text).copied().or_else(|| {
            let number = text.parse::<f64>().ok()?;
            let numbers = self.numbers.as_ref()?;
            let place = numbers.iter().position(|known| *known == number)?;
            Some(place as u32)
        })
    }

    /// All values as numbers, if all are.
    pub(super) fn numbers(&self) -> Option<&[f64]> {
        self.numbers.as_deref()
    }
}

/// A value as a number, also if it is text such as `1.00`.
fn number_of(value: &Value) -> Option<f64> {
    match value {
        Value::Text(text) => match Value::read(text) {
            Value::Text(_) | Value::Flag(_) => None,
            read => read.number(),
        },
        value => value.number(),
    }
}

/// What it holds, for messages: `whole numbers from 1 to 100`.
impl fmt::Display for Domain {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Real { low, high, .. } => write!(to, "numbers from {low} to {high}"),
            Self::Integer { low, high, .. } => write!(to, "whole numbers from {low} to {high}"),
            Self::Choice(categories) | Self::Ordered(categories) => {
                const MOST: usize = 12;
                let shown = categories.values.iter().take(MOST).map(ToString::to_string);
                to.write_str(&shown.collect::<Vec<_>>().join(", "))?;
                to.write_str(if categories.values.len() > MOST {
                    ", ..."
                } else {
                    ""
                })
            }
        }
    }
}

impl Domain {
    /// Real numbers.
    pub fn real(low: f64, high: f64, spacing: Spacing) -> Result<Self, DomainError> {
        check_range(low, high, spacing)?;
        // Adding zero makes one zero of both.
        let (low, high) = (low + 0.0, high + 0.0);
        let digits = None;
        Ok(Self::Real {
            low,
            high,
            spacing,
            digits,
        })
    }

    /// The same with values of at most this many digits after the point. Bounds with more are moved inwards. Only reals have digits.
    pub fn with_digits(self, digits: f64) -> Result<Self, DomainError> {
        let Self::Real {
            low, high, spacing, ..
        } = self
        else {
            return Ok(self);
        };
        if !(0.0..=f64::from(MOST_DIGITS)).contains(&digits) || digits.fract() != 0.0 {
            return Err(DomainError::TooManyDigits { digits });
        }
        let digits = digits as u8;
        let step = 10_f64.powi(-i32::from(digits));
        let nearest = |bound: f64| (with_digits(bound, digits), bound);
        let inwards = |(nearest, bound): (f64, f64), step: f64| {
            let is_outside = (nearest - bound) * step < 0.0;
            if is_outside {
                with_digits(nearest + step, digits)
            } else {
                nearest
            }
        };
        let narrow = (inwards(nearest(low), step), inwards(nearest(high), -step));
        if narrow.0 > narrow.1 {
            return Err(DomainError::TooFewDigits { low, high, digits });
        }
        let (low, high) = (narrow.0 + 0.0, narrow.1 + 0.0);
        check_range(low, high, spacing)?;
        let digits = Some(digits);
        Ok(Self::Real {
            low,
            high,
            spacing,
            digits,
        })
    }

    /// Whole numbers.
    pub fn integer(low: i64, high: i64, spacing: Spacing) -> Result<Self, DomainError> {
        let is_fine = |bound: i64| (-LARGEST..=LARGEST).contains(&bound);
        if !is_fine(low) || !is_fine(high) {
            return Err(DomainError::TooLarge);
        }
        check_range(low as f64, high as f64, spacing)?;
        Ok(Self::Integer { low, high, spacing })
    }

    /// One of these, without an order.
    pub fn choice(values: Vec<Value>) -> Result<Self, DomainError> {
        Categories::new(values).map(Self::Choice)
    }

    /// One of these, in their order.
    pub fn ordered(values: Vec<Value>) -> Result<Self, DomainError> {
        Categories::new(values).map(Self::Ordered)
    }

    /// How many digits drawn values have after the point, if that is limited.
    pub fn digits(&self) -> Option<u8> {
        match self {
            Self::Real { digits, .. } => *digits,
            _ => None,
        }
    }

    /// Its values, if they are listed.
    pub fn categories(&self) -> Option<&Categories> {
        match self {
            Self::Choice(categories) | Self::Ordered(categories) => Some(categories),
            Self::Real { .. } | Self::Integer { .. } => None,
        }
    }

    /// Whether all its values are numbers.
    pub(in crate::space) fn has_numbers(&self) -> bool {
        self.categories()
            .is_none_or(|categories| categories.numbers().is_some())
    }

    /// Whether it is a choice of `true` and `false`.
    pub fn is_flag(&self) -> bool {
        self.categories().is_some_and(|categories| {
            let mut values = categories.values().iter();
            values.all(|value| matches!(value, Value::Flag(_)))
        })
    }

    /// Whether there is only one value.
    pub fn is_constant(&self) -> bool {
        match self {
            Self::Real { low, high, .. } => low == high,
            Self::Integer { low, high, .. } => low == high,
            Self::Choice(categories) | Self::Ordered(categories) => categories.values.len() == 1,
        }
    }

    /// The value with this code.
    pub(super) fn decode(&self, code: u64) -> Value {
        match self {
            Self::Real { .. } => Value::Number(f64::from_bits(code)),
            Self::Integer { .. } => Value::Integer(code.cast_signed()),
            Self::Choice(categories) | Self::Ordered(categories) => {
                categories.values[code as usize].clone()
            }
        }
    }

    /// The code of a value, if it is one of the domain's.
    pub(super) fn encode(&self, value: &Value) -> Option<u64> {
        match self {
            Self::Real { low, high, .. } => {
                let number = value.number()? + 0.0;
                (*low..=*high).contains(&number).then_some(number.to_bits())
            }
            Self::Integer { low, high, .. } => {
                let number = match value {
                    Value::Integer(number) => *number,
                    Value::Number(number) if number.fract() == 0.0 => *number as i64,
                    _ => return None,
                };
                (*low..=*high).contains(&number).then_some(number as u64)
            }
            Self::Choice(categories) | Self::Ordered(categories) => {
                categories.place(value).map(u64::from)
            }
        }
    }

    /// The value as a number, if it has one.
    pub(super) fn number(&self, code: u64) -> Option<f64> {
        match self {
            Self::Real { .. } => Some(f64::from_bits(code)),
            Self::Integer { .. } => Some(code.cast_signed() as f64),
            Self::Choice(categories) | Self::Ordered(categories) => {
                categories.numbers().map(|numbers| numbers[code as usize])
            }
        }
    }

    /// The smallest and largest number among its values; everything if they are not all numbers.
    pub(super) fn number_bounds(&self) -> (f64, f64) {
        match self {
            Self::Real { low, high, .. } => (*low, *high),
            Self::Integer { low, high, .. } => (*low as f64, *high as f64),
            Self::Choice(categories) | Self::Ordered(categories) => match categories.numbers() {
                None => (f64::NEG_INFINITY, f64::INFINITY),
                Some(numbers) => (
                    numbers.iter().copied().fold(f64::INFINITY, f64::min),
                    numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max),
                ),
            },
        }
    }
}

fn check_range(low: f64, high: f64, spacing: Spacing) -> Result<(), DomainError> {
    if !low.is_finite() || !high.is_finite() || !(high - low).is_finite() {
        return Err(DomainError::NotFinite);
    }
    if low > high {
        return Err(DomainError::EmptyRange { low, high });
    }
    if spacing == Spacing::Log && low <= 0.0 {
        return Err(DomainError::LogOfZero { low });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_domains_are_refused() {
        assert!(Domain::real(1.0, 0.0, Spacing::Linear).is_err());
        let third = || Domain::real(0.331, 0.339, Spacing::Linear).unwrap();
        assert!(third().with_digits(2.0).is_err());
        assert!(third().with_digits(1.5).is_err());
        assert!(third().with_digits(16.0).is_err());
        let positive = Domain::real(0.001, 1.0, Spacing::Log).unwrap();
        assert_eq!(
            positive.with_digits(2.0).unwrap().number_bounds(),
            (0.01, 1.0)
        );
        assert!(Domain::real(0.0, 1.0, Spacing::Log).is_err());
        assert!(Domain::real(f64::MIN, f64::MAX, Spacing::Linear).is_err());
        assert!(Domain::integer(0, LARGEST + 1, Spacing::Linear).is_err());
        assert!(Domain::choice(vec![]).is_err());
        let twice = vec![Value::Integer(1), Value::Text("1".into())];
        assert!(Domain::choice(twice).is_err());
        assert!(Domain::choice((0..=10_000).map(Value::Integer).collect()).is_err());
    }
}
