//! What `captime forest --format json` writes, and what is read back from it where a fit ran in a process of its own.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::dataset::{Dataset, Task};
use super::engine::{EngineKind, EngineOutcome};
use super::evaluate::{Normalise, Quality};
use super::split::Split;

/// One fit and its evaluation, or the means of several.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ForestReport {
    /// Whether numbers or classes were predicted.
    pub task: Task,
    /// Who fitted.
    pub engine: EngineKind,
    /// Rows of the table.
    pub rows: usize,
    /// Columns learned from.
    pub predictors: usize,
    /// How many splits the means are of.
    pub splits: u32,
    /// Root mean square error on the test rows; numbers only, and not if stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rmse: Option<f64>,
    /// Share of test rows whose class was told right; classes only, and not if stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accuracy: Option<f64>,
    /// In [0, 1]; none if stopped.
    pub reward: Option<f64>,
    /// Per tree, where the engine tells.
    pub leaves: Option<f64>,
    /// Mean squared error (numbers) or share of wrong classes out of the bag, if asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub out_of_bag_error: Option<f64>,
    /// Of the whole command, per split: reading, fitting, predicting.
    pub wall_seconds: f64,
    /// The same in CPU time.
    pub cpu_seconds: f64,
    /// Of the fit alone; of the whole process of the fit, if that was ended at a limit.
    pub fit_seconds: f64,
    /// The same in CPU time.
    pub fit_cpu_seconds: f64,
    /// Of predicting the test rows.
    pub predict_seconds: Option<f64>,
    /// Rows times predictors looked at, rounded where it is a mean; none where nobody counted: for other engines than our
    /// own, and for a process that was ended.
    pub work: Option<u64>,
    /// Whether a limit ended a fit.
    pub stopped: bool,
    /// In how many of the splits, if there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped_splits: Option<u32>,
    /// Importance by column, if asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub importance: Option<BTreeMap<String, f64>>,
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
            importance: None,
        }
    }

    /// Evaluates how a fit ended. The times of the whole command are the caller's to fill in.
    pub fn new(
        data: &Dataset,
        engine: EngineKind,
        split: &Split,
        outcome: &EngineOutcome,
        normalise: Normalise,
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
        let seen = data.evaluate(&split.test, &fitted.predicted, normalise);
        match seen.quality {
            Quality::Rmse(rmse) => report.rmse = Some(rmse),
            Quality::Accuracy(accuracy) => report.accuracy = Some(accuracy),
        }
        let names = data.columns().iter().map(|column| column.name().to_owned());
        Self {
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

    /// The means of several reports on one table; none of none.
    ///
    /// What one of them does not tell has no mean: the splits that a limit did not stop are the easy ones, so their mean
    /// would be better than what was asked for.
    pub fn mean(reports: &[Self]) -> Option<Self> {
        let first = reports.first()?;
        let mean = |of: &dyn Fn(&Self) -> Option<f64>| {
            let known: Option<Vec<f64>> = reports.iter().map(of).collect();
            known.map(|known| known.iter().sum::<f64>() / known.len() as f64)
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
