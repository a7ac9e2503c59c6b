//! Arms side by side on the same instances and seeds: what `captime test` measured.
//!
//! In a run the policy chooses which arm is pulled how often. In a test every arm runs on every instance with the same seeds, so
//! means are fair and differences can be paired, instance by instance.

use std::collections::BTreeMap;

use serde::Serialize;
use statrs::distribution::{ContinuousCDF, StudentsT};

use super::{Evidence, FinishedRun, Terms, Values};
use crate::round::{ArmId, Limit, Price};

/// The weight of a pair of either sign that is added to an interval. Agresti and Min add a half; a tenth gives intervals that cover
/// 94 to 97 % where half of the tests have runs that are cut off and half have not (`docs/trust.md`).
const MOST_UNSEEN: f64 = 0.1;
/// The quantile of the logarithms from which on they count as the tail.
const TAIL: f64 = 0.65;

/// What an arm did in a test.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Tested {
    /// The arm.
    pub arm: ArmId,
    /// In its users' terms.
    pub values: Values,
    /// Mean gain.
    pub gain: f64,
    /// Beside the default configuration; none for the default itself, or where that was not tested.
    pub against_default: Option<Differences>,
}

/// How an arm differs from the default, instance by instance.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Differences {
    /// In the share solved; above 0 is better.
    pub solved: Difference,
    /// In PAR10; below 0 is better.
    pub par10: Difference,
    /// In the raw score, on instances where both have one.
    pub score: Option<Difference>,
    /// In the reward; above 0 is better.
    pub reward: Difference,
    /// In the gain; above 0 is better.
    pub gain: Difference,
}

/// A paired difference: mean, interval and what it rests on.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Difference {
    /// The arm minus the default.
    pub mean: f64,
    /// 95 % interval of the mean; none for a single pair.
    pub interval: Option<(f64, f64)>,
    /// Pairs it rests on: instances, or seeds where there is one instance or none.
    pub pairs: usize,
    /// Pairs in which the arm has more.
    pub more: usize,
    /// Pairs in which it has less.
    pub less: usize,
}

impl Evidence {
    /// What every one of these arms did under this limit. Runs must carry what they are paired by as their instance. `unsolved` are
    /// the arms that are known to leave a run unsolved now and then, whether the test shows it or not.
    pub fn tested(
        &self,
        arms: &[ArmId],
        unsolved: &[ArmId],
        limit: Limit,
        price: &Price,
    ) -> Vec<Tested> {
        let default = ArmId::from_index(0);
        let one = |&arm: &ArmId| {
            let values = self.values(arm, limit.get())?;
            let of_default = arm != default && arms.contains(&default);
            Some(Tested {
                arm,
                values,
                gain: self.estimate(arm, limit, price)?.gain,
                against_default: if of_default {
                    self.differences([arm, default], unsolved, limit, price)
                } else {
                    None
                },
            })
        };
        arms.iter().filter_map(one).collect()
    }

    /// How an arm differs from another, instance by instance; none if they share none. `unsolved` as for
    /// [`tested`](Self::tested).
    pub fn differences(
        &self,
        [a, b]: [ArmId; 2],
        unsolved: &[ArmId],
        limit: Limit,
        price: &Price,
    ) -> Option<Differences> {
        let most = limit.get();
        let solved = |run: &FinishedRun| run.is_solved_within(most);
        let is_known = unsolved.contains(&a) || unsolved.contains(&b);
        let weight = if is_known {
            MOST_UNSEEN
        } else {
            self.unseen(a, b, most)
        };
        // A run that is not solved has the first value; what one that is has on average tells how far apart they are.
        let all = |unsolved: f64, of: &dyn Fn(&FinishedRun) -> f64| {
            let both = self.reaching(a, most).chain(self.reaching(b, most));
            let (mut sum, mut count) = (0.0, 0.0);
            for run in both.filter(|run| solved(run)) {
                sum += of(run);
                count += 1.0;
            }
            let typical = if count > 0.0 { sum / count } else { unsolved };
            let value = |run: &FinishedRun| Some(if solved(run) { of(run) } else { unsolved });
            let pairs = self.pairs(a, b, most, value);
            Difference::of(&pairs, weight, unsolved - typical)
        };
        let score = self.pairs(a, b, most, |run| run.score().filter(|_| solved(run)));
        Some(Differences {
            solved: all(0.0, &|_| 1.0)?,
            par10: all(10.0 * most, &|run| run.consumption().unwrap_or(most))?,
            score: Difference::of(&score, 0.0, 0.0),
            reward: all(0.0, &|run| run.reward)?,
            gain: all(-price.penalty(limit), &|run| run.gain(limit, price))?,
        })
    }

    /// The differences between two arms, one for each instance that both have a value on.
    fn pairs(
        &self,
        a: ArmId,
        b: ArmId,
        limit: f64,
        of: impl Fn(&FinishedRun) -> Option<f64>,
    ) -> Vec<f64> {
        let means = |arm: ArmId| {
            let mut sums: BTreeMap<u32, (f64, f64)> = BTreeMap::new();
            for run in self.reaching(arm, limit) {
                if let (Some(instance), Some(value)) = (run.instance(), of(run)) {
                    let (sum, count) = sums.entry(instance).or_default();
                    *sum += value;
                    *count += 1.0;
                }
            }
            sums
        };
        let (of_a, of_b) = (means(a), means(b));
        let pairs = of_a.iter().filter_map(|(instance, (sum, count))| {
            let (other, others) = of_b.get(instance)?;
            Some(sum / count - other / others)
        });
        pairs.collect()
    }

    /// How much weight pairs deserve in which only one of the arms is solved, although few or none were seen, by how long runs take.
    ///
    /// All of `MOST_UNSEEN` where some run was not solved. Where all were, it is less the further they stay below the limit: by as
    /// many as the tail of their consumption would put above it. Solvers have heavy tails, so the logarithms above the `TAIL`
    /// quantile count as exponential. A normal tail covers as little as 79 % where the times are Pareto.
    fn unseen(&self, a: ArmId, b: ArmId, limit: f64) -> f64 {
        let expected = |arm: ArmId| {
            let logs: Option<Vec<f64>> = self
                .reaching(arm, limit)
                .map(|run| run.consumption().filter(|used| *used <= limit))
                .map(|used| used.map(|used| used.max(1e-9 * limit).ln()))
                .collect();
            let Some(mut logs) = logs.filter(|logs| !logs.is_empty()) else {
                return 1.0;
            };
            logs.sort_by(f64::total_cmp);
            let place = TAIL * (logs.len() as f64 - 1.0);
            let (below, part) = (place.floor() as usize, place.fract());
            let above = logs.get(below + 1).unwrap_or(&logs[below]);
            let from = logs[below] + part * (above - logs[below]);
            let beyond: Vec<f64> = logs.iter().map(|log| log - from).collect();
            let beyond: Vec<f64> = beyond.into_iter().filter(|log| *log > 0.0).collect();
            if beyond.is_empty() {
                return 0.0;
            }
            let mean = beyond.iter().sum::<f64>() / beyond.len() as f64;
            logs.len() as f64 * (1.0 - TAIL) * (-(limit.ln() - from) / mean).exp()
        };
        MOST_UNSEEN * expected(a).max(expected(b)).min(1.0)
    }
}

impl Difference {
    /// From the difference of every pair; none without a pair.
    ///
    /// Student's interval, with pairs that are rare and decide much: one in which only one of the arms is solved differs by
    /// `extreme`, and a few dozen pairs may have none by luck. So a pair of either sign is added with this `weight`, and two
    /// that do not differ, as Agresti and Min (2005) do for proportions. The mean is that of the pairs alone.
    fn of(pairs: &[f64], weight: f64, extreme: f64) -> Option<Self> {
        if pairs.is_empty() {
            return None;
        }
        let own = pairs.len() as f64;
        let mean = pairs.iter().sum::<f64>() / own;
        let count = own + 4.0 * weight;
        let middle = mean * own / count;
        let squares = pairs.iter().map(|value| (value - middle).powi(2));
        let added = 2.0 * weight * (extreme * extreme + 2.0 * middle * middle);
        let variance = (squares.sum::<f64>() + added) / (count - 1.0);
        let quantile = StudentsT::new(0.0, 1.0, own - 1.0).map(|t| t.inverse_cdf(0.975));
        let interval = quantile.ok().map(|quantile| {
            let half = quantile * (variance / count).sqrt();
            ((middle - half).min(mean), (middle + half).max(mean))
        });
        Some(Self {
            mean,
            interval,
            pairs: pairs.len(),
            more: pairs.iter().filter(|value| **value > 0.0).count(),
            less: pairs.iter().filter(|value| **value < 0.0).count(),
        })
    }
}

impl Differences {
    /// `PAR10 -3.1 s (95 % interval -5 s to -1.2 s); better on 31, worse on 12 of 50`, in the terms of these values; `amount`
    /// writes consumptions.
    pub fn in_words(&self, values: &Values, amount: impl Fn(f64) -> String) -> String {
        let signed = |value: f64| {
            let sign = if value < 0.0 { "-" } else { "+" };
            format!("{sign}{}", amount(value.abs()))
        };
        let plain = |value: f64| format!("{value:+.4}");
        let (name, shown, text): (_, _, &dyn Fn(f64) -> String) = match (values.terms, self.score) {
            (Terms::Solved, _) => ("PAR10", self.par10, &signed),
            (Terms::Score, Some(score)) => (values.score_name, score, &plain),
            (Terms::Score | Terms::Reward, _) => ("reward", self.reward, &plain),
        };
        let interval = shown.interval.map_or(String::new(), |(low, high)| {
            format!(" (95 % interval {} to {})", text(low), text(high))
        });
        let (better, worse) = match values.terms {
            Terms::Solved => (self.par10.less, self.par10.more),
            Terms::Score | Terms::Reward => (self.reward.more, self.reward.less),
        };
        format!(
            "{name} {}{interval}; better on {better}, worse on {worse} of {}",
            text(shown.mean),
            self.reward.pairs
        )
    }
}

#[cfg(test)]
mod tests;
