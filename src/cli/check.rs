//! `captime check`: everything short of running.

mod picture;

use std::io::Write;
use std::path::PathBuf;

use clap::Args;

use super::{Exit, Failure, exit_code, failure};
use crate::scenario;

const EXAMPLES: &str = "\
Examples:
  captime check arms.yaml      arms, limits, prices and three command lines of a scenario";

/// Check a scenario, and show what it means: arms, limits, prices, command lines.
#[derive(Debug, Args)]
#[command(after_help = format!("{EXAMPLES}\n\n{}", exit_code::HELP))]
pub struct Check {
    /// The scenario file.
    scenario: PathBuf,
}

impl Check {
    pub(super) fn run(&self) -> Result<Exit, Failure> {
        let checked = scenario::read(&self.scenario)?;
        let mut stderr = std::io::stderr().lock();
        for notice in checked.render_notices(failure::has_colours(&stderr)) {
            writeln!(stderr, "{notice}\n")?;
        }
        drop(stderr);
        picture::write(&checked.scenario, &mut std::io::stdout().lock())?;
        Ok(Exit::Done)
    }
}
