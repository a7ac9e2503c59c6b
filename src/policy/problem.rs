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
    /// What the arms are set to, where somebody knows: for policies that learn from similar arms.
    pub(crate) space: Option<Arc<Space>>,
    /// How many instances a pull may choose from; 0 if there are none.
    pub(crate) instances: usize,
}

/// There is nothing to choose from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("there is no arm to choose from")]
pub struct NoArms;

impl Problem {
    /// A problem of `arms` arms, which must be at least one.
    pub fn new(arms: usize, limits: LimitGrid, price: Price) -> Result<Self, NoArms> {
        if arms == 0 {
            Err(NoArms)
        } else {
            Ok(Self {
                arms,
                limits,
                price,
                space: None,
                instances: 0,
            })
        }
    }

    /// With the configurations of its arms. Those of another number of arms are left out: they cannot be theirs.
    #[must_use]
    pub fn with_space(mut self, space: Arc<Space>) -> Self {
        self.space = (space.len() == self.arms).then_some(space);
        self
    }

    /// With so many instances that a pull may choose from.
    #[must_use]
    pub fn with_instances(mut self, instances: usize) -> Self {
        self.instances = instances;
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
            Err(NoArms)
        );
        assert!(Problem::new(1, limits, price).is_ok());
    }
}
