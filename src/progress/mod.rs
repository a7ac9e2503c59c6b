//! Live views of a run, on stderr (a terminal, or a line now and then) or as JSON events on stdout. Looking on changes nothing.

mod account;
mod aside;
mod events;
mod lines;
mod terminal;
mod words;

pub use account::{Account, Failures};
pub use events::Events;
pub use lines::Lines;
pub use terminal::Terminal;
pub use words::Words;
