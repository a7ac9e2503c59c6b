//! `captime check`: what the machine can enforce, and what a scenario means, without running it.

mod describe;
mod dry_run;
mod machine;

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Args;

use super::scenario_file::{read_scenario, take_over};
use super::{Exit, Failure, exit_code, runtime};
use crate::cluster::{ClusterError, StartError, StartedSlots, start_slots};
use crate::journal::Load;
use crate::markup::Visible;
use crate::scenario::{Pin, Scenario, Target};
use crate::target::{PreparedTarget, dataset, measures_memory, prepare};

const EXAMPLES: &str = "\
Examples:
  captime check                    what this machine can enforce
  captime check arms.yaml          arms, limits, prices, three command lines
  captime check arms.yaml --try 3  also run three pulls and show their results";

/// Check a scenario and show what it means: arms, limits, prices, command lines.
///
/// Without a scenario, show which limits this machine can enforce and how to get more.
#[derive(Debug, Args)]
#[command(after_help = format!("{EXAMPLES}\n\n{}", exit_code::CHECK))]
pub struct Check {
    /// The scenario file.
    scenario: Option<PathBuf>,
    /// Also run N pulls, each with a different arm, and show what was read from each.
    #[arg(long = "try", value_name = "N", requires = "scenario", value_parser = clap::value_parser!(u64).range(1..=1000))]
    tries: Option<u64>,
}

impl Check {
    pub(super) fn run(&self) -> Result<Exit, Failure> {
        let Some(file) = &self.scenario else {
            let mut to = io::stdout().lock();
            machine::write(&captime_limit::detect(), &mut to)?;
            machine::write_load(&Load::now(), &mut to)?;
            return Ok(Exit::Done);
        };
        let mut scenario = read_scenario(file)?;
        let mut earlier = take_over(&mut scenario, None)?;
        if let Some(earlier) = &mut earlier {
            let names = match &scenario.target {
                // Only the recorded runs know their instances.
                Target::Recorded(_) | Target::Surrogate(_) => {
                    prepare(&scenario, Path::new("."))?.instances().to_vec()
                }
                target => target.instances().to_vec(),
            };
            earlier.on_instances(&names);
        }
        // With `--try`, the pulls read the data themselves.
        if self.tries.is_none() {
            measures_memory(&scenario)?;
            read_data(&scenario)?;
        }
        describe::write(
            &scenario,
            earlier.as_ref(),
            &mut Visible(io::stdout().lock()),
        )?;
        if let (Target::Command(command), None) = (&scenario.target, &scenario.nodes) {
            machine::write_contain(command.contain, &mut io::stdout().lock())?;
        }
        match self.tries {
            Some(count) => return dry_run::run(&scenario, count),
            None if scenario.nodes.is_some() => check_nodes(&scenario)?,
            None => {}
        }
        Ok(Exit::Done)
    }
}

/// A larger file is not read by default, so that a check answers at once.
const MOST_BYTES: u64 = 20 << 20;

/// Reads the data of a forest as a run would, so that mistakes show before it. Ragged rows, a constant target, or data that the engine cannot learn from are
/// reported now.
fn read_data(scenario: &Scenario) -> Result<(), Failure> {
    let Target::Forest(forest) = &scenario.target else {
        return Ok(());
    };
    let path = scenario.path_as_written(&forest.data);
    let bytes = std::fs::metadata(&forest.data).map_or(0, |file| file.len());
    if bytes > MOST_BYTES {
        let megabytes = bytes / 1_000_000;
        writeln!(
            io::stderr().lock(),
            "captime: {} has {megabytes} MB, of which only the header was read; `--try 1` reads all of it",
            path.display()
        )?;
        return Ok(());
    }
    dataset(scenario, forest)?;
    Ok(())
}

/// Starts an agent on every node and prints a line for each.
fn check_nodes(scenario: &Scenario) -> Result<(), Failure> {
    let target = prepare(scenario, &std::env::temp_dir())?;
    if target.is_virtual() {
        return Ok(());
    }
    let runtime = runtime()?;
    let shown = runtime.block_on(async {
        let slots = start_nodes(scenario, target).await?;
        slots.close().await;
        Ok(())
    });
    runtime.shutdown_background();
    shown
}

/// Starts the slots of a dry run: one here, or all on the nodes, with a line for each node.
async fn start_nodes(scenario: &Scenario, target: PreparedTarget) -> Result<StartedSlots, Failure> {
    let started = start_slots(scenario, target, 1, Pin::Never).await;
    let mut to = Visible(io::stdout().lock());
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

fn write_absent(absent: &[(String, String)], to: &mut dyn Write) -> io::Result<()> {
    for (node, why) in absent {
        writeln!(to, "node {node} cannot be used: {why}")?;
    }
    Ok(())
}
