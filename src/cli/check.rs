//! `captime check`: what the machine can enforce, and everything about a scenario short of running it.

mod data;
mod machine;
mod picture;
mod tried;

use std::path::PathBuf;

use clap::Args;

use super::scenario_file::read_scenario;
use super::{Exit, Failure, exit_code};
use crate::limit;

const EXAMPLES: &str = "\
Examples:
  captime check                    what this machine can enforce
  captime check arms.yaml          arms, limits, prices, three command lines
  captime check arms.yaml --try 3  also runs three pulls: what was read?";

/// Check a scenario, and show what it means: arms, limits, prices, command lines.
///
/// Without a scenario, says what this machine can enforce and how to get more.
#[derive(Debug, Args)]
#[command(after_help = format!("{EXAMPLES}\n\n{}", exit_code::CHECK))]
pub struct Check {
    /// The scenario file.
    scenario: Option<PathBuf>,
    /// Also run so many pulls, each of another arm, and show what was read from each.
    #[arg(long = "try", value_name = "N", requires = "scenario", value_parser = clap::value_parser!(u64).range(1..=1000))]
    tries: Option<u64>,
}

impl Check {
    pub(super) fn run(&self) -> Result<Exit, Failure> {
        let Some(file) = &self.scenario else {
            machine::write(&limit::detect(), &mut std::io::stdout().lock())?;
            return Ok(Exit::Done);
        };
        let scenario = read_scenario(file)?;
        // Pulls that are tried read the data themselves.
        if self.tries.is_none() {
            data::read(&scenario)?;
        }
        picture::write(&scenario, &mut std::io::stdout().lock())?;
        match self.tries {
            Some(count) => tried::run(&scenario, count),
            None => Ok(Exit::Done),
        }
    }
}
