//! Our own forest.

use std::time::Instant;

use super::{Engine, EngineError, EngineOutcome, Fit, Fitted};
use crate::learner::dataset::Dataset;
use crate::learner::forest::{FitOutcome, fit_until};

pub(super) struct Builtin;

impl Engine for Builtin {
    fn is_stoppable(&self) -> bool {
        true
    }

    fn accepts(&self, _: &Dataset) -> Result<(), EngineError> {
        Ok(())
    }

    fn run(&self, fit: &Fit<'_>) -> Result<EngineOutcome, EngineError> {
        let Fit {
            data,
            split,
            params,
            stop,
            allowance,
        } = *fit;
        match fit_until(data, &split.train, params, stop, allowance)? {
            FitOutcome::Stopped { consumed } => Ok(EngineOutcome::Stopped { consumed }),
            FitOutcome::Done { forest, consumed } => {
                let started = Instant::now();
                let predicted = forest.predict(data, &split.test);
                let predict_seconds = started.elapsed().as_secs_f64();
                Ok(EngineOutcome::Done(Fitted {
                    predicted,
                    consumed,
                    predict_seconds,
                    leaves: Some(forest.mean_leaves()),
                    importance: forest.importance().map(<[f64]>::to_vec),
                    out_of_bag_error: fit
                        .params
                        .out_of_bag
                        .then(|| forest.out_of_bag_error(data))
                        .flatten(),
                }))
            }
        }
    }
}
