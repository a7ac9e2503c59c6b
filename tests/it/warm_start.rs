//! Runs that start from an earlier one.

use std::fs;

use crate::test_run::{TestRun, decisions_follow, expect, story};
use captime::journal::{By, Reader};

const FIRST: &str = "
name: first
target:
  command: [./solve, '{params}', '{instance}']
  instances: [a, b, c, d]
arms:
  space:
    decay: {real: [0.5, 1.0], default: 0.6}
    restarts: {integer: [1, 100000], scale: log, default: 100}
    heuristic: {choice: [vsids, vmtf, chb], default: vmtf}
limits: {grid: [1s, 3s, 10s]}
budget: {rounds: 40}
slots: 2
pin: never
";

/// The scenario of a second run, with these changes, that starts from the first.
fn second(changes: &[(&str, &str)]) -> String {
    let mut text = FIRST.replace("name: first", "name: second");
    text = text.replace("limits:", "  start: {run: runs/first}\nlimits:");
    for (from, to) in changes {
        assert!(text.contains(from), "{from}");
        text = text.replace(from, to);
    }
    text
}

fn after_first() -> TestRun {
    let test_run = TestRun::new(FIRST);
    test_run.program("solve", "#!/bin/sh\nexit 0\n");
    test_run.run(0, &["--quiet"]);
    test_run
}

fn earlier(test_run: &TestRun, name: &str) -> usize {
    let (pulls, _) = story(&test_run.run_folder(name));
    let taken = |pull: &&captime::journal::PullRecord| pull.by == Some(By::Earlier);
    pulls.iter().filter(taken).count()
}

/// Held-out instances, with their answers, are often added later.
#[test]
fn answers_of_instances_that_were_never_run_keep_no_round_from_being_taken_over() {
    let answers = "  instances: train.txt\n  reward: {exit: [0, 1]}\n  expect: {column: 2}";
    let first = FIRST.replace("  instances: [a, b, c, d]", answers);
    let test_run = TestRun::new(&first);
    test_run.program("solve", "#!/bin/sh\nexit 0\n");
    test_run.write("train.txt", "a 0\nb 0\nc 0\nd 0\n");
    test_run.write("test.txt", "e 0\n");
    test_run.run(0, &["--quiet"]);
    let again = first
        .replace("name: first", "name: second")
        .replace("limits:", "  start: {run: runs/first}\nlimits:")
        .replace("train.txt", "train.txt\n  test: test.txt");
    test_run.write("s.yaml", &again);
    let (shown, _) = expect(&test_run.captime(&["check", "s.yaml"]), 0);
    assert!(shown.contains("40 of its 40 rounds taken over"), "{shown}");
    // Another answer for an instance that was run is another measurement.
    test_run.write("train.txt", "a 1\nb 0\nc 0\nd 0\n");
    let (shown, _) = expect(&test_run.captime(&["check", "s.yaml"]), 0);
    assert!(shown.contains("no rounds taken over"), "{shown}");
}

#[test]
fn arms_and_rounds_are_taken_over_and_the_earlier_run_is_not_needed_again() {
    let test_run = after_first();
    // A parameter more, which is at its default in what was run before.
    let added = "  start:";
    let more = "    moms: {choice: [true, false], default: false, argument: --moms}\n  start:";
    let scenario = second(&[(added, more), ("rounds: 40", "rounds: 20")]);
    test_run.write("s.yaml", &scenario);
    let (shown, _) = expect(&test_run.captime(&["check", "s.yaml"]), 0);
    assert!(shown.contains("40 of its 40 rounds taken over"), "{shown}");
    // Killed at once, again and again: the rounds are there as soon as the journal is.
    for outcomes in [1, 41, 50] {
        let mut child = test_run.start(&["--quiet"]);
        test_run.wait_for_outcomes("second", outcomes);
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(story(&test_run.run_folder("second")).1.len() >= 40);
    }
    fs::rename(test_run.run_folder("first"), test_run.path().join("gone")).unwrap();
    let (summary, _) = test_run.run(0, &[]);
    assert!(
        summary.contains("40 of these rounds were taken over from runs/first"),
        "{summary}"
    );
    let folder = test_run.run_folder("second");
    decisions_follow(&folder);
    assert_eq!(earlier(&test_run, "second"), 40);
    // The budget is for the run's own rounds.
    assert_eq!(story(&folder).1.len(), 60);
    // It knows the arms itself.
    let (first, _) = story(&test_run.path().join("gone"));
    let arms = first.iter().map(|pull| pull.arm).max().unwrap();
    let reader = Reader::open(&folder).unwrap();
    let taken = &reader.header().resolved["earlier"]["arms"];
    assert_eq!(taken.as_array().unwrap().len(), arms.index() + 1);
    for args in [
        &["best", "second"][..],
        &["report", "second"],
        &["export", "second", "--format", "csv"],
        &["test", "second", "--on", "training"],
    ] {
        expect(&test_run.captime(args), 0);
    }
    let (why, _) = expect(&test_run.captime(&["explain", "second", "7"]), 0);
    assert!(why.contains("taken over from an earlier run"), "{why}");
}

#[test]
fn rounds_of_another_target_are_left_and_arms_still_taken() {
    let test_run = after_first();
    let changes = [("command: [./solve,", "command: [./solve, -v,")];
    test_run.write("s.yaml", &second(&changes));
    let (_, said) = test_run.run(0, &[]);
    assert!(
        said.contains("no rounds taken over: the target or the limits changed"),
        "{said}"
    );
    assert!(said.contains("arms taken over"), "{said}");
    assert_eq!(earlier(&test_run, "second"), 0);
    // The answer of the earlier run comes right after the default.
    let best = expect(&test_run.captime(&["best", "first", "--format", "json"]), 0);
    let best: serde_json::Value = serde_json::from_str(&best.0).unwrap();
    let reader = Reader::open(&test_run.run_folder("second")).unwrap();
    let resolved = &reader.header().resolved;
    let arms = resolved["earlier"]["arms"].as_array().unwrap();
    assert_eq!(arms[0], best["configuration"]);
    decisions_follow(&test_run.run_folder("second"));
}

#[test]
fn only_rounds_that_are_rounds_of_this_scenario_are_taken() {
    let test_run = after_first();
    // Without `heuristic`, only arms with its default are what they were. Without `d`, its rounds are of no use.
    let changes = [
        ("[a, b, c, d]", "[c, a, b, e]"),
        (
            "    heuristic: {choice: [vsids, vmtf, chb], default: vmtf}\n",
            "",
        ),
        ("decay: {real: [0.5, 1.0]", "decay: {real: [0.55, 1.0]"),
    ];
    test_run.write("s.yaml", &second(&changes));
    let (_, said) = test_run.run(0, &[]);
    assert!(said.contains("is not a value of `decay`"), "{said}");
    assert!(
        said.contains("removed parameters were not at their defaults"),
        "{said}"
    );
    assert!(
        said.contains("on instances that this scenario does not have"),
        "{said}"
    );
    // Taken over in the order they were learned from, which two slots do not keep.
    let by_seed = |row: &serde_json::Value| row["seed"].as_u64();
    let rows = |name: &str| -> Vec<serde_json::Value> {
        let (table, _) = expect(&test_run.captime(&["export", name, "--format", "jsonl"]), 0);
        let rows = table.lines();
        rows.map(|line| serde_json::from_str(line).unwrap())
            .collect()
    };
    let mut expected: Vec<_> = rows("first")
        .into_iter()
        .filter(|row| {
            let configuration = &row["configuration"];
            configuration["heuristic"] == "vmtf"
                && row["instance"] != "d"
                && configuration["decay"].as_f64().unwrap() >= 0.55
        })
        .collect();
    assert_eq!(earlier(&test_run, "second"), expected.len());
    assert!(!expected.is_empty());
    let mut taken = rows("second");
    taken.truncate(expected.len());
    taken.sort_by_key(by_seed);
    expected.sort_by_key(by_seed);
    for (new, old) in taken.iter().zip(&expected) {
        for key in ["instance", "seed", "consumption", "limit", "outcome"] {
            assert_eq!(new[key], old[key], "{key}");
        }
        for name in ["decay", "restarts"] {
            assert_eq!(new["configuration"][name], old["configuration"][name]);
        }
    }
    decisions_follow(&test_run.run_folder("second"));
}

const LISTED: &str = "
name: first
target: {recorded: {consumption: times.csv, cutoff: 10s}}
arms: {grid: {a: [1, 2], b: [x, y]}}
limits: {LIMITS}
policy: POLICY
budget: {rounds: 60}
";

/// In virtual time, with every policy, on a grid whose arms have another order and another parameter.
#[test]
fn every_policy_takes_rounds_over() {
    for policy in captime::policy::PolicyKind::NAMES {
        let limits = if *policy == "z-rcucb" {
            "max: 10s"
        } else {
            "grid: [1s, 3s, 10s]"
        };
        let first = LISTED
            .replace("{LIMITS}", &format!("{{{limits}}}"))
            .replace("POLICY", policy);
        let test_run = TestRun::new(&first);
        test_run.write(
            "times.csv",
            "instance,p,q,r,s\ni,1,2,3,4\nj,4,3,2,1\nk,2,2,2,20\n",
        );
        test_run.run(0, &["--quiet"]);
        let changes = "arms: {grid: {b: [x, y], c: [0], a: [1, 2]}, start: {run: runs/first}}";
        let scenario = first
            .replace("arms: {grid: {a: [1, 2], b: [x, y]}}", changes)
            .replace("name: first", "name: second");
        test_run.write("s.yaml", &scenario);
        let (_, said) = test_run.run(0, &[]);
        assert!(
            said.contains("4 of its 4 arms taken over"),
            "{policy}: {said}"
        );
        assert_eq!(earlier(&test_run, "second"), 60, "{policy}");
        assert_eq!(
            story(&test_run.run_folder("second")).1.len(),
            120,
            "{policy}"
        );
        decisions_follow(&test_run.run_folder("second"));
        expect(&test_run.captime(&["report", "second"]), 0);
    }
}

#[test]
fn a_sample_of_a_space_and_calibrated_limits_are_taken_over() {
    let calibrated = (
        "limits: {grid: [1s, 3s, 10s]}",
        "limits: {wall: 10s, calibrate: {points: 3, arms: 4}}",
    );
    let first = FIRST.replace(calibrated.0, calibrated.1);
    let test_run = TestRun::new(&first);
    test_run.program("solve", "#!/bin/sh\nexit 0\n");
    test_run.run(0, &["--quiet"]);
    let sample = (
        "  start: {run: runs/first}",
        "  start: [{decay: 0.77}, {run: first}]\n  sample: 60",
    );
    test_run.write("s.yaml", &second(&[calibrated, sample]));
    let (_, said) = test_run.run(0, &[]);
    assert!(said.contains("40 of its 40 rounds taken over"), "{said}");
    let folder = test_run.run_folder("second");
    let (pulls, _) = story(&folder);
    assert!(
        pulls[40..].iter().all(|pull| pull.by.is_none()),
        "calibrated again"
    );
    let reader = Reader::open(&folder).unwrap();
    assert_eq!(reader.header().resolved["scenario"]["arms"]["count"], 60);
    decisions_follow(&folder);
    fs::remove_dir_all(test_run.run_folder("first")).unwrap();
    let (_, said) = test_run.run(0, &[]);
    assert!(said.contains("is finished"), "{said}");
}

#[test]
fn ask_starts_from_an_earlier_run_too() {
    let first = "target: external\narms: {list: [{a: 1}, {a: 2}]}\nlimits: {grid: [1s]}\n";
    let test_run = TestRun::new(first);
    let ask = |lines: &str, journal: &str| {
        fs::write(test_run.path().join("lines"), lines).unwrap();
        let mut command = test_run.command(&["ask", "s.yaml"]);
        if !journal.is_empty() {
            command.args(["--journal", journal]);
        }
        let input = fs::File::open(test_run.path().join("lines")).unwrap();
        expect(&command.stdin(input).output().unwrap(), 0)
    };
    let tell = "{\"ask\":{}}\n{\"tell\":{\"id\":1,\"reward\":1.0,\"consumption\":0.5}}\n";
    ask(tell, "one");
    test_run.write(
        "s.yaml",
        &first.replace("{a: 2}]", "{a: 2}], start: {run: one}"),
    );
    for journal in ["", "two"] {
        let (answers, said) = ask("{\"ask\":{}}\n", journal);
        assert!(said.contains("1 of its 1 round taken over"), "{said}");
        assert!(answers.contains("\"id\":2"), "{answers}");
    }
    fs::remove_dir_all(test_run.path().join("one")).unwrap();
    let (_, said) = ask("", "two");
    assert!(said.contains("resuming after 2 pulls"), "{said}");
}

#[test]
fn a_start_in_the_wrong_place_is_sent_to_the_right_one() {
    let test_run = TestRun::new(&format!("{FIRST}start: {{run: runs/first}}\n"));
    let (_, said) = expect(&test_run.captime(&["check", "s.yaml"]), 2);
    assert!(
        said.contains("`start` is a key of `arms`: write it there"),
        "{said}"
    );
}

#[test]
fn mistakes_name_the_place() {
    let test_run = after_first();
    for (start, line) in [
        (
            "{run: runs/firts}",
            "there is no run `runs/firts` to start from",
        ),
        ("[{run: first}, {run: first}]", "`start` has a second `run`"),
        ("{run: [1]}", "`run` must be text"),
    ] {
        let scenario = second(&[("{run: runs/first}", start)]);
        test_run.write("s.yaml", &scenario);
        let (_, said) = expect(&test_run.captime(&["run", "s.yaml"]), 2);
        assert!(said.contains(line) && said.contains("start:"), "{said}");
    }
    let grid = "name: second\ntarget: {command: [./solve, '{a}']}\narms: {grid: {a: [1]}, start: [{a: 1}]}\nlimits: {grid: [1s]}\n";
    test_run.write("s.yaml", grid);
    let (_, said) = expect(&test_run.captime(&["run", "s.yaml"]), 2);
    assert!(said.contains("`arms` needs the key `space`"), "{said}");
}
