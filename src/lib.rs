//! Tune an algorithm *and its time limit* together.
//!
//! One pull travels through the modules like this: [`cli`] reads a command, [`scenario`] and
//! [`space`] say what is to be tuned, a [`policy`] chooses a pull (the nouns are in [`round`]), a [`target`] runs it under
//! the limits that [`limit`] keeps or that the [`learner`] looks at, the [`orchestrator`] writes what came of it to the
//! [`journal`] and lets the policy learn. [`progress`] shows it, [`report`] tells of it from the journal, and [`study`] sets
//! policies against each other. `docs/architecture.md` tells the story in one page.
//!
//! The same by hand, on a target in virtual time and without a journal:
//!
//! ```
//! use captime::journal::{Learned, OutcomeRecord};
//! use captime::orchestrator::{Next, Plan, State};
//! use captime::target::VirtualTarget;
//! use captime::target::synthetic::{Synthetic, SyntheticProblem};
//!
//! let text = "target: {synthetic: {problem: poscorr}}\npolicy: joint-ts\nseed: 3\n";
//! let scenario = captime::scenario::parse(text, "mine.yaml".as_ref(), ".".as_ref())?.scenario;
//! let target = Synthetic::new(SyntheticProblem::parse("poscorr")?);
//! let mut state = State::new(Plan::of(&scenario, target.instance_names()));
//! for _ in 0..300 {
//!     let Next::Pull(pull) = state.choose() else { break };
//!     state.launched(&pull);
//!     let observation = target.run(scenario.seed, pull.round, pull.pull()).observation;
//!     let outcome = OutcomeRecord { outcome: pull.round.0, ..OutcomeRecord::default() };
//!     state.learned(&Learned { pull, observation, outcome });
//! }
//! let answer = state.recommend().ok_or("nothing was observed")?;
//! assert!(answer.pull.arm.index() < target.arms() && answer.pulls > 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

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
mod markup;
mod nearest;
pub mod quantity;
pub mod resource;
