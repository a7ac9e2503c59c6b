//! What `captime forest --format json` writes. It is read back if a fit ran in its own process.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::dataset::{Dataset, Task};
use super::engine::{EngineKind, EngineOutcome};
use super::evaluate::Scoring;
use super::split::Split;

/// One fit and its evaluation, or the means of several.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ForestReport {
    /// Whether numbers or classes were predicted.
    pub task: Task,
    /// Forest implementation.
    pub engine: EngineKind,
    /// Rows of the table.
    pub rows: usize,
    /// Columns learned from.
    pub predictors: usize,
    /// How many splits the means are of.
    pub splits: u32,
    /// Root mean square error on the test rows. Regression only, and only if not stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rmse: Option<f64>,
    /// Share of test rows whose class was predicted. Classification only, and only if not stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accuracy: Option<f64>,
    /// Area under the ROC curve on the test rows. Classification only, if the engine gives probabilities.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auc: Option<f64>,
    /// Log loss on the test rows. Classification only, if the engine gives probabilities.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_loss: Option<f64>,
    /// In [0, 1]. `None` if stopped.
    pub reward: Option<f64>,
    /// Per tree, if the engine reports them.
    pub leaves: Option<f64>,
    /// Out-of-bag mean squared error (regression) or share of wrong classes, if requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub out_of_bag_error: Option<f64>,
    /// Of the whole command, per split: reading, fitting, predicting.
    pub wall_seconds: f64,
    /// The same in CPU time.
    pub cpu_seconds: f64,
    /// Of the fit alone. If a process was killed at a limit, of that whole process.
    pub fit_seconds: f64,
    /// The same in CPU time.
    pub fit_cpu_seconds: f64,
    /// Of predicting the test rows.
    pub predict_seconds: Option<f64>,
    /// Rows times predictors examined, rounded if it is a mean. `None` if it was not counted: for other engines than
    /// the built-in one, and for a process that was killed.
    pub work: Option<u64>,
    /// Whether a limit ended a fit.
    pub stopped: bool,
    /// In how many of the splits, if there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped_splits: Option<u32>,
    /// Standard deviations over the splits, if there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sd: Option<Deviations>,
    /// Importance by column, if requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub importance: Option<BTreeMap<String, f64>>,
}

/// Standard deviations over splits (divided by n - 1) of the means in a [`ForestReport`].
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Deviations {
    /// Of the root mean square error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rmse: Option<f64>,
    /// Of the accuracy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accuracy: Option<f64>,
    /// Of the area under the ROC curve.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auc: Option<f64>,
    /// Of the log loss.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_loss: Option<f64>,
    /// Of the reward.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reward: Option<f64>,
}

impl ForestReport {
    /// A report of a fit that was stopped after this much time, wall and CPU.
    pub fn stopped(data: &Dataset, engine: EngineKind, wall: f64, cpu: f64) -> Self {
        Self {
            task: data.task(),
            engine,
            rows: data.rows(),
            predictors: data.predictors(),
            splits: 1,
            rmse: None,
            accuracy: None,
            auc: None,
            log_loss: None,
            reward: None,
            leaves: None,
            out_of_bag_error: None,
            wall_seconds: wall,
            cpu_seconds: cpu,
            fit_seconds: wall,
            fit_cpu_seconds: cpu,
            predict_seconds: None,
            work: None,
            stopped: true,
            stopped_splits: None,
            sd: None,
            importance: None,
        }
    }

    /// Evaluates how a fit ended. The caller fills in the times of the whole command.
    pub fn new(
        data: &Dataset,
        engine: EngineKind,
        split: &Split,
        outcome: &EngineOutcome,
        scoring: Scoring,
    ) -> Self {
        let consumed = match outcome {
            EngineOutcome::Stopped { consumed } => consumed,
            EngineOutcome::Done(fitted) => &fitted.consumed,
        };
        let (wall, cpu) = (consumed.wall.as_secs_f64(), consumed.cpu.as_secs_f64());
        let mut report = Self::stopped(data, engine, wall, cpu);
        report.work = engine.engine().is_stoppable().then_some(consumed.work);
        let EngineOutcome::Done(fitted) = outcome else {
            return report;
        };
        let probabilities = fitted.probabilities.as_deref();
        let seen = data.evaluate(&split.test, &fitted.predicted, probabilities, scoring);
        let names = data.columns().iter().map(|column| column.name().to_owned());
        Self {
            rmse: seen.rmse,
            accuracy: seen.accuracy,
            auc: seen.auc,
            log_loss: seen.log_loss,
            reward: Some(seen.reward),
            leaves: fitted.leaves,
            out_of_bag_error: fitted.out_of_bag_error,
            predict_seconds: Some(fitted.predict_seconds),
            stopped: false,
            importance: fitted
                .importance
                .as_ref()
                .map(|all| names.zip(all.iter().copied()).collect()),
            ..report
        }
    }

    /// The means of several reports on one table. `None` without reports.
    ///
    /// If one of them lacks a value, it has no mean: the splits that a limit did not stop are the easy ones, so their
    /// mean would be too good.
    pub fn mean(reports: &[Self]) -> Option<Self> {
        let first = reports.first()?;
        let mean = |of: &dyn Fn(&Self) -> Option<f64>| {
            let known: Option<Vec<f64>> = reports.iter().map(of).collect();
            known.map(|known| known.iter().sum::<f64>() / known.len() as f64)
        };
        let sd = |of: &dyn Fn(&Self) -> Option<f64>| {
            let mean = mean(of)?;
            let squares = reports
                .iter()
                .filter_map(of)
                .map(|value| (value - mean).powi(2));
            Some((squares.sum::<f64>() / (reports.len() - 1) as f64).sqrt())
        };
        let always = |of: &dyn Fn(&Self) -> f64| mean(&|report| Some(of(report))).unwrap_or(0.0);
        let importance = first.importance.as_ref().and_then(|columns| {
            let of = |name: &String| mean(&|report| report.importance.as_ref()?.get(name).copied());
            columns
                .keys()
                .map(|name| Some((name.clone(), of(name)?)))
                .collect()
        });
        let stopped = reports.iter().filter(|report| report.stopped).count();
        Some(Self {
            splits: reports.len() as u32,
            rmse: mean(&|report| report.rmse),
            accuracy: mean(&|report| report.accuracy),
            auc: mean(&|report| report.auc),
            log_loss: mean(&|report| report.log_loss),
            sd: (reports.len() > 1).then(|| Deviations {
                rmse: sd(&|report| report.rmse),
                accuracy: sd(&|report| report.accuracy),
                auc: sd(&|report| report.auc),
                log_loss: sd(&|report| report.log_loss),
                reward: sd(&|report| report.reward),
            }),
            reward: mean(&|report| report.reward),
            leaves: mean(&|report| report.leaves),
            out_of_bag_error: mean(&|report| report.out_of_bag_error),
            wall_seconds: always(&|report| report.wall_seconds),
            cpu_seconds: always(&|report| report.cpu_seconds),
            fit_seconds: always(&|report| report.fit_seconds),
            fit_cpu_seconds: always(&|report| report.fit_cpu_seconds),
            predict_seconds: mean(&|report| report.predict_seconds),
            work: mean(&|report| report.work.map(|work| work as f64))
                .map(|work| work.round() as u64),
            stopped: stopped > 0,
            stopped_splits: (reports.len() > 1).then_some(stopped as u32),
            importance,
            ..first.clone()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(rmse: Option<f64>) -> ForestReport {
        let columns = vec![("x".into(), vec![1.0, 2.0])];
        let data = Dataset::from_columns(columns, "y", vec![1.0, 2.0], vec![]).unwrap();
        ForestReport {
            rmse,
            reward: rmse,
            leaves: rmse,
            stopped: rmse.is_none(),
            importance: rmse.map(|value| [("x".to_owned(), value)].into()),
            ..ForestReport::stopped(&data, EngineKind::Builtin, 1.0, 1.0)
        }
    }

    #[test]
    fn a_split_that_was_stopped_leaves_no_mean() {
        let all = ForestReport::mean(&[report(Some(1.0)), report(Some(3.0))]).unwrap();
        assert_eq!((all.rmse, all.leaves), (Some(2.0), Some(2.0)));
        let sd = all.sd.unwrap();
        assert_eq!((sd.rmse, sd.accuracy), (Some(2_f64.sqrt()), None));
        assert_eq!(all.importance.unwrap()["x"], 2.0);
        assert_eq!((all.stopped, all.stopped_splits), (false, Some(0)));

        for some in [[Some(1.0), None], [None, Some(1.0)]] {
            let some = ForestReport::mean(&some.map(report)).unwrap();
            assert_eq!((some.rmse, some.reward, some.leaves), (None, None, None));
            assert_eq!(some.importance, None);
            assert_eq!((some.stopped, some.stopped_splits), (true, Some(1)));
            assert_eq!(some.fit_seconds, 1.0);
        }
        assert_eq!(
            ForestReport::mean(&[report(None)]).unwrap().stopped_splits,
            None
        );
    }
}
