//! Who fits: our forest, or that of another crate, behind one trait.
//!
//! Only the built-in engine can be stopped in the middle of a fit. The others ignore flag and allowance; who needs a limit
//! to hold for them runs them in a process of their own and ends that.
//!
//! ```
//! use captime::learner::engine::{EngineKind, EngineOutcome, Fit};
//! use captime::learner::{Dataset, Params, ReadOptions, Split, Stop};
//!
//! let csv = "size,price\n50,100\n60,120\n70,140\n80,170\n90,180\n100,210\n";
//! let data = Dataset::parse(csv.as_bytes(), &ReadOptions::predict("price"))?;
//! let split = Split::random(data.rows(), 0.7, 1)?;
//! let params = Params { trees: 20, ..Params::default() };
//! let fit = Fit { data: &data, split: &split, params: &params, stop: &Stop::new(), allowance: None };
//! for kind in [EngineKind::Builtin, EngineKind::Smartcore] {
//!     let EngineOutcome::Done(fitted) = kind.engine().run(&fit)? else { unreachable!("nothing stops it") };
//!     assert_eq!(fitted.predicted.len(), split.test.len());
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod builtin;
mod linfa;
mod setting;
mod smartcore;

pub use setting::Setting;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use super::dataset::{Dataset, Task};
use super::forest::FitError;
use super::params::Params;
use super::split::Split;
use super::stop::{Allowance, Consumed, Stop};

/// Fits on the training rows of a split and predicts its test rows.
pub trait Engine {
    /// Whether it looks at the flag and the allowance while it fits.
    fn is_stoppable(&self) -> bool;

    /// Whether it can learn from these data, so that somebody who tunes it need not find out pull by pull.
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
        /// What it took until then.
        consumed: Consumed,
    },
}

/// What a finished fit gives.
#[derive(Debug, Clone, PartialEq)]
pub struct Fitted {
    /// Predictions of the test rows: numbers, or indices of classes.
    pub predicted: Vec<f64>,
    /// What the fit took, prediction not counted.
    pub consumed: Consumed,
    /// Seconds on the clock to predict.
    pub predict_seconds: f64,
    /// Mean leaves per tree, where the engine tells.
    pub leaves: Option<f64>,
    /// Importance by predictor, if asked for.
    pub importance: Option<Vec<f64>>,
    /// Error on rows out of the bag, where the engine tells.
    pub out_of_bag_error: Option<f64>,
}

/// Which engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum EngineKind {
    /// Our own.
    #[default]
    Builtin,
    /// smartcore's RandomForestRegressor or RandomForestClassifier.
    Smartcore,
    /// linfa-ensemble's random forest of linfa-trees: classification only, and ties fall differently in every run.
    Linfa,
}

impl EngineKind {
    /// All of them, by name.
    pub const ALL: [Self; 3] = [Self::Builtin, Self::Smartcore, Self::Linfa];

    /// Its name in scenarios and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Builtin => "builtin",
            Self::Smartcore => "smartcore",
            Self::Linfa => "linfa",
        }
    }

    /// The engine itself.
    pub fn engine(self) -> &'static dyn Engine {
        match self {
            Self::Builtin => &builtin::Builtin,
            Self::Smartcore => &smartcore::Smartcore,
            Self::Linfa => &linfa::Linfa,
        }
    }
}

/// Why an engine cannot do a fit.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
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
    /// It cannot deal with missing numbers.
    #[error("engine `{}` cannot deal with missing numbers, and column `{column}` has some", engine.name())]
    Missing {
        /// The engine.
        engine: EngineKind,
        /// The first column with missing numbers.
        column: String,
    },
    /// It does something else than it is told.
    #[error("engine `{}` ignores `{}`: {}", engine.name(), setting.name(), setting.instead())]
    Ignored {
        /// The engine.
        engine: EngineKind,
        /// What it ignores.
        setting: Setting,
    },
    /// It gave up.
    #[error("engine `{}` failed: {message}", engine.name())]
    Failed {
        /// The engine.
        engine: EngineKind,
        /// What it says.
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
            Self::Failed { .. } => None,
        }
    }
}

/// Refuses missing numbers for engines that need plain ones.
fn without_gaps(engine: EngineKind, data: &Dataset) -> Result<(), EngineError> {
    let mut columns = data.columns().iter();
    match columns.find(|column| column.missing().is_some()) {
        Some(column) => Err(EngineError::Missing {
            engine,
            column: column.name().to_owned(),
        }),
        None => Ok(()),
    }
}

/// The table as plain numbers, none of which is missing.
fn plain_rows(data: &Dataset, rows: &[u32]) -> Vec<Vec<f64>> {
    let row = |&row: &u32| {
        let columns = data.columns().iter();
        columns.map(|column| column.value(row as usize)).collect()
    };
    rows.iter().map(row).collect()
}
