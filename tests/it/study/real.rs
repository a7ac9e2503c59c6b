//! `captime study` on real targets.

use std::fmt::Write;
use std::fs;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::test_run::{TestRun, expect, story};

/// Six forests, limited by work, so that every study of them is the same to the last bit.
const FORESTS: &str = "\
name: forests
target: {forest: {data: data.csv, predict: y, train: 0.7}}
arms: {grid: {trees: [2, 4, 8], min_node_size: [2, 20]}}
limits: {of: work, work: 1e9, calibrate: {points: 4}}
policy: [rcucb, uniform]
budget: {rounds: 24}
seed: 3
";

fn test_run(scenario: &str) -> TestRun {
    let test_run = TestRun::new(scenario);
    let mut rows = String::from("a,b,y\n");
    for row in 0..80 {
        let (a, b) = (row * 7 % 13, row * 5 % 11);
        writeln!(rows, "{a},{b},{}", a * a + 3 * b).unwrap();
    }
    test_run.write("data.csv", &rows);
    test_run
}

fn study(test_run: &TestRun, args: &[&str]) -> Value {
    let args = [&["study", "s.yaml", "--format", "json"], args].concat();
    let (json, _) = expect(&test_run.captime(&args), 0);
    serde_json::from_str(&json).unwrap()
}

#[test]
fn policies_are_compared_by_reward_and_gain() {
    let test_run = test_run(FORESTS);
    let json = study(&test_run, &["--out", "real", "--repetitions", "2"]);
    assert_eq!(json.as_array().unwrap().len(), 2);
    for entry in json.as_array().unwrap() {
        assert_eq!(entry["rounds"], 24);
        assert_eq!(entry["repetitions"], 2);
        assert_eq!(entry["limits"], 4);
        assert!(entry["best"].is_null() && entry["regret"]["mean"].is_null());
        assert!(entry["reward"]["mean"].as_f64().unwrap() > 1.0);
        assert!(entry["gain"]["mean"].as_f64() < entry["reward"]["mean"].as_f64());
        assert_eq!(entry["gain_curve"].as_array().unwrap().len(), 24);
    }
    let out = test_run.path().join("real");
    for file in [
        "study.html",
        "curves.csv",
        "forests-scenario-gain.svg",
        "forests-scenario-reward.svg",
    ] {
        assert!(out.join(file).exists(), "{file}");
    }
    assert!(
        !out.join("forests-scenario.svg").exists(),
        "regret is unknown"
    );
    // Every run is a run like any other.
    for run in ["rcucb-1", "uniform-2", "calibration"] {
        let folder = format!("real/runs/{run}");
        expect(&test_run.captime(&["best", &folder]), 0);
    }
    let (text, _) = expect(&test_run.captime(&["study", "s.yaml", "--out", "real"]), 0);
    assert!(text.contains("gain") && !text.contains("regret"), "{text}");
}

#[test]
fn a_study_that_was_left_goes_on_and_ends_as_if_it_had_not_been() {
    let left = test_run(FORESTS);
    study(&left, &["--out", "real", "--rounds", "9"]);
    // As if it had been killed while a line was written.
    let journal = left.path().join("real/runs/rcucb-1/journal.jsonl");
    let text = fs::read(&journal).unwrap();
    fs::write(&journal, &text[..text.len() - 20]).unwrap();
    let again = study(&left, &["--out", "real"]);
    let whole = study(&test_run(FORESTS), &["--out", "real"]);
    assert_eq!(again, whole);
}

#[test]
fn the_wall_budget_ends_it_and_another_scenario_is_refused() {
    let wall = test_run(&FORESTS.replace("rounds: 24", "rounds: 1000000, wall: 300ms"));
    let output = wall.captime(&["study", "s.yaml", "--out", "real"]);
    let (table, said) = expect(&output, 0);
    assert!(said.contains("time budget (300 ms) used up"), "{said}");
    assert!(table.contains("rcucb") || said.contains("no round is over yet"));
    wall.write(
        "s.yaml",
        &FORESTS.replace("trees: [2, 4, 8]", "trees: [3, 4, 8]"),
    );
    let (_, said) = expect(&wall.captime(&["study", "s.yaml", "--out", "real"]), 2);
    assert!(
        said.contains("the scenario has changed") && said.contains("`--out`"),
        "{said}"
    );
    let (_, said) = expect(&wall.captime(&["study", "s.yaml"]), 2);
    assert!(
        said.contains("`--out`") && said.contains("captime record"),
        "{said}"
    );
}

/// How many rounds of this run were played.
fn rounds(test_run: &TestRun, run: &str) -> usize {
    story(&test_run.path().join("real/runs").join(run)).1.len()
}

#[test]
fn the_wall_budget_ends_calibration_too() {
    let slow = "name: slow
target: {command: [sleep, \"{nap}\"], reward: {exit: [0]}}
arms: {list: [{nap: 0.3}, {nap: 0.4}, {nap: 0.5}, {nap: 0.6}]}
limits: {of: wall, wall: 20s, calibrate: {points: 3}}
policy: [uniform, fixed]
budget: {rounds: 2, wall: 500ms}
";
    let test_run = TestRun::new(slow);
    let study = ["study", "s.yaml", "--out", "real"];
    let (table, said) = expect(&test_run.captime(&study), 0);
    assert_eq!(table, "");
    assert!(
        said.contains("time budget (500 ms) used up") && said.contains("no round is over yet"),
        "{said}"
    );
    assert!(rounds(&test_run, "calibration") < 4);
    assert!(!test_run.path().join("real/runs/uniform-1").exists());
    // With a raised budget, it resumes with what was measured.
    test_run.write("s.yaml", &slow.replace("wall: 500ms", "wall: 10m"));
    let (table, _) = expect(&test_run.captime(&study), 0);
    assert!(table.contains("uniform"), "{table}");
    assert_eq!(rounds(&test_run, "calibration"), 4);
}

#[test]
fn policies_take_turns_so_that_whatever_ends_a_study_they_have_played_as_much() {
    let endless = FORESTS
        .replace("rounds: 24", "rounds: 1000000, wall: 4s")
        .replace("[rcucb, uniform]", "[rcucb, uniform, fixed]");
    let test_run = test_run(&endless);
    let since = Instant::now();
    expect(&test_run.captime(&["study", "s.yaml", "--out", "real"]), 0);
    // Fits take a hundredth of the time of recording them. The budget covers both.
    assert!(
        since.elapsed() < Duration::from_mins(1),
        "{:?}",
        since.elapsed()
    );
    let played = ["rcucb-1", "uniform-1", "fixed-1"].map(|run| rounds(&test_run, run));
    let (most, least) = (played.iter().max().unwrap(), played.iter().min().unwrap());
    assert!(*least >= 2 && most - least <= 1, "{played:?}");
}

#[test]
fn recording_goes_on_and_what_was_recorded_is_replayed_with_calibrated_limits() {
    let test_run = test_run(&FORESTS.replace("of: work, work: 1e9", "of: cpu, cpu: 5s"));
    let record = |times: &str| {
        let args = ["record", "s.yaml", "--times", times, "--out", "recorded"];
        expect(&test_run.captime(&args), 0).0
    };
    let table = |name: &str| {
        let path = test_run.path().join("recorded").join(name);
        fs::read_to_string(path).unwrap()
    };
    record("2");
    let first = table("consumption.csv");
    // Torn in the last line: one run is measured again, the others stay.
    let journal = test_run.path().join("recorded/journal.jsonl");
    let text = fs::read(&journal).unwrap();
    fs::write(&journal, &text[..text.len() - 20]).unwrap();
    let line = record("4");
    let second = table("consumption.csv");
    assert_eq!(second.lines().count(), 5);
    let kept = first.lines().nth(1).unwrap();
    assert_eq!(
        second.lines().nth(1).unwrap(),
        kept,
        "CPU times never repeat"
    );
    assert_eq!(table("reward.csv").lines().count(), 5);
    // What is printed holds for a scenario in any folder.
    let folder = test_run.path().join("recorded");
    let folder = folder.display();
    let expected = format!(
        "target: {{recorded: {{consumption: {folder}/consumption.csv, reward: {folder}/reward.csv, cutoff: 5s}}}}\narms: {{file: {folder}/arms.csv}}\n"
    );
    assert_eq!(line, expected);
    let (why, said) = expect(&test_run.captime(&["explain", "recorded", "8"]), 0);
    assert!(
        why.contains("round 8:") && why.contains("`captime record` runs every arm in turn"),
        "{why}"
    );
    assert_eq!(said, "", "no policy would have chosen otherwise");
    // Replayed: the same scenario on another target.
    let rest = FORESTS.split_once("limits").unwrap().1;
    let rest = rest.replace("of: work, work: 1e9", "of: cpu, cpu: 5s");
    test_run.write("s.yaml", &format!("name: replay\n{line}limits{rest}"));
    let json = study(&test_run, &["--repetitions", "3"]);
    assert_eq!(
        (&json[0]["arms"], &json[0]["limits"]),
        (&6.into(), &4.into())
    );
    assert!(json[0]["best"]["gain"].is_f64());
}
