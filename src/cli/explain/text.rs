//! Lays out an explanation: the words are the policy's own.

use std::fmt::Write as _;

use crate::journal::{By, PullRecord};
use crate::markup::visible;
use crate::policy::{Explanation, Weighed, Why};
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
    let _ = writeln!(out, "why: {}", reason(pull, explanation));
    for (what, weighed) in [
        ("chosen", &explanation.chosen),
        (explanation.second(), &explanation.runner_up),
    ] {
        if let Some(weighed) = weighed {
            describe(what, explanation.why, weighed, words, &mut out);
        }
    }
    if let Some(text) = explanation.otherwise() {
        let _ = writeln!(out, "otherwise: {text}");
    }
    out
}

/// What decided: a policy, in its own words, or captime itself.
fn reason<'a>(pull: &PullRecord, explanation: &'a Explanation) -> &'a str {
    match pull.by {
        Some(By::Calibration) => "calibration: run once under the guard, to find the limits",
        Some(By::Default) => {
            "the default configuration is pulled first, because every answer is compared with it"
        }
        Some(By::Probe) => "a probe of another arm, because the first pulls all failed",
        Some(By::Record) => "`captime record` runs every arm in turn; no policy chose it",
        Some(By::Earlier) => {
            "it was taken over from an earlier run; no policy of this run chose it"
        }
        Some(By::Test) => "`captime test` runs these arms side by side; no policy chose it",
        None => explanation.reason(),
    }
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
