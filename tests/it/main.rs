//! The program from outside, one module per subcommand.

mod ask;
mod study;
mod exec;
mod limit;
mod usage;
