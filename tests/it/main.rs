//! The program from outside, one module per subcommand.

mod exec;
mod forest;
mod limit;
mod study;
mod ask;
mod exec;
mod forest;
mod limit;
mod study;
mod usage;
