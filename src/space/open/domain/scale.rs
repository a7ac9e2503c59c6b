//! A domain as a scale from 0 to 1: drawing values, their distances, and steps to other values.

use rand::{Rng, RngExt};

use super::{Domain, LARGEST, Spacing};

impl Domain {
    /// The middle of the (log) range, or the first value.
    pub(in crate::space::open) fn middle(&self) -> u64 {
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
    pub(in crate::space::open) fn draw<R: Rng + ?Sized>(&self, rng: &mut R) -> u64 {
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
    pub(in crate::space::open) fn from_unit(&self, unit: f64) -> u64 {
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
    pub(in crate::space::open) fn unit(&self, code: u64) -> f64 {
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
    pub(in crate::space::open) fn step<R: Rng + ?Sized>(&self, code: u64, rng: &mut R) -> u64 {
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

/// Every whole number has the same share as its neighbours' ratio asks for, the first and last too.
fn log_edges(low: i64, high: i64) -> (f64, f64) {
    ((low as f64 - 0.5).ln(), (high as f64 + 0.5).ln())
}

/// The nearest number with this many digits after the point.
pub(super) fn with_digits(value: f64, digits: u8) -> f64 {
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
    use crate::space::Value;
    use proptest::prelude::*;
    use rand::SeedableRng;
    use rand_pcg::Pcg64Mcg;

    fn any_domain() -> impl Strategy<Value = Domain> {
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
}
