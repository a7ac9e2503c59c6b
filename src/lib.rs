//! Tune an algorithm *and its time limit* together.
//!
//! One pull travels through the modules in this order: [`cli`] reads a command, a [`policy`] chooses a pull (an arm
//! and a limit, see [`round`]), and what it brought goes back to the policy as an observation. The modules below
//! are listed in the order in which they are met; arrows between them point downwards only.

pub mod cli;
pub mod journal;
pub mod learner;
pub mod limit;
pub mod orchestrator;
pub mod policy;
pub mod progress;
pub mod report;
pub mod round;
pub mod scenario;
pub mod space;
pub mod study;
pub mod target;

pub mod nearest;
pub mod quantity;
