//! A scenario named on the command line: read, with its warnings on stderr and its mistakes as a failure.

use std::io::{IsTerminal, Write};
use std::path::Path;

use super::Failure;
use crate::scenario::{self, Scenario};

/// Reads a scenario; what should be known about it goes to stderr at once.
pub(super) fn read_scenario(file: &Path) -> Result<Scenario, Failure> {
    let colours = std::io::stderr().is_terminal()
        && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let checked = scenario::read(file).map_err(|error| Failure::usage(error.render(colours)))?;
    let mut stderr = std::io::stderr().lock();
    for notice in checked.render_notices(colours) {
        // Nowhere to complain to when stderr itself is gone.
        let _ = writeln!(stderr, "{notice}\n");
    }
    Ok(checked.scenario)
}
