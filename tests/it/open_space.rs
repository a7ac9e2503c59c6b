//! Open spaces from outside: arms that are opened as they are pulled.

use crate::test_run::{TestRun, decisions_follow, expect, story};

const SCENARIO: &str = "
name: wide
target:
  command: [./solve, '--decay={decay}', '[--alpha={alpha}]', '{params}', '{instance}']
  instances: [a, b, c, d]
  reward: {exit: [0]}
arms:
  space:
    decay: {real: [0.5, 1.0], default: 0.6}
    restarts: {integer: [1, 100000], scale: log, default: 100}
    effort: {ordered: [low, medium, high], default: medium}
    heuristic: {choice: [vsids, vmtf, chb], default: vmtf}
    alpha: {real: [0.01, 1.0], scale: log, default: 0.4, when: heuristic == chb}
    moms: {choice: [true, false], default: false, argument: --moms}
  forbid: [decay * restarts > 50000]
  start: [{decay: 0.9, heuristic: chb}]
limits: {grid: [1s, 3s, 10s]}
budget: {rounds: 60}
slots: 2
pin: never
";

fn wide(scenario: &str) -> TestRun {
    let test_run = TestRun::new(scenario);
    test_run.program("solve", "#!/bin/sh\nexit 0\n");
    test_run
}

#[test]
fn a_run_that_is_killed_again_and_again_decides_as_if_it_had_not_been() {
    let test_run = wide(SCENARIO);
    for outcomes in [1, 7, 20, 45] {
        let mut child = test_run.start(&["--quiet"]);
        test_run.wait_for_outcomes("wide", outcomes);
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let (summary, _) = test_run.run(0, &[]);
    assert!(summary.contains("drawn arms is in the top"), "{summary}");
    let folder = test_run.run_folder("wide");
    decisions_follow(&folder);
    assert_eq!(story(&folder).1.len(), 60);
}

#[test]
fn readers_take_the_arms_from_the_journal() {
    let test_run = wide(SCENARIO);
    test_run.run(0, &["--quiet"]);
    let said = |args: &[&str]| expect(&test_run.captime(args), 0).0;
    let best: serde_json::Value =
        serde_json::from_str(&said(&["best", "wide", "--format", "json"])).unwrap();
    assert!(best["configuration"]["restarts"].is_u64(), "{best}");
    assert!(said(&["best", "wide"]).contains("from      "));
    let first = said(&["explain", "wide", "1"]);
    assert!(first.contains("arm 1: the default"), "{first}");
    let second = said(&["explain", "wide", "2"]);
    assert!(second.contains("arm 2: given by `start`"), "{second}");
    let table = said(&["export", "wide", "--format", "csv"]);
    let header = table.lines().next().unwrap();
    let parameters = ",decay,restarts,effort,heuristic,alpha,moms";
    assert!(header.ends_with(parameters), "{header}");
    let row = table.lines().nth(1).unwrap();
    assert!(row.ends_with(",0.6,100,medium,vmtf,,false"), "{row}");
    // A test needs the arms that were opened, by their numbers.
    let tested = said(&["test", "wide", "--arms", "default,7,17", "--format", "json"]);
    let tested: serde_json::Value = serde_json::from_str(&tested).unwrap();
    let arms = tested["arms"].as_array().unwrap();
    let numbers: Vec<_> = arms
        .iter()
        .map(|arm| arm["arm"].as_u64().unwrap())
        .collect();
    assert_eq!(numbers, [1, 7, 17]);
    assert!(
        arms.iter().all(|arm| arm["values"]["runs"] == 4),
        "{tested}"
    );
    said(&["report", "wide"]);
    let page = std::fs::read_to_string(test_run.run_folder("wide").join("report.html")).unwrap();
    assert!(page.contains("restarts"));
}

#[test]
fn check_shows_the_default_and_two_drawn_configurations() {
    let test_run = wide(SCENARIO);
    let (shown, _) = expect(&test_run.captime(&["check", "s.yaml"]), 0);
    assert!(
        shown.contains("an open space: 6 parameters, 1 of them conditional"),
        "{shown}"
    );
    assert!(
        shown.contains("./solve --decay=0.6 --restarts=100 --effort=medium --heuristic=vmtf"),
        "{shown}"
    );
    assert_eq!(
        shown.matches("an arm drawn from the space").count(),
        2,
        "{shown}"
    );
    assert_eq!(shown.matches("./solve --decay=").count(), 3, "{shown}");
}

#[test]
fn what_needs_a_list_of_arms_says_so_and_how_to_get_one() {
    let test_run = wide(SCENARIO);
    for args in [
        &["record", "s.yaml"][..],
        &["study", "s.yaml", "--out", "x", "--policy", "rcucb"],
    ] {
        let (_, said) = expect(&test_run.captime(args), 2);
        assert!(said.contains("needs a finite list of arms"), "{said}");
        assert!(said.contains("add `sample: "), "{said}");
    }
    let other = wide(&format!("{SCENARIO}policy: ts\n"));
    let (_, said) = expect(&other.captime(&["check", "s.yaml"]), 2);
    assert!(
        said.contains("the policy `ts` needs a finite list"),
        "{said}"
    );
    assert!(said.contains("add `sample: 10`"), "{said}");
    // On a sample everything works.
    let sampled = wide(&SCENARIO.replace("  start:", "  sample: 3\n  start:"));
    expect(&sampled.captime(&["record", "s.yaml"]), 0);
}

#[test]
fn a_study_plays_on_an_open_space() {
    let test_run = wide(SCENARIO);
    let args = ["study", "s.yaml", "--out", "x", "--rounds", "12", "--quiet"];
    let (shown, _) = expect(&test_run.captime(&args), 0);
    assert!(shown.contains("levels"), "{shown}");
    decisions_follow(&test_run.path().join("x/runs/levels-1"));
}
