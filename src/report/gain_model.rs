//! A random forest that predicts the gain of a round from the configuration and the limit.

use captime_forest::{Dataset, FitOutcome, Forest, Importance, Params, Stop, fit_until};

use super::History;
use crate::round::Limit;
use crate::space::{Configuration, Parameter, Value};

/// Maximum number of rounds for the forest: enough to rank parameters, few enough to be fast.
const ROWS: usize = 3000;
/// A fit on fewer rounds would be meaningless, but look convincing.
const LEAST_ROWS: usize = 20;

/// What the rounds say about parameters.
pub struct GainModel<'a> {
    parameters: &'a [Parameter],
    forest: Forest,
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
        let rows: Vec<Vec<f64>> = rounds
            .iter()
            .map(|played| {
                let codes = history.space.codes(played.arm);
                let numbers = parameters.iter().zip(codes);
                let numbers =
                    numbers.map(|(parameter, code)| number(parameter, Some(code as usize)));
                numbers.chain([played.limit]).collect()
            })
            .collect();
        let names = parameters.iter().map(|of| of.name().to_owned());
        let columns = names.chain([String::new()]).enumerate();
        let columns =
            columns.map(|(place, name)| (name, rows.iter().map(|row| row[place]).collect()));
        let gains: Vec<f64> = rounds.iter().map(|played| played.gain).collect();
        let count = gains.len() as f64;
        let mean = gains.iter().sum::<f64>() / count;
        let variance = gains.iter().map(|gain| (gain - mean).powi(2)).sum::<f64>() / count;
        let data = Dataset::from_columns(columns.collect(), "gain", gains, vec![]).ok()?;
        let params = Params {
            trees: 60,
            mtry: Some((parameters.len() + 1).div_ceil(2)),
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
                variance,
                rounds: rows.len(),
            }),
            Ok(FitOutcome::Stopped { .. }) | Err(_) => None,
        }
    }

    /// Permutation importance of every parameter and, last, of the limit, relative to the variance of the gains.
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
            for parameter in self.parameters {
                let value = configuration.get(parameter.name());
                let place =
                    value.and_then(|value| parameter.values().iter().position(|own| own == value));
                // A value of an open space that no arm has is still a number.
                let own = value.filter(|_| place.is_none()).and_then(Value::number);
                values.push(own.unwrap_or_else(|| number(parameter, place)));
            }
            values.push(limit.get());
        }
        self.forest
            .predict_values(&values, self.parameters.len() + 1)
    }
}

/// The value at this place as a number: its own, or its place. NaN for a parameter that is absent.
fn number(parameter: &Parameter, place: Option<usize>) -> f64 {
    let value = place.and_then(|place| Some((place, parameter.values().get(place)?)));
    value.map_or(f64::NAN, |(place, value)| {
        value.number().unwrap_or(place as f64)
    })
}
