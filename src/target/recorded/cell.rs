//! One recorded run, and how its measurement is written.

/// What is known of one run of an arm on an instance.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Run {
    /// It ended within the cutoff.
    Ended {
        /// What it used.
        consumption: f64,
        /// In [0, 1].
        reward: f64,
    },
    /// It was still running at the cutoff.
    Unsolved,
    /// It ended without a result. A failure at any limit: when it happened is seldom recorded.
    Failed {
        /// What it used; infinite if nobody wrote that down.
        after: f64,
    },
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

/// How a run ended, by its word; none for a word we do not know.
pub(super) fn ended_as(word: &str, consumption: f64, cutoff: f64) -> Option<Run> {
    Some(match word.to_ascii_lowercase().as_str() {
        "ok" => within(consumption, cutoff),
        "timeout" | "unsolved" => Run::Unsolved,
        "memout" | "not_applicable" | "crash" | "other" | "failed" => {
            Run::Failed { after: consumption }
        }
        _ => return None,
    })
}

/// A run that ended; past the cutoff that counts for nothing, since others were stopped there.
pub(super) fn within(consumption: f64, cutoff: f64) -> Run {
    if consumption > cutoff {
        Run::Unsolved
    } else {
        Run::Ended {
            consumption,
            reward: 1.0,
        }
    }
}
