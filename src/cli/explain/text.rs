//! A choice in words and numbers.

use std::fmt::Write as _;

use crate::journal::{By, PullRecord};
use crate::markup::visible;
use crate::policy::{Explanation, Turn, Weighed, Why};
use crate::progress::Words;
use crate::quantity::counted;

/// The whole explanation.
pub(super) fn as_text(pull: &PullRecord, explanation: &Explanation, words: &Words<'_>) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(
        out,
        "round {}: {} up to {}, chosen after {} outcomes",
        pull.round,
        words.arm(pull.arm),
        words.limit(pull.limit),
        pull.seen
    );
    if let Some(origin) = words.origin(pull.arm) {
        let _ = writeln!(out, "arm {}: {}", pull.arm, visible(&origin.to_string()));
    }
    let _ = writeln!(out, "why: {}", reason(pull, explanation, words));
    let second = match explanation.turn {
        Some(Turn::Rung { .. }) => "next",
        Some(Turn::Challenge { .. }) => "incumbent",
        Some(Turn::Level { .. }) => "best so far",
        _ => "runner-up",
    };
    for (what, weighed) in [
        ("chosen", &explanation.chosen),
        (second, &explanation.runner_up),
    ] {
        if let Some(weighed) = weighed {
            describe(what, explanation.why, weighed, words, &mut out);
        }
    }
    if let Some(text) = otherwise(explanation) {
        let _ = writeln!(out, "otherwise: {text}");
    }
    out
}

/// What decided.
fn reason(pull: &PullRecord, explanation: &Explanation, words: &Words<'_>) -> String {
    let plain = match (pull.by, explanation.why) {
        (Some(By::Calibration), _) => "calibration: run once under the guard, to find the limits",
        (Some(By::Probe), _) => "a probe of another arm, because the first pulls all failed",
        (Some(By::Record), _) => "`captime record` runs every arm in turn; no policy chose it",
        (Some(By::Earlier), _) => {
            "it was taken over from an earlier run; no policy of this run chose it"
        }
        (Some(By::Test), _) => "`captime test` runs these arms side by side; no policy chose it",
        (None, Why::Opening) if explanation.turn == Some(Turn::Climb) => {
            "no run has earned a reward yet, so every pull gets the next larger limit, with another arm; past the largest limit, the one that was granted least"
        }
        (None, Why::Opening) => "the opening: it had to be played first",
        (None, Why::Index) => "it had the largest index",
        (None, Why::Sample) if explanation.turn == Some(Turn::Largest) => {
            "it had the largest random draw from the posterior at the largest limit, which gets a share of the consumption"
        }
        (None, Why::Sample) => "it had the largest random draw from the posterior",
        (None, Why::Chance) => "it was chosen at random",
        (None, Why::Nothing) => "the reason is not known",
        (None, Why::Turn) => {
            return explanation
                .turn
                .map_or_else(String::new, |turn| its_turn(turn, words));
        }
    };
    plain.into()
}

/// The position in a schedule.
fn its_turn(turn: Turn, words: &Words<'_>) -> String {
    match turn {
        Turn::Rung {
            rung,
            rungs,
            arms,
            run,
            runs,
        } => {
            let (arms, runs_of) = (counted(arms as u64, "arm"), counted(runs.into(), "run"));
            let which = if run > runs {
                "it has had them all, but slots continue rather than wait for the others".to_owned()
            } else {
                format!("this is its run {run}")
            };
            format!(
                "its turn in rung {rung} of {rungs}, with {arms} left and {runs_of} of each at this limit; {which}"
            )
        }
        Turn::Incumbent { met: 0 } => {
            "it is the incumbent, the first arm: others are compared with its runs".into()
        }
        Turn::Incumbent { met } => format!(
            "it is the incumbent, with {}: it runs once more after every challenge, at the largest limit",
            counted(met as u64, "run")
        ),
        Turn::Challenge {
            incumbent,
            run,
            of,
            lost,
            incumbent_lost,
            left,
        } => {
            let incumbent = words.arm(incumbent);
            let so_far = if run == 1 {
                String::new()
            } else {
                format!(
                    " it lost {lost:.6} so far, the incumbent {incumbent_lost:.6} in the same runs;"
                )
            };
            format!(
                "it challenges the incumbent, {incumbent}: run {run} of {of};{so_far} it may lose {left:.6} more, which sets its limit"
            )
        }
        Turn::Level {
            rung,
            rungs,
            arms,
            met,
            instances,
        } => {
            let of = counted(instances.into(), "instance");
            format!(
                "its turn in rung {rung} of {rungs}, which has used the least so far; the rung is for the {arms} best arms by posterior mean, and this one has met the fewest instances at this limit: {met} of {of}"
            )
        }
        Turn::Climb => "limits climb until a run earns a reward".into(),
        Turn::Repeat => {
            "every arm that may be the best has met every instance, so they run again".into()
        }
        Turn::Largest => "draws are compared at the largest limit only".into(),
        Turn::Meanwhile => "another arm runs while the incumbent's first run is under way".into(),
    }
}

/// What would have to happen for another choice.
fn otherwise(explanation: &Explanation) -> Option<String> {
    if let (Why::Turn, Some(turn)) = (explanation.why, explanation.turn) {
        return Some(match answer_changes(explanation) {
            Some(change) => format!("{}; {change}", after(turn)),
            None => after(turn),
        });
    }
    let gap = match (explanation.chosen, explanation.runner_up) {
        (Some(chosen), Some(runner_up)) => chosen.index - runner_up.index,
        _ => f64::NAN,
    };
    match explanation.why {
        Why::Opening => Some("nothing: it had to be played before any comparison".into()),
        Why::Chance => Some("another seed may choose another pair".into()),
        Why::Sample if gap.is_finite() => Some(format!(
            "the runner-up's draw was {gap:.6} lower; draws are random, so another seed may choose it"
        )),
        Why::Sample => Some("nothing: there was no other pair to draw for".into()),
        Why::Index if gap.is_finite() => Some(overtaken(&explanation.chosen?, gap)),
        Why::Index if explanation.chosen?.index == f64::INFINITY => Some(
            "nothing is known about it, so it is tried first; then the largest index decides"
                .into(),
        ),
        Why::Index => Some("nothing: there was no other pair to compare with".into()),
        Why::Turn | Why::Nothing => None,
    }
}

/// What ends the turn of a schedule. Observations cannot change it before that.
fn after(turn: Turn) -> String {
    match turn {
        Turn::Rung {
            rung, rungs, runs, ..
        } if rung == rungs => format!(
            "nothing: the schedule decides; when this rung is over, all arms begin again with {} each",
            counted(u64::from(runs) * 2, "run")
        ),
        Turn::Rung { arms, runs, .. } => {
            let (arms, runs) = (counted(arms as u64, "arm"), counted(runs.into(), "run"));
            format!(
                "nothing: the schedule decides; the rung is over when each of {arms} has had {runs}, then the better half by gain at this limit continues with about twice the limit"
            )
        }
        Turn::Incumbent { .. } => {
            "nothing: the schedule decides; another arm replaces it by completing all its runs with less lost".into()
        }
        Turn::Challenge { of, .. } => format!(
            "nothing: the schedule decides; the challenge is over when a run is cut off, or when more is lost than the incumbent lost in its first 1, 2, 4, ... runs; with less lost in all {of} it takes the incumbent's place"
        ),
        Turn::Level { rung: 1, .. } => {
            "nothing: all arms take part in the lowest rung, the one with the fewest instances first".into()
        }
        Turn::Climb => "nothing: the climb ends with the first reward".into(),
        Turn::Level { .. } => {
            "the arm leaves the rung if others overtake its posterior mean gain".into()
        }
        Turn::Repeat => "nothing: another arm comes first only if repeated runs differ".into(),
        Turn::Largest => "the largest draw decides".into(),
        Turn::Meanwhile => "nothing: the schedule decides; challenges begin when the incumbent's run has ended".into(),
    }
}

/// What would make the arm of a rung the answer, if it is not the best so far.
fn answer_changes(explanation: &Explanation) -> Option<String> {
    let (Some(Turn::Level { .. }), Some(chosen), Some(best)) =
        (explanation.turn, explanation.chosen, explanation.runner_up)
    else {
        return None;
    };
    let (gap, doubt) = (best.mean - chosen.mean, chosen.width.hypot(best.width));
    let is_open = doubt > gap;
    (gap > 0.0).then(|| {
        format!(
            "arm {} becomes the answer if its expected gain rises by more than {gap:.6} against that of arm {}, which {}",
            chosen.pull.arm,
            best.pull.arm,
            if is_open {
                "what is known so far allows"
            } else {
                "what is known so far makes unlikely"
            }
        )
    })
}

/// How the runner-up could get the largest index.
fn overtaken(chosen: &Weighed, gap: f64) -> String {
    let mut text = format!(
        "the runner-up comes first if the mean of the chosen pair falls by more than {gap:.6}, or its own rises by as much"
    );
    // A width shrinks with the square root of the number of pulls, or a little slower.
    let left = chosen.width - gap;
    if chosen.width.is_finite() && left > 0.0 && chosen.count > 0 {
        let pulls = chosen.count as f64 * ((chosen.width / left).powi(2) - 1.0);
        let more = counted(pulls.ceil().max(1.0) as u64, "more pull");
        let _ = write!(
            text,
            "; if both means stay as they are, the shrinking width of the chosen pair does that after about {more} of it"
        );
    }
    text
}

fn describe(what: &str, why: Why, weighed: &Weighed, words: &Words<'_>, out: &mut String) {
    let _ = writeln!(
        out,
        "{what}: {} up to {}",
        words.arm(weighed.pull.arm),
        words.limit(weighed.pull.limit)
    );
    let Weighed {
        index,
        mean,
        width,
        refinement,
        interval: (low, high),
        count,
        arm_count,
        pending,
        ..
    } = *weighed;
    let _ = match why {
        Why::Index if !index.is_finite() => {
            writeln!(out, "  no index yet: it was never observed")
        }
        Why::Index if refinement == 0.0 => {
            writeln!(
                out,
                "  index {index:.6} = mean {mean:.6} + width {width:.6}"
            )
        }
        Why::Index => writeln!(
            out,
            "  index {index:.6} = mean {mean:.6} + width {width:.6} + refinement {refinement:.6}"
        ),
        // The distance of a draw from its mean is chance.
        Why::Sample if index.is_finite() => writeln!(
            out,
            "  drawn gain {index:.6}{}; posterior mean {mean:.6}, 95 % interval {low:.6} to {high:.6}",
            climbing(weighed, words)
        ),
        _ if count > 0 => writeln!(
            out,
            "  mean gain so far {mean:.6}, 95 % interval {low:.6} to {high:.6}"
        ),
        _ => writeln!(out, "  nothing is known about it yet"),
    };
    let running = if weighed.survival.is_finite() {
        format!(
            "; {:.1} % still running at the limit",
            100.0 * weighed.survival
        )
    } else {
        String::new()
    };
    let pulls = counted(count, "pull");
    let _ = writeln!(
        out,
        "  from {pulls}, {arm_count} of this arm in total, {pending} under way{running}"
    );
}

/// If the draw is for another limit than the one that is played.
fn climbing(weighed: &Weighed, words: &Words<'_>) -> String {
    if weighed.compared_at == weighed.pull.limit {
        return String::new();
    }
    let (aim, limit) = (
        words.limit(weighed.compared_at),
        words.limit(weighed.pull.limit),
    );
    format!(" at {aim}, where arms are compared; this run goes up to {limit}")
}

#[cfg(test)]
mod tests;
