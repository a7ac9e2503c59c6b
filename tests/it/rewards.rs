//! What is read from a pull, and what it is given: the output up to its last byte, seeds and instances.

use std::fmt::Write;
use std::fs;
use std::process::Stdio;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::test_run::{
    TestRun, alive, decisions_follow, expect, houses, nothing_is_left, send, story, until,
};

/// A run of this command, which says 0.5 somewhere.
fn saying(command: &str, reward: &str) -> TestRun {
    TestRun::new(&format!(
        "
name: says
target:
  command: [sh, -c, '{command}']
  reward: {reward}
arms: {{list: [{{name: a}}, {{name: b}}]}}
limits: {{of: wall, grid: [60s]}}
price: {{cost: x, penalty: 10 * x}}
policy: uniform
budget: {{rounds: 10}}
slots: 2
pin: never
stop_on_first_failures: false
"
    ))
}

#[test]
fn a_reward_is_read_however_late_it_comes_and_whoever_holds_the_pipe() {
    let marker = format!("holds-{}", std::process::id());
    let score = "{stdout: 'score=([0-9.]+)'}";
    for (command, reward) in [
        // Nothing after it, not even a newline.
        ("printf score=0.5", score),
        // In the last write of many, more than a pipe holds.
        (
            "head -c 900000 /dev/zero | tr \"\\\\0\" x; echo; printf score=0.5",
            score,
        ),
        // Written by a child that is over when its parent is.
        ("(printf score=0.5)", score),
        // A grandchild keeps the pipe open, and would for long.
        ("sleep 1006 & printf score=0.5", score),
        (
            "(trap \"\" TERM HUP; sleep 1006) & echo x; echo score=0.5 >&2",
            "{stderr: 'score=([0-9.]+)'}",
        ),
    ] {
        let test_run = saying(&format!(": {marker}; {command}"), reward);
        let since = Instant::now();
        test_run.run(0, &["--quiet"]);
        assert!(since.elapsed() < Duration::from_mins(1), "{command}");
        let (_, outcomes) = story(&test_run.run_folder("says"));
        for outcome in &outcomes {
            assert_eq!(outcome.reward, Some(0.5), "{command}: {outcome:?}");
        }
        assert_eq!(outcomes.len(), 10);
        nothing_is_left(&marker);
        nothing_is_left("sleep 1006");
    }
}

#[test]
fn a_pipe_where_a_file_should_be_is_a_failure_not_a_wait() {
    let test_run = saying(
        "rm -f out.$$; mkfifo {scratch}/out",
        "{file: \"{scratch}/out\"}",
    );
    let since = Instant::now();
    let (summary, _) = test_run.run(3, &["--quiet"]);
    assert!(since.elapsed() < Duration::from_mins(1));
    assert!(summary.contains("is not a plain file"), "{summary}");
}

#[test]
fn a_pull_that_runs_again_has_the_same_seed_and_instance() {
    let marker = format!("seeded-{}", std::process::id());
    let test_run = TestRun::new(&format!(
        "
name: seeds
target:
  command: [sh, -c, ': {marker}; echo {{round}} {{a}} {{seed}} {{instance}} >> told; if [ -e wait ]; then sleep 1000; fi; echo 0.{{a}}']
  instances: [red, green, blue, white, black]
  reward: {{stdout: '^([0-9.]+)'}}
arms: {{grid: {{a: [1, 5, 9]}}}}
limits: {{of: wall, grid: [500s]}}
price: {{cost: x, penalty: 10 * x}}
policy: rcucb
budget: {{rounds: 12}}
slots: 2
pin: never
"
    ));
    let told = |count: usize| {
        let since = Instant::now();
        loop {
            let text = fs::read_to_string(test_run.path().join("told")).unwrap_or_default();
            let lines: Vec<String> = text.lines().map(str::to_owned).collect();
            if lines.len() >= count {
                return lines;
            }
            assert!(since.elapsed() < Duration::from_mins(1), "{lines:?}");
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    test_run.write("wait", "");
    // Killed, stopped, and undisturbed: the two pulls in flight get the same input every time.
    let mut child = test_run.start(&["--quiet"]);
    let first: std::collections::BTreeSet<String> = told(2).into_iter().collect();
    child.kill().unwrap();
    child.wait().unwrap();
    nothing_is_left(&marker);
    let child = test_run.start(&["--quiet"]);
    let second = told(4)[2..].iter().cloned().collect();
    assert_eq!(first, second);
    send(&child, Signal::SIGTERM);
    expect(&child.wait_with_output().unwrap(), 130);
    fs::remove_file(test_run.path().join("wait")).unwrap();
    test_run.run(0, &["--quiet"]);
    let all = told(16);
    assert_eq!(all.len(), 16, "two pulls ran three times");
    for line in &first {
        let times = all.iter().filter(|other| *other == line).count();
        assert_eq!(times, 3, "{line} in {all:?}");
    }
    // And their input is what the journal says.
    let (pulls, _) = story(&test_run.run_folder("seeds"));
    let names = ["red", "green", "blue", "white", "black"];
    for pull in pulls {
        let name = names[pull.instance.unwrap() as usize - 1];
        let values = [1, 5, 9];
        let line = format!(
            "{} {} {} {name}",
            pull.round,
            values[pull.arm.index()],
            pull.seed.unwrap()
        );
        assert!(all.contains(&line), "{line} in {all:?}");
    }
    decisions_follow(&test_run.run_folder("seeds"));
}

/// A run in two sessions, without naming a policy.
fn by_default(test_run: &TestRun, name: &str) -> Value {
    let child = test_run.start(&["--quiet"]);
    test_run.wait_for_outcomes(name, 15);
    send(&child, Signal::SIGINT);
    let output = child.wait_with_output().unwrap();
    assert!(matches!(output.status.code(), Some(0 | 130)), "{output:?}");
    test_run.run(0, &["--quiet"]);
    let folder = test_run.run_folder(name);
    let (pulls, outcomes) = story(&folder);
    assert_eq!((pulls.len(), outcomes.len()), (80, 80));
    decisions_follow(&folder);
    let journal = fs::read_to_string(test_run.journal(name)).unwrap();
    let header = journal.lines().next().unwrap();
    assert!(header.contains("levels"), "the default: {header}");
    let (best, _) = expect(&test_run.captime(&["best", name, "--format", "json"]), 0);
    expect(&test_run.captime(&["explain", name]), 0);
    expect(&test_run.captime(&["report", name]), 0);
    serde_json::from_str(&best).unwrap()
}

#[test]
fn the_default_policy_tunes_commands_on_instances() {
    let test_run = TestRun::new(
        "
name: default
target:
  command: [sh, -c, 'sleep 0.0{a}; echo 0.{a}{instance}']
  instances: ['1', '2', '3']
  reward: {stdout: '([0-9.]+)'}
arms: {grid: {a: [1, 2, 4, 5], b: [x, y]}}
limits: {of: wall, grid: [2s, 20s]}
price: {cost: x / 100, penalty: x}
budget: {rounds: 80}
slots: 2
pin: never
seed: 3
",
    );
    let best = by_default(&test_run, "default");
    assert!(best["configuration"]["a"].as_u64() >= Some(4), "{best}");
    let (pulls, _) = story(&test_run.run_folder("default"));
    let met: std::collections::BTreeSet<_> = pulls.iter().map(|pull| pull.instance).collect();
    assert_eq!(met.len(), 3);
}

#[test]
fn the_default_policy_tunes_a_forest() {
    let test_run = TestRun::new(
        "
name: default
target: {forest: {data: houses.csv, predict: price}}
arms: {grid: {trees: [1, 20, 60], mtry: [1, 2], min_node_size: [3, 100]}}
limits: {of: work, grid: [20000, 100000, 5000000]}
budget: {rounds: 80}
slots: 2
pin: never
seed: 3
",
    );
    test_run.write("houses.csv", &houses(300));
    let best = by_default(&test_run, "default");
    assert!(best["command"].as_str().unwrap().contains("captime forest"));
}

#[test]
fn names_with_commas_reach_a_forest_in_a_process() {
    let test_run = TestRun::new(
        "
name: commas
target:
  forest: {data: rooms.csv, predict: price, isolation: process, drop: ['id, old', id], levels: {size: ['s, small', m, 'l \"large\"']}}
arms: {grid: {trees: [5, 6]}}
limits: {of: cpu, grid: [20s]}
price: {cost: x, penalty: 10 * x}
policy: uniform
budget: {rounds: 4}
slots: 1
pin: never
",
    );
    let mut rows = String::from("\"id, old\",id,size,price\n");
    for row in 0..60 {
        let size = ["\"s, small\"", "m", "\"l \"\"large\"\"\""][row % 3];
        writeln!(rows, "{row},{row},{size},{}", row % 3).unwrap();
    }
    test_run.write("rooms.csv", &rows);
    let (summary, _) = test_run.run(0, &["--quiet"]);
    assert!(summary.contains("0.0 % failed"), "{summary}");
    // In a thread, where nothing has to be quoted, the same comes out.
    let (_, apart) = story(&test_run.run_folder("commas"));
    let text = fs::read_to_string(test_run.path().join("s.yaml")).unwrap();
    test_run.write("s.yaml", &text.replace("process", "thread"));
    test_run.run(0, &["--quiet", "--fresh"]);
    let (_, together) = story(&test_run.run_folder("commas-2"));
    let rewards = |all: &[captime::journal::OutcomeRecord<'_>]| -> Vec<Option<f64>> {
        all.iter().map(|one| one.reward).collect()
    };
    assert_eq!(rewards(&apart), rewards(&together));
    assert!(apart[0].reward.unwrap() > 0.9, "the size says it all");
}

#[test]
fn a_recorded_run_keeps_the_test_back_and_names_its_instances() {
    let test_run = TestRun::new(
        "
name: replay
target: {recorded: {consumption: runs.csv, cutoff: 10s, test: [held, out]}}
limits: {of: wall, grid: [5s, 10s]}
price: {cost: x, penalty: 10 * x}
policy: rcucb
budget: {rounds: 60}
",
    );
    test_run.write(
        "runs.csv",
        "instance,a,b\nfirst,1,2\nheld,10,10\nsecond,3,4\nout,10,10\nthird,2,1\n",
    );
    test_run.run(0, &["--quiet"]);
    let (rows, _) = expect(
        &test_run.captime(&["export", "replay", "--format", "jsonl"]),
        0,
    );
    let met: std::collections::BTreeSet<String> = rows
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["instance"].to_string())
        .collect();
    let names = ["\"first\"", "\"second\"", "\"third\""].map(str::to_owned);
    assert_eq!(met, names.into());
    let (page, _) = expect(
        &test_run.captime(&["report", "replay", "--format", "json", "--out", "-"]),
        0,
    );
    assert!(page.contains("\"second\""), "instances by name");
    // A run that holds out every instance has nothing to tune on.
    let text = fs::read_to_string(test_run.path().join("s.yaml")).unwrap();
    test_run.write(
        "s.yaml",
        &text.replace("[held, out]", "[first, held, second, out, third]"),
    );
    let (_, message) = test_run.run(2, &["--fresh"]);
    assert!(message.contains("test"), "{message}");
}

#[test]
fn whatever_runs_pulls_ends_in_good_order_by_any_signal() {
    let marker = format!("stopped-{}", std::process::id());
    let test_run = saying(&format!(": {marker}; sleep 1007"), "{stdout: '([0-9.]+)'}");
    let commands: [(&[&str], &str); 3] = [
        (&["check", "s.yaml", "--try", "2"], "interrupted"),
        (
            &["record", "s.yaml", "--out", "matrix"],
            "run the same command to resume",
        ),
        (
            &["study", "s.yaml", "--out", "study"],
            "run the same command to resume",
        ),
    ];
    for (command, said) in commands {
        for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
            let mut child = test_run
                .command(command)
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap();
            until(&mut child, "a pull", || !alive(&marker).is_empty());
            send(&child, signal);
            let (_, message) = expect(&child.wait_with_output().unwrap(), 130);
            assert!(message.contains(said), "{command:?}, {signal}: {message}");
            nothing_is_left(&marker);
        }
    }
}
