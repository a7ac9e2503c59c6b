//! The program from outside, one module per subcommand.

mod study;
mod usage;
