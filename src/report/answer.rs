//! What to use, and how much better that is than doing nothing about it.

use serde::Serialize;
use statrs::distribution::{ContinuousCDF, Normal};

use super::paste::{Paste, pastes};
use super::{History, Num};
use crate::policy::Recommendation;
use crate::round::ArmId;

/// A pair with what is known of it.
#[derive(Debug, Clone, Serialize)]
pub struct Pair {
    /// The arm, counted from 1.
    pub arm: u32,
    /// Its configuration on one line.
    pub label: String,
    /// The limit in the resource's unit.
    pub limit: Num,
    /// The same for people.
    pub limit_text: String,
    /// Estimated gain.
    pub gain: Num,
    /// Its 95 % interval.
    pub low: Num,
    /// Its other end.
    pub high: Num,
    /// Pulls it rests on.
    pub pulls: u64,
    /// Share of them still running at the limit.
    pub censored: Num,
}

/// The pair to use.
#[derive(Debug, Clone, Serialize)]
pub struct Answer {
    /// The pair.
    #[serde(flatten)]
    pub pair: Pair,
    /// Its configuration: names and values.
    pub configuration: Vec<(String, String)>,
    /// What to copy.
    pub pastes: Vec<Paste>,
    /// What it is better than.
    pub against: Vec<Rival>,
}

/// A pair the answer is set against.
#[derive(Debug, Clone, Serialize)]
pub struct Rival {
    /// What it stands for.
    pub who: &'static str,
    /// The pair.
    #[serde(flatten)]
    pub pair: Pair,
    /// How much more the answer gains.
    pub difference: Num,
    /// 95 % interval of the difference.
    pub difference_low: Num,
    /// Its other end.
    pub difference_high: Num,
    /// How likely it is that the answer gains more.
    pub sure: Num,
}

/// The answer of a run, once there is one.
pub fn answer(history: &History) -> Option<Answer> {
    let best = history.answer()?;
    let configuration = history.space.configuration(best.pull.arm);
    let texts = configuration
        .iter()
        .map(|(name, value)| (name.to_owned(), value.to_string()));
    Some(Answer {
        pair: pair(history, &best),
        configuration: texts.collect(),
        pastes: pastes(history, &best),
        against: rivals(history, &best),
    })
}

/// A pair as the page shows it.
pub fn pair(history: &History, known: &Recommendation) -> Pair {
    let limit = known.pull.limit.get();
    Pair {
        arm: known.pull.arm.number(),
        label: label(history, known.pull.arm),
        limit: Num(limit),
        limit_text: history.resource().amount(limit),
        gain: Num(known.gain),
        low: Num(known.interval.0),
        high: Num(known.interval.1),
        pulls: known.pulls,
        censored: Num(known.censored),
    }
}

/// An arm on one line: its configuration, or its number where it has none.
pub fn label(history: &History, arm: ArmId) -> String {
    let text = history.space.configuration(arm).to_string();
    if text.trim().is_empty() {
        format!("arm {arm}")
    } else {
        text
    }
}

fn rivals(history: &History, best: &Recommendation) -> Vec<Rival> {
    let Some(known) = history.known() else {
        return vec![];
    };
    let first = ArmId::from_index(0);
    let largest = known.limits().len().saturating_sub(1);
    let own_limit = |arm: ArmId| known.best_of(arm).and_then(|limit| known.at(arm, limit));
    let mut found: Vec<(&'static str, Option<Recommendation>)> = vec![];
    if known.best_of(first) != Some(largest) {
        found.push((
            "default (first) arm, largest limit",
            known.at(first, largest),
        ));
    }
    found.push(("default (first) arm, its best limit", own_limit(first)));
    found.push((
        "median arm, its best limit",
        median(history).and_then(own_limit),
    ));
    found
        .into_iter()
        .filter_map(|(who, rival)| {
            let rival = rival?;
            (rival.pull != best.pull).then(|| set_against(history, best, who, &rival))
        })
        .collect()
}

/// The arm in the middle, by the gain each has at its own best limit.
pub fn median(history: &History) -> Option<ArmId> {
    let known = history.known()?;
    let mut gains: Vec<(f64, ArmId)> = history
        .space
        .arms()
        .filter_map(|arm| {
            let there = known.at(arm, known.best_of(arm)?)?;
            Some((there.gain, arm))
        })
        .collect();
    gains.sort_by(|a, b| a.0.total_cmp(&b.0));
    gains.get(gains.len() / 2).map(|(_, arm)| *arm)
}

/// Two independent estimates, each about normal with the spread its interval tells.
fn set_against(
    history: &History,
    best: &Recommendation,
    who: &'static str,
    rival: &Recommendation,
) -> Rival {
    let error = |known: &Recommendation| (known.interval.1 - known.interval.0) / (2.0 * 1.96);
    let difference = best.gain - rival.gain;
    let spread = error(best).hypot(error(rival));
    let sure = if spread > 0.0 {
        Normal::standard().cdf(difference / spread)
    } else {
        f64::NAN
    };
    Rival {
        who,
        pair: pair(history, rival),
        difference: Num(difference),
        difference_low: Num(difference - 1.96 * spread),
        difference_high: Num(difference + 1.96 * spread),
        sure: Num(sure),
    }
}
