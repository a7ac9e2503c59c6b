//! Why a target cannot be had.

use crate::nearest::nearest;
use crate::target::synthetic::{Grid, SyntheticProblem};

/// Why a target cannot be had as asked for.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum TargetError {
    /// No synthetic problem of this name.
    #[error("there is no problem `{name}`")]
    UnknownProblem {
        /// What was written.
        name: String,
    },
    /// `large0`, or more arms than make sense.
    #[error(
        "problem `{name}`: arms must be from 1 to {}",
        SyntheticProblem::MOST_ARMS
    )]
    BadArmCount {
        /// What was written.
        name: String,
    },
    /// No grid of this name.
    #[error("there is no grid `{name}`")]
    UnknownGrid {
        /// What was written.
        name: String,
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
        match self {
            Self::UnknownProblem { name } => {
                Some(choose("problems", name, &SyntheticProblem::NAMES))
            }
            Self::BadArmCount { .. } => Some("write `large20`".into()),
            Self::UnknownGrid { name } => Some(choose("grids", name, &Grid::NAMES)),
        }
    }
}
