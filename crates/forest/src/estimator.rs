//! The forest as a linfa estimator: checked parameters, `Fit`, `Predict`.
//!
//! Targets of `f64` are numbers. Targets of `usize` or `bool` are classes. NaN in a record means missing.

use linfa::ParamGuard;
use linfa::dataset::{AsSingleTargets, DatasetBase};
use linfa::traits::{Fit, PredictInplace};
use ndarray::{Array1, ArrayBase, ArrayView1, Data, Ix2};

use super::dataset::{Dataset, DatasetError};
use super::forest::{FitError, FitOutcome, Forest, fit_until};
use super::params::{Params, ParamsError};
use super::stop::Stop;

/// Unchecked parameters of a forest, for linfa's checking pattern.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ForestParams(ValidForestParams);

/// Parameters that passed their check.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ValidForestParams(Params);

impl From<Params> for ForestParams {
    fn from(params: Params) -> Self {
        Self(ValidForestParams(params))
    }
}

impl ParamGuard for ForestParams {
    type Checked = ValidForestParams;
    type Error = ParamsError;

    fn check_ref(&self) -> Result<&ValidForestParams, ParamsError> {
        self.0.0.check()?;
        Ok(&self.0)
    }

    fn check(self) -> Result<ValidForestParams, ParamsError> {
        self.0.0.check()?;
        Ok(self.0)
    }
}

/// Why a linfa data set cannot be fitted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EstimatorError {
    /// A parameter is wrong.
    #[error(transparent)]
    Params(#[from] ParamsError),
    /// The records or targets cannot be used.
    #[error(transparent)]
    Data(#[from] DatasetError),
    /// The fit cannot start.
    #[error(transparent)]
    Fit(#[from] FitError),
    /// An error of linfa itself.
    #[error(transparent)]
    Linfa(#[from] linfa::Error),
    /// Cannot happen without a flag or allowance, which linfa cannot pass on.
    #[error("the fit was stopped")]
    Stopped,
}

/// What a forest can predict in linfa: numbers (`f64`) or classes (`usize`, `bool`).
pub trait ForestTarget: Copy + Default {
    /// The targets in the form that a forest learns, and the classes behind the indices if they are classes.
    fn encode(targets: ArrayView1<'_, Self>) -> (Vec<f64>, Vec<Self>);

    /// The meaning of a prediction.
    fn decode(predicted: f64, classes: &[Self]) -> Self;

    /// The name of a class.
    fn name(&self) -> String;
}

impl ForestTarget for f64 {
    fn encode(targets: ArrayView1<'_, Self>) -> (Vec<f64>, Vec<Self>) {
        (targets.to_vec(), Vec::new())
    }

    fn decode(predicted: f64, _: &[Self]) -> Self {
        predicted
    }

    fn name(&self) -> String {
        self.to_string()
    }
}

macro_rules! class_target {
    ($($class:ty),*) => {$(
        impl ForestTarget for $class {
            fn encode(targets: ArrayView1<'_, Self>) -> (Vec<f64>, Vec<Self>) {
                let mut classes = targets.to_vec();
                classes.sort_unstable();
                classes.dedup();
                let index = |class: &Self| classes.partition_point(|other| other < class) as f64;
                (targets.iter().map(index).collect(), classes)
            }

            fn decode(predicted: f64, classes: &[Self]) -> Self {
                classes.get(predicted as usize).copied().unwrap_or_default()
            }

            fn name(&self) -> String {
                self.to_string()
            }
        }
    )*};
}

class_target!(usize, bool);

/// A forest fitted on a linfa data set.
#[derive(Debug, Clone, PartialEq)]
pub struct FittedForest<L> {
    forest: Forest,
    classes: Vec<L>,
}

impl<L> FittedForest<L> {
    /// The forest itself.
    pub fn forest(&self) -> &Forest {
        &self.forest
    }
}

impl<D, T> Fit<ArrayBase<D, Ix2>, T, EstimatorError> for ValidForestParams
where
    D: Data<Elem = f64>,
    T: AsSingleTargets,
    T::Elem: ForestTarget,
{
    type Object = FittedForest<T::Elem>;

    fn fit(
        &self,
        dataset: &DatasetBase<ArrayBase<D, Ix2>, T>,
    ) -> Result<Self::Object, EstimatorError> {
        let records = dataset.records();
        let (y, classes) = T::Elem::encode(dataset.as_single_targets());
        let names = dataset.feature_names();
        let columns = records.columns().into_iter().enumerate();
        let columns = columns.map(|(place, column)| {
            let name = names.get(place).cloned();
            (name.unwrap_or_else(|| place.to_string()), column.to_vec())
        });
        let class_names = classes.iter().map(ForestTarget::name).collect();
        let data = Dataset::from_columns(columns.collect(), "target", y, class_names)?;
        let rows: Vec<u32> = (0..data.rows() as u32).collect();
        match fit_until(&data, &rows, &self.0, &Stop::new(), None)? {
            FitOutcome::Done { forest, .. } => Ok(FittedForest { forest, classes }),
            FitOutcome::Stopped { .. } => Err(EstimatorError::Stopped),
        }
    }
}

impl<D, L> PredictInplace<ArrayBase<D, Ix2>, Array1<L>> for FittedForest<L>
where
    D: Data<Elem = f64>,
    L: ForestTarget,
{
    fn predict_inplace(&self, x: &ArrayBase<D, Ix2>, y: &mut Array1<L>) {
        assert_eq!(x.nrows(), y.len(), "one target a row");
        let values: Vec<f64> = x.iter().copied().collect();
        let predicted = self.forest.predict_values(&values, x.ncols());
        for (y, predicted) in y.iter_mut().zip(predicted) {
            *y = L::decode(predicted, &self.classes);
        }
    }

    fn default_target(&self, x: &ArrayBase<D, Ix2>) -> Array1<L> {
        Array1::default(x.nrows())
    }
}

#[cfg(test)]
mod tests {
    use linfa::traits::Predict;
    use ndarray::{Array2, array};

    use super::*;

    fn records() -> Array2<f64> {
        Array2::from_shape_fn((60, 2), |(row, column)| {
            if column == 0 {
                row as f64
            } else {
                (row * 7 % 10) as f64
            }
        })
    }

    #[test]
    fn numbers_and_classes_are_fitted_by_the_type_of_the_targets() {
        let params = ForestParams::from(Params {
            trees: 40,
            mtry: Some(2),
            ..Params::default()
        });
        let numbers = Array1::from_shape_fn(60, |row| row as f64 * 2.0);
        let forest = params
            .fit(&linfa::Dataset::new(records(), numbers))
            .unwrap();
        let near: Array1<f64> = forest.predict(&array![[30.0, 0.0], [f64::NAN, 3.0]]);
        assert!((near[0] - 60.0).abs() < 10.0, "{near}");

        let classes = Array1::from_shape_fn(60, |row| if row < 30 { 7_usize } else { 3 });
        let forest = params
            .fit(&linfa::Dataset::new(records(), classes))
            .unwrap();
        let seen: Array1<usize> = forest.predict(&array![[5.0, 0.0], [55.0, 0.0]]);
        assert_eq!(seen, array![7, 3]);

        let truths = Array1::from_shape_fn(60, |row| row >= 30);
        let forest = params.fit(&linfa::Dataset::new(records(), truths)).unwrap();
        let seen: Array1<bool> = forest.predict(&array![[5.0, 0.0], [55.0, 0.0]]);
        assert_eq!(seen, array![false, true]);
    }

    #[test]
    fn what_is_wrong_is_said_before_anything_is_fitted() {
        let wrong = ForestParams::from(Params {
            trees: 0,
            ..Params::default()
        });
        assert!(wrong.check_ref().is_err());
        let targets = Array1::from_shape_fn(60, |row| row as f64);
        let data = linfa::Dataset::new(records(), targets);
        assert!(matches!(wrong.fit(&data), Err(EstimatorError::Params(_))));
        let greedy = ForestParams::from(Params {
            mtry: Some(3),
            ..Params::default()
        });
        assert!(matches!(greedy.fit(&data), Err(EstimatorError::Fit(_))));
        let constant = linfa::Dataset::new(records(), Array1::<f64>::zeros(60));
        let fitted = ForestParams::default().fit(&constant);
        assert!(matches!(fitted, Err(EstimatorError::Data(_))));
    }
}
