//! The paper's nouns: arm, limit, pull, observation, price, and the randomness of a round. Imports nothing of ours.

mod arm;
mod limit;
mod outcome;
mod price;
mod pull;
mod randomness;

pub use arm::ArmId;
pub use limit::{Limit, LimitError, LimitGrid};
pub use outcome::{Observation, ObservationError, Seen};
pub use price::{Curve, Price, PriceError, PriceWarning};
pub use pull::{Pull, Round};
pub use randomness::{Purpose, randomness};
