//! Why a pull was chosen, in numbers.

use serde::Serialize;

use super::estimate::{Estimates, Stat};
use super::tournament::Line;
use crate::round::{ArmId, Limit, Pull};

/// What decided a choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
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

/// Where a schedule was when it gave a pull its turn.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Turn {
    /// A rung of successive halving.
    Rung {
        /// The rung, counted from 1.
        rung: u32,
        /// How many a bracket has.
        rungs: u32,
        /// Arms that are left in it.
        arms: usize,
        /// Which run of the arm in this rung this is, counted from 1.
        run: u32,
        /// How many runs each arm has in it.
        runs: u32,
    },
    /// One more run of a race's incumbent.
    Incumbent {
        /// Its runs so far.
        met: usize,
    },
    /// A challenger's next run in a race.
    Challenge {
        /// Whom it challenges.
        incumbent: ArmId,
        /// Which run of the challenger this is, counted from 1.
        run: usize,
        /// The incumbent's runs that it has to get through.
        of: usize,
        /// What it has lost so far.
        lost: f64,
        /// What the incumbent lost in the same runs.
        incumbent_lost: f64,
        /// What it may still lose in this run.
        left: f64,
    },
    /// Draws are compared at the largest limit only: a share of the consumption is kept for that.
    Largest,
    /// A rung of continuous halving at one level of the limit.
    Level {
        /// The rung, counted from 1.
        rung: u32,
        /// How many there are now.
        rungs: u32,
        /// The best arms that it is for.
        arms: usize,
        /// Instances that the arm has met at this limit.
        met: u32,
        /// Instances there are.
        instances: u32,
    },
    /// Nothing has ended yet, so limits climb.
    Climb,
    /// Nothing is left to try once: the arms that may be best run again.
    Repeat,
    /// A look at another arm, while the first incumbent's first run is under way.
    Meanwhile,
}

/// A pair as the policy saw it when it chose.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Weighed {
    /// The arm and limit.
    pub pull: Pull,
    /// The limit its gain was compared at: its own, unless the arm climbs to a larger one step by step.
    pub compared_at: Limit,
    /// What was compared: mean + width + refinement, or a draw. Infinite (null in JSON) where nothing is known, not a
    /// number (null) where nothing was compared.
    pub index: f64,
    /// The gain at `compared_at`: estimated (nu-hat), or believed where draws are compared.
    pub mean: f64,
    /// Confidence width of an index; half the interval elsewhere.
    pub width: f64,
    /// 95 % interval around the gain at `compared_at`, estimated or believed.
    pub interval: (f64, f64),
    /// z-RCUCB's share for the size of the cell; 0 elsewhere.
    pub refinement: f64,
    /// Observed pulls that tell about this pair, N_{i,tau}.
    pub count: u64,
    /// Observed pulls of the arm at any limit, N_{i,0}.
    pub arm_count: u64,
    /// Pulls under way that will tell about this pair.
    pub pending: u64,
    /// Share of pulls still running at the limit, estimated or believed.
    pub survival: f64,
}

/// Why the last choice was made.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Explanation {
    /// What decided.
    pub why: Why,
    /// The pair that was chosen.
    pub chosen: Option<Weighed>,
    /// The pair that would have been next; in a race the incumbent that is challenged.
    pub runner_up: Option<Weighed>,
    /// Where the schedule is, if one decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn: Option<Turn>,
}

impl Explanation {
    /// Nothing was chosen.
    pub const NOTHING: Self = Self {
        why: Why::Nothing,
        chosen: None,
        runner_up: None,
        turn: None,
    };
}

/// The last choice of a policy that draws or keeps a schedule: what was ahead, and what came next.
#[derive(Debug, Clone, Copy)]
pub(super) struct Last<T = usize> {
    pub why: Why,
    pub chosen: Option<(T, f64)>,
    pub runner_up: Option<(T, f64)>,
    pub turn: Option<Turn>,
}

impl<T: Copy> Last<T> {
    pub const NOTHING: Self = Self::by(Why::Nothing);

    /// Nothing yet; this will decide.
    pub const fn by(why: Why) -> Self {
        Self {
            why,
            chosen: None,
            runner_up: None,
            turn: None,
        }
    }

    /// A choice without a comparison.
    pub fn plain(why: Why, chosen: T) -> Self {
        Self {
            chosen: Some((chosen, f64::NAN)),
            ..Self::by(why)
        }
    }

    /// A first pull, with a limit that is larger than all before.
    pub fn climb(chosen: T) -> Self {
        Self {
            turn: Some(Turn::Climb),
            ..Self::plain(Why::Opening, chosen)
        }
    }

    /// A choice that a schedule made.
    pub fn turn(chosen: T, next: Option<T>, turn: Turn) -> Self {
        Self {
            runner_up: next.map(|next| (next, f64::NAN)),
            turn: Some(turn),
            ..Self::plain(Why::Turn, chosen)
        }
    }

    /// Enters one draw; of equals the first stays ahead.
    #[inline]
    pub fn enter(&mut self, what: T, draw: f64) {
        if self.chosen.is_none_or(|(_, best)| draw > best) {
            self.runner_up = self.chosen;
            self.chosen = Some((what, draw));
        } else if self.runner_up.is_none_or(|(_, best)| draw > best) {
            self.runner_up = Some((what, draw));
        }
    }

    pub fn explain(&self, weighed: impl Fn(T, f64) -> Weighed) -> Explanation {
        let weighed = |(what, draw)| weighed(what, draw);
        Explanation {
            why: self.why,
            chosen: self.chosen.map(weighed),
            runner_up: self.runner_up.map(weighed),
            turn: self.turn,
        }
    }
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
    /// The choice of a pair with these counts, with widths multiplied by `s`.
    pub fn choice(pair: (usize, usize), stat: &Stat, s: f64) -> Self {
        let is_first = stat.count + stat.pending == 0;
        Self {
            why: if is_first { Why::Opening } else { Why::Index },
            s,
            pair: Some(pair),
        }
    }

    /// Looks at all pairs once more to find the runner-up, by the lines the choice was made by.
    pub fn explain<'a>(
        &self,
        arms: usize,
        lines_of: impl Fn(usize) -> &'a [Line],
        weighed: impl Fn(usize, usize) -> Weighed,
    ) -> Explanation {
        let Some(chosen) = self.pair else {
            return Explanation {
                why: self.why,
                ..Explanation::NOTHING
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
        let seen = |((arm, k), line): ((usize, usize), Line)| weighed(arm, k).by(line, self.s);
        Explanation {
            why: self.why,
            chosen: Some(seen((chosen, of_chosen))),
            runner_up: runner_up.map(seen),
            turn: None,
        }
    }
}

impl Weighed {
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
    /// A pair, by its place among all, as the estimates show it; the width is that of the interval.
    pub(super) fn pair(&self, pair: usize, index: f64) -> Weighed {
        let points = self.limits().len();
        self.weighed(pair / points, pair % points, index)
    }

    /// A pair as the estimates show it; the width is that of the interval.
    pub(super) fn weighed(&self, arm: usize, k: usize, index: f64) -> Weighed {
        let stat = &self.of_arm(arm)[k];
        let known = self.recommendation(arm, k);
        Weighed {
            pull: known.pull,
            compared_at: known.pull.limit,
            index,
            mean: known.gain,
            width: if stat.count == 0 {
                f64::INFINITY
            } else {
                (known.interval.1 - known.interval.0) / 2.0
            },
            interval: known.interval,
            refinement: 0.0,
            count: known.pulls,
            arm_count: u64::from(self.arm_count(arm).observed),
            pending: u64::from(stat.pending),
            survival: known.censored,
        }
    }
}
