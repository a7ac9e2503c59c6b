//! Which combinations of a grid are arms: `only` and `except`.

use super::{Parameter, Value};

/// What a value must be to match.
#[derive(Debug, Clone, PartialEq)]
pub enum Condition {
    /// One of these.
    OneOf(Vec<Value>),
    /// A number from here to there, both included.
    Between(f64, f64),
}

impl Condition {
    /// Whether this value matches.
    pub fn holds(&self, value: &Value) -> bool {
        match self {
            Self::OneOf(values) => values.iter().any(|wanted| wanted.means(value)),
            Self::Between(from, to) => value
                .number()
                .is_some_and(|number| (*from..=*to).contains(&number)),
        }
    }
}

/// A combination matches a pattern if every condition holds.
#[derive(Debug, Clone, PartialEq)]
pub struct Pattern {
    /// Conditions with the index of their parameter.
    pub conditions: Vec<(usize, Condition)>,
}

impl Pattern {
    /// Per parameter, which of its values match, so that testing millions of combinations only looks up bits.
    pub(super) fn table(&self, parameters: &[Parameter]) -> Vec<Option<Vec<bool>>> {
        let mut table: Vec<Option<Vec<bool>>> = vec![None; parameters.len()];
        for (place, condition) in &self.conditions {
            let holds = parameters[*place]
                .values()
                .iter()
                .map(|value| condition.holds(value));
            table[*place] = Some(match table[*place].take() {
                None => holds.collect(),
                Some(before) => before.into_iter().zip(holds).map(|(a, b)| a && b).collect(),
            });
        }
        table
    }
}
