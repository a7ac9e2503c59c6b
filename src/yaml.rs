//! YAML and JSON as a tree that remembers the position of everything, before anything is checked.
//!
//! Serde's derived structs stop at the first mistake. A tree lets a reader go through everything and report every
//! mistake at once, each with its position.

use std::ops::Range;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::{DuplicateKeyPolicy, Spanned};

/// A range of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Span {
    start: usize,
    end: usize,
}

impl Span {
    /// From `start` up to `end`, not included.
    pub fn new(start: usize, end: usize) -> Self {
        Self {
            start,
            end: end.max(start),
        }
    }

    /// As a range of bytes.
    pub fn range(self) -> Range<usize> {
        self.start..self.end
    }

    /// Where it begins.
    pub fn start(self) -> usize {
        self.start
    }

    /// The part of it that lies in this text, on character boundaries.
    #[must_use]
    pub fn within(self, text: &str) -> Self {
        let border = |mut at: usize| {
            at = at.min(text.len());
            while !text.is_char_boundary(at) {
                at -= 1;
            }
            at
        };
        Self::new(border(self.start), border(self.end))
    }

    /// The position at this line and column, both counted from 1.
    pub fn of_line_column(text: &str, line: usize, column: usize) -> Self {
        let mut start = 0;
        for (number, content) in text.split_inclusive('\n').enumerate() {
            if number + 1 == line {
                let offset = content
                    .char_indices()
                    .nth(column.saturating_sub(1))
                    .map_or(content.trim_end().len(), |(at, _)| at);
                return Self::new(start + offset, start + offset);
            }
            start += content.len();
        }
        Self::new(text.len(), text.len())
    }

    /// Line and column in characters, both counted from 1.
    pub fn line_column(self, text: &str) -> (usize, usize) {
        let before = &text[..self.within(text).start];
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        (
            before.matches('\n').count() + 1,
            before[line_start..].chars().count() + 1,
        )
    }
}

/// A value and its position.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// The position. For a block of several lines, where it begins.
    pub at: Span,
    /// The value.
    pub value: Raw,
}

/// The kinds of YAML values.
#[derive(Debug, Clone, PartialEq)]
pub enum Raw {
    /// Nothing after the colon, `null` or `~`.
    Null,
    /// `true` or `false`, nothing else.
    Flag(bool),
    /// A whole number.
    Integer(i64),
    /// Any other number, including those that are too large, infinite or not a number.
    Number(f64),
    /// Text, quoted or not.
    Text(String),
    /// `[a, b]` or lines with dashes.
    List(Vec<Node>),
    /// `{a: b}` or lines with colons.
    Map(Vec<Entry>),
}

/// One `key: value`.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The key.
    pub key: String,
    /// The position of the key.
    pub key_at: Span,
    /// The value.
    pub value: Node,
}

impl Raw {
    /// Names the kind of value, for messages.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Null => "nothing",
            Self::Flag(_) => "true or false",
            Self::Integer(_) => "a whole number",
            Self::Number(_) => "a number",
            Self::Text(_) => "text",
            Self::List(_) => "a list",
            Self::Map(_) => "a mapping",
        }
    }
}

/// Reads one document with at most this depth and this many values, counting each use of an alias.
pub fn read(
    text: &str,
    deepest: usize,
    most_nodes: usize,
    duplicate_keys: DuplicateKeyPolicy,
) -> Result<Node, serde_saphyr::Error> {
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_depth: deepest,
            flow_nesting_limit: deepest,
            max_documents: 2,
            max_nodes: most_nodes,
            max_events: 2 * most_nodes,
        },
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: 100_000,
            max_replay_stack_depth: 16,
        },
        duplicate_keys: duplicate_keys,
        strict_booleans: true,
        non_finite_float_policy: serde_saphyr::options::NonFiniteFloatPolicy::PassThrough,
        with_snippet: false,
    };
    serde_saphyr::from_str_with_options::<Node>(text, options)
}

/// The parser's message without the position, which callers show themselves.
pub fn reason(error: &serde_saphyr::Error) -> String {
    let text = error.to_string();
    let cut = text
        .find(" at line ")
        .or_else(|| text.find(", line "))
        .unwrap_or(text.len());
    text[..cut].trim_end_matches([':', ',', ' ']).to_owned()
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let spanned = Spanned::<Raw>::deserialize(from)?;
        Ok(Self {
            at: place(spanned.referenced),
            value: spanned.value,
        })
    }
}

/// The byte offset is always known, because the text is in memory.
pub fn place(location: serde_saphyr::Location) -> Span {
    let span = location.span();
    let start = span.byte_offset().unwrap_or(0) as usize;
    Span::new(start, start + span.byte_len().unwrap_or(0) as usize)
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(RawVisitor)
    }
}

struct RawVisitor;

impl<'de> Visitor<'de> for RawVisitor {
    type Value = Raw;

    fn expecting(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.write_str("a YAML value")
    }

    fn visit_unit<E>(self) -> Result<Raw, E> {
        Ok(Raw::Null)
    }

    fn visit_none<E>(self) -> Result<Raw, E> {
        Ok(Raw::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Raw, E> {
        Ok(Raw::Flag(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Raw, E> {
        Ok(Raw::Integer(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Raw, E> {
        Ok(i64::try_from(value).map_or(Raw::Number(value as f64), Raw::Integer))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Raw, E> {
        Ok(Raw::Number(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Raw, E> {
        Ok(Raw::Text(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Raw, E> {
        Ok(Raw::Text(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Raw, A::Error> {
        let mut list = vec![];
        while let Some(item) = items.next_element::<Node>()? {
            list.push(item);
        }
        Ok(Raw::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut items: A) -> Result<Raw, A::Error> {
        let mut entries = vec![];
        while let Some(key) = items.next_key::<Spanned<String>>()? {
            entries.push(Entry {
                key: key.value,
                key_at: place(key.referenced),
                value: items.next_value::<Node>()?,
            });
        }
        Ok(Raw::Map(entries))
    }
}
