//! The program from outside, one module per subcommand.

mod forest;
mod study;
mod exec;
mod limit;
mod usage;
