//! The limits against programs that misbehave, at both levels; the programs' own books tell the truth.

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    clippy::unchecked_time_subtraction,
    reason = "test code: a panic is a failure, and a skipped test says so"
)]

mod behaviours;
mod delegated;
mod grace;
mod keeping;
mod scarce;
pub mod stage;
pub mod traces;
