//! Why a pull was chosen, in numbers and words.

use serde::Serialize;

use super::estimate::{Estimates, Stat};
use super::tournament::Line;
use crate::quantity::counted;
use crate::round::{Limit, Pull};

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
    /// Its turn in a schedule, which the policy itself puts into words.
    Turn,
}

/// What a policy says about its own choice, where the general words for [`Why`] are not enough.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Turn {
    /// Where the policy was when it chose, for programs.
    pub state: serde_json::Value,
    /// What decided.
    pub reason: String,
    /// What would have to happen for another choice, if that is not what follows from [`Why`].
    pub otherwise: Option<String>,
    /// What the second pair of the explanation is.
    pub second: &'static str,
}

impl Turn {
    /// A turn with this reason. `state` is what the policy keeps about it.
    pub(super) fn new(state: &impl Serialize, reason: impl Into<String>) -> Self {
        Self {
            state: serde_json::to_value(state).unwrap_or_default(),
            reason: reason.into(),
            otherwise: None,
            second: RUNNER_UP,
        }
    }

    /// With what would have to happen for another choice.
    pub(super) fn otherwise(mut self, text: impl Into<String>) -> Self {
        self.otherwise = Some(text.into());
        self
    }

    /// With the name of the second pair.
    pub(super) fn second(mut self, name: &'static str) -> Self {
        self.second = name;
        self
    }
}

/// What the second pair of an explanation is, unless the policy says otherwise.
const RUNNER_UP: &str = "runner-up";

/// Where a policy was when it chose, kept as numbers. Words are made of it only on request, because choosing must be fast.
pub(super) trait TurnState: Copy {
    /// This choice in the words of the policy.
    fn in_words(self, chosen: Option<&Weighed>, second: Option<&Weighed>) -> Turn;
}

/// The state of a policy whose choices [`Why`] explains.
#[derive(Debug, Clone, Copy)]
pub(super) enum NoTurn {}

impl TurnState for NoTurn {
    fn in_words(self, _: Option<&Weighed>, _: Option<&Weighed>) -> Turn {
        match self {}
    }
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
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Explanation {
    /// What decided.
    pub why: Why,
    /// The pair that was chosen.
    pub chosen: Option<Weighed>,
    /// The pair that would have been next, or the one that [`second`](Self::second) names.
    pub runner_up: Option<Weighed>,
    /// What the policy itself says about the choice.
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

    /// What decided, in words.
    pub fn reason(&self) -> &str {
        if let Some(turn) = &self.turn {
            return &turn.reason;
        }
        match self.why {
            Why::Opening => "the opening: it had to be played first",
            Why::Index => "it had the largest index",
            Why::Sample => "it had the largest random draw from the posterior",
            Why::Chance => "it was chosen at random",
            Why::Turn => "it was its turn",
            Why::Nothing => "the reason is not known",
        }
    }

    /// What the second pair is to the chosen one: its runner-up, unless the policy says otherwise.
    pub fn second(&self) -> &'static str {
        self.turn.as_ref().map_or(RUNNER_UP, |turn| turn.second)
    }

    /// What would have to happen for another choice, in words.
    pub fn otherwise(&self) -> Option<String> {
        if let Some(text) = self.turn.as_ref().and_then(|turn| turn.otherwise.clone()) {
            return Some(text);
        }
        let gap = match (self.chosen, self.runner_up) {
            (Some(chosen), Some(runner_up)) => chosen.index - runner_up.index,
            _ => f64::NAN,
        };
        match self.why {
            Why::Opening => Some("nothing: it had to be played before any comparison".into()),
            Why::Chance => Some("another seed may choose another pair".into()),
            Why::Sample if gap.is_finite() => Some(format!(
                "the runner-up's draw was {gap:.6} lower; draws are random, so another seed may choose it"
            )),
            Why::Sample => Some("nothing: there was no other pair to draw for".into()),
            Why::Index if gap.is_finite() => Some(self.chosen?.overtaken_by(gap)),
            Why::Index if self.chosen?.index == f64::INFINITY => Some(
                "nothing is known about it, so it is tried first; then the largest index decides"
                    .into(),
            ),
            Why::Index => Some("nothing: there was no other pair to compare with".into()),
            Why::Turn | Why::Nothing => None,
        }
    }
}

/// The last choice of a policy that draws or keeps a schedule: what was ahead, and what came next.
#[derive(Debug, Clone, Copy)]
pub(super) struct Last<T = usize, S = NoTurn> {
    pub why: Why,
    pub chosen: Option<(T, f64)>,
    pub runner_up: Option<(T, f64)>,
    pub turn: Option<S>,
}

impl<T: Copy, S: TurnState> Last<T, S> {
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

    /// A choice that a schedule made.
    pub fn turn(chosen: T, next: Option<T>, turn: S) -> Self {
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
        let (chosen, runner_up) = (self.chosen.map(weighed), self.runner_up.map(weighed));
        let in_words = |turn: S| turn.in_words(chosen.as_ref(), runner_up.as_ref());
        Explanation {
            why: self.why,
            chosen,
            runner_up,
            turn: self.turn.map(in_words),
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
    /// How the runner-up could get the largest index, if it is behind by so much.
    fn overtaken_by(&self, gap: f64) -> String {
        let mut text = format!(
            "the runner-up comes first if the mean of the chosen pair falls by more than {gap:.6}, or its own rises by as much"
        );
        // A width shrinks with the square root of the number of pulls, or a little slower.
        let left = self.width - gap;
        if self.width.is_finite() && left > 0.0 && self.count > 0 {
            let pulls = self.count as f64 * ((self.width / left).powi(2) - 1.0);
            let more = counted(pulls.ceil().max(1.0) as u64, "more pull");
            text += "; if both means stay as they are, the shrinking width of the chosen pair does that after about ";
            text += &more;
            text += " of it";
        }
        text
    }

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
