//! The forest as a linfa estimator: a linfa `Dataset`, cross-validation over parameters, a fit, a metric.
//!
//! `cargo run --release -p captime-forest --example linfa_pipeline`

use std::io::Write;

use captime_forest::{EstimatorError, ForestParams, Params};
use linfa::Dataset;
use linfa::prelude::{Fit, Predict, SingleTargetRegression};
use ndarray::{Array1, Array2};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // A wave over the first column. The second one is noise.
    let records = Array2::from_shape_fn((400, 2), |(row, column)| {
        let step = row as f64 * if column == 0 { 0.618 } else { 0.377 };
        step.fract()
    });
    let targets: Array1<f64> = records.column(0).mapv(|x| (x * 6.0).sin());
    let dataset = Dataset::new(records, targets);
    let (mut train, test) = dataset.split_with_ratio(0.7);

    // Which node size? linfa's cross-validation accepts these parameters like any others.
    let sizes = [1, 20, 100];
    let settings = sizes.map(|min_node_size| {
        ForestParams::from(Params {
            trees: 50,
            mtry: Some(2),
            min_node_size: Some(min_node_size),
            ..Params::default()
        })
    });
    let scores: Result<Array1<f64>, EstimatorError> =
        train.cross_validate_single(5, &settings, |predicted, truth| {
            predicted.mean_squared_error(truth)
        });
    let scores = scores?;
    let best = (0..sizes.len())
        .min_by(|&a, &b| scores[a].total_cmp(&scores[b]))
        .ok_or("there are settings")?;

    let forest = settings[best].fit(&train)?;
    let predicted = forest.predict(&test);
    let r2 = predicted.r2(&test)?;
    let mut out = std::io::stdout().lock();
    writeln!(
        out,
        "best min_node_size {}, r2 on new rows {r2:.3}",
        sizes[best]
    )?;
    if r2 < 0.9 {
        return Err("a wave should be learned better than this".into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_wave_is_learned() {
        super::main().unwrap();
    }
}
