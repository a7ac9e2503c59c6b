//! What similar arms suggest: forests over the parameters, in whose leaves the runs of all arms are pooled.
//!
//! One forest is grown on the speeds of arms by their own runs, one on their rewards. Their predictions are not used, only
//! their leaves. Runs of all arms in a leaf are pooled: how often they ended in each cell, compared with what is usual on
//! the same instances, and how far their rewards lay above the usual ones.

use super::evidence::{Brought, Ends};
use super::pool::Member;
use super::tune;
use super::{baseline::Baseline, belief::OfArm};
use crate::policy::leaf_pool::LeafPool;
use crate::space::Space;

/// Fewer arms than this say nothing about others.
const FEWEST_ARMS: usize = 8;
/// An arm counts for at most this many ends in its leaf, however often it ran: good arms run most.
const MOST_ENDS: f64 = 3.0;
/// How many ends the ratio of all cells counts for in the ratio of one.
const CELL: f64 = 2.0;
/// Ratios beyond this are not believed.
const MOST_RATIO: f64 = 50.0;

/// Statistics of an arm: per cell, what was observed and what was expected.
type Stats = Vec<Ends>;

/// Updates every member with what similar ones suggest, as far as that can be trusted; `strength` is the weight of the ratio of
/// hazards. The same `seed` gives the same forests.
pub(super) fn consult(
    space: &Space,
    members: &mut [Member],
    baseline: &Baseline,
    usual: &[Brought],
    strength: f64,
    seed: u64,
) {
    let has_run = |place: &u32| members[*place as usize].evidence.is_some();
    let seen: Vec<u32> = (0..members.len() as u32).filter(has_run).collect();
    if seen.len() < FEWEST_ARMS {
        return;
    }
    let arms: Vec<u32> = members.iter().map(|member| member.arm).collect();
    let pool_by = |stats: &[Stats], worth: Vec<f64>| -> Option<Vec<Stats>> {
        let pool = LeafPool::grow(space, &arms, &seen, worth, seed)?;
        let numbers = |ends: &Ends| [ends.seen, ends.expected];
        let stats: Vec<Vec<f64>> = stats
            .iter()
            .map(|stat| stat.iter().flat_map(numbers).collect())
            .collect();
        Some(
            pool.pooled(&stats)
                .iter()
                .map(|pooled| ends_of(pooled))
                .collect(),
        )
    };
    let of_members = |stat: &dyn Fn(&OfArm<'_>) -> Stats| -> Vec<Stats> {
        let stats = members.iter().map(|member| stat(&member.of_arm(0.0)));
        stats.collect()
    };
    let ends = of_members(&|arm| ends(arm, baseline, usual.len()));
    let rewards = of_members(&|arm| vec![rewards(arm, usual)]);
    let speeds = ends.iter().map(|ends| Ends::sum(ends).ratio(CELL).ln());
    if let Some(pooled) = pool_by(&capped(&ends), speeds.collect()) {
        let suggested: Vec<Vec<f64>> = pooled.iter().map(|pooled| ratios(pooled)).collect();
        let pairs = || ends.iter().map(Vec::as_slice).zip(&suggested);
        let trust = tune::trust_in_ratios(pairs, strength);
        for (member, ratios) in members.iter_mut().zip(suggested) {
            member.ratios = ratios;
            for ratio in &mut member.ratios {
                *ratio = ratio.powf(trust);
            }
        }
    }
    let excesses = rewards.iter().map(|stat| excess(stat));
    if let Some(pooled) = pool_by(&capped(&rewards), excesses.collect()) {
        let suggested: Vec<f64> = pooled.iter().map(|pooled| excess(pooled)).collect();
        let pairs = rewards.iter().map(|stat| stat[0]).zip(&suggested);
        let trust = tune::trust_in_rewards(pairs);
        for (member, reward) in members.iter_mut().zip(suggested) {
            member.reward = trust * reward;
        }
    }
}

/// Pooled numbers as statistics again.
fn ends_of(pooled: &[f64]) -> Stats {
    let ends = pooled.as_chunks().0.iter();
    ends.map(|[seen, expected]| Ends {
        seen: *seen,
        expected: expected.max(0.0),
    })
    .collect()
}

/// Ends of an arm in each cell, and those expected if it were as usual.
fn ends(arm: &OfArm<'_>, baseline: &Baseline, cells: usize) -> Stats {
    let Some(evidence) = arm.evidence else {
        return vec![Ends::default(); cells];
    };
    // The time at risk of runs that ended depends on how fast the arm is.
    let first = Ends::sum(&evidence.ends(baseline, 1.0, |_| 1.0));
    evidence.ends(baseline, first.ratio(CELL), |_| 1.0)
}

/// By how much the rewards of an arm lay above the usual ones, summed, and how many they were.
fn rewards(arm: &OfArm<'_>, usual: &[Brought]) -> Ends {
    let mut sum = Ends::default();
    let brought = arm.evidence.iter().flat_map(|evidence| &evidence.brought);
    for (own, usual) in brought.zip(usual) {
        sum.seen += own.rewards - own.count * usual.mean();
        sum.expected += own.count;
    }
    sum
}

/// The mean reward above the usual one, drawn to 0.
fn excess(stat: &[Ends]) -> f64 {
    stat[0].seen / (stat[0].expected + CELL)
}

/// The same statistics, with the weight of each arm capped at [`MOST_ENDS`].
fn capped(stats: &[Stats]) -> Vec<Stats> {
    let cap = |stat: &Stats| {
        let all = Ends::sum(stat);
        let part = (MOST_ENDS / all.expected.max(all.seen)).min(1.0);
        let cell = |ends: &Ends| Ends {
            seen: part * ends.seen,
            expected: part * ends.expected,
        };
        stat.iter().map(cell).collect()
    };
    stats.iter().map(cap).collect()
}

/// The ratio of hazards in each cell to the usual ones.
fn ratios(pooled: &[Ends]) -> Vec<f64> {
    let overall = Ends::sum(pooled).ratio(1.0);
    let of_cell = |ends: &Ends| {
        let likely = (ends.seen + CELL * overall) / (ends.expected + CELL);
        likely.clamp(1.0 / MOST_RATIO, MOST_RATIO)
    };
    pooled.iter().map(of_cell).collect()
}
