//! A run's folder: made for a new run, or found with a journal to go on from.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use serde_json::Value;

use super::{Brief, Budget, Plan, Progress, RunError, State, difference, resume};
use crate::journal::{
    Appender, FILE, Header, JournalError, Machine, Reader, RunLock, Step, Syncing, VERSION,
};
use crate::scenario::Scenario;

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
            let (reader, progress) = go_on(reader, scenario, &brief, &mut state, look)?;
            let is_cut = reader.is_torn();
            let journal = Appender::resume(&reader, syncing)?;
            Ok(Opened {
                state,
                progress,
                journal,
                lock,
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
        started: jiff::Timestamp::now().strftime("%FT%TZ").to_string(),
        file: scenario.file.display().to_string(),
        folder: folder.display().to_string(),
        hash: hash(&scenario.text),
        seed: scenario.seed,
        is_virtual: syncing == Syncing::AtEnd,
        machine: Machine::here(),
        enforcement,
        resolved: serde_json::to_value(brief).unwrap_or_default(),
        scenario: scenario.text.clone(),
    }
}

/// How a scenario's text is known by.
pub fn hash(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex().to_string()
}

fn go_on(
    reader: Reader,
    scenario: &Scenario,
    brief: &Brief,
    state: &mut State,
    mut look: impl FnMut(&Step),
) -> Result<(Reader, Progress), RunError> {
    let header = reader.header();
    if header.hash != hash(&scenario.text) {
        let changes = difference(
            &without_budget(&header.scenario),
            &without_budget(&scenario.text),
        );
        if !changes.is_empty() {
            return Err(RunError::Changed { changes });
        }
    }
    let stored: Option<Brief> = serde_json::from_value(header.resolved.clone()).ok();
    if stored.as_ref() != Some(brief) {
        let changes = files_changed(stored.as_ref(), brief);
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

/// The text without its `budget` section, which may change while a run goes on.
fn without_budget(text: &str) -> String {
    let mut is_budget = false;
    let mut kept = String::new();
    for line in text.lines() {
        let is_top_level =
            line.starts_with(|letter: char| !letter.is_whitespace() && letter != '#');
        if is_top_level {
            is_budget = line.starts_with("budget:");
        }
        if !is_budget {
            kept += line;
            kept.push('\n');
        }
    }
    kept
}

/// The text is the same but what it refers to is not: says which part.
fn files_changed(stored: Option<&Brief>, brief: &Brief) -> Vec<String> {
    let Some(stored) = stored else {
        return vec!["the journal's header was written by another captime".into()];
    };
    let mut changes = vec![];
    if stored.arms != brief.arms {
        changes.push(format!(
            "arms: {} then, {} now, from a file that changed",
            stored.arms.count, brief.arms.count
        ));
    }
    if stored.instances != brief.instances || stored.instance_count != brief.instance_count {
        changes.push(format!(
            "instances: {} then, {} now, or others",
            stored.instance_count, brief.instance_count
        ));
    }
    if changes.is_empty() {
        changes.push("what this captime makes of the scenario".into());
    }
    changes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_budget_may_differ() {
        let old = "name: a\nbudget:\n  rounds: 5\n\n  # more\nseed: 1\n";
        let new = "name: a\nbudget: {rounds: 9, wall: 3s}\nseed: 1\n";
        assert_eq!(
            difference(&without_budget(old), &without_budget(new)),
            Vec::<String>::new()
        );
        let other = "name: a\nbudget: {rounds: 9}\nseed: 2\n";
        assert_eq!(
            difference(&without_budget(old), &without_budget(other)),
            ["- seed: 1", "+ seed: 2"]
        );
    }
}
