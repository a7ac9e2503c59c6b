//! What a node runs is what this machine would run: forests, open spaces, limits, and the pulls of other programs.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, Permissions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use super::{
    CAPTIME, agent, is_root, lines, marker, nothing_is_left, nothing_is_lost, outcomes, signal,
    sleeping, start, through_mounts, wait_for_agents,
};
use crate::test_run::{TestRun, expect, houses};

/// The forest's data are read on the node, from the same path. A node with other data is not used.
#[test]
fn forests_are_fitted_on_nodes_that_have_the_same_data() {
    for isolation in ["thread", "process"] {
        let marker = marker(&format!("forest-{isolation}"));
        let mounts = "mkdir -p scratch && mount --bind other.csv data/houses.csv";
        let Some(different) = through_mounts(&marker, mounts) else {
            return;
        };
        let mounts = "mkdir -p scratch && mount -t tmpfs none data";
        let missing = through_mounts(&marker, mounts).unwrap();
        let good = agent(&marker, &[]);
        let test_run = TestRun::new(&format!(
            "name: night\ntarget:\n  forest: {{data: data/houses.csv, predict: price, isolation: {isolation}}}\n\
             arms: {{grid: {{trees: [3, 5]}}}}\nlimits: {{of: cpu, grid: [20s, 40s]}}\n\
             policy: uniform\nbudget: {{rounds: 12}}\nslots: {{launch: [{different}, {missing}, {good}]}}\n"
        ));
        test_run.write("data/houses.csv", &houses(60));
        // As long as the other, so that only its content differs.
        test_run.write("other.csv", &houses(60).replace("a,", "b,"));
        let (_, said) = test_run.run(0, &[]);
        assert!(
            said.contains("houses.csv` differs from the one where captime was started"),
            "{said}"
        );
        assert!(said.contains("houses.csv` is missing"), "{said}");
        nothing_is_lost(&test_run, 12);
        nothing_is_left(&marker);
    }
}

/// Each slot has CPUs of its own on the node, and the node says if another captime pinned its slots to the same.
#[test]
fn slots_are_pinned_on_the_node() {
    let marker = marker("pinned");
    let one = agent(&marker, &["env", "-u", "OMP_NUM_THREADS"]);
    let test_run = TestRun::new(&format!(
        "name: night\ntarget:\n  command: [sh, -c, 'test \"$(nproc)\" = 1', '{{t}}']\n  reward: {{exit: [0]}}\n\
         arms: {{grid: {{t: [1, 2]}}}}\nlimits: {{of: wall, grid: [20s]}}\npolicy: uniform\n\
         budget: {{rounds: 20}}\nslots: {{launch: [{one}, {one}]}}\n"
    ));
    let (_, said) = test_run.run(0, &[]);
    assert!(said.contains(", shares CPUs "), "{said}");
    nothing_is_lost(&test_run, 20);
    nothing_is_left(&marker);
}

/// A node whose agent may not make control groups, as in a job of a user to whom nothing was delegated, enforces limits without them. It
/// says so, and the session promises no more.
#[test]
fn each_node_says_how_it_enforces_limits() {
    let own = captime_limit::detect();
    if !is_root() || own.level != captime_limit::Level::Cgroup2 {
        return;
    }
    let marker = marker("levels");
    // In a place that another user can read.
    let place = tempfile::tempdir_in("/tmp").unwrap();
    let readable = Permissions::from_mode(0o755);
    fs::set_permissions(place.path(), readable.clone()).unwrap();
    let program = place.path().join("captime");
    fs::copy(CAPTIME, &program).unwrap();
    let other = [
        "setpriv",
        "--reuid=65534",
        "--regid=65534",
        "--clear-groups",
        "env",
        marker.as_str(),
    ];
    let other = other.iter().map(ToString::to_string);
    let other = other.chain([program.display().to_string(), "agent".into()]);
    let other = serde_json::to_string(&other.collect::<Vec<_>>()).unwrap();
    let nodes = format!("{{launch: [{other}, {}]}}", agent(&marker, &[]));
    let test_run = TestRun::new(&sleeping(&nodes, 20, "0.05"));
    fs::set_permissions(test_run.path(), readable).unwrap();
    let (said, _) = expect(&test_run.captime(&["check", "s.yaml"]), 0);
    let of = |node: &str| {
        said.lines()
            .find(|line| line.starts_with(&format!("node {node}: ")))
    };
    assert!(
        of("setpriv-1").is_some_and(|line| line.contains(", level subreaper, ")),
        "{said}"
    );
    assert!(
        of("env-2").is_some_and(|line| line.contains(", level cgroup2, ")),
        "{said}"
    );
    test_run.run(0, &["--quiet"]);
    nothing_is_lost(&test_run, 20);
    let session = lines(&test_run)
        .into_iter()
        .find(|line| line.get("session").is_some());
    let enforcement = session.unwrap()["enforcement"].clone();
    assert_eq!(enforcement["level"], "subreaper");
    let levels: BTreeSet<&str> = (enforcement["nodes"].as_array().unwrap().iter())
        .filter_map(|node| node["level"].as_str())
        .collect();
    assert_eq!(levels, BTreeSet::from(["cgroup2", "subreaper"]));
    nothing_is_left(&marker);
}

/// Guards hold on the node, and it enforces what this machine would.
#[test]
fn a_node_enforces_what_this_machine_does() {
    let marker = marker("guards");
    let session = |slots: &str| {
        let test_run = TestRun::new(&format!(
            "name: night\ntarget:\n  command: [sh, -c, 'head -c {{size}} /dev/zero | tail | wc -c']\n  \
             reward: {{exit: [0]}}\narms: {{list: [{{size: 1000}}, {{size: 400000000}}]}}\n\
             limits: {{of: wall, grid: [60s], memory: 60MiB}}\npolicy: uniform\nbudget: {{rounds: 4}}\nslots: {slots}\n"
        ));
        test_run.run(0, &["--quiet"]);
        let outcomes = outcomes(&test_run);
        let of_memory = |outcome: &&Value| outcome["guard"] == "memory";
        assert_eq!(outcomes.iter().filter(of_memory).count(), 2, "{outcomes:?}");
        let session = lines(&test_run)
            .into_iter()
            .find(|line| line.get("session").is_some());
        let enforcement = session.unwrap()["enforcement"].clone();
        ["level", "memory", "contain"].map(|key| enforcement[key].clone())
    };
    let here = session("1");
    let there = session(&format!("{{launch: [{}]}}", agent(&marker, &[])));
    assert_eq!(here, there);
    nothing_is_left(&marker);
}

const OPEN: &str = "name: night\ntarget:\n  command: [./solve, \"{t}\"]\n  reward: {stdout: 'score=(\\S+)', worst: 0, best: 1}\n\
                    arms:\n  space:\n    t: {real: [0.1, 0.9], default: 0.5}\nlimits: {of: wall, grid: [10s, 20s]}\n";

/// Arms of an open space reach every node, also one that comes back after it was lost.
#[test]
fn arms_of_an_open_space_reach_their_node() {
    let marker = marker("open");
    let one = agent(&marker, &[]);
    let test_run = TestRun::new(&format!(
        "{OPEN}budget: {{rounds: 60}}\nslots: {{launch: [{one}, {one}]}}\n"
    ));
    test_run.program("solve", "#!/bin/sh\nsleep 0.1\necho score=$1\n");
    let child = start(&test_run);
    test_run.wait_for_outcomes("night", 20);
    signal(wait_for_agents(&marker, 2)[0], Signal::SIGKILL);
    expect(&child.wait_with_output().unwrap(), 0);
    nothing_is_lost(&test_run, 60);
    let (table, _) = expect(&test_run.captime(&["export", "night"]), 0);
    let mut rows = csv::Reader::from_reader(table.as_bytes());
    let heads = rows.headers().unwrap().clone();
    let column = |name: &str| heads.iter().position(|head| head == name).unwrap();
    let (value, score) = (column("t"), column("score"));
    let mut arms = BTreeSet::new();
    for row in rows.records() {
        let row = row.unwrap();
        let number = |column: usize| row[column].parse::<f64>().unwrap();
        assert!((number(value) - number(score)).abs() < 1e-12, "{row:?}");
        arms.insert(row[value].to_owned());
    }
    assert!(arms.len() > 2, "{arms:?}");
    nothing_is_left(&marker);
}

/// Every line may name another configuration, and a node must not take one for the other.
#[test]
fn pulls_of_another_program_run_on_nodes() {
    let marker = marker("pulls");
    let one = agent(&marker, &[]);
    let test_run = TestRun::new(&format!("{OPEN}slots: {{launch: [{one}]}}\n"));
    test_run.program("solve", "#!/bin/sh\necho score=$1\n");
    let mut child = test_run
        .command(&["pull", "s.yaml", "--lines"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let values = [0.2, 0.7, 0.2, 0.3];
    for value in values {
        writeln!(stdin, "{}", json!({"configuration": {"t": value}})).unwrap();
    }
    writeln!(stdin, "{}", json!({"arm": 1})).unwrap();
    drop(stdin);
    let (answers, _) = expect(&child.wait_with_output().unwrap(), 0);
    let mut scores = BTreeMap::new();
    for line in answers.lines() {
        let answer: Value = serde_json::from_str(line).unwrap();
        assert_eq!(answer["node"], "env-1", "{answer}");
        scores.insert(answer["id"].as_u64().unwrap(), answer["score"].clone());
    }
    let wanted = values.iter().chain(&[0.5]);
    let wanted: BTreeMap<u64, Value> = (1..).zip(wanted.map(|value| json!(value))).collect();
    assert_eq!(scores, wanted);
    nothing_is_left(&marker);
}

/// `check --try` runs its pulls where the run would run them.
#[test]
fn check_tries_pulls_on_the_nodes() {
    let marker = marker("try");
    let test_run = TestRun::new(&sleeping(
        &format!("{{launch: [{}]}}", agent(&marker, &[])),
        10,
        "0.1",
    ));
    let (said, _) = expect(&test_run.captime(&["check", "s.yaml", "--try", "2"]), 0);
    assert_eq!(said.matches("node env-1: ").count(), 1, "{said}");
    assert_eq!(said.matches("\nnode      env-1\n").count(), 2, "{said}");
    assert!(!test_run.path().join("runs").exists());
    let folders = fs::read_dir(test_run.path()).unwrap().count();
    assert_eq!(folders, 1, "only the scenario is there");
    nothing_is_left(&marker);
}

/// A node has a slot for every `threads` of the CPUs that it was given, whether the kernel limits them or Slurm counts them.
#[test]
fn slots_are_the_given_cpus_divided_by_threads() {
    let cpus = captime::cluster::given_cpus().count;
    for (before, threads, slots) in [
        (vec!["env"], 1, cpus),
        (vec!["env"], cpus, 1),
        (vec!["env"], cpus + 1, 1),
        (vec!["env", "SLURM_CPUS_ON_NODE=1"], 1, 1),
        (vec!["taskset", "--cpu-list", "0"], 1, 1),
    ] {
        let marker = marker("threads");
        let test_run = TestRun::new(&format!(
            "name: night\ntarget:\n  forest: {{data: houses.csv, predict: price, threads: {threads}}}\n\
             arms: {{grid: {{trees: [3, 5]}}}}\nlimits: {{of: cpu, grid: [20s, 40s]}}\n\
             budget: {{rounds: 12}}\nslots: {{launch: [{}]}}\n",
            agent(&marker, &before)
        ));
        test_run.write("houses.csv", &houses(60));
        let (said, _) = expect(&test_run.captime(&["check", "s.yaml"]), 0);
        let plural = if slots == 1 { "" } else { "s" };
        let wanted = format!("-1: {slots} slot{plural}, ");
        assert!(said.contains(&wanted), "{before:?} {threads}: {said}");
        nothing_is_left(&marker);
    }
}

/// The configuration of an arm is sent before its first pull on an agent, and never again.
#[test]
fn a_configuration_is_sent_once() {
    let marker = marker("once");
    let line = format!("tee sent | env {marker} {CAPTIME} agent");
    let test_run = TestRun::new(&format!(
        "{OPEN}budget: {{rounds: 60}}\nslots: {{launch: [[sh, -c, {line:?}]]}}\n"
    ));
    test_run.program("solve", "#!/bin/sh\necho score=$1\n");
    test_run.run(0, &["--quiet"]);
    nothing_is_lost(&test_run, 60);
    let sent = fs::read_to_string(test_run.path().join("sent")).unwrap();
    let (mut arms, mut pulls) = (BTreeSet::new(), 0);
    for frame in sent.lines() {
        // What comes before the message has 20 bytes.
        let message: Value = serde_json::from_str(&frame[20..]).unwrap();
        if let Some(arm) = message.get("arm") {
            assert!(arms.insert(arm["arm"].as_u64()), "{frame}");
        } else if let Some(pull) = message.get("pull") {
            pulls += 1;
            assert!(frame.len() < 200, "{frame}");
            let arm = pull["pull"]["arm"].as_u64();
            assert!(arms.contains(&arm), "{frame}");
        }
    }
    assert_eq!(pulls, 60);
    assert!((2..60).contains(&arms.len()), "{arms:?}");
    nothing_is_left(&marker);
}
