//! One fit of a forest from crates.io, for scripts/compare-forests: `forest-peers PEER CODED TEST_ROWS TREES MTRY NODE
//! FRACTION THREADS SEED`. CODED is a CSV of numbers with the target first. Prints a line of JSON.

use std::error::Error;
use std::fs;
use std::time::Instant;

use dml_core::{MaxFeatures, RandomForestRegressor as DmlForest, Regressor};
use ndarray::{Array1, Array2};
use smartcore::ensemble::random_forest_regressor::{RandomForestRegressor, RandomForestRegressorParameters};
use smartcore::linalg::basic::matrix::DenseMatrix;

struct Part {
    rows: usize,
    columns: usize,
    x: Vec<f64>,
    y: Vec<f64>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [peer, coded, test_rows, trees, mtry, node, fraction, threads, seed] = &args[..] else {
        return Err("usage: PEER CODED TEST_ROWS TREES MTRY NODE FRACTION THREADS SEED".into());
    };
    let (train, test) = read(coded, test_rows)?;
    let (trees, mtry, node): (usize, usize, usize) = (trees.parse()?, mtry.parse()?, node.parse()?);
    let (fraction, seed): (f64, u64) = (fraction.parse()?, seed.parse()?);
    rayon::ThreadPoolBuilder::new().num_threads(threads.parse()?).build_global()?;

    let (fit_seconds, fit_cpu_seconds, predict_seconds, predicted);
    match peer.as_str() {
        "smartcore" => {
            let x = DenseMatrix::new(train.rows, train.columns, train.x, false)?;
            let test_x = DenseMatrix::new(test.rows, test.columns, test.x.clone(), false)?;
            let parameters = RandomForestRegressorParameters::default()
                .with_n_trees(trees)
                .with_m(mtry)
                .with_min_samples_split(node + 1)
                .with_min_samples_leaf(1)
                .with_seed(seed);
            let (started, cpu) = (Instant::now(), cpu_seconds()?);
            let forest = RandomForestRegressor::fit(&x, &train.y, parameters)?;
            (fit_seconds, fit_cpu_seconds) = (started.elapsed().as_secs_f64(), cpu_seconds()? - cpu);
            let started = Instant::now();
            predicted = forest.predict(&test_x)?;
            predict_seconds = started.elapsed().as_secs_f64();
        }
        "dml-core" => {
            let x = Array2::from_shape_vec((train.rows, train.columns), train.x)?;
            let test_x = Array2::from_shape_vec((test.rows, test.columns), test.x.clone())?;
            let y = Array1::from(train.y);
            let mut forest = DmlForest::new()
                .n_estimators(trees)
                .max_features(MaxFeatures::Count(mtry))
                .min_samples_split(node + 1)
                .max_samples(Some(fraction))
                .seed(seed);
            let (started, cpu) = (Instant::now(), cpu_seconds()?);
            forest.fit(x.view(), y.view())?;
            (fit_seconds, fit_cpu_seconds) = (started.elapsed().as_secs_f64(), cpu_seconds()? - cpu);
            let started = Instant::now();
            predicted = forest.predict(test_x.view())?.to_vec();
            predict_seconds = started.elapsed().as_secs_f64();
        }
        other => return Err(format!("no such peer: {other}").into()),
    }
    let squares: f64 = predicted.iter().zip(&test.y).map(|(p, y)| (p - y) * (p - y)).sum();
    let rmse = (squares / test.rows as f64).sqrt();
    println!(
        "{{\"rmse\": {rmse}, \"fit_seconds\": {fit_seconds}, \"fit_cpu_seconds\": {fit_cpu_seconds}, \"predict_seconds\": {predict_seconds}}}"
    );
    Ok(())
}

/// Training and test rows. Test rows are numbered from 1.
fn read(coded: &str, test_rows: &str) -> Result<(Part, Part), Box<dyn Error>> {
    let text = fs::read_to_string(coded)?;
    let mut is_test = vec![false; text.lines().count() - 1];
    for line in fs::read_to_string(test_rows)?.lines() {
        is_test[line.parse::<usize>()? - 1] = true;
    }
    let mut parts = [true, false].map(|_| Part { rows: 0, columns: 0, x: Vec::new(), y: Vec::new() });
    for (line, is_test) in text.lines().skip(1).zip(is_test) {
        let numbers = line.split(',').map(str::parse).collect::<Result<Vec<f64>, _>>()?;
        let part = &mut parts[usize::from(is_test)];
        part.rows += 1;
        part.columns = numbers.len() - 1;
        part.y.push(numbers[0]);
        part.x.extend(&numbers[1..]);
    }
    Ok(parts.into())
}

/// CPU time of this process so far, from the nanoseconds that the scheduler has counted for all its threads.
fn cpu_seconds() -> Result<f64, Box<dyn Error>> {
    let mut nanoseconds = 0.0;
    for task in fs::read_dir("/proc/self/task")? {
        let text = fs::read_to_string(task?.path().join("schedstat"))?;
        nanoseconds += text.split_whitespace().next().ok_or("schedstat is empty")?.parse::<f64>()?;
    }
    Ok(nanoseconds / 1e9)
}
