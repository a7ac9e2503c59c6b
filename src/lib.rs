//! Tune an algorithm *and its time limit* together.
//!
//! One pull travels through the modules in the order of the list below: [`cli`] reads a command, [`scenario`] and
//! [`space`] say what is to be tuned, a [`policy`] chooses a pull (the nouns are in [`round`]), a [`target`] runs it under
//! the limits that [`limit`] keeps or that the [`learner`] looks at, the [`orchestrator`] writes what came of it to the
//! [`journal`] and lets the policy learn. `docs/architecture.md` tells the story in one page.

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

mod listed;
pub mod nearest;
pub mod quantity;
