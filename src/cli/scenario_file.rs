//! A scenario named on the command line: read, with its warnings on stderr and its mistakes as a failure.

use std::io::Write;
use std::path::Path;

use super::{Failure, failure};
use crate::scenario::{self, Scenario};

/// Reads a scenario, and prints its warnings to stderr at once.
pub(super) fn read_scenario(file: &Path) -> Result<Scenario, Failure> {
    let checked = scenario::read(file)?;
    let mut stderr = std::io::stderr().lock();
    for notice in checked.render_notices(failure::has_colours(&stderr)) {
        // If stderr itself is gone, this cannot be reported.
        let _ = writeln!(stderr, "{notice}\n");
    }
    Ok(checked.scenario)
}
