//! Spaces in files: captime's own YAML, PCS (old and new), ConfigSpace (JSON and YAML) and irace's parameter files.
//!
//! Readers report every mistake with its position in the text, and note what they could not convert.
//!
//! ```
//! use captime::space::format::{Format, read, write};
//!
//! let text = "heur {a, b} [a]\nk [1, 100] [10]il\nk | heur in {b}\n";
//! let file = read(text, Format::Pcs).unwrap();
//! assert_eq!(file.space.parameters().len(), 2);
//! let yaml = write(&file.space, Format::Captime)?.text;
//! assert!(yaml.contains("k: {integer: [1, 100], scale: log, default: 10, when: heur == b}"));
//! # Ok::<(), captime::space::format::WriteError>(())
//! ```

mod configspace;
mod irace;
mod native;
mod pcs;
#[cfg(test)]
mod tests;

pub use native::{flow_list, flow_word};
pub(crate) use native::{read_nodes, read_rules, start_values};

use std::collections::HashSet;
use std::io::ErrorKind;
use std::ops::Range;
use std::path::Path;

use serde_saphyr::DuplicateKeyPolicy;

use super::Value;
use super::open::{
    DomainError, ExpressionError, Flaw, Misread, OpenError, OpenParameter, OpenSpace, Part, Rule,
};
use crate::nearest::nearest;
use crate::regular_file;
use crate::yaml::{self, Node, Raw, Span};

/// Larger files are an error.
pub const MOST_BYTES: u64 = 16 << 20;

/// How a space is written in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// captime's own: `arms: {space: ...}` in YAML.
    Captime,
    /// PCS. Both forms are read, the new one is written.
    Pcs,
    /// PCS. Both forms are read, the old one is written.
    PcsOld,
    /// ConfigSpace as JSON.
    ConfigSpaceJson,
    /// ConfigSpace as YAML.
    ConfigSpaceYaml,
    /// irace's parameter file.
    Irace,
}

impl Format {
    /// Its usual name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Captime => "captime YAML",
            Self::Pcs => "PCS",
            Self::PcsOld => "PCS (old)",
            Self::ConfigSpaceJson => "ConfigSpace JSON",
            Self::ConfigSpaceYaml => "ConfigSpace YAML",
            Self::Irace => "irace",
        }
    }

    /// The format of a file, by its name and its text.
    pub fn detect(path: &Path, text: &str) -> Self {
        let ending = path
            .extension()
            .map(|ending| ending.to_string_lossy().to_lowercase());
        let is_own = || {
            let mut lines = text
                .lines()
                .filter(|line| !line.trim_start().starts_with('#'));
            lines.any(|line| line.starts_with("arms:") || line.starts_with("space:"))
        };
        match ending.as_deref() {
            Some("json") => Self::ConfigSpaceJson,
            Some("yaml" | "yml") if is_own() => Self::Captime,
            Some("yaml" | "yml") => Self::ConfigSpaceYaml,
            _ if irace::looks_like(text) => Self::Irace,
            Some("pcs") => Self::Pcs,
            _ if text.trim_start().starts_with('{') && text.contains("\"hyperparameters\"") => {
                Self::ConfigSpaceJson
            }
            _ if is_own() => Self::Captime,
            _ if text
                .lines()
                .any(|line| line.starts_with("hyperparameters:")) =>
            {
                Self::ConfigSpaceYaml
            }
            _ => Self::Pcs,
        }
    }
}

/// A space as read from a file.
#[derive(Debug, Clone, PartialEq)]
pub struct SpaceFile {
    /// The space.
    pub space: OpenSpace,
    /// How many conditions the file states. Several may concern one parameter.
    pub conditions: usize,
    /// What could not be converted, in the order of the file.
    pub notes: Vec<Note>,
}

/// Something that could not be converted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// Where in the text.
    pub at: Range<usize>,
    /// What.
    pub text: String,
}

/// What is wrong with a file, and where.
#[derive(Debug, Clone, PartialEq)]
pub struct SpaceMistake {
    /// Where in the text.
    pub at: Range<usize>,
    /// What.
    pub error: FormatError,
}

/// What can be wrong with a file.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum FormatError {
    /// The syntax is wrong.
    #[error("{reason}")]
    Syntax {
        /// The parser's message.
        reason: String,
    },
    /// Something else was expected here.
    #[error("expected {expected}, found {found}")]
    Expected {
        /// What is allowed here.
        expected: String,
        /// What is there.
        found: String,
    },
    /// A key that is missing.
    #[error("`{section}` lacks `{key}`")]
    Missing {
        /// The section.
        section: String,
        /// The key.
        key: &'static str,
    },
    /// An unknown key.
    #[error("`{section}` has no key `{key}`")]
    UnknownKey {
        /// The section.
        section: String,
        /// As written.
        key: String,
        /// The nearest known key.
        nearest: Option<String>,
    },
    /// An unknown type of parameter, condition or clause.
    #[error("unknown type `{name}`")]
    UnknownType {
        /// As written.
        name: String,
        /// The nearest known type.
        nearest: Option<String>,
    },
    /// A name that no parameter has.
    #[error("no parameter is called `{name}`")]
    UnknownParameter {
        /// As written.
        name: String,
        /// The nearest known name.
        nearest: Option<String>,
    },
    /// Bounds that depend on each other.
    #[error("the bounds of `{name}` depend on parameters whose bounds depend on it")]
    CircularBounds {
        /// The parameter.
        name: String,
    },
    /// A range or list of values that is not valid.
    #[error("parameter `{name}`: {error}")]
    Domain {
        /// The parameter.
        name: String,
        /// Why.
        error: DomainError,
    },
    /// A condition or constraint that is not valid.
    #[error(transparent)]
    Expression(#[from] ExpressionError),
    /// Parts that do not form a space.
    #[error(transparent)]
    Space(#[from] OpenError),
}

impl FormatError {
    /// What the user can change to get past this.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::UnknownKey { nearest, .. }
            | Self::UnknownType { nearest, .. }
            | Self::UnknownParameter { nearest, .. } => nearest
                .as_ref()
                .map(|name| format!("did you mean `{name}`?")),
            Self::Domain {
                error: DomainError::EmptyRange { low, high },
                ..
            } => Some(format!("swap them: `[{high}, {low}]`")),
            Self::Domain {
                error: DomainError::LogOfZero { .. },
                ..
            } => Some("raise the lower bound, or use a linear scale".into()),
            Self::Expression(error) => error.hint(),
            Self::Space(error) => error.hint(),
            _ => None,
        }
    }
}

/// Why a space cannot be written in a format.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The format cannot express it.
    #[error("{format} cannot express {what}")]
    NotExpressible {
        /// The format.
        format: &'static str,
        /// What it cannot express.
        what: String,
    },
}

impl WriteError {
    fn new(format: Format, what: impl Into<String>) -> Self {
        Self::NotExpressible {
            format: format.name(),
            what: what.into(),
        }
    }
}

/// A space as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// The text.
    pub text: String,
    /// What the format cannot express.
    pub notes: Vec<String>,
}

/// The text of a file with a space or a scenario of another tool. Latin-1 is read too, since old files have comments in it: then there is a note.
pub fn load(path: &Path) -> Result<(String, Option<Note>), String> {
    let bytes = match regular_file::read(path, MOST_BYTES) {
        Err(error) if error.kind() == ErrorKind::FileTooLarge => {
            return Err("it is larger than 16 MiB".into());
        }
        read => read.map_err(|error| error.to_string())?,
    };
    decode(&bytes).map_err(str::to_owned)
}

fn decode(bytes: &[u8]) -> Result<(String, Option<Note>), &'static str> {
    if bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) {
        return Err("it is UTF-16; save it as UTF-8");
    }
    if bytes.contains(&0) {
        return Err("it is not text");
    }
    let mut text = String::with_capacity(bytes.len());
    let mut note = None;
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        if note.is_none() && !chunk.invalid().is_empty() {
            note = Some(Note {
                at: text.len()..text.len() + 1,
                text: "the file is not UTF-8 and was read as Latin-1".to_owned(),
            });
        }
        text.extend(chunk.invalid().iter().copied().map(char::from));
    }
    if !text.contains('\n') {
        // Very old editors end lines so.
        text = text.replace('\r', "\n");
    }
    Ok((text, note))
}

/// Reads a space. Reports all mistakes at once.
pub fn read(text: &str, format: Format) -> Result<SpaceFile, Vec<SpaceMistake>> {
    match format {
        Format::Captime => native::read(text),
        Format::Pcs | Format::PcsOld => pcs::read(text),
        Format::ConfigSpaceJson | Format::ConfigSpaceYaml => configspace::read(text),
        Format::Irace => irace::read(text),
    }
}

/// Writes a space.
pub fn write(space: &OpenSpace, format: Format) -> Result<Written, WriteError> {
    match format {
        Format::Captime => Ok(native::write(space)),
        Format::Pcs | Format::PcsOld => pcs::write(space, format),
        Format::ConfigSpaceJson | Format::ConfigSpaceYaml => configspace::write(space, format),
        Format::Irace => irace::write(space),
    }
}

/// Line and column of a byte, both counted from 1, columns in characters.
pub fn line_column(text: &str, at: usize) -> (usize, usize) {
    Span::new(at, at).line_column(text)
}

/// A value in formats that have only words: a number or flag only if it would be printed exactly as it is written.
fn written_value(text: &str) -> Value {
    let value = Value::read(text);
    if value.to_string() == text {
        value
    } else {
        Value::Text(text.into())
    }
}

/// A note for formats without `digits`.
fn digits_lost(space: &OpenSpace, format: &str) -> Vec<String> {
    let has_digits = |known: &OpenParameter| known.domain.digits().is_some();
    if space.parameters().iter().any(has_digits) {
        vec![format!("{format} has no place for `digits`")]
    } else {
        vec![]
    }
}

/// A space while it is being read.
#[derive(Debug, Default)]
struct Draft {
    parameters: Vec<OpenParameter>,
    /// The positions of each parameter's name, default and condition.
    places: Vec<[Range<usize>; 3]>,
    conditions: Vec<Vec<Rule>>,
    condition_count: usize,
    forbid: Vec<Rule>,
    forbid_places: Vec<Range<usize>>,
    mistakes: Vec<SpaceMistake>,
    notes: Vec<Note>,
    /// Parameters that are there but have mistakes: what depends on them is no mistake of its own.
    unread: HashSet<String>,
}

impl Draft {
    /// Reads the definition of the parameter of this name.
    fn defines(&mut self, name: &str, read: impl FnOnce(&mut Self)) {
        let before = self.parameters.len();
        read(self);
        if self.parameters.len() == before {
            self.unread.insert(name.to_owned());
        }
    }

    fn mistake(&mut self, at: Range<usize>, error: impl Into<FormatError>) {
        let error = error.into();
        self.mistakes.push(SpaceMistake { at, error });
    }

    fn note(&mut self, at: Range<usize>, text: impl Into<String>) {
        let text = text.into();
        self.notes.push(Note { at, text });
    }

    fn expected(&mut self, at: Range<usize>, expected: &str, found: impl Into<String>) {
        let (expected, found) = (expected.to_owned(), found.into());
        self.mistake(at, FormatError::Expected { expected, found });
    }

    /// A mistake in an expression that begins at this byte.
    fn misread(&mut self, start: usize, misread: Misread) {
        if let ExpressionError::UnknownName { name, .. } = &misread.error
            && self.unread.contains(name)
        {
            return;
        }
        let at = start + misread.at.start..start + misread.at.end;
        self.mistake(at, misread.error);
    }

    fn add(&mut self, parameter: OpenParameter, at: Range<usize>, default_at: Range<usize>) {
        self.parameters.push(parameter);
        self.places.push([at.clone(), default_at, at]);
        self.conditions.push(vec![]);
    }

    /// The index of a parameter, or a mistake.
    fn find(&mut self, name: &str, at: &Range<usize>) -> Option<usize> {
        let found = self
            .parameters
            .iter()
            .position(|known| *known.name == *name);
        if found.is_none() && !self.unread.contains(name) {
            let names = self.parameters.iter().map(|known| &*known.name);
            let error = FormatError::UnknownParameter {
                name: name.to_owned(),
                nearest: nearest(name, names).map(str::to_owned),
            };
            self.mistake(at.clone(), error);
        }
        found
    }

    fn condition(&mut self, child: usize, rule: Rule, at: Range<usize>) {
        self.conditions[child].push(rule);
        self.places[child][2] = at;
    }

    fn forbid(&mut self, rule: Rule, at: Range<usize>) {
        self.forbid.push(rule);
        self.forbid_places.push(at);
    }

    fn finish(mut self, whole: Range<usize>) -> Result<SpaceFile, Vec<SpaceMistake>> {
        if !self.mistakes.is_empty() {
            return Err(self.sorted());
        }
        for (parameter, rules) in self.parameters.iter_mut().zip(&mut self.conditions) {
            if !rules.is_empty() {
                parameter.when = Some(Rule::all(std::mem::take(rules)));
            }
        }
        let parameters = std::mem::take(&mut self.parameters);
        match OpenSpace::new(parameters, std::mem::take(&mut self.forbid)) {
            Ok(space) => Ok(SpaceFile {
                space,
                conditions: self.condition_count,
                notes: self.notes,
            }),
            Err(flaws) => {
                for Flaw { part, error } in flaws {
                    let at = match part {
                        Part::Whole => whole.clone(),
                        Part::Parameter(place) => self.places[place][0].clone(),
                        Part::Default(place) => self.places[place][1].clone(),
                        Part::When(place) => self.places[place][2].clone(),
                        Part::Forbid(place) => self.forbid_places[place].clone(),
                    };
                    self.mistake(at, error);
                }
                Err(self.sorted())
            }
        }
    }

    fn sorted(mut self) -> Vec<SpaceMistake> {
        self.mistakes.sort_by_key(|mistake| mistake.at.start);
        self.mistakes
    }
}

/// Deeper nesting is an error.
const DEEPEST: usize = 64;

/// More values are an error.
const MOST_NODES: usize = 4_000_000;

impl Node {
    /// Describes a value, for messages.
    fn shown(&self) -> String {
        match &self.value {
            Raw::Null => "nothing".to_owned(),
            Raw::Flag(value) => format!("`{value}`"),
            Raw::Integer(value) => format!("`{value}`"),
            Raw::Number(value) => format!("`{value:?}`"),
            Raw::Text(value) => format!("`{value}`"),
            Raw::List(_) => "a list".to_owned(),
            Raw::Map(_) => "a mapping".to_owned(),
        }
    }

    /// The value of a key, if this is a mapping that has it.
    fn get(&self, key: &str) -> Option<&Self> {
        match &self.value {
            Raw::Map(entries) => entries
                .iter()
                .find(|entry| entry.key == key)
                .map(|entry| &entry.value),
            _ => None,
        }
    }
}

/// Reads one document, JSON or YAML.
fn parse_tree(text: &str) -> Result<Node, SpaceMistake> {
    // ConfigSpace marks tuples with Python's own tag. Here they are lists.
    let tag = "!!python/tuple";
    let plain = text.replace(tag, &" ".repeat(tag.len()));
    yaml::read(&plain, DEEPEST, MOST_NODES, DuplicateKeyPolicy::Error).map_err(|error| {
        let error = error.without_snippet();
        SpaceMistake {
            at: error.location().map_or(0..0, |at| yaml::place(at).range()),
            error: FormatError::Syntax {
                reason: yaml::reason(error),
            },
        }
    })
}
