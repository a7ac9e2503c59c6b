//! The limits against programs that misbehave, at both levels; the programs' own books tell the truth.

mod behaviours;
mod keeping;
pub mod stage;
