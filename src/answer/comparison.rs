//! How the answer compares with the default configuration, arm 1.
//!
//! The answer is the best of many estimates, so its own mean flatters it: among enough equal arms one always looks better. So
//! the verdict is a posterior probability under a hierarchical model. Most arms lie around a common mean with an unknown
//! spread, which may be zero; some are worse by any amount (arms that fail, say). All arms of the run say how large the spread
//! is, and the probability is averaged over it. A posterior does not depend on why a run was chosen, as long as it rests on
//! all runs that the choice rested on, so it holds for every policy. `docs/trust.md` has how well.

mod gains;
mod posterior;

use serde::Serialize;

use self::posterior::Belief;
use super::{Evidence, FinishedRun};
use crate::policy::Recommendation;
use crate::quantity::whole;
use crate::round::{ArmId, Limit, Price, Pull};

/// The answer beside the default configuration.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(tag = "verdict", rename_all = "kebab-case")]
pub enum Comparison {
    /// The answer is the default configuration.
    IsDefault,
    /// The default has no runs, or there are too few of both to say anything.
    Unknown {
        /// Runs of the default.
        runs: usize,
    },
    /// Both were run.
    Compared {
        /// How likely it is that the answer has the larger gain. None where it is too early to tell: the probability is below
        /// 75 %, or the default was never granted as much as the answer gets.
        probability: Option<f64>,
        /// How much larger the gain of the answer is: the median of the posterior that the probability is from.
        difference: f64,
        /// 95 % interval of the difference, from the same posterior.
        interval: (f64, f64),
        /// The limit of the answer in the comparison. It is one that was granted: the answer's own may lie just above its
        /// longest run, and so be kind to it. If the answer was never cut off there, it is that of the default if that is larger.
        answer_limit: f64,
        /// The limit of the default: the same, unless another suits the default better. If it was never granted as much as
        /// the answer gets, both are compared at the largest that it was granted.
        limit: f64,
        /// Whether the default was never granted as much as the answer gets.
        is_short: bool,
        /// The gain of the default under that limit.
        gain: f64,
        /// Runs of the default that show it.
        runs: usize,
        /// All runs of the default: the others were cut off before.
        pulls: usize,
        /// Instances on which both ran; 0 if the comparison is not paired.
        shared: usize,
    },
}

/// More limits than this are not tried for the default.
const MOST_LIMITS: usize = 64;
/// The default gets another limit than the answer if that is better by so many standard errors. A single run that needs
/// longer is one standard error, whatever the price.
const NOISE: f64 = 1.5;
/// A smaller probability is not stated. How often the answer is better where little is known depends on the problem, from a half to
/// three quarters of the time, and no number fits all.
const LEAST_SURE: f64 = 0.75;
/// Where no run fails, arms may well be alike.
const USUAL: Belief = Belief {
    no_spread: 3.0,
    halvings: 5.0,
};
/// Where some runs fail, arms rarely fail alike.
const FAILING: Belief = Belief {
    no_spread: 0.1,
    halvings: 4.0,
};

/// What is known of one arm's gain.
#[derive(Debug, Clone, Copy)]
struct Estimate {
    runs: usize,
    mean: f64,
    /// Sum of squared deviations.
    deviations: f64,
}

impl Estimate {
    fn of(gains: impl Iterator<Item = f64>) -> Option<Self> {
        let (mut runs, mut mean, mut deviations) = (0_usize, 0.0, 0.0);
        for gain in gains {
            runs += 1;
            let off = gain - mean;
            mean += off / runs as f64;
            deviations += off * (gain - mean);
        }
        (runs > 0).then_some(Self {
            runs,
            mean,
            deviations,
        })
    }
}

impl Evidence {
    /// Compares the answer with the default configuration: both at the limit that the answer was granted, unless another suits
    /// the default better by more than noise. If limits are `fixed`, both at the limit of the answer.
    pub fn against_default(&self, best: &Recommendation, price: &Price, fixed: bool) -> Comparison {
        self.weigh(best, price, fixed).0
    }

    /// The same, with the probability even where that is too small to be stated.
    fn weigh(
        &self,
        best: &Recommendation,
        price: &Price,
        fixed: bool,
    ) -> (Comparison, Option<f64>) {
        let first = ArmId::from_index(0);
        if best.pull.arm == first {
            return (Comparison::IsDefault, None);
        }
        let unknown = Comparison::Unknown {
            runs: self.of(first).len(),
        };
        // A default that was cut off early may do well with a larger limit. What can be compared is what both do early.
        let reached = self
            .of(first)
            .iter()
            .map(|run| run.reach)
            .fold(0.0, f64::max);
        let is_short = !fixed && reached < best.pull.limit.get();
        let short = Limit::new(reached).ok().filter(|_| is_short);
        let own_limit = match short {
            Some(short) => short,
            None if fixed => best.pull.limit,
            None => self.granted_between(best.pull.limit, reached),
        };
        let limit = if fixed || is_short {
            Some(own_limit)
        } else {
            self.limit_beside(first, own_limit, price)
        };
        let Some((limit, of_first)) = limit.and_then(|limit| {
            let known = Estimate::of(self.gains(first, limit, price))?;
            Some((limit, known))
        }) else {
            return (unknown, None);
        };
        // What an answer that is never cut off gains is known under a larger limit, too, and so is what the other arms gain there.
        let own_limit = if limit > own_limit && self.always_ends(best.pull.arm, own_limit) {
            limit
        } else {
            own_limit
        };
        let mut arms = gains::under(self, own_limit, price);
        if limit != own_limit {
            let mut other = gains::under(self, limit, price);
            other.retain(|of| of.arm == first);
            arms.retain(|of| of.arm != first);
            arms.extend(other);
        }
        let place = |arm: ArmId| arms.iter().find(|of| of.arm == arm);
        let both = place(best.pull.arm).zip(place(first));
        let shared = both.and_then(|(best, first)| gains::shared(best, first));
        let lost = shared.map_or(0.0, |_| gains::without_instances(&mut arms));
        let belief = if self.counts().2 > 0 { FAILING } else { USUAL };
        let pair = (best.pull.arm, first);
        let Some(known) = posterior::posterior(&arms, pair, belief, lost) else {
            return (unknown, None);
        };
        let is_sure = known.probability.max(1.0 - known.probability) >= LEAST_SURE;
        // Where a model of all runs says otherwise than the runs of the two, it is too early to tell.
        let is_sure = is_sure && (known.probability >= 0.5 || !best.is_predicted);
        let comparison = Comparison::Compared {
            probability: (is_sure && !is_short).then_some(known.probability),
            difference: known.difference,
            interval: known.interval,
            answer_limit: own_limit.get(),
            limit: limit.get(),
            is_short,
            gain: of_first.mean,
            runs: of_first.runs,
            pulls: self.of(first).len(),
            shared: shared.unwrap_or(0),
        };
        (comparison, Some(known.probability))
    }

    /// The default, where it is more likely to be better than this answer and has earned a reward; at the limit under
    /// which it was compared. A model of the runs of all arms has compared the two already.
    pub fn better_default(
        &self,
        best: &Recommendation,
        price: &Price,
        fixed: bool,
    ) -> Option<Recommendation> {
        match self.weigh(best, price, fixed) {
            // What both do early says little about the default with a larger limit.
            (
                Comparison::Compared {
                    limit,
                    is_short: false,
                    ..
                },
                Some(probability),
            ) if probability < 0.5 && !best.is_predicted => {
                let default = ArmId::from_index(0);
                let is_solved = |run: &FinishedRun| run.is_solved_within(limit);
                self.of(default).iter().find(|run| is_solved(run))?;
                self.estimate(default, Limit::new(limit).ok()?, price)
            }
            _ => None,
        }
    }

    /// An arm under a limit by its own runs alone; none if none reached that far.
    pub fn estimate(&self, arm: ArmId, limit: Limit, price: &Price) -> Option<Recommendation> {
        let known = Estimate::of(self.gains(arm, limit, price))?;
        let runs = known.runs as f64;
        let spread = (known.deviations / (runs - 1.0).max(1.0) / runs).sqrt();
        let range = (-price.penalty(limit), 1.0);
        let interval = match known.runs {
            1 => range,
            _ => (
                (known.mean - 1.96 * spread).max(range.0).min(known.mean),
                (known.mean + 1.96 * spread).min(range.1).max(known.mean),
            ),
        };
        let cut = |run: &&FinishedRun| !run.is_solved_within(limit.get());
        Some(Recommendation {
            pull: Pull::new(arm, limit),
            gain: known.mean,
            interval,
            pulls: known.runs as u64,
            censored: self.reaching(arm, limit.get()).filter(cut).count() as f64 / runs,
            is_predicted: false,
        })
    }

    /// Whether the arm was run up to this limit and ended within it each time.
    fn always_ends(&self, arm: ArmId, limit: Limit) -> bool {
        let mut runs = self.reaching(arm, limit.get()).peekable();
        runs.peek().is_some() && runs.all(|run| run.is_solved_within(limit.get()))
    }

    fn gains(&self, arm: ArmId, limit: Limit, price: &Price) -> impl Iterator<Item = f64> {
        self.reaching(arm, limit.get())
            .map(move |run| run.gain(limit, price))
    }

    /// The smallest limit from `least` to `most` that was granted.
    fn granted_between(&self, least: Limit, most: f64) -> Limit {
        let runs = self.pulled().flat_map(|(_, runs)| runs);
        let reached = runs.map(|run| run.reach);
        let smallest = reached
            .filter(|reach| (least.get()..=most).contains(reach))
            .fold(f64::INFINITY, f64::min);
        Limit::new(smallest).unwrap_or(least)
    }

    /// The limit to compare an arm at beside an answer with the limit `wanted`: that one, unless the arm does better under
    /// another by more than noise.
    fn limit_beside(&self, arm: ArmId, wanted: Limit, price: &Price) -> Option<Limit> {
        let best = self.best_limit_of(arm, wanted, price)?;
        let reach = best.get().max(wanted.get());
        let more = self
            .reaching(arm, reach)
            .map(|run| run.gain(best, price) - run.gain(wanted, price));
        let is_better = Estimate::of(more).is_some_and(|more| {
            let runs = more.runs as f64;
            let error = (more.deviations / (runs - 1.0).max(1.0) / runs).sqrt();
            more.mean > NOISE * error
        });
        Some(if is_better { best } else { wanted })
    }

    /// The limit under which an arm did best; `wanted` if that is as good.
    fn best_limit_of(&self, arm: ArmId, wanted: Limit, price: &Price) -> Option<Limit> {
        let mut limits: Vec<f64> = self.of(arm).iter().map(|run| run.reach).collect();
        limits.sort_by(f64::total_cmp);
        limits.dedup();
        let step = limits.len().div_ceil(MOST_LIMITS).max(1);
        let limits = limits.into_iter().rev().step_by(step);
        let limits = limits.filter_map(|limit| Limit::new(limit).ok());
        let gains = std::iter::once(wanted).chain(limits).filter_map(|limit| {
            let known = Estimate::of(self.gains(arm, limit, price))?;
            Some((known.mean, limit))
        });
        let best = gains.reduce(|best, other| if other.0 > best.0 { other } else { best });
        best.map(|(_, limit)| limit)
    }
}

impl Comparison {
    /// One sentence; `amount` writes limits.
    pub fn in_words(&self, amount: impl Fn(f64) -> String) -> String {
        match *self {
            Self::IsDefault => "the default configuration (arm 1) is the best so far".into(),
            Self::Unknown { runs: 0 } => {
                "not compared with the default (arm 1): it has not been pulled".into()
            }
            Self::Unknown { runs } => format!(
                "not compared with the default (arm 1): {} too little about this limit",
                match runs {
                    1 => "its only pull says".to_owned(),
                    _ => format!("its {} pulls say", whole(runs as u64)),
                }
            ),
            Self::Compared {
                probability,
                difference,
                interval: (low, high),
                limit,
                is_short,
                runs,
                pulls,
                shared,
                ..
            } => {
                let verdict = match probability {
                    Some(likely) if likely >= 0.5 => format!(
                        "better than the default (arm 1) with probability {}",
                        percent(likely)
                    ),
                    Some(likely) => format!(
                        "worse than the default (arm 1) with probability {}",
                        percent(1.0 - likely)
                    ),
                    None => TOO_EARLY.to_owned(),
                };
                let pairing = match shared {
                    0 => String::new(),
                    _ => format!(", on {shared} shared instances"),
                };
                let at = if is_short {
                    let limit = amount(limit);
                    format!(" at {limit}, the largest limit the default was granted")
                } else {
                    String::new()
                };
                let times = match pulls {
                    1 => "once".to_owned(),
                    _ => format!("{} times", whole(pulls as u64)),
                };
                let of_them = match runs {
                    _ if runs == pulls => String::new(),
                    1 => ", once".to_owned(),
                    _ => format!(", {} of them", whole(runs as u64)),
                };
                format!(
                    "{verdict}: gain {difference:+.4}{at} (95 % interval {low:+.4} to {high:+.4}); the default was pulled \
                     {times}{of_them} up to {}{pairing}",
                    amount(limit)
                )
            }
        }
    }
}

/// What is said without a probability.
pub(super) const TOO_EARLY: &str =
    "too early to tell whether it is better than the default (arm 1)";

/// Never 0 or 100: nothing is certain.
fn percent(probability: f64) -> String {
    let value = 100.0 * probability;
    if value > 99.9 {
        "above 99.9 %".into()
    } else if value >= 99.0 {
        format!("{value:.1} %")
    } else {
        format!("{value:.0} %")
    }
}

#[cfg(test)]
mod tests;
