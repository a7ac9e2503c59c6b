//! What to use, and how much better that is than the default.

use serde::Serialize;

use super::pairs::Pairs;
use super::paste::{Paste, pastes};
use super::{History, Num};
use crate::answer::{Comparison, Values, Verdict};
use crate::policy::Recommendation;
use crate::round::{ArmId, Limit};

/// A pair with what is known about it.
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
    /// Pulls it is based on.
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
    /// What was learned, in a few sentences.
    pub sentences: Vec<String>,
    /// Why this limit.
    pub why_limit: String,
    /// What the pair is worth, in its users' terms.
    pub values: Option<Values>,
    /// How it compares with the default.
    pub default: Option<Comparison>,
    /// The same in words.
    pub default_words: String,
    /// What the budget afforded.
    pub afforded: String,
    /// Its configuration: names and values.
    pub configuration: Vec<(String, String)>,
    /// What to copy.
    pub pastes: Vec<Paste>,
    /// What it is compared with.
    pub against: Vec<Rival>,
    /// What changed from the default: in words, and what the model says it is worth. Each step is the change that helps most there.
    pub path: Vec<(String, Num)>,
}

/// A pair the answer is compared with.
#[derive(Debug, Clone, Serialize)]
pub struct Rival {
    /// Its role in the comparison.
    pub who: &'static str,
    /// The pair.
    #[serde(flatten)]
    pub pair: Pair,
    /// What the pair is worth, in its users' terms.
    pub values: Option<Values>,
    /// How much more the answer gains.
    pub difference: Num,
    /// 95 % interval of the difference. Null if there is no verdict.
    pub difference_low: Num,
    /// Its other end.
    pub difference_high: Num,
    /// The probability that the answer gains more. Null where it is too early to tell.
    pub probability: Num,
}

/// The answer of a run, once there is one.
pub fn answer(history: &History, pairs: &Pairs<'_>) -> Option<Answer> {
    let verdict = history.verdict();
    let best = verdict.best?;
    let amount = |value| history.resource().amount(value);
    let configuration = history.space.configuration(best.pull.arm);
    let texts = configuration
        .iter()
        .map(|(name, value)| (name.to_owned(), value.to_string()));
    let arm = match label(history, best.pull.arm) {
        label if label == format!("arm {}", best.pull.arm) => label,
        label => format!("arm {} ({label})", best.pull.arm),
    };
    Some(Answer {
        pair: pair(history, &best),
        sentences: verdict.sentences(&arm, history.resource()),
        why_limit: verdict
            .limit
            .map_or(String::new(), |limit| limit.in_words(history.resource())),
        values: verdict.values,
        default: verdict.comparison,
        default_words: verdict
            .comparison
            .map_or(String::new(), |comparison| comparison.in_words(amount)),
        afforded: verdict.afforded.in_words(),
        configuration: texts.collect(),
        pastes: pastes(history, &best),
        against: rivals(history, pairs, verdict, &best),
        path: (verdict.path.iter())
            .map(|step| (step.in_words(), Num(step.worth)))
            .collect(),
    })
}

/// One arm of the Pareto front.
#[derive(Debug, Clone, Serialize)]
pub struct OnFront {
    /// The arm, counted from 1.
    pub arm: u32,
    /// Its configuration on one line.
    pub label: String,
    /// The limit it was judged at.
    pub limit: Num,
    /// What it is worth there.
    pub values: Values,
}

/// The arms that no other beats in both reward and consumption.
pub fn front(history: &History) -> Vec<OnFront> {
    let on_front = |(arm, limit, values): (ArmId, f64, Values)| OnFront {
        arm: arm.number(),
        label: label(history, arm),
        limit: Num(limit),
        values,
    };
    history.pareto().into_iter().map(on_front).collect()
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

/// An arm on one line: its configuration, or its number if it has none.
pub fn label(history: &History, arm: ArmId) -> String {
    let configuration = history.space.configuration(arm);
    if configuration.name().is_none() && configuration.is_empty() {
        format!("arm {arm}")
    } else {
        configuration.in_short()
    }
}

fn rivals(
    history: &History,
    pairs: &Pairs<'_>,
    verdict: &Verdict,
    best: &Recommendation,
) -> Vec<Rival> {
    let rival = |who, known: &Recommendation| Rival {
        who,
        pair: pair(history, known),
        values: history
            .evidence()
            .values(known.pull.arm, known.pull.limit.get()),
        difference: Num(best.gain - known.gain),
        difference_low: Num(f64::NAN),
        difference_high: Num(f64::NAN),
        probability: Num(f64::NAN),
    };
    let mut found = vec![];
    if let Some(Comparison::Compared {
        probability,
        difference,
        interval,
        limit,
        is_short,
        ..
    }) = verdict.comparison
        && let Some(known) = default_at(history, limit)
    {
        found.push(Rival {
            difference: Num(difference),
            difference_low: Num(interval.0),
            difference_high: Num(interval.1),
            probability: Num(probability.unwrap_or(f64::NAN)),
            ..rival(
                if is_short {
                    "default (arm 1), at the largest limit it was granted; compared there"
                } else {
                    "default (arm 1)"
                },
                &known,
            )
        });
    }
    let median = pairs.median(history).and_then(|arm| pairs.best_of(arm));
    if let Some(median) = median.filter(|median| median.pull.arm != best.pull.arm) {
        found.push(rival("median arm, at its best limit", &median));
    }
    found
}

/// The default as it was compared.
fn default_at(history: &History, limit: f64) -> Option<Recommendation> {
    let first = ArmId::from_index(0);
    let limit = Limit::new(limit).ok()?;
    history.evidence().estimate(first, limit, history.price()?)
}
