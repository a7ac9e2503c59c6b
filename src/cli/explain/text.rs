//! A choice in words and numbers.

use std::fmt::Write as _;

use crate::journal::{By, PullRecord};
use crate::policy::{Explanation, Turn, Weighed, Why};
use crate::progress::Words;
use crate::quantity::counted;

/// The whole explanation.
pub(super) fn as_text(pull: &PullRecord, explanation: &Explanation, words: &Words) -> String {
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
    let _ = writeln!(out, "why: {}", reason(pull, explanation, words));
    let second = match explanation.turn {
        Some(Turn::Rung { .. }) => "next",
        Some(Turn::Challenge { .. }) => "incumbent",
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
fn reason(pull: &PullRecord, explanation: &Explanation, words: &Words) -> String {
    let plain = match (pull.by, explanation.why) {
        (Some(By::Calibration), _) => "calibration: run once under the guard, to find the limits",
        (Some(By::Probe), _) => "a look at other arms, since the first pulls all failed",
        (Some(By::Record), _) => "`captime record` runs every arm in its turn; no policy chose it",
        (None, Why::Opening) => "the opening: something that had to be played first",
        (None, Why::Index) => "it had the largest index",
        (None, Why::Sample) if explanation.turn == Some(Turn::Largest) => {
            "it had the largest of random draws from what is believed at the largest limit, for which a share of the consumption is kept"
        }
        (None, Why::Sample) => "it had the largest of random draws from what is believed",
        (None, Why::Chance) => "plain chance",
        (None, Why::Nothing) => "nothing is known about why",
        (None, Why::Turn) => {
            return explanation
                .turn
                .map_or_else(String::new, |turn| its_turn(turn, words));
        }
    };
    plain.into()
}

/// Where a schedule is.
fn its_turn(turn: Turn, words: &Words) -> String {
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
                "it has had them: slots run on rather than wait for the others".to_owned()
            } else {
                format!("this is its run {run}")
            };
            format!(
                "its turn in rung {rung} of {rungs}, with {arms} left and {runs_of} of each at this limit; {which}"
            )
        }
        Turn::Incumbent { met: 0 } => {
            "it is the incumbent, the first arm: others are measured by its runs".into()
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
                "it challenges the incumbent, {incumbent}: run {run} of {of};{so_far} it may lose {left:.6} more, which its limit is chosen for"
            )
        }
        Turn::Largest => "draws are compared at the largest limit only".into(),
        Turn::Meanwhile => {
            "a look at another arm, while the incumbent's first run is under way".into()
        }
    }
}

/// What would have to happen for another choice.
fn otherwise(explanation: &Explanation) -> Option<String> {
    if let (Why::Turn, Some(turn)) = (explanation.why, explanation.turn) {
        return Some(after(turn));
    }
    let gap = match (explanation.chosen, explanation.runner_up) {
        (Some(chosen), Some(runner_up)) => chosen.index - runner_up.index,
        _ => f64::NAN,
    };
    match explanation.why {
        Why::Opening => Some("nothing: it had to be played before anything else is compared".into()),
        Why::Chance => Some("another seed chooses another pair".into()),
        Why::Sample if gap.is_finite() => Some(format!(
            "the runner-up's draw was {gap:.6} lower; draws are random, so another seed may choose it"
        )),
        Why::Sample => Some("nothing: there was nothing else to draw for".into()),
        Why::Index if gap.is_finite() => Some(overtaken(&explanation.chosen?, gap)),
        Why::Index if explanation.chosen?.index == f64::INFINITY => Some(
            "it has to be tried before others: nothing is known about it; then the largest index decides".into(),
        ),
        Why::Index => Some("nothing: there was nothing else to compare with".into()),
        Why::Turn | Why::Nothing => None,
    }
}

/// What ends the turn of a schedule: nothing that was seen changes it before.
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
                "nothing: the schedule decides; the rung is over when each of {arms} has had {runs}, then the better half by gain at this limit goes on with about twice the limit"
            )
        }
        Turn::Incumbent { .. } => {
            "nothing: the schedule decides; another arm takes its place by getting through all its runs with less lost".into()
        }
        Turn::Challenge { of, .. } => format!(
            "nothing: the schedule decides; the challenge is over when a run is cut off, or when more is lost than the incumbent lost in its first 1, 2, 4, ... runs; with less lost in all {of} it takes the incumbent's place"
        ),
        Turn::Largest => "the largest draw decides".into(),
        Turn::Meanwhile => "nothing: the schedule decides; challenges begin when the incumbent's run has ended".into(),
    }
}

/// How the runner-up comes to have the largest index.
fn overtaken(chosen: &Weighed, gap: f64) -> String {
    let mut text = format!(
        "the runner-up comes first if the mean of the chosen pair falls by more than {gap:.6}, or its own rises by as much"
    );
    // A width shrinks with the root of the pulls behind it, or a little slower.
    let left = chosen.width - gap;
    if chosen.width.is_finite() && left > 0.0 && chosen.count > 0 {
        let pulls = chosen.count as f64 * ((chosen.width / left).powi(2) - 1.0);
        let more = counted(pulls.ceil().max(1.0) as u64, "more pull");
        let _ = write!(
            text,
            "; with both means as they are, the width alone brings that about after some {more} of it"
        );
    }
    text
}

fn describe(what: &str, why: Why, weighed: &Weighed, words: &Words, out: &mut String) {
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
            writeln!(out, "  no index yet: no pull tells about it")
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
        // What a draw is above its mean is chance.
        Why::Sample if index.is_finite() => writeln!(
            out,
            "  drawn gain {index:.6}{}; believed {mean:.6}, 95 % of it from {low:.6} to {high:.6}",
            climbing(weighed, words)
        ),
        _ if count > 0 => writeln!(
            out,
            "  mean gain so far {mean:.6}, 95 % interval {low:.6} to {high:.6}"
        ),
        _ => writeln!(out, "  nothing is known about it yet"),
    };
    let verb = if count == 1 {
        "pull tells"
    } else {
        "pulls tell"
    };
    let running = if weighed.survival.is_finite() {
        format!(
            "; {:.1} % still running at the limit",
            100.0 * weighed.survival
        )
    } else {
        String::new()
    };
    let _ = writeln!(
        out,
        "  {count} {verb} about it, {arm_count} of the arm in all, {pending} under way{running}"
    );
}

/// Where what was drawn is not for the limit that is played.
fn climbing(weighed: &Weighed, words: &Words) -> String {
    if weighed.compared_at == weighed.pull.limit {
        return String::new();
    }
    let (aim, limit) = (
        words.limit(weighed.compared_at),
        words.limit(weighed.pull.limit),
    );
    format!(
        " at {aim}, where it is compared (it climbs there, one limit with each run, and is at {limit} now)"
    )
}

#[cfg(test)]
mod tests;
