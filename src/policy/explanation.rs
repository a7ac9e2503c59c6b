//! Why a pull was chosen, in numbers.

use serde::Serialize;

use super::estimate::Estimates;
use super::tournament::Line;
use crate::round::Pull;

/// What decided a choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Why {
    /// Nothing was chosen yet.
    Nothing,
    /// The opening: something that had to be played first.
    Opening,
    /// The largest index.
    Index,
    /// The largest of random draws from what is believed.
    Sample,
    /// Plain chance.
    Chance,
    /// Its turn in a schedule.
    Turn,
}

/// A pair as the policy saw it when it chose.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Candidate {
    /// The arm and limit.
    pub pull: Pull,
    /// What was compared: mean + width + refinement, or a draw. Infinite (null in JSON) where nothing is known.
    pub index: f64,
    /// Estimated gain, nu-hat.
    pub mean: f64,
    /// Confidence width.
    pub width: f64,
    /// z-RCUCB's share for the size of the cell; 0 elsewhere.
    pub refinement: f64,
    /// Observed pulls that tell about this pair, N_{i,tau}.
    pub count: u64,
    /// Observed pulls of the arm at any limit, N_{i,0}.
    pub arm_count: u64,
    /// Pulls under way that will tell about this pair.
    pub pending: u64,
    /// Estimated share of pulls still running at the limit.
    pub survival: f64,
}

/// Why the last choice was made.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Explanation {
    /// What decided.
    pub why: Why,
    /// The pair that was chosen.
    pub chosen: Option<Candidate>,
    /// The pair that would have been next.
    pub runner_up: Option<Candidate>,
}

/// The last choice of a policy that compares indices, enough to explain it when asked.
#[derive(Debug, Clone, Copy)]
pub(super) struct Remembered {
    pub why: Why,
    /// What widths were multiplied by.
    pub s: f64,
    /// The arm and limit chosen.
    pub pair: Option<(usize, usize)>,
}

impl Default for Remembered {
    fn default() -> Self {
        Self {
            why: Why::Nothing,
            s: 0.0,
            pair: None,
        }
    }
}

impl Remembered {
    /// Looks at all pairs once more to find the runner-up, by the lines the choice was made by.
    pub fn explain<'a>(
        &self,
        arms: usize,
        lines_of: impl Fn(usize) -> &'a [Line],
        candidate: impl Fn(usize, usize) -> Candidate,
    ) -> Explanation {
        let Some(chosen) = self.pair else {
            return Explanation {
                why: self.why,
                chosen: None,
                runner_up: None,
            };
        };
        let mut runner_up: Option<((usize, usize), Line)> = None;
        let mut of_chosen = Line::FIRST;
        for arm in 0..arms {
            for (k, &line) in lines_of(arm).iter().enumerate() {
                if (arm, k) == chosen {
                    of_chosen = line;
                } else if runner_up.is_none_or(|(_, best)| line.at(self.s) > best.at(self.s)) {
                    runner_up = Some(((arm, k), line));
                }
            }
        }
        let seen = |((arm, k), line): ((usize, usize), Line)| candidate(arm, k).by(line, self.s);
        Explanation {
            why: self.why,
            chosen: Some(seen((chosen, of_chosen))),
            runner_up: runner_up.map(seen),
        }
    }
}

impl Candidate {
    /// With the index, mean and width its line has at s.
    fn by(mut self, line: Line, s: f64) -> Self {
        self.index = match line {
            Line::FIRST => f64::INFINITY,
            Line::LAST => f64::NEG_INFINITY,
            known => known.at(s),
        };
        let is_known = self.index.is_finite();
        self.mean = if is_known {
            line.mean - self.refinement
        } else {
            f64::NAN
        };
        self.width = if is_known {
            s * line.width
        } else {
            f64::INFINITY
        };
        self
    }
}

impl Estimates {
    /// A pair as the estimates show it, for policies that draw: the width is that of the interval.
    pub(super) fn candidate(&self, arm: usize, k: usize, index: f64) -> Candidate {
        let stat = &self.of_arm(arm)[k];
        let known = self.recommendation(arm, k);
        Candidate {
            pull: known.pull,
            index,
            mean: known.gain,
            width: if stat.count == 0 {
                f64::INFINITY
            } else {
                (known.interval.1 - known.interval.0) / 2.0
            },
            refinement: 0.0,
            count: known.pulls,
            arm_count: u64::from(self.arm_count(arm).observed),
            pending: u64::from(stat.pending),
            survival: known.censored,
        }
    }
}
