//! The paper's problems by name.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::distribution::{Distribution, Gaussian, Independent};
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
