//! What can be wrong with an expression, where, and what to write instead.

use std::ops::Range;

/// Brackets, signs and `not` nested deeper than this are refused.
pub(super) const DEEPEST: usize = 64;

/// What is wrong with an expression, and from which to which byte of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Misread {
    /// Where in the expression.
    pub at: Range<usize>,
    /// What.
    pub error: ExpressionError,
}

/// What can be wrong with an expression.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ExpressionError {
    /// Something else was expected here.
    #[error("expected {expected}, found {found}")]
    Unexpected {
        /// What may stand here.
        expected: &'static str,
        /// What stands here.
        found: String,
    },
    /// Another language's operator.
    #[error("`{found}` is not an operator here")]
    Foreign {
        /// As written.
        found: String,
        /// What to write.
        instead: &'static str,
    },
    /// A quote or backquote without its end.
    #[error("unclosed quote")]
    Unclosed,
    /// A character that means nothing.
    #[error("unexpected `{found}`")]
    Stray {
        /// The character.
        found: char,
    },
    /// A number that does not read as one.
    #[error("`{text}` is not a number")]
    NotANumber {
        /// As written.
        text: String,
    },
    /// A name that no parameter has.
    #[error("no parameter is called `{name}`")]
    UnknownName {
        /// As written.
        name: String,
        /// One that looks like it.
        nearest: Option<String>,
    },
    /// A value that the parameter cannot take.
    #[error("`{parameter}` is never `{value}`")]
    UnknownValue {
        /// The parameter.
        parameter: String,
        /// As written.
        value: String,
        /// One that looks like it.
        nearest: Option<String>,
    },
    /// A choice of words in arithmetic.
    #[error("`{name}` is not a number")]
    NotNumeric {
        /// The parameter.
        name: String,
    },
    /// `<` between words that have no order.
    #[error("the values of `{name}` have no order")]
    NoOrder {
        /// The parameter.
        name: String,
    },
    /// A value where a condition should be.
    #[error("this is a value, not a condition")]
    NotACondition,
    /// A condition where a value should be.
    #[error("this is a condition, not a value")]
    NotAValue,
    /// Too many brackets.
    #[error("nested more than {DEEPEST} levels deep")]
    TooDeep,
}

impl ExpressionError {
    /// What to write instead.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Foreign { instead, .. } => Some(format!("write `{instead}`")),
            Self::UnknownName { nearest, .. } => nearest
                .as_ref()
                .map(|name| format!("did you mean `{name}`?"))
                .or_else(|| {
                    Some("words are compared with a parameter: `heuristic == vsids`".into())
                }),
            Self::UnknownValue { nearest, .. } => nearest
                .as_ref()
                .map(|name| format!("did you mean `{name}`?")),
            Self::NoOrder { .. } => {
                Some("declare it `ordered`, or list the values: `in [a, b]`".into())
            }
            Self::NotACondition => Some("compare it: `restarts < 10`".into()),
            Self::Unexpected { .. }
            | Self::Unclosed
            | Self::Stray { .. }
            | Self::NotANumber { .. }
            | Self::NotNumeric { .. }
            | Self::NotAValue
            | Self::TooDeep => None,
        }
    }
}
