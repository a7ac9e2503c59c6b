//! The posterior of the difference between two arms under a hierarchical model of all arms.

use statrs::distribution::{ContinuousCDF, Normal};

use super::gains::ArmGains;
use crate::round::ArmId;

/// With more arms than this, every so manyth says how arms differ.
const MOST_ARMS: usize = 1000;
/// With more runs than this, every so manyth says how gains are distributed.
const MOST_RUNS: usize = 2000;
/// Steps of EM that find the common mean.
const STEPS: usize = 12;
/// Spreads that are considered, beside none.
const SPREADS: u32 = 14;
/// How many runs at the common mean are added to every arm: no arm is as good or as bad as its luckiest runs.
const ADDED: f64 = 1.0;
/// Steps of the stabilised scale, in standard deviations of a single run.
const STEP: f64 = 0.05;
/// At most so many, in each direction.
const MOST_STEPS: usize = 400;
/// Steps that find a quantile.
const HALVINGS: usize = 50;
/// The smallest standard deviation of a part of the posterior, in those of a single run: arms that do not differ at all.
const NONE: f64 = 1e-6;

/// What is believed before the runs about how much arms differ.
#[derive(Debug, Clone, Copy)]
pub(super) struct Belief {
    /// How likely it is that arms do not differ at all, beside each of the spreads.
    pub(super) no_spread: f64,
    /// The smallest spread is the largest over two to the power of this.
    pub(super) halvings: f64,
}

/// The posterior of the difference between two arms.
#[derive(Debug, Clone, Copy)]
pub(super) struct Posterior {
    /// How likely it is that the first is better.
    pub(super) probability: f64,
    /// How much better it is: the median.
    pub(super) difference: f64,
    /// 95 % interval of that: it begins above 0 exactly where the probability is above 97.5 %.
    pub(super) interval: (f64, f64),
}

/// A normal part of the posterior, on the stabilised scale.
#[derive(Debug, Clone, Copy)]
struct Part {
    weight: f64,
    mean: f64,
    deviation: f64,
}

/// What the probability, the difference and its interval are all read off.
struct Mixture {
    parts: Vec<Part>,
    total: f64,
}

impl Mixture {
    /// How likely it is that the difference is at most this.
    fn below(&self, at: f64) -> f64 {
        let below = self
            .parts
            .iter()
            .map(|part| part.weight * Normal::standard().cdf((at - part.mean) / part.deviation));
        below.sum::<f64>() / self.total
    }

    /// The difference that is not exceeded with this probability.
    fn quantile(&self, probability: f64) -> f64 {
        let ends = |sign: f64| {
            self.parts
                .iter()
                .map(move |part| part.mean + sign * 9.0 * part.deviation)
        };
        let mut low = ends(-1.0).fold(f64::INFINITY, f64::min);
        let mut high = ends(1.0).fold(f64::NEG_INFINITY, f64::max);
        // Which side of 0 it is on must not depend on rounding.
        if low < 0.0 && 0.0 < high {
            if self.below(0.0) < probability {
                low = 0.0;
            } else {
                high = 0.0;
            }
        }
        for _ in 0..HALVINGS {
            let middle = 0.5 * (low + high);
            if self.below(middle) < probability {
                low = middle;
            } else {
                high = middle;
            }
        }
        0.5 * (low + high)
    }
}

/// One arm on the stabilised scale.
#[derive(Debug, Clone, Copy)]
struct Estimate {
    mean: f64,
    /// Variance of that mean.
    variance: f64,
}

/// How much better `a` is than `b`. `lost` degrees of freedom were used up before. None if the two have no runs, or no arm has two.
pub(super) fn posterior(
    arms: &[ArmGains],
    (a, b): (ArmId, ArmId),
    belief: Belief,
    lost: f64,
) -> Option<Posterior> {
    let sample = Sample::of(arms, lost)?;
    let scale = Scale::of(&sample);
    let known: Vec<Estimate> = sample.arms.iter().map(|arm| scale.estimate(arm)).collect();
    let place = |arm: ArmId| arms.iter().position(|of| of.arm == arm);
    let (a, b) = (place(a)?, place(b)?);
    let (a, b) = (known[a], known[b]);
    let step = known.len().div_ceil(MOST_ARMS).max(1);
    let all: Vec<Estimate> = known.iter().copied().step_by(step).collect();
    let models = models(&all, scale.unit.sqrt(), belief);
    let most = models.iter().map(|of| of.log_evidence);
    let most = most.fold(f64::NEG_INFINITY, f64::max);
    let mut parts = vec![];
    for model in &models {
        let weight = (model.log_evidence - most).exp();
        if weight < 1e-9 {
            continue;
        }
        let (core_a, _) = model.membership(a);
        let (core_b, _) = model.membership(b);
        for (first, of_first) in [(true, core_a), (false, 1.0 - core_a)] {
            for (second, of_second) in [(true, core_b), (false, 1.0 - core_b)] {
                let weight = weight * of_first * of_second;
                if weight <= 0.0 {
                    continue;
                }
                let (x, y) = (model.shrunk(a, first), model.shrunk(b, second));
                let variance = x.variance + y.variance + (x.pull - y.pull).powi(2) * model.unsure;
                parts.push(Part {
                    weight,
                    mean: x.mean - y.mean,
                    deviation: variance.max(0.0).sqrt().max(NONE * scale.unit.sqrt()),
                });
            }
        }
    }
    let total = parts.iter().map(|part| part.weight).sum();
    let mixture = Mixture { parts, total };
    // Two arms that far apart, around the middle of these two.
    let middle = 0.5 * (a.mean + b.mean);
    let in_gain = |apart: f64| scale.gain(middle + 0.5 * apart) - scale.gain(middle - 0.5 * apart);
    let quantile = |probability| in_gain(mixture.quantile(probability));
    Some(Posterior {
        probability: 1.0 - mixture.below(0.0),
        difference: quantile(0.5),
        interval: (quantile(0.025), quantile(0.975)),
    })
}

/// Number and mean of an arm's gains.
#[derive(Debug, Clone, Copy)]
struct OfArm {
    runs: f64,
    mean: f64,
}

/// The gains of all arms.
struct Sample {
    arms: Vec<OfArm>,
    gains: Vec<f64>,
    mean: f64,
    /// Variance of all gains, and of those of one arm.
    total: f64,
    within: f64,
}

impl Sample {
    fn of(arms: &[ArmGains], lost: f64) -> Option<Self> {
        let all = || arms.iter().flat_map(|of| &of.gains).map(|(_, gain)| *gain);
        let count = all().count() as f64;
        let degrees = count - arms.len() as f64;
        if degrees < 1.0 {
            return None;
        }
        let mean = all().sum::<f64>() / count;
        let mut deviations = 0.0;
        let of_arms: Vec<OfArm> = arms
            .iter()
            .map(|of| {
                let runs = of.gains.len() as f64;
                let mean = of.gains.iter().map(|(_, gain)| gain).sum::<f64>() / runs;
                let squares = of.gains.iter().map(|(_, gain)| (gain - mean).powi(2));
                deviations += squares.sum::<f64>() + of.imputed;
                OfArm { runs, mean }
            })
            .collect();
        let means = || of_arms.iter().map(|arm| arm.mean);
        let (low, high) = (means().fold(mean, f64::min), means().fold(mean, f64::max));
        let size = means().map(f64::abs).fold(1e-6, f64::max);
        // As if one more run had deviated as far as arms do: a few gains that are all alike prove nothing. And gains that
        // never vary are still known to a few digits only.
        let least = (1e-4 * size).powi(2);
        let deviations = deviations + (0.5 * (high - low)).powi(2);
        let within = (deviations / (degrees + 1.0 - lost).max(1.0)).max(least);
        let imputed = arms.iter().map(|of| of.imputed).sum::<f64>();
        let total = all().map(|gain| (gain - mean).powi(2)).sum::<f64>() + imputed;
        let total = total / count;
        let step = (count as usize).div_ceil(MOST_RUNS).max(1);
        Some(Self {
            arms: of_arms,
            gains: all().step_by(step).collect(),
            mean,
            total: total.max(least),
            within,
        })
    }
}

/// The scale on which a mean gain is equally sure wherever it lies.
///
/// Better arms often vary less: they fail less often, or their losses are smaller. Then the luckiest arm looks surer than it
/// is. The natural exponential family of all gains, p(x) exp(theta x), says how the variance V goes with the mean; the
/// integral of 1 / sqrt(V) stabilises it. For normal gains that is the identity, for failures the arcsine of the square root,
/// for exponential losses the logarithm.
struct Scale {
    /// Mean gains with their places, ascending.
    table: Vec<(f64, f64)>,
    mean: f64,
    /// Variance of a single run on this scale.
    unit: f64,
    /// Standard deviation of all gains.
    deviation: f64,
}

impl Scale {
    fn of(sample: &Sample) -> Self {
        let mut scale = Self {
            table: vec![(sample.mean, 0.0)],
            mean: sample.mean,
            unit: sample.within / sample.total,
            deviation: sample.total.sqrt(),
        };
        let means = || sample.arms.iter().map(|arm| scale.shrunk(arm));
        let low = means().fold(f64::INFINITY, f64::min);
        let high = means().fold(f64::NEG_INFINITY, f64::max);
        for direction in [1.0, -1.0] {
            let (mut theta, mut place) = (0.0, 0.0);
            let (mut at, mut variance) = sample.tilted(theta);
            for _ in 0..MOST_STEPS {
                if if direction > 0.0 {
                    at >= high
                } else {
                    at <= low
                } {
                    break;
                }
                theta += direction * STEP / variance.max(1e-6 * sample.total).sqrt();
                place += direction * STEP;
                (at, variance) = sample.tilted(theta);
                scale.table.push((at, place));
            }
        }
        scale.table.sort_by(|a, b| a.0.total_cmp(&b.0));
        scale
    }

    /// The mean with a few runs at the common one.
    fn shrunk(&self, arm: &OfArm) -> f64 {
        (arm.runs * arm.mean + ADDED * self.mean) / (arm.runs + ADDED)
    }

    fn estimate(&self, arm: &OfArm) -> Estimate {
        Estimate {
            mean: self.place(self.shrunk(arm)),
            variance: self.unit / arm.runs,
        }
    }

    fn place(&self, gain: f64) -> f64 {
        let after = self.table.partition_point(|(mean, _)| *mean < gain);
        let Some(&(high, to)) = self.table.get(after) else {
            return self.table[self.table.len() - 1].1;
        };
        let Some(&(low, from)) = after.checked_sub(1).map(|before| &self.table[before]) else {
            return to;
        };
        let part = if high > low {
            (gain - low) / (high - low)
        } else {
            0.0
        };
        from + (to - from) * part
    }

    /// The gain at this place. Beyond the table it goes on as it does at its end.
    fn gain(&self, place: f64) -> f64 {
        let after = self.table.partition_point(|(_, at)| *at < place);
        let after = after.min(self.table.len() - 1).max(1);
        match (self.table.get(after - 1), self.table.get(after)) {
            (Some(&(low, from)), Some(&(high, to))) => {
                low + (high - low) * (place - from) / (to - from)
            }
            _ => self.mean + place * self.deviation,
        }
    }
}

impl Sample {
    /// Mean and variance of all gains, each weighed by exp(theta gain).
    fn tilted(&self, theta: f64) -> (f64, f64) {
        let off = |gain: &f64| gain - self.mean;
        let most = self.gains.iter().map(|gain| theta * off(gain));
        let most = most.fold(f64::NEG_INFINITY, f64::max);
        let (mut weights, mut sum, mut squares) = (0.0, 0.0, 0.0);
        for gain in &self.gains {
            let weight = (theta * off(gain) - most).exp();
            weights += weight;
            sum += weight * off(gain);
            squares += weight * off(gain).powi(2);
        }
        let mean = sum / weights;
        (self.mean + mean, (squares / weights - mean * mean).max(0.0))
    }
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

/// An arm after shrinking.
#[derive(Debug, Clone, Copy)]
struct Shrunk {
    mean: f64,
    variance: f64,
    /// How far it follows the common mean.
    pull: f64,
}

/// The model with every spread that is considered: none, and a few on a logarithmic scale, each as likely.
fn models(arms: &[Estimate], single: f64, belief: Belief) -> Vec<Model> {
    let means = arms.iter().map(|arm| arm.mean);
    let (low, high) = means.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), mean| {
        (low.min(mean), high.max(mean))
    });
    let wide = high - low + single;
    let spread =
        |k: u32| wide * 0.5_f64.powf(belief.halvings * f64::from(k) / f64::from(SPREADS - 1));
    let spreads = (0..SPREADS).map(|k| (spread(k), 1.0));
    std::iter::once((0.0, belief.no_spread))
        .chain(spreads)
        .map(|(spread, weight)| Model::fitted(arms, spread * spread, wide, weight))
        .collect()
}

impl Model {
    fn fitted(arms: &[Estimate], spread: f64, wide: f64, weight: f64) -> Self {
        let mut sorted: Vec<f64> = arms.iter().map(|arm| arm.mean).collect();
        sorted.sort_by(f64::total_cmp);
        // The better half: what matters is how the good arms lie.
        let mut model = Self {
            spread,
            mean: sorted[sorted.len() * 3 / 4],
            unsure: 0.0,
            core: 0.8,
            anywhere: 1.0 / wide,
            log_evidence: 0.0,
        };
        for step in 0..=STEPS {
            let (mut weights, mut sum, mut cores, mut evidence) = (0.0, 0.0, 0.0, 0.0);
            for arm in arms {
                let (core, density) = model.membership(*arm);
                evidence += density.ln();
                cores += core;
                weights += core / (spread + arm.variance);
                sum += core * arm.mean / (spread + arm.variance);
            }
            model.unsure = 1.0 / weights.max(1e-300);
            model.log_evidence = evidence + 0.5 * model.unsure.ln() + weight.ln();
            if step < STEPS && weights > 0.0 {
                model.mean = sum / weights;
                model.core = (cores + 4.0) / (arms.len() as f64 + 5.0);
            }
        }
        model
    }

    /// How likely an arm belongs to the core, and the density of its mean.
    fn membership(&self, arm: Estimate) -> (f64, f64) {
        let total = self.spread + arm.variance;
        let off = (arm.mean - self.mean).powi(2) / (2.0 * total);
        let core = self.core * (-off).exp() / (2.0 * std::f64::consts::PI * total).sqrt();
        // Only worse arms lie anywhere: what looks much better than the rest is shrunk towards it.
        let anywhere = if arm.mean < self.mean {
            self.anywhere
        } else {
            0.0
        };
        let density = (core + (1.0 - self.core) * anywhere).max(f64::MIN_POSITIVE);
        (core / density, density)
    }

    /// What is known of an arm, whether it belongs to the core or lies anywhere.
    fn shrunk(&self, arm: Estimate, is_core: bool) -> Shrunk {
        if !is_core {
            return Shrunk {
                mean: arm.mean,
                variance: arm.variance,
                pull: 0.0,
            };
        }
        let own = self.spread / (self.spread + arm.variance);
        Shrunk {
            mean: self.mean + own * (arm.mean - self.mean),
            variance: own * arm.variance,
            pull: 1.0 - own,
        }
    }
}
