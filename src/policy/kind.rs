//! The list of policies, and how each is made from its name and options.

use serde_json::{Map, Value};

use super::{OptionValue, Options, Policy, PolicyError, Problem};
use super::{fixed, halving, joint_ts, race, rcucb, similar_ts, ts, ucb, uniform, zrcucb};

/// Makes [`PolicyKind`]: a policy joins the program by its line in the list below, in its file it has `NAME`,
/// `Parameters` (with `read`, and serde for the record), and `new`.
macro_rules! policies {
    ($($kind:ident => $file:ident,)+) => {
        /// A policy with its parameters, not yet at work on a problem.
        #[derive(Debug, Clone, PartialEq)]
        #[expect(missing_docs, reason = "each is documented in its file")]
        pub enum PolicyKind {
            $($kind($file::Parameters),)+
        }

        impl PolicyKind {
            /// The names there are, as scenarios and the command line use them.
            pub const NAMES: &'static [&'static str] = &[$($file::NAME,)+];

            /// The policy of this name with these options; all that is wrong at once.
            pub fn from_options(name: &str, given: Vec<(String, OptionValue)>) -> Result<Self, Vec<PolicyError>> {
                match name {
                    $($file::NAME => {
                        let mut options = Options::new($file::NAME, given);
                        let parameters = $file::Parameters::read(&mut options);
                        options.finish().map(|()| Self::$kind(parameters))
                    })+
                    _ => Err(vec![PolicyError::UnknownPolicy { name: name.into(), known: Self::NAMES.to_vec() }]),
                }
            }

            /// Its name.
            pub fn name(&self) -> &'static str {
                match self {
                    $(Self::$kind(_) => $file::NAME,)+
                }
            }

            /// Every option in force, defaults included.
            pub fn parameters(&self) -> Map<String, Value> {
                let value = match self {
                    $(Self::$kind(parameters) => serde_json::to_value(parameters),)+
                };
                match value {
                    Ok(Value::Object(parameters)) => parameters,
                    _ => Map::new(),
                }
            }

            /// Puts it to work on a problem.
            pub fn build(&self, problem: &Problem) -> Box<dyn Policy> {
                match self {
                    $(Self::$kind(parameters) => Box::new($file::new(parameters, problem)),)+
                }
            }
        }
    };
}

policies! {
    Rcucb => rcucb,
    ZRcucb => zrcucb,
    Ucb => ucb,
    Ts => ts,
    JointTs => joint_ts,
    SimilarTs => similar_ts,
    Halving => halving,
    Race => race,
    Fixed => fixed,
    Uniform => uniform,
}

impl PolicyKind {
    /// What is allowed but should be known.
    pub fn warning(&self) -> Option<String> {
        match self {
            Self::Rcucb(parameters) => parameters.warning(),
            Self::ZRcucb(parameters) => parameters.warning(),
            _ => None,
        }
    }

    /// Whether it finds limits by itself, so that a scenario gives it the largest only.
    pub fn finds_limits(&self) -> bool {
        matches!(self, Self::ZRcucb(_))
    }

    /// Reads `rcucb` or `rcucb:alpha=0.25,width=gain-only`.
    pub fn parse(text: &str) -> Result<Self, Vec<PolicyError>> {
        let (name, rest) = text.split_once(':').unwrap_or((text, ""));
        let mut given = vec![];
        for assignment in rest.split(',').filter(|part| !part.trim().is_empty()) {
            match assignment.split_once('=') {
                Some((option, value)) if !option.trim().is_empty() => {
                    given.push((option.trim().to_owned(), OptionValue::read(value.trim())));
                }
                _ => {
                    return Err(vec![PolicyError::NotAnAssignment {
                        text: assignment.into(),
                    }]);
                }
            }
        }
        Self::from_options(name.trim(), given)
    }
}

impl OptionValue {
    /// A bare word of the command line: a number if it reads as one, a flag if it is one, else text.
    fn read(text: &str) -> Self {
        match (text, text.parse::<f64>()) {
            ("true", _) => Self::Flag(true),
            ("false", _) => Self::Flag(false),
            (_, Ok(number)) => Self::Number(number),
            _ => Self::Text(text.to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_names_come_with_the_nearest_one() {
        let error = &PolicyKind::parse("unifrom").unwrap_err()[0];
        assert_eq!(error.to_string(), "there is no policy `unifrom`");
        assert_eq!(error.hint().unwrap(), "did you mean `uniform`?");
        assert!(PolicyKind::parse("uniform:alpha=1").is_err());
        assert!(PolicyKind::parse("uniform:alpha").is_err());
    }
}
