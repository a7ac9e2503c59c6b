//! Whole forests on generated data: as good as another implementation, with correct importances and out-of-bag errors.

use std::fmt::Write;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::fit;
use crate::engine::{EngineKind, EngineOutcome, Fit};
use crate::{Dataset, Importance, LevelOrder, Params, ReadOptions, Scoring, Split, Stop, Task};

fn columns(rows: usize, count: usize, seed: u64) -> Vec<Vec<f64>> {
    let mut rng = Pcg64Mcg::seed_from_u64(seed);
    (0..count)
        .map(|_| (0..rows).map(|_| rng.random::<f64>()).collect())
        .collect()
}

fn table(x: Vec<Vec<f64>>, y: Vec<f64>, classes: &[&str]) -> Dataset {
    let columns = x.into_iter().enumerate();
    let columns = columns.map(|(place, x)| (format!("x{place}"), x)).collect();
    let classes = classes.iter().map(|&class| class.to_owned()).collect();
    Dataset::from_columns(columns, "y", y, classes).unwrap()
}

/// Friedman's first function: five relevant predictors, and five irrelevant ones.
pub(super) fn friedman(rows: usize, seed: u64) -> Dataset {
    let x = columns(rows, 10, seed);
    let y = (0..rows).map(|row| {
        let at = |place: usize| x[place][row];
        10.0 * (std::f64::consts::PI * at(0) * at(1)).sin()
            + 20.0 * (at(2) - 0.5).powi(2)
            + 10.0 * at(3)
            + 5.0 * at(4)
    });
    let y = y.collect();
    table(x, y, &[])
}

/// A target of two steps over coarse predictors with many ties.
fn steps(rows: usize, seed: u64) -> Dataset {
    let mut x = columns(rows, 6, seed);
    for value in x.iter_mut().flatten() {
        *value = (*value * 6.0).floor();
    }
    let y =
        (0..rows).map(|row| f64::from(u8::from(x[0][row] > 2.0)) * 30.0 + x[1][row] * x[2][row]);
    let y = y.collect();
    table(x, y, &[])
}

/// A sum of all predictors.
fn plane(rows: usize, seed: u64) -> Dataset {
    let x = columns(rows, 4, seed);
    let y = (0..rows)
        .map(|row| x.iter().map(|x| x[row]).sum())
        .collect();
    table(x, y, &[])
}

fn blobs(rows: usize, classes: usize, seed: u64) -> Dataset {
    let mut x = columns(rows, 4, seed);
    let y: Vec<f64> = (0..rows).map(|row| (row % classes) as f64).collect();
    for row in 0..rows {
        x[0][row] += y[row] * 0.6;
        x[1][row] -= y[row] * 0.4;
    }
    let names: Vec<String> = (0..classes).map(|class| format!("c{class}")).collect();
    table(x, y, &names.iter().map(String::as_str).collect::<Vec<_>>())
}

fn quality(engine: EngineKind, data: &Dataset, params: &Params, seed: u64) -> f64 {
    let split = Split::random(data.rows(), 0.7, seed).unwrap();
    let fit = Fit {
        data,
        split: &split,
        params,
        stop: &Stop::new(),
        allowance: None,
    };
    let EngineOutcome::Done(fitted) = engine.engine().run(&fit).unwrap() else {
        panic!("nothing stops it");
    };
    let seen = data.evaluate(&split.test, &fitted.predicted, None, Scoring::default());
    seen.rmse.or(seen.accuracy).unwrap()
}

#[test]
fn errors_are_those_of_smartcore_within_a_tenth() {
    for (name, data) in [
        ("friedman", friedman(500, 11)),
        ("steps", steps(500, 12)),
        ("plane", plane(500, 13)),
    ] {
        let params = Params {
            trees: 80,
            mtry: Some(data.predictors() / 2),
            ..Params::default()
        };
        let mean = |engine| {
            (1..=4)
                .map(|seed| quality(engine, &data, &params, seed))
                .sum::<f64>()
                / 4.0
        };
        let (ours, theirs) = (mean(EngineKind::Builtin), mean(EngineKind::Smartcore));
        assert!(
            (ours / theirs - 1.0).abs() < 0.1,
            "{name}: {ours} against {theirs}"
        );
    }
}

#[test]
fn all_engines_tell_classes_apart() {
    for classes in [2, 3] {
        let data = blobs(450, classes, 21);
        let params = Params {
            trees: 60,
            mtry: Some(2),
            ..Params::default()
        };
        let ours = quality(EngineKind::Builtin, &data, &params, 1);
        for engine in EngineKind::ALL {
            let theirs = quality(engine, &data, &params, 1);
            // linfa draws predictors once per tree, which costs it some accuracy.
            assert!(theirs > 0.7, "{engine:?}: {theirs}");
            assert!(
                ours > theirs - 0.05,
                "{ours} against {theirs} of {engine:?}"
            );
        }
    }
}

#[test]
fn engines_say_what_they_cannot_do() {
    let split = Split::random(20, 0.5, 1).unwrap();
    let run = |engine: EngineKind, data: &Dataset| {
        let fit = Fit {
            data,
            split: &split,
            params: &Params::default(),
            stop: &Stop::new(),
            allowance: None,
        };
        engine.engine().run(&fit).unwrap_err()
    };
    let numbers = friedman(20, 1);
    let error = run(EngineKind::Linfa, &numbers);
    assert_eq!(
        error.to_string(),
        "engine `linfa` cannot do regression: its trees only predict classes"
    );
    assert!(error.hint().is_some());
    let mut x = columns(20, 1, 1);
    x[0][3] = f64::NAN;
    let gaps = table(x, (0..20).map(f64::from).collect(), &[]);
    let error = run(EngineKind::Smartcore, &gaps);
    assert!(error.to_string().contains("missing"), "{error}");
}

#[test]
fn importance_finds_the_predictors_that_matter() {
    let data = friedman(400, 31);
    let split = Split::random(data.rows(), 0.8, 1).unwrap();
    for importance in [Importance::Impurity, Importance::Permutation] {
        let params = Params {
            trees: 100,
            mtry: Some(4),
            importance,
            ..Params::default()
        };
        let forest = fit(&data, &split.train, &params);
        let found = forest.importance().unwrap();
        let least_useful = found[..5].iter().copied().fold(f64::INFINITY, f64::min);
        let most_useless = found[5..].iter().copied().fold(0.0, f64::max);
        assert!(least_useful > most_useless, "{importance:?}: {found:?}");
    }
    assert_eq!(
        fit(&data, &split.train, &Params::default()).importance(),
        None
    );
}

#[test]
fn impurity_adds_up_to_the_variance_that_trees_explain() {
    // Leaves of one draw explain everything: per tree, n times the variance of its draws.
    let data = friedman(200, 32);
    let rows: Vec<u32> = (0..200).collect();
    let params = Params {
        trees: 50,
        mtry: Some(10),
        min_node_size: Some(1),
        importance: Importance::Impurity,
        ..Params::default()
    };
    let sum: f64 = fit(&data, &rows, &params)
        .importance()
        .unwrap()
        .iter()
        .sum();
    let y = data.target().y();
    let mean = y.iter().sum::<f64>() / 200.0;
    let total: f64 = y.iter().map(|y| (y - mean).powi(2)).sum();
    assert!((sum / total - 1.0).abs() < 0.05, "{sum} of {total}");
}

#[test]
fn the_error_out_of_the_bag_is_near_the_error_on_new_rows() {
    let data = friedman(800, 33);
    let split = Split::random(data.rows(), 0.7, 2).unwrap();
    let params = Params {
        trees: 150,
        ..Params::default()
    };
    let forest = fit(&data, &split.train, &params);
    let predicted = forest.predict(&data, &split.test);
    let seen = data.evaluate(&split.test, &predicted, None, Scoring::default());
    let rmse = seen.rmse.unwrap();
    let out = forest.out_of_bag_error(&data).unwrap().sqrt();
    assert!((out / rmse - 1.0).abs() < 0.2, "{out} against {rmse}");
    assert_eq!(forest.out_of_bag_error(&friedman(800, 33)), None);

    let classes = blobs(300, 3, 34);
    let rows: Vec<u32> = (0..300).collect();
    let wrong = fit(&classes, &rows, &params)
        .out_of_bag_error(&classes)
        .unwrap();
    assert!(wrong < 0.3, "{wrong}");
}

#[test]
fn levels_ordered_by_response_can_be_split_at_once() {
    // The alphabetical order of the levels is unrelated to the target.
    let levels = ["a", "b", "c", "d", "e", "f", "g", "h"];
    let means = [3.0, 70.0, 10.0, 50.0, 20.0, 60.0, 0.0, 40.0];
    let mut csv = String::from("level,y\n");
    for row in 0..400 {
        let level = row * 7 % 8;
        let y = means[level] + (row % 5) as f64 * 0.1;
        writeln!(csv, "{},{y}", levels[level]).unwrap();
    }
    let one_split = Params {
        trees: 20,
        mtry: Some(1),
        min_node_size: Some(250),
        ..Params::default()
    };
    let error = |order| {
        let options = ReadOptions {
            order,
            ..ReadOptions::predict("y")
        };
        let data = Dataset::parse(csv.as_bytes(), &options).unwrap();
        let split = Split::random(data.rows(), 0.7, 1).unwrap();
        let forest = fit(&data, &split.train, &one_split);
        let predicted = forest.predict(&data, &split.test);
        // By value must give the same as by code, because the forest stores the order.
        let again = Dataset::parse(csv.as_bytes(), &options).unwrap();
        assert_eq!(predicted, forest.predict(&again, &split.test));
        assert!(forest.out_of_bag_error(&data).is_some());
        let seen = data.evaluate(&split.test, &predicted, None, Scoring::default());
        1.0 - seen.reward
    };
    let (named, answered) = (
        error(LevelOrder::Alphabetical),
        error(LevelOrder::ByResponse),
    );
    assert!(answered < 0.7 * named, "{answered} against {named}");
}

#[test]
fn an_order_given_by_name_stays_where_others_go_by_response() {
    let mut csv = String::from("named,free,y\n");
    for row in 0..200 {
        // By response the levels are b, c, a.
        let (level, y) = [("a", 9), ("b", 0), ("c", 5)][row % 3];
        writeln!(csv, "{level},{level},{}", y + row % 2).unwrap();
    }
    let order = ["a", "b", "c"].map(str::to_owned).to_vec();
    let options = ReadOptions {
        levels: [("named".to_owned(), order)].into(),
        order: LevelOrder::ByResponse,
        ..ReadOptions::predict("y")
    };
    let data = Dataset::parse(csv.as_bytes(), &options).unwrap();
    let rows: Vec<u32> = (0..200).collect();
    let forest = fit(&data, &rows, &Params::default());
    let ranks = |predictor| [0, 1, 2].map(|code| forest.rank(predictor, code));
    assert_eq!((ranks(0), ranks(1)), ([0, 1, 2], [2, 0, 1]));
}

#[test]
fn two_classes_may_be_given_as_whole_numbers() {
    let lines = (0..40).map(|row| format!("{row},{}\n", u8::from(row > 20)));
    let csv = lines.collect::<Vec<_>>().concat();
    let csv = format!("x,sick\n{csv}");
    let data = Dataset::parse(csv.as_bytes(), &ReadOptions::predict("sick")).unwrap();
    assert_eq!(
        (data.task(), data.target().classes()),
        (Task::Classification, &["0".to_owned(), "1".to_owned()][..])
    );
    let rows: Vec<u32> = (0..40).collect();
    let forest = fit(
        &data,
        &rows,
        &Params {
            trees: 30,
            ..Params::default()
        },
    );
    assert_eq!(forest.predict(&data, &[0, 39]), [0.0, 1.0]);
}
