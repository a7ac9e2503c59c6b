//! Conditions over parameters, checked and ready to be evaluated.
//!
//! A comparison with an inactive parameter is neither true nor false. `and`, `or` and `not` treat that as unknown (Kleene's
//! three values), and an expression that stays unknown counts as not fulfilled: a `when` leaves its parameter
//! inactive, a `forbid` forbids nothing. irace and R do the same with `NA`, except that their `%in%` is false then.

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
    /// `^`
    Power,
}

impl Operator {
    pub(super) fn symbol(self) -> &'static str {
        match self {
            Self::Add => "+",
            Self::Subtract => "-",
            Self::Multiply => "*",
            Self::Divide => "/",
            Self::Remainder => "%",
            Self::Power => "^",
        }
    }

    fn apply(self, left: f64, right: f64) -> f64 {
        match self {
            Self::Add => left + right,
            Self::Subtract => left - right,
            Self::Multiply => left * right,
            Self::Divide => left / right,
            Self::Remainder => left - right * (left / right).floor(),
            Self::Power => left.powf(right),
        }
    }
}

/// A function of numbers, by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Function(&'static str);

/// Functions of one number, and whether they keep the order of what they are given.
const FUNCTIONS: &[(&str, fn(f64) -> f64, bool)] = &[
    ("floor", f64::floor, true),
    ("ceil", f64::ceil, true),
    ("round", f64::round, true),
    ("trunc", f64::trunc, true),
    ("abs", f64::abs, false),
    ("sqrt", f64::sqrt, true),
    ("cbrt", f64::cbrt, true),
    ("exp", f64::exp, true),
    ("log", f64::ln, true),
    ("log2", f64::log2, true),
    ("log10", f64::log10, true),
    ("sin", f64::sin, false),
    ("cos", f64::cos, false),
    ("tan", f64::tan, false),
    ("asin", f64::asin, true),
    ("acos", f64::acos, false),
    ("atan", f64::atan, true),
    ("sinh", f64::sinh, true),
    ("cosh", f64::cosh, false),
    ("tanh", f64::tanh, true),
];

impl Function {
    /// The smallest argument.
    pub const MIN: Self = Self("min");
    /// The largest argument.
    pub const MAX: Self = Self("max");

    /// The function that is called so.
    pub fn named(name: &str) -> Option<Self> {
        let single = FUNCTIONS.iter().map(|(known, ..)| *known);
        let mut all = single.chain([Self::MIN.0, Self::MAX.0]);
        all.find(|known| *known == name).map(Self)
    }

    /// Whether it takes any number of arguments instead of one.
    pub(super) fn takes_several(self) -> bool {
        self == Self::MIN || self == Self::MAX
    }

    fn apply(self, mut arguments: impl Iterator<Item = f64>) -> f64 {
        match self {
            Self::MIN => arguments.fold(f64::INFINITY, f64::min),
            Self::MAX => arguments.fold(f64::NEG_INFINITY, f64::max),
            Self(name) => {
                let found = FUNCTIONS.iter().find(|(known, ..)| *known == name);
                found.map_or(f64::NAN, |(_, of, _)| {
                    of(arguments.next().unwrap_or(f64::NAN))
                })
            }
        }
    }

    /// Whether larger arguments never make a smaller value.
    fn is_monotonic(self) -> bool {
        let named = |(known, _, keeps): &(&str, _, bool)| *known == self.0 && *keeps;
        self.takes_several() || FUNCTIONS.iter().any(named)
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
    /// The parameter is active. Always known, unlike comparisons.
    Active(usize),
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
                    Operator::Power => (f64::NEG_INFINITY, f64::INFINITY),
                    _ => span(&[
                        operator.apply(a.0, b.0),
                        operator.apply(a.0, b.1),
                        operator.apply(a.1, b.0),
                        operator.apply(a.1, b.1),
                    ]),
                }
            }
            Self::Call(function, arguments) => {
                if !function.is_monotonic() {
                    return (f64::NEG_INFINITY, f64::INFINITY);
                }
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
                let is_plain = matches!(
                    **term,
                    Self::Parameter(_) | Self::Call(..) | Self::Arithmetic(Operator::Power, ..)
                );
                term.print_in(to, if is_plain { 3 } else { 4 }, out);
            }
            Self::Arithmetic(operator, left, right) => {
                let own = match operator {
                    Operator::Add | Operator::Subtract => 1,
                    Operator::Power => 3,
                    _ => 2,
                };
                let open = level > own;
                if open {
                    out.push('(');
                }
                // R reads its remainder before products.
                let is_first = to.dialect == Dialect::R && *operator == Operator::Remainder;
                let is_power = *operator == Operator::Power;
                let beside = |term: &Self, level| {
                    if is_power && !term.is_atom() {
                        4
                    } else {
                        level
                    }
                };
                left.print_in(to, beside(left, if is_first { 3 } else { own }), out);
                let symbol = match (to.dialect, operator) {
                    (Dialect::R, Operator::Remainder) => "%%",
                    _ => operator.symbol(),
                };
                let _ = write!(out, " {symbol} ");
                right.print_in(to, beside(right, (own + 1).min(3)), out);
                if open {
                    out.push(')');
                }
            }
            Self::Call(function, arguments) => {
                let name = match (to.dialect, function.0) {
                    (Dialect::R, "ceil") => "ceiling",
                    (_, name) => name,
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

    /// Whether it is never torn apart by an operator beside it.
    fn is_atom(&self) -> bool {
        match self {
            Self::Number(number) => *number >= 0.0,
            Self::Parameter(_) | Self::Call(..) => true,
            Self::Negative(_) | Self::Arithmetic(..) => false,
        }
    }

    /// The same, in brackets from level 4 on.
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
            Self::Active(parameter) => Some(codes[*parameter] != INACTIVE),
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
            Self::Among { parameter, .. } | Self::Active(parameter) => into.push(*parameter),
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

    /// Whether it asks if a parameter is active, which few formats can say.
    pub(in crate::space) fn asks_activity(&self) -> bool {
        match self {
            Self::Active(_) => true,
            Self::Not(rule) => rule.asks_activity(),
            Self::All(rules) | Self::Any(rules) => rules.iter().any(Self::asks_activity),
            Self::Among { .. } | Self::Same { .. } | Self::Compare(..) | Self::OneOf { .. } => {
                false
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
        let to = Printed {
            dialect,
            of,
            is_negated: false,
        };
        self.print(to, 0, &mut out);
        out
    }

    /// Whether it says that this parameter is one of several values.
    fn lists(&self, wanted: usize) -> bool {
        match self {
            Self::Among {
                parameter,
                is_negated,
                ..
            } => *parameter == wanted && !is_negated,
            Self::OneOf {
                term, is_negated, ..
            } => *term == Term::Parameter(wanted) && !is_negated,
            _ => false,
        }
    }

    /// A rule about several values, as a list.
    fn print_list(&self, to: Printed<'_>, out: &mut String) {
        match self {
            Self::Among {
                parameter,
                codes,
                is_negated,
            } => {
                let known = &to.of[*parameter];
                let values = known.domain.categories().map_or(&[][..], |of| of.values());
                let words = codes.iter().map(|code| to.word(&values[*code as usize]));
                let name = to.name(*parameter);
                to.list(&name, Some(*parameter), *is_negated, words.collect(), out);
            }
            Self::OneOf {
                term,
                numbers,
                is_negated,
            } => {
                let mut left = String::new();
                term.print(to, 0, &mut left);
                let numbers = numbers.iter().map(|number| number_text(*number));
                let parameter = match term {
                    Term::Parameter(place) => Some(*place),
                    _ => None,
                };
                to.list(&left, parameter, *is_negated, numbers.collect(), out);
            }
            other => other.print(to, 0, out),
        }
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
                    _ => self.print_list(to, out),
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
            Self::OneOf { .. } => self.print_list(to, out),
            Self::Active(parameter) => {
                let name = to.name(*parameter);
                let _ = match to.dialect {
                    Dialect::R => write!(out, "!is.na({name})"),
                    _ => write!(out, "active({name})"),
                };
            }
            Self::Not(rule) if to.dialect == Dialect::Captime => {
                out.push_str("not ");
                rule.print(to, 3, out);
            }
            Self::Not(rule) => {
                let is_negated = true;
                out.push_str("!(");
                rule.print(Printed { is_negated, ..to }, 0, out);
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
    /// Whether it is printed as the operand of a `not`.
    is_negated: bool,
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

    /// A number or category and the values it may have. R's `%in%` is false for a missing value, which a negation would make
    /// true. There, comparisons are joined instead.
    fn list(
        self,
        left: &str,
        parameter: Option<usize>,
        is_negated: bool,
        words: Vec<String>,
        out: &mut String,
    ) {
        let may_be_missing = parameter.is_some_and(|place| self.of[place].when.is_some());
        if self.dialect == Dialect::R && may_be_missing && (self.is_negated || is_negated) {
            let (symbol, joined) = if is_negated {
                ("!=", self.and())
            } else {
                ("==", self.or())
            };
            let each = words.iter().map(|word| format!("{left} {symbol} {word}"));
            let _ = write!(out, "({})", each.collect::<Vec<_>>().join(joined));
            return;
        }
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
    let mut rest = rules;
    while let [rule, after @ ..] = rest {
        if rest.len() < rules.len() {
            out.push_str(word);
        }
        rest = after;
        // What R's `%in%` under a negation was read as.
        if let (Rule::Active(parameter), [next, after @ ..]) = (rule, after)
            && to.dialect == Dialect::R
            && to.is_negated
            && next.lists(*parameter)
        {
            let is_negated = false;
            next.print_list(Printed { is_negated, ..to }, out);
            rest = after;
        } else {
            rule.print(to, level, out);
        }
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
