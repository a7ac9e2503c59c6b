//! Where arms come from: parameters and their values, and the configurations they make.
//!
//! Arms are numbered, not stored: a configuration is made from the arm's number when somebody asks for it, so that ten
//! million arms cost no more memory than their parameters.
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
mod configuration;
mod filter;
mod parameter;
mod table;

pub use arms::{ABSENT, Row, Space, SpaceError};
pub use configuration::Configuration;
pub use filter::{Condition, Pattern};
pub use parameter::{Parameter, Scale, Value};
pub use table::Table;

/// More arms than this are refused: policies keep estimates per arm and limit, and no budget reaches them all.
pub const MOST_ARMS: usize = 10_000_000;
