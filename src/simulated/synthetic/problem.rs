//! The paper's problems and their sets of limits M, by name.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::distribution::{Distribution, Gaussian, Independent};
use crate::round::LimitGrid;
use crate::simulated::TargetError;

/// A problem of the paper's experiments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum SyntheticProblem {
    /// Rewards rise with consumption.
    PosCorr,
    /// Rewards fall with consumption.
    NegCorr,
    /// Rewards do not depend on consumption.
    Indep,
    /// Positively correlated, with this many arms that get worse one by one.
    Large(u32),
    /// Five arms that seldom reach a good limit.
    LowCens,
}

impl SyntheticProblem {
    /// All names. `large` takes any number of arms after it.
    pub const NAMES: [&'static str; 7] = [
        "poscorr", "negcorr", "indep", "large20", "large50", "large80", "lowcens",
    ];

    /// More arms than any study plays even once.
    pub const MOST_ARMS: u32 = 1_000_000;

    /// The problem of this name.
    pub fn parse(name: &str) -> Result<Self, TargetError> {
        let trimmed = name.trim();
        if let Some(count) = trimmed.strip_prefix("large")
            && !count.is_empty()
            && count.bytes().all(|byte| byte.is_ascii_digit())
        {
            return match count.parse() {
                Ok(arms) if (1..=Self::MOST_ARMS).contains(&arms) => Ok(Self::Large(arms)),
                _ => Err(TargetError::BadArmCount { name: name.into() }),
            };
        }
        Ok(match trimmed {
            "poscorr" => Self::PosCorr,
            "negcorr" => Self::NegCorr,
            "indep" => Self::Indep,
            "lowcens" => Self::LowCens,
            _ => return Err(TargetError::UnknownProblem { name: name.into() }),
        })
    }

    /// How many arms it has.
    pub fn arms(self) -> usize {
        match self {
            Self::PosCorr | Self::NegCorr | Self::Indep => 10,
            Self::Large(arms) => arms as usize,
            Self::LowCens => 5,
        }
    }

    /// The distribution of every arm, from the paper's sections Synthetic Data Details and Further Experiments.
    pub(super) fn distributions(self) -> Vec<Distribution> {
        let arms = self.arms();
        (0..arms)
            .map(|k| match self {
                Self::PosCorr => {
                    let mean = if k == 0 { (0.6, 0.45) } else { (0.5, 0.5) };
                    let x = match k {
                        0 => 0.2,
                        1 => 0.3,
                        2 | 3 => 0.4,
                        _ => 0.6,
                    };
                    Distribution::Gaussian(Gaussian::new(mean, 0.2, x))
                }
                Self::NegCorr => {
                    let mean = if k == 0 { (0.9, 0.8) } else { (0.8, 0.8) };
                    Distribution::Gaussian(Gaussian::new(mean, 0.2, -0.2))
                }
                Self::Indep => {
                    let b = if k == 0 { 0.2 } else { 0.3 };
                    Distribution::Independent(Independent::new(0.8, b))
                }
                Self::Large(_) => {
                    let worse = k as f64 / arms as f64;
                    let mean = ((1.0 - worse) * 0.9, 0.3 + 0.7 * worse);
                    Distribution::Gaussian(Gaussian::new(mean, 0.2, 0.2))
                }
                Self::LowCens => {
                    let mean = ((1.0 - k as f64 / arms as f64) * 0.9, 0.0);
                    Distribution::Gaussian(Gaussian::new(mean, 0.1, 0.2))
                }
            })
            .collect()
    }
}

impl From<SyntheticProblem> for String {
    fn from(problem: SyntheticProblem) -> Self {
        problem.to_string()
    }
}

impl TryFrom<String> for SyntheticProblem {
    type Error = TargetError;

    fn try_from(name: String) -> Result<Self, TargetError> {
        Self::parse(&name)
    }
}

impl fmt::Display for SyntheticProblem {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PosCorr => "poscorr".fmt(to),
            Self::NegCorr => "negcorr".fmt(to),
            Self::Indep => "indep".fmt(to),
            Self::Large(arms) => format_args!("large{arms}").fmt(to),
            Self::LowCens => "lowcens".fmt(to),
        }
    }
}

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
