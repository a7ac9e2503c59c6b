//! Which arms solve which instances.

use std::collections::BTreeMap;

use serde::Serialize;

use super::answer::label;
use super::curves::thinned;
use super::pairs::Pairs;
use super::{History, Kind, Num, Played};
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
    let unsolved_count = unsolved.len();
    unsolved.truncate(LISTED);
    Some(Instances {
        count: history.resolved.instances.len(),
        met: by_instance.len(),
        scatter: scatter.unwrap_or_default(),
        cactus: cactus_lines,
        unsolved,
        unsolved_count,
    })
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
    let told = thinned(both, POINTS)
        .into_iter()
        .map(|(instance, default, best)| Both {
            name: name(history, instance),
            default: Num(default.mean()),
            default_unsolved: default.solved == 0,
            best: Num(best.mean()),
            best_unsolved: best.solved == 0,
        });
    told.collect()
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
