//! YAML text as a tree that remembers where everything stands, before anything is checked.
//!
//! Serde's derived structs stop at the first mistake; a tree lets the check go through all sections and report every
//! mistake at once, each with its place.

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::{DuplicateKeyPolicy, Spanned};

use super::source::Span;
use super::{Fault, Mistake};

/// Scenarios larger than this are refused.
pub const MOST_BYTES: u64 = 1 << 20;

/// Deeper nesting than this is refused; a scenario needs six.
const DEEPEST: usize = 24;

/// More values than this, repetitions by aliases included, are refused.
const MOST_NODES: usize = 400_000;

/// A value and where it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// Where; for a block of several lines, where it begins.
    pub at: Span,
    /// What.
    pub value: Raw,
}

/// What YAML knows.
#[derive(Debug, Clone, PartialEq)]
pub enum Raw {
    /// Nothing after the colon, `null` or `~`.
    Null,
    /// `true` or `false`, nothing else.
    Flag(bool),
    /// A whole number.
    Integer(i64),
    /// Any other number, also too large, infinite or none.
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
    /// Where the key stands.
    pub key_at: Span,
    /// The value.
    pub value: Node,
}

impl Raw {
    /// What it is, for people.
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

/// Reads one document. Mistakes of YAML itself end the reading; a key that stands twice does not.
pub fn parse(text: &str) -> Result<(Node, Vec<Mistake>), Mistake> {
    if let Some(mistake) = tab_in_indentation(text) {
        return Err(mistake);
    }
    match read(text, DuplicateKeyPolicy::Error) {
        Ok(node) => Ok((node, vec![])),
        Err(error) => {
            let mistake = mistake_of(&error, text);
            if matches!(mistake.fault, Fault::Twice { .. }) {
                let node = read(text, DuplicateKeyPolicy::FirstWins)
                    .map_err(|error| mistake_of(&error, text))?;
                Ok((node, vec![mistake]))
            } else {
                Err(mistake)
            }
        }
    }
}

fn read(text: &str, duplicate_keys: DuplicateKeyPolicy) -> Result<Node, serde_saphyr::Error> {
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_depth: DEEPEST,
            flow_nesting_limit: DEEPEST,
            max_documents: 2,
            max_nodes: MOST_NODES,
            max_events: 2 * MOST_NODES,
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

/// The parser's own words for a tab are hard to understand, and it is the commonest slip of all.
fn tab_in_indentation(text: &str) -> Option<Mistake> {
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let blank = line.len() - line.trim_start_matches([' ', '\t']).len();
        let is_content = !matches!(line[blank..].chars().next(), None | Some('#' | '\n' | '\r'));
        if let Some(tab) = line[..blank].find('\t').filter(|_| is_content) {
            return Some(Mistake {
                at: Span::new(start + tab, start + tab + 1),
                fault: Fault::Tab,
            });
        }
        start += line.len();
    }
    None
}

fn mistake_of(error: &serde_saphyr::Error, text: &str) -> Mistake {
    use serde_saphyr::Error;
    let mut error = error.without_snippet();
    let at = error
        .location()
        .map_or(Span::new(0, 0), |location| span_of(location, text));
    while let Error::AliasError { error: inner, .. } = error {
        error = inner.without_snippet();
    }
    let fault = match error {
        Error::DuplicateMappingKey { key, .. } => Fault::Twice {
            key: key.clone().unwrap_or_else(|| text[at.range()].to_owned()),
        },
        Error::Budget { .. }
        | Error::AliasReplayCounterOverflow { .. }
        | Error::AliasReplayLimitExceeded { .. }
        | Error::AliasExpansionLimitExceeded { .. }
        | Error::AliasReplayStackDepthExceeded { .. } => {
            let reason = plain(error);
            if reason.contains("depth") || reason.contains("nest") {
                Fault::TooDeep { most: DEEPEST }
            } else {
                Fault::TooLarge
            }
        }
        Error::MultipleDocuments { .. } => Fault::SeveralDocuments,
        Error::UnknownAnchor { .. } => Fault::UnknownAnchor,
        Error::RecursiveReferencesRequireWeakTypes { .. } => Fault::Recursive,
        _ => {
            let reason = plain(error);
            if reason.contains("nesting") || reason.contains("recursion limit") {
                Fault::TooDeep { most: DEEPEST }
            } else {
                Fault::NotYaml { reason }
            }
        }
    };
    Mistake { at, fault }
}

/// The parser's message without the place, which we show ourselves.
fn plain(error: &serde_saphyr::Error) -> String {
    let text = error.to_string();
    let cut = text
        .find(" at line ")
        .or_else(|| text.find(", line "))
        .unwrap_or(text.len());
    text[..cut].trim_end_matches([':', ',', ' ']).to_owned()
}

fn span_of(location: serde_saphyr::Location, text: &str) -> Span {
    let span = location.span();
    let (Some(start), Some(len)) = (span.byte_offset(), span.byte_len()) else {
        return Span::of_line_column(text, location.line() as usize, location.column() as usize);
    };
    Span::new(start as usize, (start + len) as usize).within(text)
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

/// Byte offsets are always known, since we read from a text in memory.
fn place(location: serde_saphyr::Location) -> Span {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn node(text: &str) -> Node {
        parse(text).unwrap().0
    }

    fn get<'n>(node: &'n Node, key: &str) -> &'n Entry {
        let Raw::Map(entries) = &node.value else {
            panic!("not a mapping")
        };
        entries.iter().find(|entry| entry.key == key).unwrap()
    }

    #[test]
    fn every_value_knows_its_place() {
        let text = "name: forest\nlist:\n  - 1\n  - two # comment\nmap: {deep: 0.5}\n";
        let root = node(text);
        let name = get(&root, "name");
        assert_eq!(&text[name.key_at.range()], "name");
        assert_eq!(&text[name.value.at.range()], "forest");
        let Raw::List(items) = &get(&root, "list").value.value else {
            panic!("not a list")
        };
        assert_eq!(items[0].value, Raw::Integer(1));
        assert_eq!(&text[items[1].at.range()], "two");
        let deep = get(&get(&root, "map").value, "deep");
        assert_eq!(&text[deep.value.at.range()], "0.5");
        assert_eq!(deep.value.value, Raw::Number(0.5));
    }

    #[test]
    fn only_true_and_false_are_flags_and_quotes_make_text() {
        let root = node("a: true\nb: yes\nc: '5'\nd:\ne: 1e999\nf: -3\ng: 18446744073709551615");
        assert_eq!(get(&root, "a").value.value, Raw::Flag(true));
        assert_eq!(get(&root, "b").value.value, Raw::Text("yes".into()));
        assert_eq!(get(&root, "c").value.value, Raw::Text("5".into()));
        assert_eq!(get(&root, "d").value.value, Raw::Null);
        assert_eq!(get(&root, "e").value.value, Raw::Number(f64::INFINITY));
        assert_eq!(get(&root, "f").value.value, Raw::Integer(-3));
        assert!(matches!(get(&root, "g").value.value, Raw::Number(_)));
    }

    #[test]
    fn hostile_documents_are_refused_quickly() {
        let fault = |text: &str| parse(text).unwrap_err().fault;
        let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x]\n");
        for level in 1..12 {
            let before = format!("*a{}, ", level - 1).repeat(9);
            bomb = format!("{bomb}a{level}: &a{level} [{before}]\n");
        }
        assert!(
            matches!(fault(&bomb), Fault::TooLarge),
            "{:?}",
            fault(&bomb)
        );
        let deep = "[".repeat(100_000);
        assert!(
            matches!(fault(&deep), Fault::TooDeep { .. }),
            "{:?}",
            fault(&deep)
        );
        let lines: Vec<String> = (0..100).map(|k| " ".repeat(k) + "a:\n").collect();
        let block = lines.concat();
        assert!(
            matches!(fault(&block), Fault::TooDeep { .. }),
            "{:?}",
            fault(&block)
        );
        assert!(matches!(
            fault("a: &a [*a]"),
            Fault::Recursive | Fault::UnknownAnchor
        ));
        assert!(matches!(fault("a: *b"), Fault::UnknownAnchor));
        assert!(matches!(
            fault("a: 1\n---\nb: 2\n"),
            Fault::SeveralDocuments
        ));
        assert!(matches!(fault("a:\n\tb: 1\n"), Fault::Tab));
        assert!(matches!(fault("a: [1, 2\n"), Fault::NotYaml { .. }));
    }

    #[test]
    fn a_key_that_stands_twice_does_not_hide_the_rest() {
        let (root, mistakes) = parse("seed: 1\nseed: 2\nname: x\n").unwrap();
        assert_eq!(get(&root, "seed").value.value, Raw::Integer(1));
        assert_eq!(get(&root, "name").value.value, Raw::Text("x".into()));
        assert_eq!(mistakes.len(), 1);
    }
}
