//! Forest implementations behind one trait: this crate's own, and those of other crates.
//!
//! Only the built-in engine can be stopped in the middle of a fit. The others ignore the flag and the allowance: to
//! limit one of them, run it in a separate process and kill that. An engine whose feature is not compiled in refuses
//! every table with [`EngineError::NotCompiled`].
//!
//! ```
//! use captime_forest::engine::{EngineKind, EngineOutcome, Fit};
//! use captime_forest::{Dataset, Params, ReadOptions, Split, Stop};
//!
//! let csv = "size,price\n50,100\n60,120\n70,140\n80,170\n90,180\n100,210\n";
//! let data = Dataset::parse(csv.as_bytes(), &ReadOptions::predict("price"))?;
//! let split = Split::random(data.rows(), 0.7, 1)?;
//! let params = Params { trees: 20, ..Params::default() };
//! let fit = Fit { data: &data, split: &split, params: &params, stop: &Stop::new(), allowance: None };
//! for kind in [EngineKind::Builtin, EngineKind::Smartcore].into_iter().filter(|kind| kind.is_compiled()) {
//!     let EngineOutcome::Done(fitted) = kind.engine().run(&fit)? else { unreachable!("nothing stops it") };
//!     assert_eq!(fitted.predicted.len(), split.test.len());
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#[cfg(feature = "linfa")]
mod linfa;
#[cfg(feature = "smartcore")]
mod smartcore;

use std::time::Instant;

use serde::{Deserialize, Serialize};

use super::dataset::{Dataset, Task};
use super::evaluate::Metric;
use super::forest::{FitError, FitOutcome, fit_until};
use super::params::{Importance, Params};
use super::split::Split;
use super::stop::{Allowance, Consumed, Stop};

/// Fits on the training rows of a split and predicts its test rows.
pub trait Engine {
    /// Whether it checks the flag and the allowance during a fit.
    fn is_stoppable(&self) -> bool;

    /// Whether it can learn from these data. Call it before tuning, so that not every pull fails.
    fn accepts(&self, data: &Dataset) -> Result<(), EngineError>;

    /// Fits and predicts.
    fn run(&self, fit: &Fit<'_>) -> Result<EngineOutcome, EngineError>;
}

/// What an engine is asked to do.
#[derive(Clone, Copy)]
pub struct Fit<'a> {
    /// The table.
    pub data: &'a Dataset,
    /// Its rows to learn from and to predict.
    pub split: &'a Split,
    /// How to fit.
    pub params: &'a Params,
    /// Ends the fit when raised.
    pub stop: &'a Stop,
    /// Ends the fit when used up.
    pub allowance: Option<Allowance>,
}

/// How a fit by an engine ended.
#[derive(Debug, Clone, PartialEq)]
pub enum EngineOutcome {
    /// Fitted, and the test rows predicted.
    Done(Fitted),
    /// Stopped by the flag or the allowance.
    Stopped {
        /// What it used until then.
        consumed: Consumed,
    },
}

/// The result of a finished fit.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Fitted {
    /// Predictions of the test rows: numbers, or indices of classes.
    pub predicted: Vec<f64>,
    /// A probability for each class, row by row. Only for classes, and only if the engine computes them.
    pub probabilities: Option<Vec<f64>>,
    /// The resources of the fit, without prediction.
    pub consumed: Consumed,
    /// Wall-clock seconds to predict.
    pub predict_seconds: f64,
    /// Mean leaves per tree, if the engine reports them.
    pub leaves: Option<f64>,
    /// Importance by predictor, if asked for.
    pub importance: Option<Vec<f64>>,
    /// Out-of-bag error, if the engine reports it.
    pub out_of_bag_error: Option<f64>,
}

/// The forest implementation to use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "lowercase")]
pub enum EngineKind {
    /// captime's own forest, the only one that can be stopped
    #[default]
    Builtin,
    /// smartcore's RandomForestRegressor or RandomForestClassifier
    Smartcore,
    /// linfa-ensemble's random forest: classification only; ties differ from run to run
    Linfa,
}

impl EngineKind {
    /// All of them, compiled in or not.
    pub const ALL: [Self; 3] = [Self::Builtin, Self::Smartcore, Self::Linfa];

    /// Its name in scenarios and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Builtin => "builtin",
            Self::Smartcore => "smartcore",
            Self::Linfa => "linfa",
        }
    }

    /// Whether this build has it: the others are behind features of the same name.
    pub fn is_compiled(self) -> bool {
        match self {
            Self::Builtin => true,
            Self::Smartcore => cfg!(feature = "smartcore"),
            Self::Linfa => cfg!(feature = "linfa"),
        }
    }

    /// The engine itself.
    pub fn engine(self) -> &'static dyn Engine {
        match self {
            Self::Builtin => &Builtin,
            #[cfg(feature = "smartcore")]
            Self::Smartcore => &smartcore::Smartcore,
            #[cfg(not(feature = "smartcore"))]
            Self::Smartcore => &NotCompiled(Self::Smartcore),
            #[cfg(feature = "linfa")]
            Self::Linfa => &linfa::Linfa,
            #[cfg(not(feature = "linfa"))]
            Self::Linfa => &NotCompiled(Self::Linfa),
        }
    }

    /// Whether it supports this setting.
    pub fn takes(self, setting: Setting) -> bool {
        match self {
            Self::Builtin => true,
            Self::Smartcore => false,
            Self::Linfa => setting == Setting::SampleFraction,
        }
    }

    /// Refuses a reward that cannot be computed from its predictions, or that does not fit the target.
    pub fn scores_by(self, metric: Metric, task: Task) -> Result<(), EngineError> {
        let setting = Setting::Probabilities;
        if metric == Metric::Accuracy {
            Ok(())
        } else if task == Task::Regression {
            Err(EngineError::Reward { metric })
        } else if self.takes(setting) {
            Ok(())
        } else {
            Err(EngineError::Ignored {
                engine: self,
                setting,
            })
        }
    }

    /// Refuses parameters that it would ignore: tuning them would have no effect.
    pub fn keeps_to(self, params: &Params) -> Result<(), EngineError> {
        let is_ignored = |setting: &Setting| setting.is_asked_for(params) && !self.takes(*setting);
        match Setting::ALL.into_iter().find(is_ignored) {
            Some(setting) => Err(EngineError::Ignored {
                engine: self,
                setting,
            }),
            None => Ok(()),
        }
    }
}

/// A setting that not every engine supports. All of them support `trees`, `mtry` and `min_node_size`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Setting {
    /// Fewer draws per tree than there are rows.
    SampleFraction,
    /// More than one thread.
    Threads,
    /// Importance of the predictors.
    Importance,
    /// Out-of-bag error.
    OutOfBag,
    /// Probabilities of classes, which the rewards `auc` and `log_loss` need.
    Probabilities,
}

impl Setting {
    const ALL: [Self; 4] = [
        Self::SampleFraction,
        Self::Threads,
        Self::Importance,
        Self::OutOfBag,
    ];

    /// Its name in scenarios; on the command line with hyphens.
    pub fn name(self) -> &'static str {
        match self {
            Self::SampleFraction => "sample_fraction",
            Self::Threads => "threads",
            Self::Importance => "importance",
            Self::OutOfBag => "oob",
            Self::Probabilities => "reward",
        }
    }

    /// What an engine without it does instead.
    pub fn instead(self) -> &'static str {
        match self {
            Self::SampleFraction => "each of its trees draws as many rows as the table has",
            Self::Threads => "it grows its trees on one thread",
            Self::Importance => "it does not compute importance",
            Self::OutOfBag => "it does not compute the out-of-bag error",
            Self::Probabilities => "it gives classes without probabilities",
        }
    }

    /// Whether the parameters ask for more than every engine does anyway.
    fn is_asked_for(self, params: &Params) -> bool {
        match self {
            Self::SampleFraction => (params.sample_fraction - 1.0).abs() > 0.0,
            Self::Threads => params.threads > 1,
            Self::Importance => params.importance != Importance::None,
            Self::OutOfBag => params.out_of_bag,
            // The reward needs them, not the fit.
            Self::Probabilities => false,
        }
    }
}

/// Why an engine cannot do a fit.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// The parameters or the rows are wrong.
    #[error(transparent)]
    Fit(#[from] FitError),
    /// It cannot do this kind of task.
    #[error("engine `{}` cannot do {}: {why}", engine.name(), task.name())]
    Task {
        /// The engine.
        engine: EngineKind,
        /// The task.
        task: Task,
        /// The reason.
        why: &'static str,
    },
    /// It cannot handle missing numbers.
    #[error("engine `{}` cannot handle missing numbers, and column `{column}` has some", engine.name())]
    Missing {
        /// The engine.
        engine: EngineKind,
        /// The first column with missing numbers.
        column: String,
    },
    /// It would ignore a setting.
    #[error("engine `{}` ignores `{}`: {}", engine.name(), setting.name(), setting.instead())]
    Ignored {
        /// The engine.
        engine: EngineKind,
        /// What it ignores.
        setting: Setting,
    },
    /// A classification reward for a numeric target.
    #[error("the reward `{}` is for classes, but the target is a number", metric.name())]
    Reward {
        /// The reward.
        metric: Metric,
    },
    /// This build does not have it.
    #[error("engine `{}` is not compiled in", .0.name())]
    NotCompiled(EngineKind),
    /// The fit failed.
    #[error("engine `{}` failed: {message}", engine.name())]
    Failed {
        /// The engine.
        engine: EngineKind,
        /// Its own message.
        message: String,
    },
}

impl EngineError {
    /// What the user can change to get past this.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Fit(error) => error.hint(),
            Self::Task { .. } => Some("use the engine `builtin` or `smartcore`".into()),
            Self::Missing { .. } => Some("use the engine `builtin`, or drop the column".into()),
            Self::Ignored { setting, .. } => Some(format!(
                "leave `{}` out, or use the engine `builtin`",
                setting.name()
            )),
            Self::Reward { .. } => {
                Some("leave `reward` out, or set the task to classification".into())
            }
            Self::NotCompiled(engine) => Some(format!(
                "build with the feature `{}`, or use the engine `builtin`",
                engine.name()
            )),
            Self::Failed { .. } => None,
        }
    }
}

/// The forest of this crate.
struct Builtin;

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
                let (predicted, probabilities) = forest.predict_both(data, &split.test);
                let predict_seconds = started.elapsed().as_secs_f64();
                let out_of_bag = params.out_of_bag.then(|| forest.out_of_bag_error(data));
                Ok(EngineOutcome::Done(Fitted {
                    predicted,
                    probabilities,
                    consumed,
                    predict_seconds,
                    leaves: Some(forest.mean_leaves()),
                    importance: forest.importance().map(<[f64]>::to_vec),
                    out_of_bag_error: out_of_bag.flatten(),
                }))
            }
        }
    }
}

/// An engine whose feature is off.
#[cfg(not(all(feature = "linfa", feature = "smartcore")))]
struct NotCompiled(EngineKind);

#[cfg(not(all(feature = "linfa", feature = "smartcore")))]
impl Engine for NotCompiled {
    fn is_stoppable(&self) -> bool {
        false
    }

    fn accepts(&self, _: &Dataset) -> Result<(), EngineError> {
        Err(EngineError::NotCompiled(self.0))
    }

    fn run(&self, _: &Fit<'_>) -> Result<EngineOutcome, EngineError> {
        Err(EngineError::NotCompiled(self.0))
    }
}

/// What the engines of other crates have in common: they take plain numbers and cannot be stopped.
#[cfg(any(feature = "linfa", feature = "smartcore"))]
mod foreign {
    use super::{Consumed, Dataset, EngineError, EngineKind, Stop};
    use crate::stop::Meter;

    /// Refuses missing numbers.
    pub(super) fn without_gaps(engine: EngineKind, data: &Dataset) -> Result<(), EngineError> {
        let mut columns = data.columns().iter();
        match columns.find(|column| column.missing().is_some()) {
            Some(column) => Err(EngineError::Missing {
                engine,
                column: column.name().to_owned(),
            }),
            None => Ok(()),
        }
    }

    /// The table as plain numbers, without missing values.
    pub(super) fn plain_rows(data: &Dataset, rows: &[u32]) -> Vec<Vec<f64>> {
        let row = |&row: &u32| {
            let columns = data.columns().iter();
            columns.map(|column| column.value(row as usize)).collect()
        };
        rows.iter().map(row).collect()
    }

    /// Runs a fit on this thread and measures it.
    pub(super) fn measured<T>(
        fit: impl FnOnce() -> Result<T, EngineError>,
    ) -> Result<(T, Consumed), EngineError> {
        let never = Stop::new();
        let meter = Meter::new(&never, None);
        let watch = meter.watch();
        let fitted = fit()?;
        drop(watch);
        Ok((fitted, meter.consumed()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_built_in_engine_takes_everything() {
        let ignored = |engine: EngineKind, change: fn(&mut Params)| {
            let mut params = Params::default();
            change(&mut params);
            engine.keeps_to(&params).map_err(|error| error.to_string())
        };
        for engine in EngineKind::ALL {
            assert_eq!(ignored(engine, |_| ()), Ok(()));
        }
        let of_both: [fn(&mut Params); 3] = [
            |params| params.threads = 2,
            |params| params.importance = Importance::Impurity,
            |params| params.out_of_bag = true,
        ];
        for change in of_both {
            assert!(ignored(EngineKind::Builtin, change).is_ok());
            assert!(ignored(EngineKind::Linfa, change).is_err());
            assert!(ignored(EngineKind::Smartcore, change).is_err());
        }
        let half: fn(&mut Params) = |params| params.sample_fraction = 0.5;
        assert!(ignored(EngineKind::Linfa, half).is_ok());
        assert_eq!(
            ignored(EngineKind::Smartcore, half),
            Err("engine `smartcore` ignores `sample_fraction`: each of its trees draws as many rows as the table has".into())
        );
    }
    #[test]
    fn an_engine_that_is_not_compiled_in_refuses_every_table() {
        let columns = vec![("x".into(), vec![1.0, 2.0])];
        let data =
            Dataset::from_columns(columns, "y", vec![0.0, 1.0], vec!["a".into(), "b".into()]);
        let data = data.unwrap();
        for engine in EngineKind::ALL {
            let is_refused =
                engine.engine().accepts(&data) == Err(EngineError::NotCompiled(engine));
            assert_eq!(is_refused, !engine.is_compiled(), "{engine:?}");
        }
    }
}
