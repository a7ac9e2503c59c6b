//! `captime study SCENARIO`.

use std::fs;

use serde_json::{Value, json};

use super::{refusal, stdout};

/// Writes a scenario, with the matrix some of them replay, and gives its path.
fn scenario(folder: &tempfile::TempDir, text: &str) -> String {
    let matrix = "instance, a, b, c\none, 1, 2, 9\ntwo, 2, 3000, 3\nthree, 1, failed, 4";
    fs::write(folder.path().join("runtimes.csv"), matrix).unwrap();
    let path = folder.path().join("scenario.yaml");
    fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

const RECORDED: &str = "\
name: replay
target: {recorded: {consumption: runtimes.csv, cutoff: 10s, unsolved: 3000}}
limits: {grid: [1s, 2s, 5s, 10s]}
price: {cost: x, penalty: 10 * x}
policy: [rcucb, {joint-ts: {}}]
budget: {rounds: 200}
seed: 4
";

#[test]
fn a_scenario_with_recorded_runs_is_studied_as_it_says() {
    let folder = tempfile::tempdir().unwrap();
    let file = scenario(&folder, RECORDED);
    let args = [&file, "--repetitions", "3", "--format", "json"];
    let json: Value = serde_json::from_str(&stdout(&args)).unwrap();
    let policies: Vec<&str> = json
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| entry["policy"].as_str().unwrap())
        .collect();
    assert_eq!(policies, ["rcucb", "joint-ts"]);
    let first = &json[0];
    assert_eq!(first["problem"], "replay");
    assert_eq!(first["rounds"], 200);
    assert_eq!([&first["arms"], &first["limits"]], [&json!(3), &json!(4)]);
    // Arm a at 2 s: rewards 1 - 0.1, 1 - 0.2, 1 - 0.1 with the unit 10 s.
    assert_eq!(first["best"]["arm"], 1);
    assert_eq!(first["best"]["limit"], 2.0);
    assert!((first["best"]["gain"].as_f64().unwrap() - 2.6 / 3.0).abs() < 1e-12);
    assert_eq!(first["best"]["censored"], 0.0);
    let same = stdout(&[
        &file,
        "--repetitions",
        "3",
        "--format",
        "json",
        "--seed",
        "4",
        "--threads",
        "1",
    ]);
    assert_eq!(
        json,
        serde_json::from_str::<Value>(&same).unwrap(),
        "the scenario's seed is 4"
    );
}

#[test]
fn a_synthetic_scenario_is_the_papers_problem() {
    let folder = tempfile::tempdir().unwrap();
    let file = scenario(
        &folder,
        "target: {synthetic: {problem: indep, grid: m1}}\npolicy: ts\nseed: 1\n",
    );
    let from = |what: &[&str]| {
        let rest = [
            "--rounds",
            "400",
            "--repetitions",
            "3",
            "--format",
            "json",
            "--policy",
            "ts",
        ];
        let json: Value = serde_json::from_str(&stdout(&[what, &rest[..]].concat())).unwrap();
        json[0].clone()
    };
    let (ours, papers) = (
        from(&[&file]),
        from(&["paper", "--problem", "indep", "--grid", "m1"]),
    );
    for key in [
        "grid",
        "best",
        "regret",
        "censored",
        "simple_regret",
        "curve",
        "parameters",
    ] {
        assert_eq!(ours[key], papers[key], "{key}");
    }
    assert_eq!(ours["problem"], "scenario", "named after its file");
}

#[test]
fn scenarios_that_cannot_be_studied_are_refused_with_a_way_out() {
    let folder = tempfile::tempdir().unwrap();
    let command = scenario(
        &folder,
        "target: {command: [\"true\"]}\narms: {list: [{a: 1}]}\nlimits: {max: 1s, grid: 3}\nbudget: {rounds: 3}\n",
    );
    let refused = refusal(&[&command]);
    assert!(
        refused.contains("the target is `command`") && refused.contains("captime record"),
        "{refused}"
    );
    let beyond = scenario(&folder, &RECORDED.replace("10s]", "20s]"));
    assert!(refusal(&[&beyond]).contains("beyond the cutoff 10"));
    let broken = scenario(&folder, &RECORDED.replace("recorded:", "recorde:"));
    assert!(refusal(&[&broken]).contains("recorded"));
    assert!(refusal(&["no-such-file.yaml"]).contains("no-such-file.yaml"));
    let fine = scenario(&folder, RECORDED);
    assert!(refusal(&[&fine, "--problem", "indep"]).contains("`--problem` goes with `paper`"));
}

#[test]
fn a_bad_cell_is_named_with_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let file = scenario(&folder, RECORDED);
    fs::write(
        folder.path().join("runtimes.csv"),
        "instance,a,b\none,1,2\ntwo,fast,3\n",
    )
    .unwrap();
    let refused = refusal(&[&file]);
    assert!(
        refused.contains("runtimes.csv:3: column 2 is `fast`"),
        "{refused}"
    );
}
