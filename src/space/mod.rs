//! Where arms come from: parameters and their values, and the configurations they form.
//!
//! Arms are numbered, not stored: a configuration is computed from the arm's number when it is needed, so that ten
//! million arms take no more memory than their parameters.
//!
//! ```
//! use captime::round::ArmId;
//! use captime::space::{Parameter, Space, Value};
//!
//! let trees = Parameter::new("trees", vec![Value::Integer(100), Value::Integer(500)]);
//! let grow = Parameter::new("grow", vec![Value::Flag(false), Value::Flag(true)]);
//! let space = Space::grid(vec![trees, grow], &[], &[])?;
//! assert_eq!(space.len(), 4);
//! assert_eq!(space.configuration(ArmId::from_index(2)).to_string(), "trees=500 grow=false");
//! # Ok::<(), captime::space::SpaceError>(())
//! ```

mod arms;
mod between;
mod configuration;
pub mod format;
#[doc(hidden)]
pub mod open;
mod parameter;
mod table;

pub use arms::{Space, SpaceError};
pub use configuration::Configuration;
pub use open::{Domain, OpenParameter, OpenSpace, Point, Rule, Spacing, parse_rule};
pub use parameter::{Parameter, Scale, Value};

#[doc(hidden)]
pub use {
    arms::{ABSENT, Condition, Pattern, Row},
    table::Table,
};

/// More arms are an error: policies keep estimates per arm and limit, and no budget reaches them all.
pub const MOST_ARMS: usize = 10_000_000;
