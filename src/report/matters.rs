//! What matters: parameters and their values.

use serde::Serialize;

use super::pairs::Pairs;
use super::{History, Num};
use crate::learner::{Dataset, FitOutcome, Importance, Params, Stop, fit_until};
use crate::round::ArmId;
use crate::space::{ABSENT, Parameter};

/// What is known of the parameters.
#[derive(Debug, Clone, Serialize)]
pub struct Matters {
    /// The parameters, those that matter most first.
    pub parameters: Vec<ParameterMatters>,
    /// How much the limit matters, in the same measure.
    pub limit_importance: Num,
    /// Rounds the forest was fitted on.
    pub fitted_on: usize,
    /// Gains over the two parameters that matter most.
    pub pair: Option<PairMap>,
}

/// One parameter.
#[derive(Debug, Clone, Serialize)]
pub struct ParameterMatters {
    /// Its name.
    pub name: String,
    /// Growth of the forest's squared error when this parameter is shuffled, as a share of the gain's variance.
    pub importance: Num,
    /// Its values, or ranges of them.
    pub values: Vec<ValueMatters>,
}

/// One value of a parameter, over the arms that have it.
#[derive(Debug, Clone, Serialize)]
pub struct ValueMatters {
    /// The value, or `low … high`.
    pub value: String,
    /// Mean gain of its arms, each at its own best limit; every arm counts the same.
    pub gain: Num,
    /// 95 % interval of that mean.
    pub low: Num,
    /// Its other end.
    pub high: Num,
    /// Mean consumption of a pull, over its arms.
    pub consumption: Num,
    /// Arms with this value that were pulled.
    pub arms: usize,
    /// Their pulls.
    pub pulls: u64,
}

/// Gains over two parameters.
#[derive(Debug, Clone, Serialize)]
pub struct PairMap {
    /// The first parameter.
    pub x: String,
    /// The second.
    pub y: String,
    /// Value of the first, value of the second, mean gain of the arms, how many.
    pub cells: Vec<(String, String, Num, usize)>,
}

/// What an arm brought, for comparisons between arms.
#[derive(Debug, Clone, Copy)]
struct OfArm {
    arm: ArmId,
    gain: f64,
    consumption: f64,
    pulls: u64,
}

/// Values of a parameter are put together above this many.
const GROUPS: usize = 24;
/// Rounds the forest is fitted on at most: enough to rank parameters, little enough not to wait for.
const ROWS: usize = 3000;

/// Finds out what matters; nothing where arms have no parameters or limits are not known yet.
pub fn matters(history: &History, pairs: &Pairs<'_>) -> Option<Matters> {
    history.known()?;
    let parameters = history.space.parameters();
    if parameters.is_empty() {
        return None;
    }
    let arms = of_arms(history, pairs);
    let (importance, fitted_on) = importance(history);
    let groups: Vec<Grouping> = parameters.iter().map(Grouping::new).collect();
    let codes: Vec<Vec<u32>> = arms.iter().map(|of| history.space.codes(of.arm)).collect();
    let mut order: Vec<usize> = (0..parameters.len()).collect();
    let weight = |place: usize| importance.get(place).copied().unwrap_or(f64::NAN);
    order.sort_by(|&a, &b| {
        let (a, b) = (weight(a), weight(b));
        b.partial_cmp(&a).unwrap_or(std::cmp::Ordering::Equal)
    });
    let told = order.iter().map(|&place| ParameterMatters {
        name: parameters[place].name().to_owned(),
        importance: Num(weight(place)),
        values: values(&groups[place], place, &arms, &codes),
    });
    let varying: Vec<usize> = order
        .iter()
        .copied()
        .filter(|&place| parameters[place].values().len() > 1)
        .collect();
    let pair = match varying[..] {
        [first, second, ..] => Some(pair_map(
            (parameters[first].name(), &groups[first], first),
            (parameters[second].name(), &groups[second], second),
            &arms,
            &codes,
        )),
        _ => None,
    };
    Some(Matters {
        parameters: told.collect(),
        limit_importance: Num(weight(parameters.len())),
        fitted_on,
        pair,
    })
}

fn of_arms(history: &History, pairs: &Pairs<'_>) -> Vec<OfArm> {
    let mut sums = vec![(0_u64, 0.0); history.space.len()];
    for played in &history.rounds {
        let sum = &mut sums[played.arm.index()];
        sum.0 += 1;
        sum.1 += played.used();
    }
    history
        .space
        .arms()
        .filter_map(|arm| {
            let there = pairs.best_of(arm)?;
            let (pulls, consumption) = sums[arm.index()];
            Some(OfArm {
                arm,
                gain: there.gain,
                consumption: consumption / pulls.max(1) as f64,
                pulls,
            })
        })
        .collect()
}

/// Which values of a parameter are shown as one.
struct Grouping {
    labels: Vec<String>,
    /// Values per group.
    size: usize,
}

impl Grouping {
    fn new(parameter: &Parameter) -> Self {
        let values = parameter.values();
        let size = values.len().div_ceil(GROUPS).max(1);
        let labels = values.chunks(size).map(|chunk| match chunk {
            [only] => only.to_string(),
            [first, .., last] => format!("{first} … {last}"),
            [] => String::new(),
        });
        Self {
            labels: labels.collect(),
            size,
        }
    }

    fn of(&self, code: u32) -> Option<usize> {
        (code != ABSENT).then_some(code as usize / self.size)
    }
}

fn values(
    grouping: &Grouping,
    place: usize,
    arms: &[OfArm],
    codes: &[Vec<u32>],
) -> Vec<ValueMatters> {
    let mut members: Vec<Vec<&OfArm>> = vec![vec![]; grouping.labels.len()];
    for (of, codes) in arms.iter().zip(codes) {
        if let Some(group) = grouping.of(codes[place]) {
            members[group].push(of);
        }
    }
    let told = grouping.labels.iter().zip(members).map(|(label, members)| {
        let count = members.len() as f64;
        let mean = members.iter().map(|of| of.gain).sum::<f64>() / count;
        let squares = members.iter().map(|of| (of.gain - mean).powi(2));
        let half = if members.len() > 1 {
            1.96 * (squares.sum::<f64>() / (count - 1.0) / count).sqrt()
        } else {
            f64::NAN
        };
        ValueMatters {
            value: label.clone(),
            gain: Num(mean),
            low: Num(mean - half),
            high: Num(mean + half),
            consumption: Num(members.iter().map(|of| of.consumption).sum::<f64>() / count),
            arms: members.len(),
            pulls: members.iter().map(|of| of.pulls).sum(),
        }
    });
    told.collect()
}

type Axis<'a> = (&'a str, &'a Grouping, usize);

fn pair_map(x: Axis<'_>, y: Axis<'_>, arms: &[OfArm], codes: &[Vec<u32>]) -> PairMap {
    let columns = x.1.labels.len();
    let mut sums = vec![(0.0, 0_usize); columns * y.1.labels.len()];
    for (of, codes) in arms.iter().zip(codes) {
        if let (Some(column), Some(row)) = (x.1.of(codes[x.2]), y.1.of(codes[y.2])) {
            let cell = &mut sums[row * columns + column];
            cell.0 += of.gain;
            cell.1 += 1;
        }
    }
    let cells = sums.into_iter().enumerate().map(|(place, (sum, count))| {
        (
            x.1.labels[place % columns].clone(),
            y.1.labels[place / columns].clone(),
            Num(sum / count as f64),
            count,
        )
    });
    PairMap {
        x: x.0.to_owned(),
        y: y.0.to_owned(),
        cells: cells.collect(),
    }
}

/// Permutation importance of every parameter and of the limit, from a forest that predicts the gain of a round;
/// relative to the variance of the gains. Empty where there is nothing to learn.
fn importance(history: &History) -> (Vec<f64>, usize) {
    let parameters = history.space.parameters();
    let step = history.rounds.len().div_ceil(ROWS).max(1);
    let rounds: Vec<_> = history
        .rounds
        .iter()
        .filter(|played| played.gain.is_finite())
        .step_by(step)
        .collect();
    // A fit on a handful of rounds says nothing, but says it with confidence.
    if rounds.len() < 20 {
        return (vec![], 0);
    }
    let codes: Vec<Vec<u32>> = rounds
        .iter()
        .map(|played| history.space.codes(played.arm))
        .collect();
    let mut columns: Vec<(String, Vec<f64>)> = parameters
        .iter()
        .enumerate()
        .map(|(place, parameter)| {
            let number = |codes: &Vec<u32>| match codes[place] {
                ABSENT => f64::NAN,
                code => parameter.values()[code as usize]
                    .number()
                    .unwrap_or_else(|| f64::from(code)),
            };
            (
                parameter.name().to_owned(),
                codes.iter().map(number).collect(),
            )
        })
        .collect();
    columns.push((
        String::new(),
        rounds.iter().map(|played| played.limit).collect(),
    ));
    let gains: Vec<f64> = rounds.iter().map(|played| played.gain).collect();
    let mean = gains.iter().sum::<f64>() / gains.len() as f64;
    let variance = gains.iter().map(|gain| (gain - mean).powi(2)).sum::<f64>() / gains.len() as f64;
    let predictors = columns.len();
    let Ok(data) = Dataset::from_columns(columns, "gain", gains, vec![]) else {
        return (vec![], 0);
    };
    let params = Params {
        trees: 60,
        mtry: Some(predictors.div_ceil(2)),
        min_node_size: Some(10),
        sample_fraction: 0.632,
        importance: Importance::Permutation,
        ..Params::default()
    };
    let rows: Vec<u32> = (0..data.rows() as u32).collect();
    match fit_until(&data, &rows, &params, &Stop::new(), None) {
        Ok(FitOutcome::Done { forest, .. }) => {
            let shares = forest.importance().unwrap_or_default().iter();
            let shares = shares.map(|growth| (growth / variance).max(0.0));
            (shares.collect(), rows.len())
        }
        Ok(FitOutcome::Stopped { .. }) | Err(_) => (vec![], 0),
    }
}
