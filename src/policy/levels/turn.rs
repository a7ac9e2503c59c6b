//! What the policy says about its choices.

use serde::Serialize;

use crate::policy::Weighed;
use crate::policy::Why;
use crate::policy::explanation::{Last, Turn, TurnState};
use crate::quantity::counted;

/// Where the search was when it chose.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum LevelsTurn {
    /// Nothing has ended yet, so limits climb.
    Climb,
    /// Draws are compared at the largest limit: a share of the consumption is kept for that.
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
    /// Nothing is left to try once: the arms that may be best run again.
    Repeat,
}

impl<T: Copy> Last<T, LevelsTurn> {
    /// A first pull, with a limit that is larger than all before.
    pub(super) fn climb(chosen: T) -> Self {
        Self {
            turn: Some(LevelsTurn::Climb),
            ..Self::plain(Why::Opening, chosen)
        }
    }
}

impl TurnState for LevelsTurn {
    fn in_words(self, chosen: Option<&Weighed>, best: Option<&Weighed>) -> Turn {
        match self {
            Self::Climb => Turn::new(
                &self,
                "no run has earned a reward yet, so every pull gets the next larger limit, with another arm; past the largest limit, the one that was granted least",
            )
            .otherwise("nothing: the climb ends with the first reward"),
            Self::Largest => Turn::new(
                &self,
                "it had the largest random draw from the posterior at the largest limit, which gets a share of the consumption",
            ),
            Self::Level {
                rung,
                rungs,
                arms,
                met,
                instances,
            } => {
                let of = counted(instances.into(), "instance");
                let reason = format!(
                    "its turn in rung {rung} of {rungs}, which has used the least so far; the rung is for the {arms} best arms by posterior mean that have instances left, and this one has met the fewest instances at this limit: {met} of {of}"
                );
                let leaves = if rung == 1 {
                    "nothing: all arms take part in the lowest rung, the one with the fewest instances first"
                } else {
                    "the arm leaves the rung if others overtake its posterior mean gain"
                };
                let otherwise = match chosen.zip(best).and_then(answer_changes) {
                    Some(change) => format!("{leaves}; {change}"),
                    None => leaves.to_owned(),
                };
                Turn::new(&self, reason)
                    .otherwise(otherwise)
                    .second("best so far")
            }
            Self::Repeat => Turn::new(
                &self,
                "every arm that may be the best has met every instance, so they run again",
            )
            .otherwise("nothing: another arm comes first only if repeated runs differ"),
        }
    }
}

/// What would make the arm of a rung the answer, if it is not the best so far.
fn answer_changes((chosen, best): (&Weighed, &Weighed)) -> Option<String> {
    let (gap, doubt) = (best.mean - chosen.mean, chosen.width.hypot(best.width));
    let chance = if doubt > gap {
        "what is known so far allows"
    } else {
        "what is known so far makes unlikely"
    };
    (gap > 0.0).then(|| {
        format!(
            "arm {} becomes the answer if its expected gain rises by more than {gap:.6} against that of arm {}, which {chance}",
            chosen.pull.arm, best.pull.arm
        )
    })
}
