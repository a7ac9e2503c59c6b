//! The program from outside, one module per subcommand.

mod ask;
mod exec;
mod limit;
mod study;
mod usage;
