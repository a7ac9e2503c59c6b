//! Live views of a run, on stderr (a terminal, or a line now and then) or as JSON events on stdout. They cannot change
//! the run.

mod account;
mod events;
mod lines;
mod nonblocking_writer;
mod terminal;
mod words;

pub use account::Account;
pub use events::Events;
pub use lines::Lines;
pub use terminal::Terminal;
pub use words::{Words, gain_in_words, node_in_words};
