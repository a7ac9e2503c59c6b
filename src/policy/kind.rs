//! The list of policies, and how each is made from its name and options.

use serde::Serialize;

use super::{OptionValue, Options, PolicyError, PolicyErrors, PolicyKind, Survival};

/// What a policy says about itself before it is built: implemented by the `Parameters` of its file.
///
/// Only [`read`](Self::read) must be written. The rest has the answers of an ordinary policy, which plays the limits of
/// the scenario and leaves the instance of a pull to chance.
pub trait PolicyParameters: Serialize + Sized {
    /// Takes its options; what is not given gets its default.
    fn read(options: &mut Options) -> Self;

    /// Something that is allowed but that users should know.
    fn warning(&self) -> Option<String> {
        None
    }

    /// Whether it finds limits by itself, so that a scenario gives it only the largest.
    fn finds_limits(&self) -> bool {
        false
    }

    /// Whether it chooses the instance of a pull, where there are any.
    fn chooses_instances(&self) -> bool {
        false
    }

    /// Whether it takes more arms while it works, as an open space needs.
    fn takes_more_arms(&self) -> bool {
        false
    }

    /// The survival estimate it uses, and which reports should therefore show.
    fn survival(&self) -> Survival {
        Survival::Restricted
    }
}

/// Declares the policies and makes [`PolicyKind`] from the list in `mod.rs`. The file of a policy has `NAME`, `Parameters` (a
/// [`PolicyParameters`]) and `new`.
macro_rules! policies {
    ($($kind:ident => $file:ident,)+) => {
        $(mod $file;)+

        /// A policy with its parameters, not yet built for a problem.
        #[derive(Debug, Clone, PartialEq)]
        pub struct PolicyKind(Listed);

        /// A policy of the list.
        #[derive(Debug, Clone, PartialEq)]
        enum Listed {
            $($kind($file::Parameters),)+
        }

        impl PolicyKind {
            /// All names, as scenarios and the command line use them.
            pub const NAMES: &'static [&'static str] = &[$($file::NAME,)+];

            /// The policy of this name with these options. The error lists everything that is wrong.
            pub fn from_options(name: &str, given: Vec<(String, OptionValue)>) -> Result<Self, PolicyErrors> {
                match name {
                    $($file::NAME => {
                        let mut options = Options::new($file::NAME, given);
                        let parameters = <$file::Parameters as PolicyParameters>::read(&mut options);
                        options.finish().map(|()| Self(Listed::$kind(parameters)))
                    })+
                    _ => Err(PolicyError::UnknownPolicy { name: name.into(), known: Self::NAMES.to_vec() }.into()),
                }
            }

            /// Its name.
            pub fn name(&self) -> &'static str {
                match &self.0 {
                    $(Listed::$kind(_) => $file::NAME,)+
                }
            }

            /// Every option in force, defaults included.
            pub fn parameters(&self) -> serde_json::Map<String, serde_json::Value> {
                let value = match &self.0 {
                    $(Listed::$kind(parameters) => serde_json::to_value(parameters),)+
                };
                match value {
                    Ok(serde_json::Value::Object(parameters)) => parameters,
                    _ => serde_json::Map::new(),
                }
            }

            /// Builds the policy for a problem.
            pub fn build(&self, problem: &Problem) -> Box<dyn Policy> {
                match &self.0 {
                    $(Listed::$kind(parameters) => Box::new($file::new(parameters, problem)),)+
                }
            }

            /// Something that is allowed but that users should know.
            pub fn warning(&self) -> Option<String> {
                match &self.0 {
                    $(Listed::$kind(parameters) => parameters.warning(),)+
                }
            }

            /// Whether it finds limits by itself, so that a scenario gives it only the largest.
            pub fn finds_limits(&self) -> bool {
                match &self.0 {
                    $(Listed::$kind(parameters) => parameters.finds_limits(),)+
                }
            }

            /// Whether it chooses the instance of a pull, where there are any.
            pub fn chooses_instances(&self) -> bool {
                match &self.0 {
                    $(Listed::$kind(parameters) => parameters.chooses_instances(),)+
                }
            }

            /// Whether it takes more arms while it works, as an open space needs.
            pub fn takes_more_arms(&self) -> bool {
                match &self.0 {
                    $(Listed::$kind(parameters) => parameters.takes_more_arms(),)+
                }
            }

            /// The survival estimate it uses, and which reports should therefore show.
            pub fn survival(&self) -> Survival {
                match &self.0 {
                    $(Listed::$kind(parameters) => parameters.survival(),)+
                }
            }
        }
    };
}

impl PolicyKind {
    /// The name of the policy that is used where none is named.
    pub const DEFAULT: &'static str = "levels";

    /// Its options in words, as `alpha 0.25, width gain-only`; empty if it has none.
    pub fn describe(&self) -> String {
        let options = self.parameters();
        let options = options.iter().map(|(name, value)| match value.as_str() {
            Some(text) => format!("{name} {text}"),
            None if value.is_null() => format!("{name} not given"),
            None => format!("{name} {value}"),
        });
        options.collect::<Vec<_>>().join(", ")
    }

    /// Reads `rcucb` or `rcucb:alpha=0.25,width=gain-only`.
    pub fn parse(text: &str) -> Result<Self, PolicyErrors> {
        let (name, rest) = text.split_once(':').unwrap_or((text, ""));
        let mut given = vec![];
        for assignment in rest.split(',').filter(|part| !part.trim().is_empty()) {
            match assignment.split_once('=') {
                Some((option, value)) if !option.trim().is_empty() => {
                    given.push((option.trim().to_owned(), OptionValue::read(value.trim())));
                }
                _ => {
                    let text = assignment.into();
                    return Err(PolicyError::NotAnAssignment { text }.into());
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
        let error = PolicyKind::parse("unifrom").unwrap_err();
        assert_eq!(error.to_string(), "there is no policy `unifrom`");
        assert_eq!(error.hint().unwrap(), "did you mean `uniform`?");
        assert!(PolicyKind::parse("uniform:alpha=1").is_err());
        assert!(PolicyKind::parse("uniform:alpha").is_err());
    }

    #[test]
    fn everything_wrong_with_a_policy_is_one_error() {
        fn build() -> Result<PolicyKind, Box<dyn std::error::Error>> {
            Ok(PolicyKind::parse("rcucb:alpha=-1,widht=printed")?)
        }
        assert_eq!(
            build().unwrap_err().to_string(),
            "policy `rcucb`: `alpha` must be a number above 0, not `-1`; policy `rcucb` has no option `widht`"
        );
    }

    #[test]
    fn policies_describe_themselves() {
        let kind = |text| PolicyKind::parse(text).unwrap();
        assert_eq!(kind("halving").describe(), "common false, recommend safe");
        assert!(!kind("halving").chooses_instances());
        assert!(kind("halving:common=true").chooses_instances());
        assert!(kind("race").chooses_instances());
        assert!(kind("z-rcucb").finds_limits() && !kind("rcucb").finds_limits());
        assert_eq!(
            kind("rcucb:survival=kaplan-meier").survival(),
            Survival::KaplanMeier
        );
        assert_eq!(kind("uniform").survival(), Survival::Restricted);
        assert!(PolicyKind::parse(PolicyKind::DEFAULT).is_ok());
    }
}
