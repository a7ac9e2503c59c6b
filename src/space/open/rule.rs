//! Conditions over parameters, checked and ready to be evaluated.
//!
//! A comparison with an inactive parameter is neither true nor false. `and`, `or` and `not` treat that as unknown (Kleene's
//! three values), and an expression that stays unknown counts as not fulfilled: a `when` leaves its parameter
//! inactive, a `forbid` forbids nothing. irace and R do the same with `NA`, except that their `%in%` is false then.

use super::OpenParameter;
use super::domain::INACTIVE;

/// How two sides compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Relation {
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

impl Relation {
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
pub struct Function(pub(super) &'static str);

type OfOneNumber = fn(f64) -> f64;

/// Functions of one number, and whether they keep the order of what they are given.
const FUNCTIONS: &[(&str, OfOneNumber, bool)] = &[
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
    Compare(Relation, Term, Term),
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
    /// Its value, if no parameter is in it.
    pub(in crate::space) fn constant(&self) -> Option<f64> {
        let mut named = vec![];
        self.parameters(&mut named);
        if named.is_empty() {
            self.value(&[], &[])
        } else {
            None
        }
    }

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
}
