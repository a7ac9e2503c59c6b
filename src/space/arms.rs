//! All arms of a scenario.

use std::sync::Arc;

use super::{Configuration, MOST_ARMS, Parameter, Pattern, Table, Value};
use crate::round::ArmId;

/// Stands for a parameter that an arm does not have.
pub const ABSENT: u32 = u32::MAX;

/// Why parameters do not make arms.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SpaceError {
    /// More combinations than anybody could try.
    #[error("{count} arms are more than the {MOST_ARMS} that captime takes")]
    TooMany {
        /// How many, or the largest number there is.
        count: u128,
    },
    /// `only` and `except` leave nothing.
    #[error("`only` and `except` leave no arm of {before}")]
    AllDropped {
        /// How many combinations there were.
        before: usize,
    },
    /// No arm at all.
    #[error("there is no arm")]
    Empty,
}

/// The arms: every combination of a grid, or rows of a table, or nothing but names.
#[derive(Debug, Clone, PartialEq)]
pub struct Space {
    parameters: Vec<Parameter>,
    arms: Arms,
    names: Vec<Arc<str>>,
}

#[derive(Debug, Clone, PartialEq)]
enum Arms {
    /// A number in a mixed radix, the last parameter varying fastest; `kept` lists what `only` and `except` left.
    Grid {
        count: usize,
        kept: Option<Vec<u32>>,
    },
    /// Row by row, for each parameter the place of its value, or [`ABSENT`].
    Table { count: usize, codes: Vec<u32> },
}

/// One arm of a list.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Row {
    /// Its own name, if any.
    pub name: Option<Arc<str>>,
    /// Its values by the place of their parameter; a parameter left out is absent.
    pub values: Vec<(usize, Value)>,
}

impl Space {
    /// Every combination of these parameters that matches one of `only` (if there are any) and none of `except`.
    pub fn grid(
        parameters: Vec<Parameter>,
        only: &[Pattern],
        except: &[Pattern],
    ) -> Result<Self, SpaceError> {
        let product = parameters.iter().fold(1_u128, |product, parameter| {
            product.saturating_mul(parameter.values().len() as u128)
        });
        if product == 0 || parameters.is_empty() {
            return Err(SpaceError::Empty);
        }
        if product > MOST_ARMS as u128 {
            return Err(SpaceError::TooMany { count: product });
        }
        let count = product as usize;
        let kept = if only.is_empty() && except.is_empty() {
            None
        } else {
            let kept = kept(&parameters, count, only, except);
            if kept.is_empty() {
                return Err(SpaceError::AllDropped { before: count });
            }
            Some(kept)
        };
        Ok(Self {
            parameters,
            arms: Arms::Grid { count, kept },
            names: vec![],
        })
    }

    /// One arm per row. Names are kept if every row has one.
    pub fn table(names: Vec<Arc<str>>, rows: &[Row]) -> Result<Self, SpaceError> {
        let mut table = Table::new(names);
        for row in rows {
            table.begin(row.name.clone())?;
            for (place, value) in &row.values {
                table.set(*place, value);
            }
        }
        table.finish()
    }

    pub(super) fn listed(
        parameters: Vec<Parameter>,
        count: usize,
        codes: Vec<u32>,
        names: Vec<Arc<str>>,
    ) -> Self {
        Self {
            parameters,
            arms: Arms::Table { count, codes },
            names,
        }
    }

    /// One arm per row of codes, each the place of a value or [`ABSENT`]; names are empty or one per arm.
    pub fn coded(
        parameters: Vec<Parameter>,
        count: usize,
        codes: Vec<u32>,
        names: Vec<Arc<str>>,
    ) -> Result<Self, SpaceError> {
        let width = parameters.len();
        let is_code = |(place, code): (usize, &u32)| {
            *code == ABSENT || (*code as usize) < parameters[place % width].values().len()
        };
        let fits = codes.len() == count * width
            && codes.iter().enumerate().all(is_code)
            && (names.is_empty() || names.len() == count);
        if count == 0 || !fits {
            return Err(SpaceError::Empty);
        }
        Ok(Self {
            parameters,
            arms: Arms::Table { count, codes },
            names,
        })
    }

    /// Arms that are known by their number only, as those of synthetic problems.
    pub fn numbered(count: usize) -> Result<Self, SpaceError> {
        if count == 0 {
            return Err(SpaceError::Empty);
        }
        if count > MOST_ARMS {
            return Err(SpaceError::TooMany {
                count: count as u128,
            });
        }
        Ok(Self {
            parameters: vec![],
            arms: Arms::Table {
                count,
                codes: vec![],
            },
            names: vec![],
        })
    }

    /// How many arms there are, at least one.
    #[expect(clippy::len_without_is_empty, reason = "a space is never empty")]
    pub fn len(&self) -> usize {
        match &self.arms {
            Arms::Grid { count, kept } => kept.as_ref().map_or(*count, Vec::len),
            Arms::Table { count, .. } => *count,
        }
    }

    /// Its parameters.
    pub fn parameters(&self) -> &[Parameter] {
        &self.parameters
    }

    /// Whether every arm has a name of its own.
    pub fn is_named(&self) -> bool {
        !self.names.is_empty()
    }

    /// The arm's own name, if it has one.
    pub fn name(&self, arm: ArmId) -> Option<&str> {
        self.names.get(arm.index()).map(|name| &**name)
    }

    /// The arms, in their order.
    pub fn arms(&self) -> impl Iterator<Item = ArmId> {
        (0..self.len()).map(ArmId::from_index)
    }

    /// For each parameter the place of the arm's value among the parameter's values, or [`ABSENT`].
    ///
    /// # Panics
    /// If there is no such arm.
    pub fn codes(&self, arm: ArmId) -> Vec<u32> {
        assert!(arm.index() < self.len(), "arm {arm} of {}", self.len());
        match &self.arms {
            Arms::Table { codes, .. } => {
                let width = self.parameters.len();
                codes[arm.index() * width..][..width].to_vec()
            }
            Arms::Grid { kept, .. } => {
                let mut rest = kept
                    .as_ref()
                    .map_or(arm.index(), |kept| kept[arm.index()] as usize);
                let mut codes = vec![0; self.parameters.len()];
                for (code, parameter) in codes.iter_mut().zip(&self.parameters).rev() {
                    let radix = parameter.values().len();
                    *code = (rest % radix) as u32;
                    rest /= radix;
                }
                codes
            }
        }
    }

    /// What the arm runs with.
    ///
    /// # Panics
    /// If there is no such arm.
    pub fn configuration(&self, arm: ArmId) -> Configuration {
        let values = self
            .codes(arm)
            .into_iter()
            .zip(&self.parameters)
            .filter(|(code, _)| *code != ABSENT)
            .map(|(code, parameter)| {
                (
                    parameter.shared_name(),
                    parameter.values()[code as usize].clone(),
                )
            })
            .collect();
        Configuration {
            name: self.names.get(arm.index()).cloned(),
            values,
        }
    }

    /// The first arm that lacks this parameter, if one does.
    pub fn first_without(&self, parameter: usize) -> Option<ArmId> {
        match &self.arms {
            Arms::Grid { .. } => None,
            Arms::Table { codes, .. } => codes
                .chunks_exact(self.parameters.len().max(1))
                .position(|row| row[parameter] == ABSENT)
                .map(ArmId::from_index),
        }
    }

    /// A digest of which combinations of values are arms, in which order and under which names.
    pub fn digest(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        let codes: &[u32] = match &self.arms {
            Arms::Grid { kept, .. } => {
                hasher.update(b"grid");
                kept.as_deref().unwrap_or_default()
            }
            Arms::Table { codes, .. } => {
                hasher.update(b"table");
                codes
            }
        };
        let mut bytes = Vec::with_capacity(1 << 16);
        for some in codes.chunks(1 << 14) {
            bytes.clear();
            bytes.extend(some.iter().flat_map(|code| code.to_le_bytes()));
            hasher.update(&bytes);
        }
        for some in self.names.chunks(1 << 12) {
            bytes.clear();
            for name in some {
                bytes.extend_from_slice(&(name.len() as u64).to_le_bytes());
                bytes.extend_from_slice(name.as_bytes());
            }
            hasher.update(&bytes);
        }
        hasher.finalize().to_hex().to_string()
    }

    /// How many combinations `only` and `except` dropped.
    pub fn dropped(&self) -> usize {
        match &self.arms {
            Arms::Grid { count, kept } => kept.as_ref().map_or(0, |kept| count - kept.len()),
            Arms::Table { .. } => 0,
        }
    }
}

/// The combinations that match: an odometer over the values, with one bit per value and pattern.
fn kept(parameters: &[Parameter], count: usize, only: &[Pattern], except: &[Pattern]) -> Vec<u32> {
    let tables = |patterns: &[Pattern]| -> Vec<_> {
        patterns
            .iter()
            .map(|pattern| pattern.table(parameters))
            .collect()
    };
    let (only, except) = (tables(only), tables(except));
    let mut digits = vec![0_usize; parameters.len()];
    let mut kept = vec![];
    for index in 0..count {
        let matches = |table: &Vec<Option<Vec<bool>>>| {
            table
                .iter()
                .zip(&digits)
                .all(|(holds, digit)| holds.as_ref().is_none_or(|holds| holds[*digit]))
        };
        let wanted = only.is_empty() || only.iter().any(matches);
        if wanted && !except.iter().any(matches) {
            kept.push(u32::try_from(index).expect("grids are refused far below 2^32 arms"));
        }
        for (digit, parameter) in digits.iter_mut().zip(parameters).rev() {
            *digit += 1;
            if *digit < parameter.values().len() {
                break;
            }
            *digit = 0;
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::space::Condition;

    fn integers(name: &str, values: impl IntoIterator<Item = i64>) -> Parameter {
        Parameter::new(name, values.into_iter().map(Value::Integer).collect())
    }

    fn text(space: &Space, index: usize) -> String {
        space.configuration(ArmId::from_index(index)).to_string()
    }

    #[test]
    fn a_grid_counts_with_its_last_parameter_fastest() {
        let space = Space::grid(
            vec![integers("a", [1, 2]), integers("b", [10, 20, 30])],
            &[],
            &[],
        )
        .unwrap();
        assert_eq!(space.len(), 6);
        assert_eq!(text(&space, 0), "a=1 b=10");
        assert_eq!(text(&space, 1), "a=1 b=20");
        assert_eq!(text(&space, 5), "a=2 b=30");
    }

    #[test]
    fn only_and_except_drop_combinations() {
        let parameters = vec![integers("a", [1, 2, 3]), integers("b", [10, 20, 30])];
        let pattern = |conditions: Vec<(usize, Condition)>| Pattern { conditions };
        let only = [pattern(vec![(0, Condition::Between(2.0, 3.0))])];
        let except = [pattern(vec![
            (0, Condition::OneOf(vec![Value::Integer(3)])),
            (
                1,
                Condition::OneOf(vec![Value::Number(20.0), Value::Integer(30)]),
            ),
        ])];
        let space = Space::grid(parameters.clone(), &only, &except).unwrap();
        let kept: Vec<String> = (0..space.len()).map(|arm| text(&space, arm)).collect();
        assert_eq!(kept, ["a=2 b=10", "a=2 b=20", "a=2 b=30", "a=3 b=10"]);
        assert_eq!(space.dropped(), 5);
        let nothing = [pattern(vec![(0, Condition::OneOf(vec![]))])];
        assert_eq!(
            Space::grid(parameters, &nothing, &[]),
            Err(SpaceError::AllDropped { before: 9 })
        );
    }

    #[test]
    fn a_table_keeps_absent_parameters_absent() {
        let rows = [
            Row {
                name: Some("one".into()),
                values: vec![(0, Value::Integer(5))],
            },
            Row {
                name: Some("two".into()),
                values: vec![(0, Value::Number(1.5)), (1, Value::Text("x".into()))],
            },
        ];
        let space = Space::table(vec!["a".into(), "b".into()], &rows).unwrap();
        assert_eq!(text(&space, 0), "one: a=5");
        assert_eq!(text(&space, 1), "two: a=1.5 b=x");
        assert_eq!(space.codes(ArmId::from_index(0)), [1, ABSENT]);
        assert_eq!(space.first_without(1), Some(ArmId::from_index(0)));
        assert_eq!(space.first_without(0), None);
    }

    #[test]
    fn too_many_arms_are_refused_before_they_are_made() {
        let parameters: Vec<Parameter> = (0..60)
            .map(|k| integers(&format!("p{k}"), 0..1000))
            .collect();
        assert!(matches!(
            Space::grid(parameters, &[], &[]),
            Err(SpaceError::TooMany { .. })
        ));
        assert_eq!(Space::grid(vec![], &[], &[]), Err(SpaceError::Empty));
        assert_eq!(Space::table(vec![], &[]), Err(SpaceError::Empty));
    }

    #[test]
    fn ten_million_arms_take_no_memory_of_their_own() {
        let parameters: Vec<Parameter> =
            (0..7).map(|k| integers(&format!("p{k}"), 0..10)).collect();
        let space = Space::grid(parameters, &[], &[]).unwrap();
        assert_eq!(space.len(), MOST_ARMS);
        assert_eq!(
            text(&space, 9_876_543),
            "p0=9 p1=8 p2=7 p3=6 p4=5 p5=4 p6=3"
        );
    }
}
