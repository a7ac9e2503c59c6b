//! `captime check`: what the machine can enforce, and what a scenario means, without running it.

mod data;
mod describe;
mod dry_run;
mod machine;
mod nodes;

use std::path::{Path, PathBuf};

use clap::Args;

use super::scenario_file::read_scenario;
use super::{Exit, Failure, exit_code, warm_start};
use crate::journal::Load;
use crate::markup::Visible;
use crate::scenario::Target;
use crate::target::{measures_memory, prepare};

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
            let mut to = std::io::stdout().lock();
            machine::write(&captime_limit::detect(), &mut to)?;
            machine::write_load(&Load::now(), &mut to)?;
            return Ok(Exit::Done);
        };
        let mut scenario = read_scenario(file)?;
        let mut earlier = warm_start::take_over(&mut scenario, None)?;
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
            data::read(&scenario)?;
        }
        describe::write(
            &scenario,
            earlier.as_ref(),
            &mut Visible(std::io::stdout().lock()),
        )?;
        if let (Target::Command(command), None) = (&scenario.target, &scenario.nodes) {
            machine::write_contain(command.contain, &mut std::io::stdout().lock())?;
        }
        match self.tries {
            Some(count) => return dry_run::run(&scenario, count),
            None if scenario.nodes.is_some() => nodes::run(&scenario)?,
            None => {}
        }
        Ok(Exit::Done)
    }
}
