//! Why a scenario cannot be studied.

use crate::target::TargetError;

/// Why a scenario cannot be studied.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum StudyError {
    /// A study on real runs needs a folder to resume from.
    #[error(
        "the target is `{target}`, which takes real time: choose a folder for the journals with `--out`"
    )]
    NotVirtual {
        /// What the scenario calls it.
        target: &'static str,
    },
    /// captime cannot run its pulls.
    #[error("the target is `external`, so captime does not run its pulls")]
    External,
    /// The best pair must be known before the first round.
    #[error("limits are to be calibrated, but a study compares policies on the same limits")]
    Calibrated,
    /// All instances are held out.
    #[error("every instance is held out for the test")]
    NothingToTrainOn,
    /// Answers are judged on unseen instances.
    #[error(
        "the target is `{target}`, but a budget of CPU time needs runs on instances: a `recorded` one"
    )]
    NotRecorded {
        /// What the scenario calls it.
        target: &'static str,
    },
    /// No instance is held out.
    #[error("there is no instance to judge an answer on")]
    NothingToTestOn,
    /// The target itself cannot be used.
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
