//! `captime record`: measures every arm and writes a matrix.

use crate::run::SCRIPT;
use crate::test_run::{TestRun, expect, story};

#[test]
fn a_recording_goes_to_a_folder_of_the_scenarios_name_unless_another_is_given() {
    let test_run = TestRun::new(SCRIPT);
    let (line, _) = expect(&test_run.captime(&["record", "s.yaml", "--times", "2"]), 0);
    let folder = test_run.path().join("recorded/try");
    for name in ["consumption.csv", "reward.csv"] {
        let path = folder.join(name);
        assert!(line.contains(&path.display().to_string()), "{line}");
        let table = std::fs::read_to_string(path).unwrap();
        assert_eq!(table.lines().count(), 3, "{table}");
    }
    // The same command finds what is there, and more of it adds rows.
    expect(&test_run.captime(&["record", "s.yaml", "--times", "3"]), 0);
    let table = std::fs::read_to_string(folder.join("reward.csv")).unwrap();
    assert_eq!(table.lines().count(), 4, "{table}");
}

/// A scenario with two instances and arms that succeed, fail or never end.
const MIXED: &str = "
name: mixed
target:
  command: [sh, -c, '{what}; echo score=0.{a}', '{instance}', '{seed}']
  instances: list.txt
  reward: {stdout: 'score=([0-9.]+)'}
arms: {list: [{a: 5, what: 'true'}, {a: 6, what: exit 3}, {a: 7, what: sleep 1000}]}
limits: {of: wall, grid: [100ms, 300ms]}
price: {cost: x, penalty: 10 * x}
policy: rcucb
budget: {rounds: 1}
retries: 0
";

fn mixed() -> TestRun {
    let test_run = TestRun::new(MIXED);
    test_run.write("list.txt", "one\ntwo\n");
    test_run
}

#[test]
fn every_arm_runs_on_every_instance_at_the_largest_limit_with_one_seed_per_row() {
    let test_run = mixed();
    let args = ["record", "s.yaml", "--times", "2", "--slots", "2"];
    let (line, said) = expect(&test_run.captime(&args), 0);
    assert!(line.contains("cutoff: 0.3s"), "{line}");
    assert!(said.contains("12 of 12 runs"), "{said}");
    let folder = test_run.path().join("recorded/mixed");
    let table = |name: &str| -> Vec<Vec<String>> {
        let text = std::fs::read_to_string(folder.join(name)).unwrap();
        let rows = text.lines().skip(1);
        rows.map(|row| row.split(',').map(str::to_owned).collect())
            .collect()
    };
    let rewards = table("reward.csv");
    let names: Vec<&str> = rewards.iter().map(|row| row[0].as_str()).collect();
    assert_eq!(names, ["one", "two", "one#2", "two#2"]);
    for (reward, consumption) in rewards.iter().zip(table("consumption.csv")) {
        assert_eq!(reward[1..], ["0.5", "0", "0"]);
        assert!(consumption[1].parse::<f64>().unwrap() < 0.3);
        assert_eq!(consumption[2..], ["failed", "unsolved"]);
    }
    let (pulls, outcomes) = story(&folder);
    assert_eq!((pulls.len(), outcomes.len()), (12, 12));
    for (row, pulls) in pulls.chunks(3).enumerate() {
        let instance = Some(row as u32 % 2 + 1);
        assert!(pulls.iter().all(|pull| pull.instance == instance));
        assert!(pulls.iter().all(|pull| pull.seed == pulls[0].seed));
        assert!(pulls.iter().all(|pull| pull.limit.get() == 0.3));
    }
}

#[test]
fn a_complete_recording_is_left_alone_and_fewer_times_give_fewer_rows() {
    let test_run = TestRun::new(SCRIPT);
    expect(&test_run.captime(&["record", "s.yaml", "--times", "3"]), 0);
    let folder = test_run.path().join("recorded/try");
    let journal = std::fs::read(folder.join("journal.jsonl")).unwrap();
    let table = std::fs::read_to_string(folder.join("consumption.csv")).unwrap();
    expect(&test_run.captime(&["record", "s.yaml", "--times", "3"]), 0);
    assert_eq!(
        std::fs::read(folder.join("journal.jsonl")).unwrap(),
        journal
    );
    expect(&test_run.captime(&["record", "s.yaml", "--times", "2"]), 0);
    let fewer = std::fs::read_to_string(folder.join("consumption.csv")).unwrap();
    let rows: Vec<&str> = table.lines().take(3).collect();
    assert_eq!(fewer.lines().collect::<Vec<_>>(), rows);
    // Another scenario needs another folder.
    test_run.write("s.yaml", &SCRIPT.replace("seed: 7", "seed: 8"));
    let (_, said) = expect(&test_run.captime(&["record", "s.yaml"]), 2);
    assert!(said.contains("`--out`"), "{said}");
}

#[test]
fn scores_memory_and_names_of_arms_are_recorded_and_no_budget_is_missed() {
    let test_run = TestRun::new(
        "name: scored
target:
  command: [sh, -c, 'echo rmse={a}']
  reward: {stdout: 'rmse=(\\S+)', worst: 100, best: 0}
arms: {list: [{name: mild, a: 20}, {name: wild, a: 70}]}
limits: {of: wall, grid: [20s]}
",
    );
    let (_, said) = expect(&test_run.captime(&["record", "s.yaml", "--quiet"]), 0);
    assert!(!said.contains("budget"), "{said}");
    let read = |name: &str| {
        let path = test_run.path().join("recorded/scored").join(name);
        std::fs::read_to_string(path).unwrap()
    };
    assert_eq!(
        read("score.csv"),
        "instance,mild: a=20,wild: a=70\nrun-1,20,70\n"
    );
    assert_eq!(read("arms.csv"), "name,a\nmild,20\nwild,70\n");
    let memory = read("memory.csv");
    let row = memory.lines().nth(1).unwrap();
    let bytes: Vec<f64> = row
        .split(',')
        .skip(1)
        .map(|cell| cell.parse().unwrap())
        .collect();
    assert!(bytes.len() == 2 && bytes[0] > 1e4, "{memory}");
}
