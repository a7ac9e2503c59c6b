//! The sets of limits M of the paper's experiments.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::SyntheticProblem;
use crate::round::LimitGrid;
use crate::simulated::TargetError;

/// A set of limits by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Grid {
    /// The points that reproduce the paper's figures: from 0.1 to 0.9 (low censoring: to 0.6), both included.
    #[default]
    Recovered,
    /// The points as in the text: max k/points for k = 1..=points, with max = 1 (low censoring: 0.6).
    Printed,
    /// M_1 = {0.5, 0.9}, for every problem.
    M1,
    /// M_2: 20 points from 0.1 to 0.9, for every problem.
    M2,
}

impl Grid {
    /// All names, as used in scenarios and on the command line.
    pub const NAMES: [&'static str; 4] = ["recovered", "printed", "m1", "m2"];

    /// The grid of this name.
    pub fn parse(name: &str) -> Result<Self, TargetError> {
        Ok(match name.trim() {
            "recovered" => Self::Recovered,
            "printed" => Self::Printed,
            "m1" => Self::M1,
            "m2" => Self::M2,
            _ => return Err(TargetError::UnknownGrid { name: name.into() }),
        })
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }

    /// Its limits for this problem.
    pub fn limits(self, problem: SyntheticProblem) -> LimitGrid {
        let (points, end) = match problem {
            SyntheticProblem::PosCorr | SyntheticProblem::NegCorr | SyntheticProblem::Indep => {
                (10, 0.9)
            }
            SyntheticProblem::Large(_) => (5, 0.9),
            SyntheticProblem::LowCens => (10, 0.6),
        };
        let limits = match self {
            Self::Recovered => LimitGrid::equidistant(0.1, end, points),
            // (0, 1] of the text ends at 0.9 in the experiments; (0, 0.6] ends where it says.
            Self::Printed if end == 0.9 => LimitGrid::fractions(1.0, points),
            Self::Printed => LimitGrid::fractions(end, points),
            Self::M1 => LimitGrid::new([0.5, 0.9]),
            Self::M2 => LimitGrid::equidistant(0.1, 0.9, 20),
        };
        limits.expect("the paper's grids are ascending and positive")
    }
}

impl fmt::Display for Grid {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.name().fmt(to)
    }
}
