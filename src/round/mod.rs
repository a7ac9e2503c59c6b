//! The paper's nouns: arm, limit, pull, observation, price, and the randomness of a round. Imports no other module.
//!
//! ```
//! use captime::round::{ArmId, Limit, Observation, Price, Pull};
//!
//! // PAR10 with x = seconds / 300: ended after 30 s it costs 0.1; cut off at 100 s it costs 3.33.
//! let price = Price::new("x", "10 * x", 300.0)?;
//! assert_eq!(price.cost(30.0), 0.1);
//! let pull = Pull::new(ArmId::from_index(0), Limit::new(100.0)?);
//! let seen = Observation::ended(pull, 1.0, 120.0)?;
//! assert!(seen.is_censored(), "what ends past its limit counts as cut off there");
//! assert!((price.penalty(pull.limit) - 10.0 / 3.0).abs() < 1e-12);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod guard;
mod limit;
mod outcome;
mod price;
mod pull;
mod randomness;

pub use guard::{Guard, Inexact, NotInexact};
pub use limit::{Limit, LimitError, LimitGrid};
pub use outcome::{Observation, ObservationError, Seen};
pub use price::{Curve, Price, PriceError, PriceWarning};
pub use pull::{ArmId, Pull, Round};
pub use randomness::{Purpose, instance_of, randomness};
