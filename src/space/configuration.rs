//! The configuration of one arm.

use std::fmt;
use std::sync::Arc;

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use super::Value;

/// A line with more parameters than this, and longer than this, is shortened.
const FEW: usize = 8;
const SHORT: usize = 240;

/// Named values, in the order of the scenario's parameters. Those that an arm does not have are left out.
#[derive(Debug, Clone, PartialEq)]
pub struct Configuration {
    pub(super) name: Option<Arc<str>>,
    pub(super) values: Vec<(Arc<str>, Value)>,
}

impl Configuration {
    /// The arm's own name, if it was given one.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// The value of this parameter, if the arm has it.
    pub fn get(&self, parameter: &str) -> Option<&Value> {
        self.values
            .iter()
            .find(|(name, _)| &**name == parameter)
            .map(|(_, value)| value)
    }

    /// Parameters with their values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.values.iter().map(|(name, value)| (&**name, value))
    }

    /// As one line that is not too long to read: of many parameters, the first few and how many there are.
    pub fn in_short(&self) -> String {
        let text = self.to_string();
        if self.values.len() <= FEW || text.chars().count() <= SHORT {
            return text;
        }
        let few = Self {
            name: self.name.clone(),
            values: self.values[..FEW].to_vec(),
        };
        format!("{few} and {} more parameters", self.values.len() - FEW)
    }

    /// How many parameters the arm has.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether it has none, like arms that only have a name.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }
}

/// Named values, in this order.
impl FromIterator<(String, Value)> for Configuration {
    fn from_iter<I: IntoIterator<Item = (String, Value)>>(values: I) -> Self {
        let values = values.into_iter();
        Self {
            name: None,
            values: values.map(|(name, value)| (name.into(), value)).collect(),
        }
    }
}

/// `fast: trees=100 mtry=20`: one line for people.
impl fmt::Display for Configuration {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut gap = "";
        if let Some(name) = &self.name {
            write!(to, "{name}")?;
            gap = ": ";
        }
        for (name, value) in &self.values {
            write!(to, "{gap}{name}={value}")?;
            gap = " ";
        }
        if self.name.is_none() && self.values.is_empty() {
            to.write_str("(no parameters)")?;
        }
        Ok(())
    }
}

/// An object with the parameters. An arm's own name comes first, under `name`.
impl Serialize for Configuration {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(None)?;
        if let Some(name) = self.name() {
            map.serialize_entry("name", name)?;
        }
        for (name, value) in self.iter() {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_many_parameters_is_shortened() {
        let many = |count: usize| -> Configuration {
            let value = |k: usize| (format!("parameter_{k}"), Value::Integer(100_000));
            (0..count).map(value).collect()
        };
        assert_eq!(many(9).in_short(), many(9).to_string());
        let short = many(150).in_short();
        assert!(
            short.ends_with("parameter_7=100000 and 142 more parameters"),
            "{short}"
        );
    }

    #[test]
    fn it_reads_well_and_is_plain_json() {
        let configuration = Configuration {
            name: Some("fast".into()),
            values: vec![
                ("trees".into(), Value::Integer(100)),
                ("bootstrap".into(), Value::Flag(true)),
            ],
        };
        assert_eq!(configuration.to_string(), "fast: trees=100 bootstrap=true");
        assert_eq!(
            serde_json::to_string(&configuration).unwrap(),
            r#"{"name":"fast","trees":100,"bootstrap":true}"#
        );
        assert_eq!(configuration.get("trees"), Some(&Value::Integer(100)));
        assert_eq!(configuration.get("mtry"), None);
    }
}
