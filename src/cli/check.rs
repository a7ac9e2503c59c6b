//! `captime check`: what the machine can enforce, and everything about a scenario short of running it.

mod machine;
mod picture;

use std::io::Write;
use std::path::PathBuf;

use clap::Args;

use super::{Exit, Failure, exit_code, failure};
use crate::{limit, scenario};

const EXAMPLES: &str = "\
Examples:
  captime check                    what this machine can enforce, and how to get more
  captime check arms.yaml          arms, limits, prices and three command lines of a scenario";

/// Check a scenario, and show what it means: arms, limits, prices, command lines.
///
/// Without a scenario, says what this machine can enforce and how to get more.
#[derive(Debug, Args)]
#[command(after_help = format!("{EXAMPLES}\n\n{}", exit_code::HELP))]
pub struct Check {
    /// The scenario file.
    scenario: Option<PathBuf>,
}

impl Check {
    pub(super) fn run(&self) -> Result<Exit, Failure> {
        let Some(file) = &self.scenario else {
            machine::write(&limit::detect(), &mut std::io::stdout().lock())?;
            return Ok(Exit::Done);
        };
        let checked = scenario::read(file)?;
        let mut stderr = std::io::stderr().lock();
        for notice in checked.render_notices(failure::has_colours(&stderr)) {
            writeln!(stderr, "{notice}\n")?;
        }
        drop(stderr);
        picture::write(&checked.scenario, &mut std::io::stdout().lock())?;
        Ok(Exit::Done)
    }
}
