//! Why a virtual target cannot be used.

use std::path::PathBuf;

use crate::nearest::nearest;
use crate::simulated::synthetic::{Grid, SyntheticProblem};

/// Why a virtual target cannot be used. Lines and columns are counted from 1. A column is one of a table.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[expect(missing_docs, reason = "fields say what the message says")]
pub enum TargetError {
    /// No synthetic problem of this name.
    #[error("unknown problem `{name}`")]
    UnknownProblem { name: String },
    /// `large0`, or more arms than make sense.
    #[error(
        "problem `{name}`: arms must be from 1 to {}",
        SyntheticProblem::MOST_ARMS
    )]
    BadArmCount { name: String },
    /// No grid of this name.
    #[error("unknown grid `{name}`")]
    UnknownGrid { name: String },
    /// A file that cannot be opened or read.
    #[error("cannot read `{}`: {reason}", path.display())]
    Unreadable { path: PathBuf, reason: String },
    /// A line that is not a row.
    #[error("{}:{line}: {reason}", path.display())]
    BadLine {
        path: PathBuf,
        line: u64,
        reason: String,
    },
    /// A row that is too short or too long.
    #[error("{}:{line}: this row has {found} columns, not {expected}", path.display())]
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
    /// No cutoff is given.
    #[error("no cutoff given for the runs of `{}`", path.display())]
    NoCutoff { path: PathBuf },
    /// A cutoff that is not a valid limit.
    #[error("cutoff {cutoff} is not a positive number")]
    BadCutoff { cutoff: f64 },
    /// A limit beyond the cutoff of the recorded runs.
    #[error("the largest limit {limit} is beyond the cutoff {cutoff} of the recorded runs")]
    LimitAboveCutoff { limit: f64, cutoff: f64 },
    /// The matrices do not match.
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
    #[error("{}:{line}: the rewards are of `{found}`, but the consumptions are of `{expected}`", path.display())]
    RewardRow {
        path: PathBuf,
        line: u64,
        found: String,
        expected: String,
    },
    /// ASlib files have no rewards.
    #[error("`reward: {}` does not apply to an ASlib file", path.display())]
    RewardForAslib { path: PathBuf },
    /// A required attribute of ASlib is missing.
    #[error("{}:{line}: missing attribute `{name}`", path.display())]
    NoAttribute {
        path: PathBuf,
        line: u64,
        name: &'static str,
    },
    /// The same instance, repetition and algorithm again.
    #[error("{}:{line}: duplicate run of `{arm}` on `{instance}`", path.display())]
    RepeatedRun {
        path: PathBuf,
        line: u64,
        instance: String,
        arm: String,
    },
    /// A missing cell in the matrix.
    #[error("`{}` has no run of `{arm}` on `{instance}`", path.display())]
    MissingRun {
        path: PathBuf,
        instance: String,
        arm: String,
    },
    /// A parameter of which nothing was recorded.
    #[error("`{}` has no column `{name}`", path.display())]
    NoColumn { path: PathBuf, name: String },
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
            Self::BadCutoff { .. } => "write the cutoff of the measured runs, like `cutoff: 300s`".into(),
            Self::LimitAboveCutoff { cutoff, .. } => {
                format!("no run was measured beyond it: end the limits at {cutoff} or below")
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
            Self::NoColumn { .. } => "every parameter of the space needs a column in the file of recorded arms".into(),
            Self::ArmCount { .. } => "give one configuration per column of the matrix, in its order".into(),
        })
    }
}
