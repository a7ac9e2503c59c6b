//! What similar arms suggest: a forest over the parameters, in whose leaves the runs of all arms are pooled.
//!
//! The forest is grown on what each arm seems to be worth by its own runs. What counts is not its prediction but its
//! leaves: an arm is told how often the runs of the other arms in its leaves ended in each cell, compared with what is
//! usual on the same instances, and how far their rewards lay above the usual ones.

use super::evidence::{Brought, Ends};
use super::pool::Member;
use super::{baseline::Baseline, belief::OfArm};
use crate::learner::{Dataset, FitOutcome, Forest, Params, Stop, fit_until};
use crate::round::ArmId;
use crate::space::{ABSENT, Scale, Space, Value};

/// Enough trees that the average over leaves is smooth.
const TREES: usize = 40;
/// Nodes of so few arms are not split.
const NODE: usize = 5;
/// Fewer arms than this say nothing about others.
const FEWEST_ARMS: usize = 8;
/// No arm speaks for more than so many ends in its leaf, however often it ran: good arms run most.
const MOST_ENDS: f64 = 3.0;
/// How many ends the ratio of all cells counts for in the ratio of one.
const CELL: f64 = 2.0;
/// Ratios beyond this are not believed.
const MOST_RATIO: f64 = 50.0;

/// What an arm has to say to others.
#[derive(Debug, Clone)]
struct Word {
    /// Per cell, ends and ends expected if it were as usual.
    ends: Vec<Ends>,
    /// By how much its rewards lay above the usual ones, summed, and how many they were.
    rewards: (f64, f64),
}

/// Tells every member what similar ones suggest; false where nothing can be said.
///
/// `worth` is what each member seems to be worth by its own runs. The same `seed` gives the same forest.
pub(super) fn consult(
    space: &Space,
    members: &mut [Member],
    baseline: &Baseline,
    usual: &[Brought],
    worth: Vec<f64>,
    seed: u64,
) -> bool {
    let has_run = |place: &u32| members[*place as usize].evidence.is_some();
    let seen: Vec<u32> = (0..members.len() as u32).filter(has_run).collect();
    if seen.len() < FEWEST_ARMS {
        return false;
    }
    let arms: Vec<u32> = members.iter().map(|member| member.arm).collect();
    let Some((data, forest)) = grow(space, &arms, &seen, worth, seed) else {
        return false;
    };
    let words: Vec<Word> = members
        .iter()
        .map(|member| Word::of(&member.of_arm(0.0), baseline, usual))
        .collect();
    let mut heard = vec![Word::nothing(usual.len()); members.len()];
    let mut leaves = vec![Word::nothing(usual.len()); forest.most_nodes()];
    for tree in 0..forest.trees() {
        let leaf_of = forest.leaves(&data, tree);
        for leaf in &mut leaves {
            leaf.clear();
        }
        for (word, leaf) in words.iter().zip(&leaf_of) {
            leaves[*leaf as usize].add(word, 1.0);
        }
        for ((heard, own), leaf) in heard.iter_mut().zip(&words).zip(&leaf_of) {
            heard.add(&leaves[*leaf as usize], 1.0);
            // An arm is not told what it knows itself.
            heard.add(own, -1.0);
        }
    }
    for (member, heard) in members.iter_mut().zip(&heard) {
        heard.tell(forest.trees() as f64, member);
    }
    true
}

impl Word {
    fn nothing(cells: usize) -> Self {
        Self {
            ends: vec![Ends::default(); cells],
            rewards: (0.0, 0.0),
        }
    }

    fn of(arm: &OfArm<'_>, baseline: &Baseline, usual: &[Brought]) -> Self {
        let mut word = Self::nothing(usual.len());
        let Some(evidence) = arm.evidence else {
            return word;
        };
        let first = Ends::sum(&evidence.ends(baseline, 1.0, |_| 1.0));
        let ends = evidence.ends(baseline, first.ratio(CELL), |_| 1.0);
        let all = Ends::sum(&ends);
        let part = (MOST_ENDS / all.expected.max(all.seen)).min(1.0);
        for (own, seen) in word.ends.iter_mut().zip(&ends) {
            own.seen = part * seen.seen;
            own.expected = part * seen.expected;
        }
        for (own, usual) in evidence.brought.iter().zip(usual) {
            word.rewards.0 += own.rewards - own.count * usual.mean();
            word.rewards.1 += own.count;
        }
        let part = (MOST_ENDS / word.rewards.1).min(1.0);
        word.rewards = (part * word.rewards.0, part * word.rewards.1);
        word
    }

    fn clear(&mut self) {
        self.ends.fill(Ends::default());
        self.rewards = (0.0, 0.0);
    }

    fn add(&mut self, other: &Self, times: f64) {
        for (own, other) in self.ends.iter_mut().zip(&other.ends) {
            own.seen += times * other.seen;
            own.expected += times * other.expected;
        }
        self.rewards.0 += times * other.rewards.0;
        self.rewards.1 += times * other.rewards.1;
    }

    /// Turns the sums over all trees into what the member is told.
    fn tell(&self, trees: f64, member: &mut Member) {
        let mean = |ends: Ends| Ends {
            seen: ends.seen.max(0.0) / trees,
            expected: ends.expected.max(0.0) / trees,
        };
        let overall = mean(Ends::sum(&self.ends)).ratio(1.0);
        for (ratio, ends) in member.ratios.iter_mut().zip(&self.ends) {
            let ends = mean(*ends);
            let likely = (ends.seen + CELL * overall) / (ends.expected + CELL);
            *ratio = likely.clamp(1.0 / MOST_RATIO, MOST_RATIO);
        }
        let (sum, count) = (self.rewards.0 / trees, self.rewards.1.max(0.0) / trees);
        member.reward = sum / (count + CELL);
    }
}

/// A forest on the members that have run; none where nothing differs.
fn grow(
    space: &Space,
    arms: &[u32],
    seen: &[u32],
    worth: Vec<f64>,
    seed: u64,
) -> Option<(Dataset, Forest)> {
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
        mtry: Some(parameters.len().div_ceil(2)),
        min_node_size: Some(NODE),
        seed,
        ..Params::default()
    };
    match fit_until(&data, seen, &params, &Stop::new(), None).ok()? {
        FitOutcome::Done { forest, .. } => Some((data, forest)),
        FitOutcome::Stopped { .. } => None,
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
