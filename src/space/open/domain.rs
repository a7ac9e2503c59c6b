//! What one parameter of an open space can be set to.
//!
//! Inside a [`Point`](super::Point) every value is one 64-bit code: the bits of a real, an integer, or the place of a
//! category. Codes are unique: equal values have equal codes, so points are compared and hashed as plain words.

use std::collections::HashMap;
use std::fmt;

use rand::{Rng, RngExt};

use crate::space::Value;

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

    /// The same with values of at most so many digits after the point. Bounds with more are moved inwards. Only reals have digits.
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

    /// The middle of the (log) range, or the first value.
    pub(super) fn middle(&self) -> u64 {
        match *self {
            Self::Integer {
                low,
                high,
                spacing: Spacing::Log,
            } => (low as f64 * high as f64).sqrt().round() as i64 as u64,
            Self::Real { .. } | Self::Integer { .. } => self.from_unit(0.5),
            Self::Choice(_) | Self::Ordered(_) => 0,
        }
    }

    /// A value drawn uniformly on the domain's scale.
    pub(super) fn draw<R: Rng + ?Sized>(&self, rng: &mut R) -> u64 {
        match self {
            Self::Integer {
                low,
                high,
                spacing: Spacing::Linear,
            } => rng.random_range(*low..=*high) as u64,
            Self::Choice(categories) | Self::Ordered(categories) => {
                rng.random_range(0..categories.values.len() as u64)
            }
            Self::Real { .. } | Self::Integer { .. } => self.from_unit(rng.random::<f64>()),
        }
    }

    /// The value at this place of the (log) scale from 0 to 1.
    ///
    /// Reals get about six significant digits, so that command lines stay short.
    #[expect(
        clippy::wrong_self_convention,
        reason = "from the unit scale to a code of this domain"
    )]
    pub(super) fn from_unit(&self, unit: f64) -> u64 {
        match *self {
            Self::Real {
                low,
                high,
                spacing,
                digits,
            } => {
                let (value, step) = match spacing {
                    Spacing::Linear => {
                        let value = low * (1.0 - unit) + high * unit;
                        (value, (high - low) * 1e-6)
                    }
                    Spacing::Log => {
                        let value = (low.ln() * (1.0 - unit) + high.ln() * unit).exp();
                        (value, value * 1e-5)
                    }
                };
                let value = match digits {
                    Some(digits) => with_digits(value, digits),
                    None => rounded(value, step),
                };
                (value.clamp(low, high) + 0.0).to_bits()
            }
            Self::Integer { low, high, spacing } => {
                let value = match spacing {
                    Spacing::Linear => {
                        let steps = ((high - low) as f64 + 1.0) * unit;
                        low.saturating_add(steps.floor() as i64)
                    }
                    Spacing::Log => {
                        let (from, to) = log_edges(low, high);
                        (from * (1.0 - unit) + to * unit).exp().round() as i64
                    }
                };
                value.clamp(low, high) as u64
            }
            Self::Choice(ref categories) | Self::Ordered(ref categories) => {
                let count = categories.values.len();
                ((unit * count as f64) as usize).min(count - 1) as u64
            }
        }
    }

    /// Where a value lies on the (log) scale from 0 to 1; the middle of its share for whole numbers and categories.
    pub(super) fn unit(&self, code: u64) -> f64 {
        match *self {
            Self::Real {
                low, high, spacing, ..
            } => {
                let value = f64::from_bits(code);
                let (low, high, value) = match spacing {
                    Spacing::Linear => (low, high, value),
                    Spacing::Log => (low.ln(), high.ln(), value.ln()),
                };
                if high > low {
                    ((value - low) / (high - low)).clamp(0.0, 1.0)
                } else {
                    0.5
                }
            }
            Self::Integer { low, high, spacing } => {
                let value = code.cast_signed();
                match spacing {
                    Spacing::Linear => ((value - low) as f64 + 0.5) / ((high - low) as f64 + 1.0),
                    Spacing::Log => {
                        let (from, to) = log_edges(low, high);
                        (((value as f64).ln() - from) / (to - from)).clamp(0.0, 1.0)
                    }
                }
            }
            Self::Choice(ref categories) | Self::Ordered(ref categories) => {
                (code as f64 + 0.5) / categories.values.len() as f64
            }
        }
    }

    /// Another value: a step on the scale for numbers, mostly the next one for ordered values, any other of a choice.
    ///
    /// The same value only if there is no other.
    pub(super) fn step<R: Rng + ?Sized>(&self, code: u64, rng: &mut R) -> u64 {
        if self.is_constant() {
            return code;
        }
        match self {
            Self::Real { .. } | Self::Integer { .. } => {
                let here = self.unit(code);
                for _ in 0..32 {
                    // The sum of three uniform numbers is close enough to a normal step of 0.2.
                    let sum: f64 = (0..3).map(|_| rng.random_range(-1.0..1.0)).sum();
                    let there = here + 0.2 * sum;
                    let next = self.from_unit(there.clamp(0.0, 1.0));
                    if (0.0..=1.0).contains(&there) && next != code {
                        return next;
                    }
                }
                self.other(code, rng)
            }
            Self::Choice(_) => self.other(code, rng),
            Self::Ordered(categories) => {
                let last = categories.values.len() as u64 - 1;
                if rng.random_bool(0.2) {
                    return self.other(code, rng);
                }
                let is_up = code == 0 || code < last && rng.random_bool(0.5);
                if is_up { code + 1 } else { code - 1 }
            }
        }
    }

    /// Any other value, all equally likely.
    fn other<R: Rng + ?Sized>(&self, code: u64, rng: &mut R) -> u64 {
        match *self {
            Self::Choice(ref categories) | Self::Ordered(ref categories) => {
                let drawn = rng.random_range(0..categories.values.len() as u64 - 1);
                drawn + u64::from(drawn >= code)
            }
            Self::Integer { low, high, .. } => {
                let drawn = rng.random_range(low..high);
                (drawn + i64::from(drawn >= code.cast_signed())) as u64
            }
            Self::Real { low, high, .. } => {
                let drawn = self.draw(rng);
                if drawn != code {
                    return drawn;
                }
                let end = if f64::from_bits(code) == low {
                    high
                } else {
                    low
                };
                end.to_bits()
            }
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

/// Every whole number has the same share as its neighbours' ratio asks for, the first and last too.
fn log_edges(low: i64, high: i64) -> (f64, f64) {
    ((low as f64 - 0.5).ln(), (high as f64 + 0.5).ln())
}

/// The nearest number with so many digits after the point.
fn with_digits(value: f64, digits: u8) -> f64 {
    let power = 10_f64.powi(i32::from(digits));
    let scaled = value * power;
    if scaled.abs() >= LARGEST as f64 {
        value
    } else {
        scaled.round() / power
    }
}

/// The nearest number with a short decimal form, at most about half of `step` away.
fn rounded(value: f64, step: f64) -> f64 {
    if value == 0.0 || step <= 0.0 || !step.is_finite() {
        return value;
    }
    // Powers of ten up to 10^22 are exact, so one division gives the double nearest to the decimal number.
    let digits = -step.log10().floor();
    if digits.abs() > 22.0 {
        return value;
    }
    let power = 10_f64.powi(digits.abs() as i32);
    let scaled = if digits >= 0.0 {
        value * power
    } else {
        value / power
    };
    if scaled.abs() >= LARGEST as f64 {
        return value;
    }
    if digits >= 0.0 {
        scaled.round() / power
    } else {
        scaled.round() * power
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rand::SeedableRng;
    use rand_pcg::Pcg64Mcg;

    pub(in crate::space) fn any_domain() -> impl Strategy<Value = Domain> {
        let spacing = prop_oneof![Just(Spacing::Linear), Just(Spacing::Log)];
        prop_oneof![
            (1e-6..1e6_f64, 0.0..1e6_f64, spacing.clone())
                .prop_map(|(low, more, spacing)| Domain::real(low, low + more, spacing).unwrap()),
            (-1e6..1e6_f64, 0.0..1e6_f64).prop_map(|(low, more)| Domain::real(
                low,
                low + more,
                Spacing::Linear
            )
            .unwrap()),
            (1e-2..1e3_f64, 0.1..1e3_f64, spacing.clone(), 1..8_u8).prop_map(
                |(low, more, spacing, digits)| {
                    let domain = Domain::real(low, low + more, spacing).unwrap();
                    // A narrow range may lack such numbers.
                    let few = domain.clone().with_digits(f64::from(digits));
                    few.unwrap_or(domain)
                }
            ),
            (1..=LARGEST, 0..=LARGEST, spacing).prop_map(|(low, more, spacing)| {
                let high = low.saturating_add(more).min(LARGEST);
                Domain::integer(low, high, spacing).unwrap()
            }),
            (-LARGEST..=0, 0..=LARGEST).prop_map(|(low, high)| Domain::integer(
                low,
                high,
                Spacing::Linear
            )
            .unwrap()),
            (1..40_i64).prop_map(
                |count| Domain::choice((0..count).map(Value::Integer).collect()).unwrap()
            ),
            (1..40_i64).prop_map(
                |count| Domain::ordered((0..count).map(Value::Integer).collect()).unwrap()
            ),
        ]
    }

    proptest! {
        #[test]
        fn drawn_values_lie_in_the_domain_and_survive_printing(domain in any_domain(), seed: u64) {
            let mut rng = Pcg64Mcg::seed_from_u64(seed);
            for _ in 0..20 {
                let code = domain.draw(&mut rng);
                let value = domain.decode(code);
                prop_assert_eq!(domain.encode(&value), Some(code));
                prop_assert_eq!(domain.encode(&Value::read(&value.to_string())), Some(code));
                prop_assert!((0.0..=1.0).contains(&domain.unit(code)));
                let next = domain.step(code, &mut rng);
                prop_assert!(domain.encode(&domain.decode(next)) == Some(next));
                prop_assert_eq!(next == code, domain.is_constant());
            }
        }

        #[test]
        fn the_unit_scale_is_inverted(domain in any_domain(), unit in 0.0..1.0_f64) {
            let code = domain.from_unit(unit);
            if matches!(domain, Domain::Choice(_) | Domain::Ordered(_)) {
                prop_assert_eq!(domain.from_unit(domain.unit(code)), code);
            }
            prop_assert!((domain.unit(code) - unit).abs() < 0.51 || domain.is_constant());
        }
    }

    #[test]
    fn drawn_reals_are_short() {
        let domain = Domain::real(0.0001, 0.1, Spacing::Log).unwrap();
        let mut rng = Pcg64Mcg::seed_from_u64(1);
        for _ in 0..1000 {
            let text = domain.decode(domain.draw(&mut rng)).to_string();
            assert!(text.len() <= 11, "{text}");
        }
    }

    #[test]
    fn drawn_reals_have_the_digits_asked_for() {
        let mut rng = Pcg64Mcg::seed_from_u64(1);
        for spacing in [Spacing::Linear, Spacing::Log] {
            let domain = Domain::real(0.004, 0.1, spacing).unwrap();
            let domain = domain.with_digits(2.0).unwrap();
            let mut seen = std::collections::BTreeSet::new();
            let mut code = domain.middle();
            for _ in 0..1000 {
                seen.insert(domain.decode(domain.draw(&mut rng)).to_string());
                code = domain.step(code, &mut rng);
                seen.insert(domain.decode(code).to_string());
            }
            let all: Vec<String> = (1..=10)
                .map(|n| (f64::from(n) / 100.0).to_string())
                .collect();
            assert_eq!(seen.into_iter().collect::<Vec<_>>(), all);
        }
    }

    #[test]
    fn middles_are_what_people_expect() {
        let text = |domain: Domain| domain.decode(domain.middle()).to_string();
        assert_eq!(
            text(Domain::real(0.0, 1.0, Spacing::Linear).unwrap()),
            "0.5"
        );
        assert_eq!(text(Domain::real(0.01, 1.0, Spacing::Log).unwrap()), "0.1");
        assert_eq!(
            text(Domain::integer(1, 100, Spacing::Linear).unwrap()),
            "51"
        );
        assert_eq!(text(Domain::integer(0, 10, Spacing::Linear).unwrap()), "5");
        assert_eq!(
            text(Domain::integer(1, 100_000, Spacing::Log).unwrap()),
            "316"
        );
        let huge = Domain::integer(-LARGEST, LARGEST, Spacing::Linear).unwrap();
        assert_eq!(text(huge), "0");
    }

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
