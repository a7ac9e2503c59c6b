//! What every run would have gained under one limit, made comparable.

use std::collections::{BTreeMap, BTreeSet};

use crate::answer::shown::LEAST_INSTANCES;
use crate::answer::{Evidence, FinishedRun};
use crate::round::{ArmId, Limit, Price};

/// Two arms ran on the same instances if they share at least this many,
const LEAST_SHARED: usize = 3;
/// and at least this part of the instances of the arm with fewer.
const SHARED_PART: f64 = 0.5;
/// Rounds of backfitting that estimate the effects of instances.
const ROUNDS: usize = 15;

/// The gains of one arm's runs, each with its instance.
pub(super) struct ArmGains {
    pub(super) arm: ArmId,
    pub(super) gains: Vec<(Option<u32>, f64)>,
    /// The variance that expected gains lack beside real ones, summed over them.
    pub(super) imputed: f64,
}

/// Runs that were watched up to a limit, by what they say about one that was cut off earlier.
struct Donors {
    /// When each had ended (never: infinity), ascending.
    ended: Vec<f64>,
    /// The gain of the donors from each place on: mean and variance.
    gain_from: Vec<(f64, f64)>,
}

impl Donors {
    fn new(evidence: &Evidence, limit: Limit, price: &Price) -> Self {
        let mut donors: Vec<(f64, f64)> = evidence
            .pulled()
            .flat_map(|(arm, _)| evidence.reaching(arm, limit.get()))
            .filter(|run| !run.is_failed)
            .map(|run| {
                let ended = run.consumption().unwrap_or(f64::INFINITY);
                (ended, run.gain(limit, price))
            })
            .collect();
        donors.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (mut sum, mut squares, mut count) = (0.0, 0.0, 0.0);
        let mut gain_from: Vec<(f64, f64)> = donors
            .iter()
            .rev()
            .map(|(_, gain)| {
                sum += gain;
                squares += gain * gain;
                count += 1.0;
                let mean = sum / count;
                (mean, f64::max(squares / count - mean * mean, 0.0))
            })
            .collect();
        gain_from.reverse();
        Self {
            ended: donors.iter().map(|(ended, _)| *ended).collect(),
            gain_from,
        }
    }

    /// What a run that had not ended by then gains: mean and variance.
    fn after(&self, reach: f64) -> Option<(f64, f64)> {
        let place = self.ended.partition_point(|ended| *ended <= reach);
        self.gain_from.get(place).copied()
    }
}

/// The gain of a run under this limit. If it was cut off before, the mean gain of the runs of all arms that had not ended by then
/// either, and the variance of their gains. Leaving such runs out would hide why a policy gave an arm up.
fn gain(
    run: &FinishedRun,
    limit: Limit,
    price: &Price,
    donors: &Donors,
) -> Option<(f64, Option<f64>)> {
    let is_known = run.is_failed || run.reach >= limit.get() || run.is_solved_within(limit.get());
    if is_known {
        Some((run.gain(limit, price), None))
    } else {
        let (mean, variance) = donors.after(run.reach)?;
        Some((mean, Some(variance)))
    }
}

/// The runs of an arm on one instance.
#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    count: f64,
    gains: f64,
    variances: f64,
}

/// The gains of every arm under this limit, one for each instance. Arms without any are left out.
///
/// Ten runs on one instance say little about the others, and some policies run an arm on one instance again and again. So runs
/// on the same instance count as one, and those that were cut off before the limit only where no other is known.
pub(super) fn under(evidence: &Evidence, limit: Limit, price: &Price) -> Vec<ArmGains> {
    let donors = Donors::new(evidence, limit, price);
    let instances: BTreeSet<u32> = evidence
        .pulled()
        .flat_map(|(_, runs)| runs)
        .filter_map(FinishedRun::instance)
        .collect();
    let has_instances = instances.len() >= LEAST_INSTANCES;
    let of_arm = |(arm, runs): (ArmId, &[FinishedRun])| {
        let known = |run: &FinishedRun| Some((run.instance(), gain(run, limit, price, &donors)?));
        let known = runs.iter().filter_map(known);
        let (mut gains, mut imputed) = (vec![], 0.0);
        let mut by_instance = BTreeMap::<u32, [Sum; 2]>::new();
        for (instance, (gain, expected)) in known {
            let variance = expected.unwrap_or(0.0);
            match instance.filter(|_| has_instances) {
                None => {
                    gains.push((instance, gain));
                    imputed += variance;
                }
                Some(key) => {
                    let sums = by_instance.entry(key).or_default();
                    let sum = &mut sums[usize::from(expected.is_none())];
                    sum.count += 1.0;
                    sum.gains += gain;
                    sum.variances += variance;
                }
            }
        }
        for (key, [expected, known]) in by_instance {
            let sum = if known.count > 0.0 { known } else { expected };
            gains.push((Some(key), sum.gains / sum.count));
            imputed += sum.variances / sum.count;
        }
        ArmGains {
            arm,
            gains,
            imputed,
        }
    };
    let arms = evidence.pulled().map(of_arm);
    arms.filter(|of| !of.gains.is_empty()).collect()
}

/// How many instances two arms share, if they ran on the same ones: then comparing them is comparing pairs.
pub(super) fn shared(a: &ArmGains, b: &ArmGains) -> Option<usize> {
    let instances = |of: &ArmGains| -> BTreeSet<u32> {
        of.gains
            .iter()
            .filter_map(|(instance, _)| *instance)
            .collect()
    };
    let (a, b) = (instances(a), instances(b));
    let shared = a.intersection(&b).count();
    let least = SHARED_PART * a.len().min(b.len()) as f64;
    (shared >= LEAST_SHARED && shared as f64 >= least).then_some(shared)
}

/// Takes out what the instances contribute: the best linear unbiased prediction of their effects in a two-way layout of arms
/// and instances. Returns how many degrees of freedom that takes.
pub(super) fn without_instances(arms: &mut [ArmGains]) -> f64 {
    let mut counts: BTreeMap<u32, f64> = BTreeMap::new();
    for (instance, _) in arms.iter().flat_map(|of| &of.gains) {
        if let Some(instance) = instance {
            *counts.entry(*instance).or_default() += 1.0;
        }
    }
    if counts.len() < 2 {
        return 0.0;
    }
    let mut effects: BTreeMap<u32, f64> = counts.keys().map(|key| (*key, 0.0)).collect();
    // The variance of a single run over that of the instances.
    let mut ratio = 1.0;
    for _ in 0..ROUNDS {
        let mut sums: BTreeMap<u32, f64> = BTreeMap::new();
        let (mut deviations, mut degrees) = (0.0, 0.0_f64);
        for of in arms.iter() {
            let effect = |instance: &Option<u32>| instance.map_or(0.0, |key| effects[&key]);
            let adjusted = of.gains.iter().map(|(key, gain)| gain - effect(key));
            let mean = adjusted.sum::<f64>() / of.gains.len() as f64;
            degrees += of.gains.len() as f64 - 1.0;
            for (instance, gain) in &of.gains {
                if let Some(key) = instance {
                    *sums.entry(*key).or_default() += gain - mean;
                    deviations += (gain - mean - effects[key]).powi(2);
                }
            }
        }
        let noise = deviations / degrees.max(1.0);
        let mut squares = 0.0;
        for (key, sum) in &sums {
            let weight = counts[key] + ratio;
            effects.insert(*key, sum / weight);
            squares += (sum / weight).powi(2) + noise / weight;
        }
        let between = squares / counts.len() as f64;
        ratio = (noise / between.max(f64::MIN_POSITIVE)).clamp(1e-9, 1e6);
    }
    let middle = effects.values().sum::<f64>() / effects.len() as f64;
    for of in arms {
        for (instance, gain) in &mut of.gains {
            *gain -= instance.map_or(0.0, |key| effects[&key] - middle);
        }
    }
    counts
        .values()
        .map(|count| count / (count + ratio))
        .sum::<f64>()
        - 1.0
}
