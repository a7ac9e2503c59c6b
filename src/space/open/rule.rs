//! Conditions over parameters, checked and ready to be evaluated.
//!
//! A comparison with an inactive parameter is neither true nor false. `and`, `or` and `not` treat that as unknown (Kleene's
//! three values), and an expression that stays unknown counts as not fulfilled: a `when` leaves its parameter
//! inactive, a `forbid` forbids nothing. irace and R do the same with `NA`.

use std::fmt::Write as _;

use super::OpenParameter;
use super::domain::INACTIVE;
use super::expression::Dialect;
use crate::space::Value;

/// How two sides compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    /// `==`
    Equal,
    /// `!=`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    AtMost,
    /// `>`
    More,
    /// `>=`
    AtLeast,
}

impl Comparison {
    /// Whether it holds.
    pub(super) fn holds<T: PartialOrd + ?Sized>(self, left: &T, right: &T) -> bool {
        match self {
            Self::Equal => left == right,
            Self::NotEqual => left != right,
            Self::Less => left < right,
            Self::AtMost => left <= right,
            Self::More => left > right,
            Self::AtLeast => left >= right,
        }
    }

    /// The same with its sides swapped.
    pub(super) fn flipped(self) -> Self {
        match self {
            Self::Less => Self::More,
            Self::AtMost => Self::AtLeast,
            Self::More => Self::Less,
            Self::AtLeast => Self::AtMost,
            same => same,
        }
    }

    /// As it is written.
    pub fn symbol(self) -> &'static str {
        match self {
            Self::Equal => "==",
            Self::NotEqual => "!=",
            Self::Less => "<",
            Self::AtMost => "<=",
            Self::More => ">",
            Self::AtLeast => ">=",
        }
    }
}

/// Arithmetic with two operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operator {
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `/`
    Divide,
    /// `%`: what is left over, with the sign of the divisor.
    Remainder,
}

impl Operator {
    pub(super) fn symbol(self) -> &'static str {
        match self {
            Self::Add => "+",
            Self::Subtract => "-",
            Self::Multiply => "*",
            Self::Divide => "/",
            Self::Remainder => "%",
        }
    }

    fn apply(self, left: f64, right: f64) -> f64 {
        match self {
            Self::Add => left + right,
            Self::Subtract => left - right,
            Self::Multiply => left * right,
            Self::Divide => left / right,
            Self::Remainder => left - right * (left / right).floor(),
        }
    }
}

/// Functions of numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Function {
    /// The smallest argument.
    Min,
    /// The largest argument.
    Max,
    /// To the next whole number below.
    Floor,
    /// To the next whole number above.
    Ceil,
    /// To the nearest whole number.
    Round,
    /// Towards zero.
    Trunc,
}

impl Function {
    pub(super) const ALL: [Self; 6] = [
        Self::Min,
        Self::Max,
        Self::Floor,
        Self::Ceil,
        Self::Round,
        Self::Trunc,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Min => "min",
            Self::Max => "max",
            Self::Floor => "floor",
            Self::Ceil => "ceil",
            Self::Round => "round",
            Self::Trunc => "trunc",
        }
    }

    fn apply(self, mut arguments: impl Iterator<Item = f64>) -> f64 {
        match self {
            Self::Min => arguments.fold(f64::INFINITY, f64::min),
            Self::Max => arguments.fold(f64::NEG_INFINITY, f64::max),
            Self::Floor => arguments.next().unwrap_or(f64::NAN).floor(),
            Self::Ceil => arguments.next().unwrap_or(f64::NAN).ceil(),
            Self::Round => arguments.next().unwrap_or(f64::NAN).round(),
            Self::Trunc => arguments.next().unwrap_or(f64::NAN).trunc(),
        }
    }
}

/// Something with a number for a value.
#[derive(Debug, Clone, PartialEq)]
pub enum Term {
    /// A number.
    Number(f64),
    /// The value of the parameter at this place.
    Parameter(usize),
    /// The number with its sign changed.
    Negative(Box<Term>),
    /// Arithmetic.
    Arithmetic(Operator, Box<Term>, Box<Term>),
    /// A function.
    Call(Function, Vec<Term>),
}

/// Something that holds or not. Parameters are named by their place.
#[derive(Debug, Clone, PartialEq)]
pub enum Rule {
    /// The parameter is (or is not) one of these categories; the codes ascend.
    Among {
        /// The parameter, a choice or ordered.
        parameter: usize,
        /// The places of the values.
        codes: Vec<u32>,
        /// Whether it must not be one of them.
        is_negated: bool,
    },
    /// Two choices have (or have not) the same value.
    Same {
        /// One parameter.
        left: usize,
        /// The other.
        right: usize,
        /// Whether they must differ.
        is_negated: bool,
    },
    /// Two numbers compare.
    Compare(Comparison, Term, Term),
    /// A number is (or is not) one of these.
    OneOf {
        /// The number.
        term: Term,
        /// The numbers to choose from.
        numbers: Vec<f64>,
        /// Whether it must not be one of them.
        is_negated: bool,
    },
    /// The opposite.
    Not(Box<Rule>),
    /// All hold; `true` if there are none.
    All(Vec<Rule>),
    /// At least one holds; `false` if there are none.
    Any(Vec<Rule>),
}

impl Term {
    fn value(&self, codes: &[u64], of: &[OpenParameter]) -> Option<f64> {
        match self {
            Self::Number(number) => Some(*number),
            Self::Parameter(place) => match codes[*place] {
                INACTIVE => None,
                code => of[*place].domain.number(code),
            },
            Self::Negative(term) => term.value(codes, of).map(|value| -value),
            Self::Arithmetic(operator, left, right) => {
                Some(operator.apply(left.value(codes, of)?, right.value(codes, of)?))
            }
            Self::Call(function, arguments) => {
                let values: Option<Vec<f64>> =
                    arguments.iter().map(|term| term.value(codes, of)).collect();
                Some(function.apply(values?.into_iter()))
            }
        }
    }

    fn parameters(&self, into: &mut Vec<usize>) {
        match self {
            Self::Number(_) => {}
            Self::Parameter(place) => into.push(*place),
            Self::Negative(term) => term.parameters(into),
            Self::Arithmetic(_, left, right) => {
                left.parameters(into);
                right.parameters(into);
            }
            Self::Call(_, arguments) => {
                for term in arguments {
                    term.parameters(into);
                }
            }
        }
    }

    /// The smallest and largest value it can take, as far as the ranges of its parameters tell.
    pub(in crate::space) fn bounds(&self, of: &[OpenParameter]) -> (f64, f64) {
        let span = |values: &[f64]| {
            let low = values.iter().copied().fold(f64::INFINITY, f64::min);
            (
                low,
                values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            )
        };
        match self {
            Self::Number(number) => (*number, *number),
            Self::Parameter(place) => of[*place].domain.number_bounds(),
            Self::Negative(term) => {
                let (low, high) = term.bounds(of);
                (-high, -low)
            }
            Self::Arithmetic(operator, left, right) => {
                let (a, b) = (left.bounds(of), right.bounds(of));
                match operator {
                    Operator::Divide if b.0 <= 0.0 && b.1 >= 0.0 => {
                        (f64::NEG_INFINITY, f64::INFINITY)
                    }
                    Operator::Remainder => {
                        let most = b.0.abs().max(b.1.abs());
                        (-most, most)
                    }
                    _ => span(&[
                        operator.apply(a.0, b.0),
                        operator.apply(a.0, b.1),
                        operator.apply(a.1, b.0),
                        operator.apply(a.1, b.1),
                    ]),
                }
            }
            Self::Call(function, arguments) => {
                let bounds: Vec<_> = arguments.iter().map(|term| term.bounds(of)).collect();
                let low = function.apply(bounds.iter().map(|bound| bound.0));
                (low, function.apply(bounds.iter().map(|bound| bound.1)))
            }
        }
    }

    fn print(&self, to: Printed<'_>, level: u8, out: &mut String) {
        match self {
            Self::Number(number) => {
                let _ = write!(out, "{}", number_text(*number));
            }
            Self::Parameter(place) => out.push_str(&to.name(*place)),
            Self::Negative(term) => {
                out.push('-');
                // `-(-1)` and `-(1)` must not read as the number -1.
                let is_plain = matches!(**term, Self::Parameter(_) | Self::Call(..));
                term.print_in(to, if is_plain { 3 } else { 4 }, out);
            }
            Self::Arithmetic(operator, left, right) => {
                let own = match operator {
                    Operator::Add | Operator::Subtract => 1,
                    _ => 2,
                };
                let open = level > own;
                if open {
                    out.push('(');
                }
                // R reads its remainder before products.
                let is_first = to.dialect == Dialect::R && *operator == Operator::Remainder;
                left.print(to, if is_first { 3 } else { own }, out);
                let symbol = match (to.dialect, operator) {
                    (Dialect::R, Operator::Remainder) => "%%",
                    _ => operator.symbol(),
                };
                let _ = write!(out, " {symbol} ");
                right.print(to, own + 1, out);
                if open {
                    out.push(')');
                }
            }
            Self::Call(function, arguments) => {
                let name = match (to.dialect, function) {
                    (Dialect::R, Function::Ceil) => "ceiling",
                    _ => function.name(),
                };
                let _ = write!(out, "{name}(");
                for (place, argument) in arguments.iter().enumerate() {
                    if place > 0 {
                        out.push_str(", ");
                    }
                    argument.print(to, 0, out);
                }
                out.push(')');
            }
        }
    }

    fn print_in(&self, to: Printed<'_>, level: u8, out: &mut String) {
        if level >= 4 {
            out.push('(');
            self.print(to, 0, out);
            out.push(')');
        } else {
            self.print(to, level, out);
        }
    }
}

impl Rule {
    /// Whether it holds for these codes; nothing if that depends on an inactive parameter.
    pub(super) fn holds(&self, codes: &[u64], of: &[OpenParameter]) -> Option<bool> {
        match self {
            Self::Among {
                parameter,
                codes: wanted,
                is_negated,
            } => match codes[*parameter] {
                INACTIVE => None,
                code => Some(wanted.binary_search(&(code as u32)).is_ok() != *is_negated),
            },
            Self::Same {
                left,
                right,
                is_negated,
            } => match (codes[*left], codes[*right]) {
                (INACTIVE, _) | (_, INACTIVE) => None,
                (a, b) => {
                    let (a, b) = (of[*left].domain.decode(a), of[*right].domain.decode(b));
                    Some((a.means(&b) || a.to_string() == b.to_string()) != *is_negated)
                }
            },
            Self::Compare(comparison, left, right) => {
                Some(comparison.holds(&left.value(codes, of)?, &right.value(codes, of)?))
            }
            Self::OneOf {
                term,
                numbers,
                is_negated,
            } => {
                let value = term.value(codes, of)?;
                Some(numbers.contains(&value) != *is_negated)
            }
            Self::Not(rule) => rule.holds(codes, of).map(|holds| !holds),
            Self::All(rules) => {
                let mut all = Some(true);
                for rule in rules {
                    match rule.holds(codes, of) {
                        Some(false) => return Some(false),
                        Some(true) => {}
                        None => all = None,
                    }
                }
                all
            }
            Self::Any(rules) => {
                let mut any = Some(false);
                for rule in rules {
                    match rule.holds(codes, of) {
                        Some(true) => return Some(true),
                        Some(false) => {}
                        None => any = None,
                    }
                }
                any
            }
        }
    }

    /// All of these, flattened.
    pub(in crate::space) fn all(rules: Vec<Self>) -> Self {
        let mut flat = vec![];
        for rule in rules {
            match rule {
                Self::All(inner) => flat.extend(inner),
                other => flat.push(other),
            }
        }
        match flat.len() {
            1 => flat.remove(0),
            _ => Self::All(flat),
        }
    }

    /// Any of these, flattened.
    pub(in crate::space) fn any(rules: Vec<Self>) -> Self {
        let mut flat = vec![];
        for rule in rules {
            match rule {
                Self::Any(inner) => flat.extend(inner),
                other => flat.push(other),
            }
        }
        match flat.len() {
            1 => flat.remove(0),
            _ => Self::Any(flat),
        }
    }

    /// The opposite, in its simplest form.
    pub(in crate::space) fn negated(self) -> Self {
        match self {
            Self::Among {
                parameter,
                codes,
                is_negated,
            } => Self::Among {
                parameter,
                codes,
                is_negated: !is_negated,
            },
            Self::Same {
                left,
                right,
                is_negated,
            } => Self::Same {
                left,
                right,
                is_negated: !is_negated,
            },
            Self::OneOf {
                term,
                numbers,
                is_negated,
            } => Self::OneOf {
                term,
                numbers,
                is_negated: !is_negated,
            },
            Self::Not(rule) => *rule,
            other => Self::Not(Box::new(other)),
        }
    }

    /// The places of the parameters it speaks of, each once, ascending.
    pub fn parameters(&self) -> Vec<usize> {
        let mut all = vec![];
        self.collect(&mut all);
        all.sort_unstable();
        all.dedup();
        all
    }

    fn collect(&self, into: &mut Vec<usize>) {
        match self {
            Self::Among { parameter, .. } => into.push(*parameter),
            Self::Same { left, right, .. } => into.extend([*left, *right]),
            Self::Compare(_, left, right) => {
                left.parameters(into);
                right.parameters(into);
            }
            Self::OneOf { term, .. } => term.parameters(into),
            Self::Not(rule) => rule.collect(into),
            Self::All(rules) | Self::Any(rules) => {
                for rule in rules {
                    rule.collect(into);
                }
            }
        }
    }

    /// As text that reads back as the same rule.
    pub fn text(&self, of: &[OpenParameter]) -> String {
        self.text_as(Dialect::Captime, of)
    }

    /// The same in another language.
    pub(in crate::space) fn text_as(&self, dialect: Dialect, of: &[OpenParameter]) -> String {
        let mut out = String::new();
        self.print(Printed { dialect, of }, 0, &mut out);
        out
    }

    /// Comparisons bind tighter than `not`, `not` tighter than `and`, and that tighter than `or`.
    fn print(&self, to: Printed<'_>, level: u8, out: &mut String) {
        match self {
            Self::Among {
                parameter,
                codes,
                is_negated,
            } => {
                let known = &to.of[*parameter];
                let values = known.domain.categories().map_or(&[][..], |of| of.values());
                let word = |code: &u32| to.word(&values[*code as usize]);
                let name = to.name(*parameter);
                match (codes.as_slice(), is_negated) {
                    ([code], is_negated) => {
                        let symbol = if *is_negated { "!=" } else { "==" };
                        let _ = write!(out, "{name} {symbol} {}", word(code));
                    }
                    (codes, is_negated) => {
                        to.list(&name, *is_negated, codes.iter().map(word), out);
                    }
                }
            }
            Self::Same {
                left,
                right,
                is_negated,
            } => {
                let symbol = if *is_negated { "!=" } else { "==" };
                let _ = write!(out, "{} {symbol} {}", to.name(*left), to.name(*right));
            }
            Self::Compare(comparison, left, right) => {
                left.print(to, 0, out);
                let _ = write!(out, " {} ", comparison.symbol());
                right.print(to, 0, out);
            }
            Self::OneOf {
                term,
                numbers,
                is_negated,
            } => {
                let mut left = String::new();
                term.print(to, 0, &mut left);
                let numbers = numbers.iter().map(|number| number_text(*number));
                to.list(&left, *is_negated, numbers, out);
            }
            Self::Not(rule) if to.dialect == Dialect::Captime => {
                out.push_str("not ");
                rule.print(to, 3, out);
            }
            Self::Not(rule) => {
                out.push_str("!(");
                rule.print(to, 0, out);
                out.push(')');
            }
            Self::All(rules) if rules.is_empty() => out.push_str(to.truth(true)),
            Self::Any(rules) if rules.is_empty() => out.push_str(to.truth(false)),
            Self::All(rules) => print_joined(rules, to.and(), (level > 1, 2), to, out),
            Self::Any(rules) => print_joined(rules, to.or(), (level > 0, 1), to, out),
        }
    }
}

/// The language to print in, and whose names.
#[derive(Clone, Copy)]
struct Printed<'a> {
    dialect: Dialect,
    of: &'a [OpenParameter],
}

impl Printed<'_> {
    fn name(self, parameter: usize) -> String {
        let name = &self.of[parameter].name;
        let is_truth = matches!(&**name, "T" | "F" | "TRUE" | "FALSE");
        if self.dialect == Dialect::R && is_truth {
            format!("`{name}`")
        } else {
            name_text(name)
        }
    }

    fn word(self, value: &Value) -> String {
        if self.dialect == Dialect::R {
            return format!("\"{}\"", value.to_string().replace('"', "\"\""));
        }
        match value {
            Value::Flag(_) | Value::Integer(_) | Value::Number(_) => value.to_string(),
            Value::Text(text)
                if is_plain(text) && self.of.iter().all(|known| *known.name != **text) =>
            {
                text.to_string()
            }
            Value::Text(text) => format!("'{}'", text.replace('\'', "''")),
        }
    }

    fn list(
        self,
        left: &str,
        is_negated: bool,
        words: impl Iterator<Item = String>,
        out: &mut String,
    ) {
        let words: Vec<String> = words.collect();
        let words = words.join(", ");
        let _ = match (self.dialect, is_negated) {
            (Dialect::R, false) => write!(out, "{left} %in% c({words})"),
            (Dialect::R, true) => write!(out, "!({left} %in% c({words}))"),
            (_, false) => write!(out, "{left} in [{words}]"),
            (_, true) => write!(out, "{left} not in [{words}]"),
        };
    }

    fn and(self) -> &'static str {
        match self.dialect {
            Dialect::Captime => " and ",
            Dialect::R => " & ",
            Dialect::Pcs => " && ",
        }
    }

    fn or(self) -> &'static str {
        match self.dialect {
            Dialect::Captime => " or ",
            Dialect::R => " | ",
            Dialect::Pcs => " || ",
        }
    }

    fn truth(self, truth: bool) -> &'static str {
        match (self.dialect, truth) {
            (Dialect::R, true) => "TRUE",
            (Dialect::R, false) => "FALSE",
            (_, true) => "true",
            (_, false) => "false",
        }
    }
}

fn print_joined(
    rules: &[Rule],
    word: &str,
    (is_bracketed, level): (bool, u8),
    to: Printed<'_>,
    out: &mut String,
) {
    if is_bracketed {
        out.push('(');
    }
    for (place, rule) in rules.iter().enumerate() {
        if place > 0 {
            out.push_str(word);
        }
        rule.print(to, level, out);
    }
    if is_bracketed {
        out.push(')');
    }
}

/// Words with a meaning of their own.
pub(super) const KEYWORDS: &[&str] = &["and", "or", "not", "in", "true", "false"];

/// Letters of a name that needs no quotes.
pub(super) fn is_name_start(letter: char) -> bool {
    letter.is_alphabetic() || letter == '_' || letter == '@'
}

pub(super) fn is_name_letter(letter: char) -> bool {
    letter.is_alphanumeric() || matches!(letter, '_' | '.' | ':' | '@')
}

fn is_plain(name: &str) -> bool {
    name.starts_with(is_name_start) && name.chars().all(is_name_letter) && !KEYWORDS.contains(&name)
}

/// A parameter's name as it is written in an expression.
pub(super) fn name_text(name: &str) -> String {
    if is_plain(name) {
        name.to_owned()
    } else {
        format!("`{}`", name.replace('`', "``"))
    }
}

/// A number with the fewest digits that read back equal.
pub(in crate::space) fn number_text(number: f64) -> String {
    if number.fract() == 0.0 && number.abs() <= 2_f64.powi(53) {
        format!("{}", number as i64)
    } else {
        format!("{number:?}")
    }
}
