//! The keys of one mapping, each taken once. What remains is unknown.

use super::Check;
use crate::nearest::nearest;
use crate::scenario::Fault;
use crate::scenario::keys::Section;
use crate::scenario::raw::{Entry, Node, Raw};
use crate::yaml::Span;

pub(super) struct Fields<'n> {
    section: String,
    entries: &'n [Entry],
    known: Vec<&'static str>,
    /// The position of the section: its first key if it has one, because blocks have no width.
    at: Span,
}

impl<'n> Fields<'n> {
    /// The fields of a section. A mistake if it is not a mapping.
    pub(super) fn of(check: &mut Check<'_>, node: &'n Node, section: &Section) -> Option<Self> {
        Self::new(check, node, section.name, &section.names())
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
