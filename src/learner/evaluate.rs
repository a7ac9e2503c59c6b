//! How good predictions are: the error, and the reward in [0, 1] that a policy learns from.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use super::dataset::{Dataset, Task};

/// What the root mean square error is set against.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Normalise {
    /// The range of the target over the whole table.
    #[default]
    Range,
    /// Its standard deviation.
    Sd,
}

/// How good predictions are.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Quality {
    /// Of numbers: the root mean square error.
    Rmse(f64),
    /// Of classes: the share that is right.
    Accuracy(f64),
}

/// Predictions set against the truth.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Evaluation {
    /// The error, or the accuracy.
    pub quality: Quality,
    /// In [0, 1]: 1 - error / range (or sd) of the target over the whole table, or the accuracy.
    pub reward: f64,
}

impl Dataset {
    /// Sets predictions for some rows against their targets.
    pub fn evaluate(&self, rows: &[u32], predicted: &[f64], by: Normalise) -> Evaluation {
        let y = self.target().y();
        let count = rows.len().max(1) as f64;
        let pairs = rows.iter().map(|&row| y[row as usize]).zip(predicted);
        match self.task() {
            Task::Regression => {
                let squares: f64 = pairs.map(|(y, p)| (y - p) * (y - p)).sum();
                let rmse = (squares / count).sqrt();
                let reward = (1.0 - rmse / spread(y, by)).max(0.0);
                Evaluation {
                    quality: Quality::Rmse(rmse),
                    // An overflowing error is no reward, not a number that is none.
                    reward: if reward.is_nan() { 0.0 } else { reward },
                }
            }
            Task::Classification => {
                let right = pairs.filter(|&(y, &p)| y == p).count();
                let accuracy = right as f64 / count;
                Evaluation {
                    quality: Quality::Accuracy(accuracy),
                    reward: accuracy,
                }
            }
        }
    }
}

fn spread(y: &[f64], by: Normalise) -> f64 {
    match by {
        Normalise::Range => {
            let (low, high) = y
                .iter()
                .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), &y| {
                    (low.min(y), high.max(y))
                });
            high - low
        }
        Normalise::Sd => {
            let mean = y.iter().sum::<f64>() / y.len() as f64;
            let squares: f64 = y.iter().map(|y| (y - mean) * (y - mean)).sum();
            (squares / (y.len() - 1) as f64).sqrt()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(y: Vec<f64>, classes: Vec<String>) -> Dataset {
        let x = (0..y.len()).map(|row| row as f64).collect();
        Dataset::from_columns(vec![("x".into(), x)], "y", y, classes).unwrap()
    }

    #[test]
    fn rewards_are_relative_to_the_spread_and_never_negative() {
        let data = table(vec![0.0, 10.0, 5.0, 5.0], Vec::new());
        let near = data.evaluate(&[0, 1], &[1.0, 9.0], Normalise::Range);
        assert_eq!(near.quality, Quality::Rmse(1.0));
        assert!((near.reward - 0.9).abs() < 1e-12);
        let sd = data.evaluate(&[0, 1], &[1.0, 9.0], Normalise::Sd);
        assert!((sd.reward - (1.0 - 1.0 / (50.0_f64 / 3.0).sqrt())).abs() < 1e-12);
        let far = data.evaluate(&[0], &[1e9], Normalise::Range);
        assert_eq!(far.reward, 0.0);
    }

    #[test]
    fn the_reward_of_classes_is_the_share_that_is_right() {
        let data = table(vec![0.0, 1.0, 1.0], vec!["a".into(), "b".into()]);
        let seen = data.evaluate(&[0, 1, 2], &[0.0, 1.0, 0.0], Normalise::Range);
        assert_eq!(seen.quality, Quality::Accuracy(2.0 / 3.0));
        assert_eq!(seen.reward, 2.0 / 3.0);
    }
}
