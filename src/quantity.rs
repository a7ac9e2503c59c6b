//! Durations and sizes as people write them: `2.5s`, `1h 30m`, `200MiB`.
//!
//! ```
//! use captime::quantity::{parse_bytes, parse_seconds, seconds};
//!
//! assert_eq!(parse_seconds("1h 30m")?, 5400.0);
//! assert_eq!(parse_bytes("200MiB")?, 200 << 20);
//! assert_eq!(seconds(0.0124), "12.4 ms");
//! // Seconds or hours? A duration needs its unit.
//! assert_eq!(parse_seconds("90").unwrap_err().hint(), "write `90s`");
//! # Ok::<(), captime::quantity::QuantityError>(())
//! ```

/// Why a text is not a duration or size.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum QuantityError {
    /// A bare number: seconds or hours?
    #[error("`{text}` has no unit")]
    NoUnit {
        /// What was written.
        text: String,
        /// What to write instead.
        example: String,
    },
    /// Neither a number with a unit nor anything else that is known.
    #[error("`{text}` is not a {what}")]
    Unreadable {
        /// What was written.
        text: String,
        /// `duration` or `size`.
        what: &'static str,
        /// What one looks like.
        example: &'static str,
    },
}

impl QuantityError {
    /// What the user can write instead.
    pub fn hint(&self) -> String {
        match self {
            Self::NoUnit { example, .. } => format!("write `{example}`"),
            Self::Unreadable { example, .. } => format!("write it like {example}"),
        }
    }
}

/// Reads a duration in seconds: any fraction, any of ns, us, ms, s, m, h, d, also combined.
///
/// The caller decides about zero and negative values, whose meaning differs.
pub fn parse_seconds(text: &str) -> Result<f64, QuantityError> {
    let trimmed = text.trim();
    // `nan` with a unit is still no number, and neither is a number that overflows to infinity.
    if trimmed.parse::<f64>().is_ok_and(f64::is_finite) {
        return Err(QuantityError::NoUnit {
            text: text.into(),
            example: format!("{trimmed}s"),
        });
    }
    let unreadable = || QuantityError::Unreadable {
        text: text.into(),
        what: "duration",
        example: "`2.5s` or `1h 30m`",
    };
    // A single number with a unit is parsed here: exact decimals, and any number of digits after the point.
    let digits =
        trimmed.trim_end_matches(|letter: char| letter.is_ascii_alphabetic() || letter == 'µ');
    let (number, unit) = (digits.trim_end(), &trimmed[digits.len()..]);
    if let (Ok(number), Some(scale)) = (number.parse::<f64>(), seconds_per(unit)) {
        return if number.is_finite() {
            Ok(scale.apply(number))
        } else {
            Err(unreadable())
        };
    }
    let span: jiff::Span = trimmed.parse().map_err(|_| unreadable())?;
    let days = jiff::SpanRelativeTo::days_are_24_hours();
    span.total((jiff::Unit::Second, days))
        .map_err(|_| unreadable())
}

/// A scale applied by one multiplication or one division, whichever is exact for decimals such as `100ms`.
enum Scale {
    Times(f64),
    Over(f64),
}

impl Scale {
    fn apply(&self, number: f64) -> f64 {
        match self {
            Self::Times(factor) => number * factor,
            Self::Over(divisor) => number / divisor,
        }
    }
}

fn seconds_per(unit: &str) -> Option<Scale> {
    Some(match unit {
        "ns" => Scale::Over(1e9),
        "us" | "µs" => Scale::Over(1e6),
        "ms" => Scale::Over(1e3),
        "s" | "sec" | "secs" | "second" | "seconds" => Scale::Times(1.0),
        "m" | "min" | "mins" | "minute" | "minutes" => Scale::Times(60.0),
        "h" | "hour" | "hours" => Scale::Times(3600.0),
        "d" | "day" | "days" => Scale::Times(86400.0),
        _ => return None,
    })
}

/// Reads a size in bytes: `200MiB`, `1.5GiB`, `4096B`; a bare number is bytes.
pub fn parse_bytes(text: &str) -> Result<u64, QuantityError> {
    text.trim()
        .parse::<bytesize::ByteSize>()
        .map(|size| size.as_u64())
        .map_err(|_| QuantityError::Unreadable {
            text: text.into(),
            what: "size",
            example: "`200MiB` or `2GiB`",
        })
}

/// `1 pull`, `2,000 pulls`.
pub fn counted(count: u64, what: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{} {what}{plural}", whole(count))
}

/// A count with its thousands apart: `2,000`.
pub fn whole(count: u64) -> String {
    grouped(count as f64, 0)
}

/// A number with its thousands apart: `12,345.6`.
pub fn grouped(value: f64, decimals: usize) -> String {
    let text = format!("{:.decimals$}", value.abs());
    let (whole, fraction) = text.split_at(text.find('.').unwrap_or(text.len()));
    let is_zero = text.bytes().all(|byte| matches!(byte, b'0' | b'.'));
    let mut result = String::from(if value < 0.0 && !is_zero { "-" } else { "" });
    for (place, digit) in whole.chars().enumerate() {
        if place > 0 && (whole.len() - place).is_multiple_of(3) {
            result.push(',');
        }
        result.push(digit);
    }
    result + fraction
}

/// Formats seconds for people: `850 us`, `12.4 ms`, `3.21 s`, `4m 05s`, `2h 03m`.
pub fn seconds(value: f64) -> String {
    let magnitude = value.abs();
    if magnitude == 0.0 {
        "0 s".into()
    } else if magnitude < 1e-3 {
        format!("{:.0} us", value * 1e6)
    } else if magnitude < 0.9995 {
        format!("{} ms", significant(value * 1e3))
    } else if magnitude < 119.5 {
        format!("{} s", significant(value))
    } else {
        let sign = if value < 0.0 { "-" } else { "" };
        let whole = magnitude.round() as u64;
        let (hours, minutes, rest) = (whole / 3600, whole / 60 % 60, whole % 60);
        if hours > 0 {
            format!("{sign}{hours}h {minutes:02}m")
        } else {
            format!("{sign}{minutes}m {rest:02}s")
        }
    }
}

/// Three significant digits, no trailing zeros.
fn significant(value: f64) -> String {
    let digits = match value.abs() {
        magnitude if magnitude >= 99.95 => 0,
        magnitude if magnitude >= 9.995 => 1,
        _ => 2,
    };
    let text = format!("{value:.digits$}");
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_not_a_plural() {
        assert_eq!(counted(0, "pull"), "0 pulls");
        assert_eq!(counted(1, "pull"), "1 pull");
        assert_eq!(counted(2, "round"), "2 rounds");
        assert_eq!(counted(2_102_356, "pull"), "2,102,356 pulls");
        assert_eq!(grouped(1_234_567.891, 1), "1,234,567.9");
        assert_eq!(grouped(999.0, 0), "999");
        assert_eq!(grouped(-1000.0, 0), "-1,000");
        assert_eq!(grouped(-0.0001, 2), "0.00");
    }

    #[test]
    fn durations_read_exactly() {
        for (text, expected) in [
            ("2.5s", 2.5),
            ("0.1s", 0.1),
            ("100ms", 0.1),
            ("1ms", 0.001),
            ("1h 30m", 5400.0),
            ("2m30s", 150.0),
            ("1d", 86400.0),
            (" 3 s ", 3.0),
            ("-1s", -1.0),
        ] {
            assert_eq!(parse_seconds(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn a_number_without_a_unit_is_refused_with_the_fix() {
        let error = parse_seconds("60").unwrap_err();
        assert_eq!(error.to_string(), "`60` has no unit");
        assert_eq!(error.hint(), "write `60s`");
    }

    #[test]
    fn nonsense_is_refused() {
        for text in [
            "", "s", "abc", "1x", "NaNs", "infs", "1e999s", "1y", "nan", "1e400",
        ] {
            let error = parse_seconds(text).unwrap_err();
            assert_eq!(error.hint(), "write it like `2.5s` or `1h 30m`", "{text}");
        }
        for text in ["", "MiB", "-1MiB", "lots"] {
            assert!(parse_bytes(text).is_err(), "{text}");
        }
    }

    #[test]
    fn sizes_read_exactly() {
        assert_eq!(parse_bytes("200MiB"), Ok(200 << 20));
        assert_eq!(parse_bytes("1.5GiB"), Ok(3 << 29));
        assert_eq!(parse_bytes("4096"), Ok(4096));
    }

    #[test]
    fn seconds_are_written_for_people() {
        for (value, expected) in [
            (0.0, "0 s"),
            (0.00085, "850 us"),
            (0.0124, "12.4 ms"),
            (0.2, "200 ms"),
            (3.214, "3.21 s"),
            (60.0, "60 s"),
            (245.0, "4m 05s"),
            (7380.0, "2h 03m"),
        ] {
            assert_eq!(seconds(value), expected);
        }
    }
}
