//! What a policy knows of a scenario before the first round.

use crate::round::{LimitGrid, Price};

/// The arms, limits and prices a policy chooses among.
#[derive(Debug, Clone)]
pub struct Problem {
    /// How many arms there are, at least one.
    pub arms: usize,
    /// The admissible limits; z-RCUCB takes the largest only.
    pub limits: LimitGrid,
    /// Cost and penalty.
    pub price: Price,
}
