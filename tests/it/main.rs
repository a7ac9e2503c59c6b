//! The program from outside, one module per subcommand.

mod ask;
mod usage;
