//! How the answer compares with the default configuration, arm 1.
//!
//! The answer is the best of many estimates, so its own mean flatters it: among enough equal arms one always looks better. So
//! the verdict is a posterior probability under a hierarchical model. Most arms lie around a common mean with an unknown
//! spread, which may be zero; some are worse by any amount (arms that fail, say). All arms of the run say how large the spread
//! is, and the probability is averaged over it. A posterior does not depend on why a run was chosen, so it
//! holds for every policy.

use std::collections::BTreeMap;

use serde::Serialize;
use statrs::distribution::{ContinuousCDF, Normal};

use super::{Evidence, FinishedRun};
use crate::policy::Recommendation;
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
        /// How likely it is that the answer has the larger gain.
        probability: f64,
        /// How much larger the gain of the answer is.
        difference: f64,
        /// 95 % interval of the difference.
        interval: (f64, f64),
        /// The limit of the default: the one under which it does best, or if it was never granted as much as the answer
        /// gets, the largest that it was granted. Then both are compared at that limit.
        limit: f64,
        /// Whether the default was never granted as much as the answer gets.
        is_short: bool,
        /// The gain of the default under that limit.
        gain: f64,
        /// Runs of the default that show it.
        runs: usize,
        /// Instances on which both ran; 0 if the comparison is not paired.
        shared: usize,
    },
}

/// Pairing needs at least this many shared instances.
const LEAST_SHARED: usize = 10;
/// More limits than this are not tried for the default.
const MOST_LIMITS: usize = 64;
/// With more arms than this, every so manyth says how arms differ.
const MOST_ARMS: usize = 1000;
/// Steps of EM that find the common mean.
const STEPS: usize = 12;
/// Spreads that are considered, beside none.
const SPREADS: u32 = 14;
/// How likely it is that arms do not differ at all, beside each of these.
const NO_SPREAD: f64 = 2.0;
/// How many runs the common variance counts for in that of an arm.
const BORROWED: f64 = 3.0;

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

    /// Variance of the mean, with part of what is common to all arms.
    fn variance(&self, common: f64) -> f64 {
        let runs = self.runs as f64;
        (self.deviations + BORROWED * common) / (runs - 1.0 + BORROWED) / runs
    }
}

impl Evidence {
    /// Compares the answer with the default configuration at the limit that suits the default best, or if limits are
    /// `fixed` at the limit of the answer.
    pub fn against_default(&self, best: &Recommendation, price: &Price, fixed: bool) -> Comparison {
        let first = ArmId::from_index(0);
        if best.pull.arm == first {
            return Comparison::IsDefault;
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
        let own_limit = short.unwrap_or(best.pull.limit);
        let limit = if fixed || is_short {
            Some(own_limit)
        } else {
            self.best_limit_of(first, best.pull.limit, price)
        };
        let Some(limit) = limit else {
            return unknown;
        };
        let best = &Recommendation {
            pull: Pull::new(best.pull.arm, own_limit),
            ..*best
        };
        let (own, other) = (self.prior(own_limit, price), self.prior(limit, price));
        let of_best = Estimate::of(self.gains(best.pull.arm, own_limit, price));
        let of_first = Estimate::of(self.gains(first, limit, price));
        let (Some(own), Some(other), Some(of_best), Some(of_first)) =
            (own, other, of_best, of_first)
        else {
            return unknown;
        };
        let apart = Pair {
            means: (of_best.mean, of_first.mean),
            variances: (
                of_best.variance(own.common),
                of_first.variance(other.common),
            ),
            covariance: 0.0,
        };
        let paired = self.paired(best, limit, price);
        let paired = paired.filter(|(_, pair)| pair.of_difference() < apart.of_difference());
        let (shared, pair) = paired.unwrap_or((0, apart));
        let is_same = limit == own_limit;
        let (probability, difference, spread) = posterior(&own, &other, is_same, &pair);
        Comparison::Compared {
            probability,
            difference,
            interval: (difference - 1.96 * spread, difference + 1.96 * spread),
            limit: limit.get(),
            is_short,
            gain: of_first.mean,
            runs: of_first.runs,
            shared,
        }
    }

    /// The default, where it is more likely to be better than this answer and has earned a reward; at the limit under
    /// which it was compared.
    pub fn better_default(
        &self,
        best: &Recommendation,
        price: &Price,
        fixed: bool,
    ) -> Option<Recommendation> {
        match self.against_default(best, price, fixed) {
            // What both do early says little about the default with a larger limit.
            Comparison::Compared {
                probability,
                limit,
                is_short: false,
                ..
            } if probability < 0.5 => {
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
        })
    }

    fn gains(&self, arm: ArmId, limit: Limit, price: &Price) -> impl Iterator<Item = f64> {
        self.reaching(arm, limit.get())
            .map(move |run| run.gain(limit, price))
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

    /// How good arms are under this limit; none where no arm has two runs.
    fn prior(&self, limit: Limit, price: &Price) -> Option<Prior> {
        let known = |(arm, _)| Estimate::of(self.gains(arm, limit, price));
        let arms: Vec<Estimate> = self.pulled().filter_map(known).collect();
        let step = arms.len().div_ceil(MOST_ARMS).max(1);
        let arms: Vec<Estimate> = arms.into_iter().step_by(step).collect();
        let degrees: usize = arms.iter().map(|arm| arm.runs - 1).sum();
        if degrees == 0 {
            return None;
        }
        let deviations: f64 = arms.iter().map(|arm| arm.deviations).sum();
        let size = arms.iter().map(|arm| arm.mean.abs()).fold(1e-6, f64::max);
        // Gains that never vary are still known to a few digits only.
        let common = (deviations / degrees as f64).max((1e-4 * size).powi(2));
        Some(Prior { arms, common })
    }

    /// The two arms on the instances that both ran on.
    fn paired(&self, best: &Recommendation, limit: Limit, price: &Price) -> Option<(usize, Pair)> {
        let by_instance = |arm: ArmId, limit: Limit| {
            let mut gains: BTreeMap<u32, (f64, f64)> = BTreeMap::new();
            for run in self.reaching(arm, limit.get()) {
                if let Some(instance) = run.instance {
                    let (sum, count) = gains.entry(instance).or_default();
                    *sum += run.gain(limit, price);
                    *count += 1.0;
                }
            }
            gains
        };
        let of_best = by_instance(best.pull.arm, best.pull.limit);
        let of_first = by_instance(ArmId::from_index(0), limit);
        let both: Vec<(f64, f64)> = of_best
            .iter()
            .filter_map(|(instance, (sum, count))| {
                let (other, others) = of_first.get(instance)?;
                Some((sum / count, other / others))
            })
            .collect();
        let shared = both.len();
        if shared < LEAST_SHARED {
            return None;
        }
        let count = shared as f64;
        let mean = |of: fn(&(f64, f64)) -> f64| both.iter().map(of).sum::<f64>() / count;
        let (a, b) = (mean(|pair| pair.0), mean(|pair| pair.1));
        let moment = |of: &dyn Fn(f64, f64) -> f64| {
            let sum: f64 = both.iter().map(|pair| of(pair.0 - a, pair.1 - b)).sum();
            sum / (count - 1.0) / count
        };
        let variances = (moment(&|x, _| x * x), moment(&|_, y| y * y));
        let most = 0.99 * (variances.0 * variances.1).sqrt();
        let pair = Pair {
            means: (a, b),
            variances,
            covariance: moment(&|x, y| x * y).clamp(-most, most),
        };
        (variances.0 > 0.0 && variances.1 > 0.0).then_some((shared, pair))
    }
}

/// Two means, and how sure they are.
#[derive(Debug, Clone, Copy)]
struct Pair {
    means: (f64, f64),
    variances: (f64, f64),
    covariance: f64,
}

impl Pair {
    /// Variance of their difference.
    fn of_difference(&self) -> f64 {
        self.variances.0 + self.variances.1 - 2.0 * self.covariance
    }
}

/// What all arms say under one limit.
struct Prior {
    arms: Vec<Estimate>,
    /// Variance of single runs, common to all arms.
    common: f64,
}

/// The model with one spread of the arms around their common mean.
#[derive(Debug, Clone, Copy)]
struct Model {
    /// Variance of arms around the mean.
    spread: f64,
    mean: f64,
    /// Variance of that mean.
    unsure: f64,
    /// Share of arms that lie around it; the others lie anywhere below.
    core: f64,
    /// Density of the others, which are worse.
    anywhere: f64,
    /// How well it explains all arms.
    log_evidence: f64,
}

impl Prior {
    /// The model with every spread that is considered: none, and a few on a logarithmic scale, each as likely.
    fn models(&self) -> Vec<Model> {
        let means = self.arms.iter().map(|arm| arm.mean);
        let (low, high) = means.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), mean| {
            (low.min(mean), high.max(mean))
        });
        let wide = high - low + self.common.sqrt();
        let spreads = (0..SPREADS).map(|k| (wide * 0.5_f64.powf(f64::from(k) / 2.0), 1.0));
        std::iter::once((0.0, NO_SPREAD))
            .chain(spreads)
            .map(|(spread, weight)| self.model(spread * spread, wide, weight))
            .collect()
    }

    fn model(&self, spread: f64, wide: f64, weight: f64) -> Model {
        let anywhere = 1.0 / wide;
        let mut sorted: Vec<f64> = self.arms.iter().map(|arm| arm.mean).collect();
        sorted.sort_by(f64::total_cmp);
        // The better half: what matters is how the good arms lie.
        let mut model = Model {
            spread,
            mean: sorted[sorted.len() * 3 / 4],
            unsure: 0.0,
            core: 0.8,
            anywhere,
            log_evidence: 0.0,
        };
        for step in 0..=STEPS {
            let (mut weights, mut sum, mut cores, mut evidence) = (0.0, 0.0, 0.0, 0.0);
            for arm in &self.arms {
                let variance = arm.variance(self.common);
                let (core, density) = model.membership(arm.mean, variance);
                evidence += density.ln();
                cores += core;
                weights += core / (spread + variance);
                sum += core * arm.mean / (spread + variance);
            }
            model.unsure = 1.0 / weights.max(1e-300);
            model.log_evidence = evidence + 0.5 * model.unsure.ln() + weight.ln();
            if step < STEPS && weights > 0.0 {
                model.mean = sum / weights;
                model.core = (cores + 4.0) / (self.arms.len() as f64 + 5.0);
            }
        }
        model
    }
}

impl Model {
    /// How likely an arm with this mean belongs to the core, and the density of its mean.
    fn membership(&self, mean: f64, variance: f64) -> (f64, f64) {
        let total = self.spread + variance;
        let off = (mean - self.mean).powi(2) / (2.0 * total);
        let core = self.core * (-off).exp() / (2.0 * std::f64::consts::PI * total).sqrt();
        // Only worse arms lie anywhere: what looks much better than the rest is shrunk towards it.
        let anywhere = if mean < self.mean { self.anywhere } else { 0.0 };
        let density = (core + (1.0 - self.core) * anywhere).max(f64::MIN_POSITIVE);
        (core / density, density)
    }
}

/// Probability that the first is larger, mean of the difference, and its standard deviation.
fn posterior(own: &Prior, other: &Prior, is_same: bool, pair: &Pair) -> (f64, f64, f64) {
    let (own, other) = (own.models(), other.models());
    let highest = |models: &[Model]| {
        models
            .iter()
            .map(|of| of.log_evidence)
            .fold(f64::NEG_INFINITY, f64::max)
    };
    let (most, most_other) = (highest(&own), highest(&other));
    let (mut total, mut larger, mut sum, mut squares) = (0.0, 0.0, 0.0, 0.0);
    let mut add = |weight: f64, (mean, variance): (f64, f64)| {
        total += weight;
        sum += weight * mean;
        squares += weight * (mean * mean + variance);
        larger += weight
            * if variance > 0.0 {
                Normal::standard().cdf(mean / variance.sqrt())
            } else {
                0.5
            };
    };
    for (k, a) in own.iter().enumerate() {
        let of_a = (a.log_evidence - most).exp();
        let range = if is_same { k..k + 1 } else { 0..other.len() };
        for b in &other[range] {
            let of_b = if is_same {
                1.0
            } else {
                (b.log_evidence - most_other).exp()
            };
            let weight = of_a * of_b;
            if weight < 1e-9 {
                continue;
            }
            let (core_a, _) = a.membership(pair.means.0, pair.variances.0);
            let (core_b, _) = b.membership(pair.means.1, pair.variances.1);
            for (first, of_first) in [(Some(a), core_a), (None, 1.0 - core_a)] {
                for (second, of_second) in [(Some(b), core_b), (None, 1.0 - core_b)] {
                    add(
                        weight * of_first * of_second,
                        difference(pair, first, second, is_same),
                    );
                }
            }
        }
    }
    let mean = sum / total;
    (
        larger / total,
        mean,
        (squares / total - mean * mean).max(0.0).sqrt(),
    )
}

/// Mean and variance of the difference, each arm in the core of a model or anywhere.
fn difference(pair: &Pair, a: Option<&Model>, b: Option<&Model>, is_same: bool) -> (f64, f64) {
    // The gain of Kalman's filter for both at once: prior variances over prior and observed ones.
    let far = 1e6 * (pair.variances.0 + pair.variances.1);
    let prior = |model: Option<&Model>, mean: f64| match model {
        Some(model) => (model.mean, model.spread, model.unsure),
        None => (mean, far, 0.0),
    };
    let (mean_a, spread_a, unsure_a) = prior(a, pair.means.0);
    let (mean_b, spread_b, unsure_b) = prior(b, pair.means.1);
    let (s, t, c) = (
        spread_a + pair.variances.0,
        spread_b + pair.variances.1,
        pair.covariance,
    );
    let determinant = s * t - c * c;
    let (x, y) = (pair.means.0 - mean_a, pair.means.1 - mean_b);
    // Rows of prior * (prior + observed)^-1.
    let (aa, ab) = (spread_a * t / determinant, -spread_a * c / determinant);
    let (ba, bb) = (-spread_b * c / determinant, spread_b * s / determinant);
    let mean = (mean_a + aa * x + ab * y) - (mean_b + ba * x + bb * y);
    let of_difference = spread_a * (1.0 - aa + ba) + spread_b * (1.0 - bb + ab);
    // How the difference moves with each of the common means.
    let (by_a, by_b) = (1.0 - aa + ba, -1.0 - ab + bb);
    let unsure = if is_same && a.is_some() && b.is_some() {
        (by_a + by_b).powi(2) * unsure_a
    } else {
        by_a * by_a * unsure_a + by_b * by_b * unsure_b
    };
    (mean, of_difference.max(0.0) + unsure)
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
                "not compared with the default (arm 1): {} too few",
                match runs {
                    1 => "1 pull is".to_owned(),
                    _ => format!("{runs} pulls are"),
                }
            ),
            Self::Compared {
                probability,
                difference,
                interval: (low, high),
                limit,
                is_short,
                runs,
                shared,
                ..
            } => {
                let verdict = if probability >= 0.5 {
                    format!(
                        "better than the default (arm 1) with probability {}",
                        percent(probability)
                    )
                } else {
                    format!(
                        "worse than the default (arm 1) with probability {}",
                        percent(1.0 - probability)
                    )
                };
                let pairing = match shared {
                    0 => String::new(),
                    _ => format!(", on {shared} shared instances"),
                };
                let at = if is_short {
                    let limit = amount(limit);
                    format!(", both at {limit}, the largest limit the default was granted")
                } else {
                    String::new()
                };
                format!(
                    "{verdict}: gain {difference:+.4} (95 % interval {low:+.4} to {high:+.4}){at}; the default was pulled \
                     {} up to {}{pairing}",
                    match runs {
                        1 => "once".to_owned(),
                        _ => format!("{runs} times"),
                    },
                    amount(limit)
                )
            }
        }
    }
}

/// Never 0 or 100: nothing is certain.
pub(super) fn percent(probability: f64) -> String {
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
