//! Limits against programs that misbehave, at both levels. The programs' own logs tell the truth.

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    clippy::unchecked_time_subtraction,
    reason = "test code: a panic is a failure, and a skipped test says so"
)]

mod delegated;
mod grace;
mod keeping;
mod scarce;
#[allow(dead_code, reason = "the tests of the limiter itself use the rest")]
#[path = "../../../crates/limit/tests/it/test_bench.rs"]
pub mod test_bench;
pub mod traces;
mod unprivileged;

/// The program under test.
pub fn captime() -> std::path::PathBuf {
    env!("CARGO_BIN_EXE_captime").into()
}
