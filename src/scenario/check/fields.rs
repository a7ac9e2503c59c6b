//! The keys of one mapping, each taken once. What remains is unknown.

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::Check;
use crate::nearest::nearest;
use crate::scenario::Fault;
use crate::scenario::keys::{Key, Section, Shape};
use crate::scenario::raw::{Entry, Node, Raw};
use crate::yaml::Span;

pub(super) struct Fields<'n> {
    section: String,
    entries: &'n [Entry],
    known: Vec<&'static str>,
    /// The description of its keys, if it is a section of [`keys`](crate::scenario::keys).
    described: Option<&'static Section>,
    /// The position of the section: its first key if it has one, because blocks have no width.
    at: Span,
}

impl<'n> Fields<'n> {
    /// The fields of a section. A mistake if it is not a mapping.
    pub(super) fn of(
        check: &mut Check<'_>,
        node: &'n Node,
        section: &'static Section,
    ) -> Option<Self> {
        let mut fields = Self::new(check, node, section.name, &section.names())?;
        fields.described = Some(section);
        Some(fields)
    }

    /// The fields of a target that is all in one section, as in `target: {forest: {...}}`.
    pub(super) fn of_target(
        check: &mut Check<'_>,
        node: &'n Node,
        section: &'static Section,
    ) -> Option<Self> {
        let mut outer = Self::new(check, node, "target", &[section.name])?;
        let inner = outer.take(check, section.name);
        outer.finish(check);
        Self::of(check, inner?, section)
    }

    /// The fields of a mapping with these keys.
    pub(super) fn new(
        check: &mut Check<'_>,
        node: &'n Node,
        section: &str,
        known: &[&'static str],
    ) -> Option<Self> {
        if let Raw::Map(entries) = &node.value {
            Some(Self {
                section: section.into(),
                entries,
                known: known.to_vec(),
                described: None,
                at: node.at,
            })
        } else {
            check.wrong_type(node, section, "a mapping");
            None
        }
    }

    /// The name of the section.
    pub(super) fn section(&self) -> &str {
        &self.section
    }

    /// The position of the section.
    pub(super) fn at(&self) -> Span {
        self.at
    }

    /// Whether the key is present, with or without a value.
    pub(super) fn has(&self, key: &str) -> bool {
        self.entries.iter().any(|entry| entry.key == key)
    }

    /// The position of the key.
    pub(super) fn key_at(&self, key: &str) -> Option<Span> {
        self.entries
            .iter()
            .find(|entry| entry.key == key)
            .map(|entry| entry.key_at)
    }

    /// The position of the key's value.
    pub(super) fn value_at(&self, key: &str) -> Option<Span> {
        let entry = self.entries.iter().find(|entry| entry.key == key)?;
        Some(entry.value.at)
    }

    /// The value of a key. A key without a value is a mistake.
    pub(super) fn take(&mut self, check: &mut Check<'_>, key: &'static str) -> Option<&'n Node> {
        debug_assert!(self.known.contains(&key), "`{key}` is a known key");
        let entry = self.entries.iter().find(|entry| entry.key == key)?;
        if entry.value.value == Raw::Null {
            check.fault(entry.key_at, Fault::NoValue { key: key.into() });
            return None;
        }
        Some(&entry.value)
    }

    /// The value of a key as its description says, or the default there, in the type that the model has for it.
    ///
    /// # Panics
    /// If the model and the description disagree: the tests read every word and every default.
    pub(super) fn read<T: DeserializeOwned>(
        &mut self,
        check: &mut Check<'_>,
        key: &'static str,
    ) -> Option<T> {
        let described = self.key(key);
        let value = match self.take(check, key) {
            Some(node) => check.described(node, described)?,
            None => described.default_value().expect("a key with a default"),
        };
        Some(serde_json::from_value(value).expect("the model has what the description allows"))
    }

    /// The same for a key without a default.
    #[expect(
        clippy::option_option,
        reason = "given and wrong; not given; given and right"
    )]
    pub(super) fn read_optional<T: DeserializeOwned>(
        &mut self,
        check: &mut Check<'_>,
        key: &'static str,
    ) -> Option<Option<T>> {
        if self.take(check, key).is_none() {
            return Some(None);
        }
        self.read(check, key).map(Some)
    }

    fn key(&self, key: &str) -> &'static Key {
        let described = self.described.expect("a section with a description");
        described.key(key)
    }

    /// The value of a required key.
    pub(super) fn need(
        &mut self,
        check: &mut Check<'_>,
        key: &'static str,
        example: &'static str,
    ) -> Option<&'n Node> {
        if !self.has(key) && !self.is_misspelt(key) {
            check.fault(
                self.at,
                Fault::Missing {
                    section: self.section.clone(),
                    key,
                    example,
                },
            );
        }
        self.take(check, key)
    }

    /// Whether an unknown key probably means this one. Then the unknown key is reported, not that this one is missing.
    pub(super) fn is_misspelt(&self, key: &str) -> bool {
        self.entries.iter().any(|entry| {
            !self.known.contains(&entry.key.as_str())
                && nearest(&entry.key, self.known.iter().copied()) == Some(key)
        })
    }

    /// Reports unknown keys.
    pub(super) fn finish(self, check: &mut Check<'_>) {
        for entry in self.entries {
            if !self.known.contains(&entry.key.as_str()) {
                check.fault(
                    entry.key_at,
                    Fault::UnknownKey {
                        section: self.section.clone(),
                        key: entry.key.clone(),
                        known: self.known.clone(),
                    },
                );
            }
        }
    }
}

impl Check<'_> {
    /// A plain value as its description says.
    fn described(&mut self, node: &Node, key: &Key) -> Option<Value> {
        let name = key.name;
        match key.shape {
            Shape::Words(words) => {
                let words: Vec<_> = words.iter().map(|word| (*word, *word)).collect();
                self.word(node, name, &words).map(Value::from)
            }
            Shape::Whole(least, most) => self.whole(node, name, least, most, "").map(Value::from),
            Shape::Flag => self.flag(node, name).map(Value::from),
            Shape::Between(low, high) => {
                let value = self.number(node, name)?;
                if low < value && value < high {
                    return Some(Value::from(value));
                }
                self.out_of_range(node, name, format!("a number between {low} and {high}"));
                None
            }
            _ => unreachable!("only plain values are read this way"),
        }
    }
}

/// A missing key is fine, a wrong value is not.
#[expect(
    clippy::option_option,
    reason = "not given; given and wrong; given and right"
)]
pub(super) fn flat<T>(field: Option<Option<T>>) -> Option<Option<T>> {
    match field {
        None => Some(None),
        Some(Some(value)) => Some(Some(value)),
        Some(None) => None,
    }
}
