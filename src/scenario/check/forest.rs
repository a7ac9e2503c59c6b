//! `target: {forest: ...}`: a random forest on a CSV file.

mod columns;

use self::columns::Named;
use super::{Check, Fields, arms};
use crate::scenario::Fault;
use crate::scenario::keys;
use crate::scenario::model::{Forest, Isolation, Levels, resolve};
use crate::scenario::raw::{Node, Raw};
use crate::space::Value;
use crate::yaml::Span;
use captime_forest::engine::{EngineKind, Setting};
use captime_forest::{Metric, Task};

pub(super) fn read(check: &mut Check<'_>, node: &Node) -> Option<Forest> {
    let mut fields = Fields::of_target(check, node, &keys::FOREST)?;
    let data_node = fields.need(check, "data", "data: datasets/ames_like.csv");
    let predict_node = fields.need(check, "predict", "predict: Sale_Price");
    let data = data_node.and_then(|node| Some(resolve(check.folder, &check.text(node, "data")?)));
    let predict = predict_node.and_then(|node| check.text(node, "predict"));
    let train = fields.read(check, "train");
    let task = fields.take(check, "task").map_or(Some(None), |node| {
        let words = [
            ("auto", None),
            ("regression", Some(Task::Regression)),
            ("classification", Some(Task::Classification)),
        ];
        check.word(node, "task", &words)
    });
    let engine = fields.read(check, "engine");
    let isolation = fields.read_optional(check, "isolation");
    let threads = fields.read(check, "threads");
    let normalise = fields.read(check, "normalise");
    let reward = fields.read(check, "reward");
    let drop_node = fields.take(check, "drop");
    let drop = drop_node.map_or(Some(vec![]), |node| check.texts(node, "drop"));
    let levels_node = fields.take(check, "levels");
    let levels = levels_node.map_or(Some(Levels::Alphabetical(vec![])), |node| {
        levels(check, node)
    });
    let [threads_at, reward_at, isolation_at] =
        ["threads", "reward", "isolation"].map(|key| fields.value_at(key));
    fields.finish(check);

    let named = Named {
        predict: predict_node.zip(predict.as_deref()),
        drop: drop_node.zip(drop.as_deref()),
        levels: match &levels {
            Some(Levels::Alphabetical(orders)) => levels_node.map(|node| (node, &orders[..])),
            _ => None,
        },
    };
    named.check(check);
    if let (Some(data), Some(node)) = (&data, data_node) {
        named.check_in(check, data, node);
    }
    let engine = engine?;
    if let (Some(at), Some(2..)) = (threads_at, threads) {
        taken(check, at, engine, Setting::Threads);
    }
    if let (Some(at), Some(Metric::Auc | Metric::LogLoss)) = (reward_at, reward) {
        taken(check, at, engine, Setting::Probabilities);
    }
    let isolation = match (isolation?, engine) {
        // Engines that cannot be stopped by a flag run in a separate process.
        (Some(Isolation::Thread), EngineKind::Smartcore | EngineKind::Linfa) => {
            let engine = engine.name();
            check.fault(isolation_at?, Fault::EngineNeedsProcess { engine });
            return None;
        }
        (Some(isolation), _) => isolation,
        (None, EngineKind::Builtin) => Isolation::Thread,
        (None, _) => Isolation::Process,
    };
    Some(Forest {
        data: data?,
        predict: predict?,
        train: train?,
        task: task?,
        engine,
        isolation,
        threads: threads?,
        normalise: normalise?,
        reward: reward?,
        drop: drop?,
        levels: levels?,
    })
}

/// A setting that the engine ignores would only seem to be chosen, or tuned.
fn taken(check: &mut Check<'_>, at: Span, engine: EngineKind, setting: Setting) {
    if !engine.takes(setting) {
        let engine = engine.name();
        check.fault(at, Fault::EngineIgnores { engine, setting });
    }
}

/// `alphabetical`, `by-response`, or for some columns their levels in order.
fn levels(check: &mut Check<'_>, node: &Node) -> Option<Levels> {
    let Raw::Map(entries) = &node.value else {
        return check
            .word(
                node,
                "levels",
                &[("alphabetical", false), ("by-response", true)],
            )
            .map(|by_mean| {
                if by_mean {
                    Levels::ByMean
                } else {
                    Levels::Alphabetical(vec![])
                }
            });
    };
    let orders: Vec<_> = entries
        .iter()
        .map(|entry| {
            check.list(&entry.value, &entry.key, "levels in their order")?;
            Some((entry.key.clone(), check.texts(&entry.value, &entry.key)?))
        })
        .collect();
    orders
        .into_iter()
        .collect::<Option<Vec<_>>>()
        .map(Levels::Alphabetical)
}

/// The parameters a forest has, and what each must be.
pub(in crate::scenario) const PARAMETERS: &[(&str, &str)] = &[
    ("trees", "a whole number from 1 up"),
    ("mtry", "a whole number from 1 up"),
    ("min_node_size", "a whole number from 1 up"),
    ("sample_fraction", "a number above 0, at most 1"),
];

/// Checks the arms against the parameters of a forest.
pub(super) fn check_arms(check: &mut Check<'_>, forest: &Forest, arms: &arms::Read) {
    let known: Vec<String> = PARAMETERS
        .iter()
        .map(|(name, _)| (*name).to_owned())
        .collect();
    let Some(space) = &arms.space else { return };
    for (place, parameter) in space.parameters().iter().enumerate() {
        let Some((name, expected)) = PARAMETERS
            .iter()
            .find(|(name, _)| *name == parameter.name())
        else {
            check.fault(
                arms.places[place],
                Fault::UnknownParameter {
                    name: parameter.name().into(),
                    known: known.clone(),
                },
            );
            continue;
        };
        for value in parameter.values() {
            let is_fine = match (*name, value) {
                ("sample_fraction", value) => value
                    .number()
                    .is_some_and(|share| share > 0.0 && share <= 1.0),
                (_, Value::Integer(count)) => (1..=10_000_000).contains(count),
                (_, Value::Number(count)) => count.fract() == 0.0 && (1.0..=1e7).contains(count),
                _ => false,
            };
            if !is_fine {
                check.fault(
                    arms.value_places[place],
                    Fault::ForestValue {
                        name: (*name).into(),
                        expected,
                        value: value.to_string(),
                    },
                );
                break;
            }
        }
        let is_whole = |value: &Value| value.number() == Some(1.0);
        if *name == "sample_fraction" && !parameter.values().iter().all(is_whole) {
            let at = arms.places[place];
            taken(check, at, forest.engine, Setting::SampleFraction);
        }
        if *name == "mtry"
            && let Some(predictors) = predictors(forest)
        {
            let largest = parameter
                .values()
                .iter()
                .filter_map(Value::number)
                .fold(0.0, f64::max);
            if largest > predictors as f64 {
                check.fault(
                    arms.value_places[place],
                    Fault::MtryAbovePredictors {
                        mtry: largest as i64,
                        predictors,
                    },
                );
            }
        }
    }
}

/// How many columns there are to learn from.
fn predictors(forest: &Forest) -> Option<usize> {
    let columns = columns::read(&forest.data).ok()?;
    let is_predictor = |name: &&String| {
        name.as_str() != forest.predict.trim() && !columns::is_among(&forest.drop, name)
    };
    Some(columns.iter().filter(is_predictor).count())
}
