//! What to use, and how much better that is than doing nothing about it.

use serde::Serialize;
use statrs::distribution::{ContinuousCDF, Normal};

use super::pairs::Pairs;
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
pub fn answer(history: &History, pairs: &Pairs<'_>) -> Option<Answer> {
    let best = history.answer()?;
    let configuration = history.space.configuration(best.pull.arm);
    let texts = configuration
        .iter()
        .map(|(name, value)| (name.to_owned(), value.to_string()));
    Some(Answer {
        pair: pair(history, &best),
        configuration: texts.collect(),
        pastes: pastes(history, &best),
        against: rivals(history, pairs, &best),
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
    let configuration = history.space.configuration(arm);
    if configuration.name().is_none() && configuration.is_empty() {
        format!("arm {arm}")
    } else {
        configuration.to_string()
    }
}

fn rivals(history: &History, pairs: &Pairs<'_>, best: &Recommendation) -> Vec<Rival> {
    let first = ArmId::from_index(0);
    let largest = history.limits().and_then(<[_]>::last);
    let at_largest = largest.and_then(|largest| pairs.at(first, largest.get()));
    let at_largest = at_largest.filter(|known| known.pulls > 0);
    let at_best = pairs.best_of(first);
    let is_other = at_largest.map(|known| known.pull) != at_best.map(|known| known.pull);
    // Where it was never pulled, something may be believed of it all the same.
    let unseen = pairs.at(first, best.pull.limit.get());
    let unseen = unseen.filter(|known| known.pulls == 0 && at_best.is_none());
    let found = [
        (
            "default (first) arm, largest limit",
            at_largest.filter(|_| is_other),
        ),
        ("default (first) arm, its best limit", at_best),
        ("default (first) arm, same limit", unseen),
        (
            "median arm, its best limit",
            pairs.median(history).and_then(|arm| pairs.best_of(arm)),
        ),
    ];
    found
        .into_iter()
        .filter_map(|(who, rival)| {
            let rival = rival?;
            (rival.pull != best.pull).then(|| set_against(history, best, who, &rival))
        })
        .collect()
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
