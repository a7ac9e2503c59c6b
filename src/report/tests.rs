//! Tests of the answer, as their own journals in the run's folder tell them.

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
}

/// What an arm did in a test.
#[derive(Debug, Clone, Serialize)]
pub struct TestedArm {
    /// The arm, counted from 1.
    pub arm: u32,
    /// Its configuration on one line.
    pub label: String,
    /// Whether it was the answer when the test was started.
    pub is_answer: bool,
    /// In its users' terms.
    pub values: Values,
    /// Beside the default.
    pub against_default: Option<Differences>,
    /// The same in words.
    pub difference: Option<String>,
}

/// Tests that are shown, the newest first.
const SHOWN: usize = 5;

/// The tests of a run; what cannot be read is left out.
pub fn tests(history: &History) -> Vec<Test> {
    let newest = tests_in(&history.folder).into_iter().rev();
    let read = newest.filter_map(|(_, folder)| TestReader::read(&folder).ok().flatten());
    let known = read.filter(|test| {
        let arms = &test.test.arms;
        arms.iter().all(|arm| arm.index() < history.space.len())
    });
    known
        .take(SHOWN)
        .map(|test| shown(history, &test))
        .collect()
}

fn shown(history: &History, read: &TestReader) -> Test {
    let arms = read.arms.iter().map(|tested| TestedArm {
        arm: tested.arm.number(),
        label: label(history, tested.arm),
        is_answer: read.test.answer == Some(tested.arm),
        values: tested.values,
        against_default: tested.against_default,
        difference: tested.difference_in_words(|value| read.resource.amount(value)),
    });
    Test {
        on: read.test.on.clone(),
        instances: read.instances,
        seeds: read.test.seeds,
        limit: Num(read.limit.get()),
        done: read.done,
        total: read.total,
        arms: arms.collect(),
    }
}
