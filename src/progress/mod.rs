//! Live views of a run, on stderr (a terminal, or a line now and then) or as JSON events on stdout. They cannot change
//! the run.
//!
//! ```
//! use captime::progress::Words;
//! use captime::resource::Resource;
//! use captime::round::{ArmId, Limit};
//!
//! let text = "target: external\narms: {grid: {decay: [0.8, 0.95]}}\nlimits: {of: cpu, grid: [1s, 10s]}\n";
//! let scenario = captime::scenario::parse(text, "mine.yaml".as_ref(), ".".as_ref())?.scenario;
//! let words = Words { space: &scenario.space, resource: Resource::Cpu };
//! assert_eq!(words.arm(ArmId::from_index(1)), "arm 2 (decay=0.95)");
//! assert_eq!(words.limit(Limit::new(0.25)?), "250 ms");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod account;
mod events;
mod lines;
mod nonblocking_writer;
mod terminal;
mod words;

pub use account::{Account, Failures};
pub use events::Events;
pub use lines::Lines;
pub use terminal::Terminal;
pub use words::{Words, gain_in_words, node_in_words};
