//! A scenario named on the command line: read, with its warnings on stderr and its mistakes as a failure. Then
//! `start: {run: ...}`: finds the earlier run, and takes it over.

use std::io::Write;
use std::path::{Path, PathBuf};

use super::{Failure, failure, run_folder};
use crate::journal::{FILE, Reader};
use crate::markup::visible;
use crate::orchestrator::Earlier;
use crate::scenario::{
    self, Caution, Checked, Fault, Mistake, Notice, Scenario, ScenarioError, StartRun,
};

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

/// Takes over the earlier run that the scenario starts from, if it does: adds its arms to the scenario, and gives its rounds
/// for a new run. A run that is in `folder` already knows its arms, so it needs the earlier one no more.
pub(super) fn take_over(
    scenario: &mut Scenario,
    folder: Option<&Path>,
) -> Result<Option<Earlier>, Failure> {
    let Some(start) = scenario.start_run.clone() else {
        return Ok(None);
    };
    if let Some(reader) = folder.and_then(|folder| Reader::open(folder).ok()) {
        return Ok(Some(Earlier::resume(scenario, reader.header())));
    }
    let path = || start.path.clone();
    let found = find(scenario, &start).map_err(|hint| Fault::NoStartRun { path: path(), hint });
    let earlier = found.and_then(|folder| {
        Earlier::take(scenario, &folder).map_err(|error| Fault::StartRunUnreadable {
            path: path(),
            reason: error.to_string(),
        })
    });
    let earlier = earlier.map_err(|fault| ScenarioError {
        file: scenario.file.clone(),
        text: scenario.text.clone(),
        mistakes: vec![Mistake {
            at: start.at,
            fault,
        }],
    })?;
    Ok(Some(earlier))
}

/// Says on stderr what was taken over.
pub(super) fn say_taken_over(earlier: &Earlier) {
    let mut stderr = std::io::stderr().lock();
    for note in earlier.notes() {
        // Failing to report this is no reason to stop.
        let _ = writeln!(stderr, "captime: {}", visible(note));
    }
}

/// The run's folder: relative to the scenario, as the user would name it on the command line, or what to do instead.
fn find(scenario: &Scenario, start: &StartRun) -> Result<PathBuf, Option<String>> {
    let beside = scenario.folder.join(&start.path);
    if beside.join(FILE).exists() {
        return Ok(beside);
    }
    run_folder::find(Path::new(&start.path)).map_err(Failure::into_hint)
}
