//! Which arms solve which instances.

use std::collections::BTreeMap;

use serde::Serialize;

use super::answer::label;
use super::curves::thinned;
use super::pairs::Pairs;
use super::{History, Kind, Num, Played};
use crate::answer::FinishedRun;
use crate::round::ArmId;

/// What is known about the instances.
#[derive(Debug, Clone, Serialize)]
pub struct Instances {
    /// How many there are.
    pub count: usize,
    /// How many have been met so far.
    pub met: usize,
    /// Those both the first arm and the best arm ran on.
    pub scatter: Vec<Both>,
    /// Consumption over instances solved, for some arms and for the best of all.
    pub cactus: Vec<Cactus>,
    /// Tried, and never solved by any arm: name, tries, arms.
    pub unsolved: Vec<(String, u64, usize)>,
    /// How many of those there are.
    pub unsolved_count: usize,
    /// The instances that the answer is worst at.
    pub worst: Vec<Hard>,
    /// Features and how they go with the answer's gain on an instance, the strongest first.
    pub features: Vec<FeatureRank>,
    /// Instances that this rests on.
    pub featured: usize,
}

/// How the answer does on an instance, at its own limit.
#[derive(Debug, Clone, Serialize)]
pub struct Hard {
    /// Its name.
    pub name: String,
    /// Mean gain of the answer.
    pub gain: Num,
    /// Share of its runs that ended with a reward.
    pub solved: Num,
    /// Its runs.
    pub runs: usize,
    /// Mean gain of the default at the same limit, null if none of its runs reached it.
    pub default: Num,
}

/// A feature of instances.
#[derive(Debug, Clone, Serialize)]
pub struct FeatureRank {
    /// Its name.
    pub name: String,
    /// Spearman's rank correlation with the answer's gain: below 0, the answer is worse where the feature is large.
    pub correlation: Num,
    /// Mean over the third of the instances that the answer is worst at.
    pub at_worst: Num,
    /// Mean over all others.
    pub elsewhere: Num,
}

/// An instance that both arms ran on.
#[derive(Debug, Clone, Serialize)]
pub struct Both {
    /// Its name.
    pub name: String,
    /// What the first arm used on average. A pull without a reward counts with the limit it ran to.
    pub default: Num,
    /// Whether it never had a reward.
    pub default_unsolved: bool,
    /// The same of the best arm.
    pub best: Num,
    /// Whether it never had a reward.
    pub best_unsolved: bool,
}

/// Mean consumptions on solved instances, ascending.
#[derive(Debug, Clone, Serialize)]
pub struct Cactus {
    /// The arm, in words.
    pub who: String,
    /// Instances it ran on.
    pub tried: usize,
    /// Number solved, consumption of the one last solved.
    pub points: Vec<(usize, Num)>,
}

/// Unsolved instances that are listed.
const LISTED: usize = 200;
/// Maximum points of the scatter and of a line.
const POINTS: usize = 1500;

#[derive(Debug, Clone, Copy, Default)]
struct Tries {
    pulls: u64,
    solved: u64,
    /// Consumption when solved, and in total.
    solved_used: f64,
    used: f64,
}

impl Tries {
    fn add(&mut self, played: &Played) {
        self.pulls += 1;
        if played.kind == Kind::Rewarded {
            self.solved += 1;
            self.solved_used += played.consumption;
            self.used += played.consumption;
        } else {
            self.used += played.reach;
        }
    }

    fn mean(&self) -> f64 {
        self.used / self.pulls as f64
    }
}

/// What is known about the instances, if there are any.
pub fn instances(history: &History, pairs: &Pairs<'_>) -> Option<Instances> {
    if history.resolved.instances.is_empty() {
        return None;
    }
    let mut by_instance: BTreeMap<u32, Vec<&Played>> = BTreeMap::new();
    for played in history.rounds.iter().filter(|played| played.instance > 0) {
        by_instance.entry(played.instance).or_default().push(played);
    }
    let first = ArmId::from_index(0);
    let best = history.answer().map(|answer| answer.pull.arm);
    let of = |arm: ArmId| -> BTreeMap<u32, Tries> {
        let mut tries: BTreeMap<u32, Tries> = BTreeMap::new();
        for played in &history.rounds {
            if played.arm == arm && played.instance > 0 {
                tries.entry(played.instance).or_default().add(played);
            }
        }
        tries
    };
    let default = of(first);
    let scatter = best.map(|best| scatter(history, &default, &of(best)));
    let mut cactus_lines = vec![];
    let mut shown: Vec<ArmId> = vec![];
    let lines = [
        ("best", best),
        ("default", Some(first)),
        ("median", pairs.median(history)),
    ];
    for (who, arm) in lines {
        if let Some(arm) = arm.filter(|arm| !shown.contains(arm)) {
            shown.push(arm);
            let who = format!("{who}: {}", label(history, arm));
            cactus_lines.push(cactus(who, of(arm).values().copied()));
        }
    }
    let any = by_instance.values().map(|rounds| {
        // The best that any arm did: a bound on what choosing per instance could gain.
        let solved = rounds
            .iter()
            .filter(|played| played.kind == Kind::Rewarded)
            .map(|played| played.consumption);
        let fastest = solved.fold(f64::INFINITY, f64::min);
        Tries {
            pulls: 1,
            solved: u64::from(fastest.is_finite()),
            solved_used: fastest,
            used: fastest,
        }
    });
    cactus_lines.push(cactus("fastest of all arms".into(), any));
    let mut unsolved: Vec<(String, u64, usize)> = by_instance
        .iter()
        .filter(|(_, rounds)| rounds.iter().all(|played| played.kind != Kind::Rewarded))
        .map(|(instance, rounds)| {
            let mut arms: Vec<ArmId> = rounds.iter().map(|played| played.arm).collect();
            arms.sort_unstable();
            arms.dedup();
            (name(history, *instance), rounds.len() as u64, arms.len())
        })
        .collect();
    unsolved.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    let gains = best.map_or_else(BTreeMap::new, |best| gains_of(history, best));
    let unsolved_count = unsolved.len();
    unsolved.truncate(LISTED);
    Some(Instances {
        count: history.resolved.instances.len(),
        met: by_instance.len(),
        scatter: scatter.unwrap_or_default(),
        cactus: cactus_lines,
        unsolved,
        unsolved_count,
        worst: worst(history, &gains, &gains_of(history, first)),
        features: features(history, &gains),
        featured: gains.len(),
    })
}

/// What an arm gains on an instance at the answer's limit.
#[derive(Debug, Clone, Copy, Default)]
struct Gains {
    sum: f64,
    runs: usize,
    solved: usize,
}

impl Gains {
    fn mean(self) -> f64 {
        self.sum / self.runs as f64
    }
}

/// The gains of an arm on every instance at the answer's limit, by instance from 0.
fn gains_of(history: &History, arm: ArmId) -> BTreeMap<u32, Gains> {
    let mut gains: BTreeMap<u32, Gains> = BTreeMap::new();
    let (Some(best), Some(price)) = (history.answer(), history.price()) else {
        return gains;
    };
    let limit = best.pull.limit;
    // A run that ended under a smaller limit would end under this one.
    let is_known =
        |run: &&FinishedRun| run.reach >= limit.get() || run.is_solved_within(limit.get());
    for run in history.evidence().of(arm).iter().filter(is_known) {
        if let Some(instance) = run.instance() {
            let of = gains.entry(instance).or_default();
            of.sum += run.gain(limit, price);
            of.runs += 1;
            of.solved += usize::from(run.is_solved_within(limit.get()));
        }
    }
    gains
}

/// The instances from the worst on.
fn ranked(gains: &BTreeMap<u32, Gains>) -> Vec<(u32, Gains)> {
    let mut ranked: Vec<(u32, Gains)> = gains.iter().map(|(&at, &of)| (at, of)).collect();
    ranked.sort_by(|a, b| a.1.mean().total_cmp(&b.1.mean()));
    ranked
}

/// Instances the answer is worst at that are listed.
const WORST: usize = 15;

fn worst(
    history: &History,
    gains: &BTreeMap<u32, Gains>,
    of_default: &BTreeMap<u32, Gains>,
) -> Vec<Hard> {
    let hard = |(instance, of): (u32, Gains)| Hard {
        name: name(history, instance + 1),
        gain: Num(of.mean()),
        solved: Num(of.solved as f64 / of.runs as f64),
        runs: of.runs,
        default: Num::of(of_default.get(&instance).map(|of| of.mean())),
    };
    ranked(gains).into_iter().take(WORST).map(hard).collect()
}

/// Features that are listed.
const FEATURES: usize = 12;
/// With fewer instances than this, nothing is said about features.
const LEAST: usize = 10;

fn features(history: &History, gains: &BTreeMap<u32, Gains>) -> Vec<FeatureRank> {
    let Some(features) = &history.scenario().features else {
        return vec![];
    };
    let rows: Vec<(f64, &Vec<Option<f64>>)> = ranked(gains)
        .into_iter()
        .filter_map(|(instance, of)| {
            let row = features.rows.get(&name(history, instance + 1))?;
            Some((of.mean(), row))
        })
        .collect();
    let mut ranks: Vec<FeatureRank> = (features.names.iter().enumerate())
        .filter_map(|(place, name)| {
            let known = rows
                .iter()
                .filter_map(|(gain, row)| Some((*gain, row[place]?)));
            let known: Vec<(f64, f64)> = known.collect();
            let worst = known.len() / 3;
            let mean = |of: &[(f64, f64)]| of.iter().map(|of| of.1).sum::<f64>() / of.len() as f64;
            let correlation = spearman(&known).filter(|_| known.len() >= LEAST)?;
            Some(FeatureRank {
                name: name.clone(),
                correlation: Num(correlation),
                at_worst: Num(mean(&known[..worst])),
                elsewhere: Num(mean(&known[worst..])),
            })
        })
        .collect();
    ranks.sort_by(|a, b| b.correlation.0.abs().total_cmp(&a.correlation.0.abs()));
    ranks.truncate(FEATURES);
    ranks
}

/// Spearman's rank correlation, with the mean rank for equal values; none if one of them never varies.
fn spearman(pairs: &[(f64, f64)]) -> Option<f64> {
    let ranks = |of: fn(&(f64, f64)) -> f64| {
        let values: Vec<f64> = pairs.iter().map(of).collect();
        let mut sorted = values.clone();
        sorted.sort_by(f64::total_cmp);
        let rank = |value: &f64| {
            let below = sorted.partition_point(|other| other < value);
            let up_to = sorted.partition_point(|other| other <= value);
            (below + up_to) as f64 / 2.0
        };
        values.iter().map(rank).collect::<Vec<f64>>()
    };
    let (a, b) = (ranks(|pair| pair.0), ranks(|pair| pair.1));
    let middle = pairs.len() as f64 / 2.0;
    let product = |a: &[f64], b: &[f64]| -> f64 {
        let both = a.iter().zip(b);
        both.map(|(a, b)| (a - middle) * (b - middle)).sum()
    };
    let size = (product(&a, &a) * product(&b, &b)).sqrt();
    (size > 0.0).then(|| product(&a, &b) / size)
}

/// The name of an instance.
pub fn name(history: &History, instance: u32) -> String {
    let known = history.resolved.instances.get(instance as usize - 1);
    known.map_or_else(|| format!("instance {instance}"), Clone::clone)
}

fn scatter(
    history: &History,
    default: &BTreeMap<u32, Tries>,
    best: &BTreeMap<u32, Tries>,
) -> Vec<Both> {
    let both: Vec<(u32, Tries, Tries)> = default
        .iter()
        .filter_map(|(instance, of_default)| Some((*instance, *of_default, *best.get(instance)?)))
        .collect();
    let points = thinned(both, POINTS)
        .into_iter()
        .map(|(instance, default, best)| Both {
            name: name(history, instance),
            default: Num(default.mean()),
            default_unsolved: default.solved == 0,
            best: Num(best.mean()),
            best_unsolved: best.solved == 0,
        });
    points.collect()
}

fn cactus(who: String, tries: impl Iterator<Item = Tries>) -> Cactus {
    let mut tried = 0;
    let mut solved = vec![];
    for of in tries {
        tried += 1;
        if of.solved > 0 {
            solved.push(of.solved_used / of.solved as f64);
        }
    }
    solved.sort_by(f64::total_cmp);
    let points = solved
        .into_iter()
        .enumerate()
        .map(|(place, used)| (place + 1, Num(used)));
    Cactus {
        who,
        tried,
        points: thinned(points.collect(), POINTS),
    }
}

#[cfg(test)]
mod tests {
    use super::spearman;

    #[test]
    fn ranks_correlate_as_textbooks_say() {
        let close = |pairs: &[(f64, f64)], wanted: f64| {
            let found = spearman(pairs).unwrap();
            assert!((found - wanted).abs() < 1e-12, "{found}");
        };
        close(&[(1.0, 10.0), (2.0, 100.0), (3.0, 1000.0)], 1.0);
        close(&[(1.0, 3.0), (2.0, 2.0), (3.0, 1.0)], -1.0);
        // 1 - 6 * sum of squared differences / (n (n^2 - 1)).
        close(&[(1.0, 2.0), (2.0, 1.0), (3.0, 3.0), (4.0, 4.0)], 0.8);
        assert_eq!(spearman(&[(1.0, 5.0), (2.0, 5.0)]), None);
        assert_eq!(spearman(&[]), None);
    }
}
