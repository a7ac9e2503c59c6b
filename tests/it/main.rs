//! The program from outside, one module per subcommand.
#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests fail the test, as tests themselves do"
)]

mod ask;
mod best;
mod check;
mod cluster;
mod datasets;
mod dependencies;
mod docs;
mod engines;
mod examples;
mod exec;
mod faults;
mod forest;
mod fuzz;
mod import;
mod init;
mod journal_tampering;
mod known_answers;
mod limit;
mod log;
mod modules;
mod open_space;
mod paste;
mod pull;
mod readme;
mod record;
mod report;
mod rewards;
mod run;
mod run_lookup;
mod scenario;
mod serve;
mod slots;
mod study;
mod surrogate;
mod terminal;
mod test;
mod test_run;
mod usage;
mod warm_start;
mod wrapper;
