//! What one arm runs with.

use std::fmt;
use std::sync::Arc;

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use super::Value;

/// Named values, in the order of the scenario's parameters; those that an arm does not have are left out.
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

    /// How many parameters the arm has.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether it has none, as arms that are only named.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }
}

/// `fast: trees=100 mtry=20`, as one line for people.
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

/// An object of the parameters; an arm's own name stands first, under `name`.
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
