//! Tune an algorithm *and its time limit* together.
//!
//! One pull goes through the modules like this. A [`scenario`] and its [`space`] say what is tuned. A [`policy`] chooses a
//! pull (the nouns are in [`round`]). A [`target`] runs it under limits that [`captime_limit`] enforces or
//! [`captime_forest`] checks. The [`orchestrator`] writes the outcome to the [`journal`] and lets the policy learn.
//! [`report`] shows the journal as a page. `docs/architecture.md` names every step.
//!
//! # Run a scenario from code
//!
//! What `captime run` does, without its output. The run is resumed if the folder has one:
//!
//! ```
//! use captime::orchestrator::{Driver, Run, RunSetup, Signals, Wall};
//!
//! # let folder = tempfile::tempdir()?;
//! # let folder = folder.path().join("mine");
//! let text = "target: {synthetic: {problem: poscorr}}\npolicy: joint-ts\nbudget: {rounds: 300}\nseed: 3\n";
//! let scenario = captime::scenario::parse(text, "mine.yaml".as_ref(), ".".as_ref())?.scenario;
//! let target = captime::target::prepare(&scenario, &folder)?;
//! let run = Run::open(&folder, &RunSetup::of(&scenario, &target), ())?;
//! let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
//! let driven = runtime.block_on(async {
//!     let slots = target.default_slots(scenario.slots);
//!     let mut pool = target.start(slots, scenario.pin).await?;
//!     let (mut signals, wall) = (Signals::listen()?, Wall { seconds: scenario.budget.wall, spent: 0.0 });
//!     let driver = Driver::begin(vec![run], &mut pool, &mut signals, wall)?;
//!     Ok::<_, Box<dyn std::error::Error>>(driver.drive().await?)
//! })?;
//! let answer = driven.runs[0].state().recommend().ok_or("nothing was observed")?;
//! assert!(answer.pulls > 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Pass something that implements [`Watch`](orchestrator::Watch) instead of `()` to follow the run. To run the pulls
//! yourself, use a [`Run`](orchestrator::Run) without a driver. To embed only a policy, see [`policy`].
//!
//! What this documentation shows is the public interface. Items hidden from it are public only for the program, benchmarks
//! and tests of this repository, and may change in any version.

pub mod journal;
pub mod orchestrator;
pub mod policy;
pub mod quantity;
pub mod report;
pub mod round;
pub mod scenario;
pub mod space;
pub mod target;

#[doc(hidden)]
pub mod answer;
#[cfg(feature = "cli")]
#[doc(hidden)]
pub mod cli;
#[doc(hidden)]
pub mod cluster;

mod listed;
mod markup;
mod nearest;
#[cfg(feature = "cli")]
mod progress;
mod regular_file;
mod resource;
mod simulated;
#[cfg(feature = "cli")]
mod study;
mod yaml;
