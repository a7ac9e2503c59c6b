//! A scenario's text as a tree, before anything is checked. What YAML itself does not allow is a mistake with a
//! position.

use serde_saphyr::DuplicateKeyPolicy;

use super::{Fault, Mistake};
use crate::yaml::{self, Span};
pub use crate::yaml::{Entry, Node, Raw};

/// Larger scenarios are an error.
pub const MOST_BYTES: u64 = 1 << 20;

/// Deeper nesting is an error. A scenario needs six levels.
const DEEPEST: usize = 24;

/// More values are an error, counting each use of an alias.
const MOST_NODES: usize = 400_000;

/// Reads one document. YAML errors end the reading, but a duplicate key does not.
#[expect(
    clippy::result_large_err,
    reason = "one mistake in the life of a program that stops for it"
)]
pub fn parse(text: &str) -> Result<(Node, Vec<Mistake>), Mistake> {
    if let Some(mistake) = tab_in_indentation(text) {
        return Err(mistake);
    }
    let read = |duplicate_keys| yaml::read(text, DEEPEST, MOST_NODES, duplicate_keys);
    match read(DuplicateKeyPolicy::Error) {
        Ok(node) => Ok((node, vec![])),
        Err(error) => {
            let mistake = mistake_of(&error, text);
            if matches!(mistake.fault, Fault::Twice { .. }) {
                let node = read(DuplicateKeyPolicy::FirstWins)
                    .map_err(|error| mistake_of(&error, text))?;
                Ok((node, vec![mistake]))
            } else {
                Err(mistake)
            }
        }
    }
}

/// The parser's message about a tab is hard to understand, and tabs are the most common mistake.
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
            let reason = yaml::reason(error);
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
            let reason = yaml::reason(error);
            if reason.contains("nesting") || reason.contains("recursion limit") {
                Fault::TooDeep { most: DEEPEST }
            } else {
                Fault::NotYaml { reason }
            }
        }
    };
    Mistake { at, fault }
}

fn span_of(location: serde_saphyr::Location, text: &str) -> Span {
    let span = location.span();
    let (Some(start), Some(len)) = (span.byte_offset(), span.byte_len()) else {
        return Span::of_line_column(text, location.line() as usize, location.column() as usize);
    };
    Span::new(start as usize, (start + len) as usize).within(text)
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
