//! The program from outside, one module per subcommand.

mod exec;
mod limit;
mod usage;
