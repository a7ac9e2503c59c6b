//! Arguments with placeholders: read once, filled in for every pull.

use std::fmt::Write as _;
use std::ops::Range;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::Fault;
use crate::space::Configuration;

/// The values of placeholders in one pull.
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

impl Filling<'_> {
    /// The instance as a list of AClib has it: its name, and the rest of its line. 0 if there is nothing else.
    fn instance_words(&self) -> (&str, &str) {
        let words = self.instance.unwrap_or("0").trim();
        let (name, rest) = words.split_once(char::is_whitespace).unwrap_or((words, ""));
        (name, if rest.is_empty() { "0" } else { rest.trim() })
    }
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

/// One piece of a template.
#[derive(Debug, Clone, PartialEq)]
pub enum Piece {
    /// Literal text.
    Text(String),
    /// A parameter, or `{name}`: the arm's own name.
    Parameter(String),
    /// `{instance}`.
    Instance,
    /// `{instance.name}`: its first word, for wrappers.
    InstanceName,
    /// `{instance.specifics}`: its other words, or 0, for wrappers.
    InstanceSpecifics,
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
    /// `[...]`: disappears if the arm lacks a parameter in it.
    Part(Vec<Piece>),
}

/// A placeholder and its position.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Placed {
    pub(super) piece: Piece,
    pub(super) at: Range<usize>,
    /// Whether it is in a part that may disappear.
    pub(super) is_optional: bool,
}

/// A text with placeholders.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Template {
    pieces: Vec<Piece>,
}

/// What is wrong with a template, and the range of bytes.
pub type TemplateFault = (Fault, Range<usize>);

impl Template {
    /// This text, whatever is in it.
    pub(super) fn literal(text: String) -> Self {
        Self {
            pieces: vec![Piece::Text(text)],
        }
    }

    /// Reads `{placeholders}` and `[parts]` that hold a parameter. `{{`, `}}`, `[[` and `]]` stand for one of each, and a
    /// bracket that belongs to no such part stands for itself. All that is wrong at once.
    pub fn parse(text: &str) -> Result<Self, Vec<TemplateFault>> {
        Self::parse_with_places(text).map(|(template, _)| template)
    }

    /// The same, with every placeholder and its position.
    pub(super) fn parse_with_places(text: &str) -> Result<(Self, Vec<Placed>), Vec<TemplateFault>> {
        let mut pieces: Vec<Piece> = vec![];
        let mut placed: Vec<Placed> = vec![];
        let mut faults = vec![];
        // A bracket that may open a part: how many pieces and placeholders come before it.
        let mut open: Option<(usize, usize)> = None;
        let mut rest = text;
        while let Some(special) = rest.find(['{', '}', '[', ']']) {
            let at = text.len() - rest.len() + special;
            plain(&mut pieces, &rest[..special], open);
            let tail = &rest[special..];
            rest = &tail[1..];
            let first = &tail[..1];
            let is_doubled = rest.starts_with(first);
            match first {
                "]" if open.is_some() => {
                    let (start, before) = open.take().unwrap_or_default();
                    let inner = pieces.split_off(start);
                    if inner
                        .iter()
                        .any(|piece| matches!(piece, Piece::Parameter(_)))
                    {
                        pieces.push(Piece::Part(inner));
                        for place in &mut placed[before..] {
                            place.is_optional = true;
                        }
                    } else {
                        plain(&mut pieces, "[", None);
                        join(&mut pieces, inner);
                        plain(&mut pieces, "]", None);
                    }
                }
                "[" => {
                    literal(&mut pieces, open.take());
                    if is_doubled {
                        plain(&mut pieces, "[", None);
                        rest = &rest[1..];
                    } else {
                        open = Some((pieces.len(), placed.len()));
                    }
                }
                _ if is_doubled => {
                    plain(&mut pieces, first, open);
                    rest = &rest[1..];
                }
                "]" => plain(&mut pieces, "]", None),
                "}" => faults.push((Fault::Unopened, at..at + 1)),
                _ => match rest
                    .find(['{', '}'])
                    .filter(|end| rest[*end..].starts_with('}'))
                {
                    Some(end) => {
                        let piece = Piece::named(&rest[..end]);
                        pieces.push(piece.clone());
                        placed.push(Placed {
                            piece,
                            at: at..at + end + 2,
                            is_optional: false,
                        });
                        rest = &rest[end + 1..];
                    }
                    None => faults.push((Fault::Unclosed, at..at + 1)),
                },
            }
        }
        plain(&mut pieces, rest, open);
        literal(&mut pieces, open);
        let params = placed.iter().find(|placed| placed.piece == Piece::Params);
        if let (Some(params), true) = (params, pieces.len() > 1) {
            faults.push((Fault::ParamsNotAlone, params.at.clone()));
        }
        if faults.is_empty() {
            Ok((Self { pieces }, placed))
        } else {
            Err(faults)
        }
    }

    /// Its pieces.
    pub fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    /// Whether it is nothing but `{params}`.
    pub(super) fn is_params(&self) -> bool {
        self.pieces == [Piece::Params]
    }

    /// Whether it consists of parts that may disappear.
    pub(super) fn is_optional(&self) -> bool {
        let is_part = |piece: &Piece| matches!(piece, Piece::Part(_));
        !self.pieces.is_empty() && self.pieces.iter().all(is_part)
    }

    /// Its pieces, with parts replaced by the pieces inside.
    fn flat(&self) -> impl Iterator<Item = &Piece> {
        self.pieces.iter().flat_map(|piece| match piece {
            Piece::Part(inner) => inner.as_slice(),
            piece => std::slice::from_ref(piece),
        })
    }

    /// Whether this placeholder is in it.
    pub fn uses(&self, wanted: &Piece) -> bool {
        self.flat().any(|piece| piece == wanted)
    }

    /// The parameters in it.
    pub(super) fn parameters(&self) -> impl Iterator<Item = &String> {
        self.flat().filter_map(|piece| match piece {
            Piece::Parameter(name) => Some(name),
            _ => None,
        })
    }

    /// Makes brackets literal if every arm has all parameters between them, so that shell text such as `[ {a} = 5 ]` is
    /// kept. Beside a part that some arms lack, they are parts too: `{type}[,{base}][,{factor}]` is one list.
    pub(super) fn keep_brackets(&mut self, is_always_there: impl Fn(&str) -> bool) {
        let may_lack = |piece: &Piece| match piece {
            Piece::Parameter(name) => !is_always_there(name),
            _ => false,
        };
        let is_part =
            |piece: &Piece| matches!(piece, Piece::Part(inner) if inner.iter().any(may_lack));
        let has_parts = self.pieces.iter().any(is_part);
        let is_named = |piece: &Piece| matches!(piece, Piece::Parameter(_));
        for piece in std::mem::take(&mut self.pieces) {
            match piece {
                Piece::Part(inner) if !(has_parts && inner.iter().any(is_named)) => {
                    plain(&mut self.pieces, "[", None);
                    join(&mut self.pieces, inner);
                    plain(&mut self.pieces, "]", None);
                }
                piece => join(&mut self.pieces, vec![piece]),
            }
        }
    }

    /// Fills it in. Outside of parts, a parameter that an arm lacks is left empty: the check refuses that.
    pub fn fill(&self, with: &Filling<'_>) -> String {
        let mut out = String::new();
        fill(&self.pieces, with, &mut out);
        out
    }
}

/// Adds text to the last piece, if that is text and no part begins after it.
fn plain(pieces: &mut Vec<Piece>, text: &str, open: Option<(usize, usize)>) {
    let is_start = open.is_some_and(|(start, _)| start == pieces.len());
    match pieces.last_mut() {
        Some(Piece::Text(last)) if !is_start => last.push_str(text),
        _ if text.is_empty() => {}
        _ => pieces.push(Piece::Text(text.to_owned())),
    }
}

fn join(pieces: &mut Vec<Piece>, more: Vec<Piece>) {
    for piece in more {
        match piece {
            Piece::Text(text) => plain(pieces, &text, None),
            piece => pieces.push(piece),
        }
    }
}

/// A bracket that turned out not to open a part.
fn literal(pieces: &mut Vec<Piece>, open: Option<(usize, usize)>) {
    if let Some((start, _)) = open {
        let inner = pieces.split_off(start);
        plain(pieces, "[", None);
        join(pieces, inner);
    }
}

fn fill(pieces: &[Piece], with: &Filling<'_>, out: &mut String) {
    for piece in pieces {
        // Writing to a string cannot fail.
        let _ = match piece {
            Piece::Text(text) => write!(out, "{text}"),
            Piece::Parameter(name) => match (with.configuration.get(name), name.as_str()) {
                (Some(value), _) => write!(out, "{value}"),
                (None, "name") => write!(out, "{}", with.configuration.name().unwrap_or_default()),
                (None, _) => Ok(()),
            },
            Piece::Instance => write!(out, "{}", with.instance.unwrap_or_default()),
            Piece::InstanceName => write!(out, "{}", with.instance_words().0),
            Piece::InstanceSpecifics => write!(out, "{}", with.instance_words().1),
            Piece::Seed => write!(out, "{}", with.seed),
            Piece::Limit => write!(out, "{}", with.limit),
            Piece::CpuLimit => match with.cpu_limit {
                Some(limit) => write!(out, "{limit}"),
                None => Ok(()),
            },
            Piece::Round => write!(out, "{}", with.round),
            Piece::Scratch => write!(out, "{}", with.scratch.display()),
            Piece::Params => Ok(()),
            Piece::Part(inner) => {
                let is_there = |piece: &Piece| match piece {
                    Piece::Parameter(name) if name == "name" => with.configuration.name().is_some(),
                    Piece::Parameter(name) => with.configuration.get(name).is_some(),
                    _ => true,
                };
                if inner.iter().all(is_there) {
                    fill(inner, with, out);
                }
                Ok(())
            }
        };
    }
}

/// As it is written.
impl From<Template> for String {
    fn from(template: Template) -> Self {
        let mut out = Self::new();
        write_pieces(template.pieces(), &mut out);
        out
    }
}

fn write_pieces(pieces: &[Piece], out: &mut String) {
    for piece in pieces {
        let name = match piece {
            Piece::Text(text) => {
                for letter in text.chars() {
                    out.extend(std::iter::repeat_n(
                        letter,
                        1 + usize::from("{}[]".contains(letter)),
                    ));
                }
                continue;
            }
            Piece::Part(inner) => {
                out.push('[');
                write_pieces(inner, out);
                out.push(']');
                continue;
            }
            Piece::Parameter(name) => name,
            Piece::Instance => "instance",
            Piece::InstanceName => "instance.name",
            Piece::InstanceSpecifics => "instance.specifics",
            Piece::Seed => "seed",
            Piece::Limit => "limit",
            Piece::CpuLimit => "cpu_limit",
            Piece::Round => "round",
            Piece::Scratch => "scratch",
            Piece::Params => "params",
        };
        out.extend(["{", name, "}"]);
    }
}

impl TryFrom<String> for Template {
    type Error = Fault;

    fn try_from(text: String) -> Result<Self, Fault> {
        Self::parse(&text).map_err(|mut faults| faults.remove(0).0)
    }
}

impl Piece {
    fn named(name: &str) -> Self {
        match name {
            "instance" => Self::Instance,
            "instance.name" => Self::InstanceName,
            "instance.specifics" => Self::InstanceSpecifics,
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::arguments::{Arguments, ParamsForm};
    use super::*;
    use crate::markup::shell_word;
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
            own: BTreeMap::new(),
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
    fn a_part_in_brackets_disappears_with_its_parameter() {
        assert_eq!(filled("--r={mode}[,{base}][,{decay}]"), "--r={seed},0.5");
        assert_eq!(filled("[{decay},{base}]x[{name}]"), "xfast");
        assert_eq!(
            filled("[[{decay}]] [ -f {instance} ] a[0] ]["),
            "[0.5] [ -f a b.cnf ] a[0] ]["
        );
        assert_eq!(filled("[a[-{decay}]"), "[a-0.5");
        assert_eq!(filled("[{decay}]]]"), "0.5]");
    }

    #[test]
    fn brackets_are_literal_unless_an_arm_may_lack_a_parameter() {
        let kept = |text: &str| {
            let mut template = Template::parse(text).unwrap();
            template.keep_brackets(|name| name != "base");
            let configuration = configuration();
            template.fill(&filling(&configuration))
        };
        assert_eq!(kept("[ {decay} = 0.5 ]"), "[ 0.5 = 0.5 ]");
        assert_eq!(kept("{mode}[,{decay}][,{base}]"), "{seed},0.5");
        assert_eq!(kept("[{seed}][,{base}]"), format!("[{}]", filled("{seed}")));
    }

    #[test]
    fn an_argument_whose_parts_disappear_is_no_argument() {
        let arguments = Arguments {
            templates: ["[--base={base}]", "[--decay={decay}]", ""]
                .map(|text| Template::parse(text).unwrap())
                .into(),
            form: ParamsForm::default(),
            placed: vec![],
            own: BTreeMap::new(),
        };
        assert_eq!(
            arguments.fill(&filling(&configuration())),
            ["--decay=0.5", ""]
        );
    }

    #[test]
    fn a_flag_with_its_own_argument_is_that_argument_or_nothing() {
        let row = |deep| Row {
            name: None,
            values: vec![(0, Value::Integer(1)), (1, Value::Flag(deep))],
        };
        let space =
            Space::table(vec!["a".into(), "deep".into()], &[row(true), row(false)]).unwrap();
        let arguments = Arguments {
            templates: vec![Template::parse("{params}").unwrap()],
            form: ParamsForm::default(),
            placed: vec![],
            own: BTreeMap::from([(
                "deep".to_owned(),
                ParamsForm {
                    arguments: vec!["--deep".into()],
                },
            )]),
        };
        let filled = |arm| arguments.fill(&filling(&space.configuration(ArmId::from_index(arm))));
        assert_eq!(filled(0), ["--a=1", "--deep"]);
        assert_eq!(filled(1), ["--a=1"]);
        // irace's way to write a flag.
        let mut arguments = arguments;
        let bare = vec!["{value}".to_owned()];
        arguments.own = BTreeMap::from([("deep".to_owned(), ParamsForm { arguments: bare })]);
        let given = |value: &str| arguments.parameter("deep", &Value::Text(value.into()));
        assert_eq!(given("--deep"), ["--deep"]);
        assert_eq!(given("").len() + given(" ").len(), 0);
        assert_eq!(arguments.parameter("a", &Value::Text("".into())), ["--a="]);
    }

    proptest::proptest! {
        /// Any text is either read or refused, and what was read is written and read back the same.
        #[test]
        fn a_template_reads_back_as_it_was_written(text in r"([\[\]{}a ]|\{a\}|\{seed\}|\[\{a\}\])*") {
            if let Ok(template) = Template::parse(&text) {
                let written = String::from(template.clone());
                proptest::prop_assert_eq!(Template::parse(&written).unwrap(), template, "{}", written);
            }
        }
    }

    #[test]
    fn words_are_quoted_for_a_shell_where_needed() {
        assert_eq!(shell_word("-x=1.5"), "-x=1.5");
        assert_eq!(shell_word("a b"), "'a b'");
        assert_eq!(shell_word("it's"), r"'it'\''s'");
        assert_eq!(shell_word(""), "''");
        assert_eq!(shell_word("$HOME"), "'$HOME'");
    }

    proptest::proptest! {
        #[test]
        fn text_with_doubled_brackets_is_itself(text in "\\PC{0,40}") {
            let escaped = String::from(Template {
                pieces: vec![Piece::Text(text.clone())],
            });
            let template = Template::parse(&escaped).unwrap();
            proptest::prop_assert_eq!(template.fill(&filling(&configuration())), text);
        }

        #[test]
        fn any_text_is_read_or_refused_with_places_inside_it(text in r"[a-z {}\[\]é]{0,30}") {
            match Template::parse_with_places(&text) {
                Ok((template, places)) => {
                    let is_text = |piece: &&Piece| matches!(piece, Piece::Text(_));
                    let placeholders = template.flat().filter(|piece| !is_text(piece)).count();
                    proptest::prop_assert_eq!(placeholders, places.len());
                    for Placed { at, .. } in places {
                        proptest::prop_assert!(text[at.clone()].starts_with('{'), "{at:?}");
                    }
                }
                Err(faults) => {
                    proptest::prop_assert!(!faults.is_empty());
                    for (_, place) in faults {
                        proptest::prop_assert!(text.get(place.clone()).is_some(), "{place:?}");
                    }
                }
            }
        }
    }
}
