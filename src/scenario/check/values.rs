//! Plain values. Each is read, or a mistake is noted and `None` is returned.

use super::Check;
use crate::quantity;
use crate::scenario::Fault;
use crate::scenario::raw::{Node, Raw};
use crate::yaml::Span;

/// A longer duration is a mistake: a hundred years, in seconds.
const LONGEST: f64 = 100.0 * 365.25 * 86400.0;

impl Check<'_> {
    /// As it is written.
    pub(super) fn written(&self, node: &Node) -> String {
        match &node.value {
            Raw::List(items) if !items.is_empty() && items.len() <= 6 => {
                let items: Vec<String> = items.iter().map(|item| self.plain(item)).collect();
                format!("`[{}]`", items.join(", "))
            }
            Raw::List(_) | Raw::Map(_) | Raw::Null => node.value.kind().to_owned(),
            _ => format!("`{}`", &self.text[node.at.within(self.text).range()]),
        }
    }

    /// As it is written, without surrounding quotes.
    pub(super) fn plain(&self, node: &Node) -> String {
        self.text[node.at.within(self.text).range()].to_owned()
    }

    pub(super) fn wrong_type(&mut self, node: &Node, key: &str, expected: impl Into<String>) {
        let found = self.written(node);
        self.fault(
            node.at,
            Fault::WrongType {
                key: key.into(),
                expected: expected.into(),
                found,
            },
        );
    }

    pub(super) fn out_of_range(&mut self, node: &Node, key: &str, expected: impl Into<String>) {
        let value = self.written(node);
        self.fault(
            node.at,
            Fault::OutOfRange {
                key: key.into(),
                expected: expected.into(),
                value,
            },
        );
    }

    /// Text. A bare number is accepted too, as it is written.
    pub(super) fn text(&mut self, node: &Node, key: &str) -> Option<String> {
        match &node.value {
            Raw::Text(text) => Some(text.clone()),
            Raw::Integer(_) | Raw::Number(_) | Raw::Flag(_) => {
                Some(self.text[node.at.within(self.text).range()].to_owned())
            }
            _ => {
                self.wrong_type(node, key, "text");
                None
            }
        }
    }

    pub(super) fn flag(&mut self, node: &Node, key: &str) -> Option<bool> {
        if let Raw::Flag(flag) = node.value {
            Some(flag)
        } else {
            self.wrong_type(node, key, "true or false");
            None
        }
    }

    /// A finite number.
    pub(super) fn number(&mut self, node: &Node, key: &str) -> Option<f64> {
        match node.value {
            Raw::Integer(value) => Some(value as f64),
            Raw::Number(value) if value.is_finite() => Some(value),
            Raw::Number(_) => {
                self.out_of_range(node, key, "a finite number");
                None
            }
            _ => {
                self.wrong_type(node, key, "a number");
                None
            }
        }
    }

    /// A whole number from `least` to `most`.
    pub(super) fn whole(
        &mut self,
        node: &Node,
        key: &str,
        least: i64,
        most: i64,
        or: &str,
    ) -> Option<i64> {
        let value = match node.value {
            Raw::Integer(value) => value,
            // `1e6` counts as a whole number.
            Raw::Number(value) if value.fract() == 0.0 && value.abs() < 9e15 => value as i64,
            _ => {
                self.wrong_type(node, key, format!("a whole number{or}"));
                return None;
            }
        };
        if (least..=most).contains(&value) {
            Some(value)
        } else {
            let expected = if most == i64::MAX {
                format!("a whole number from {least} up{or}")
            } else {
                format!("a whole number from {least} to {most}{or}")
            };
            self.out_of_range(node, key, expected);
            None
        }
    }

    /// Seconds above 0.
    pub(super) fn seconds(&mut self, node: &Node, key: &str) -> Option<f64> {
        let text = match &node.value {
            Raw::Text(_) | Raw::Integer(_) | Raw::Number(_) => self.text(node, key)?,
            _ => {
                self.wrong_type(node, key, "a duration like `2.5s`");
                return None;
            }
        };
        match quantity::parse_seconds(&text) {
            Ok(value) if value > LONGEST => {
                self.out_of_range(node, key, "a duration of at most 100 years");
                None
            }
            Ok(value) if value > 0.0 => Some(value),
            Ok(_) => {
                self.out_of_range(node, key, "a duration above 0");
                None
            }
            Err(source) => {
                let key = key.to_owned();
                self.fault(node.at, Fault::Quantity { key, source });
                None
            }
        }
    }

    /// Bytes above 0, with a unit.
    pub(super) fn memory(&mut self, node: &Node, key: &str) -> Option<u64> {
        if matches!(node.value, Raw::Integer(_) | Raw::Number(_)) {
            let (text, key) = (self.plain(node), key.to_owned());
            let example = format!("{text}MiB");
            let source = quantity::QuantityError::NoUnit { text, example };
            self.fault(node.at, Fault::Quantity { key, source });
            return None;
        }
        self.bytes(node, key)
    }

    /// Bytes above 0.
    pub(super) fn bytes(&mut self, node: &Node, key: &str) -> Option<u64> {
        let text = self.text(node, key)?;
        match quantity::parse_bytes(&text) {
            Ok(0) => {
                self.out_of_range(node, key, "a size above 0");
                None
            }
            Ok(value) => Some(value),
            Err(source) => {
                let key = key.to_owned();
                self.fault(node.at, Fault::Quantity { key, source });
                None
            }
        }
    }

    /// One of these words.
    pub(super) fn word<T: Copy>(
        &mut self,
        node: &Node,
        key: &str,
        words: &[(&'static str, T)],
    ) -> Option<T> {
        let Raw::Text(word) = &node.value else {
            let names: Vec<&str> = words.iter().map(|(name, _)| *name).collect();
            self.wrong_type(node, key, format!("one of {}", names.join(", ")));
            return None;
        };
        let found = words.iter().find(|(name, _)| name == word);
        if found.is_none() {
            self.fault(
                node.at,
                Fault::UnknownWord {
                    key: key.into(),
                    word: word.clone(),
                    known: words.iter().map(|(name, _)| *name).collect(),
                },
            );
        }
        found.map(|(_, value)| *value)
    }

    pub(super) fn list<'n>(&mut self, node: &'n Node, key: &str, of: &str) -> Option<&'n [Node]> {
        if let Raw::List(items) = &node.value {
            Some(items)
        } else {
            self.wrong_type(node, key, format!("a list of {of}"));
            None
        }
    }

    /// Texts, or one text.
    pub(super) fn texts(&mut self, node: &Node, key: &str) -> Option<Vec<String>> {
        if let Raw::List(items) = &node.value {
            let texts: Vec<_> = items.iter().map(|item| self.text(item, key)).collect();
            texts.into_iter().collect()
        } else {
            self.text(node, key).map(|text| vec![text])
        }
    }

    pub(super) fn choose_one(
        &mut self,
        node: &Node,
        section: &str,
        known: Vec<&str>,
        given: &str,
        example: &'static str,
    ) {
        self.choose_one_at(node.at, section, known, given, example);
    }

    pub(super) fn choose_one_at(
        &mut self,
        at: Span,
        section: &str,
        known: Vec<&str>,
        given: &str,
        example: &'static str,
    ) {
        let known = known
            .iter()
            .map(|name| format!("`{name}`"))
            .collect::<Vec<_>>()
            .join(", ");
        self.fault(
            at,
            Fault::ChooseOne {
                section: section.into(),
                known,
                given: given.into(),
                example,
            },
        );
    }
}
