//! Checks the nodes of a scenario: whether agents start there, and find what they need.

use std::io::Write;

use super::super::{Failure, runtime};
use crate::cluster::{ClusterError, StartError, start_slots};
use crate::scenario::{Pin, Scenario};
use crate::target::prepare;

/// Starts an agent on every node and prints a line for each.
pub(super) fn run(scenario: &Scenario) -> Result<(), Failure> {
    let target = prepare(scenario, &std::env::temp_dir())?;
    if target.is_virtual() {
        return Ok(());
    }
    let runtime = runtime()?;
    let started = runtime.block_on(async {
        let slots = start_slots(scenario, target, 1, Pin::Never).await?;
        let found = (slots.nodes.clone(), slots.absent.clone());
        slots.close().await;
        Ok::<_, StartError>(found)
    });
    runtime.shutdown_background();
    let mut to = std::io::stdout().lock();
    let (nodes, absent) = match started {
        // Its reasons are printed like those of any other node.
        Err(StartError::Cluster(ClusterError::NoNode { absent })) => (vec![], absent),
        started => started?,
    };
    for node in &nodes {
        writeln!(to, "{node}")?;
    }
    for (node, why) in &absent {
        writeln!(to, "node {node} cannot be used: {why}")?;
    }
    if nodes.is_empty() {
        return Err(Failure::ours("no node can be used").hint(Some("see the reasons above")));
    }
    Ok(())
}
