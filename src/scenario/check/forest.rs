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
use captime_forest::{Metric, Normalise, Task};

pub(super) fn read(check: &mut Check<'_>, node: &Node) -> Option<Forest> {
    let mut outer = Fields::new(check, node, "target", &["forest"])?;
    let inner = outer.take(check, "forest");
    outer.finish(check);
    let mut fields = Fields::of(check, inner?, &keys::FOREST)?;
    let data_node = fields.need(check, "data", "data: datasets/ames_like.csv");
    let predict_node = fields.need(check, "predict", "predict: Sale_Price");
    let data = data_node.and_then(|node| Some(resolve(check.folder, &check.text(node, "data")?)));
    let predict = predict_node.and_then(|node| check.text(node, "predict"));
    let train = fields.take(check, "train").map_or(Some(0.7), |node| {
        let train = check.number(node, "train")?;
        if train > 0.0 && train < 1.0 {
            Some(train)
        } else {
            check.out_of_range(node, "train", "a share of the rows between 0 and 1");
            None
        }
    });
    let task = fields.take(check, "task").map_or(Some(None), |node| {
        let words = [
            ("auto", None),
            ("regression", Some(Task::Regression)),
            ("classification", Some(Task::Classification)),
        ];
        check.word(node, "task", &words)
    });
    let engine = fields
        .take(check, "engine")
        .map_or(Some(EngineKind::Builtin), |node| {
            let words = EngineKind::ALL.map(|engine| (engine.name(), engine));
            check.word(node, "engine", &words)
        });
    let isolation_node = fields.take(check, "isolation");
    let isolation = isolation_node.map(|node| {
        check.word(
            node,
            "isolation",
            &[
                ("thread", Isolation::Thread),
                ("process", Isolation::Process),
            ],
        )
    });
    let threads_node = fields.take(check, "threads");
    let threads = threads_node.map_or(Some(1), |node| check.whole(node, "threads", 1, 1024, ""));
    let normalise = fields
        .take(check, "normalise")
        .map_or(Some(Normalise::Range), |node| {
            let words = Normalise::ALL.map(|normalise| (normalise.name(), normalise));
            check.word(node, "normalise", &words)
        });
    let reward_node = fields.take(check, "reward");
    let reward = reward_node.map_or(Some(Metric::Accuracy), |node| {
        let words = Metric::ALL.map(|metric| (metric.name(), metric));
        check.word(node, "reward", &words)
    });
    let drop_node = fields.take(check, "drop");
    let drop = drop_node.map_or(Some(vec![]), |node| check.texts(node, "drop"));
    let levels_node = fields.take(check, "levels");
    let levels = levels_node.map_or(Some(Levels::Alphabetical(vec![])), |node| {
        levels(check, node)
    });
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
    if let (Some(node), Some(2..)) = (threads_node, threads) {
        taken(check, node.at, engine, Setting::Threads);
    }
    if let (Some(node), Some(Metric::Auc | Metric::LogLoss)) = (reward_node, reward) {
        taken(check, node.at, engine, Setting::Probabilities);
    }
    let isolation = isolated(check, engine, isolation_node, isolation)?;
    Some(Forest {
        data: data?,
        predict: predict?,
        train: train?,
        task: task?,
        engine,
        isolation,
        threads: threads? as usize,
        normalise: normalise?,
        reward: reward?,
        drop: drop?,
        levels: levels?,
    })
}

/// Engines that cannot be stopped by a flag run in a separate process.
#[expect(
    clippy::option_option,
    reason = "not given; given and wrong; given and right"
)]
fn isolated(
    check: &mut Check<'_>,
    engine: EngineKind,
    node: Option<&Node>,
    given: Option<Option<Isolation>>,
) -> Option<Isolation> {
    let isolation = match (given, engine) {
        (None, EngineKind::Builtin) => Isolation::Thread,
        (None, _) => Isolation::Process,
        (Some(isolation), _) => isolation?,
    };
    if let (Isolation::Thread, Some(node)) = (isolation, node)
        && engine != EngineKind::Builtin
    {
        let engine = engine.name();
        check.fault(node.at, Fault::EngineNeedsProcess { engine });
    }
    Some(isolation)
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
