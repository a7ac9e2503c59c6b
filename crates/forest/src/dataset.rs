//! A table for the forest: every column is coded once as ranks of its values, and a fit only selects rows.
//!
//! Columns are stored column by column as dense ranks over all rows (`u16`, or `u32` past 65,536 different values). So
//! nothing is sorted during a fit, and test rows are coded too. A data set never changes after it is made: share it
//! between fits behind an `Arc`.

mod column;
mod error;
mod header;
mod levels;
mod new_rows;
mod read;
#[cfg(test)]
mod tests;

pub use column::{Codes, Column};
pub use error::{At, DatasetError};
pub use levels::LevelOrder;
pub(super) use levels::ranks_by_response;
pub use new_rows::{NewRows, Predictor};
pub use read::ReadOptions;

use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};

/// The most rows of a table. With more, the fixed-point target would become coarse (see `fixed.rs`).
pub const MAX_ROWS: usize = 1_000_000;
/// The most predictors: their numbers are stored in 16 bits.
pub const MAX_PREDICTORS: usize = 65_535;
/// The most classes. A target with more is probably an id.
pub const MAX_CLASSES: usize = 1_000;
/// Targets beyond this are refused, because sums of their squares over all rows, or of trees, could overflow.
const LARGEST_TARGET: f64 = 1e150;

/// What is predicted: a number or a class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "lowercase")]
pub enum Task {
    /// The target is a number.
    Regression,
    /// The target is one of a few classes.
    Classification,
}

impl Task {
    /// Its name in scenarios, on the command line and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Regression => "regression",
            Self::Classification => "classification",
        }
    }
}

/// The column to predict.
#[derive(Debug, Clone, PartialEq)]
pub struct Target {
    name: String,
    /// The number, or the index of the class.
    y: Vec<f64>,
    /// Empty for numbers.
    classes: Vec<String>,
}

impl Target {
    /// Its name in the header.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// One value per row: the number, or the index of its class.
    pub fn y(&self) -> &[f64] {
        &self.y
    }

    /// The classes by index. Empty for numbers.
    pub fn classes(&self) -> &[String] {
        &self.classes
    }
}

/// A coded table with its target.
#[derive(Debug, Clone, PartialEq)]
pub struct Dataset {
    columns: Vec<Column>,
    target: Target,
    order: LevelOrder,
    identity: Identity,
}

/// Identifies a table, so that a forest recognises the one whose codes it has learned. A clone has the same codes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Identity(u64);

impl Identity {
    pub(super) fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }

    pub(super) fn is(self, other: Self) -> bool {
        self.0 == other.0
    }
}

/// Tables are equal if their contents are.
impl PartialEq for Identity {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Dataset {
    /// A table of numbers, one `Vec` per predictor. NaN means missing. With `classes`, `y` holds their indices.
    pub fn from_columns(
        columns: Vec<(String, Vec<f64>)>,
        target: impl Into<String>,
        y: Vec<f64>,
        classes: Vec<String>,
    ) -> Result<Self, DatasetError> {
        let target = Target {
            name: target.into(),
            y,
            classes,
        };
        for (place, (name, values)) in columns.iter().enumerate() {
            if values.len() != target.y.len() {
                return Err(DatasetError::Lengths {
                    column: name.clone(),
                    rows: values.len(),
                    expected: target.y.len(),
                });
            }
            if let Some(row) = values.iter().position(|value| value.is_infinite()) {
                let at = At::cell(row as u64 + 2, place as u64 + 1);
                return Err(DatasetError::Infinite {
                    at,
                    column: name.clone(),
                    text: values[row].to_string(),
                });
            }
        }
        let columns = columns
            .into_iter()
            .map(|(name, values)| Column::of_numbers(name, &values))
            .collect();
        Self::checked(columns, target, LevelOrder::Alphabetical, None)
    }

    /// Checks what must hold for any table, however it was made. `header` is where the target's header is.
    fn checked(
        columns: Vec<Column>,
        target: Target,
        order: LevelOrder,
        header: Option<At>,
    ) -> Result<Self, DatasetError> {
        let rows = target.y.len();
        if rows < 2 {
            let at = header.map(|header| At::line(header.line));
            return Err(DatasetError::TooFewRows { at, rows });
        }
        if rows > MAX_ROWS {
            return Err(DatasetError::TooManyRows { rows });
        }
        if columns.is_empty() {
            return Err(DatasetError::NoPredictors { dropped: 0 });
        }
        if columns.len() > MAX_PREDICTORS {
            return Err(DatasetError::TooManyColumns {
                columns: columns.len(),
            });
        }
        if target.classes.len() > MAX_CLASSES {
            return Err(DatasetError::TooManyClasses {
                name: target.name,
                classes: target.classes.len(),
            });
        }
        if let Some(row) = target.y.iter().position(|y| !y.is_finite()) {
            return Err(DatasetError::TargetMissing {
                at: At::line(row as u64 + 2),
                name: target.name,
            });
        }
        let lowest = target.y.iter().copied().fold(f64::INFINITY, f64::min);
        let highest = target.y.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        if lowest < -LARGEST_TARGET || highest > LARGEST_TARGET {
            return Err(DatasetError::TargetTooLarge {
                at: header,
                name: target.name,
            });
        }
        let is_index = |y: &f64| *y >= 0.0 && y.fract() == 0.0 && *y < target.classes.len() as f64;
        if !target.classes.is_empty() && !target.y.iter().all(is_index) {
            return Err(DatasetError::NoSuchClass {
                classes: target.classes.len(),
            });
        }
        if target.y.iter().all(|&y| y == target.y[0]) {
            return Err(DatasetError::ConstantTarget {
                at: header,
                name: target.name,
            });
        }
        Ok(Self {
            columns,
            target,
            order,
            identity: Identity::new(),
        })
    }

    /// How many rows there are, at least two.
    pub fn rows(&self) -> usize {
        self.target.y.len()
    }

    /// The predictors, in the order of the header.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// How many predictors there are, at least one.
    pub fn predictors(&self) -> usize {
        self.columns.len()
    }

    /// The column to predict.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// Whether numbers or classes are predicted.
    pub fn task(&self) -> Task {
        if self.target.classes.is_empty() {
            Task::Regression
        } else {
            Task::Classification
        }
    }

    pub(super) fn identity(&self) -> Identity {
        self.identity
    }

    /// How the levels of factors are ordered.
    pub fn level_order(&self) -> LevelOrder {
        self.order
    }
}
