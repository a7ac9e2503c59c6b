//! The language of `when` and `forbid`: text to a checked [`Rule`].
//!
//! ```text
//! heuristic == vmtf and restarts < 10
//! decay * restarts > 5000 or not (effort in [low, medium])
//! ```
//!
//! A bare word that is the name of a parameter means the parameter; any other word is a value of the choice on the other
//! side. Quotes (`'x'`) always make a value, backquotes always a name, so that parameters may be called `in` or `p-1`.

use std::ops::Range;

use super::OpenParameter;
use super::domain::{Domain, MOST_VALUES};
use super::expression_error::{DEEPEST, ExpressionError, Misread};
use super::rule::{Function, Operator, Relation, Rule, Term};
use super::tokens::{Token, tokens};
use crate::nearest::nearest;

/// Whose operators are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::space) enum Dialect {
    /// `and`, `or`, `not`, `in [...]`.
    Captime,
    /// R, as irace has it: `&`, `|`, `!`, `%in% c(...)`.
    R,
    /// SMAC's advanced clauses: `&&`, `||`.
    Pcs,
}

/// Reads a condition over these parameters.
pub fn parse(text: &str, of: &[OpenParameter]) -> Result<Rule, Misread> {
    parse_as(Dialect::Captime, text, of)
}

/// The same in another language.
pub(in crate::space) fn parse_as(
    dialect: Dialect,
    text: &str,
    of: &[OpenParameter],
) -> Result<Rule, Misread> {
    let mut parser = Parser::new(dialect, text, of)?;
    let (read, at) = parser.or()?;
    parser.end()?;
    parser.rule(read, at)
}

/// Reads a number made of these parameters.
pub(in crate::space) fn parse_term(
    dialect: Dialect,
    text: &str,
    of: &[OpenParameter],
) -> Result<Term, Misread> {
    let mut parser = Parser::new(dialect, text, of)?;
    let (read, at) = parser.sum()?;
    parser.end()?;
    parser.term(read, at)
}

/// Compares a parameter with a value as it is written, in whatever file.
pub(in crate::space) fn compare(
    of: &[OpenParameter],
    parameter: usize,
    comparison: Relation,
    text: &str,
) -> Result<Rule, ExpressionError> {
    let known = &of[parameter];
    let number = text.parse::<f64>().ok().filter(|number| number.is_finite());
    let unknown = || {
        let words = known.domain.categories().map_or(&[][..], |of| of.values());
        let words: Vec<String> = words.iter().map(ToString::to_string).collect();
        ExpressionError::UnknownValue {
            parameter: known.name.to_string(),
            value: text.to_owned(),
            nearest: nearest(text, words.iter().map(String::as_str)).map(str::to_owned),
        }
    };
    let as_numbers =
        |number: f64| Rule::Compare(comparison, Term::Parameter(parameter), Term::Number(number));
    let Some(categories) = known.domain.categories() else {
        return number.map(as_numbers).ok_or_else(unknown);
    };
    let place = categories.place_of_text(text);
    let is_equality = matches!(comparison, Relation::Equal | Relation::NotEqual);
    match (place, number) {
        (Some(place), _) if is_equality => Ok(Rule::Among {
            parameter,
            codes: vec![place],
            is_negated: comparison == Relation::NotEqual,
        }),
        (Some(place), _) if matches!(known.domain, Domain::Ordered(_)) => {
            let codes = (0..categories.values().len() as u32)
                .filter(|code| comparison.holds(code, &place))
                .collect();
            Ok(Rule::Among {
                parameter,
                codes,
                is_negated: false,
            })
        }
        (_, Some(number)) if !is_equality && categories.numbers().is_some() => {
            Ok(as_numbers(number))
        }
        (Some(_), _) => Err(ExpressionError::NoOrder {
            name: known.name.to_string(),
        }),
        (None, _) => Err(unknown()),
    }
}

/// Whether a parameter is one of the values as they are written.
pub(in crate::space) fn among(
    of: &[OpenParameter],
    parameter: usize,
    values: &[(String, Range<usize>)],
    is_negated: bool,
) -> Result<Rule, Misread> {
    let mut codes = vec![];
    let mut numbers = vec![];
    for (text, at) in values {
        let rule = compare(of, parameter, Relation::Equal, text);
        match rule.map_err(|error| Misread {
            at: at.clone(),
            error,
        })? {
            Rule::Among { codes: one, .. } => codes.extend(one),
            Rule::Compare(_, _, Term::Number(number)) => numbers.push(number),
            _ => {}
        }
    }
    Ok(if of[parameter].domain.categories().is_some() {
        codes.sort_unstable();
        codes.dedup();
        Rule::Among {
            parameter,
            codes,
            is_negated,
        }
    } else {
        Rule::OneOf {
            term: Term::Parameter(parameter),
            numbers,
            is_negated,
        }
    })
}

/// What was read so far: its type decides what it may be compared with.
enum Read {
    Rule(Rule),
    Term(Term),
    /// A number as it is written.
    Number(f64, String),
    /// A quoted value, or a word that is no parameter's name.
    Word(String, bool),
    /// A choice or an ordered parameter.
    Category(usize),
}

type Placed = (Read, Range<usize>);

struct Parser<'a> {
    dialect: Dialect,
    tokens: Vec<(Token, Range<usize>)>,
    next: usize,
    depth: usize,
    /// Whether what is read now is the operand of a `not`.
    is_negated: bool,
    of: &'a [OpenParameter],
}

impl<'a> Parser<'a> {
    fn new(dialect: Dialect, text: &str, of: &'a [OpenParameter]) -> Result<Self, Misread> {
        Ok(Self {
            dialect,
            tokens: tokens(dialect, text, of)?,
            next: 0,
            depth: 0,
            is_negated: false,
            of,
        })
    }

    fn peek(&self) -> &Token {
        &self.tokens[self.next].0
    }

    fn here(&self) -> Range<usize> {
        self.tokens[self.next].1.clone()
    }

    fn advance(&mut self) -> (Token, Range<usize>) {
        let token = self.tokens[self.next].clone();
        self.next = (self.next + 1).min(self.tokens.len() - 1);
        token
    }

    fn takes(&mut self, token: &Token) -> bool {
        let is_it = self.peek() == token;
        if is_it {
            self.advance();
        }
        is_it
    }

    fn unexpected<T>(&self, expected: &'static str) -> Result<T, Misread> {
        let found = self.peek().shown();
        Err(Misread {
            at: self.here(),
            error: ExpressionError::Unexpected { expected, found },
        })
    }

    fn end(&self) -> Result<(), Misread> {
        if *self.peek() == Token::End {
            Ok(())
        } else {
            self.unexpected("an operator or the end")
        }
    }

    fn deeper<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, Misread>,
    ) -> Result<T, Misread> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(Misread {
                at: self.here(),
                error: ExpressionError::TooDeep,
            });
        }
        let result = read(self);
        self.depth -= 1;
        result
    }

    fn or(&mut self) -> Result<Placed, Misread> {
        self.joined("or", Self::and, Rule::any)
    }

    fn and(&mut self) -> Result<Placed, Misread> {
        self.joined("and", Self::not, Rule::all)
    }

    fn joined(
        &mut self,
        word: &'static str,
        part: impl Fn(&mut Self) -> Result<Placed, Misread>,
        join: impl Fn(Vec<Rule>) -> Rule,
    ) -> Result<Placed, Misread> {
        let (first, at) = part(self)?;
        if *self.peek() != Token::Keyword(word) {
            return Ok((first, at));
        }
        let mut rules = vec![self.rule(first, at.clone())?];
        let mut end = at.end;
        while self.takes(&Token::Keyword(word)) {
            let (next, next_at) = part(self)?;
            end = next_at.end;
            rules.push(self.rule(next, next_at)?);
        }
        Ok((Read::Rule(join(rules)), at.start..end))
    }

    fn not(&mut self) -> Result<Placed, Misread> {
        let start = self.here().start;
        if self.takes(&Token::Keyword("not")) {
            let before = std::mem::replace(&mut self.is_negated, true);
            let (read, at) = self.deeper(Self::not)?;
            self.is_negated = before;
            let end = at.end;
            let rule = self.rule(read, at)?.negated();
            return Ok((Read::Rule(rule), start..end));
        }
        self.comparison()
    }

    fn comparison(&mut self) -> Result<Placed, Misread> {
        let (left, left_at) = self.sum()?;
        let comparison = match self.peek() {
            Token::Symbol("==") => Relation::Equal,
            Token::Symbol("!=") => Relation::NotEqual,
            Token::Symbol("<") => Relation::Less,
            Token::Symbol("<=") => Relation::AtMost,
            Token::Symbol(">") => Relation::More,
            Token::Symbol(">=") => Relation::AtLeast,
            Token::Keyword("in") => {
                self.advance();
                return self.list(left, left_at, false);
            }
            Token::Keyword("not")
                if self.tokens.get(self.next + 1).map(|(token, _)| token)
                    == Some(&Token::Keyword("in")) =>
            {
                self.advance();
                self.advance();
                return self.list(left, left_at, true);
            }
            _ => return Ok((left, left_at)),
        };
        self.advance();
        let (right, right_at) = self.sum()?;
        let at = left_at.start..right_at.end;
        let rule = self.compared(comparison, (left, left_at), (right, right_at))?;
        Ok((Read::Rule(rule), at))
    }

    fn compared(
        &self,
        comparison: Relation,
        (left, left_at): Placed,
        (right, right_at): Placed,
    ) -> Result<Rule, Misread> {
        let with = |parameter, comparison, text: &str, at: &Range<usize>| {
            let text = self.spelled(parameter, text);
            compare(self.of, parameter, comparison, &text).map_err(|error| Misread {
                at: at.clone(),
                error,
            })
        };
        match (&left, &right) {
            // A quoted number is a number to R.
            (Read::Category(parameter), Read::Word(text, _) | Read::Number(_, text))
            | (Read::Term(Term::Parameter(parameter)), Read::Word(text, true)) => {
                with(*parameter, comparison, text, &right_at)
            }
            (Read::Word(text, _) | Read::Number(_, text), Read::Category(parameter)) => {
                with(*parameter, comparison.flipped(), text, &left_at)
            }
            (Read::Category(left), Read::Category(right))
                if matches!(comparison, Relation::Equal | Relation::NotEqual) =>
            {
                Ok(Rule::Same {
                    left: *left,
                    right: *right,
                    is_negated: comparison == Relation::NotEqual,
                })
            }
            _ => Ok(Rule::Compare(
                comparison,
                self.term(left, left_at)?,
                self.term(right, right_at)?,
            )),
        }
    }

    /// What follows `in`.
    fn list(
        &mut self,
        left: Read,
        left_at: Range<usize>,
        is_negated: bool,
    ) -> Result<Placed, Misread> {
        let closing = if self.dialect == Dialect::R {
            // Some files leave out R's `c`.
            let is_vector = self.takes(&Token::Name("c".into()));
            if self.takes(&Token::Symbol("(")) {
                Some(Token::Symbol(")"))
            } else if is_vector {
                return self.unexpected("`(`");
            } else {
                None
            }
        } else if self.takes(&Token::Symbol("[")) {
            Some(Token::Symbol("]"))
        } else {
            return self.unexpected("a list such as `[a, b]`");
        };
        let mut values = vec![];
        let mut end = self.here().end;
        loop {
            let at = self.here();
            if closing.as_ref() == Some(self.peek()) && values.is_empty() {
                return self.unexpected("a value");
            }
            let is_negative = self.takes(&Token::Symbol("-"));
            let text = match self.advance() {
                (Token::Number(_, text), _) if is_negative => format!("-{text}"),
                (Token::Number(_, text) | Token::Quoted(text) | Token::Name(text), _)
                    if !is_negative =>
                {
                    text
                }
                (Token::Keyword(word @ ("true" | "false")), _) if !is_negative => word.to_owned(),
                (token, at) => {
                    let (expected, found) = ("a value", token.shown());
                    let error = ExpressionError::Unexpected { expected, found };
                    return Err(Misread { at, error });
                }
            };
            end = end.max(self.tokens[self.next.saturating_sub(1)].1.end);
            if self.takes(&Token::Symbol(":")) {
                values.extend(self.range(&text, at.start)?);
            } else {
                values.push((text, at.start..end));
            }
            let Some(closing) = &closing else { break };
            end = self.here().end;
            if self.takes(closing) {
                break;
            }
            if !self.takes(&Token::Symbol(",")) {
                return self.unexpected("`,` or the end of the list");
            }
        }
        let at = left_at.start..end;
        let rule = match left {
            Read::Category(parameter) | Read::Term(Term::Parameter(parameter)) => {
                for (text, _) in &mut values {
                    *text = self.spelled(parameter, text);
                }
                let rule = among(self.of, parameter, &values, is_negated)?;
                // R's `%in%` is false for a missing value, which shows only where it is negated.
                let is_missing = self.dialect == Dialect::R && self.of[parameter].when.is_some();
                if is_missing && self.is_negated {
                    Rule::all(vec![Rule::Active(parameter), rule])
                } else {
                    rule
                }
            }
            other => {
                let term = self.term(other, left_at)?;
                let numbers: Result<Vec<f64>, Misread> = values
                    .into_iter()
                    .map(|(text, at)| {
                        text.parse::<f64>().map_err(|_| Misread {
                            at,
                            error: ExpressionError::NotANumber { text },
                        })
                    })
                    .collect();
                Rule::OneOf {
                    term,
                    numbers: numbers?,
                    is_negated,
                }
            }
        };
        Ok((Read::Rule(rule), at))
    }

    /// The rest of R's `1:3`, which stands for all whole numbers from one to the other.
    fn range(&mut self, first: &str, start: usize) -> Result<Vec<(String, Range<usize>)>, Misread> {
        let (last, at) = self.advance();
        let at = start..at.end;
        let bounds = match &last {
            Token::Number(_, last) => first.parse::<i64>().ok().zip(last.parse::<i64>().ok()),
            _ => None,
        };
        match bounds {
            Some((low, high)) if low <= high && low.abs_diff(high) < MOST_VALUES as u64 => {
                let one = |number: i64| (number.to_string(), at.clone());
                Ok((low..=high).map(one).collect())
            }
            _ => {
                let (expected, found) = ("a range such as `1:3`", last.shown());
                let error = ExpressionError::Unexpected { expected, found };
                Err(Misread { at, error })
            }
        }
    }

    fn sum(&mut self) -> Result<Placed, Misread> {
        let table = [("+", Operator::Add), ("-", Operator::Subtract)];
        self.arithmetic(&table, Self::product)
    }

    fn product(&mut self) -> Result<Placed, Misread> {
        let table = [
            ("*", Operator::Multiply),
            ("/", Operator::Divide),
            ("%", Operator::Remainder),
        ];
        if self.dialect == Dialect::R {
            return self.arithmetic(&table[..2], Self::remainder);
        }
        self.arithmetic(&table, Self::unary)
    }

    /// R's `%%`, which comes before `*` and `/`.
    fn remainder(&mut self) -> Result<Placed, Misread> {
        self.arithmetic(&[("%", Operator::Remainder)], Self::unary)
    }

    /// A value of a parameter as its domain writes it: R compares its `TRUE` with the text `TRUE`.
    fn spelled(&self, parameter: usize, text: &str) -> String {
        let categories = self.of[parameter].domain.categories();
        let is_truth = self.dialect == Dialect::R && matches!(text, "true" | "false");
        let upper = text.to_uppercase();
        let has = |text: &str| categories.is_some_and(|known| known.place_of_text(text).is_some());
        if is_truth && !has(text) && has(&upper) {
            upper
        } else {
            text.to_owned()
        }
    }

    fn arithmetic(
        &mut self,
        table: &[(&'static str, Operator)],
        part: impl Fn(&mut Self) -> Result<Placed, Misread>,
    ) -> Result<Placed, Misread> {
        let (mut left, mut at) = part(self)?;
        // A chain leans to the left, so it nests as deep as it is long.
        let mut links = self.depth;
        while let Some((_, operator)) = table
            .iter()
            .find(|(symbol, _)| *self.peek() == Token::Symbol(symbol))
        {
            links += 1;
            if links > DEEPEST {
                return Err(Misread {
                    at: self.here(),
                    error: ExpressionError::TooDeep,
                });
            }
            self.advance();
            let (right, right_at) = part(self)?;
            let whole = at.start..right_at.end;
            let (a, b) = (self.term(left, at)?, self.term(right, right_at)?);
            left = Read::Term(Term::Arithmetic(*operator, Box::new(a), Box::new(b)));
            at = whole;
        }
        Ok((left, at))
    }

    fn unary(&mut self) -> Result<Placed, Misread> {
        let start = self.here().start;
        if self.takes(&Token::Symbol("+")) {
            return self.deeper(Self::unary);
        }
        if !self.takes(&Token::Symbol("-")) {
            return self.power();
        }
        let is_power = self.tokens.get(self.next + 1).map(|(token, _)| token);
        if let Token::Number(number, text) = self.peek().clone()
            && is_power != Some(&Token::Symbol("^"))
        {
            let end = self.advance().1.end;
            return Ok((Read::Number(-number, format!("-{text}")), start..end));
        }
        let (read, at) = self.deeper(Self::unary)?;
        let end = at.end;
        let term = self.term(read, at)?;
        Ok((Read::Term(Term::Negative(Box::new(term))), start..end))
    }

    /// `a ^ b`, read from the right and before a sign.
    fn power(&mut self) -> Result<Placed, Misread> {
        let (base, at) = self.primary()?;
        if !self.takes(&Token::Symbol("^")) {
            return Ok((base, at));
        }
        let (exponent, exponent_at) = self.deeper(Self::unary)?;
        let whole = at.start..exponent_at.end;
        let (a, b) = (self.term(base, at)?, self.term(exponent, exponent_at)?);
        let term = Term::Arithmetic(Operator::Power, Box::new(a), Box::new(b));
        Ok((Read::Term(term), whole))
    }

    fn primary(&mut self) -> Result<Placed, Misread> {
        let (token, at) = self.advance();
        let read = match token {
            Token::Number(number, text) => Read::Number(number, text),
            Token::Quoted(text) => Read::Word(text, true),
            Token::Keyword(word @ ("true" | "false")) => Read::Word(word.to_owned(), false),
            Token::Name(name) => return self.named(name, at),
            Token::Symbol("(") => {
                let (inner, _) = self.deeper(Self::or)?;
                let end = self.here().end;
                if !self.takes(&Token::Symbol(")")) {
                    return self.unexpected("`)`");
                }
                // In brackets a word is no longer compared as it is written.
                let inner = match inner {
                    Read::Number(number, _) => Read::Term(Term::Number(number)),
                    other => other,
                };
                return Ok((inner, at.start..end));
            }
            other => {
                let (expected, found) = ("a parameter or a value", other.shown());
                let error = ExpressionError::Unexpected { expected, found };
                return Err(Misread { at, error });
            }
        };
        Ok((read, at))
    }

    fn named(&mut self, name: String, at: Range<usize>) -> Result<Placed, Misread> {
        if *self.peek() == Token::Symbol("(") {
            let wanted = match (self.dialect, name.as_str()) {
                (Dialect::R, "is.na") => return self.active(at, false),
                (Dialect::R, "ceiling") => "ceil",
                (Dialect::Captime, "active") => return self.active(at, true),
                (_, name) => name,
            };
            if let Some(function) = Function::named(wanted) {
                return self.call(function, at);
            }
            if self.dialect == Dialect::Pcs && name == "pow" {
                return self.call_of_two(Operator::Power, at);
            }
        }
        if let Some(place) = self.of.iter().position(|known| *known.name == *name) {
            let read = if self.of[place].domain.categories().is_some() {
                Read::Category(place)
            } else {
                Read::Term(Term::Parameter(place))
            };
            return Ok((read, at));
        }
        Ok((Read::Word(name, false), at))
    }

    fn call(&mut self, function: Function, at: Range<usize>) -> Result<Placed, Misread> {
        self.advance();
        let mut arguments = vec![];
        loop {
            let (read, read_at) = self.deeper(Self::sum)?;
            arguments.push(self.term(read, read_at)?);
            let end = self.here().end;
            if self.takes(&Token::Symbol(")")) {
                if arguments.len() > 1 && !function.takes_several() {
                    let (expected, found) = ("one argument", format!("{}", arguments.len()));
                    let error = ExpressionError::Unexpected { expected, found };
                    return Err(Misread {
                        at: at.start..end,
                        error,
                    });
                }
                return Ok((Read::Term(Term::Call(function, arguments)), at.start..end));
            }
            if !self.takes(&Token::Symbol(",")) {
                return self.unexpected("`,` or `)`");
            }
        }
    }

    /// An operator that is written as a function: `pow(a, b)`.
    fn call_of_two(&mut self, operator: Operator, at: Range<usize>) -> Result<Placed, Misread> {
        self.advance();
        let (left, left_at) = self.deeper(Self::sum)?;
        if !self.takes(&Token::Symbol(",")) {
            return self.unexpected("`,` and a second number");
        }
        let (right, right_at) = self.deeper(Self::sum)?;
        let end = self.here().end;
        if !self.takes(&Token::Symbol(")")) {
            return self.unexpected("`)`");
        }
        let (left, right) = (self.term(left, left_at)?, self.term(right, right_at)?);
        let term = Term::Arithmetic(operator, Box::new(left), Box::new(right));
        Ok((Read::Term(term), at.start..end))
    }

    /// `active(x)`, or R's `is.na(x)`, which is the opposite.
    fn active(&mut self, at: Range<usize>, is_active: bool) -> Result<Placed, Misread> {
        self.advance();
        let (token, name_at) = self.advance();
        let Token::Name(name) = token else {
            let (expected, found) = ("the name of a parameter", token.shown());
            let error = ExpressionError::Unexpected { expected, found };
            return Err(Misread { at: name_at, error });
        };
        let Some(place) = self.of.iter().position(|known| *known.name == *name) else {
            let error = self.unknown(name);
            return Err(Misread { at: name_at, error });
        };
        let end = self.here().end;
        if !self.takes(&Token::Symbol(")")) {
            return self.unexpected("`)`");
        }
        let rule = Rule::Active(place);
        let rule = if is_active { rule } else { rule.negated() };
        Ok((Read::Rule(rule), at.start..end))
    }

    fn rule(&self, read: Read, at: Range<usize>) -> Result<Rule, Misread> {
        let error = match read {
            Read::Rule(rule) => return Ok(rule),
            Read::Word(word, false) if word == "true" => return Ok(Rule::All(vec![])),
            Read::Word(word, false) if word == "false" => return Ok(Rule::Any(vec![])),
            Read::Word(word, false) => self.unknown(word),
            Read::Category(parameter) if self.of[parameter].domain.is_flag() => {
                return compare(self.of, parameter, Relation::Equal, "true")
                    .map_err(|error| Misread { at, error });
            }
            Read::Term(_) | Read::Number(..) | Read::Word(_, true) | Read::Category(_) => {
                ExpressionError::NotACondition
            }
        };
        Err(Misread { at, error })
    }

    fn term(&self, read: Read, at: Range<usize>) -> Result<Term, Misread> {
        let error = match read {
            Read::Term(term) => return Ok(term),
            Read::Number(number, _) => return Ok(Term::Number(number)),
            Read::Category(parameter) => {
                let known = &self.of[parameter];
                let categories = known.domain.categories();
                if categories.is_some_and(|categories| categories.numbers().is_some()) {
                    return Ok(Term::Parameter(parameter));
                }
                ExpressionError::NotNumeric {
                    name: known.name.to_string(),
                }
            }
            Read::Word(text, true) => ExpressionError::NotANumber { text },
            Read::Word(word, false) => self.unknown(word),
            Read::Rule(_) => ExpressionError::NotAValue,
        };
        Err(Misread { at, error })
    }

    fn unknown(&self, name: String) -> ExpressionError {
        let names = self.of.iter().map(|known| &*known.name);
        let nearest = nearest(&name, names).map(str::to_owned);
        ExpressionError::UnknownName { name, nearest }
    }
}
