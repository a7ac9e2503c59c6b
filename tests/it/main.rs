//! The program from outside, one module per subcommand.
#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests fail the test, as tests themselves do"
)]

mod ask;
mod best;
mod check;
mod datasets;
mod dependencies;
mod engines;
mod examples;
mod exec;
mod faults;
mod forest;
mod found;
mod init;
mod limit;
mod meddling;
mod paste;
mod readme;
mod record;
mod report;
mod rewards;
mod run;
mod scenario;
mod scene;
mod serve;
mod slots;
mod study;
mod terminal;
mod usage;
