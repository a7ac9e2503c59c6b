//! smartcore's random forests. They always draw n rows, on one thread.

use std::time::Instant;

use smartcore::ensemble::random_forest_classifier::{
    RandomForestClassifier, RandomForestClassifierParameters,
};
use smartcore::ensemble::random_forest_regressor::{
    RandomForestRegressor, RandomForestRegressorParameters,
};
use smartcore::linalg::basic::matrix::DenseMatrix;

use super::foreign::{measured, plain_rows, without_gaps};
use super::{Engine, EngineError, EngineKind, EngineOutcome, Fit, Fitted};
use crate::dataset::{Dataset, Task};
use crate::forest::FitError;
use crate::stop::Consumed;

pub(super) struct Smartcore;

fn failed(error: impl ToString) -> EngineError {
    EngineError::Failed {
        engine: EngineKind::Smartcore,
        message: error.to_string(),
    }
}

impl Engine for Smartcore {
    fn is_stoppable(&self) -> bool {
        false
    }

    fn accepts(&self, data: &Dataset) -> Result<(), EngineError> {
        without_gaps(EngineKind::Smartcore, data)
    }

    fn run(&self, fit: &Fit<'_>) -> Result<EngineOutcome, EngineError> {
        let (data, params) = (fit.data, fit.params);
        self.accepts(data)?;
        EngineKind::Smartcore.keeps_to(params)?;
        let mtry = params
            .check_for(data.predictors())
            .map_err(FitError::Params)?;
        let rows = |rows| DenseMatrix::from_2d_vec(&plain_rows(data, rows)).map_err(failed);
        let (train, test) = (rows(&fit.split.train)?, rows(&fit.split.test)?);
        let y = data.target().y();
        let targets = fit.split.train.iter().map(|&row| y[row as usize]);
        // smartcore splits nodes of at least this size, ranger those above min_node_size.
        let min_samples_split = params.min_node_size(data.task()).saturating_add(1);
        let fitted = |consumed: Consumed, predict: &dyn Fn() -> Result<Vec<f64>, EngineError>| {
            let started = Instant::now();
            Ok(EngineOutcome::Done(Fitted {
                predicted: predict()?,
                probabilities: None,
                consumed,
                predict_seconds: started.elapsed().as_secs_f64(),
                leaves: None,
                importance: None,
                out_of_bag_error: None,
            }))
        };
        match data.task() {
            Task::Regression => {
                let parameters = RandomForestRegressorParameters {
                    max_depth: None,
                    min_samples_leaf: 1,
                    min_samples_split,
                    n_trees: params.trees,
                    m: Some(mtry),
                    keep_samples: false,
                    seed: params.seed,
                };
                let targets: Vec<f64> = targets.collect();
                let fit = || RandomForestRegressor::fit(&train, &targets, parameters);
                let (forest, consumed) = measured(|| fit().map_err(failed))?;
                fitted(consumed, &|| forest.predict(&test).map_err(failed))
            }
            Task::Classification => {
                let parameters = RandomForestClassifierParameters {
                    n_trees: u16::try_from(params.trees)
                        .map_err(|_| failed("at most 65535 trees"))?,
                    m: Some(mtry),
                    min_samples_leaf: 1,
                    min_samples_split,
                    seed: params.seed,
                    ..RandomForestClassifierParameters::default()
                };
                let targets: Vec<u32> = targets.map(|class| class as u32).collect();
                let fit = || RandomForestClassifier::fit(&train, &targets, parameters);
                let (forest, consumed) = measured(|| fit().map_err(failed))?;
                fitted(consumed, &|| {
                    let classes: Vec<u32> = forest.predict(&test).map_err(failed)?;
                    Ok(classes.into_iter().map(f64::from).collect())
                })
            }
        }
    }
}
