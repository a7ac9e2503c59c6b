//! The program from outside, one module per subcommand.

mod ask;
mod examples;
mod exec;
mod faults;
mod limit;
mod run;
mod scene;
mod study;
mod usage;
