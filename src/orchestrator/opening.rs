//! Opens a run's folder: creates it for a new run, or resumes from its journal.

use std::fs::{DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use serde_json::Value;

use super::{Budget, Progress, ResolvedScenario, RunError, RunSetup, State, resume};
use crate::journal::{
    Appender, FILE, Header, JournalError, Machine, Reader, RunLock, Step, Syncing, VERSION,
    timestamp,
};
use crate::scenario::{Scenario, difference};

/// A run that this process may continue.
#[derive(Debug)]
pub struct OpenedRun {
    /// What it knows.
    pub state: State,
    /// How far it had come.
    pub progress: Progress,
    /// Its journal, ready to be appended to.
    pub journal: Appender,
    /// Keeps other captime processes away.
    pub lock: RunLock,
    /// How limits were enforced when the run was started.
    pub enforcement: Value,
    /// Whether it was just created.
    pub is_new: bool,
    /// Whether an incomplete last line was cut from its journal.
    pub is_cut: bool,
}

/// Creates the run in `folder`, or resumes it if it is of the same scenario.
pub fn open(
    folder: &Path,
    setup: &RunSetup<'_>,
    mut look: impl FnMut(&Step),
) -> Result<OpenedRun, RunError> {
    let RunSetup {
        scenario,
        plan,
        syncing,
        ..
    } = setup;
    make(folder)?;
    let lock = RunLock::take(folder)?;
    let mut resolved = ResolvedScenario::of(scenario, &plan.instance_names).stored();
    let mut state = State::new(plan.clone());
    match Reader::open(folder) {
        Ok(reader) => {
            let enforcement = reader.header().enforcement.clone();
            let (reader, progress) = resumed(reader, scenario, &resolved, &mut state, look)?;
            let is_cut = reader.is_torn();
            let journal = Appender::resume(&reader, *syncing)?;
            Ok(OpenedRun {
                state,
                progress,
                journal,
                lock,
                enforcement,
                is_new: false,
                is_cut,
            })
        }
        Err(JournalError::Missing { .. } | JournalError::Empty { .. }) => {
            let earlier = setup.earlier.as_ref();
            if let Some(earlier) = earlier {
                resolved["earlier"] = earlier.stored();
            }
            let header = header(scenario, resolved, *syncing, setup.enforcement.clone());
            let journal = Appender::create_with(folder, &header, *syncing, |journal| {
                let Some(earlier) = earlier else {
                    return Ok(());
                };
                earlier.teach(&mut state, |step| {
                    look(step);
                    match step {
                        Step::Calibrated(limits) => journal.append(limits),
                        Step::Opened(arm) => journal.append(&**arm),
                        Step::Launched(pull) => journal.append(pull),
                        Step::Learned(learned) => journal.append(&learned.outcome),
                        Step::Session(_) | Step::Lost(_) | Step::End(_) => return Ok(()),
                    }?;
                    Ok(())
                })
            })?;
            let progress = Progress::default();
            Ok(OpenedRun {
                state,
                progress,
                journal,
                lock,
                enforcement: Value::Null,
                is_new: true,
                is_cut: false,
            })
        }
        Err(error) => Err(error.into()),
    }
}

fn make(folder: &Path) -> Result<(), RunError> {
    let made = create(folder, &mut |parent| File::open(parent)?.sync_all());
    made.map_err(|source| {
        JournalError::Write {
            path: folder.join(FILE),
            source,
        }
        .into()
    })
}

/// Makes a folder and those above it, and has the folder of each new name synced: a power cut must not take a run whose
/// journal is on disk.
fn create(folder: &Path, sync: &mut impl FnMut(&Path) -> io::Result<()>) -> io::Result<()> {
    let parent = match folder.parent() {
        Some(parent) if parent == Path::new("") => Path::new("."),
        Some(parent) => parent,
        None => return Ok(()),
    };
    match DirBuilder::new().mode(0o700).create(folder) {
        // A folder that stays would be taken for one whose name is on disk.
        Ok(()) => sync(parent).inspect_err(|_| drop(std::fs::remove_dir(folder))),
        Err(_) if folder.is_dir() => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound && !parent.exists() => {
            create(parent, sync)?;
            create(folder, sync)
        }
        Err(error) => Err(error),
    }
}

fn header(scenario: &Scenario, resolved: Value, syncing: Syncing, enforcement: Value) -> Header {
    let folder = std::path::absolute(&scenario.folder).unwrap_or_else(|_| scenario.folder.clone());
    Header {
        journal: VERSION,
        captime: env!("CARGO_PKG_VERSION").into(),
        name: scenario.name.clone(),
        started: timestamp(),
        file: scenario.file.display().to_string(),
        folder: folder.display().to_string(),
        hash: scenario.hash(),
        seed: scenario.seed,
        is_virtual: syncing == Syncing::AtEnd,
        machine: Machine::here(),
        enforcement,
        resolved,
        scenario: scenario.text.clone(),
    }
}

fn resumed(
    reader: Reader,
    scenario: &Scenario,
    resolved: &Value,
    state: &mut State,
    mut look: impl FnMut(&Step),
) -> Result<(Reader, Progress), RunError> {
    let changes = difference(&reader.header().resolved["scenario"], &resolved["scenario"]);
    if !changes.is_empty() {
        let changes = changes.iter().map(ToString::to_string).collect();
        return Err(RunError::Changed { changes });
    }
    let mut before = Value::Null;
    let (reader, progress) = resume(reader, state, |step| {
        if let Step::Session(session) = step {
            before = session.budget.clone();
        }
        look(step);
    })?;
    let before = match before {
        Value::Null => Budget::default(),
        stored => {
            serde_json::from_value(stored).map_err(|error| RunError::UnreadableBudget { error })?
        }
    };
    let tally = state.tally();
    let budget = scenario.budget;
    let waiting = progress.waiting.iter();
    let rounds = tally.own_learned() + waiting.len() as u64;
    let consumption = waiting
        .filter_map(|learned| learned.outcome.consumption)
        .sum::<f64>();
    let consumption = tally.consumption + consumption;
    match budget.below_use(&before, rounds, progress.seconds, consumption) {
        Some(bound) => Err(RunError::Lowered { bound }),
        None => Ok((reader, progress)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_of_each_new_folder_is_synced() {
        let here = tempfile::tempdir().unwrap();
        let run = here.path().join("runs/night");
        let mut synced = vec![];
        let mut note = |parent: &Path| {
            synced.push(parent.to_owned());
            Ok(())
        };
        create(&run, &mut note).unwrap();
        create(&run, &mut note).unwrap();
        assert_eq!(synced, [here.path().to_owned(), here.path().join("runs")]);
        assert!(run.is_dir());
        let file = here.path().join("file");
        std::fs::write(&file, "").unwrap();
        create(&file, &mut |_| Ok(())).unwrap_err();
        create(&file.join("below"), &mut |_| Ok(())).unwrap_err();
    }
}
