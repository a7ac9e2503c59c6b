//! Rules as text: in captime's language, which reads back as the same rule, and in those of other tools.

use std::fmt::Write as _;

use super::OpenParameter;
use super::expression::Dialect;
use super::rule::{Operator, Rule, Term};
use crate::space::Value;

impl Term {
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
            } if !codes.is_empty() => {
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
                    // What never holds, such as more than the last of ordered values.
                    ([], is_negated) if !values.is_empty() => {
                        let never = format!("{name} > {}", to.word(&values[values.len() - 1]));
                        let _ = match (is_negated, to.dialect) {
                            (false, _) => write!(out, "{never}"),
                            (true, Dialect::R) => write!(out, "!({never})"),
                            (true, _) => write!(out, "not {never}"),
                        };
                    }
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
fn name_text(name: &str) -> String {
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
