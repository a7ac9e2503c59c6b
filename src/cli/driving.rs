//! One run on the driver, from slots that start to a session that ended: for every command that runs pulls.

use super::run_folder::failure;
use super::{Failure, runtime};
use crate::cluster::start_slots;
use crate::orchestrator::{Driven, Driver, Run, Signals, Wall, Watch};
use crate::scenario::{Pin, Scenario};
use crate::target::PreparedTarget;

/// Starts this many slots, drives the run until there is nothing left to do or the user stops it, and closes them.
pub(super) fn drive<W: Watch>(
    scenario: &Scenario,
    target: PreparedTarget,
    mut run: Run<W>,
    slots: usize,
    pin: Pin,
) -> Result<Driven<W>, Failure> {
    let wall = Wall {
        seconds: run.budget().wall,
        ..Wall::default()
    };
    captime_limit::wake_promptly();
    let runtime = runtime()?;
    let driven = runtime.block_on(async {
        let mut signals = Signals::listen().map_err(Failure::internal)?;
        let mut slots = tokio::select! {
            slots = start_slots(scenario, target, slots, pin) => slots?,
            () = signals.next() => return Err(Failure::interrupted()),
        };
        for (node, why) in &slots.absent {
            run.watch
                .noticed(&format!("node {node} cannot be used: {why}"));
        }
        for node in &slots.nodes {
            run.watch.noticed(&node.to_string());
        }
        let shared = &slots.pool.cpus.shared;
        if !shared.is_empty() {
            let shared = shared.iter().map(ToString::to_string);
            run.watch.noticed(&format!(
                "warning: another captime has pinned its slots to the same CPUs ({}), so pulls slow each other down; give each run \
                 its own CPUs with `taskset`, or let one wait for the other",
                shared.collect::<Vec<_>>().join(", ")
            ));
        }
        let driver = Driver::begin(vec![run], &mut slots.pool, &mut signals, wall);
        let driver = driver.map_err(|error| failure(&error))?;
        let driven = driver.drive().await.map_err(|error| failure(&error));
        if !driven.as_ref().is_ok_and(|driven| driven.is_hasty) {
            slots.close().await;
        }
        driven
    });
    // Whatever still runs on the runtime's threads ends with the process.
    runtime.shutdown_background();
    driven
}
