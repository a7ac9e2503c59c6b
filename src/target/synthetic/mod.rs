//! The paper's synthetic problems: known distributions, so that every gain is known too.

mod grid;
mod problem;

pub use grid::Grid;
pub use problem::SyntheticProblem;

/// A synthetic target as a scenario or the command line asks for it: plain data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spec {
    /// Which of the paper's problems.
    pub problem: SyntheticProblem,
    /// Its limits, where the scenario gives none of its own.
    pub grid: Grid,
}
