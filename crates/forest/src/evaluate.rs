//! The quality of predictions: errors and scores, and the reward in [0, 1] that a policy learns from.

use serde::{Deserialize, Serialize};

use super::dataset::{Dataset, Task};

/// What the root mean square error is divided by for the reward.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "lowercase")]
pub enum Normalise {
    /// The range of the target over the whole table
    #[default]
    Range,
    /// The standard deviation of the target
    Sd,
}

impl Normalise {
    /// Both of them.
    pub const ALL: [Self; 2] = [Self::Range, Self::Sd];

    /// Its name in scenarios and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Range => "range",
            Self::Sd => "sd",
        }
    }
}

/// What the reward of a classification is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(
    feature = "clap",
    derive(clap::ValueEnum),
    value(rename_all = "snake_case")
)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Metric {
    /// The share of test rows whose class was predicted
    #[default]
    Accuracy,
    /// The area under the ROC curve, each class against the rest, averaged over classes
    Auc,
    /// The geometric mean of the probability given to the true class, which is exp(-log loss)
    LogLoss,
}

impl Metric {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Accuracy, Self::Auc, Self::LogLoss];

    /// Its name in scenarios and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Accuracy => "accuracy",
            Self::Auc => "auc",
            Self::LogLoss => "log_loss",
        }
    }
}

/// How predictions are turned into a reward.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Scoring {
    /// For regression: what the error is divided by.
    pub normalise: Normalise,
    /// For classification: the score that counts.
    pub metric: Metric,
}

/// Predictions compared with the truth. `None` for what does not apply or cannot be computed.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[non_exhaustive]
pub struct Evaluation {
    /// Root mean square error. Regression only.
    pub rmse: Option<f64>,
    /// Share of rows whose class was predicted. Classification only.
    pub accuracy: Option<f64>,
    /// Area under the ROC curve, one class against the rest, averaged over the classes that some rows have and others
    /// do not. Needs probabilities and such a class.
    pub auc: Option<f64>,
    /// Mean of -ln(probability of the true class), with probabilities clipped at 1e-15. Needs probabilities.
    pub log_loss: Option<f64>,
    /// In [0, 1]: 1 - error / range (or sd) of the target over the whole table, or what [`Metric`] says. A metric that
    /// cannot be computed counts as chance: 0.5 for the AUC, 0 for the log loss.
    pub reward: f64,
}

impl Evaluation {
    /// What the reward is computed from, in the target's own terms: the error of a regression, or the metric.
    pub fn score(&self, metric: Metric) -> Option<f64> {
        self.rmse.or(match metric {
            Metric::Accuracy => self.accuracy,
            Metric::Auc => self.auc,
            Metric::LogLoss => self.log_loss,
        })
    }
}

/// The smallest probability for the log loss: a forest may give no votes to the true class.
const LEAST_PROBABILITY: f64 = 1e-15;

impl Dataset {
    /// The root mean square error at which a regression earns nothing.
    pub fn worst_error(&self, normalise: Normalise) -> f64 {
        spread(self.target().y(), normalise)
    }

    /// Compares predictions for some rows with their targets. `probabilities` has one number for each class, row by
    /// row.
    pub fn evaluate(
        &self,
        rows: &[u32],
        predicted: &[f64],
        probabilities: Option<&[f64]>,
        scoring: Scoring,
    ) -> Evaluation {
        let y = self.target().y();
        let truth: Vec<f64> = rows.iter().map(|&row| y[row as usize]).collect();
        let count = rows.len().max(1) as f64;
        let pairs = truth.iter().zip(predicted);
        match self.task() {
            Task::Regression => {
                let squares: f64 = pairs.map(|(y, p)| (y - p) * (y - p)).sum();
                let rmse = (squares / count).sqrt();
                // The same number, bit by bit, as a scenario's `worst` and `best` would give.
                let worst = self.worst_error(scoring.normalise);
                let reward = ((worst - rmse) / worst).max(0.0);
                Evaluation {
                    rmse: Some(rmse),
                    // If the error overflows, the reward is 0, not NaN.
                    reward: if reward.is_nan() { 0.0 } else { reward },
                    ..Evaluation::default()
                }
            }
            Task::Classification => {
                let classes = self.target().classes().len();
                let accuracy = pairs.filter(|(y, p)| y == p).count() as f64 / count;
                let probabilities = probabilities.filter(|all| all.len() == rows.len() * classes);
                let auc = probabilities.and_then(|all| mean_auc(&truth, all, classes));
                let log_loss = probabilities.map(|all| log_loss(&truth, all, classes));
                Evaluation {
                    rmse: None,
                    accuracy: Some(accuracy),
                    auc,
                    log_loss,
                    reward: match scoring.metric {
                        Metric::Accuracy => accuracy,
                        Metric::Auc => auc.unwrap_or(0.5),
                        Metric::LogLoss => log_loss.map_or(0.0, |loss| (-loss).exp()),
                    },
                }
            }
        }
    }
}

fn log_loss(truth: &[f64], probabilities: &[f64], classes: usize) -> f64 {
    let rows = truth.iter().zip(probabilities.chunks_exact(classes));
    let losses = rows.map(|(&class, all)| -all[class as usize].clamp(LEAST_PROBABILITY, 1.0).ln());
    losses.sum::<f64>() / truth.len().max(1) as f64
}

/// The mean over all classes for which there is an area.
fn mean_auc(truth: &[f64], probabilities: &[f64], classes: usize) -> Option<f64> {
    let areas: Vec<f64> = (0..classes)
        .filter_map(|class| {
            let rows = truth.iter().zip(probabilities.chunks_exact(classes));
            auc(rows
                .map(|(&y, all)| (all[class], y == class as f64))
                .collect())
        })
        .collect();
    (!areas.is_empty()).then(|| areas.iter().sum::<f64>() / areas.len() as f64)
}

/// The probability that a row of the class has a higher score than one of another class, with ties counting half: the
/// rank-sum form of the area under the ROC curve. `None` without rows of both kinds.
fn auc(mut scored: Vec<(f64, bool)>) -> Option<f64> {
    scored.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    let positives = scored.iter().filter(|(_, is_class)| *is_class).count();
    let negatives = scored.len() - positives;
    if positives == 0 || negatives == 0 {
        return None;
    }
    let (mut below, mut wins) = (0.0, 0.0);
    for tied in scored.chunk_by(|a, b| a.0 == b.0) {
        let of_class = tied.iter().filter(|(_, is_class)| *is_class).count() as f64;
        let of_others = tied.len() as f64 - of_class;
        wins += of_class * (below + of_others / 2.0);
        below += of_others;
    }
    Some(wins / (positives as f64 * negatives as f64))
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
    use proptest::prelude::*;

    use super::*;

    fn table(y: Vec<f64>, classes: Vec<String>) -> Dataset {
        let x = (0..y.len()).map(|row| row as f64).collect();
        Dataset::from_columns(vec![("x".into(), x)], "y", y, classes).unwrap()
    }

    fn by(normalise: Normalise) -> Scoring {
        Scoring {
            normalise,
            ..Scoring::default()
        }
    }

    #[test]
    fn rewards_are_relative_to_the_spread_and_never_negative() {
        let data = table(vec![0.0, 10.0, 5.0, 5.0], Vec::new());
        let near = data.evaluate(&[0, 1], &[1.0, 9.0], None, by(Normalise::Range));
        assert_eq!(near.rmse, Some(1.0));
        assert!((near.reward - 0.9).abs() < 1e-12);
        let sd = data.evaluate(&[0, 1], &[1.0, 9.0], None, by(Normalise::Sd));
        assert!((sd.reward - (1.0 - 1.0 / (50.0_f64 / 3.0).sqrt())).abs() < 1e-12);
        let far = data.evaluate(&[0], &[1e9], None, by(Normalise::Range));
        assert_eq!(far.reward, 0.0);
    }

    #[test]
    fn classes_are_scored_by_votes_and_by_probabilities() {
        let data = table(vec![0.0, 1.0, 1.0, 0.0], vec!["a".into(), "b".into()]);
        let (rows, predicted) = ([0, 1, 2, 3], [0.0, 1.0, 0.0, 0.0]);
        let shares = [0.75, 0.25, 0.5, 0.5, 0.75, 0.25, 1.0, 0.0];
        let with = |metric| {
            let scoring = Scoring {
                metric,
                ..Scoring::default()
            };
            data.evaluate(&rows, &predicted, Some(&shares), scoring)
        };
        let seen = with(Metric::Accuracy);
        assert_eq!((seen.accuracy, seen.reward), (Some(0.75), 0.75));
        // Of four pairs of one b and one a, three are in order and one is a tie.
        assert_eq!((seen.auc, with(Metric::Auc).reward), (Some(0.875), 0.875));
        let product: f64 = 0.75 * 0.5 * 0.25 * 1.0;
        assert!((seen.log_loss.unwrap() + product.ln() / 4.0).abs() < 1e-12);
        assert!((with(Metric::LogLoss).reward - product.powf(0.25)).abs() < 1e-12);
        let without = data.evaluate(&rows, &predicted, None, Scoring::default());
        assert_eq!((without.auc, without.log_loss), (None, None));
    }

    #[test]
    fn a_certain_mistake_and_a_single_class_give_numbers() {
        let data = table(vec![0.0, 1.0], vec!["a".into(), "b".into()]);
        let scoring = Scoring {
            metric: Metric::Auc,
            ..Scoring::default()
        };
        let seen = data.evaluate(&[0], &[1.0], Some(&[0.0, 1.0]), scoring);
        assert_eq!((seen.auc, seen.reward), (None, 0.5));
        assert!((seen.log_loss.unwrap() - 34.539).abs() < 1e-3);
    }

    proptest! {
        #[test]
        fn the_area_is_the_share_of_pairs_in_order(
            scored in proptest::collection::vec((0_u8..6, any::<bool>()), 0..40),
        ) {
            let scored: Vec<(f64, bool)> =
                scored.into_iter().map(|(score, is_class)| (f64::from(score), is_class)).collect();
            let of = |wanted| scored.iter().filter(move |(_, is)| *is == wanted).map(|(s, _)| *s);
            let (mut pairs, mut wins) = (0.0, 0.0);
            for yes in of(true) {
                for no in of(false) {
                    pairs += 1.0;
                    wins += if yes > no { 1.0 } else if yes == no { 0.5 } else { 0.0 };
                }
            }
            let expected = (pairs > 0.0).then(|| wins / pairs);
            let seen = auc(scored);
            prop_assert_eq!(seen.is_some(), expected.is_some());
            prop_assert!((seen.unwrap_or(0.0) - expected.unwrap_or(0.0)).abs() < 1e-12);
        }
    }
}
