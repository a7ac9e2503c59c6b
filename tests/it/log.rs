//! The log on stderr, by `CAPTIME_LOG`.

use crate::test_run::{TestRun, expect};

const SCENARIO: &str =
    "name: logged\ntarget: {synthetic: {problem: poscorr}}\npolicy: uniform\nbudget: {rounds: 3}\n";

/// What a run writes to stderr with this in the variable.
fn logged(exit: i32, filter: Option<&str>) -> String {
    let test_run = TestRun::new(SCENARIO);
    let mut command = test_run.command(&["run", "s.yaml", "--quiet"]);
    command.env_remove("CAPTIME_LOG");
    if let Some(filter) = filter {
        command.env("CAPTIME_LOG", filter);
    }
    expect(&command.output().unwrap(), exit).1
}

#[test]
fn the_variable_says_what_is_logged() {
    let full = logged(0, Some("debug"));
    assert!(full.contains("DEBUG captime::orchestrator"), "{full}");
    let part = logged(0, Some("captime::orchestrator=debug"));
    assert!(part.contains("DEBUG captime::orchestrator"), "{part}");
    for quiet in [None, Some(""), Some("warn"), Some("captime::journal=debug")] {
        assert!(!logged(0, quiet).contains("DEBUG"), "{quiet:?}");
    }
}

#[test]
fn messages_of_supervisor_processes_reach_the_log() {
    let test_run = TestRun::new(
        "name: logged\ntarget: {command: ['true'], reward: {exit: [0]}}\narms: {list: [{a: 1}]}\n\
         limits: {of: wall, grid: [10s]}\nslots: 1\nbudget: {rounds: 1}\n",
    );
    let mut command = test_run.command(&["run", "s.yaml", "--quiet"]);
    command.env("CAPTIME_LOG", "captime_limit=debug");
    let said = expect(&command.output().unwrap(), 0).1;
    let is_its = |line: &str| line.contains("supervisor=") && line.contains("run ended");
    assert!(said.lines().any(is_its), "{said}");
}

#[test]
fn a_filter_that_cannot_be_read_is_refused() {
    let said = logged(2, Some("captime=loud=1"));
    assert!(
        said.starts_with("captime: CAPTIME_LOG `captime=loud=1` is not a filter: "),
        "{said}"
    );
    assert!(
        said.contains("\n  hint: write a level, such as `debug`"),
        "{said}"
    );
}
