//! The program from outside, one module per subcommand.

mod ask;
mod exec;
mod limit;
mod report;
mod serve;
mod study;
mod usage;
