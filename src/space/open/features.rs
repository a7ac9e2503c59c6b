//! Configurations as models see them.

use super::domain::{Domain, INACTIVE};
use super::{OpenSpace, Point};

/// One parameter of a configuration as a model sees it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Feature {
    /// Where the number lies on its (log) scale, from 0 to 1.
    Number(f64),
    /// The rank of an ordered value, from 0.
    Rank(u32),
    /// The place of a choice's value.
    Category(u32),
    /// The parameter is inactive.
    Missing,
}

impl Feature {
    /// As one number; not-a-number if missing.
    pub fn as_f64(self) -> f64 {
        match self {
            Self::Number(number) => number,
            Self::Rank(place) | Self::Category(place) => f64::from(place),
            Self::Missing => f64::NAN,
        }
    }
}

impl OpenSpace {
    /// The features of a configuration, one per parameter.
    pub fn features<'a>(&'a self, point: &'a Point) -> impl Iterator<Item = Feature> + 'a {
        self.parameters
            .iter()
            .zip(&point.0)
            .map(|(known, &code)| match (&known.domain, code) {
                (_, INACTIVE) => Feature::Missing,
                (Domain::Ordered(_), code) => Feature::Rank(code as u32),
                (Domain::Choice(_), code) => Feature::Category(code as u32),
                (domain, code) => Feature::Number(domain.unit(code)),
            })
    }
}
