//! One recorded run, and how its measurement is written.

use crate::round::{Limit, Observation, Price, Pull};
use crate::simulated::Ran;

/// What is known about one run of an arm on an instance.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum RecordedRun {
    /// It ended within the cutoff.
    Ended {
        /// What it used.
        consumption: f64,
        /// In [0, 1].
        reward: f64,
    },
    /// It was still running at the cutoff.
    Unsolved,
    /// It ended without a result. Counts as a failure at any limit, because the time of the failure is seldom recorded.
    Failed {
        /// What it used; infinite if that was not recorded.
        after: f64,
    },
}

impl RecordedRun {
    /// What it uses under this limit.
    pub(super) fn consumption(&self, limit: Limit) -> f64 {
        match self {
            Self::Ended { consumption, .. } => consumption.min(limit.get()),
            Self::Unsolved => limit.get(),
            Self::Failed { after } => after.min(limit.get()),
        }
    }

    /// This run as that of a pull.
    pub(super) fn ran(&self, pull: Pull) -> Ran {
        let seen = match *self {
            Self::Ended {
                consumption,
                reward,
            } => Observation::ended(pull, reward, consumption),
            Self::Unsolved => Observation::censored(pull, pull.limit.get()),
            Self::Failed { .. } => Ok(Observation::failed(pull)),
        };
        Ran {
            observation: seen.expect("runs are checked when they are read"),
            consumption: self.consumption(pull.limit),
        }
    }

    /// Whether it ends with a reward within this limit.
    pub(super) fn is_rewarded(&self, limit: Limit) -> bool {
        matches!(self, Self::Ended { consumption, .. } if *consumption <= limit.get())
    }

    /// What it gains under this limit.
    pub(super) fn gain(&self, limit: Limit, price: &Price) -> f64 {
        match self {
            Self::Ended {
                consumption,
                reward,
            } if *consumption <= limit.get() => reward - price.cost(*consumption),
            _ => -price.penalty(limit),
        }
    }

    /// The time it took, ten cutoffs if it brought nothing.
    pub(super) fn par10(&self, cutoff: f64) -> f64 {
        match self {
            Self::Ended { consumption, .. } => *consumption,
            Self::Unsolved | Self::Failed { .. } => 10.0 * cutoff,
        }
    }
}

/// Words that say how a run ended; the first are those of ASlib.
pub(super) const WORDS: [&str; 8] = [
    "ok",
    "timeout",
    "memout",
    "not_applicable",
    "crash",
    "other",
    "unsolved",
    "failed",
];

/// How a run ended, by its word. `None` for an unknown word.
pub(super) fn ended_as(word: &str, consumption: f64, cutoff: f64) -> Option<RecordedRun> {
    Some(match word.to_ascii_lowercase().as_str() {
        "ok" => within(consumption, cutoff),
        "timeout" | "unsolved" => RecordedRun::Unsolved,
        "memout" | "not_applicable" | "crash" | "other" | "failed" => {
            RecordedRun::Failed { after: consumption }
        }
        _ => return None,
    })
}

/// A run that ended. Past the cutoff it counts as unsolved, because others were stopped there.
pub(super) fn within(consumption: f64, cutoff: f64) -> RecordedRun {
    if consumption > cutoff {
        RecordedRun::Unsolved
    } else {
        RecordedRun::Ended {
            consumption,
            reward: 1.0,
        }
    }
}
