//! The keys of one mapping, each taken once; what remains is unknown.

use super::Check;
use crate::nearest::nearest;
use crate::scenario::Fault;
use crate::scenario::raw::{Entry, Node, Raw};
use crate::scenario::source::Span;

pub(super) struct Fields<'n> {
    section: String,
    entries: &'n [Entry],
    known: Vec<&'static str>,
    /// Where the section stands: its first key if it has one, since blocks have no width.
    at: Span,
}

impl<'n> Fields<'n> {
    /// The fields of a mapping; a mistake if it is none.
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

    /// Where the section stands.
    pub(super) fn at(&self) -> Span {
        self.at
    }

    /// Whether the key stands there, with or without a value.
    pub(super) fn has(&self, key: &str) -> bool {
        self.entries.iter().any(|entry| entry.key == key)
    }

    /// Where the key stands.
    pub(super) fn key_at(&self, key: &str) -> Option<Span> {
        self.entries
            .iter()
            .find(|entry| entry.key == key)
            .map(|entry| entry.key_at)
    }

    /// The value of a key; one without a value is a mistake.
    pub(super) fn take(&mut self, check: &mut Check<'_>, key: &'static str) -> Option<&'n Node> {
        debug_assert!(self.known.contains(&key), "`{key}` is a known key");
        let entry = self.entries.iter().find(|entry| entry.key == key)?;
        if entry.value.value == Raw::Null {
            check.fault(entry.key_at, Fault::NoValue { key: key.into() });
            return None;
        }
        Some(&entry.value)
    }

    /// The value of a key that must be there.
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

    /// Whether an unknown key was probably meant to be this one: then it is complained about, not the lack of this.
    pub(super) fn is_misspelt(&self, key: &str) -> bool {
        self.entries.iter().any(|entry| {
            !self.known.contains(&entry.key.as_str())
                && nearest(&entry.key, self.known.iter().copied()) == Some(key)
        })
    }

    /// Complains about unknown keys.
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
