//! A random forest that predicts the gain of a round from the configuration, the limit and the features of the instance.

use std::collections::BTreeSet;

use captime_forest::{Dataset, FitOutcome, Forest, Importance, Params, Stop, fit_until};

use super::History;
use super::instances::name;
use crate::round::Limit;
use crate::space::{Configuration, Parameter, Value};

/// Maximum number of rounds for the forest: enough to rank parameters, few enough to be fast.
const ROWS: usize = 3000;
/// A fit on fewer rounds would be meaningless, but look convincing.
const LEAST_ROWS: usize = 20;
/// A prediction is a mean over this many instances at most.
const TYPICAL: usize = 30;

/// What the rounds say about parameters.
pub struct GainModel<'a> {
    parameters: &'a [Parameter],
    forest: Forest,
    /// Features of the instances that a prediction is a mean over. One empty row if there are none.
    typical: Vec<Vec<f64>>,
    /// Variance of the gains.
    variance: f64,
    /// Rounds it was fitted on.
    pub rounds: usize,
}

impl<'a> GainModel<'a> {
    /// Fits it; none if there is nothing to learn.
    pub fn of(history: &'a History) -> Option<Self> {
        let parameters = history.space.parameters();
        let step = history.rounds.len().div_ceil(ROWS).max(1);
        let rounds: Vec<_> = history
            .rounds
            .iter()
            .filter(|played| played.gain.is_finite())
            .step_by(step)
            .collect();
        if rounds.len() < LEAST_ROWS || parameters.is_empty() {
            return None;
        }
        let features = |instance: u32| -> Vec<f64> {
            let Some(features) = &history.scenario().features else {
                return vec![];
            };
            let name = (instance > 0).then(|| name(history, instance));
            let row = name.and_then(|name| features.rows.get(&name));
            let number = |place: usize| row.and_then(|row| row[place]).unwrap_or(f64::NAN);
            (0..features.names.len()).map(number).collect()
        };
        let rows: Vec<Vec<f64>> = rounds
            .iter()
            .map(|played| {
                let codes = history.space.codes(played.arm);
                let numbers = parameters.iter().zip(codes);
                let numbers =
                    numbers.map(|(parameter, code)| number(parameter, Some(code as usize)));
                let numbers = numbers.chain([played.limit]);
                numbers.chain(features(played.instance)).collect()
            })
            .collect();
        let met: BTreeSet<u32> = rounds.iter().map(|played| played.instance).collect();
        let apart = met.len().div_ceil(TYPICAL);
        let mut typical: Vec<Vec<f64>> = met.into_iter().step_by(apart).map(features).collect();
        if rows[0].len() == parameters.len() + 1 {
            typical.truncate(1);
        }
        // Nothing shows their names.
        let columns = (0..rows[0].len())
            .map(|place| {
                let column = rows.iter().map(|row| row[place]).collect();
                (place.to_string(), column)
            })
            .collect();
        let gains: Vec<f64> = rounds.iter().map(|played| played.gain).collect();
        let count = gains.len() as f64;
        let mean = gains.iter().sum::<f64>() / count;
        let variance = gains.iter().map(|gain| (gain - mean).powi(2)).sum::<f64>() / count;
        let data = Dataset::from_columns(columns, "gain", gains, vec![]).ok()?;
        let params = Params {
            trees: 60,
            mtry: Some(rows[0].len().div_ceil(2)),
            min_node_size: Some(10),
            sample_fraction: 0.632,
            importance: Importance::Permutation,
            ..Params::default()
        };
        let rows: Vec<u32> = (0..data.rows() as u32).collect();
        match fit_until(&data, &rows, &params, &Stop::new(), None) {
            Ok(FitOutcome::Done { forest, .. }) => Some(Self {
                parameters,
                forest,
                typical,
                variance,
                rounds: rows.len(),
            }),
            Ok(FitOutcome::Stopped { .. }) | Err(_) => None,
        }
    }

    /// Permutation importance of every parameter, then of the limit, then of every feature, relative to the variance of the gains.
    pub fn importance(&self) -> Vec<f64> {
        let shares = self.forest.importance().unwrap_or_default().iter();
        shares
            .map(|growth| (growth / self.variance).max(0.0))
            .collect()
    }

    /// The gain of every configuration under this limit.
    pub fn predict(&self, configurations: &[Configuration], limit: Limit) -> Vec<f64> {
        let mut values = vec![];
        for configuration in configurations {
            let numbers: Vec<f64> = (self.parameters.iter())
                .map(|parameter| {
                    let value = configuration.get(parameter.name());
                    let place = value
                        .and_then(|value| parameter.values().iter().position(|own| own == value));
                    // A value of an open space that no arm has is still a number.
                    let own = value.filter(|_| place.is_none()).and_then(Value::number);
                    own.unwrap_or_else(|| number(parameter, place))
                })
                .collect();
            for features in &self.typical {
                values.extend(numbers.iter().chain([&limit.get()]).chain(features));
            }
        }
        let columns = self.parameters.len() + 1 + self.typical[0].len();
        let predicted = self.forest.predict_values(&values, columns);
        let instances = predicted.chunks(self.typical.len());
        instances
            .map(|gains| gains.iter().sum::<f64>() / gains.len() as f64)
            .collect()
    }
}

/// The value at this place as a number: its own, or its place. NaN for a parameter that is absent.
fn number(parameter: &Parameter, place: Option<usize>) -> f64 {
    let value = place.and_then(|place| Some((place, parameter.values().get(place)?)));
    value.map_or(f64::NAN, |(place, value)| {
        value.number().unwrap_or(place as f64)
    })
}
