//! Which parameters matter, and which of their values.

use serde::Serialize;

use super::gain_model::GainModel;
use super::pairs::Pairs;
use super::{History, Num};
use crate::answer::FinishedRun;
use crate::round::ArmId;
use crate::space::{ABSENT, Domain, Parameter, Scale, Spacing, Value};

/// What is known about the parameters.
#[derive(Debug, Clone, Serialize)]
pub struct Importance {
    /// The parameters, the most important first.
    pub parameters: Vec<ParameterImportance>,
    /// The importance of the limit, in the same measure.
    pub of_limit: Num,
    /// That of the features of instances, the most important first.
    pub features: Vec<(String, Num)>,
    /// Rounds the forest was fitted on.
    pub fitted_on: usize,
    /// Gains over the two most important parameters.
    pub pair: Option<PairMap>,
    /// The same arm by arm, where one of them has too many values for a map.
    pub scatter: Option<Scatter>,
}

/// One parameter.
#[derive(Debug, Clone, Serialize)]
pub struct ParameterImportance {
    /// Its name.
    pub name: String,
    /// Growth of the forest's squared error when this parameter is shuffled, as a share of the gain's variance.
    pub importance: Num,
    /// What its values stand on, if they are numbers and many.
    pub axis: Option<Axis>,
    /// Its values, or ranges of them.
    pub values: Vec<ValueImportance>,
}

/// One value of a parameter, over the arms that have it.
#[derive(Debug, Clone, Serialize)]
pub struct ValueImportance {
    /// The value, or `low … high`.
    pub value: String,
    /// Where it stands on the axis, if there is one.
    pub number: Num,
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
    /// Those of them that never earned a reward, and so have no gain.
    pub unrewarded: usize,
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
    /// Value of the first, value of the second, mean gain of the arms, how many, and how many never earned a reward.
    pub cells: Vec<(String, String, Num, usize, usize)>,
}

/// What numbers stand on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Axis {
    /// Equal steps are equal differences.
    Linear,
    /// Equal steps are equal ratios.
    Log,
}

/// Arms over two parameters.
#[derive(Debug, Clone, Serialize)]
pub struct Scatter {
    /// The first parameter, and what it stands on if its values are numbers.
    pub x: (String, Option<Axis>),
    /// The second.
    pub y: (String, Option<Axis>),
    /// The arm, its values as numbers or text, and its gain, null without a reward; the best last, so that they are drawn on top.
    pub points: Vec<(u32, serde_json::Value, serde_json::Value, Num)>,
}

/// The results of an arm, for comparisons between arms.
#[derive(Debug, Clone, Copy)]
struct OfArm {
    arm: ArmId,
    /// None if no pull of it earned a reward.
    gain: Option<f64>,
    consumption: f64,
    pulls: u64,
}

/// With more values than this, a parameter's values are grouped.
const GROUPS: usize = 24;
/// Features that are shown at most.
const FEATURES: usize = 5;
/// Arms that a scatter shows at most.
const POINTS: usize = 1500;

/// Computes the importance. `None` if arms have no parameters or limits are not known yet.
pub fn importance(history: &History, pairs: &Pairs<'_>) -> Option<Importance> {
    history.known()?;
    let parameters = history.space.parameters();
    if parameters.is_empty() {
        return None;
    }
    let arms = of_arms(history, pairs);
    let model = GainModel::of(history);
    let importance = model
        .as_ref()
        .map(GainModel::importance)
        .unwrap_or_default();
    let fitted_on = model.as_ref().map_or(0, |model| model.rounds);
    let groups: Vec<Grouping> = (parameters.iter().enumerate())
        .map(|(place, parameter)| Grouping::new(parameter, axis(history, place)))
        .collect();
    let codes: Vec<Vec<u32>> = arms.iter().map(|of| history.space.codes(of.arm)).collect();
    let mut order: Vec<usize> = (0..parameters.len()).collect();
    let weight = |place: usize| importance.get(place).copied().unwrap_or(f64::NAN);
    order.sort_by(|&a, &b| {
        let (a, b) = (weight(a), weight(b));
        b.partial_cmp(&a).unwrap_or(std::cmp::Ordering::Equal)
    });
    let shown = order.iter().map(|&place| ParameterImportance {
        name: parameters[place].name().to_owned(),
        importance: Num(weight(place)),
        axis: groups[place].axis,
        values: values(&groups[place], place, &arms, &codes),
    });
    let varying: Vec<usize> = order
        .iter()
        .copied()
        .filter(|&place| parameters[place].values().len() > 1)
        .collect();
    let (pair, scatter) = match varying[..] {
        [first, second, ..] => {
            let side = |place: usize| (parameters[place].name(), &groups[place], place);
            let (x, y) = (side(first), side(second));
            if x.1.axis.is_some() || y.1.axis.is_some() {
                let sides = [(&parameters[first], x), (&parameters[second], y)];
                (None, Some(scatter(sides, &arms, &codes)))
            } else {
                (Some(pair_map(x, y, &arms, &codes)), None)
            }
        }
        _ => (None, None),
    };
    let of_features = importance.iter().skip(parameters.len() + 1);
    let names = history.scenario().features.iter();
    let names = names.flat_map(|features| features.names.iter().cloned());
    let mut features: Vec<(String, Num)> = names.zip(of_features.copied().map(Num)).collect();
    features.sort_by(|a, b| b.1.0.total_cmp(&a.1.0));
    features.truncate(FEATURES);
    Some(Importance {
        parameters: shown.collect(),
        of_limit: Num(weight(parameters.len())),
        features,
        fitted_on,
        pair,
        scatter,
    })
}

fn of_arms(history: &History, pairs: &Pairs<'_>) -> Vec<OfArm> {
    let mut sums = vec![(0_u64, 0.0); history.space.len()];
    for played in &history.rounds {
        let sum = &mut sums[played.arm.index()];
        sum.0 += 1;
        sum.1 += played.used();
    }
    let evidence = history.evidence();
    let of_arm = |(arm, runs): (ArmId, &[FinishedRun])| {
        let (pulls, consumption) = sums[arm.index()];
        let is_rewarded = runs.iter().any(|run| run.consumption().is_some());
        let best = pairs.best_of(arm).filter(|_| is_rewarded);
        OfArm {
            arm,
            gain: best.map(|best| best.gain),
            consumption: consumption / pulls.max(1) as f64,
            pulls,
        }
    };
    evidence.pulled().map(of_arm).collect()
}

/// Which values of a parameter are grouped.
struct Grouping {
    labels: Vec<String>,
    /// Where the groups stand: the middle one of their values.
    places: Vec<f64>,
    axis: Option<Axis>,
    /// Where each value stands among all: numbers by size, others as they are listed.
    rank: Vec<usize>,
    /// Values per group.
    size: usize,
}

impl Grouping {
    fn new(parameter: &Parameter, axis: Axis) -> Self {
        let values = parameter.values();
        let is_numeric = parameter.scale() == Scale::Number;
        let mut order: Vec<usize> = (0..values.len()).collect();
        if is_numeric {
            let number = |place: usize| values[place].number().unwrap_or(f64::NAN);
            order.sort_by(|&a, &b| number(a).total_cmp(&number(b)));
        }
        let mut rank = vec![0; values.len()];
        for (place, &value) in order.iter().enumerate() {
            rank[value] = place;
        }
        let values: Vec<&Value> = order.iter().map(|&place| &values[place]).collect();
        let middle = |chunk: &[&Value]| chunk[chunk.len() / 2].number().unwrap_or(f64::NAN);
        let size = values.len().div_ceil(GROUPS).max(1);
        let labels = values.chunks(size).map(|chunk| match chunk {
            [only] => only.to_string(),
            [first, .., last] => format!("{first} … {last}"),
            [] => String::new(),
        });
        Self {
            labels: labels.collect(),
            places: values.chunks(size).map(middle).collect(),
            axis: (is_numeric && values.len() > GROUPS).then_some(axis),
            rank,
            size,
        }
    }

    fn of(&self, code: u32) -> Option<usize> {
        (code != ABSENT).then(|| self.rank[code as usize] / self.size)
    }
}

fn values(
    grouping: &Grouping,
    place: usize,
    arms: &[OfArm],
    codes: &[Vec<u32>],
) -> Vec<ValueImportance> {
    let mut members: Vec<Vec<&OfArm>> = vec![vec![]; grouping.labels.len()];
    for (of, codes) in arms.iter().zip(codes) {
        if let Some(group) = grouping.of(codes[place]) {
            members[group].push(of);
        }
    }
    let groups = grouping.labels.iter().zip(&grouping.places).zip(members);
    let shown = groups.map(|((label, number), members)| {
        let gains: Vec<f64> = members.iter().filter_map(|of| of.gain).collect();
        let count = gains.len() as f64;
        let mean = gains.iter().sum::<f64>() / count;
        let squares = gains.iter().map(|gain| (gain - mean).powi(2));
        let half = if gains.len() > 1 {
            1.96 * (squares.sum::<f64>() / (count - 1.0) / count).sqrt()
        } else {
            f64::NAN
        };
        let consumption: f64 = members.iter().map(|of| of.consumption).sum();
        ValueImportance {
            value: label.clone(),
            number: Num(if grouping.axis.is_some() {
                *number
            } else {
                f64::NAN
            }),
            gain: Num(mean),
            low: Num(mean - half),
            high: Num(mean + half),
            consumption: Num(consumption / members.len() as f64),
            arms: members.len(),
            unrewarded: members.len() - gains.len(),
            pulls: members.iter().map(|of| of.pulls).sum(),
        }
    });
    shown.collect()
}

type Side<'a> = (&'a str, &'a Grouping, usize);

fn pair_map(x: Side<'_>, y: Side<'_>, arms: &[OfArm], codes: &[Vec<u32>]) -> PairMap {
    let columns = x.1.labels.len();
    let mut sums = vec![(0.0, 0_usize, 0_usize); columns * y.1.labels.len()];
    for (of, codes) in arms.iter().zip(codes) {
        if let (Some(column), Some(row)) = (x.1.of(codes[x.2]), y.1.of(codes[y.2])) {
            let cell = &mut sums[row * columns + column];
            cell.0 += of.gain.unwrap_or(0.0);
            cell.1 += 1;
            cell.2 += usize::from(of.gain.is_none());
        }
    }
    let cells = sums
        .into_iter()
        .enumerate()
        .map(|(place, (sum, count, unrewarded))| {
            (
                x.1.labels[place % columns].clone(),
                y.1.labels[place / columns].clone(),
                Num(sum / (count - unrewarded) as f64),
                count,
                unrewarded,
            )
        });
    PairMap {
        x: x.0.to_owned(),
        y: y.0.to_owned(),
        cells: cells.collect(),
    }
}

/// What the numbers of this parameter stand on.
fn axis(history: &History, place: usize) -> Axis {
    let opened = history.scenario().space.opened();
    let spacing = opened.map(|opened| match &opened.space().parameters()[place].domain {
        Domain::Real { spacing, .. } | Domain::Integer { spacing, .. } => *spacing,
        Domain::Choice(_) | Domain::Ordered(_) => Spacing::Linear,
    });
    match spacing {
        Some(Spacing::Log) => Axis::Log,
        _ => Axis::Linear,
    }
}

/// Arms over two parameters: all that have both, or an even sample of them.
fn scatter(sides: [(&Parameter, Side<'_>); 2], arms: &[OfArm], codes: &[Vec<u32>]) -> Scatter {
    let [x, y] = sides.map(|(_, (name, grouping, _))| (name.to_owned(), grouping.axis));
    let value = |(parameter, (_, grouping, place)): (&Parameter, Side<'_>), codes: &[u32]| {
        let value = parameter.values().get(codes[place] as usize)?;
        Some(match grouping.axis {
            Some(_) => serde_json::to_value(value).unwrap_or_default(),
            None => value.to_string().into(),
        })
    };
    let both = arms.iter().zip(codes).filter_map(|(of, codes)| {
        let (x, y) = (value(sides[0], codes)?, value(sides[1], codes)?);
        Some((of.arm.number(), x, y, Num::of(of.gain)))
    });
    let mut points: Vec<_> = both.collect();
    let worth = |gain: Num| {
        if gain.0.is_nan() {
            f64::NEG_INFINITY
        } else {
            gain.0
        }
    };
    points.sort_by(|a, b| worth(a.3).total_cmp(&worth(b.3)));
    let step = points.len().div_ceil(POINTS).max(1);
    // Counted from the best, so that it is among them.
    points = points.into_iter().rev().step_by(step).collect();
    points.reverse();
    Scatter { x, y, points }
}
