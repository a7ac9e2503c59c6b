//! What similar arms suggest: forests over the parameters, in whose leaves the runs of all arms are pooled.
//!
//! One forest is grown on how fast arms seem to be by their own runs, one on the rewards they brought. What counts is not
//! their prediction but their leaves: an arm is told how often the runs of the other arms in its leaves ended in each
//! cell, compared with what is usual on the same instances, and how far their rewards lay above the usual ones.
//!
//! Trees follow luck as well as merit: arms that were lucky end in a leaf together, and would assure each other. So a tree
//! is asked only by arms that it was not grown on, and only such arms answer. What an arm is told has then nothing of its
//! own in it, and how well that fits what it did says how far to trust it.

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
/// No arm speaks for more than so many ends in its leaf, however often it ran: good arms run most.
const MOST_ENDS: f64 = 3.0;
/// How many ends the ratio of all cells counts for in the ratio of one.
const CELL: f64 = 2.0;
/// Ratios beyond this are not believed.
const MOST_RATIO: f64 = 50.0;

/// What an arm has to say to others about one thing: per cell, what was seen and what was to be expected.
type Word = Vec<Ends>;

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
    let circle = |words: &[Word], worth: Vec<f64>| {
        let alike = Alike::grow(space, &arms, &seen, worth, seed)?;
        Some(alike.ask(words))
    };
    let of_members = |word: &dyn Fn(&OfArm<'_>) -> Word| -> Vec<Word> {
        let words = members.iter().map(|member| word(&member.of_arm(0.0)));
        words.collect()
    };
    let ends = of_members(&|arm| ends(arm, baseline, usual.len()));
    let rewards = of_members(&|arm| vec![rewards(arm, usual)]);
    let speeds = ends.iter().map(|ends| Ends::sum(ends).ratio(CELL).ln());
    if let Some(heard) = circle(&capped(&ends), speeds.collect()) {
        let suggested: Vec<Vec<f64>> = heard.iter().map(|heard| ratios(heard)).collect();
        let pairs = || ends.iter().map(Vec::as_slice).zip(&suggested);
        let trust = tune::trust_in_ratios(pairs, strength);
        for (member, ratios) in members.iter_mut().zip(suggested) {
            member.ratios = ratios;
            for ratio in &mut member.ratios {
                *ratio = ratio.powf(trust);
            }
        }
    }
    let excesses = rewards.iter().map(|word| excess(word));
    if let Some(heard) = circle(&capped(&rewards), excesses.collect()) {
        let suggested: Vec<f64> = heard.iter().map(|heard| excess(heard)).collect();
        let pairs = rewards.iter().map(|word| word[0]).zip(&suggested);
        let trust = tune::trust_in_rewards(pairs);
        for (member, reward) in members.iter_mut().zip(suggested) {
            member.reward = trust * reward;
        }
    }
}

/// Ends of an arm in each cell, and those expected if it were as usual.
fn ends(arm: &OfArm<'_>, baseline: &Baseline, cells: usize) -> Word {
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
fn excess(word: &[Ends]) -> f64 {
    word[0].seen / (word[0].expected + CELL)
}

/// The same words, none louder than [`MOST_ENDS`].
fn capped(words: &[Word]) -> Vec<Word> {
    let quiet = |word: &Word| {
        let all = Ends::sum(word);
        let part = (MOST_ENDS / all.expected.max(all.seen)).min(1.0);
        let cell = |ends: &Ends| Ends {
            seen: part * ends.seen,
            expected: part * ends.expected,
        };
        word.iter().map(cell).collect()
    };
    words.iter().map(quiet).collect()
}

/// The ratio of hazards in each cell to the usual ones.
fn ratios(heard: &[Ends]) -> Vec<f64> {
    let overall = Ends::sum(heard).ratio(1.0);
    let of_cell = |ends: &Ends| {
        let likely = (ends.seen + CELL * overall) / (ends.expected + CELL);
        likely.clamp(1.0 / MOST_RATIO, MOST_RATIO)
    };
    heard.iter().map(of_cell).collect()
}

/// Who is alike: a forest over the parameters of all members.
struct Alike {
    data: Dataset,
    forest: Forest,
}

impl Alike {
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

    /// What each arm hears in its leaf, on average over the trees that were not grown on it: the words of the other arms
    /// that the tree was not grown on.
    fn ask(&self, words: &[Word]) -> Vec<Word> {
        let nothing = vec![Ends::default(); words[0].len()];
        let mut heard = vec![nothing.clone(); words.len()];
        let mut trees = vec![0.0; words.len()];
        let mut leaves = vec![nothing; self.forest.most_nodes()];
        for tree in 0..self.forest.trees() {
            let leaf_of = self.forest.leaves(&self.data, tree);
            let bag = self.forest.bag(&self.data, tree);
            let outside = || (0..words.len()).filter(|place| !bag[*place]);
            for leaf in &mut leaves {
                leaf.fill(Ends::default());
            }
            for place in outside() {
                add(&mut leaves[leaf_of[place] as usize], &words[place], 1.0);
            }
            for place in outside() {
                add(&mut heard[place], &leaves[leaf_of[place] as usize], 1.0);
                // An arm is not told what it knows itself.
                add(&mut heard[place], &words[place], -1.0);
                trees[place] += 1.0;
            }
        }
        for (heard, trees) in heard.iter_mut().zip(trees) {
            for ends in heard {
                ends.seen /= f64::max(trees, 1.0);
                ends.expected = ends.expected.max(0.0) / f64::max(trees, 1.0);
            }
        }
        heard
    }
}

fn add(sum: &mut [Ends], word: &[Ends], times: f64) {
    for (sum, word) in sum.iter_mut().zip(word) {
        sum.seen += times * word.seen;
        sum.expected += times * word.expected;
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
