//! Why a target cannot be had.

use std::path::PathBuf;

use crate::nearest::nearest;
use crate::target::synthetic::{Grid, SyntheticProblem};

/// Why a target cannot be had as asked for. Lines and columns are counted from 1; a column is one of a table.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[expect(missing_docs, reason = "fields say what the message says")]
pub enum TargetError {
    /// No synthetic problem of this name.
    #[error("there is no problem `{name}`")]
    UnknownProblem { name: String },
    /// `large0`, or more arms than make sense.
    #[error(
        "problem `{name}`: arms must be from 1 to {}",
        SyntheticProblem::MOST_ARMS
    )]
    BadArmCount { name: String },
    /// No grid of this name.
    #[error("there is no grid `{name}`")]
    UnknownGrid { name: String },
    /// A file that cannot be opened or read.
    #[error("cannot read `{}`: {reason}", path.display())]
    Unreadable { path: PathBuf, reason: String },
    /// A line that is no row at all.
    #[error("{}:{line}: {reason}", path.display())]
    BadLine {
        path: PathBuf,
        line: u64,
        reason: String,
    },
    /// A row that is too short or too long.
    #[error("{}:{line}: this row has {found} columns, but there should be {expected}", path.display())]
    RowLength {
        path: PathBuf,
        line: u64,
        found: usize,
        expected: usize,
    },
    /// A value that cannot be used.
    #[error("{}:{line}: column {column} is `{value}`, but must be {expected}", path.display())]
    BadCell {
        path: PathBuf,
        line: u64,
        column: usize,
        value: String,
        expected: &'static str,
    },
    /// No instance, or no arm.
    #[error("`{}` holds no runs", path.display())]
    NoRuns { path: PathBuf },
    /// Nothing says how far runs were measured.
    #[error("nothing says up to where the runs of `{}` were measured", path.display())]
    NoCutoff { path: PathBuf },
    /// A cutoff that is no limit.
    #[error("cutoff {cutoff} is not a positive number")]
    BadCutoff { cutoff: f64 },
    /// Nobody measured what happens beyond the cutoff.
    #[error("the largest limit {limit} is beyond the cutoff {cutoff} of the recorded runs")]
    LimitAboveCutoff { limit: f64, cutoff: f64 },
    /// The matrices do not fit.
    #[error(
        "`{}` has rewards for {} instances x {} arms, but there are consumptions for {} x {}",
        path.display(), found.0, found.1, expected.0, expected.1
    )]
    RewardShape {
        path: PathBuf,
        found: (usize, usize),
        expected: (usize, usize),
    },
    /// The rows of the matrices are in different orders.
    #[error("{}:{line}: rewards of `{found}`, where the consumptions are of `{expected}`", path.display())]
    RewardRow {
        path: PathBuf,
        line: u64,
        found: String,
        expected: String,
    },
    /// ASlib files know no rewards.
    #[error("rewards `{}` go with a matrix of consumptions, not with an ASlib file", path.display())]
    RewardForAslib { path: PathBuf },
    /// An attribute ASlib demands.
    #[error("{}:{line}: there is no attribute `{name}`", path.display())]
    NoAttribute {
        path: PathBuf,
        line: u64,
        name: &'static str,
    },
    /// The same instance, repetition and algorithm again.
    #[error("{}:{line}: this run of `{arm}` on `{instance}` stands in the file already", path.display())]
    RepeatedRun {
        path: PathBuf,
        line: u64,
        instance: String,
        arm: String,
    },
    /// A hole in the matrix.
    #[error("`{}` has no run of `{arm}` on `{instance}`", path.display())]
    MissingRun {
        path: PathBuf,
        instance: String,
        arm: String,
    },
    /// The scenario's arms are not those that were recorded.
    #[error("the scenario has {expected} arms, but `{}` has runs of {found}", path.display())]
    ArmCount {
        path: PathBuf,
        found: usize,
        expected: usize,
    },
}

impl TargetError {
    /// What the user can change to get past this.
    pub fn hint(&self) -> Option<String> {
        let choose = |what: &str, written: &str, known: &[&'static str]| match nearest(
            written,
            known.iter().copied(),
        ) {
            Some(name) => format!("did you mean `{name}`?"),
            None => format!("{what} are {}", known.join(", ")),
        };
        Some(match self {
            Self::UnknownProblem { name } => choose("problems", name, &SyntheticProblem::NAMES),
            Self::BadArmCount { .. } => "write `large20`".into(),
            Self::UnknownGrid { name } => choose("grids", name, &Grid::NAMES),
            Self::Unreadable { .. } => "paths are relative to the scenario's folder".into(),
            Self::BadLine { .. } => "an ASlib file ends in `.arff`; anything else is read as CSV".into(),
            Self::RowLength { .. } | Self::NoRuns { .. } => {
                "a matrix has one row per instance: its name, then one value per arm".into()
            }
            Self::BadCell { value, .. } if value.is_empty() || value == "?" => {
                "every instance needs a run of every arm: leave out the instance or the arm, or write `failed`".into()
            }
            Self::BadCell { .. } => "`unsolved:` names the number that means not solved within the cutoff".into(),
            Self::NoCutoff { .. } => "write `cutoff: 300s`, or put ASlib's `description.txt` beside the runs".into(),
            Self::BadCutoff { .. } => "write how far the runs were measured, like `cutoff: 300s`".into(),
            Self::LimitAboveCutoff { cutoff, .. } => {
                format!("nobody knows what happens there: end the limits at {cutoff} or below")
            }
            Self::RewardShape { .. } | Self::RewardRow { .. } => {
                "both matrices have the same instances and arms, in the same order".into()
            }
            Self::RewardForAslib { .. } => "remove `reward`: what is `ok` in an ASlib file gives 1".into(),
            Self::NoAttribute { .. } => {
                "an ASlib file has instance_id, repetition, algorithm, runtime and runstatus".into()
            }
            Self::RepeatedRun { .. } => "runs of one arm on one instance differ in their repetition".into(),
            Self::MissingRun { .. } => "every instance needs a run of every arm: leave out the instance or the arm".into(),
            Self::ArmCount { .. } => "give one configuration per column of the matrix, in its order".into(),
        })
    }
}
