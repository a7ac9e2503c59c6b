//! The program from outside, one module per subcommand.

mod check;
mod init;
mod scenario;
mod study;
mod usage;
