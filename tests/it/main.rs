//! The program from outside, one module per subcommand.
#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests fail the test, as tests themselves do"
)]

mod ask;
mod check;
mod datasets;
mod exec;
mod forest;
mod init;
mod limit;
mod scenario;
mod study;
mod usage;
