//! A scenario named on the command line: read, with its warnings on stderr and its mistakes as a failure.

use std::io::Write;
use std::path::Path;

use super::{Failure, failure};
use crate::scenario::{self, Caution, Checked, Notice, Scenario};

/// Reads a scenario, and prints its warnings to stderr at once.
pub(super) fn read_scenario(file: &Path) -> Result<Scenario, Failure> {
    Ok(warned(scenario::read(file)?))
}

/// The same for a command that knows itself when it ends, so that a missing budget is no warning.
pub(super) fn read_scenario_without_budget(file: &Path) -> Result<Scenario, Failure> {
    let mut checked = scenario::read(file)?;
    let applies = |notice: &Notice| notice.caution != Caution::NoBudget;
    checked.notices.retain(applies);
    Ok(warned(checked))
}

fn warned(checked: Checked) -> Scenario {
    let mut stderr = std::io::stderr().lock();
    for notice in checked.render_notices(failure::has_colours(&stderr)) {
        // If stderr itself is gone, this cannot be reported.
        let _ = writeln!(stderr, "{notice}\n");
    }
    checked.scenario
}
