//! What a policy knows of a scenario before the first round.

use std::sync::Arc;

use crate::round::{LimitGrid, Price};
use crate::space::Space;

/// The arms, limits and prices a policy chooses among.
#[derive(Debug, Clone)]
pub struct Problem {
    /// How many arms there are, at least one.
    pub(crate) arms: usize,
    /// The admissible limits; z-RCUCB takes the largest only.
    pub(crate) limits: LimitGrid,
    /// Cost and penalty.
    pub(crate) price: Price,
    /// Configurations of the arms, if known: for policies that learn from similar arms.
    pub(crate) space: Option<Arc<Space>>,
    /// How many instances a pull may choose from; 0 if there are none.
    pub(crate) instances: usize,
    /// Their names, or empty if unknown: similar ones are often of one family.
    pub(crate) instance_names: Arc<[String]>,
}

/// Why something is not a problem that a policy can work on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProblemError {
    /// There is nothing to choose from.
    #[error("there is no arm to choose from")]
    NoArms,
    /// The space is not the space of these arms.
    #[error("the space has {configurations} configurations, but there are {arms} arms")]
    OtherSpace {
        /// The arms of the problem.
        arms: usize,
        /// The configurations of the space.
        configurations: usize,
    },
}

impl Problem {
    /// A problem of `arms` arms, which must be at least one.
    pub fn new(arms: usize, limits: LimitGrid, price: Price) -> Result<Self, ProblemError> {
        if arms == 0 {
            Err(ProblemError::NoArms)
        } else {
            Ok(Self {
                arms,
                limits,
                price,
                space: None,
                instances: 0,
                instance_names: [].into(),
            })
        }
    }

    /// With the configurations of its arms, for policies that learn from parameters.
    pub fn with_space(mut self, space: Arc<Space>) -> Result<Self, ProblemError> {
        if space.len() != self.arms {
            let (arms, configurations) = (self.arms, space.len());
            return Err(ProblemError::OtherSpace {
                arms,
                configurations,
            });
        }
        self.space = Some(space);
        Ok(self)
    }

    /// With this many instances that a pull may choose from.
    #[must_use]
    pub fn with_instances(mut self, instances: usize) -> Self {
        self.instances = instances;
        self.instance_names = [].into();
        self
    }

    /// With these instances that a pull may choose from.
    #[must_use]
    pub fn with_named_instances(mut self, names: impl Into<Arc<[String]>>) -> Self {
        self.instance_names = names.into();
        self.instances = self.instance_names.len();
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_arms_is_no_problem() {
        let price = Price::new("x", "x", 1.0).unwrap();
        let limits = LimitGrid::new([1.0]).unwrap();
        assert_eq!(
            Problem::new(0, limits.clone(), price.clone()).map(|_| ()),
            Err(ProblemError::NoArms)
        );
        assert!(Problem::new(1, limits, price).is_ok());
    }

    #[test]
    fn the_space_of_other_arms_is_refused() {
        let values = (0..3).map(|value| crate::space::Value::Number(f64::from(value)));
        let parameter = crate::space::Parameter::new("p", values.collect());
        let space = Arc::new(Space::grid(vec![parameter], &[], &[]).unwrap());
        let problem = |arms| {
            let price = Price::new("x", "x", 1.0).unwrap();
            Problem::new(arms, LimitGrid::new([1.0]).unwrap(), price).unwrap()
        };
        assert!(problem(3).with_space(Arc::clone(&space)).is_ok());
        assert_eq!(
            problem(2).with_space(space).unwrap_err().to_string(),
            "the space has 3 configurations, but there are 2 arms"
        );
    }
}
