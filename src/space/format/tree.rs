//! JSON and YAML of spaces as a tree that remembers the position of everything.

use serde_saphyr::DuplicateKeyPolicy;

use super::{FormatError, SpaceMistake};
use crate::yaml::{self, Node, Raw};

/// Deeper nesting is an error.
const DEEPEST: usize = 64;

/// More values are an error.
const MOST_NODES: usize = 4_000_000;

impl Node {
    /// Describes a value, for messages.
    pub(super) fn shown(&self) -> String {
        match &self.value {
            Raw::Null => "nothing".to_owned(),
            Raw::Flag(value) => format!("`{value}`"),
            Raw::Integer(value) => format!("`{value}`"),
            Raw::Number(value) => format!("`{value:?}`"),
            Raw::Text(value) => format!("`{value}`"),
            Raw::List(_) => "a list".to_owned(),
            Raw::Map(_) => "a mapping".to_owned(),
        }
    }

    /// The value of a key, if this is a mapping that has it.
    pub(super) fn get(&self, key: &str) -> Option<&Self> {
        match &self.value {
            Raw::Map(entries) => entries
                .iter()
                .find(|entry| entry.key == key)
                .map(|entry| &entry.value),
            _ => None,
        }
    }
}

/// Reads one document.
pub(super) fn parse(text: &str) -> Result<Node, SpaceMistake> {
    // ConfigSpace marks tuples with Python's own tag. Here they are lists.
    let tag = "!!python/tuple";
    let plain = text.replace(tag, &" ".repeat(tag.len()));
    yaml::read(&plain, DEEPEST, MOST_NODES, DuplicateKeyPolicy::Error).map_err(|error| {
        let error = error.without_snippet();
        SpaceMistake {
            at: error.location().map_or(0..0, |at| yaml::place(at).range()),
            error: FormatError::Syntax {
                reason: yaml::reason(error),
            },
        }
    })
}
