//! Checks the nodes of a scenario: whether agents start there, and find what they need.

use std::io::Write;

use super::super::{Failure, runtime};
use crate::cluster::{ClusterError, StartError, StartedSlots, start_slots};
use crate::markup::Visible;
use crate::scenario::{Pin, Scenario};
use crate::target::{PreparedTarget, prepare};

/// Starts an agent on every node and prints a line for each.
pub(super) fn run(scenario: &Scenario) -> Result<(), Failure> {
    let target = prepare(scenario, &std::env::temp_dir())?;
    if target.is_virtual() {
        return Ok(());
    }
    let runtime = runtime()?;
    let shown = runtime.block_on(async {
        let slots = start(scenario, target).await?;
        slots.close().await;
        Ok(())
    });
    runtime.shutdown_background();
    shown
}

/// Starts the slots of a dry run: one here, or all on the nodes, with a line for each node.
pub(super) async fn start(
    scenario: &Scenario,
    target: PreparedTarget,
) -> Result<StartedSlots, Failure> {
    let started = start_slots(scenario, target, 1, Pin::Never).await;
    let mut to = Visible(std::io::stdout().lock());
    // Its reasons are printed like those of any other node.
    if let Err(StartError::Cluster(ClusterError::NoNode { absent })) = &started {
        writeln!(to)?;
        write_absent(absent, &mut to)?;
        return Err(Failure::internal("no node can be used").hint(Some("see the reasons above")));
    }
    let slots = started?;
    if !slots.nodes.is_empty() {
        writeln!(to)?;
    }
    for node in &slots.nodes {
        writeln!(to, "{node}")?;
    }
    write_absent(&slots.absent, &mut to)?;
    Ok(slots)
}

fn write_absent(absent: &[(String, String)], to: &mut dyn Write) -> std::io::Result<()> {
    for (node, why) in absent {
        writeln!(to, "node {node} cannot be used: {why}")?;
    }
    Ok(())
}
