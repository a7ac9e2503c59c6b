//! Options of a policy as the user gives them, on the command line or in a scenario.

use std::fmt;

use crate::nearest::nearest;

/// One value.
#[derive(Debug, Clone, PartialEq)]
pub enum OptionValue {
    /// A number.
    Number(f64),
    /// A word.
    Text(String),
    /// Yes or no.
    Flag(bool),
}

impl fmt::Display for OptionValue {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(to),
            Self::Text(text) => text.fmt(to),
            Self::Flag(flag) => flag.fmt(to),
        }
    }
}

/// Why a policy cannot be had as written. The scenario finds the place by the option's name.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PolicyError {
    /// No policy of this name.
    #[error("there is no policy `{name}`")]
    UnknownPolicy {
        /// What was written.
        name: String,
        /// The names there are.
        known: Vec<&'static str>,
    },
    /// The policy has no such option.
    #[error("policy `{policy}` has no option `{option}`")]
    UnknownOption {
        /// The policy.
        policy: &'static str,
        /// What was written.
        option: String,
        /// The options there are.
        known: Vec<&'static str>,
    },
    /// A value the option cannot have.
    #[error("policy `{policy}`: `{option}` must be {expected}, not `{value}`")]
    BadValue {
        /// The policy.
        policy: &'static str,
        /// The option.
        option: &'static str,
        /// What it must be.
        expected: String,
        /// What was written.
        value: String,
    },
    /// `rcucb:alpha` or `rcucb:=3` on the command line.
    #[error("`{text}` is not `option=value`")]
    NotAnAssignment {
        /// What was written.
        text: String,
    },
}

/// Everything that is wrong with a policy as written: at least one error.
#[derive(Debug, Clone, PartialEq)]
pub struct PolicyErrors(Vec<PolicyError>);

impl PolicyErrors {
    /// How to fix the first error that has a hint.
    pub fn hint(&self) -> Option<String> {
        self.0.iter().find_map(PolicyError::hint)
    }
}

impl fmt::Display for PolicyErrors {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, error) in self.0.iter().enumerate() {
            let separator = if place == 0 { "" } else { "; " };
            write!(to, "{separator}{error}")?;
        }
        Ok(())
    }
}

impl std::error::Error for PolicyErrors {}

impl From<PolicyError> for PolicyErrors {
    fn from(error: PolicyError) -> Self {
        Self(vec![error])
    }
}

impl IntoIterator for PolicyErrors {
    type Item = PolicyError;
    type IntoIter = std::vec::IntoIter<PolicyError>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl PolicyError {
    /// The option this is about, if it is about one.
    pub fn option(&self) -> Option<&str> {
        match self {
            Self::UnknownPolicy { .. } | Self::NotAnAssignment { .. } => None,
            Self::UnknownOption { option, .. } => Some(option),
            Self::BadValue { option, .. } => Some(option),
        }
    }

    /// What the user can write instead.
    pub fn hint(&self) -> Option<String> {
        let choose = |what: &str, written: &str, known: &[&'static str]| match nearest(
            written,
            known.iter().copied(),
        ) {
            Some(name) => format!("did you mean `{name}`?"),
            None if known.is_empty() => format!("it has no {what}s"),
            None => format!("{what}s are {}", known.join(", ")),
        };
        match self {
            Self::UnknownPolicy { name, known } => {
                let mut known = known.clone();
                known.sort_unstable();
                Some(match nearest(name, known.iter().copied()) {
                    Some(name) => format!("did you mean `{name}`?"),
                    None => format!("policies are {}", known.join(", ")),
                })
            }
            Self::UnknownOption { option, known, .. } => Some(choose("option", option, known)),
            Self::BadValue { .. } => None,
            Self::NotAnAssignment { .. } => Some("write `rcucb:alpha=0.25,width=gain-only`".into()),
        }
    }
}

/// Options on their way into a policy's parameters: each is taken once, what remains is unknown.
#[derive(Debug)]
pub struct Options {
    policy: &'static str,
    given: Vec<(String, OptionValue)>,
    known: Vec<&'static str>,
    errors: Vec<PolicyError>,
}

impl Options {
    /// Options given to this policy.
    pub fn new(policy: &'static str, given: Vec<(String, OptionValue)>) -> Self {
        Self {
            policy,
            given,
            known: vec![],
            errors: vec![],
        }
    }

    /// A number that `is_fine`, or the default.
    pub fn number(
        &mut self,
        option: &'static str,
        default: f64,
        expected: &str,
        is_fine: impl Fn(f64) -> bool,
    ) -> f64 {
        self.take(option, expected, |value| match value {
            OptionValue::Number(number) if is_fine(*number) => Some(*number),
            _ => None,
        })
        .unwrap_or(default)
    }

    /// A number above 0, or the default.
    pub fn positive(&mut self, option: &'static str, default: f64) -> f64 {
        self.number(option, default, "a number above 0", |number| {
            number.is_finite() && number > 0.0
        })
    }

    /// A whole number from `least` up, or none.
    pub fn whole(&mut self, option: &'static str, least: u64) -> Option<u64> {
        self.take(
            option,
            &format!("a whole number from {least} up"),
            |value| match value {
                OptionValue::Number(number)
                    if number.fract() == 0.0 && *number >= least as f64 && *number <= 9e15 =>
                {
                    Some(*number as u64)
                }
                _ => None,
            },
        )
    }

    /// Yes or no, or the default.
    pub fn flag(&mut self, option: &'static str, default: bool) -> bool {
        self.take(option, "true or false", |value| match value {
            OptionValue::Flag(flag) => Some(*flag),
            _ => None,
        })
        .unwrap_or(default)
    }

    /// One of these words, or the first.
    pub fn word<T: Copy>(&mut self, option: &'static str, words: &[(&'static str, T)]) -> T {
        let names: Vec<&str> = words.iter().map(|(name, _)| *name).collect();
        let expected = format!("one of {}", names.join(", "));
        self.take(option, &expected, |value| match value {
            OptionValue::Text(text) => words
                .iter()
                .find(|(name, _)| name == text)
                .map(|(_, word)| *word),
            _ => None,
        })
        .unwrap_or(words[0].1)
    }

    fn take<T>(
        &mut self,
        option: &'static str,
        expected: &str,
        read: impl Fn(&OptionValue) -> Option<T>,
    ) -> Option<T> {
        self.known.push(option);
        let place = self
            .given
            .iter()
            .position(|(name, _)| name.replace('_', "-") == option)?;
        let (_, value) = self.given.remove(place);
        let taken = read(&value);
        if taken.is_none() {
            self.errors.push(PolicyError::BadValue {
                policy: self.policy,
                option,
                expected: expected.to_owned(),
                value: value.to_string(),
            });
        }
        taken
    }

    /// All that was wrong, unknown options included.
    pub fn finish(mut self) -> Result<(), PolicyErrors> {
        for (option, _) in self.given {
            self.errors.push(PolicyError::UnknownOption {
                policy: self.policy,
                option,
                known: self.known.clone(),
            });
        }
        if self.errors.is_empty() {
            Ok(())
        } else {
            Err(PolicyErrors(self.errors))
        }
    }
}
