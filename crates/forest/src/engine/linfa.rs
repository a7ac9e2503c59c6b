//! linfa-ensemble's random forest of linfa-trees. Predictors are drawn once per tree, not once per node, on one thread.
//!
//! The seed decides which rows and predictors a tree gets, but not the whole forest. linfa-trees sums impurities and
//! breaks ties between classes in the order of a `HashMap`, which the standard library randomises in every run, and
//! linfa-ensemble counts votes in another. Neither accepts a hasher, so two fits with one seed may differ.

use std::time::Instant;

use linfa::DatasetBase;
use linfa::traits::{Fit as _, Predict};
use linfa_ensemble::RandomForestParams;
use linfa_trees::DecisionTree;
use ndarray::{Array1, Array2};
use rand_08::SeedableRng;
use rand_08::rngs::StdRng;

use super::foreign::{measured, plain_rows, without_gaps};
use super::{Engine, EngineError, EngineKind, EngineOutcome, Fit, Fitted};
use crate::dataset::{Dataset, Task};
use crate::forest::FitError;

pub(super) struct Linfa;

fn failed(error: impl ToString) -> EngineError {
    EngineError::Failed {
        engine: EngineKind::Linfa,
        message: error.to_string(),
    }
}

impl Engine for Linfa {
    fn is_stoppable(&self) -> bool {
        false
    }

    fn accepts(&self, data: &Dataset) -> Result<(), EngineError> {
        if data.task() == Task::Regression {
            return Err(EngineError::Task {
                engine: EngineKind::Linfa,
                task: Task::Regression,
                why: "its trees only predict classes",
            });
        }
        without_gaps(EngineKind::Linfa, data)
    }

    fn run(&self, fit: &Fit<'_>) -> Result<EngineOutcome, EngineError> {
        let (data, params) = (fit.data, fit.params);
        self.accepts(data)?;
        EngineKind::Linfa.keeps_to(params)?;
        let mtry = params
            .check_for(data.predictors())
            .map_err(FitError::Params)?;
        let rows = |rows: &[u32]| {
            let flat = plain_rows(data, rows).concat();
            Array2::from_shape_vec((rows.len(), data.predictors()), flat).map_err(failed)
        };
        let (train, test) = (rows(&fit.split.train)?, rows(&fit.split.test)?);
        let y = data.target().y();
        let targets = fit.split.train.iter().map(|&row| y[row as usize] as usize);
        let train = DatasetBase::new(train, Array1::from_iter(targets));
        // linfa splits nodes of at least this weight, ranger those above min_node_size.
        let min_split = params.min_node_size(data.task()).saturating_add(1);
        let trees = DecisionTree::<f64, usize>::params().min_weight_split(min_split as f32);
        let forest = RandomForestParams::new_fixed_rng(trees, StdRng::seed_from_u64(params.seed))
            .ensemble_size(params.trees)
            .bootstrap_proportion(params.sample_fraction)
            .feature_proportion(mtry as f64 / data.predictors() as f64);
        let (forest, consumed) = measured(|| forest.fit(&train).map_err(failed))?;
        let started = Instant::now();
        let predicted: Array1<usize> = forest.predict(&test);
        Ok(EngineOutcome::Done(Fitted {
            predicted: predicted.iter().map(|&class| class as f64).collect(),
            probabilities: None,
            consumed,
            predict_seconds: started.elapsed().as_secs_f64(),
            leaves: None,
            importance: None,
            out_of_bag_error: None,
        }))
    }
}
