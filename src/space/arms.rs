//! All arms of a scenario, and which combinations of a grid they are (`only` and `except`).

use std::borrow::Cow;
use std::sync::Arc;

use super::open::{OpenSpace, Opened, Point};
use super::{Configuration, Domain, MOST_ARMS, Parameter, Table, Value};
use crate::round::ArmId;

/// The code of a parameter that an arm does not have.
pub const ABSENT: u32 = u32::MAX;

/// Why parameters do not make arms.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SpaceError {
    /// More combinations than a run can use.
    #[error("too many arms: {count} (at most {MOST_ARMS})")]
    TooMany {
        /// How many, or the largest number that fits.
        count: u128,
    },
    /// `only` and `except` leave nothing.
    #[error("`only` and `except` leave no arm of {before}")]
    AllDropped {
        /// How many combinations there were.
        before: usize,
    },
    /// No arm at all.
    #[error("there are no arms")]
    Empty,
}

/// The arms: every combination of a grid, rows of a table, nothing but names, or those of an open space so far.
#[derive(Debug, Clone, PartialEq)]
pub struct Space {
    parameters: Vec<Parameter>,
    arms: Arms,
    names: Vec<Arc<str>>,
}

#[derive(Debug, Clone, PartialEq)]
enum Arms {
    /// Numbers in a mixed radix, with the last parameter varying fastest. `kept` lists what `only` and `except` left.
    Grid {
        count: usize,
        kept: Option<Vec<u32>>,
    },
    /// Row by row, for each parameter the index of its value, or [`ABSENT`].
    Table { count: usize, codes: Vec<u32> },
    /// An open space: arms are added as they are pulled for the first time.
    Open(Box<Opened>),
}

/// One arm of a list.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Row {
    /// Its own name, if any.
    pub name: Option<Arc<str>>,
    /// Its values by the index of their parameter. A parameter left out is absent.
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

    /// One arm per row of codes, each the index of a value or [`ABSENT`]. Names are empty or one per arm.
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

    /// Arms known only by their number, such as those of synthetic problems.
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

    /// An open space with its default and these configurations to start with.
    pub fn open(space: Arc<OpenSpace>, start: impl IntoIterator<Item = Point>) -> Self {
        let column = |known: &super::OpenParameter| {
            let (name, values) = (Arc::clone(&known.name), known.domain.ends());
            match &known.domain {
                Domain::Choice(_) => Parameter::category(name, values),
                Domain::Ordered(_) => Parameter::ordered(name, values),
                Domain::Real { .. } | Domain::Integer { .. } => Parameter::new(name, values),
            }
        };
        Self {
            parameters: space.parameters().iter().map(column).collect(),
            arms: Arms::Open(Box::new(Opened::new(space, start))),
            names: vec![],
        }
    }

    /// The arms of an open space so far, if it is one.
    pub fn opened(&self) -> Option<&Opened> {
        match &self.arms {
            Arms::Open(opened) => Some(opened),
            Arms::Grid { .. } | Arms::Table { .. } => None,
        }
    }

    /// The same, to add arms.
    pub fn opened_mut(&mut self) -> Option<&mut Opened> {
        match &mut self.arms {
            Arms::Open(opened) => Some(opened),
            Arms::Grid { .. } | Arms::Table { .. } => None,
        }
    }

    /// How many arms a policy begins with: all of them, or some that an open space will be asked for.
    pub fn first_arms(&self) -> usize {
        self.opened().map_or(self.len(), |opened| opened.pool(0))
    }

    /// A finite list of the arms there are: itself, unless the space is open.
    pub fn listed_now(&self) -> Cow<'_, Self> {
        let listed = self.opened().and_then(|opened| {
            let points: Vec<&Point> = opened.points().collect();
            opened.space().list(&points).ok()
        });
        listed.map_or(Cow::Borrowed(self), Cow::Owned)
    }

    /// How many arms there are, at least one.
    #[expect(clippy::len_without_is_empty, reason = "a space is never empty")]
    pub fn len(&self) -> usize {
        match &self.arms {
            Arms::Grid { count, kept } => kept.as_ref().map_or(*count, Vec::len),
            Arms::Table { count, .. } => *count,
            Arms::Open(opened) => opened.len(),
        }
    }

    /// Its parameters. A number of an open space has the ends of its range for values.
    pub fn parameters(&self) -> &[Parameter] {
        &self.parameters
    }

    /// Whether every arm has its own name.
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

    /// For each parameter the index of the arm's value among the parameter's values, or [`ABSENT`].
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
            Arms::Open(_) => self.listed_now().codes(arm),
        }
    }

    /// The configuration of an arm.
    ///
    /// # Panics
    /// If there is no such arm.
    pub fn configuration(&self, arm: ArmId) -> Configuration {
        if let Arms::Open(opened) = &self.arms {
            return opened.space().configuration(opened.point(arm));
        }
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

    /// What the arm runs with, if there is such an arm by now.
    pub fn known(&self, arm: ArmId) -> Option<Configuration> {
        (arm.index() < self.len()).then(|| self.configuration(arm))
    }

    /// The first arm that lacks this parameter, if one does; of an open space, arm 1 if any arm may.
    pub fn first_without(&self, parameter: usize) -> Option<ArmId> {
        match &self.arms {
            Arms::Grid { .. } => None,
            Arms::Open(opened) => {
                let is_conditional = opened.space().parameters()[parameter].when.is_some();
                is_conditional.then_some(ArmId::from_index(0))
            }
            Arms::Table { codes, .. } => codes
                .chunks_exact(self.parameters.len().max(1))
                .position(|row| row[parameter] == ABSENT)
                .map(ArmId::from_index),
        }
    }

    /// How many combinations `only` and `except` dropped.
    pub fn dropped(&self) -> usize {
        match &self.arms {
            Arms::Grid { count, kept } => kept.as_ref().map_or(0, |kept| count - kept.len()),
            Arms::Table { .. } | Arms::Open(_) => 0,
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
    fn table(&self, parameters: &[Parameter]) -> Vec<Option<Vec<bool>>> {
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
