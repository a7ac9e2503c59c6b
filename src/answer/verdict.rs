//! The answer as a whole, for every place that shows it: the end of a run, `captime best`, the report, JSON.

use serde::Serialize;

use super::{Comparison, Evidence, LimitReason, Outlook, PathStep, Values};
use crate::policy::Recommendation;
use crate::quantity::{counted, whole};
use crate::resource::Resource;
use crate::round::Price;
use crate::space::open::confident_share;

/// What to use, why, and how far to trust it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Verdict {
    /// The pair to use, with the smallest limit that is enough; none before the first reward.
    pub best: Option<Recommendation>,
    /// Without an answer: why, and what to change.
    pub no_answer: Option<(String, String)>,
    /// Why this limit.
    pub limit: Option<LimitReason>,
    /// The answer in its users' terms.
    pub values: Option<Values>,
    /// The answer beside the default.
    pub comparison: Option<Comparison>,
    /// What the budget afforded.
    pub afforded: Afforded,
    /// After how many outcomes the answer became this arm, where that was looked at.
    pub unchanged_since: Option<u64>,
    /// What more pulls are expected to bring, where that was looked at.
    pub outlook: Option<Outlook>,
    /// What changed from the default, each step the change that helps most there, where that was looked at.
    pub path: Vec<PathStep>,
}

/// What the budget afforded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Afforded {
    /// Pulls that finished.
    pub pulls: u64,
    /// Arms there are.
    pub arms: usize,
    /// Arms that were pulled.
    pub pulled: usize,
    /// Arms that were pulled three times or more.
    pub thrice: usize,
    /// Of an open space, the arms that were drawn uniformly.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drawn: Option<usize>,
}

/// What a verdict is made from, beside the evidence.
#[derive(Debug, Clone, Copy)]
pub struct Setting<'a> {
    /// Prices, once they are known.
    pub price: Option<&'a Price>,
    /// The largest limit that may be granted.
    pub largest: f64,
    /// Whether every run is granted the limit of the answer, so that the default gets the same.
    pub is_limit_fixed: bool,
    /// How many arms there are.
    pub arms: usize,
    /// Of an open space, how many arms were drawn uniformly.
    pub drawn: Option<usize>,
    /// What is limited.
    pub resource: Resource,
}

impl Verdict {
    /// The verdict on this answer, which [`Evidence::settle`] has seen.
    pub fn new(best: Option<Recommendation>, evidence: &Evidence, of: Setting<'_>) -> Self {
        let amount = |value| of.resource.amount(value);
        Self {
            no_answer: match best {
                Some(_) => None,
                None => Some(evidence.why_no_answer(of.largest, amount).unwrap_or((
                    "limits are still being calibrated".into(),
                    "let it run longer".into(),
                ))),
            },
            limit: best.and_then(|best| evidence.limit_reason(&best)),
            values: best.and_then(|best| evidence.values(best.pull.arm, best.pull.limit.get())),
            comparison: best
                .zip(of.price)
                .map(|(best, price)| evidence.against_default(&best, price, of.is_limit_fixed)),
            afforded: Afforded {
                pulls: evidence.counts().0,
                arms: of.arms,
                pulled: evidence.pulled_at_least(1),
                thrice: evidence.pulled_at_least(3),
                drawn: of.drawn.filter(|drawn| *drawn > 0),
            },
            unchanged_since: None,
            outlook: None,
            path: vec![],
            best,
        }
    }

    /// What was learned, as you would say it to a colleague; `label` is the answer's configuration.
    pub fn sentences(&self, label: &str, resource: Resource) -> Vec<String> {
        let Some(best) = self.best else {
            let (why, fix) = self.no_answer.clone().unwrap_or_default();
            return vec![
                format!("There is no answer yet: {why}."),
                format!("To get one, {fix}."),
            ];
        };
        let amount = |value| resource.amount(value);
        let mut use_it = format!(
            "Use {label} with a limit of {}.",
            quantity(resource, best.pull.limit.get())
        );
        if let Some(values) = self.values {
            use_it.extend([" ", &capitalised(&values.in_words(resource)), "."]);
        }
        let compared = self.comparison.map(|comparison| match comparison {
            Comparison::IsDefault => {
                "This is the default configuration: nothing better was found.".into()
            }
            Comparison::Unknown { .. } => {
                format!("It is {}.", comparison.in_words(amount))
            }
            Comparison::Compared {
                probability: None,
                is_short,
                limit,
                ..
            } => {
                let short = if is_short {
                    let most = amount(limit);
                    format!(", which was granted {most} at most; `captime test` compares them")
                } else {
                    String::new()
                };
                format!("It is {}{short}.", super::comparison::TOO_EARLY)
            }
            Comparison::Compared { .. } => {
                let text = comparison.in_words(amount);
                let (verdict, _) = text.split_once(':').unwrap_or((&text, ""));
                format!("It is {verdict}.")
            }
        });
        let mut sentences = vec![use_it];
        sentences.extend(compared);
        sentences.push(match self.limit {
            Some(limit) => format!("{}.", capitalised(&limit.in_words(resource))),
            None => "No run of it was granted this limit yet: what it gains is predicted.".into(),
        });
        sentences.extend(self.still_moves());
        sentences
    }

    /// Whether the answer still moves, and what more pulls are expected to bring.
    fn still_moves(&self) -> Option<String> {
        let pulls = self.afforded.pulls;
        let moved = self.unchanged_since.map(|since| {
            let moved = if 2 * since <= pulls {
                "has been the same since"
            } else {
                "last changed at"
            };
            let (since, pulls) = (whole(since), whole(pulls));
            format!("the answer {moved} pull {since} of {pulls}")
        });
        let outlook = self.outlook.map(|outlook| outlook.in_words());
        let early = || "it is too early to estimate what more pulls would add".to_owned();
        let outlook = outlook.or_else(|| moved.is_some().then(early));
        let both: Vec<String> = moved.into_iter().chain(outlook).collect();
        (!both.is_empty()).then(|| format!("{}.", capitalised(&both.join(", and "))))
    }
}

impl Afforded {
    /// `1,240 pulls; 63 of 500 arms pulled 3 times or more`.
    pub fn in_words(&self) -> String {
        let pulls = counted(self.pulls, "pull");
        let drawn = self.drawn.map_or(String::new(), |drawn| {
            let share = 100.0 * confident_share(drawn);
            // Down to the first digit that is not 0: many drawn arms are never in the top 0.0 %.
            let digits = (-share.log10()).ceil().max(1.0) as usize;
            format!("; the best of {} drawn arms is in the top {share:.digits$} % of the space (95 % confidence)", whole(drawn as u64))
        });
        let afforded = match self.arms {
            1 => pulls,
            2 if self.thrice == 2 => format!("{pulls}; both arms pulled 3 times or more"),
            arms if self.thrice == arms => {
                let arms = whole(arms as u64);
                format!("{pulls}; all {arms} arms pulled 3 times or more")
            }
            arms => format!(
                "{pulls}; {} of {} arms pulled 3 times or more",
                whole(self.thrice as u64),
                whole(arms as u64)
            ),
        };
        afforded + &drawn
    }
}

impl LimitReason {
    /// `the longest of 1,105 runs took 56 ms, and 1 in 1,106 runs is expected to take longer`.
    pub fn in_words(&self, resource: Resource) -> String {
        let most = resource.amount(self.longest);
        let (largest, took, more) = if resource.is_time() {
            ("longest", "took", "take longer")
        } else {
            ("largest", "used", "use more")
        };
        match (self.runs, self.cut_off) {
            (1, 0) => format!("the only run under this limit {took} {most}"),
            (runs, 0) => format!(
                "the {largest} of {} runs {took} {most}, and 1 in {} runs is expected to {more} than that",
                whole(runs as u64),
                whole(runs as u64 + 1)
            ),
            (runs, cut_off) => format!(
                "the limit cuts off {} of {} runs",
                whole(cut_off as u64),
                whole(runs as u64)
            ),
        }
    }
}

/// An amount with what it is of: `62 ms of CPU time`.
pub fn quantity(resource: Resource, value: f64) -> String {
    let of = match resource {
        Resource::Wall => "wall time",
        Resource::Cpu => "CPU time",
        Resource::Work => "work",
        Resource::Memory => "memory",
    };
    format!("{} of {of}", resource.amount(value))
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters
        .next()
        .map(|letter| letter.to_uppercase().to_string());
    first.unwrap_or_default() + letters.as_str()
}

#[cfg(test)]
mod tests {
    use super::Afforded;

    #[test]
    fn two_arms_are_both() {
        let afforded = Afforded {
            pulls: 9,
            arms: 2,
            pulled: 2,
            thrice: 2,
            drawn: None,
        };
        assert_eq!(
            afforded.in_words(),
            "9 pulls; both arms pulled 3 times or more"
        );
    }

    #[test]
    fn drawn_arms_are_never_in_the_top_nothing_of_a_space() {
        let in_words = |drawn| {
            Afforded {
                pulls: 9,
                arms: 1,
                pulled: 1,
                thrice: 1,
                drawn: Some(drawn),
            }
            .in_words()
        };
        for (drawn, share) in [
            (2, "100.0"),
            (299, "1.0"),
            (3_000, "0.10"),
            (25_293, "0.01"),
        ] {
            let text = in_words(drawn);
            assert!(text.contains(&format!("in the top {share} % of")), "{text}");
        }
    }
}
