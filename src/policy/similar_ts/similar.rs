//! What similar arms suggest: forests over the parameters, in whose leaves the runs of all arms are pooled.
//!
//! One forest is grown on the speeds of arms by their own runs, one on their rewards. Their predictions are not used, only
//! their leaves. Runs of all arms in a leaf are pooled: how often they ended in each cell, compared with what is usual on
//! the same instances, and how far their rewards lay above the usual ones.
//!
//! Trees fit luck as well as merit: lucky arms end up in one leaf and would confirm each other. So only out-of-bag arms of
//! a tree are pooled, and only for each other. The pooled statistics of an arm are then independent of its own runs, and
//! how well they fit these runs says how far to trust them.

use super::evidence::{Brought, Ends};
use super::pool::Member;
use super::tune;
use super::{baseline::Baseline, belief::OfArm};
use crate::round::ArmId;
use crate::space::{ABSENT, Scale, Space, Value};
use captime_forest::{Dataset, FitOutcome, Forest, Params, Stop, fit_until};

/// Enough trees that the average over leaves is smooth.
const TREES: usize = 40;
/// Nodes of so few arms are not split.
const NODE: usize = 10;
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

/// Tells every member what similar ones suggest, as far as that can be trusted; `strength` is the weight of the ratio of
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
    let pool_by = |stats: &[Stats], worth: Vec<f64>| {
        let pool = LeafPool::grow(space, &arms, &seen, worth, seed)?;
        Some(pool.pooled(stats))
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

/// Pools arms by the leaves of a forest over the parameters of all members.
struct LeafPool {
    data: Dataset,
    forest: Forest,
}

impl LeafPool {
    /// Grows it on what the members that have run are `worth`; none where nothing differs.
    fn grow(space: &Space, arms: &[u32], seen: &[u32], worth: Vec<f64>, seed: u64) -> Option<Self> {
        let codes: Vec<Vec<u32>> = arms
            .iter()
            .map(|arm| space.codes(ArmId::from_index(*arm as usize)))
            .collect();
        let parameters = space.parameters();
        let column = |place: usize| {
            let values = numbers(space, place, &codes, seen, &worth);
            let of_arm = |codes: &Vec<u32>| match codes[place] {
                ABSENT => f64::NAN,
                code => values[code as usize],
            };
            let column = codes.iter().map(of_arm).collect();
            (parameters[place].name().to_owned(), column)
        };
        let columns = (0..parameters.len()).map(column).collect();
        let data = Dataset::from_columns(columns, "worth", worth.clone(), vec![]).ok()?;
        let params = Params {
            trees: TREES,
            // Of many parameters few matter: each split may take the best.
            mtry: Some(parameters.len()),
            min_node_size: Some(NODE),
            seed,
            ..Params::default()
        };
        match fit_until(&data, seen, &params, &Stop::new(), None).ok()? {
            FitOutcome::Done { forest, .. } => Some(Self { data, forest }),
            FitOutcome::Stopped { .. } => None,
        }
    }

    /// The statistics of the other out-of-bag arms in each arm's leaf, averaged over the trees for which the arm itself is
    /// out of bag.
    fn pooled(&self, stats: &[Stats]) -> Vec<Stats> {
        let nothing = vec![Ends::default(); stats[0].len()];
        let mut pooled = vec![nothing.clone(); stats.len()];
        let mut trees = vec![0.0; stats.len()];
        let mut leaves = vec![nothing; self.forest.most_nodes()];
        for tree in 0..self.forest.trees() {
            let leaf_of = self.forest.leaves(&self.data, tree);
            let bag = self.forest.bag(&self.data, tree);
            let outside = || (0..stats.len()).filter(|place| !bag[*place]);
            for leaf in &mut leaves {
                leaf.fill(Ends::default());
            }
            for place in outside() {
                add(&mut leaves[leaf_of[place] as usize], &stats[place], 1.0);
            }
            for place in outside() {
                add(&mut pooled[place], &leaves[leaf_of[place] as usize], 1.0);
                // Without the arm itself.
                add(&mut pooled[place], &stats[place], -1.0);
                trees[place] += 1.0;
            }
        }
        for (pooled, trees) in pooled.iter_mut().zip(trees) {
            for ends in pooled {
                ends.seen /= f64::max(trees, 1.0);
                ends.expected = ends.expected.max(0.0) / f64::max(trees, 1.0);
            }
        }
        pooled
    }
}

fn add(sum: &mut [Ends], stat: &[Ends], times: f64) {
    for (sum, stat) in sum.iter_mut().zip(stat) {
        sum.seen += times * stat.seen;
        sum.expected += times * stat.expected;
    }
}

/// The number that stands for each value of a parameter: categories in the order of what they brought, as ranger orders
/// factors.
fn numbers(
    space: &Space,
    place: usize,
    codes: &[Vec<u32>],
    seen: &[u32],
    worth: &[f64],
) -> Vec<f64> {
    let parameter = &space.parameters()[place];
    let values = parameter.values();
    match parameter.scale() {
        Scale::Number => {
            let number = values.iter().map(Value::number);
            number.map(|number| number.unwrap_or(f64::NAN)).collect()
        }
        Scale::Ordered => (0..values.len()).map(|code| code as f64).collect(),
        Scale::Category => {
            let overall = seen.iter().map(|row| worth[*row as usize]).sum::<f64>();
            let overall = overall / seen.len().max(1) as f64;
            let mut sums = vec![(overall, 1.0); values.len()];
            for &row in seen {
                if let Some(sum) = sums.get_mut(codes[row as usize][place] as usize) {
                    *sum = (sum.0 + worth[row as usize], sum.1 + 1.0);
                }
            }
            sums.iter().map(|(sum, count)| sum / count).collect()
        }
    }
}
