//! A run's folder: made for a new run, or found with a journal to go on from.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use serde_json::Value;

use super::{Brief, Budget, Plan, Progress, RunError, State, resume};
use crate::journal::{
    Appender, FILE, Header, JournalError, Machine, Reader, RunLock, Step, Syncing, VERSION,
    timestamp,
};
use crate::scenario::{Difference, Scenario, difference};

/// A run that is ours to go on with.
#[derive(Debug)]
pub struct Opened {
    /// What it knows.
    pub state: State,
    /// Where it stood.
    pub progress: Progress,
    /// Its journal, ready to be appended to.
    pub journal: Appender,
    /// Keeps others away.
    pub lock: RunLock,
    /// How limits were enforced when the run was started.
    pub enforcement: Value,
    /// Whether it has just been made.
    pub is_new: bool,
    /// Whether a torn tail was cut from its journal.
    pub is_cut: bool,
}

/// Makes the run in `folder`, or goes on with it if it is of the same scenario.
pub fn open(
    folder: &Path,
    scenario: &Scenario,
    plan: Plan,
    syncing: Syncing,
    enforcement: &Value,
    look: impl FnMut(&Step),
) -> Result<Opened, RunError> {
    make(folder)?;
    let lock = RunLock::take(folder)?;
    let brief = Brief::of(scenario, &plan);
    let mut state = State::new(plan);
    match Reader::open(folder) {
        Ok(reader) => {
            let enforcement = reader.header().enforcement.clone();
            let (reader, progress) = go_on(reader, scenario, &mut state, look)?;
            let is_cut = reader.is_torn();
            let journal = Appender::resume(&reader, syncing)?;
            Ok(Opened {
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
            let header = header(scenario, &brief, syncing, enforcement.clone());
            let journal = Appender::create(folder, &header, syncing)?;
            let progress = Progress::default();
            Ok(Opened {
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
    let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.map_err(|source| {
        JournalError::Write {
            path: folder.join(FILE),
            source,
        }
        .into()
    })
}

fn header(scenario: &Scenario, brief: &Brief, syncing: Syncing, enforcement: Value) -> Header {
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
        resolved: serde_json::to_value(brief).unwrap_or_default(),
        normal: scenario.normal(),
        scenario: scenario.text.clone(),
    }
}

fn go_on(
    reader: Reader,
    scenario: &Scenario,
    state: &mut State,
    mut look: impl FnMut(&Step),
) -> Result<(Reader, Progress), RunError> {
    let header = reader.header();
    if let Difference::BudgetRaised(changes) | Difference::Other(changes) = difference(
        &without_budget(header.normal.clone()),
        &without_budget(scenario.normal()),
    ) {
        let changes = changes.iter().map(ToString::to_string).collect();
        return Err(RunError::Changed { changes });
    }
    let mut budget = Budget::default();
    let found = resume(reader, state, |step| {
        if let Step::Session(session) = step {
            budget = serde_json::from_value(session.budget.clone()).unwrap_or_default();
        }
        look(step);
    })?;
    let new = Budget::of(&scenario.budget);
    if new.is_below(&budget) {
        return Err(RunError::Lowered {
            from: budget,
            to: new,
        });
    }
    Ok(found)
}

/// A scenario's normal form without its budget, which may be raised while a run goes on.
fn without_budget(mut normal: Value) -> Value {
    if let Value::Object(normal) = &mut normal {
        normal.remove("budget");
    }
    normal
}
