//! Arguments with placeholders: read once, filled in for every pull.

use std::fmt::Write as _;
use std::ops::Range;
use std::path::Path;

use super::Fault;
use crate::space::Configuration;

/// What placeholders stand for in one pull.
#[derive(Debug, Clone, Copy)]
pub struct Filling<'a> {
    /// The parameters.
    pub configuration: &'a Configuration,
    /// `{instance}`.
    pub instance: Option<&'a str>,
    /// `{seed}`: of this round.
    pub seed: u64,
    /// `{limit}`: what the policy granted, in seconds (or work).
    pub limit: f64,
    /// `{cpu_limit}`, in seconds: the limit or the guard on CPU time.
    pub cpu_limit: Option<f64>,
    /// `{round}`.
    pub round: u64,
    /// `{scratch}`: a fresh folder.
    pub scratch: &'a Path,
}

/// The placeholders that are no parameters.
pub const RESERVED: &[&str] = &[
    "instance",
    "seed",
    "limit",
    "cpu_limit",
    "round",
    "scratch",
    "params",
];

/// One stretch of a template.
#[derive(Debug, Clone, PartialEq)]
pub enum Piece {
    /// As it stands.
    Text(String),
    /// A parameter, or `{name}`: the arm's own name.
    Parameter(String),
    /// `{instance}`.
    Instance,
    /// `{seed}`.
    Seed,
    /// `{limit}`.
    Limit,
    /// `{cpu_limit}`.
    CpuLimit,
    /// `{round}`.
    Round,
    /// `{scratch}`.
    Scratch,
    /// `{params}`: one or two arguments per parameter.
    Params,
}

/// A text with placeholders.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Template {
    pieces: Vec<Piece>,
}

/// What is wrong with a template, and from which to which byte of it.
pub type TemplateFault = (Fault, Range<usize>);

impl Template {
    /// Reads `{placeholders}`; `{{` and `}}` are braces. All that is wrong at once.
    pub fn parse(text: &str) -> Result<Self, Vec<TemplateFault>> {
        Self::parse_with_places(text).map(|(template, _)| template)
    }

    /// The same, with from which to which byte each stretch goes.
    pub(super) fn parse_with_places(
        text: &str,
    ) -> Result<(Self, Vec<Range<usize>>), Vec<TemplateFault>> {
        let mut pieces = vec![];
        let mut places = vec![];
        let mut faults = vec![];
        let mut plain = String::new();
        let mut rest = text;
        let flush = |plain: &mut String,
                     upto: usize,
                     pieces: &mut Vec<Piece>,
                     places: &mut Vec<Range<usize>>| {
            if !plain.is_empty() {
                let from = places.last().map_or(0, |place: &Range<usize>| place.end);
                places.push(from..upto);
                pieces.push(Piece::Text(std::mem::take(plain)));
            }
        };
        while let Some(brace) = rest.find(['{', '}']) {
            let at = text.len() - rest.len() + brace;
            plain.push_str(&rest[..brace]);
            let tail = &rest[brace..];
            if tail.starts_with("{{") || tail.starts_with("}}") {
                plain.push_str(&tail[..1]);
                rest = &tail[2..];
            } else if let Some(after) = tail.strip_prefix('}') {
                faults.push((Fault::Unopened, at..at + 1));
                rest = after;
            } else if let Some(end) = tail[1..]
                .find(['{', '}'])
                .filter(|end| tail[1 + end..].starts_with('}'))
            {
                flush(&mut plain, at, &mut pieces, &mut places);
                pieces.push(Piece::named(&tail[1..=end]));
                places.push(at..at + end + 2);
                rest = &tail[end + 2..];
            } else {
                faults.push((Fault::Unclosed, at..at + 1));
                rest = &tail[1..];
            }
        }
        plain.push_str(rest);
        flush(&mut plain, text.len(), &mut pieces, &mut places);
        if let (Some(place), true) = (
            pieces.iter().position(|piece| *piece == Piece::Params),
            pieces.len() > 1,
        ) {
            faults.push((Fault::ParamsNotAlone, places[place].clone()));
        }
        if faults.is_empty() {
            Ok((Self { pieces }, places))
        } else {
            Err(faults)
        }
    }

    /// Its stretches.
    pub fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    /// Whether it is nothing but `{params}`.
    fn is_params(&self) -> bool {
        self.pieces == [Piece::Params]
    }

    /// Fills it in. What an arm does not have is left empty; the check has made sure that nobody needs it.
    pub fn fill(&self, with: &Filling<'_>) -> String {
        let mut out = String::new();
        for piece in &self.pieces {
            // Writing to a string cannot fail.
            let _ = match piece {
                Piece::Text(text) => write!(out, "{text}"),
                Piece::Parameter(name) => match (with.configuration.get(name), name.as_str()) {
                    (Some(value), _) => write!(out, "{value}"),
                    (None, "name") => {
                        write!(out, "{}", with.configuration.name().unwrap_or_default())
                    }
                    (None, _) => Ok(()),
                },
                Piece::Instance => write!(out, "{}", with.instance.unwrap_or_default()),
                Piece::Seed => write!(out, "{}", with.seed),
                Piece::Limit => write!(out, "{}", with.limit),
                Piece::CpuLimit => match with.cpu_limit {
                    Some(limit) => write!(out, "{limit}"),
                    None => Ok(()),
                },
                Piece::Round => write!(out, "{}", with.round),
                Piece::Scratch => write!(out, "{}", with.scratch.display()),
                Piece::Params => Ok(()),
            };
        }
        out
    }
}

impl Piece {
    fn named(name: &str) -> Self {
        match name {
            "instance" => Self::Instance,
            "seed" => Self::Seed,
            "limit" => Self::Limit,
            "cpu_limit" => Self::CpuLimit,
            "round" => Self::Round,
            "scratch" => Self::Scratch,
            "params" => Self::Params,
            name => Self::Parameter(name.to_owned()),
        }
    }
}

/// The arguments of a command, and the form that `{params}` gives each parameter.
#[derive(Debug, Clone, PartialEq)]
pub struct Arguments {
    /// The program first.
    pub templates: Vec<Template>,
    /// One or two arguments, with `{name}` and `{value}`.
    pub form: ParamsForm,
    /// Parameters with a placeholder of their own, which `{params}` therefore leaves out.
    pub placed: Vec<String>,
}

/// `--{name}={value}`, or `["-{name}", "{value}"]`.
#[derive(Debug, Clone, PartialEq)]
pub struct ParamsForm {
    /// One or two texts with `{name}` and `{value}`.
    pub arguments: Vec<String>,
}

impl Default for ParamsForm {
    fn default() -> Self {
        Self {
            arguments: vec!["--{name}={value}".into()],
        }
    }
}

impl ParamsForm {
    fn fill<'a>(&'a self, name: &'a str, value: &'a str) -> impl Iterator<Item = String> + 'a {
        self.arguments.iter().map(move |form| {
            // In one pass, so that a value which happens to hold `{name}` stays as it is.
            let mut out = String::new();
            let mut rest = form.as_str();
            while let Some(at) = rest.find('{') {
                out.push_str(&rest[..at]);
                let tail = &rest[at..];
                if let Some(after) = tail.strip_prefix("{name}") {
                    out.push_str(name);
                    rest = after;
                } else if let Some(after) = tail.strip_prefix("{value}") {
                    out.push_str(value);
                    rest = after;
                } else {
                    out.push('{');
                    rest = &tail[1..];
                }
            }
            out.push_str(rest);
            out
        })
    }
}

impl Arguments {
    /// The arguments of one pull.
    pub fn fill(&self, with: &Filling<'_>) -> Vec<String> {
        let mut out = vec![];
        for template in &self.templates {
            if template.is_params() {
                for (name, value) in with.configuration.iter() {
                    if !self.placed.iter().any(|placed| placed == name) {
                        out.extend(self.form.fill(name, &value.to_string()));
                    }
                }
            } else {
                out.push(template.fill(with));
            }
        }
        out
    }
}

/// Quotes a word so that a shell reads it back as it is.
pub fn shell_word(word: &str) -> String {
    let is_plain = !word.is_empty()
        && word
            .chars()
            .all(|letter| letter.is_ascii_alphanumeric() || "-_./=:,+@%".contains(letter));
    if is_plain {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::round::ArmId;
    use crate::space::{Row, Space, Value};

    fn configuration() -> Configuration {
        let row = Row {
            name: Some("fast".into()),
            values: vec![(0, Value::Number(0.5)), (1, Value::Text("{seed}".into()))],
        };
        Space::table(vec!["decay".into(), "mode".into()], &[row])
            .unwrap()
            .configuration(ArmId::from_index(0))
    }

    fn filling(configuration: &Configuration) -> Filling<'_> {
        Filling {
            configuration,
            instance: Some("a b.cnf"),
            seed: 7,
            limit: 2.5,
            cpu_limit: Some(2.0),
            round: 3,
            scratch: Path::new("/tmp/scratch"),
        }
    }

    fn filled(text: &str) -> String {
        Template::parse(text)
            .unwrap()
            .fill(&filling(&configuration()))
    }

    #[test]
    fn placeholders_are_filled_in_once() {
        assert_eq!(filled("-d={decay} {{x}} {limit}"), "-d=0.5 {x} 2.5");
        assert_eq!(
            filled("{mode}|{instance}|{seed}|{cpu_limit}|{round}|{scratch}|{name}"),
            "{seed}|a b.cnf|7|2.0|3|/tmp/scratch|fast".replace("2.0", "2")
        );
        assert_eq!(filled(""), "");
        assert_eq!(filled("äöü{seed}ß"), "äöü7ß");
    }

    #[test]
    fn braces_that_do_not_fit_are_found() {
        let fault = |text: &str| Template::parse(text).unwrap_err();
        assert_eq!(fault("a{b"), [(Fault::Unclosed, 1..2)]);
        assert_eq!(fault("a}b"), [(Fault::Unopened, 1..2)]);
        assert_eq!(fault("{a{b}"), [(Fault::Unclosed, 0..1)]);
        assert_eq!(fault("x{params}"), [(Fault::ParamsNotAlone, 1..9)]);
    }

    #[test]
    fn params_become_one_or_two_arguments_each() {
        let arguments = |form: &[&str], placed: &[&str]| Arguments {
            templates: vec![
                Template::parse("run").unwrap(),
                Template::parse("{params}").unwrap(),
            ],
            form: ParamsForm {
                arguments: form.iter().map(ToString::to_string).collect(),
            },
            placed: placed.iter().map(ToString::to_string).collect(),
        };
        let configuration = configuration();
        let with = filling(&configuration);
        assert_eq!(
            arguments(&["--{name}={value}"], &[]).fill(&with),
            ["run", "--decay=0.5", "--mode={seed}"]
        );
        assert_eq!(
            arguments(&["-{name}", "{value}"], &["mode"]).fill(&with),
            ["run", "-decay", "0.5"]
        );
    }

    #[test]
    fn words_are_quoted_for_a_shell_where_needed() {
        assert_eq!(shell_word("-x=1.5"), "-x=1.5");
        assert_eq!(shell_word("a b"), "'a b'");
        assert_eq!(shell_word("it's"), r"'it'\''s'");
        assert_eq!(shell_word(""), "''");
        assert_eq!(shell_word("$HOME"), "'$HOME'");
    }
}
