//! Tests of the answer, as recorded in their journals in the run's folder.

use serde::Serialize;

use super::answer::label;
use super::{History, Num};
use crate::answer::{Differences, Values};
use crate::orchestrator::{TestReader, tests_in};

/// A test.
#[derive(Debug, Clone, Serialize)]
pub struct Test {
    /// What it ran on.
    pub on: String,
    /// How many instances; 0 if there are none.
    pub instances: usize,
    /// Seeds of every arm on every instance.
    pub seeds: u32,
    /// The limit of every run.
    pub limit: Num,
    /// Runs that ended, of how many.
    pub done: u64,
    /// How many there are to be.
    pub total: u64,
    /// What every arm did.
    pub arms: Vec<TestedArm>,
    /// Whether the arms lead from the default to the answer, a change at a time.
    pub is_path: bool,
}

/// What an arm did in a test.
#[derive(Debug, Clone, Serialize)]
pub struct TestedArm {
    /// The arm, counted from 1.
    pub arm: u32,
    /// Its configuration on one line, or what changed.
    pub label: String,
    /// Whether it was the answer when the test was started.
    pub is_answer: bool,
    /// In its users' terms.
    pub values: Values,
    /// Beside the default, or on a path beside the arm before it.
    pub against: Option<Differences>,
    /// The same in words.
    pub difference: Option<String>,
}

/// Tests that are shown, the newest first.
const SHOWN: usize = 5;

/// The tests of a run; what cannot be read is left out.
pub fn tests(history: &History) -> Vec<Test> {
    let newest = tests_in(&history.folder).into_iter().rev();
    let read = newest.filter_map(|(_, folder)| TestReader::read(&folder).ok().flatten());
    read.take(SHOWN).map(|test| shown(history, &test)).collect()
}

fn shown(history: &History, read: &TestReader) -> Test {
    let amount = |value| read.resource.amount(value);
    let arms = read.arms.iter().enumerate().map(|(place, tested)| {
        let step = place.checked_sub(1);
        let change = step.and_then(|step| read.test.path.get(step));
        let against = if change.is_some() {
            read.steps[place - 1]
        } else {
            tested.against_default
        };
        TestedArm {
            arm: tested.arm.number(),
            label: match change {
                Some(change) => change.clone(),
                None if tested.arm.index() < history.space.len() => label(history, tested.arm),
                None => read.space.configuration(tested.arm).to_string(),
            },
            is_answer: read.test.answer == Some(tested.arm),
            values: tested.values,
            difference: against.map(|all| all.in_words(&tested.values, amount)),
            against,
        }
    });
    Test {
        on: read.test.on.clone(),
        instances: read.instances,
        seeds: read.test.seeds,
        limit: Num(read.limit.get()),
        done: read.done,
        total: read.total,
        is_path: !read.test.path.is_empty(),
        arms: arms.collect(),
    }
}
