//! irace's parameter files: `name "switch" type (domain) | condition`, in R syntax.

use std::fmt::Write as _;
use std::ops::Range;

use super::{
    Draft, Format, FormatError, SpaceFile, SpaceMistake, WriteError, Written, written_value,
};
use crate::space::open::{
    Dialect, Domain, OpenParameter, OpenSpace, Relation, Rule, Spacing, Term, parse_as, parse_term,
};

/// One parsed line of the table.
struct Line {
    name: (String, Range<usize>),
    switch: String,
    kind: char,
    is_log: bool,
    /// Words or bounds, without their quotes.
    items: Vec<(String, Range<usize>)>,
    domain_at: Range<usize>,
    condition: Option<Range<usize>>,
}

/// Whether a text has a line that only irace would write.
pub(super) fn looks_like(text: &str) -> bool {
    text.lines().any(|line| {
        let mut draft = Draft::default();
        let code = without_comment(line);
        !code.trim().is_empty() && cut(&mut draft, line, 0..code.len()).is_some()
    })
}

/// The part of a line before its comment.
fn without_comment(line: &str) -> &str {
    let mut quote = None;
    for (at, letter) in line.char_indices() {
        match (quote, letter) {
            (None, '#') => return &line[..at],
            (None, '"' | '\'') => quote = Some(letter),
            (Some(open), letter) if open == letter => quote = None,
            _ => {}
        }
    }
    line
}

pub(super) fn read(text: &str) -> Result<SpaceFile, Vec<SpaceMistake>> {
    #[derive(PartialEq)]
    enum Section {
        Table,
        Forbidden,
        Global,
    }
    let mut draft = Draft::default();
    let mut section = Section::Table;
    let mut lines = vec![];
    let mut clauses = vec![];
    let mut digits = None;
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let code = without_comment(line);
        let blank = |letter: char| letter.is_whitespace() || letter == '\u{feff}';
        let begin = start + code.len() - code.trim_start_matches(blank).len();
        let code = code.trim_matches(blank);
        let at = begin..begin + code.len();
        start += line.len();
        match code {
            "" => {}
            "[forbidden]" => section = Section::Forbidden,
            "[global]" => section = Section::Global,
            "[parameters]" => section = Section::Table,
            word if word.starts_with('[') && word.ends_with(']') => {
                draft.expected(at, "`[forbidden]` or `[global]`", format!("`{word}`"));
            }
            word => match section {
                Section::Table => {
                    let line = cut(&mut draft, text, at);
                    if line.is_none() {
                        let name = word.split_whitespace().next().unwrap_or_default();
                        draft.unread.insert(name.to_owned());
                    }
                    lines.extend(line);
                }
                Section::Forbidden => clauses.push(at),
                Section::Global => match assigned(word) {
                    ("digits", value) => match value.parse::<u8>() {
                        Ok(number) => digits = Some((f64::from(number), at)),
                        Err(_) => draft.expected(at, "a number of digits", format!("`{value}`")),
                    },
                    _ => draft.note(at, format!("ignored `{word}`")),
                },
            },
        }
    }
    for line in &lines {
        let value = |(text, _): &(String, Range<usize>)| written_value(text);
        let domain = match line.kind {
            'c' => Domain::choice(line.items.iter().map(value).collect()),
            'o' => Domain::ordered(line.items.iter().map(value).collect()),
            // Bounds may refer to parameters further down, so they are filled in below.
            _ => Domain::real(0.0, 0.0, Spacing::Linear),
        };
        let domain = domain.unwrap_or_else(|error| {
            let name = line.name.0.clone();
            draft.mistake(line.domain_at.clone(), FormatError::Domain { name, error });
            Domain::Real {
                low: 0.0,
                high: 0.0,
                spacing: Spacing::Linear,
                digits: None,
            }
        });
        let mut parameter = OpenParameter::new(line.name.0.as_str(), domain);
        parameter.argument = Some(arguments(&line.switch));
        // Until conditions are read, it only counts that there is one.
        parameter.when = line.condition.is_some().then(|| Rule::All(vec![]));
        let has_blank = |(value, _): &&(String, Range<usize>)| {
            matches!(line.kind, 'c' | 'o') && value.trim().contains(char::is_whitespace)
        };
        if let Some((value, at)) = line.items.iter().find(has_blank) {
            let text = format!("`{value}` of `{}` is passed as one argument", line.name.0);
            draft.note(at.clone(), text);
        }
        draft.add(parameter, line.name.1.clone(), line.name.1.clone());
    }
    bounds(&mut draft, &lines, digits.map(|(digits, _)| digits));
    for (place, line) in lines.iter().enumerate() {
        if let Some(at) = &line.condition {
            draft.condition_count += 1;
            match parse_as(Dialect::R, &text[at.clone()], &draft.parameters) {
                Ok(rule) => draft.condition(place, rule, at.clone()),
                Err(misread) => draft.misread(at.start, misread),
            }
        }
    }
    for at in clauses {
        match parse_as(Dialect::R, &text[at.clone()], &draft.parameters) {
            Ok(rule) => draft.forbid(rule, at),
            Err(misread) => draft.misread(at.start, misread),
        }
    }
    draft.finish(0..text.lines().next().map_or(0, str::len))
}

/// Sets the ranges of numbers. A bound that depends on other parameters becomes the widest it can be, and a constraint.
fn bounds(draft: &mut Draft, lines: &[Line], digits: Option<f64>) {
    let mut open: Vec<usize> = (0..lines.len())
        .filter(|place| matches!(lines[*place].kind, 'i' | 'r'))
        .collect();
    while !open.is_empty() {
        let before = open.len();
        let pending = open.clone();
        open.retain(|&place| {
            let line = &lines[place];
            let [low, high] = &line.items[..] else {
                let found = line.items.len().to_string();
                draft.expected(line.domain_at.clone(), "two bounds", found);
                return false;
            };
            let mut terms = vec![];
            for (text, at) in [low, high] {
                match parse_term(Dialect::R, text, &draft.parameters) {
                    Ok(term) => terms.push(term.constant().map_or(term, Term::Number)),
                    Err(misread) => {
                        draft.misread(at.start, misread);
                        return false;
                    }
                }
            }
            let waits = |term: &Term| {
                let rule = Rule::Compare(Relation::Equal, term.clone(), Term::Number(0.0));
                rule.parameters()
                    .iter()
                    .any(|parent| pending.contains(parent))
            };
            if terms.iter().any(waits) {
                return true;
            }
            let is_fraction =
                |term: &Term| matches!(term, Term::Number(bound) if bound.fract() != 0.0);
            if line.kind == 'i' && terms.iter().any(is_fraction) {
                let found = format!("`{}, {}`", low.0, high.0);
                draft.expected(line.domain_at.clone(), "whole numbers", found);
                return false;
            }
            let low = terms[0].bounds(&draft.parameters).0;
            let high = terms[1].bounds(&draft.parameters).1;
            let spacing = if line.is_log {
                Spacing::Log
            } else {
                Spacing::Linear
            };
            let domain = if line.kind == 'i' {
                Domain::integer(low.floor() as i64, high.ceil() as i64, spacing)
            } else {
                let domain = Domain::real(low, high, spacing);
                match digits {
                    Some(digits) => domain.and_then(|domain| domain.with_digits(digits)),
                    None => domain,
                }
            };
            match domain {
                Ok(domain) => draft.parameters[place].domain = domain,
                Err(error) => {
                    let name = line.name.0.clone();
                    draft.mistake(line.domain_at.clone(), FormatError::Domain { name, error });
                }
            }
            for (term, comparison) in terms.into_iter().zip([Relation::Less, Relation::More]) {
                if !matches!(term, Term::Number(_)) {
                    let rule = Rule::Compare(comparison, Term::Parameter(place), term);
                    // Without the parameters in its bounds it is inactive.
                    for parent in rule.parameters() {
                        if parent != place && draft.parameters[parent].when.is_some() {
                            draft.conditions[place].push(Rule::Active(parent));
                        }
                    }
                    draft.forbid(rule, line.domain_at.clone());
                }
            }
            false
        });
        if open.len() == before {
            for place in open {
                let (name, at) = lines[place].name.clone();
                draft.mistake(at, FormatError::CircularBounds { name });
            }
            return;
        }
    }
}

/// Parses a line of the table.
fn cut(draft: &mut Draft, text: &str, at: Range<usize>) -> Option<Line> {
    let mut rest = at.start;
    let end = at.end;
    let skip = |from: usize| from + text[from..end].len() - text[from..end].trim_start().len();
    let word = |from: usize| {
        let length = text[from..end]
            .find(char::is_whitespace)
            .unwrap_or(end - from);
        from..from + length
    };
    let name_at = word(rest);
    let name = text[name_at.clone()].to_owned();
    rest = skip(name_at.end);
    let Some(quote) = text[rest..end]
        .chars()
        .next()
        .filter(|letter| matches!(letter, '"' | '\''))
    else {
        draft.expected(
            rest..end,
            "a switch in quotes such as `\"--alpha \"`",
            shown(&text[rest..end]),
        );
        return None;
    };
    let Some(length) = text[rest + 1..end].find(quote) else {
        draft.expected(
            rest..end,
            "a switch with its closing quote",
            shown(&text[rest..end]),
        );
        return None;
    };
    let switch = text[rest + 1..rest + 1 + length].to_owned();
    rest = skip(rest + length + 2);
    let length = text[rest..end].find(|letter: char| letter.is_whitespace() || letter == '(');
    let kind_at = rest..length.map_or(end, |length| rest + length);
    let (kind, is_log) = match &text[kind_at.clone()] {
        "c" => ('c', false),
        "o" => ('o', false),
        "i" => ('i', false),
        "r" => ('r', false),
        "i,log" => ('i', true),
        "r,log" => ('r', true),
        other => {
            draft.expected(
                kind_at,
                "`c`, `o`, `i`, `r`, `i,log` or `r,log`",
                shown(other),
            );
            return None;
        }
    };
    rest = skip(kind_at.end);
    if !text[rest..end].starts_with('(') {
        draft.expected(
            rest..end,
            "values such as `(1, 10)`",
            shown(&text[rest..end]),
        );
        return None;
    }
    let Some((items, after)) = items(text, rest, end) else {
        draft.expected(rest..end, "`)`", "the end of the line");
        return None;
    };
    let is_quoted = |at: &Range<usize>| text[..at.start].ends_with(['"', '\'']);
    let is_missing = |(value, at): &&(String, Range<usize>)| value.is_empty() && !is_quoted(at);
    if let Some((_, at)) = items.iter().find(is_missing) {
        draft.expected(at.clone(), "a value", "nothing");
        return None;
    }
    let domain_at = rest..after;
    rest = skip(after);
    let condition = match text[rest..end].chars().next() {
        None => None,
        Some('|') => {
            let start = skip(rest + 1);
            Some(start..end)
        }
        Some(_) => {
            draft.expected(rest..end, "`|` and a condition", shown(&text[rest..end]));
            return None;
        }
    };
    Some(Line {
        name: (name, name_at),
        switch,
        kind,
        is_log,
        items,
        domain_at,
        condition,
    })
}

/// `name = value` or `name <- value`, as R writes it.
fn assigned(text: &str) -> (&str, &str) {
    let (name, value) = text
        .split_once("<-")
        .or_else(|| text.split_once('='))
        .unwrap_or((text, ""));
    (name.trim(), value.trim())
}

fn shown(text: &str) -> String {
    if text.is_empty() {
        "the end of the line".to_owned()
    } else {
        format!("`{text}`")
    }
}

type Items = Vec<(String, Range<usize>)>;

/// The comma-separated items in brackets, and where the brackets end.
fn items(text: &str, open: usize, end: usize) -> Option<(Items, usize)> {
    let (mut items, mut depth, mut quote, mut from) = (vec![], 0_u32, None, open + 1);
    let item = |from: usize, upto: usize| {
        let piece = &text[from..upto];
        let start = from + piece.len() - piece.trim_start().len();
        let piece = piece.trim();
        let unquoted = ['"', '\'']
            .iter()
            .find_map(|quote| piece.strip_prefix(*quote)?.strip_suffix(*quote));
        let called = piece
            .strip_prefix("expression(")
            .and_then(|inner| inner.strip_suffix(')'));
        match (unquoted, called) {
            (Some(inner), _) => (inner.to_owned(), start + 1..start + 1 + inner.len()),
            (None, Some(inner)) => (inner.to_owned(), start + 11..start + 11 + inner.len()),
            (None, None) => (piece.to_owned(), start..start + piece.len()),
        }
    };
    for (offset, letter) in text[open + 1..end].char_indices() {
        let at = open + 1 + offset;
        if let Some(open) = quote {
            quote = quote.filter(|_| open != letter);
            continue;
        }
        match letter {
            '"' | '\'' => quote = Some(letter),
            '(' => depth += 1,
            ')' if depth == 0 => {
                items.push(item(from, at));
                return Some((items, at + 1));
            }
            ')' => depth -= 1,
            ',' if depth == 0 => {
                items.push(item(from, at));
                from = at + 1;
            }
            _ => {}
        }
    }
    None
}

/// irace joins switch and value without a space. A blank in the switch begins a new argument.
fn arguments(switch: &str) -> Vec<String> {
    format!("{switch}{{value}}")
        .split_whitespace()
        .map(str::to_owned)
        .collect()
}

/// Writes irace's table.
pub(super) fn write(space: &OpenSpace) -> Result<Written, WriteError> {
    let refuse = |what: String| Err(WriteError::new(Format::Irace, what));
    let mut text = String::new();
    let mut notes = vec![];
    let quote = |word: &str| {
        if word.contains(['"', '\n']) {
            Err(WriteError::new(Format::Irace, format!("the word `{word}`")))
        } else {
            Ok(format!("\"{word}\""))
        }
    };
    for parameter in space.parameters() {
        let name = &parameter.name;
        if name.contains(|letter: char| letter.is_whitespace() || "\"'#".contains(letter)) {
            return refuse(format!("the name `{name}`"));
        }
        let switch = match &parameter.argument {
            None => format!("-{name} "),
            Some(parts) => {
                let whole = parts.join(" ");
                match whole.strip_suffix("{value}") {
                    Some(switch) if !switch.contains("{value}") => switch.to_owned(),
                    _ => return refuse(format!("the argument `{whole}`")),
                }
            }
        };
        let (kind, domain) = match &parameter.domain {
            Domain::Real {
                low, high, spacing, ..
            } => (real_kind("r", *spacing), format!("{low:?}, {high:?}")),
            Domain::Integer { low, high, spacing } => {
                (real_kind("i", *spacing), format!("{low}, {high}"))
            }
            Domain::Choice(values) | Domain::Ordered(values) => {
                let words: Result<Vec<String>, WriteError> = values
                    .values()
                    .iter()
                    .map(|value| quote(&value.to_string()))
                    .collect();
                let is_ordered = matches!(parameter.domain, Domain::Ordered(_));
                (if is_ordered { "o" } else { "c" }, words?.join(", "))
            }
        };
        let _ = write!(text, "{name} {} {kind} ({domain})", quote(&switch)?);
        if let Some(when) = &parameter.when {
            let _ = write!(text, " | {}", when.text_as(Dialect::R, space.parameters()));
        }
        text.push('\n');
    }
    if !space.forbid().is_empty() {
        text.push_str("\n[forbidden]\n");
    }
    for rule in space.forbid() {
        let _ = writeln!(text, "{}", rule.text_as(Dialect::R, space.parameters()));
    }
    let is_real = |known: &&OpenParameter| matches!(known.domain, Domain::Real { .. });
    let mut all_digits: Vec<Option<u8>> = space
        .parameters()
        .iter()
        .filter(is_real)
        .map(|known| known.domain.digits())
        .collect();
    all_digits.dedup();
    match all_digits[..] {
        [] | [None] => {}
        [Some(digits)] => {
            let _ = write!(text, "\n[global]\ndigits = {digits}\n");
        }
        _ => notes.push("irace has one number of `digits` for all, so none is written".to_owned()),
    }
    if space
        .parameters()
        .iter()
        .any(|known| known.default.is_some())
    {
        notes.push("irace has no defaults: put them in a configurations file".to_owned());
    }
    Ok(Written { text, notes })
}

fn real_kind(kind: &'static str, spacing: Spacing) -> &'static str {
    match (kind, spacing) {
        ("i", Spacing::Log) => "i,log",
        ("r", Spacing::Log) => "r,log",
        (kind, _) => kind,
    }
}
