//! How commands get at their scenario, and say what is wrong with it.

use std::io::{IsTerminal, Write};
use std::path::Path;

use super::Failure;
use crate::scenario::{Checked, Scenario};

/// Reads and checks a scenario; warnings go to stderr, mistakes are bad usage.
pub(super) fn read(file: &Path) -> Result<Scenario, Failure> {
    let colours = colours();
    let checked = crate::scenario::read(file).map_err(|error| {
        Failure::usage(format!(
            "the scenario cannot be used\n{}",
            error.render(colours)
        ))
    })?;
    warn(&checked, colours)?;
    Ok(checked.scenario)
}

fn warn(checked: &Checked, colours: bool) -> Result<(), Failure> {
    let mut stderr = std::io::stderr().lock();
    for notice in checked.render_notices(colours) {
        writeln!(stderr, "{notice}")?;
    }
    Ok(())
}

/// Whether stderr takes colours.
pub(super) fn colours() -> bool {
    std::io::stderr().is_terminal()
        && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}
