//! Where arms come from: parameters and their values, and the configurations they make.
//!
//! Arms are numbered, not stored: a configuration is made from the arm's number when somebody asks for it, so that ten
//! million arms cost no more memory than their parameters.

mod arms;
mod configuration;
mod filter;
mod parameter;

pub use arms::{ABSENT, Row, Space, SpaceError};
pub use configuration::Configuration;
pub use filter::{Condition, Pattern};
pub use parameter::{Parameter, Scale, Value};

/// More arms than this are refused: policies keep estimates per arm and limit, and no budget reaches them all.
pub const MOST_ARMS: usize = 10_000_000;
