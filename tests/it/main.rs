//! The program from outside, one module per subcommand.

mod datasets;
mod exec;
mod forest;
mod limit;
mod study;
mod usage;
