//! The limits against programs that misbehave, at both levels; the programs' own books tell the truth.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::print_stderr,
    clippy::unchecked_time_subtraction,
    reason = "test code: a panic is a failure, and a skipped test says so"
)]

mod behaviours;
mod blocking;
mod contained;
mod hostile;
#[allow(dead_code, reason = "the tests of `captime exec` use the rest")]
mod test_bench;
