//! Pulls on other nodes. Here a node is an agent that `launch` starts on this machine; `slurm` and `ssh` use the real engines.

mod slurm;
mod ssh;
mod work;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rand::{RngExt, SeedableRng};
use serde_json::Value;

use crate::test_run::{TestRun, decisions_follow, expect, test_seed};

const CAPTIME: &str = env!("CARGO_BIN_EXE_captime");

/// Marks every process that a test starts on its nodes, by a variable that all of them inherit.
fn marker(name: &str) -> String {
    format!("CAPTIME_TEST_MARK={name}-{}", std::process::id())
}

/// The processes that carry a mark.
fn marked(marker: &str) -> Vec<(i32, String)> {
    let mut found = vec![];
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let Ok(process) = entry.file_name().to_string_lossy().parse::<i32>() else {
            continue;
        };
        let environment = fs::read(entry.path().join("environ")).unwrap_or_default();
        let is_marked = environment
            .split(|byte| *byte == 0)
            .any(|variable| variable == marker.as_bytes());
        if is_marked {
            let command = fs::read(entry.path().join("cmdline")).unwrap_or_default();
            let command = String::from_utf8_lossy(&command).replace('\0', " ");
            found.push((process, command));
        }
    }
    found
}

/// The agents among them: processes of captime itself, not of the engine that connects to it.
fn agents(marker: &str) -> Vec<i32> {
    let is_agent = |(_, command): &(i32, String)| {
        let mut words = command.split_whitespace();
        words.next().is_some_and(|word| word.ends_with("captime")) && words.next() == Some("agent")
    };
    marked(marker)
        .into_iter()
        .filter(is_agent)
        .map(|(process, _)| process)
        .collect()
}

/// Nothing of a test may be left on any node.
fn nothing_is_left(marker: &str) {
    let since = Instant::now();
    loop {
        let left = marked(marker);
        if left.is_empty() {
            return;
        }
        assert!(since.elapsed() < Duration::from_secs(30), "left: {left:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A launch command for an agent with this mark, behind these words.
fn agent(marker: &str, before: &[&str]) -> String {
    let mut words: Vec<&str> = before.to_vec();
    words.extend(["env", marker, CAPTIME, "agent"]);
    serde_json::to_string(&words).unwrap()
}

/// A scenario whose pulls sleep for a moment, on these nodes.
fn sleeping(nodes: &str, rounds: u32, seconds: &str) -> String {
    format!(
        "name: night\ntarget:\n  command: [sleep, \"{{t}}\"]\n  reward: {{exit: [0]}}\n\
         arms: {{grid: {{t: [{seconds}, {seconds}1]}}}}\nlimits: {{of: wall, grid: [10s, 20s]}}\n\
         policy: uniform\nbudget: {{rounds: {rounds}}}\nslots: {nodes}\n"
    )
}

/// The lines of the journal, as JSON.
fn lines(test_run: &TestRun) -> Vec<Value> {
    let text = fs::read_to_string(test_run.journal("night")).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn outcomes(test_run: &TestRun) -> Vec<Value> {
    let all = lines(test_run).into_iter();
    all.filter(|line| line.get("outcome").is_some()).collect()
}

/// Every round has exactly one outcome, and each is a reward.
fn nothing_is_lost(test_run: &TestRun, rounds: u64) {
    let mut seen: BTreeMap<u64, u32> = BTreeMap::new();
    for outcome in outcomes(test_run) {
        *seen
            .entry(outcome["outcome"].as_u64().unwrap())
            .or_default() += 1;
        assert!(outcome.get("reward").is_some(), "{outcome}");
        assert!(outcome.get("node").is_some(), "{outcome}");
    }
    let wanted: BTreeMap<u64, u32> = (1..=rounds).map(|round| (round, 1)).collect();
    assert_eq!(seen, wanted);
    decisions_follow(&test_run.run_folder("night"));
}

fn wait_for_agents(marker: &str, count: usize) -> Vec<i32> {
    let since = Instant::now();
    loop {
        let there = agents(marker);
        if there.len() >= count {
            return there;
        }
        assert!(since.elapsed() < Duration::from_mins(1), "{there:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn start(test_run: &TestRun) -> Child {
    test_run.start(&[])
}

fn signal(process: i32, signal: Signal) {
    let _ = kill(Pid::from_raw(process), signal);
}

#[test]
fn a_remote_pull_can_do_what_a_local_one_can() {
    let marker = marker("all");
    let nodes = format!(
        "{{launch: [{}, {{command: {}, slots: 3}}]}}",
        agent(&marker, &[]),
        agent(&marker, &[])
    );
    let test_run = TestRun::new(&format!(
        "name: night\ntarget:\n  command: [./solve, \"{{t}}\", \"{{scratch}}\", \"{{instance}}\", \"{{seed}}\"]\n  \
         reward: {{file: \"{{scratch}}/score\", worst: 0, best: 10}}\n  stdin: {{text: \"t is {{t}}\"}}\n  \
         env: {{COLOUR: \"red-{{t}}\"}}\n  instances: [a, b]\n\
         arms: {{grid: {{t: [1, 2]}}}}\nlimits: {{of: wall, grid: [10s, 20s], cpu: 30s, memory: 500MiB}}\n\
         policy: uniform\nbudget: {{rounds: 40}}\nslots: {nodes}\n"
    ));
    test_run.program(
        "solve",
        "#!/bin/sh\nread -r line\n[ \"$line\" = \"t is $1\" ] || [ -z \"$line\" ] || exit 3\n\
         [ \"$COLOUR\" = \"red-$1\" ] || exit 4\ncase $3 in a|b) ;; *) exit 5;; esac\n\
         case $2 in */captime-agent-*) ;; *) exit 6;; esac\necho 5 > \"$2/score\"\n",
    );
    test_run.run(0, &["--quiet"]);
    nothing_is_lost(&test_run, 40);
    let outcomes = outcomes(&test_run);
    assert!(outcomes.iter().all(|outcome| outcome["reward"] == 0.5));
    // Both nodes took part, and the table names them.
    let (table, _) = expect(&test_run.captime(&["export", "night"]), 0);
    let column = table.lines().next().unwrap().split(',');
    let column = column.into_iter().position(|name| name == "node").unwrap();
    for node in ["env-1", "env-2"] {
        let mut named = table.lines().map(|line| line.split(',').nth(column));
        assert!(named.any(|cell| cell == Some(node)), "{table}");
    }
    // The session says what each node is.
    let session = lines(&test_run)
        .into_iter()
        .find(|line| line.get("session").is_some());
    let nodes = session.unwrap()["enforcement"]["nodes"].clone();
    let nodes = nodes.as_array().unwrap();
    assert!(nodes.iter().any(|node| node["slots"] == 3), "{nodes:?}");
    assert!(nodes[0]["machine"]["memory"].as_u64().unwrap() > 0);
    nothing_is_left(&marker);
}

/// Without a terminal, a line for every node now and then.
#[test]
fn progress_has_a_line_for_every_node() {
    let marker = marker("progress");
    let nodes = format!("{{launch: [{0}, {0}]}}", agent(&marker, &[]));
    let text = sleeping(&nodes, 60, "0.2").replace("{rounds: 60}", "{wall: 8s}");
    let test_run = TestRun::new(&text);
    let (summary, said) = test_run.run(0, &[]);
    for node in ["env-1", "env-2"] {
        let is_its = |line: &str| {
            line.starts_with(&format!("captime: node {node}: ")) && line.contains(" rounds")
        };
        assert!(said.lines().any(is_its), "{said}");
        assert!(
            summary.contains(&format!("node      {node}: ")),
            "{summary}"
        );
    }
    nothing_is_left(&marker);
}

#[test]
fn check_prints_a_line_for_every_node() {
    let marker = marker("check");
    let nodes = format!(
        "{{launch: [{}, [sh, -c, \"echo Welcome, stranger; sleep 1\"], [no-such-engine]]}}",
        agent(&marker, &[])
    );
    let test_run = TestRun::new(&sleeping(&nodes, 10, "0.1"));
    let (said, _) = expect(&test_run.captime(&["check", "s.yaml"]), 0);
    assert!(said.contains("\n\nnode env-1: "), "{said}");
    assert!(
        said.contains(
            "node sh-2 cannot be used: unexpected output on the stream: `Welcome, stranger`"
        ),
        "{said}"
    );
    assert!(
        said.contains("node no-such-engine-3 cannot be used: cannot start `no-such-engine`"),
        "{said}"
    );
    nothing_is_left(&marker);
}

#[test]
fn another_version_is_an_error_that_names_both() {
    let hello = serde_json::json!({"hello": {"captime": "9.9.9"}});
    let frame = captime::cluster::frames::encode(&hello).unwrap();
    let test_run = TestRun::new(&sleeping(
        "{launch: [[sh, -c, \"cat frame; sleep 5\"]]}",
        10,
        "0.1",
    ));
    fs::write(test_run.path().join("frame"), frame).unwrap();
    let (_, said) = test_run.run(1, &[]);
    assert!(said.contains("captime 9.9.9 is installed there"), "{said}");
    assert!(said.contains(env!("CARGO_PKG_VERSION")), "{said}");
}

#[test]
fn an_agent_that_is_killed_loses_only_what_it_ran() {
    let marker = marker("killed");
    let one = agent(&marker, &[]);
    let test_run = TestRun::new(&sleeping(&format!("{{launch: [{one}, {one}]}}"), 60, "0.2"));
    let child = start(&test_run);
    test_run.wait_for_outcomes("night", 8);
    let victim = wait_for_agents(&marker, 2)[0];
    signal(victim, Signal::SIGKILL);
    expect(&child.wait_with_output().unwrap(), 0);
    nothing_is_lost(&test_run, 60);
    let lost: Vec<Value> = lines(&test_run)
        .into_iter()
        .filter(|line| line.get("lost").is_some())
        .collect();
    assert!((1..=4).contains(&lost.len()), "{lost:?}");
    assert!(
        lost.iter().all(|line| line.get("node").is_some()),
        "{lost:?}"
    );
    nothing_is_left(&marker);
}

/// Everything of a node stops at once, as if its power were cut; its stream stays open and silent.
#[test]
fn a_silent_node_is_given_up_and_leaves_when_it_wakes() {
    let marker = marker("silent");
    let one = agent(&marker, &[]);
    let nodes = format!("{{launch: [{one}, {one}], lost_after: 2s}}");
    let test_run = TestRun::new(&sleeping(&nodes, 60, "0.2"));
    let child = start(&test_run);
    test_run.wait_for_outcomes("night", 8);
    let victim = wait_for_agents(&marker, 2)[0];
    let tree = |parent: i32| -> Vec<i32> {
        let all = marked(&marker).into_iter().map(|(process, _)| process);
        all.filter(|&process| {
            let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
            let parent_of = stat
                .rsplit(')')
                .next()
                .and_then(|rest| rest.split_whitespace().nth(1)?.parse::<i32>().ok());
            parent_of == Some(parent)
        })
        .collect()
    };
    let mut frozen = vec![victim];
    for child in tree(victim) {
        frozen.push(child);
        frozen.extend(tree(child));
    }
    for process in &frozen {
        signal(*process, Signal::SIGSTOP);
    }
    let (_, said) = expect(&child.wait_with_output().unwrap(), 0);
    assert!(said.contains("was lost"), "{said}");
    nothing_is_lost(&test_run, 60);
    for process in &frozen {
        signal(*process, Signal::SIGCONT);
    }
    nothing_is_left(&marker);
}

#[test]
fn a_killed_orchestrator_leaves_nothing_and_resumes() {
    let marker = marker("orphans");
    let one = agent(&marker, &[]);
    let test_run = TestRun::new(&sleeping(&format!("{{launch: [{one}, {one}]}}"), 40, "0.3"));
    let mut child = start(&test_run);
    test_run.wait_for_outcomes("night", 8);
    child.kill().unwrap();
    child.wait().unwrap();
    // At once: the agents of the first are still leaving.
    test_run.run(0, &["--quiet"]);
    nothing_is_lost(&test_run, 40);
    nothing_is_left(&marker);
}

#[test]
fn a_second_orchestrator_is_refused() {
    let marker = marker("second");
    let test_run = TestRun::new(&sleeping(
        &format!("{{launch: [{}]}}", agent(&marker, &[])),
        30,
        "0.3",
    ));
    let child = start(&test_run);
    test_run.wait_for_outcomes("night", 2);
    let (_, said) = test_run.run(2, &[]);
    assert!(said.contains("process"), "{said}");
    expect(&child.wait_with_output().unwrap(), 0);
    nothing_is_lost(&test_run, 30);
    nothing_is_left(&marker);
}

/// The folder of the run is shared by two hosts.
#[test]
fn an_orchestrator_on_another_host_is_refused() {
    if !is_root() {
        return;
    }
    let marker = marker("hosts");
    let test_run = TestRun::new(&sleeping(
        &format!("{{launch: [{}]}}", agent(&marker, &[])),
        30,
        "0.3",
    ));
    let on_host = |name: &str| {
        let line = format!("hostname {name} && exec {CAPTIME} run s.yaml");
        let mut command = Command::new("unshare");
        command
            .args(["--uts", "sh", "-c", &line])
            .current_dir(test_run.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    };
    let child = on_host("alpha").spawn().unwrap();
    test_run.wait_for_outcomes("night", 2);
    let (_, said) = expect(&on_host("beta").output().unwrap(), 2);
    assert!(said.contains("another captime is working on"), "{said}");
    assert!(said.contains("on alpha"), "{said}");
    expect(&child.wait_with_output().unwrap(), 0);
    nothing_is_lost(&test_run, 30);
    nothing_is_left(&marker);
}

#[test]
fn a_node_without_the_program_is_withdrawn_and_no_arm_is_blamed() {
    let marker = marker("missing");
    let folder = tempfile::tempdir().unwrap();
    let tools = folder.path().join("tools");
    fs::create_dir(&tools).unwrap();
    crate::test_run::program(&tools.join("solve-it"), "#!/bin/sh\nexec sleep 0.05\n");
    let path = format!("PATH={}:/usr/bin:/bin", tools.display());
    let with = agent(&marker, &["env", &path]);
    let without = agent(&marker, &["env", "PATH=/usr/bin:/bin"]);
    let text = sleeping(&format!("{{launch: [{without}, {with}]}}"), 20, "0.1");
    let test_run = TestRun::new(&text.replace("[sleep, ", "[solve-it, "));
    let (checked, _) = expect(&test_run.captime(&["check", "s.yaml"]), 0);
    let (_, ran) = test_run.run(0, &[]);
    for said in [checked, ran] {
        assert!(
            said.contains("node env-1 cannot be used: the program `solve-it` is missing"),
            "{said}"
        );
    }
    nothing_is_lost(&test_run, 20);
    nothing_is_left(&marker);
}

/// The program was there when the node was opened.
#[test]
fn a_node_from_which_the_program_disappears_is_withdrawn() {
    let marker = marker("disappears");
    let folder = tempfile::tempdir().unwrap();
    let node = |name: &str| {
        let tools = folder.path().join(name);
        fs::create_dir(&tools).unwrap();
        crate::test_run::program(&tools.join("solve-it"), "#!/bin/sh\nexec sleep 0.2\n");
        let path = format!("PATH={}:/usr/bin:/bin", tools.display());
        agent(&marker, &["env", &path])
    };
    let nodes = format!("{{launch: [{}, {}]}}", node("one"), node("two"));
    let text = sleeping(&nodes, 40, "0.1");
    let test_run = TestRun::new(&text.replace("[sleep, ", "[solve-it, "));
    let child = start(&test_run);
    test_run.wait_for_outcomes("night", 8);
    fs::remove_file(folder.path().join("one/solve-it")).unwrap();
    let (_, said) = expect(&child.wait_with_output().unwrap(), 0);
    assert!(said.contains("node env-1 is no longer used: "), "{said}");
    nothing_is_lost(&test_run, 40);
    nothing_is_left(&marker);
}

/// The first attempts to connect fail, as while a host boots. The run begins without it.
#[test]
fn a_node_that_cannot_be_reached_is_tried_again() {
    let marker = marker("again");
    let line =
        format!("test -e up && exec env {marker} {CAPTIME} agent; echo no route >&2; exit 255");
    let nodes = format!("{{launch: [[sh, -c, {line:?}], {}]}}", agent(&marker, &[]));
    let test_run = TestRun::new(&sleeping(&nodes, 80, "0.2"));
    let child = start(&test_run);
    test_run.wait_for_outcomes("night", 2);
    test_run.write("up", "");
    let (_, said) = expect(&child.wait_with_output().unwrap(), 0);
    let missed = said.find("node sh-1 cannot be used: ").unwrap();
    let came = said.find("node sh-1 is ready: ").unwrap();
    assert!(missed < came && said.contains("no route"), "{said}");
    nothing_is_lost(&test_run, 80);
    let outcomes = outcomes(&test_run);
    assert!(
        outcomes.iter().any(|outcome| outcome["node"] == "sh-1"),
        "{said}"
    );
    nothing_is_left(&marker);
}

#[test]
fn a_node_without_the_interpreter_is_withdrawn() {
    let marker = marker("interpreter");
    let mounts = "mkdir -p scratch && mount -t tmpfs none tools";
    let Some(without) = through_mounts(&marker, mounts) else {
        return;
    };
    let good = agent(&marker, &[]);
    let text = sleeping(&format!("{{launch: [{without}, {good}]}}"), 20, "0.05");
    let test_run = TestRun::new(&text.replace("[sleep, ", "[./solve, "));
    fs::create_dir(test_run.path().join("tools")).unwrap();
    fs::copy("/bin/sh", test_run.path().join("tools/sh")).unwrap();
    let interpreter = test_run.path().join("tools/sh");
    let script = format!("#!{}\nexec sleep \"$1\"\n", interpreter.display());
    test_run.program("solve", &script);
    let (_, said) = test_run.run(0, &[]);
    assert!(
        said.contains("`./solve` needs `") && said.contains("tools/sh`, which is missing"),
        "{said}"
    );
    nothing_is_lost(&test_run, 20);
    nothing_is_left(&marker);
}

/// Whether namespaces can be made; a test that needs them skips itself otherwise, or fails where it must not.
fn is_root() -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        assert!(std::env::var_os("CAPTIME_REQUIRE_GROUPS").is_none());
        crate::test_run::skipped("namespaces need root");
    }
    is_root
}

/// A shell that sees the files of the scenario through mounts of its own; needs root.
fn through_mounts(marker: &str, mounts: &str) -> Option<String> {
    if !is_root() {
        return None;
    }
    let line = format!("{mounts} && exec env {marker} {CAPTIME} agent --scratch \"$PWD/scratch\"");
    Some(serde_json::to_string(&["unshare", "--mount", "sh", "-c", &line]).unwrap())
}

#[test]
fn a_node_with_a_different_or_missing_program_or_instance_is_withdrawn() {
    let marker = marker("instance");
    let Some(different) = through_mounts(
        &marker,
        "mkdir -p scratch && mount --bind other.txt in/a.txt",
    ) else {
        return;
    };
    let missing = through_mounts(&marker, "mkdir -p scratch && mount -t tmpfs none in").unwrap();
    let changed =
        through_mounts(&marker, "mkdir -p scratch && mount --bind other.sh solve").unwrap();
    let good = agent(&marker, &[]);
    let text = sleeping(
        &format!("{{launch: [{different}, {missing}, {changed}, {good}]}}"),
        20,
        "0.05",
    );
    let text = text.replace("[sleep, ", "[./solve, ");
    let test_run = TestRun::new(&text.replace("  reward", "  instances: in/*.txt\n  reward"));
    test_run.program("solve", "#!/bin/sh\nexec sleep \"$1\"\n");
    test_run.program("other.sh", "#!/bin/sh\nexec sleep 0.01\n");
    test_run.write("in/a.txt", "one");
    test_run.write("in/b.txt", "two");
    test_run.write("other.txt", "six");
    let (checked, _) = expect(&test_run.captime(&["check", "s.yaml"]), 0);
    let (_, ran) = test_run.run(0, &[]);
    for said in [checked, ran] {
        for differs in ["in/a.txt", "solve"] {
            let wanted = format!("{differs}` differs from the one where captime was started");
            assert!(said.contains(&wanted), "{said}");
        }
        assert!(said.contains("in/a.txt` is missing"), "{said}");
    }
    nothing_is_lost(&test_run, 20);
    nothing_is_left(&marker);
}

#[test]
fn a_node_whose_scratch_disk_is_full_is_withdrawn() {
    let marker = marker("full");
    let mounts = "mkdir -p scratch && mount -t tmpfs -o size=64k,nr_inodes=3 none scratch";
    let Some(full) = through_mounts(&marker, mounts) else {
        return;
    };
    let good = agent(&marker, &[]);
    let text = sleeping(&format!("{{launch: [{full}, {good}]}}"), 30, "0.05");
    let test_run = TestRun::new(&text.replace(
        "[sleep, \"{t}\"]",
        "[sh, -c, \"mkdir {scratch}/x && sleep {t}\"]",
    ));
    let (_, said) = test_run.run(0, &[]);
    assert!(
        said.contains("cannot make a scratch folder") && said.contains("is no longer used"),
        "{said}"
    );
    nothing_is_lost(&test_run, 30);
    nothing_is_left(&marker);
}

/// The disk fills up while the agent works: its commands fail, and that says nothing about their arms.
#[test]
fn a_command_that_fails_on_a_full_scratch_disk_blames_no_arm() {
    let marker = marker("filled");
    let mounts = "mkdir -p scratch && mount -t tmpfs -o size=64k none scratch \
                  && { head -c 1M /dev/zero > scratch/other 2>/dev/null || true; }";
    let Some(full) = through_mounts(&marker, mounts) else {
        return;
    };
    let good = agent(&marker, &[]);
    let text = sleeping(&format!("{{launch: [{full}, {good}]}}"), 30, "0.05");
    let test_run = TestRun::new(&text.replace(
        "[sleep, \"{t}\"]",
        "[sh, -c, \"echo {t} > {scratch}/x && sleep {t}\"]",
    ));
    let (_, said) = test_run.run(0, &[]);
    assert!(
        said.contains("is full") && said.contains("is no longer used"),
        "{said}"
    );
    nothing_is_lost(&test_run, 30);
    nothing_is_left(&marker);
}

/// The second node takes twice as long for everything. It is noticed, and corrected if the scenario asks for that.
#[test]
fn nodes_of_different_speed_are_noticed_and_corrected() {
    for (compare, is_corrected) in [("as-measured", false), ("by-node", true)] {
        let marker = marker(compare);
        let fast = agent(&marker, &["env", "PAUSE=0.2"]);
        let slow = agent(&marker, &["env", "PAUSE=0.4"]);
        let nodes = format!("{{launch: [{fast}, {slow}]}}");
        let test_run = TestRun::new(&format!(
            "name: night\ntarget:\n  command: [sh, -c, 'sleep $PAUSE', '{{t}}']\n  reward: {{exit: [0]}}\n\
             arms: {{grid: {{t: [1, 2]}}}}\nlimits: {{of: wall, grid: [20s]}}\npolicy: uniform\n\
             budget: {{rounds: 60}}\nslots: {nodes}\ncompare: {compare}\n"
        ));
        let (said, _) = test_run.run(0, &[]);
        assert_eq!(said.matches("\nnode      env-").count(), 2, "{said}");
        assert_eq!(
            said.contains("nodes differ in speed"),
            !is_corrected,
            "{said}"
        );
        let (page, _) = expect(
            &test_run.captime(&["report", "night", "--format", "json", "--out", "-"]),
            0,
        );
        let page: Value = serde_json::from_str(&page).unwrap();
        let factor = |node: usize| page["nodes"][node]["pace"]["factor"].as_f64().unwrap();
        let ratio = factor(1) / factor(0);
        assert!((1.3..3.0).contains(&ratio), "{ratio}");
        decisions_follow(&test_run.run_folder("night"));
        nothing_is_left(&marker);
    }
}

/// A tenth of the agents dies again and again, at random, and comes back.
#[test]
fn agents_that_die_at_random_lose_nothing() {
    const AGENTS: usize = 10;
    const ROUNDS: u32 = 8000;
    let marker = marker("random");
    let one = format!("{{command: {}, slots: 2}}", agent(&marker, &[]));
    let nodes = format!("{{launch: [{}]}}", [one.as_str(); AGENTS].join(", "));
    let test_run = TestRun::new(&sleeping(&nodes, ROUNDS, "0.01"));
    let mut child = test_run
        .command(&["run", "s.yaml", "--quiet"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut random = rand_pcg::Pcg64Mcg::seed_from_u64(test_seed());
    let mut killed = 0;
    let since = Instant::now();
    while child.try_wait().unwrap().is_none() {
        assert!(since.elapsed() < Duration::from_mins(15), "too slow");
        std::thread::sleep(Duration::from_millis(random.random_range(100..700)));
        let there = agents(&marker);
        // Some of those that are up: not all, or there would be nothing to wait for.
        if there.len() > AGENTS / 2 {
            signal(there[random.random_range(0..there.len())], Signal::SIGKILL);
            killed += 1;
        }
    }
    assert_eq!(child.wait().unwrap().code(), Some(0));
    // On a busy machine agents take long to come back.
    assert!(killed >= AGENTS / 2, "only {killed} were killed");
    nothing_is_lost(&test_run, ROUNDS.into());
    nothing_is_left(&marker);
}

/// Whether these programs are there; a test that needs them skips itself otherwise, or fails where it must not.
fn has_programs(programs: &[&str]) -> bool {
    let is_there = |program: &str| {
        ["/usr/bin", "/usr/sbin", "/bin", "/sbin"]
            .iter()
            .any(|folder| Path::new(folder).join(program).exists())
    };
    let missing: Vec<&&str> = programs
        .iter()
        .filter(|program| !is_there(program))
        .collect();
    if missing.is_empty() && rustix::process::geteuid().is_root() {
        return true;
    }
    assert!(
        std::env::var_os("CAPTIME_REQUIRE_PROGRAMS").is_none(),
        "needs root and {missing:?}"
    );
    crate::test_run::skipped(&format!("needs root and {missing:?}"));
    false
}
