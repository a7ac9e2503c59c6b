//! Why a table cannot be used.

use std::fmt;
use std::path::PathBuf;

use super::{LARGEST_TARGET, MAX_CLASSES, MAX_PREDICTORS, MAX_ROWS};

/// A position in a CSV file, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct At {
    /// The line.
    pub line: u64,
    /// The field in the line, if the error is about one.
    pub column: Option<u64>,
}

impl At {
    pub(super) fn line(line: u64) -> Self {
        Self { line, column: None }
    }

    pub(super) fn cell(line: u64, column: u64) -> Self {
        Self {
            line,
            column: Some(column),
        }
    }
}

impl fmt::Display for At {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "line {}", self.line)?;
        match self.column {
            Some(column) => write!(to, ", column {column}"),
            None => Ok(()),
        }
    }
}

/// The position in front of a message, if there is one: a table made by code has none.
fn before(at: Option<&At>) -> String {
    at.map(|at| format!("{at}: ")).unwrap_or_default()
}

/// Why a table cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DatasetError {
    /// The file cannot be opened or read.
    #[error("cannot read `{}`: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's message.
        source: std::io::Error,
    },
    /// Nothing in it, not even a header.
    #[error("there is no header: the data are empty")]
    Empty,
    /// Text in 16-bit units, as some spreadsheets save it.
    #[error("the text is UTF-16, not UTF-8")]
    Utf16,
    /// Not text at all, but what gzip made of it.
    #[error("the file is compressed with gzip")]
    Gzip,
    /// A header without commas that seems to use another separator.
    #[error("{at}: the header is a single field, `{name}`")]
    Separator {
        /// Where the header is.
        at: At,
        /// All of it.
        name: String,
        /// What seems to be between the names: `semicolons` or `tabs`.
        separator: &'static str,
    },
    /// A quote that is not closed before the end of the file.
    #[error("{at}: a quote is opened here and never closed")]
    UnclosedQuote {
        /// Where it is opened.
        at: At,
    },
    /// A row with more or fewer fields than the header.
    #[error("{at}: {}, but the header has {expected}", counted(*found, "field"))]
    Ragged {
        /// Where.
        at: At,
        /// Fields in this row.
        found: usize,
        /// Fields in the header.
        expected: usize,
    },
    /// Two columns of the same name.
    #[error("{at}: duplicate column `{name}`, first in column {first}")]
    DuplicateHeader {
        /// Where the second one is.
        at: At,
        /// The name.
        name: String,
        /// The column of the first one.
        first: u64,
    },
    /// The column to predict, to drop or to order is not in the header.
    #[error("{at}: there is no column `{name}` to {purpose}")]
    NoSuchColumn {
        /// Where the header is.
        at: At,
        /// The name asked for.
        name: String,
        /// What it is needed for: `predict`, `drop` or `order the levels of`.
        purpose: &'static str,
        /// The closest name in the header.
        nearest: Option<String>,
    },
    /// The target has only one value.
    #[error("{}target `{name}` is constant: there is nothing to predict", before(at.as_ref()))]
    ConstantTarget {
        /// Where its header is.
        at: Option<At>,
        /// The target.
        name: String,
    },
    /// Targets whose squares or sums could overflow.
    #[error("{}target `{name}` has values beyond {LARGEST_TARGET:e}", before(at.as_ref()))]
    TargetTooLarge {
        /// Where its header is.
        at: Option<At>,
        /// The target.
        name: String,
    },
    /// A row without a target.
    #[error("{at}: target `{name}` is missing")]
    TargetMissing {
        /// Where.
        at: At,
        /// The target.
        name: String,
    },
    /// A number was expected, but a text is there.
    #[error("{at}: target `{name}` is `{text}`, which is not a number")]
    TargetNotANumber {
        /// Where.
        at: At,
        /// The target.
        name: String,
        /// What is there.
        text: String,
    },
    /// A text in a column that the forest learned as numbers.
    #[error("{at}: `{column}` is `{text}`, which is not a number")]
    NotANumber {
        /// Where.
        at: At,
        /// The column.
        column: String,
        /// The cell.
        text: String,
    },
    /// A value that no split can handle.
    #[error("{at}: `{column}` is infinite (`{text}`)")]
    Infinite {
        /// Where.
        at: At,
        /// The column.
        column: String,
        /// What is there.
        text: String,
    },
    /// A level that the given order does not name.
    #[error("{at}: level `{level}` of `{column}` is not in the order given for it")]
    UnknownLevel {
        /// Where.
        at: At,
        /// The factor.
        column: String,
        /// Its level.
        level: String,
        /// The closest level in the order.
        nearest: Option<String>,
    },
    /// An order of levels for a column that has no levels to order.
    #[error("{at}: an order of levels is given for `{column}`, which is {what}")]
    NotAFactor {
        /// Where its header is.
        at: At,
        /// The column.
        column: String,
        /// What it is instead: `a column of numbers` or `the target`.
        what: &'static str,
    },
    /// A column that is both needed and dropped.
    #[error("{at}: column `{name}` cannot be dropped: it is needed to {purpose}")]
    Dropped {
        /// Where its header is.
        at: At,
        /// The column.
        name: String,
        /// What it is needed for: `predict` or `have its levels in order`.
        purpose: &'static str,
    },
    /// An order that lists a level twice.
    #[error("{at}: the order given for `{column}` names level `{level}` twice")]
    RepeatedLevel {
        /// Where the header of the column is.
        at: At,
        /// The factor.
        column: String,
        /// The level.
        level: String,
    },
    /// Nothing to learn from.
    #[error("{}too few rows below the header: {rows}, and a forest needs at least 2", before(at.as_ref()))]
    TooFewRows {
        /// Where the header is.
        at: Option<At>,
        /// How many there are.
        rows: usize,
    },
    /// More rows than a forest supports.
    #[error("{rows} rows are too many: at most {MAX_ROWS}")]
    TooManyRows {
        /// How many there are.
        rows: usize,
    },
    /// Only the target is left.
    #[error("there is no column to predict from: the only one is the target")]
    NoPredictors {
        /// How many columns were left out.
        dropped: usize,
    },
    /// More columns than a forest supports.
    #[error("{columns} predictors are too many: at most {MAX_PREDICTORS}")]
    TooManyColumns {
        /// How many there are.
        columns: usize,
    },
    /// A target with too many classes.
    #[error("target `{name}` has {classes} classes: at most {MAX_CLASSES}")]
    TooManyClasses {
        /// The target.
        name: String,
        /// How many there are.
        classes: usize,
    },
    /// Columns of different length, given from code.
    #[error("column `{column}` has {}, the target {expected}", counted(*rows, "row"))]
    Lengths {
        /// The column.
        column: String,
        /// Its rows.
        rows: usize,
        /// Rows of the target.
        expected: usize,
    },
    /// A class index given from code that names no class.
    #[error("the target must hold indices of its {classes} classes")]
    NoSuchClass {
        /// How many there are.
        classes: usize,
    },
}

impl DatasetError {
    /// What the user can change to get past this.
    pub fn hint(&self) -> Option<String> {
        let text = match self {
            Self::Utf16 => "save the file as UTF-8".into(),
            Self::Gzip => "unpack it with `gunzip --keep` and name the unpacked file".into(),
            Self::Separator { separator, .. } => {
                format!("separate the fields by commas instead of {separator}")
            }
            Self::UnclosedQuote { .. } => {
                "close it, or write `\"\"` inside quotes for a quote that belongs to the text"
                    .into()
            }
            Self::Ragged {
                found, expected, ..
            } if found > expected => "put a field that holds a comma in double quotes".into(),
            Self::Ragged { .. } => {
                "give every row all fields; leave a missing one empty or write `NA`".into()
            }
            Self::DuplicateHeader { name, .. } => {
                format!("rename one of them, or remove the second `{name}` from the file")
            }
            Self::NoSuchColumn {
                nearest: Some(nearest),
                ..
            } => format!("did you mean `{nearest}`?"),
            Self::NoSuchColumn { .. } => "names are those of the first line of the file".into(),
            Self::ConstantTarget { .. } => "predict another column".into(),
            Self::TargetTooLarge { .. } => "give it in a larger unit".into(),
            Self::TargetMissing { .. } => "remove the rows that have no target".into(),
            Self::TargetNotANumber { .. } => {
                "correct the cell, or ask for classification (task: classification)".into()
            }
            Self::NotANumber { .. } | Self::Infinite { .. } => {
                "write `NA` where the value is not known".into()
            }
            Self::UnknownLevel {
                nearest: Some(nearest),
                ..
            } => format!("did you mean `{nearest}`? the order must name every level"),
            Self::UnknownLevel { .. } => "add the level to the order given for the column".into(),
            Self::NotAFactor { column, .. } => format!(
                "remove `{column}` from the orders: numbers are ordered by value, and the target has no order"
            ),
            Self::Dropped { name, .. } => format!("remove `{name}` from the columns to drop"),
            Self::RepeatedLevel { .. } => "name every level once".into(),
            Self::NoPredictors { dropped: 0 } => {
                "give the file a second column; fields are separated by commas".into()
            }
            Self::NoPredictors { .. } => "drop fewer columns".into(),
            Self::TooManyClasses { .. } => {
                "is it an id? predict another column, or ask for regression (task: regression)"
                    .into()
            }
            Self::Empty => "the first line must name the columns".into(),
            Self::Unreadable { .. }
            | Self::TooFewRows { .. }
            | Self::TooManyRows { .. }
            | Self::TooManyColumns { .. }
            | Self::Lengths { .. }
            | Self::NoSuchClass { .. } => return None,
        };
        Some(text)
    }
}

/// `1 row`, `2 rows`.
fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// The known name closest to `unknown`, for "did you mean": if at most a third of its letters differ, ignoring case.
pub(super) fn nearest<'a>(
    unknown: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let likeness = |name: &str| {
        strsim::normalized_damerau_levenshtein(&unknown.to_lowercase(), &name.to_lowercase())
    };
    known
        .into_iter()
        .map(|name| (likeness(name), name))
        .filter(|(likeness, _)| *likeness > 0.66)
        .max_by(|(one, _), (other, _)| one.total_cmp(other))
        .map(|(_, name)| name)
}
