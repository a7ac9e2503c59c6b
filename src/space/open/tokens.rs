//! The words, numbers and signs of an expression, in captime's language and in those of other tools.

use std::ops::Range;

use super::OpenParameter;
use super::expression::Dialect;
use super::expression_error::{ExpressionError, Misread};
use super::text::{KEYWORDS, is_name_letter, is_name_start};

/// A word, number or sign of an expression.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Token {
    Number(f64, String),
    Quoted(String),
    Name(String),
    Keyword(&'static str),
    Symbol(&'static str),
    End,
}

impl Token {
    pub(super) fn shown(&self) -> String {
        match self {
            Self::Number(_, text) | Self::Name(text) => format!("`{text}`"),
            Self::Quoted(text) => format!("`'{text}'`"),
            Self::Keyword(word) | Self::Symbol(word) => format!("`{word}`"),
            Self::End => "the end".to_owned(),
        }
    }
}

const SYMBOLS: &[&str] = &[
    "==", "!=", "<=", ">=", "<", ">", "+", "-", "*", "/", "%", "^", "(", ")", "[", "]", ",",
];

/// What other languages write, and what it means.
fn foreign(dialect: Dialect, rest: &str) -> Option<(&'static str, &'static str)> {
    let table: &[(&str, &str)] = match dialect {
        Dialect::Captime => return None,
        Dialect::R => &[
            ("%in%", "in"),
            ("&&", "and"),
            ("||", "or"),
            ("&", "and"),
            ("|", "or"),
            ("%%", "%"),
        ],
        Dialect::Pcs => &[("&&", "and"), ("||", "or")],
    };
    table
        .iter()
        .copied()
        .find(|(text, _)| rest.starts_with(text))
}

const MISTAKEN: &[(&str, &str)] = &[("&&", "and"), ("||", "or"), ("&", "and"), ("|", "or")];

/// Cuts an expression into tokens, each with its place. The last one is the end.
pub(super) fn tokens(
    dialect: Dialect,
    text: &str,
    of: &[OpenParameter],
) -> Result<Vec<(Token, Range<usize>)>, Misread> {
    let is_name_letter =
        |letter: char| is_name_letter(letter) && !(dialect == Dialect::R && ":@".contains(letter));
    // Files of other tools write names such as `sp-var-heur` without quotes.
    let odd: Vec<&str> = of
        .iter()
        .map(|known| &*known.name)
        .filter(|name| dialect != Dialect::Captime && !name.chars().all(is_name_letter))
        .filter(|name| !name.starts_with(['\'', '"', '`']))
        .collect();
    let mut tokens = vec![];
    let mut at = 0;
    while let Some(letter) = text[at..].chars().next() {
        let rest = &text[at..];
        let fail = |length: usize, error| {
            let at = at..at + length;
            Err(Misread { at, error })
        };
        if letter.is_whitespace() {
            at += letter.len_utf8();
            continue;
        }
        let ends = |name: &&&str| !rest[name.len()..].starts_with(is_name_letter);
        let whole = odd.iter().filter(|name| rest.starts_with(**name));
        let whole = whole.filter(ends).max_by_key(|name| name.len());
        let (token, length) = if let Some(name) = whole {
            (Token::Name((*name).to_owned()), name.len())
        } else if matches!(letter, '\'' | '"' | '`') {
            let Some((inner, length)) = quoted(rest, letter) else {
                return fail(letter.len_utf8(), ExpressionError::Unclosed);
            };
            let is_name = letter == '`';
            let token = if is_name {
                Token::Name(inner)
            } else {
                Token::Quoted(inner)
            };
            (token, length)
        } else if letter.is_ascii_digit()
            || letter == '.' && rest[1..].starts_with(|next: char| next.is_ascii_digit())
        {
            let length = number_length(rest, is_name_letter);
            let word = &rest[..length];
            // R marks its integers.
            let marked = word.strip_suffix('L');
            let word = marked.filter(|_| dialect == Dialect::R).unwrap_or(word);
            match word.parse::<f64>() {
                Ok(number) if number.is_finite() => (Token::Number(number, word.into()), length),
                _ => {
                    let text = word.to_owned();
                    return fail(length, ExpressionError::NotANumber { text });
                }
            }
        } else if is_name_start(letter) {
            let length = rest
                .find(|letter: char| !is_name_letter(letter))
                .unwrap_or(rest.len());
            let word = &rest[..length];
            let keyword = match (dialect, word) {
                (Dialect::R, "TRUE" | "T") => Some("true"),
                (Dialect::R, "FALSE" | "F") => Some("false"),
                (Dialect::R, _) => None,
                _ => KEYWORDS.iter().copied().find(|keyword| *keyword == word),
            };
            let token = keyword.map_or_else(|| Token::Name(word.into()), Token::Keyword);
            (token, length)
        } else if let Some((found, meaning)) = foreign(dialect, rest) {
            let token = if meaning == "%" {
                Token::Symbol("%")
            } else {
                Token::Keyword(meaning)
            };
            (token, found.len())
        } else if let Some(symbol) = SYMBOLS.iter().find(|symbol| rest.starts_with(**symbol)) {
            (Token::Symbol(symbol), symbol.len())
        } else if letter == ':' && dialect == Dialect::R {
            (Token::Symbol(":"), 1)
        } else if letter == '!' && dialect != Dialect::Captime {
            (Token::Keyword("not"), 1)
        } else {
            let known = MISTAKEN.iter().find(|(found, _)| rest.starts_with(found));
            let (found, instead) = match (known, letter) {
                (Some((found, instead)), _) => (*found, *instead),
                (None, '!') => ("!", "not"),
                (None, '=') => ("=", "=="),
                (None, found) => {
                    return fail(letter.len_utf8(), ExpressionError::Stray { found });
                }
            };
            // A single `=` is common and clear where files of other tools have it.
            if found == "=" && dialect != Dialect::Captime {
                (Token::Symbol("=="), 1)
            } else {
                let length = found.len();
                let found = found.to_owned();
                return fail(length, ExpressionError::Foreign { found, instead });
            }
        };
        tokens.push((token, at..at + length));
        at += length;
    }
    tokens.push((Token::End, text.len()..text.len()));
    Ok(tokens)
}

/// The text between quotes, which are doubled inside, and how long it is with them.
fn quoted(rest: &str, quote: char) -> Option<(String, usize)> {
    let mut inner = String::new();
    let mut letters = rest.char_indices().skip(1).peekable();
    while let Some((at, letter)) = letters.next() {
        if letter != quote {
            inner.push(letter);
        } else if letters.peek().is_some_and(|(_, next)| *next == quote) {
            inner.push(quote);
            letters.next();
        } else {
            return Some((inner, at + 1));
        }
    }
    None
}

fn number_length(rest: &str, is_name_letter: impl Fn(char) -> bool) -> usize {
    let bytes = rest.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let is_sign = matches!(bytes[at], b'+' | b'-') && matches!(bytes[at - 1], b'e' | b'E');
        let is_exponent = matches!(bytes[at], b'e' | b'E')
            && bytes[at + 1..]
                .first()
                .is_some_and(|next| next.is_ascii_digit() || matches!(next, b'+' | b'-'));
        if bytes[at].is_ascii_digit() || bytes[at] == b'.' || is_exponent || at > 0 && is_sign {
            at += 1;
        } else {
            break;
        }
    }
    // `3x` is neither a number nor a name: take it as one, so that the message shows it.
    let tail = rest[at..].find(|letter: char| !is_name_letter(letter));
    at + tail.unwrap_or(rest.len() - at)
}
