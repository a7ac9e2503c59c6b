//! What runs a pull: the CPUs of its slot, a supervisor that may go away, and how exactly it measures.

use std::collections::BTreeSet;
use std::fs;

use captime::journal::{Reader, Record, Session};
use captime::target::allowed_cpus;
use captime_limit::Contain;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::limit::test_bench::misbehave;
use crate::test_run::{
    TestRun, alive, decisions_follow, expect, houses, nothing_is_left, send, skipped, story, until,
};

/// `0-1,3` as numbers.
fn cpus(list: &str) -> BTreeSet<usize> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        first.parse().unwrap()..=last.parse::<usize>().unwrap()
    };
    list.trim().split(',').flat_map(range).collect()
}

fn sessions(test_run: &TestRun, name: &str) -> Vec<Session> {
    let mut reader = Reader::open(&test_run.run_folder(name)).unwrap();
    let mut sessions = vec![];
    while let Some(record) = reader.next().unwrap() {
        if let Record::Session(session) = record {
            sessions.push(session);
        }
    }
    sessions
}

#[test]
fn every_slot_has_cpus_of_its_own() {
    let test_run = TestRun::new(
        "
name: pinned
target:
  command: [sh, -c, 'grep Cpus_allowed_list /proc/self/status >> seen; sleep 0.02; echo 0.5']
  reward: {stdout: '([0-9.]+)'}
arms: {list: [{name: a}, {name: b}]}
limits: {of: wall, grid: [20s]}
price: {cost: x, penalty: 10 * x}
policy: uniform
budget: {rounds: 12}
",
    );
    let seen = || {
        let text = fs::read_to_string(test_run.path().join("seen")).unwrap();
        fs::remove_file(test_run.path().join("seen")).unwrap();
        let lists = text
            .lines()
            .map(|line| cpus(&line["Cpus_allowed_list:".len()..]));
        lists.collect::<BTreeSet<BTreeSet<usize>>>()
    };
    let all: BTreeSet<usize> = allowed_cpus().into_iter().collect();
    test_run.run(0, &["--quiet"]);
    assert_eq!(sessions(&test_run, "pinned")[0].slots, all.len(), "auto");
    let lists = seen();
    assert!(lists.iter().all(|list| list.len() == 1), "{lists:?}");
    // More slots than CPUs: no slot is pinned.
    let many = (all.len() + 1).to_string();
    test_run.run(0, &["--quiet", "--fresh", "--slots", &many]);
    assert_eq!(seen(), [all].into());
}

#[test]
fn a_forest_in_a_process_has_a_cpu_for_each_of_its_threads() {
    let all = allowed_cpus().len();
    let test_run = TestRun::new(
        "
name: threads
target: {forest: {data: houses.csv, predict: price, isolation: process, threads: 2}}
arms: {grid: {trees: [900000, 1000000]}}
limits: {of: wall, grid: [500s]}
price: {cost: x, penalty: 10 * x}
policy: uniform
budget: {rounds: 12}
",
    );
    let data = test_run
        .write("houses.csv", &houses(2000))
        .display()
        .to_string();
    let mut child = test_run.start(&["--quiet"]);
    // Its own name is in the command line. Before that it is still captime's.
    let fits = || {
        let mut fits = alive(&data);
        fits.retain(|id| {
            let line = fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&line).contains("--threads=2")
        });
        fits
    };
    until(&mut child, "a fit", || !fits().is_empty());
    let mut looked = 0;
    for id in fits() {
        let Ok(status) = fs::read_to_string(format!("/proc/{id}/status")) else {
            continue;
        };
        let list = status
            .lines()
            .find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
        let list = cpus(list.unwrap());
        assert!(list.len() >= all.min(2), "{list:?} for two threads");
        looked += 1;
    }
    assert!(looked > 0, "a fit was looked at");
    send(&child, Signal::SIGINT);
    expect(&child.wait_with_output().unwrap(), 130);
    assert_eq!(sessions(&test_run, "threads")[0].slots, (all / 2).max(1));
    nothing_is_left(&data);
}

/// The supervisors of a captime.
fn supervisors(captime: u32) -> Vec<u32> {
    let is_child = |id: &u32| {
        let stat = fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
        let after_name = stat.rsplit(") ").next().unwrap_or_default().to_owned();
        after_name.split(' ').nth(1) == Some(captime.to_string().as_str())
    };
    alive("__captime_supervisor")
        .into_iter()
        .filter(is_child)
        .collect()
}

#[test]
fn a_pull_whose_supervisor_is_killed_runs_again() {
    let marker = format!("supervised-{}", std::process::id());
    let test_run = TestRun::new(&format!(
        "
name: lost
target:
  command: [sh, -c, ': {marker}; echo {{round}} {{seed}} {{instance}} >> tries; if mkdir first; then sleep 1000; fi; echo 0.5']
  instances: [a, b, c]
  reward: {{stdout: '([0-9.]+)'}}
arms: {{list: [{{name: a}}, {{name: b}}]}}
limits: {{of: wall, grid: [500s]}}
price: {{cost: x, penalty: 10 * x}}
policy: uniform
budget: {{rounds: 4}}
slots: 1
"
    ));
    let mut child = test_run.start(&["--quiet"]);
    until(&mut child, "a pull", || {
        test_run.path().join("first").exists()
    });
    let found = supervisors(child.id());
    assert_eq!(found.len(), 1, "one slot");
    kill(Pid::from_raw(found[0].cast_signed()), Signal::SIGKILL).unwrap();
    let (summary, _) = expect(&child.wait_with_output().unwrap(), 0);
    assert!(
        summary.contains("lost      1 pull, each run again"),
        "{summary}"
    );
    nothing_is_left(&marker);
    let tries = fs::read_to_string(test_run.path().join("tries")).unwrap();
    let tries: Vec<&str> = tries.lines().collect();
    assert_eq!(tries.len(), 5, "{tries:?}");
    assert_eq!(tries[0], tries[1], "the same round, seed and instance");
    let (_, outcomes) = story(&test_run.run_folder("lost"));
    assert_eq!(outcomes.len(), 4);
    assert!(outcomes.iter().all(|outcome| outcome.reward == Some(0.5)));
    decisions_follow(&test_run.run_folder("lost"));
}

/// A pull that stops its supervisor is censored at its limit. One that traces it, which only root can, fails, and the outcome says why. The others are not affected.
#[test]
fn a_pull_that_attacks_its_supervisor_does_not_hold_up_the_run() {
    let program = misbehave();
    let test_run = TestRun::new(&format!(
        "
name: attacked
target:
  command: [sh, -c, 'case {{round}} in 1) exec {program} /dev/null stop-parent;; 2) exec {program} /dev/null trace-parent;; esac; echo 0.5']
  contain: off
  reward: {{stdout: '([0-9.]+)'}}
arms: {{list: [{{name: a}}, {{name: b}}]}}
limits: {{of: wall, grid: [3s]}}
price: {{cost: x, penalty: 10 * x}}
policy: uniform
budget: {{rounds: 4}}
slots: 1
stop_on_first_failures: false
",
        program = program.display()
    ));
    let start = std::time::Instant::now();
    test_run.run(0, &["--quiet"]);
    // The attackers end by themselves after 20 s each.
    let took = start.elapsed().as_secs_f64();
    assert!(took < 16.0, "{took} s");
    let (_, outcomes) = story(&test_run.run_folder("attacked"));
    assert!(outcomes[0].censored.is_some(), "{:?}", outcomes[0]);
    let failed = outcomes[1].failed.as_deref().unwrap_or_default();
    if rustix::process::geteuid().is_root() {
        assert!(failed.contains("is being traced"), "{:?}", outcomes[1]);
    } else {
        assert!(outcomes[1].censored.is_some(), "{:?}", outcomes[1]);
    }
    assert!(outcomes[2..].iter().all(|one| one.reward == Some(0.5)));
}

/// A program is away from the tenth pull on until this test brings it back, however long that takes.
const REBUILT: &str = "
name: rebuilt
target: {command: [./score.sh], reward: {stdout: '([0-9.]+)'}}
arms: {list: [{name: a}, {name: b}]}
limits: {of: wall, grid: [60s]}
price: {cost: x, penalty: 10 * x}
policy: uniform
budget: {rounds: 40}
slots: 1
retries: 1000
";

/// Shell: the script `file` is moved away when this runs for the tenth time.
fn moving(file: &str) -> String {
    format!("echo >> begun\nif [ $(wc -l < begun) = 10 ]; then mv {file} away; fi\n")
}

/// Brings the program back after a loss: then every round is scored. Gives the journal as it was at the loss.
fn brought_back(test_run: &TestRun) -> String {
    let mut child = test_run.start(&["--quiet"]);
    let journal = || fs::read_to_string(test_run.journal("rebuilt")).unwrap_or_default();
    until(&mut child, "a loss", || journal().contains("{\"lost\""));
    let at_the_loss = journal();
    fs::rename(
        test_run.path().join("away"),
        test_run.path().join("score.sh"),
    )
    .unwrap();
    let (summary, _) = expect(&child.wait_with_output().unwrap(), 0);
    assert!(summary.contains("pull, each run again"), "{summary}");
    let (_, outcomes) = story(&test_run.run_folder("rebuilt"));
    assert_eq!(outcomes.len(), 40);
    let unscored = outcomes.iter().find(|one| one.reward != Some(0.5));
    assert_eq!(unscored, None);
    decisions_follow(&test_run.run_folder("rebuilt"));
    at_the_loss
}

#[test]
fn a_program_that_is_away_for_a_moment_costs_nothing() {
    let test_run = TestRun::new(REBUILT);
    let text = format!("#!/bin/sh\n{}echo 0.5\n", moving("\"$0\""));
    test_run.program("score.sh", &text);
    let journal = brought_back(&test_run);
    assert!(journal.contains("cannot run `./score.sh`"), "{journal}");
}

/// The kernel found the script, but its interpreter does not. That is not the arm's fault either.
#[test]
fn a_script_that_goes_away_before_it_is_read_costs_nothing() {
    let test_run = TestRun::new(REBUILT);
    let text = format!("#!/bin/sh\n{}exec sh \"$1\"\n", moving("\"$1\""));
    let interpreter = test_run.program("interpreter.sh", &text);
    let text = format!("#!{}\necho 0.5\n", interpreter.display());
    test_run.program("score.sh", &text);
    let journal = brought_back(&test_run);
    assert!(
        journal.contains("`./score.sh` is no longer there"),
        "{journal}"
    );
}

#[test]
fn where_nothing_can_be_launched_the_run_stops_and_goes_on_later() {
    let test_run = TestRun::new(
        "
name: stuck
target:
  command: [sh, -c, 'if [ {round} = 2 ] && mkdir once; then cd runs/stuck; rm -r scratch; touch scratch; fi; echo 0.5 > {scratch}/out']
  success: [0, 1, 2]
  reward: {file: '{scratch}/out'}
arms: {list: [{name: a}, {name: b}]}
limits: {of: wall, grid: [20s]}
price: {cost: x, penalty: 10 * x}
policy: rcucb
budget: {rounds: 8}
slots: 1
retries: 0
stop_on_first_failures: false
",
    );
    let (_, message) = test_run.run(1, &["--quiet"]);
    assert!(
        message.contains("3 rounds lost in a row")
            && message.contains("cannot make a scratch folder")
            && message.contains("run the same command to resume"),
        "{message}"
    );
    let (pulls, outcomes) = story(&test_run.run_folder("stuck"));
    assert_eq!((pulls.len(), outcomes.len()), (5, 2), "nothing is learned");
    fs::remove_file(test_run.run_folder("stuck").join("scratch")).unwrap();
    test_run.run(0, &["--quiet"]);
    let (pulls_after, outcomes_after) = story(&test_run.run_folder("stuck"));
    assert_eq!(pulls_after[..5], pulls[..], "the same rounds run again");
    assert_eq!(outcomes_after.len(), 8);
    assert!(outcomes_after[2..].iter().all(|one| one.failed.is_none()));
    decisions_follow(&test_run.run_folder("stuck"));
}

#[test]
fn what_is_measured_less_exactly_than_promised_is_said_in_its_outcome() {
    let mounts = fs::read_to_string("/proc/mounts").unwrap();
    let root = mounts.lines().find_map(|line| {
        let mut words = line.split(' ').skip(1);
        let (place, kind) = (words.next()?, words.next()?);
        (kind == "cgroup2").then(|| place.to_owned())
    });
    let is_exact = captime_limit::detect().is_cpu_exact();
    let Some(root) = root.filter(|_| is_exact) else {
        return skipped("no control groups here");
    };
    let scenario = format!(
        "
name: escape
target:
  command: [sh, -c, 'if [ {{round}} = 2 ]; then echo $$ > {root}/cgroup.procs; fi; k=0; while [ $k -lt 60000 ]; do k=$((k+1)); done; echo 0.5']
  success: [0, 2]
  reward: {{stdout: '([0-9.]+)'}}
arms: {{list: [{{name: a}}, {{name: b}}]}}
limits: {{of: wall, grid: [50s]}}
price: {{cost: x, penalty: 10 * x}}
policy: uniform
budget: {{rounds: 3}}
slots: 1
"
    );
    let test_run = TestRun::new(&scenario);
    test_run.run(0, &["--quiet"]);
    let (_, outcomes) = story(&test_run.run_folder("escape"));
    let inexact: Vec<_> = outcomes
        .iter()
        .map(|one| String::from(one.inexact))
        .collect();
    if inexact[1].is_empty() {
        return skipped("this user may not leave a control group");
    }
    assert_eq!(inexact, ["", "cpu", ""]);
}

/// What a scenario says of containment holds for its pulls, and the session says it.
#[test]
fn commands_are_contained_as_the_scenario_says() {
    let possible = captime_limit::detect().contain;
    for (line, expected) in [
        ("", possible.min(Contain::Pids)),
        ("  contain: off\n", Contain::Off),
        ("  contain: pids\n", Contain::Pids),
        ("  contain: full\n", Contain::Full),
    ] {
        if expected > possible {
            skipped("containment is not possible here");
            continue;
        }
        let test_run = TestRun::new(&format!(
            "
name: kept
target:
  command: [sh, -c, 'if kill -0 {} 2>/dev/null; then echo seen; else echo alone; fi >> seen']
{line}arms: {{list: [{{name: a}}]}}
limits: {{of: wall, grid: [20s]}}
price: {{cost: x, penalty: 10 * x}}
policy: uniform
budget: {{rounds: 1}}
",
            std::process::id()
        ));
        // With `full`, the folder of this test is hidden if it is below `/tmp`, and the pull fails.
        test_run.captime(&["run", "s.yaml", "--quiet"]);
        let session = &sessions(&test_run, "kept")[0];
        assert_eq!(session.enforcement["contain"], expected.name());
        let seen = fs::read_to_string(test_run.path().join("seen"));
        if expected != Contain::Full {
            let alone = if expected == Contain::Off {
                "seen\n"
            } else {
                "alone\n"
            };
            assert_eq!(seen.unwrap(), alone, "{line}");
        }
        let (check, _) = expect(&test_run.captime(&["check", "s.yaml"]), 0);
        assert_eq!(check.contains("contain   "), !line.is_empty(), "{check}");
    }
}

/// Ctrl-Z stops the clock of the wall budget.
#[test]
fn a_suspended_run_pays_nothing_for_the_time_it_was_suspended() {
    let test_run = TestRun::new(
        "
name: night
target:
  command: [sh, -c, 'sleep 0.2; echo 0.5']
  reward: {stdout: '([0-9.]+)'}
arms: {list: [{name: a}]}
limits: {of: wall, grid: [30s]}
price: {cost: x, penalty: 10 * x}
policy: uniform
budget: {wall: 60s, rounds: 8}
slots: 1
",
    );
    let mut child = test_run.start(&["--quiet"]);
    test_run.wait_for_outcomes("night", 2);
    let state = |child: &std::process::Child| {
        let stat = fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
        stat.rsplit(") ").next().unwrap().chars().next().unwrap()
    };
    send(&child, Signal::SIGTSTP);
    let since = std::time::Instant::now();
    while state(&child) != 'T' {
        assert!(since.elapsed().as_secs() < 30, "not suspended");
        assert!(
            child.try_wait().unwrap().is_none(),
            "ended before it was suspended"
        );
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let before = story(&test_run.run_folder("night")).1.len();
    std::thread::sleep(std::time::Duration::from_secs(3));
    assert_eq!(story(&test_run.run_folder("night")).1.len(), before);
    let suspended = since.elapsed().as_secs_f64();
    send(&child, Signal::SIGCONT);
    let started = since;
    expect(&child.wait_with_output().unwrap(), 0);
    let rest = started.elapsed().as_secs_f64() - suspended;
    let (_, outcomes) = story(&test_run.run_folder("night"));
    assert_eq!(outcomes.len(), 8);
    assert!(outcomes.iter().all(|outcome| outcome.reward.is_some()));
    // The time at which the outcomes came, on the clock of the run.
    let at = |index: usize| outcomes[index].at.unwrap();
    let passed = at(7) - at(before.saturating_sub(1));
    assert!(
        passed < rest + 1.5,
        "{passed} s on its clock, {rest} s not suspended"
    );
}

#[test]
fn a_second_run_on_the_same_cpus_is_warned() {
    let scenario = |name: &str, rounds: u32| {
        format!(
            "
name: {name}
target: {{command: [sh, -c, 'sleep 0.1; echo 0.5'], reward: {{stdout: '([0-9.]+)'}}}}
arms: {{list: [{{name: a}}]}}
limits: {{of: wall, grid: [20s]}}
price: {{cost: x, penalty: 10 * x}}
policy: uniform
budget: {{rounds: {rounds}}}
"
        )
    };
    let [first, second] = [("first", 100_000), ("second", 2)]
        .map(|(name, rounds)| TestRun::new(&scenario(name, rounds)));
    let child = first.start(&["--quiet"]);
    first.wait_for_outcomes("first", 1);
    let (_, stderr) = second.run(0, &[]);
    send(&child, Signal::SIGINT);
    child.wait_with_output().unwrap();
    let warning = "another captime has pinned its slots to the same CPUs";
    assert!(stderr.contains(warning), "{stderr}");
}
