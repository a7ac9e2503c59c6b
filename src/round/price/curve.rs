//! One increasing function of x, written by the user.

use std::fmt;

use exmex::prelude::*;
use exmex::{FlatExVal, MakeOperators, Val, ValOpsFactory};
use serde::{Deserialize, Serialize};

/// An increasing function of x: a shorthand or an expression.
#[derive(Clone, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Curve {
    text: String,
    shape: Shape,
}

/// Simple shapes are stored as such, because they are cheap to evaluate. All others go through the expression.
#[derive(Clone)]
enum Shape {
    Zero,
    Times(f64),
    Over(f64),
    Expression(Box<FlatExVal<i32, f64>>),
}

/// A number as it is written, very small and large ones with an exponent.
fn short(number: f64) -> String {
    let text = format!("{number:?}");
    text.strip_suffix(".0").unwrap_or(&text).to_owned()
}

/// Why a text is not a price.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PriceError {
    /// The text is not an expression.
    #[error("`{text}` is not a price: {reason}")]
    Unreadable {
        /// What was written.
        text: String,
        /// What the parser reports.
        reason: String,
    },
    /// A name other than x.
    #[error("`{text}` uses `{name}`, but the only variable is `x`")]
    UnknownName {
        /// What was written.
        text: String,
        /// The name that is not x.
        name: String,
    },
    /// An unknown function.
    #[error("`{text}` calls the unknown function `{name}`")]
    UnknownFunction {
        /// What was written.
        text: String,
        /// The name before the bracket.
        name: String,
    },
    /// Infinite, not a number, or negative somewhere.
    #[error("`{text}` is {} at x = {}, which is not a price", short(*value), short(*x))]
    NotAPrice {
        /// What was written.
        text: String,
        /// Where.
        x: f64,
        /// What it is there.
        value: f64,
    },
    /// Falls somewhere on (0, max].
    #[error("`{text}` falls from {from} to {to} near x = {x}, but a price must never fall")]
    Falling {
        /// What was written.
        text: String,
        /// Where.
        x: f64,
        /// Just before.
        from: f64,
        /// Just after.
        to: f64,
    },
}

impl PriceError {
    /// What the user can write instead.
    pub fn hint(&self) -> String {
        match self {
            Self::Unreadable { .. } => {
                "write `none`, `linear`, `par10` or an expression like `x / 10 if x <= 0.5 else 10 * x`".into()
            }
            Self::UnknownName { .. } => "x is consumption / unit; unit is the largest limit by default".into(),
            Self::UnknownFunction { .. } => format!("use one of {}", FUNCTIONS.join(", ")),
            Self::NotAPrice { .. } => "cost and penalty must be finite and at least 0 up to the largest limit".into(),
            Self::Falling { .. } => "using more of the resource must not become cheaper".into(),
        }
    }
}

/// The functions of the expression language that make sense in prices.
const FUNCTIONS: [&str; 12] = [
    "abs", "ceil", "exp", "floor", "ln", "log10", "log2", "max", "min", "round", "sqrt", "tanh",
];

/// Far more than any price needs. Keeps hostile input from exhausting the parser's stack.
const LONGEST: usize = 500;

/// How many points of a curve are sampled before its jumps are located.
const SAMPLES: usize = 2048;

impl Curve {
    /// Reads `none`, `linear`, `parK`, or an expression in x.
    pub fn parse(text: &str) -> Result<Self, PriceError> {
        let text = text.trim();
        let unreadable = |reason: String| PriceError::Unreadable {
            text: text.into(),
            reason,
        };
        if let Some(shape) = Shape::short(text) {
            return Ok(Self {
                text: text.into(),
                shape,
            });
        }
        if text.len() > LONGEST {
            return Err(unreadable(format!("longer than {LONGEST} characters")));
        }
        let parsed =
            exmex::parse_val::<i32, f64>(text).map_err(|error| match unknown_function(text) {
                Some(name) => PriceError::UnknownFunction {
                    text: text.into(),
                    name: name.into(),
                },
                None => unreadable(match missing_operator(text) {
                    Some(instead) => format!("write `{instead}` to multiply"),
                    None => in_our_words(error.msg()),
                }),
            })?;
        if let Some(name) = parsed.var_names().iter().find(|name| *name != "x") {
            return Err(PriceError::UnknownName {
                text: text.into(),
                name: name.clone(),
            });
        }
        Ok(Self {
            text: text.into(),
            shape: Shape::Expression(Box::new(parsed)),
        })
    }

    /// Its value at x; not a number where the expression has none.
    pub fn at(&self, x: f64) -> f64 {
        match &self.shape {
            Shape::Zero => 0.0,
            Shape::Times(factor) => factor * x,
            Shape::Over(divisor) => x / divisor,
            Shape::Expression(expression) => {
                let x = [Val::Float(x)];
                let value = expression.eval(if expression.var_names().is_empty() {
                    &[]
                } else {
                    &x
                });
                match value {
                    Ok(Val::Float(value)) => value,
                    Ok(Val::Int(value)) => f64::from(value),
                    _ => f64::NAN,
                }
            }
        }
    }

    /// Checks that it is finite, not negative and never falling on (0, end].
    pub(super) fn check(&self, end: f64) -> Result<(), PriceError> {
        let not_a_price = |x, value| PriceError::NotAPrice {
            text: self.text.clone(),
            x,
            value,
        };
        let mut points: Vec<f64> = (1..=SAMPLES)
            .map(|k| end * k as f64 / SAMPLES as f64)
            .collect();
        // At zero and next to it too: a run may consume nothing, and `1 / x` is finite on any grid.
        points.splice(0..0, [0.0, f64::MIN_POSITIVE]);
        let mut before = (0.0, f64::NAN);
        for x in points {
            let value = self.at(x);
            if !value.is_finite() {
                return Err(not_a_price(x, value));
            }
            if value < 0.0 {
                // The end is easier to picture than the smallest number there is.
                let x = if self.at(end) < 0.0 { end } else { x };
                return Err(not_a_price(x, self.at(x)));
            }
            let tolerance = 1e-12 * before.1.abs();
            if value < before.1 - tolerance {
                return Err(PriceError::Falling {
                    text: self.text.clone(),
                    x,
                    from: before.1,
                    to: value,
                });
            }
            before = (x, value);
        }
        Ok(())
    }

    /// The jumps in (0, end), each given as the last x before it.
    ///
    /// A sample interval that rises more than its neighbours is halved until two adjacent numbers remain. If these
    /// still differ by much, it is a jump and not a slope.
    pub(super) fn jumps(&self, end: f64) -> Vec<f64> {
        if !matches!(self.shape, Shape::Expression(_)) {
            return vec![];
        }
        let x = |k: usize| end * k as f64 / SAMPLES as f64;
        let rises: Vec<f64> = (1..SAMPLES)
            .map(|k| self.at(x(k + 1)) - self.at(x(k)))
            .collect();
        let stands_out = |k: usize| {
            let neighbours = [k.wrapping_sub(1), k + 1]
                .into_iter()
                .filter_map(|j| rises.get(j));
            let least = neighbours.copied().fold(f64::INFINITY, f64::min);
            rises[k] > 1.5 * least
        };
        (0..rises.len())
            .filter(|&k| stands_out(k))
            .filter_map(|k| self.jump_between(x(k + 1), x(k + 2)))
            .collect()
    }

    fn jump_between(&self, mut low: f64, mut high: f64) -> Option<f64> {
        let (mut at_low, mut at_high) = (self.at(low), self.at(high));
        let whole = at_high - at_low;
        loop {
            let middle = f64::midpoint(low, high);
            if middle <= low || middle >= high {
                break;
            }
            let at_middle = self.at(middle);
            if at_middle - at_low > at_high - at_middle {
                (high, at_high) = (middle, at_middle);
            } else {
                (low, at_low) = (middle, at_middle);
            }
        }
        (at_high - at_low > 0.01 * whole).then_some(low)
    }
}

/// The first name before an opening bracket that is not a function. The parser takes it for a variable.
fn unknown_function(text: &str) -> Option<&str> {
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
    let known = ValOpsFactory::<i32, f64>::make();
    text.match_indices('(').find_map(|(at, _)| {
        let before = text[..at].trim_end();
        let name = before.rsplit(|letter| !is_part(letter)).next()?;
        let is_name = name.starts_with(|first: char| first.is_alphabetic() || first == '_');
        let is_known = name == "x" || known.iter().any(|operator| operator.repr() == name);
        (is_name && !is_known).then_some(name)
    })
}

/// `2x` and `10 x`, as people write products on paper: what to write instead.
fn missing_operator(text: &str) -> Option<String> {
    let factor = text.strip_suffix('x')?.trim();
    factor.parse::<f64>().ok()?;
    Some(format!("{factor} * x"))
}

/// Rewrites the parser's message in plain words.
fn in_our_words(message: &str) -> String {
    if message.starts_with("wlog a number") {
        "an operator is missing between two numbers, `x` or brackets".into()
    } else if message.starts_with("wlog an opening") {
        "there is nothing between the brackets".into()
    } else if message.contains("comma") {
        "a comma outside of a function with two values".into()
    } else {
        "it is not an expression in x".into()
    }
}

impl Shape {
    /// `none`, `linear`, `parK`, and the forms of a straight line people write: `x`, `10 * x`, `x * 10`, `x / 10`.
    fn short(text: &str) -> Option<Self> {
        let number = |text: &str| {
            text.trim()
                .parse::<f64>()
                .ok()
                .filter(|factor| factor.is_finite())
        };
        match text {
            "none" => return Some(Self::Zero),
            "linear" | "x" => return Some(Self::Times(1.0)),
            _ => {}
        }
        if let Some(factor) = text.strip_prefix("par").and_then(number) {
            return Some(Self::Times(factor));
        }
        if let Some((left, right)) = text.split_once('*') {
            let factor = if left.trim() == "x" {
                right
            } else if right.trim() == "x" {
                left
            } else {
                return None;
            };
            return number(factor).map(Self::Times);
        }
        let (left, right) = text.split_once('/')?;
        (left.trim() == "x").then(|| number(right).map(Self::Over))?
    }
}

impl From<Curve> for String {
    fn from(curve: Curve) -> Self {
        curve.text
    }
}

impl TryFrom<String> for Curve {
    type Error = PriceError;

    fn try_from(text: String) -> Result<Self, PriceError> {
        Self::parse(&text)
    }
}

impl fmt::Display for Curve {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(&self.text)
    }
}

impl fmt::Debug for Curve {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "Curve({})", self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str, x: f64) -> f64 {
        Curve::parse(text).unwrap().at(x)
    }

    #[test]
    fn shorthands_and_expressions_agree() {
        for x in [0.1, 0.5, 1.0, 3.0] {
            assert_eq!(at("linear", x), at("x + 0", x));
            assert_eq!(at("par10", x), at("10 * (x)", x));
            assert_eq!(at("par2.5", x), at("(x) * 2.5", x));
            assert_eq!(at("x / 10", x), at("(x) / 10", x));
            assert_eq!(at("none", x), 0.0);
        }
        assert_eq!(at("x ^ 2", 3.0), 9.0);
        assert_eq!(at("x / 10 if x <= 0.5 else 10 * x", 0.5), 0.05);
        assert_eq!(at("x / 10 if x <= 0.5 else 10 * x", 0.75), 7.5);
        assert_eq!(at("3", 0.75), 3.0);
    }

    #[test]
    fn bad_prices_are_refused_with_the_reason() {
        let refused = |text: &str| Curve::parse(text).unwrap_err();
        assert!(matches!(refused("x +"), PriceError::Unreadable { .. }));
        assert!(matches!(refused(""), PriceError::Unreadable { .. }));
        assert!(matches!(
            refused(&"(".repeat(100_000)),
            PriceError::Unreadable { .. }
        ));
        assert!(matches!(
            refused("10 * tau"),
            PriceError::UnknownName { .. }
        ));
        let unchecked = |text: &str| Curve::parse(text).unwrap().check(1.0);
        assert!(matches!(
            unchecked("1 - x"),
            Err(PriceError::Falling { .. })
        ));
        assert!(matches!(
            unchecked("10 * x if x <= 0.5 else x / 10"),
            Err(PriceError::Falling { .. })
        ));
        assert!(matches!(
            unchecked("1 / x"),
            Err(PriceError::NotAPrice { .. } | PriceError::Falling { .. })
        ));
        assert!(matches!(
            unchecked("0 - 1 + x"),
            Err(PriceError::NotAPrice { .. })
        ));
        assert!(matches!(
            unchecked("par-1"),
            Err(PriceError::NotAPrice { .. })
        ));
        let negative = unchecked("-x").unwrap_err().to_string();
        assert_eq!(negative, "`-x` is -1 at x = 1, which is not a price");
        assert_eq!(unchecked("sqrt(x)"), Ok(()));
        assert_eq!(unchecked("3"), Ok(()));
    }

    #[test]
    fn what_the_parser_says_is_said_in_our_words() {
        let refused = |text: &str| Curve::parse(text).unwrap_err();
        let of = |text: &str| match refused(text) {
            PriceError::UnknownFunction { name, .. } => name,
            other => panic!("{other:?}"),
        };
        assert_eq!(of("foo(x)"), "foo");
        assert_eq!(of("10 * sqrtt (x) + 1"), "sqrtt");
        assert_eq!(of("pow(x, 2)"), "pow");
        assert!(refused("foo(x)").hint().contains("max, min"));
        for text in [
            "2 (x)",
            "x (2)",
            "(x) 2",
            "x + ()",
            "sqrt(x, 2)",
            "2, x",
            "2x",
            "x 2",
            "x +",
            "*",
            "(x",
        ] {
            let said = refused(text).to_string();
            let is_ours = ["wlog", "Paren", "Num", "Op(", "variable"]
                .iter()
                .all(|word| !said.contains(word));
            assert!(is_ours, "{text}: {said}");
        }
        for (text, instead) in [
            ("2x", "`2 * x`"),
            ("10 x", "`10 * x`"),
            ("1e-3x", "`1e-3 * x`"),
        ] {
            let said = refused(text).to_string();
            assert!(said.contains(instead), "{text}: {said}");
        }
    }

    proptest::proptest! {
        /// Any text is either read or refused, and what was read can be evaluated at every x.
        #[test]
        fn any_text_is_a_price_or_refused(text in r"[x0-9.+*/^()<>= ,a-z]{0,40}", x in 0.0..10.0_f64) {
            match Curve::parse(&text) {
                Ok(curve) => {
                    let again = Curve::parse(&curve.to_string()).unwrap();
                    proptest::prop_assert_eq!(curve.at(x).to_bits(), again.at(x).to_bits());
                    let _ = curve.check(1.0);
                }
                Err(error) => proptest::prop_assert!(!error.to_string().contains("wlog")),
            }
        }
    }

    #[test]
    fn the_functions_we_name_are_there() {
        for name in FUNCTIONS {
            let text = match name {
                "min" | "max" => format!("{name}(x, 2)"),
                _ => format!("{name}(x)"),
            };
            assert!(at(&text, 1.5).is_finite(), "{text}");
        }
    }

    #[test]
    fn slopes_are_no_jumps() {
        for text in [
            "x ^ 8",
            "sqrt(x)",
            "exp(20 * x)",
            "x if x < 0.5 else 3 * x - 1",
        ] {
            assert!(Curve::parse(text).unwrap().jumps(1.0).is_empty(), "{text}");
        }
    }

    /// Expressions as people write them, some of them wrong.
    fn any_expression() -> impl proptest::strategy::Strategy<Value = String> {
        use proptest::prelude::*;
        let leaf = prop_oneof![
            Just("x".to_owned()),
            "[0-9]{1,3}",
            "[0-9]\\.[0-9]",
            Just(String::new())
        ];
        leaf.prop_recursive(4, 24, 3, |inner| {
            let binary = prop_oneof![Just("+"), Just("-"), Just("*"), Just("/"), Just("^")];
            prop_oneof![
                (inner.clone(), binary, inner.clone())
                    .prop_map(|(a, op, b)| format!("{a} {op} {b}")),
                inner.clone().prop_map(|a| format!("({a})")),
                ("[a-z]{2,5}", inner.clone()).prop_map(|(name, a)| format!("{name}({a})")),
                inner.prop_map(|a| format!("-{a}")),
            ]
        })
    }

    proptest::proptest! {
        #[test]
        fn a_price_that_passes_its_check_is_finite_and_the_same_when_read_again(text in any_expression()) {
            if let Ok(curve) = Curve::parse(&text) {
                let again = Curve::parse(&curve.to_string()).unwrap();
                if curve.check(10.0).is_ok() {
                    for x in [0.0, 1e-9, 0.5, 3.0, 10.0] {
                        proptest::prop_assert!(curve.at(x).is_finite(), "{x}: {}", curve.at(x));
                        proptest::prop_assert_eq!(curve.at(x), again.at(x));
                    }
                }
            }
        }

        #[test]
        fn any_text_is_a_price_or_refused_in_words(text in "\\PC{0,40}") {
            if let Err(error) = Curve::parse(&text) {
                proptest::prop_assert!(!error.to_string().is_empty() && !error.hint().is_empty());
            }
        }

        #[test]
        fn sums_and_products_are_computed_as_written(a in 0_u32..1000, b in 0_u32..1000, x in 0.0..100.0_f64) {
            let seen = at(&format!("{a} + {b} * x"), x);
            let expected = f64::from(a) + f64::from(b) * x;
            proptest::prop_assert!((seen - expected).abs() <= 1e-12 * expected.abs().max(1.0));
        }
    }
}
