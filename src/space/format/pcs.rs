//! PCS files, old (ParamILS, SMAC2) and new (AClib2): one reader, because every line shows which it is.

use std::fmt::Write as _;
use std::ops::Range;

use super::{
    Draft, Format, FormatError, SpaceFile, SpaceMistake, WriteError, Written, digits_lost,
    written_value,
};
use crate::nearest::nearest;
use crate::space::open::{
    Dialect, Domain, OpenParameter, OpenSpace, Relation, Rule, Spacing, Term, among, compare,
    number_text, parse_as,
};
use crate::space::{Configuration, Value};

/// A piece of the file, with its position.
#[derive(Debug, Clone, Copy)]
struct Piece<'a> {
    text: &'a str,
    start: usize,
}

impl Piece<'_> {
    fn at(&self) -> Range<usize> {
        self.start..self.start + self.text.len()
    }

    fn from(&self, from: usize) -> Self {
        Self {
            text: &self.text[from..],
            start: self.start + from,
        }
    }

    fn upto(&self, upto: usize) -> Self {
        Self {
            text: &self.text[..upto],
            start: self.start,
        }
    }

    fn trimmed(&self) -> Self {
        let text = self.text.trim_start();
        let start = self.start + self.text.len() - text.len();
        let text = text.trim_end();
        Self { text, start }
    }

    /// Parts between separators that stand outside of braces and brackets.
    fn split(&self, separator: &str) -> Vec<Self> {
        let (mut parts, mut depth, mut from, mut at) = (vec![], 0_u32, 0, 0);
        while let Some(letter) = self.text[at..].chars().next() {
            match letter {
                '{' | '(' | '[' => depth += 1,
                '}' | ')' | ']' => depth = depth.saturating_sub(1),
                _ => {}
            }
            if depth == 0 && self.text[at..].starts_with(separator) {
                parts.push(self.upto(at).from(from).trimmed());
                at += separator.len();
                from = at;
            } else {
                at += letter.len_utf8();
            }
        }
        parts.push(self.from(from).trimmed());
        parts
    }

    /// The text between an opening bracket at the beginning and its closing one, and the rest.
    fn bracketed(&self, open: char, close: char) -> Option<(Self, Self)> {
        let inner = self.text.strip_prefix(open)?;
        let mut depth = 0_u32;
        let end = inner.char_indices().find(|(_, letter)| {
            if *letter == close && depth == 0 {
                return true;
            }
            if *letter == open {
                depth += 1;
            } else if *letter == close {
                depth -= 1;
            }
            false
        })?;
        let inside = self.from(open.len_utf8()).upto(end.0);
        let rest = self.from(open.len_utf8() + end.0 + close.len_utf8());
        Some((inside, rest.trimmed()))
    }

    /// The name that a line begins with.
    fn name(&self) -> Self {
        let is_end = |letter: char| letter.is_whitespace() || "{[".contains(letter);
        self.upto(self.text.find(is_end).unwrap_or(self.text.len()))
    }

    /// The text without quotes, which the format ignores.
    fn word(&self) -> String {
        self.text.replace(['"', '\''], "").trim().to_owned()
    }
}

pub(super) fn read(text: &str) -> Result<SpaceFile, Vec<SpaceMistake>> {
    let mut draft = Draft::default();
    let mut conditions = vec![];
    let mut clauses = vec![];
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let code = &line[..line.find('#').unwrap_or(line.len())];
        let code = code.trim_start_matches('\u{feff}');
        let piece = Piece {
            text: code,
            start: start + line[..line.find('#').unwrap_or(line.len())].len() - code.len(),
        };
        let piece = piece.trimmed();
        start += line.len();
        if piece.text.is_empty() {
            continue;
        }
        if piece.text.starts_with('{') {
            clauses.push(piece);
            continue;
        }
        if let Some(bar) = condition_bar(piece.text) {
            let child = piece.upto(bar).trimmed();
            let condition = piece.from(bar + 1).trimmed();
            let is_definition = child.text.contains(['{', '[']);
            if is_definition {
                draft.defines(&child.name().word(), |draft| parameter(draft, child));
            }
            conditions.push((child.name(), condition));
        } else if piece.text.contains([']', '}', '[', '{']) {
            draft.defines(&piece.name().word(), |draft| parameter(draft, piece));
        } else if !piece.text.ends_with(':') {
            draft.note(piece.at(), format!("ignored `{}`", piece.text));
        }
    }
    for (child, condition) in conditions {
        draft.condition_count += 1;
        if let Some(place) = draft.find(&child.word(), &child.at())
            && let Some(rule) = self::condition(&mut draft, condition)
        {
            draft.condition(place, rule, condition.at());
        }
    }
    for clause in clauses {
        if let Some(rule) = forbidden(&mut draft, clause) {
            draft.forbid(rule, clause.at());
        }
    }
    draft.finish(0..text.lines().next().map_or(0, str::len))
}

/// Where a condition begins: a single `|`.
fn condition_bar(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let first = text.find('|')?;
    (bytes.get(first + 1) != Some(&b'|')).then_some(first)
}

const TYPES: &[(&str, char)] = &[
    ("categorical", 'c'),
    ("cat", 'c'),
    ("c", 'c'),
    ("ordinal", 'o'),
    ("ord", 'o'),
    ("o", 'o'),
    ("integer", 'i'),
    ("int", 'i'),
    ("i", 'i'),
    ("real", 'r'),
    ("float", 'r'),
    ("r", 'r'),
];

/// `name {a, b} [a]`, `name [1, 10] [5]il`, `name integer [1, 10] [5] log`.
fn parameter(draft: &mut Draft, piece: Piece<'_>) {
    let name = piece.name();
    if name.text.is_empty() {
        draft.expected(
            piece.at(),
            "the name of a parameter",
            format!("`{}`", piece.text),
        );
        return;
    }
    let mut rest = piece.from(name.text.len()).trimmed();
    let type_end = rest.text.find(['{', '[']).unwrap_or(rest.text.len());
    let type_word = rest.upto(type_end).trimmed();
    let kind = if type_word.text.is_empty() {
        None
    } else {
        let known = TYPES.iter().find(|(word, _)| *word == type_word.text);
        let Some((_, kind)) = known else {
            let words = ["categorical", "ordinal", "integer", "real"];
            let error = FormatError::UnknownType {
                name: type_word.text.to_owned(),
                nearest: nearest(type_word.text, words).map(str::to_owned),
            };
            draft.mistake(type_word.at(), error);
            return;
        };
        Some(*kind)
    };
    rest = rest.from(type_end);
    let is_list = rest.text.starts_with('{');
    let brackets = if is_list {
        rest.bracketed('{', '}')
    } else {
        rest.bracketed('[', ']')
    };
    let Some((values, rest)) = brackets else {
        let expected = if is_list {
            "`}`"
        } else {
            "`{` or `[` with its end"
        };
        draft.expected(rest.at(), expected, "the end of the line");
        return;
    };
    let (default, suffix) = match rest
        .bracketed('[', ']')
        .or_else(|| rest.bracketed('{', '}'))
    {
        Some((default, suffix)) => (Some(default.trimmed()), suffix),
        None => (None, rest),
    };
    let (mut is_integer, mut is_log) = (kind == Some('i'), false);
    match suffix.text {
        "" => {}
        "log" => is_log = true,
        letters if letters.chars().all(|letter| "il ".contains(letter)) && kind.is_none() => {
            is_integer |= letters.contains('i');
            is_log = letters.contains('l');
        }
        "l" => is_log = true,
        other => {
            draft.expected(suffix.at(), "`i`, `l`, `il` or `log`", format!("`{other}`"));
            return;
        }
    }
    let expected = match (kind, is_list) {
        (Some('c' | 'o'), false) => "values such as `{a, b}`",
        (Some('i' | 'r'), true) => "a range such as `[1, 10]`",
        _ => "",
    };
    if !expected.is_empty() {
        draft.expected(values.at(), expected, format!("`{}`", values.text));
        return;
    }
    let domain = if is_list {
        let words = values.split(",");
        if let Some(empty) = words.iter().find(|word| word.word().is_empty()) {
            draft.expected(
                empty.start..values.at().end.max(empty.start),
                "a value",
                "nothing",
            );
            return;
        }
        let words = words
            .iter()
            .map(|word| written_value(&word.word()))
            .collect();
        if kind == Some('o') {
            Domain::ordered(words)
        } else {
            Domain::choice(words)
        }
    } else {
        let bounds = values.split(",");
        let numbers: Option<Vec<f64>> = bounds.iter().map(|bound| number(draft, bound)).collect();
        let Some(numbers) = numbers else { return };
        let [low, high] = numbers[..] else {
            draft.expected(values.at(), "two bounds", format!("{}", numbers.len()));
            return;
        };
        let spacing = if is_log {
            Spacing::Log
        } else {
            Spacing::Linear
        };
        if !is_integer {
            Domain::real(low, high, spacing)
        } else if low.fract() == 0.0 && high.fract() == 0.0 {
            Domain::integer(low as i64, high as i64, spacing)
        } else {
            draft.expected(values.at(), "whole numbers", format!("`{}`", values.text));
            return;
        }
    };
    let domain = match domain {
        Ok(domain) => domain,
        Err(error) => {
            let name = name.word();
            draft.mistake(values.at(), FormatError::Domain { name, error });
            return;
        }
    };
    let mut parameter = OpenParameter::new(name.word(), domain);
    parameter.default = match default {
        None => None,
        Some(default) if is_list => Some(written_value(&default.word())),
        Some(default) => match number(draft, &default) {
            Some(number) => Some(Value::Number(number)),
            None => return,
        },
    };
    if is_integer
        && let Some(Value::Number(number)) = parameter.default
        && number.fract() == 0.0
    {
        parameter.default = Some(Value::Integer(number as i64));
    }
    let default_at = default.map_or(name.at(), |default| default.at());
    draft.add(parameter, name.at(), default_at);
}

fn number(draft: &mut Draft, piece: &Piece<'_>) -> Option<f64> {
    let number = piece
        .word()
        .parse::<f64>()
        .ok()
        .filter(|number| number.is_finite());
    if number.is_none() {
        draft.expected(piece.at(), "a number", format!("`{}`", piece.text));
    }
    number
}

/// `parent in {a, b} && other > 3 || ...`, where `&&` binds tighter.
fn condition(draft: &mut Draft, piece: Piece<'_>) -> Option<Rule> {
    let mut any = vec![];
    for part in piece.split("||") {
        let tests: Option<Vec<Rule>> = part
            .split("&&")
            .into_iter()
            .map(|test| self::test(draft, test))
            .collect();
        any.push(Rule::all(tests?));
    }
    Some(Rule::any(any))
}

const COMPARISONS: &[(&str, Relation)] = &[
    ("==", Relation::Equal),
    ("!=", Relation::NotEqual),
    ("<=", Relation::AtMost),
    (">=", Relation::AtLeast),
    ("<", Relation::Less),
    (">", Relation::More),
    ("=", Relation::Equal),
];

/// `parent in {a, b}`, `parent == a`, `parent > 3`.
fn test(draft: &mut Draft, piece: Piece<'_>) -> Option<Rule> {
    if let Some(brace) = piece.text.find('{') {
        let left = piece.upto(brace).trimmed();
        let Some(name) = left
            .text
            .strip_suffix("in")
            .filter(|name| name.ends_with(char::is_whitespace))
        else {
            draft.expected(
                piece.at(),
                "`parent in {values}`",
                format!("`{}`", piece.text),
            );
            return None;
        };
        let name = left.upto(name.len()).trimmed();
        let parent = draft.find(&name.word(), &name.at())?;
        let Some((values, _)) = piece.from(brace).bracketed('{', '}') else {
            draft.expected(piece.at(), "`}`", "the end of the line");
            return None;
        };
        let values = values.split(",");
        if let Some(empty) = values.iter().find(|value| value.word().is_empty()) {
            draft.expected(empty.at(), "a value", "nothing");
            return None;
        }
        let values: Vec<_> = values
            .iter()
            .map(|value| (value.word(), value.at()))
            .collect();
        return among(&draft.parameters, parent, &values, false)
            .map_err(|misread| draft.misread(0, misread))
            .ok();
    }
    let found = COMPARISONS
        .iter()
        .flat_map(|(sign, comparison)| {
            let places = piece.text.match_indices(sign);
            places.map(|(at, _)| (at, *sign, *comparison))
        })
        .min_by_key(|(at, sign, _)| {
            // Names may hold such signs too.
            let name = piece.upto(*at).word();
            let is_known = draft.parameters.iter().any(|known| *known.name == *name);
            (!is_known, *at, std::cmp::Reverse(sign.len()))
        });
    let Some((at, sign, comparison)) = found else {
        draft.expected(
            piece.at(),
            "a condition such as `parent in {a, b}`",
            format!("`{}`", piece.text),
        );
        return None;
    };
    let (name, value) = (
        piece.upto(at).trimmed(),
        piece.from(at + sign.len()).trimmed(),
    );
    let parent = draft.find(&name.word(), &name.at())?;
    compare(&draft.parameters, parent, comparison, &value.word())
        .map_err(|error| draft.mistake(value.at(), error))
        .ok()
}

/// `{a=1, b=x}`, or SMAC's advanced `{a + b > 10 && c == 1}`.
fn forbidden(draft: &mut Draft, piece: Piece<'_>) -> Option<Rule> {
    let Some((inside, rest)) = piece.bracketed('{', '}') else {
        draft.expected(piece.at(), "`}`", "the end of the line");
        return None;
    };
    if !rest.text.is_empty() {
        draft.expected(rest.at(), "the end of the line", format!("`{}`", rest.text));
        return None;
    }
    let is_plain = inside.split(",").iter().all(|part| {
        let is_list = part.text.contains(" in {") || part.text.contains(" in{");
        let name = part.text.split('=').next().unwrap_or_default().trim();
        let is_known = draft.parameters.iter().any(|known| *known.name == *name);
        is_list || is_known && !part.text.contains("&&") && !part.text.contains("||")
    });
    let is_advanced = !is_plain
        && (inside.text.contains(['<', '>', '+', '*', '('])
            || ["==", "!=", "&&", "||"]
                .iter()
                .any(|sign| inside.text.contains(sign)));
    if is_advanced {
        // A comma joins tests as `&&` does.
        let parts = inside.split(",").into_iter();
        let rules: Option<Vec<Rule>> = parts
            .map(|part| {
                parse_as(Dialect::Pcs, part.text, &draft.parameters)
                    .map_err(|misread| draft.misread(part.start, misread))
                    .ok()
            })
            .collect();
        return rules.map(Rule::all);
    }
    let tests: Option<Vec<Rule>> = inside
        .split(",")
        .into_iter()
        .map(|part| test(draft, part))
        .collect();
    tests.map(Rule::all)
}

/// Writes PCS, old or new.
pub(super) fn write(space: &OpenSpace, format: Format) -> Result<Written, WriteError> {
    let is_old = format == Format::PcsOld;
    let mut text = String::new();
    let defaults: Configuration = space.all_defaults();
    for parameter in space.parameters() {
        let name = word(&parameter.name, format)?;
        let default = defaults
            .get(&parameter.name)
            .map(ToString::to_string)
            .unwrap_or_default();
        let (kind, values, is_integer, is_log) = match &parameter.domain {
            Domain::Real {
                low, high, spacing, ..
            } => (
                " real",
                format!("[{low:?}, {high:?}]"),
                false,
                *spacing == Spacing::Log,
            ),
            Domain::Integer { low, high, spacing } => (
                " integer",
                format!("[{low}, {high}]"),
                true,
                *spacing == Spacing::Log,
            ),
            Domain::Choice(values) | Domain::Ordered(values) => {
                let words: Result<Vec<String>, WriteError> = values
                    .values()
                    .iter()
                    .map(|value| word(&value.to_string(), format))
                    .collect();
                let is_ordered = matches!(parameter.domain, Domain::Ordered(_));
                if is_ordered && is_old {
                    return Err(WriteError::new(format, format!("that `{name}` is ordered")));
                }
                let kind = if is_ordered {
                    " ordinal"
                } else {
                    " categorical"
                };
                (kind, format!("{{{}}}", words?.join(", ")), false, false)
            }
        };
        let (kind, suffix) = if is_old {
            let suffix = match (is_integer, is_log) {
                (true, true) => "il",
                (true, false) => "i",
                (false, true) => "l",
                (false, false) => "",
            };
            ("", suffix)
        } else {
            (kind, if is_log { " log" } else { "" })
        };
        let _ = writeln!(text, "{name}{kind} {values} [{default}]{suffix}");
    }
    let mut has_condition = false;
    for parameter in space.parameters() {
        let Some(when) = &parameter.when else {
            continue;
        };
        if !has_condition {
            text.push('\n');
            has_condition = true;
        }
        let lines = match when {
            Rule::All(rules) => rules.as_slice(),
            one => std::slice::from_ref(one),
        };
        for line in lines {
            let condition = condition_text(space, line, format)?;
            let _ = writeln!(text, "{} | {condition}", parameter.name);
        }
    }
    if !space.forbid().is_empty() {
        text.push('\n');
    }
    for rule in space.forbid() {
        let tests = match rule {
            Rule::All(rules) => rules.as_slice(),
            one => std::slice::from_ref(one),
        };
        let is_equality = |rule: &Rule| match rule {
            Rule::Among {
                codes, is_negated, ..
            } => !is_negated && (codes.len() == 1 || !is_old),
            Rule::Compare(Relation::Equal, Term::Parameter(_), Term::Number(_)) => true,
            Rule::OneOf {
                term: Term::Parameter(_),
                is_negated,
                ..
            } => !is_negated && !is_old,
            _ => false,
        };
        let clause = if tests.iter().all(is_equality) {
            let tests: Result<Vec<String>, WriteError> = tests
                .iter()
                .map(|rule| test_text(space, rule, format, true))
                .collect();
            tests?.join(", ")
        } else if is_old || rule.asks_activity() {
            let what = format!("the constraint `{}`", space.rule_text(rule));
            return Err(WriteError::new(format, what));
        } else {
            rule.text_as(Dialect::Pcs, space.parameters())
        };
        let _ = writeln!(text, "{{{clause}}}");
    }
    let has_arguments = space
        .parameters()
        .iter()
        .any(|known| known.argument.is_some());
    let mut notes = digits_lost(space, "PCS");
    if has_arguments {
        notes.push("PCS files have no place for `argument`".to_owned());
    }
    Ok(Written { text, notes })
}

/// A word that the format can hold.
fn word(text: &str, format: Format) -> Result<String, WriteError> {
    let is_fine = !text.is_empty()
        && !text.contains(|letter: char| letter.is_whitespace() || "{}[]|,#='\"".contains(letter));
    if is_fine {
        Ok(text.to_owned())
    } else {
        Err(WriteError::new(format, format!("the word `{text}`")))
    }
}

fn condition_text(space: &OpenSpace, rule: &Rule, format: Format) -> Result<String, WriteError> {
    let joined =
        |rules: &[Rule], sign: &str, part: &dyn Fn(&Rule) -> Result<String, WriteError>| {
            let parts: Result<Vec<String>, WriteError> = rules.iter().map(part).collect();
            parts.map(|parts| parts.join(sign))
        };
    let test = |rule: &Rule| test_text(space, rule, format, false);
    match rule {
        Rule::Any(rules) if format == Format::Pcs && !rules.is_empty() => {
            joined(rules, " || ", &|rule| match rule {
                Rule::All(rules) if !rules.is_empty() => joined(rules, " && ", &test),
                other => test(other),
            })
        }
        other => test(other),
    }
}

fn test_text(
    space: &OpenSpace,
    rule: &Rule,
    format: Format,
    is_clause: bool,
) -> Result<String, WriteError> {
    let refused = || {
        let what = format!("the condition `{}`", space.rule_text(rule));
        Err(WriteError::new(format, what))
    };
    let name = |place: usize| word(&space.parameters()[place].name, format);
    let equal = if is_clause { "=" } else { " == " };
    match rule {
        Rule::Among {
            parameter,
            codes,
            is_negated,
        } => {
            let values = space.parameters()[*parameter].domain.categories();
            let values = values.map_or(&[][..], |values| values.values());
            let listed = |keep: &dyn Fn(u32) -> bool| {
                let words: Result<Vec<String>, WriteError> = (0..)
                    .zip(values)
                    .filter(|(code, _)| keep(*code))
                    .map(|(_, value)| word(&value.to_string(), format))
                    .collect();
                words.map(|words| words.join(", "))
            };
            let is_single = codes.len() == 1 && (format == Format::Pcs || is_clause);
            match (is_single, is_negated) {
                (true, false) => Ok(format!(
                    "{}{equal}{}",
                    name(*parameter)?,
                    listed(&|code| code == codes[0])?
                )),
                (true, true) => Ok(format!(
                    "{} != {}",
                    name(*parameter)?,
                    listed(&|code| code == codes[0])?
                )),
                (false, _) => {
                    let words = listed(&|code| codes.contains(&code) != *is_negated)?;
                    let is_ordered =
                        matches!(space.parameters()[*parameter].domain, Domain::Ordered(_));
                    match values.last() {
                        _ if !words.is_empty() => {
                            Ok(format!("{} in {{{words}}}", name(*parameter)?))
                        }
                        // No value at all: the order has nothing above its last one.
                        Some(last) if is_ordered && format == Format::Pcs && !is_clause => {
                            let last = word(&last.to_string(), format)?;
                            Ok(format!("{} > {last}", name(*parameter)?))
                        }
                        _ => refused(),
                    }
                }
            }
        }
        Rule::Compare(comparison, Term::Parameter(place), Term::Number(number)) => {
            let is_integer = matches!(space.parameters()[*place].domain, Domain::Integer { .. });
            let shown = number_text(*number);
            let name = name(*place)?;
            match comparison {
                Relation::Equal if is_clause => Ok(format!("{name}={shown}")),
                _ if format == Format::PcsOld => refused(),
                Relation::AtMost if is_integer => {
                    Ok(format!("{name} < {}", number.floor() as i64 + 1))
                }
                Relation::AtLeast if is_integer => {
                    Ok(format!("{name} > {}", number.ceil() as i64 - 1))
                }
                Relation::AtMost | Relation::AtLeast => refused(),
                comparison => Ok(format!("{name} {} {shown}", comparison.symbol())),
            }
        }
        Rule::OneOf {
            term: Term::Parameter(place),
            numbers,
            is_negated: false,
        } => {
            let numbers: Vec<String> = numbers.iter().map(|number| number_text(*number)).collect();
            Ok(format!("{} in {{{}}}", name(*place)?, numbers.join(", ")))
        }
        _ => refused(),
    }
}
