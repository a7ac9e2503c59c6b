//! Numbers for the page: five digits are more than any chart shows, and take a third of the bytes.

use serde::{Serialize, Serializer};

/// A number with five significant digits. Null if it is not finite.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Num(pub f64);

impl Num {
    /// A number that may be missing.
    pub fn of(value: Option<f64>) -> Self {
        Self(value.unwrap_or(f64::NAN))
    }
}

impl From<f64> for Num {
    fn from(value: f64) -> Self {
        Self(value)
    }
}

impl Serialize for Num {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let value = rounded(self.0);
        if !value.is_finite() {
            to.serialize_none()
        } else if value.fract() == 0.0 && value.abs() < 1e15 {
            to.serialize_i64(value as i64)
        } else {
            to.serialize_f64(value)
        }
    }
}

/// Rounds to five significant digits. Division by a power of ten is rounded correctly, so few digits are printed.
fn rounded(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let digits = 4 - value.abs().log10().floor() as i32;
    if digits > 22 {
        // Too small to be distinguished on a page.
        return 0.0;
    }
    if digits < -22 {
        // Powers of ten are not exact up there, and such numbers are not shown.
        return value;
    }
    if digits >= 0 {
        let scale = 10f64.powi(digits);
        (value * scale).round() / scale
    } else {
        let scale = 10f64.powi(-digits);
        (value / scale).round() * scale
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_digits_are_written() {
        let text = |value: f64| serde_json::to_string(&Num(value)).unwrap();
        assert_eq!(text(1.0 / 3.0), "0.33333");
        assert_eq!(text(-123_456.7), "-123460");
        assert_eq!(text(2.0), "2");
        assert_eq!(text(0.1 + 0.2), "0.3");
        assert_eq!(text(1.234_567e-7), "1.2346e-7");
        assert_eq!(text(1e-300), "0");
        assert_eq!(text(f64::NAN), "null");
        assert_eq!(text(f64::INFINITY), "null");
        assert_eq!(text(1e300).parse(), Ok(1e300));
    }
}
