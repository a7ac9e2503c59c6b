//! Why a scenario cannot be studied.

use crate::target::TargetError;

/// Why a scenario cannot be studied.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum StudyError {
    /// What is really run needs a folder to go on from.
    #[error(
        "the target is `{target}`, whose pulls are really run: give the journals a folder with `--out`"
    )]
    NotVirtual {
        /// What the scenario calls it.
        target: &'static str,
    },
    /// Nobody here could run its pulls.
    #[error("the target is `external`: its pulls are run by somebody else")]
    External,
    /// The best pair must be known before the first round.
    #[error("limits are to be calibrated, but a study compares policies on the same limits")]
    Calibrated,
    /// All instances are kept back.
    #[error("every instance is kept back for the test")]
    NothingToTrainOn,
    /// Answers are judged on instances that nobody has seen.
    #[error(
        "the target is `{target}`, but a budget of CPU time needs runs on instances: a `recorded` one"
    )]
    NotRecorded {
        /// What the scenario calls it.
        target: &'static str,
    },
    /// No instance is kept back.
    #[error("there is no instance to judge an answer on")]
    NothingToTestOn,
    /// The target itself cannot be had.
    #[error(transparent)]
    Target(#[from] TargetError),
}

impl StudyError {
    /// What the user can change to get past this.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::NotVirtual { .. } => Some(
                "or measure every arm once: `captime record` writes a matrix that `recorded` replays in no time"
                    .into(),
            ),
            Self::External => Some(
                "`captime ask` plays with it, one policy at a time; a study needs a command, a forest, recorded runs or a synthetic problem"
                    .into(),
            ),
            Self::Calibrated => Some("write them down, like `grid: [1s, 10s, 100s]`".into()),
            Self::NothingToTrainOn => Some("list fewer instances under `test`".into()),
            Self::NotRecorded { .. } => Some(
                "`--rounds` compares policies by their regret on any target in virtual time".into(),
            ),
            Self::NothingToTestOn => Some("record at least two instances".into()),
            Self::Target(error) => error.hint(),
        }
    }
}
