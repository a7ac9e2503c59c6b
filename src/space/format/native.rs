//! captime's own form: `space:` and `forbid:` in YAML.

use std::fmt::Write as _;
use std::ops::Range;

use super::{Draft, FormatError, SpaceFile, SpaceMistake, Written};
use crate::nearest::nearest;
use crate::space::Value;
use crate::space::open::{
    Dialect, Domain, DomainError, OpenParameter, OpenSpace, Rule, Spacing, parse_as,
};
use crate::yaml::{Entry, Node, Raw};

const KEYS: &[&str] = &[
    "real", "integer", "choice", "ordered", "scale", "digits", "default", "when", "argument",
];

/// Reads a file with `arms: {space: ..., forbid: ...}`, or with `space:` at its top.
pub(super) fn read(text: &str) -> Result<SpaceFile, Vec<SpaceMistake>> {
    let root = super::parse_tree(text).map_err(|mistake| vec![mistake])?;
    let arms = root.get("arms").unwrap_or(&root);
    let Some(space) = arms.get("space") else {
        let (section, key) = ("the file".to_owned(), "space");
        return Err(vec![SpaceMistake {
            at: arms.at.range(),
            error: FormatError::Missing { section, key },
        }]);
    };
    read_nodes(text, space, arms.get("forbid"))
}

/// Reads the values of `space` and `forbid`, with positions in their text.
pub(crate) fn read_nodes(
    text: &str,
    space: &Node,
    forbid: Option<&Node>,
) -> Result<SpaceFile, Vec<SpaceMistake>> {
    let mut draft = Draft::default();
    let Raw::Map(entries) = &space.value else {
        draft.expected(
            space.at.range(),
            "parameters with their ranges",
            space.shown(),
        );
        return draft.finish(space.at.range());
    };
    let mut whens = vec![];
    for entry in entries {
        let before = draft.parameters.len();
        parameter(&mut draft, entry);
        if draft.parameters.len() > before
            && let Some(when) = entry.value.get("when")
        {
            whens.push((before, when));
        }
    }
    for (place, node) in whens {
        if let Some(rule) = rule(&mut draft, text, node) {
            draft.condition_count += 1;
            draft.condition(place, rule, node.at.range());
        }
    }
    for node in clauses(forbid) {
        if let Some(rule) = rule(&mut draft, text, node) {
            draft.forbid(rule, node.at.range());
        }
    }
    let whole = entries
        .first()
        .map_or(space.at.range(), |entry| entry.key_at.range());
    draft.finish(whole)
}

/// Reads constraints over parameters that are already known.
pub(crate) fn read_rules(
    text: &str,
    forbid: &Node,
    of: &[OpenParameter],
) -> Result<Vec<Rule>, Vec<SpaceMistake>> {
    let mut draft = Draft {
        parameters: of.to_vec(),
        ..Draft::default()
    };
    let rules: Vec<Rule> = clauses(Some(forbid))
        .iter()
        .filter_map(|node| rule(&mut draft, text, node))
        .collect();
    if draft.mistakes.is_empty() {
        Ok(rules)
    } else {
        Err(draft.mistakes)
    }
}

/// One clause, or a list of them.
fn clauses(forbid: Option<&Node>) -> &[Node] {
    match forbid.map(|node| (&node.value, node)) {
        None | Some((Raw::Null, _)) => &[],
        Some((Raw::List(items), _)) => items.as_slice(),
        Some((_, node)) => std::slice::from_ref(node),
    }
}

/// Values of a configuration to start with.
pub(crate) fn start_values(node: &Node) -> Result<Vec<(String, Value)>, SpaceMistake> {
    let wrong = |node: &Node, expected: &str| SpaceMistake {
        at: node.at.range(),
        error: FormatError::Expected {
            expected: expected.to_owned(),
            found: node.shown(),
        },
    };
    let Raw::Map(entries) = &node.value else {
        return Err(wrong(node, "parameters with their values"));
    };
    let value = |entry: &Entry| match plain(&entry.value) {
        Some(value) => Ok((entry.key.clone(), value)),
        None => Err(wrong(&entry.value, "a value")),
    };
    entries.iter().map(value).collect()
}

fn rule(draft: &mut Draft, text: &str, node: &Node) -> Option<Rule> {
    let source = match &node.value {
        Raw::Text(source) => source.clone(),
        Raw::Flag(flag) => flag.to_string(),
        _ => {
            draft.expected(
                node.at.range(),
                "a condition such as `restarts < 10`",
                node.shown(),
            );
            return None;
        }
    };
    match parse_as(Dialect::Captime, &source, &draft.parameters) {
        Ok(rule) => Some(rule),
        Err(misread) => {
            // If the text is in the source unchanged, perhaps in quotes, the position is exact.
            let written = text.get(node.at.range()).unwrap_or_default();
            match written.find(source.as_str()) {
                Some(offset) => draft.misread(node.at.start() + offset, misread),
                None => draft.mistake(node.at.range(), misread.error),
            }
            None
        }
    }
}

fn plain(node: &Node) -> Option<Value> {
    match &node.value {
        Raw::Flag(value) => Some(Value::Flag(*value)),
        Raw::Integer(value) => Some(Value::Integer(*value)),
        Raw::Number(value) if value.is_finite() => Some(Value::Number(*value)),
        Raw::Text(value) if !value.contains('\0') => Some(Value::Text(value.as_str().into())),
        _ => None,
    }
}

fn plain_or_mistake(draft: &mut Draft, node: &Node) -> Option<Value> {
    let value = plain(node);
    if value.is_none() {
        draft.expected(
            node.at.range(),
            "a number, a word, or true or false",
            node.shown(),
        );
    }
    value
}

fn parameter(draft: &mut Draft, entry: &Entry) {
    let name = &entry.key;
    if name.trim().is_empty() || name.contains(['{', '}', '\n']) {
        draft.expected(
            entry.key_at.range(),
            "a name without braces",
            format!("`{name}`"),
        );
        return;
    }
    let Raw::Map(keys) = &entry.value.value else {
        // A single value is a constant.
        if let Some(value) = plain_or_mistake(draft, &entry.value)
            && let Ok(domain) = Domain::choice(vec![value])
        {
            let at = entry.value.at.range();
            draft.add(
                OpenParameter::new(name.as_str(), domain),
                entry.key_at.range(),
                at,
            );
        }
        return;
    };
    let mut is_fine = true;
    for key in keys {
        if !KEYS.contains(&key.key.as_str()) {
            let error = FormatError::UnknownKey {
                section: name.clone(),
                key: key.key.clone(),
                nearest: nearest(&key.key, KEYS.iter().copied()).map(str::to_owned),
            };
            draft.mistake(key.key_at.range(), error);
            is_fine = false;
        }
    }
    let kinds: Vec<&Entry> = keys
        .iter()
        .filter(|key| matches!(key.key.as_str(), "real" | "integer" | "choice" | "ordered"))
        .collect();
    let [kind] = kinds[..] else {
        if is_fine {
            let at = kinds
                .get(1)
                .map_or(entry.key_at.range(), |second| second.key_at.range());
            let found = if kinds.is_empty() {
                "none of them"
            } else {
                "several"
            };
            draft.expected(
                at,
                "one of `real`, `integer`, `choice` and `ordered`",
                found,
            );
        }
        return;
    };
    let spacing = match entry.value.get("scale").map(|node| (&node.value, node)) {
        None => Some(Spacing::Linear),
        Some((Raw::Text(word), _)) if word == "linear" => Some(Spacing::Linear),
        Some((Raw::Text(word), _))
            if word == "log" && matches!(kind.key.as_str(), "real" | "integer") =>
        {
            Some(Spacing::Log)
        }
        Some((_, node)) => {
            let expected = if matches!(kind.key.as_str(), "real" | "integer") {
                "`linear` or `log`"
            } else {
                "no scale, since only numbers have one"
            };
            draft.expected(node.at.range(), expected, node.shown());
            None
        }
    };
    let Raw::List(items) = &kind.value.value else {
        let expected = if matches!(kind.key.as_str(), "real" | "integer") {
            "two bounds such as `[1, 100]`"
        } else {
            "a list such as `[a, b]`"
        };
        draft.expected(kind.value.at.range(), expected, kind.value.shown());
        return;
    };
    let Some(spacing) = spacing else { return };
    let domain = match kind.key.as_str() {
        "choice" | "ordered" => {
            let values: Option<Vec<Value>> = items
                .iter()
                .map(|item| plain_or_mistake(draft, item))
                .collect();
            let Some(values) = values else { return };
            if kind.key == "choice" {
                Domain::choice(values)
            } else {
                Domain::ordered(values)
            }
        }
        key => {
            let [low, high] = &items[..] else {
                draft.expected(
                    kind.value.at.range(),
                    "two bounds such as `[1, 100]`",
                    format!("{} values", items.len()),
                );
                return;
            };
            let is_integer = key == "integer";
            let bound = |draft: &mut Draft, node: &Node| match node.value {
                Raw::Integer(value) => Some(value as f64),
                Raw::Number(value) if !is_integer || value.fract() == 0.0 => Some(value),
                _ => {
                    let expected = if is_integer {
                        "a whole number"
                    } else {
                        "a number"
                    };
                    draft.expected(node.at.range(), expected, node.shown());
                    None
                }
            };
            let (low, high) = (bound(draft, low), bound(draft, high));
            let (Some(low), Some(high)) = (low, high) else {
                return;
            };
            if is_integer {
                Domain::integer(low as i64, high as i64, spacing)
            } else {
                Domain::real(low, high, spacing)
            }
        }
    };
    let digits = entry.value.get("digits");
    let Some(domain) = checked(draft, name, (domain, kind.value.at.range()), digits) else {
        return;
    };
    let mut parameter = OpenParameter::new(name.as_str(), domain);
    let mut default_at = entry.key_at.range();
    if let Some(node) = entry.value.get("default") {
        default_at = node.at.range();
        parameter.default = plain_or_mistake(draft, node);
    }
    if let Some(node) = entry.value.get("argument") {
        parameter.argument = argument(draft, node);
    }
    draft.add(parameter, entry.key_at.range(), default_at);
}

/// The domain with the digits that its parameter asks for; nothing if either is a mistake.
fn checked(
    draft: &mut Draft,
    name: &str,
    (domain, at): (Result<Domain, DomainError>, Range<usize>),
    digits: Option<&Node>,
) -> Option<Domain> {
    let (domain, at) = match (domain, digits) {
        (Ok(domain), Some(node)) => match (&node.value, matches!(domain, Domain::Real { .. })) {
            (Raw::Integer(digits), true) => (domain.with_digits(*digits as f64), node.at.range()),
            (_, is_real) => {
                let expected = if is_real {
                    "a whole number"
                } else {
                    "no digits, since only `real` has them"
                };
                draft.expected(node.at.range(), expected, node.shown());
                return None;
            }
        },
        (domain, _) => (domain, at),
    };
    domain
        .map_err(|error| {
            let name = name.to_owned();
            draft.mistake(at, FormatError::Domain { name, error });
        })
        .ok()
}

fn argument(draft: &mut Draft, node: &Node) -> Option<Vec<String>> {
    let text = |draft: &mut Draft, node: &Node| {
        if let Raw::Text(text) = &node.value {
            Some(text.clone())
        } else {
            draft.expected(
                node.at.range(),
                "an argument such as `--decay={value}`",
                node.shown(),
            );
            None
        }
    };
    match &node.value {
        Raw::List(items) => items.iter().map(|item| text(draft, item)).collect(),
        _ => text(draft, node).map(|text| vec![text]),
    }
}

/// Writes `arms:` for a scenario.
pub(super) fn write(space: &OpenSpace) -> Written {
    let mut text = String::from("arms:\n  space:\n");
    for known in space.parameters() {
        let mut parts = vec![];
        let mut is_log = false;
        parts.push(match &known.domain {
            Domain::Real {
                low, high, spacing, ..
            } => {
                is_log = *spacing == Spacing::Log;
                format!("real: [{low:?}, {high:?}]")
            }
            Domain::Integer { low, high, spacing } => {
                is_log = *spacing == Spacing::Log;
                format!("integer: [{low}, {high}]")
            }
            Domain::Choice(values) => format!("choice: {}", flow_list(values.values())),
            Domain::Ordered(values) => format!("ordered: {}", flow_list(values.values())),
        });
        if is_log {
            parts.push("scale: log".to_owned());
        }
        if let Some(digits) = known.domain.digits() {
            parts.push(format!("digits: {digits}"));
        }
        if let Some(default) = &known.default {
            parts.push(format!("default: {}", flow_value(default)));
        }
        if let Some(when) = &known.when {
            parts.push(format!("when: {}", flow_word(&space.rule_text(when))));
        }
        match known.argument.as_deref() {
            None => {}
            Some([one]) => parts.push(format!("argument: {}", flow_word(one))),
            Some(several) => {
                let words: Vec<String> = several.iter().map(|word| flow_word(word)).collect();
                parts.push(format!("argument: [{}]", words.join(", ")));
            }
        }
        let _ = writeln!(
            text,
            "    {}: {{{}}}",
            flow_word(&known.name),
            parts.join(", ")
        );
    }
    if !space.forbid().is_empty() {
        text.push_str("  forbid:\n");
    }
    for rule in space.forbid() {
        let _ = writeln!(text, "    - {}", flow_word(&space.rule_text(rule)));
    }
    Written {
        text,
        notes: vec![],
    }
}

/// Values as a YAML list on one line.
pub fn flow_list(values: &[Value]) -> String {
    let words: Vec<String> = values.iter().map(flow_value).collect();
    format!("[{}]", words.join(", "))
}

fn flow_value(value: &Value) -> String {
    match value {
        Value::Text(text) => flow_word(text),
        other => other.to_string(),
    }
}

/// A word that YAML reads back as text, quoted if needed.
pub fn flow_word(text: &str) -> String {
    let is_plain = text.starts_with(|letter: char| letter.is_ascii_alphabetic() || letter == '_')
        && text
            .chars()
            .all(|letter| letter.is_ascii_alphanumeric() || " _.+*/<>=()-".contains(letter))
        && !text.ends_with(' ');
    let is_word_of_yaml = matches!(
        text.to_ascii_lowercase().as_str(),
        "true" | "false" | "null" | "yes" | "no" | "on" | "off" | "y" | "n" | "nan" | "inf"
    );
    if is_plain && !is_word_of_yaml {
        text.to_owned()
    } else {
        // JSON's quoting is valid YAML.
        serde_json::to_string(text).unwrap_or_default()
    }
}
