//! One parameter and the values it can take.

use std::fmt;
use std::sync::Arc;

use serde::{Serialize, Serializer};

/// A value of a parameter.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// True or false.
    Flag(bool),
    /// A whole number.
    Integer(i64),
    /// Any other number; finite.
    Number(f64),
    /// A word.
    Text(Arc<str>),
}

impl Value {
    /// As a number, if it is one.
    pub fn number(&self) -> Option<f64> {
        match self {
            Self::Integer(value) => Some(*value as f64),
            Self::Number(value) => Some(*value),
            Self::Flag(_) | Self::Text(_) => None,
        }
    }

    /// Whether both mean the same, however they are written: `1` is `1.0`.
    pub fn means(&self, other: &Self) -> bool {
        match (self.number(), other.number()) {
            (Some(ours), Some(theirs)) => ours == theirs,
            _ => self == other,
        }
    }

    /// A flag, a number or a text of JSON.
    pub fn from_json(value: &serde_json::Value) -> Option<Self> {
        Some(match value {
            serde_json::Value::Bool(flag) => Self::Flag(*flag),
            serde_json::Value::Number(number) => match number.as_i64() {
                Some(whole) => Self::Integer(whole),
                None => Self::Number(number.as_f64()?),
            },
            serde_json::Value::String(text) => Self::Text(text.as_str().into()),
            _ => return None,
        })
    }

    /// A cell of a CSV file: a flag or a number if it reads as one, else text.
    pub fn read(text: &str) -> Self {
        match text {
            "true" => return Self::Flag(true),
            "false" => return Self::Flag(false),
            _ => {}
        }
        if let Ok(value) = text.parse::<i64>() {
            return Self::Integer(value);
        }
        let looks_like_a_number =
            text.starts_with(|letter: char| letter.is_ascii_digit() || "+-.".contains(letter));
        match text.parse::<f64>() {
            Ok(value) if value.is_finite() && looks_like_a_number => Self::Number(value),
            _ => Self::Text(text.into()),
        }
    }
}

impl fmt::Display for Value {
    /// As on a command line: the shortest digits that read back exactly, and `1.0` stays `1.0`.
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(value) => value.fmt(to),
            Self::Integer(value) => value.fmt(to),
            Self::Number(value) => fmt::Debug::fmt(value, to),
            Self::Text(value) => value.fmt(to),
        }
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Flag(value) => to.serialize_bool(*value),
            Self::Integer(value) => to.serialize_i64(*value),
            Self::Number(value) => to.serialize_f64(*value),
            Self::Text(value) => to.serialize_str(value),
        }
    }
}

/// How the values of a parameter relate to one another, for policies that learn from similar arms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// Numbers.
    Number,
    /// Words in an order: the order in which they are listed.
    Ordered,
    /// Words, or true and false, without an order.
    Category,
}

/// A parameter: its name and its values, each once.
#[derive(Debug, Clone, PartialEq)]
pub struct Parameter {
    name: Arc<str>,
    values: Vec<Value>,
    scale: Scale,
}

impl Parameter {
    /// A parameter with these values. Words have no order.
    pub fn new(name: impl Into<Arc<str>>, values: Vec<Value>) -> Self {
        let is_number = values.iter().all(|value| value.number().is_some());
        let scale = if is_number {
            Scale::Number
        } else {
            Scale::Category
        };
        Self {
            name: name.into(),
            values,
            scale,
        }
    }

    /// A parameter whose values are ordered as listed.
    pub fn ordered(name: impl Into<Arc<str>>, values: Vec<Value>) -> Self {
        Self {
            scale: Scale::Ordered,
            ..Self::new(name, values)
        }
    }

    /// A parameter whose values have no order, even if all are numbers.
    pub fn category(name: impl Into<Arc<str>>, values: Vec<Value>) -> Self {
        Self {
            scale: Scale::Category,
            ..Self::new(name, values)
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn shared_name(&self) -> Arc<str> {
        Arc::clone(&self.name)
    }

    /// Its values. Arms refer to them by index.
    pub fn values(&self) -> &[Value] {
        &self.values
    }

    /// How its values relate.
    pub fn scale(&self) -> Scale {
        self.scale
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_read_as_what_they_look_like() {
        assert_eq!(Value::read("3"), Value::Integer(3));
        assert_eq!(Value::read("-0.5"), Value::Number(-0.5));
        assert_eq!(Value::read("1e-3"), Value::Number(0.001));
        assert_eq!(Value::read("true"), Value::Flag(true));
        for word in ["YES", "inf", "nan", "1e999", "", "3 apples"] {
            assert_eq!(Value::read(word), Value::Text(word.into()), "{word}");
        }
    }

    #[test]
    fn numbers_are_shown_so_that_they_read_back() {
        assert_eq!(Value::Number(1.0).to_string(), "1.0");
        assert_eq!(Value::Number(0.1 + 0.2).to_string(), "0.30000000000000004");
        assert_eq!(Value::Number(1e-10).to_string(), "1e-10");
        assert_eq!(Value::Integer(-3).to_string(), "-3");
    }

    #[test]
    fn one_and_one_point_zero_mean_the_same() {
        assert!(Value::Integer(1).means(&Value::Number(1.0)));
        assert!(!Value::Integer(1).means(&Value::Flag(true)));
        assert!(!Value::Text("1".into()).means(&Value::Integer(1)));
    }
}
