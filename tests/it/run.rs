//! `captime run` and the commands that read what it leaves.

use std::fmt::Write;

use serde_json::Value;

use crate::test_run::{TestRun, decisions_follow, expect, story};

/// Scores by arm, in a few milliseconds; a loaded machine would have to stop the best arm for 0.7 s to make another one better.
pub const SCRIPT: &str = "
name: try
target:
  command: [sh, -c, 'echo seed {seed} >&2; echo score=0.{a}{b}']
  reward: {stdout: 'score=([0-9.]+)'}
arms: {grid: {a: [1, 5, 9], b: [1, 8]}}
limits: {of: wall, grid: [5s, 10s]}
price: {cost: x, penalty: 10 * x}
policy: rcucb
budget: {rounds: 30}
slots: 2
seed: 7
";

#[test]
fn the_summary_says_what_was_learned() {
    let test_run = TestRun::new(
        "name: summary\ntarget: {synthetic: {problem: poscorr}}\npolicy: rcucb\nbudget: {rounds: 400}\nseed: 3\n",
    );
    let output = test_run.command(&["run", "s.yaml"]).output().unwrap();
    let shown = expect(&output, 0).0;
    insta::with_settings!({filters => vec![(r"work, in [0-9.]+ .?s\b", "work, in TIME")]}, {
        insta::assert_snapshot!(shown);
    });
}

#[test]
fn a_run_ends_with_a_summary_and_is_done_when_run_again() {
    let test_run = TestRun::new(SCRIPT);
    let (summary, _) = test_run.run(0, &[]);
    assert!(summary.contains("best      arm 6: a=9 b=8"), "{summary}");
    assert!(summary.contains("captime exec --wall"), "{summary}");
    assert!(summary.contains("runs/try/journal.jsonl"), "{summary}");
    decisions_follow(&test_run.run_folder("try"));
    let before = std::fs::read(test_run.journal("try")).unwrap();
    let (again, said) = test_run.run(0, &[]);
    assert!(again.contains("best      arm 6"), "{again}");
    assert!(
        said.contains("runs/try is finished after 30 rounds"),
        "{said}"
    );
    assert!(!said.contains("resuming"), "{said}");
    assert_eq!(
        std::fs::read(test_run.journal("try")).unwrap(),
        before,
        "a finished run is left alone"
    );
    // A raised budget resumes. Any other change is refused, and the message says what changed.
    test_run.write("s.yaml", &SCRIPT.replace("rounds: 30", "rounds: 40"));
    let (_, said) = test_run.run(0, &[]);
    assert!(said.contains("resuming runs/try after 30 rounds"), "{said}");
    assert_eq!(story(&test_run.run_folder("try")).1.len(), 40);
    decisions_follow(&test_run.run_folder("try"));
    test_run.write("s.yaml", SCRIPT);
    let (_, lowered) = test_run.run(2, &[]);
    assert!(lowered.contains("are done already"), "{lowered}");
    test_run.write("s.yaml", &SCRIPT.replace("seed: 7", "seed: 8"));
    let (_, changed) = test_run.run(2, &[]);
    assert!(
        changed.contains("seed: 7 -> 8") && changed.contains("--fresh"),
        "{changed}"
    );
    test_run.run(0, &["--fresh", "--quiet"]);
    assert!(test_run.journal("try-2").exists());
    let (best, _) = expect(&test_run.captime(&["best", "try", "--format", "json"]), 0);
    let best: Value = serde_json::from_str(&best).unwrap();
    assert_eq!(best["rounds"], 30, "the newest");
}

#[test]
fn what_a_run_leaves_can_be_read_in_many_ways() {
    let test_run = TestRun::new(SCRIPT);
    test_run.run(0, &["--quiet"]);
    let read = |args: &[&str]| expect(&test_run.captime(args), 0).0;
    let best = read(&["best", "runs/try"]);
    assert!(
        best.contains("arm 6: a=9 b=8") && best.contains("gain      0.9"),
        "{best}"
    );
    let yaml = read(&["best", "try", "--format", "yaml"]);
    assert!(yaml.contains("configuration:\n  a: 9\n  b: 8\n"), "{yaml}");
    let first = read(&["explain", "try", "1"]);
    assert!(
        first.contains("round 1: arm 1 (a=1 b=1) up to 10 s"),
        "{first}"
    );
    assert!(first.contains("the opening"), "{first}");
    assert!(
        first.contains("nothing is known about it yet")
            && !first.contains("NaN")
            && !first.contains("infinite"),
        "{first}"
    );
    let last = read(&["explain", "try"]);
    assert!(
        last.contains("largest index") && last.contains("runner-up: arm"),
        "{last}"
    );
    assert!(
        last.contains("= mean ") && last.contains(" + width "),
        "{last}"
    );
    let (_, none) = expect(&test_run.captime(&["explain", "try", "99"]), 2);
    assert!(none.contains("no round 99"), "{none}");
    let csv = read(&["export", "try", "--format", "csv"]);
    let mut lines = csv.lines();
    assert_eq!(
        lines.next().unwrap(),
        "round,arm,configuration,limit,instance,seed,outcome,reward,consumption,gain,wall_seconds,cpu_seconds,exit_code,signal,arm_name,score,peak_memory_bytes,failure,node,a,b"
    );
    assert_eq!(lines.count(), 30);
    let rows: Vec<Value> = read(&["export", "try", "--format", "jsonl"])
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(rows.len(), 30);
    for (place, row) in rows.iter().enumerate() {
        assert_eq!(row["round"], place + 1);
        assert_eq!(
            (&row["outcome"], &row["exit_code"]),
            (&"rewarded".into(), &0.into())
        );
        let gain = row["reward"].as_f64().unwrap() - row["consumption"].as_f64().unwrap() / 10.0;
        assert!((row["gain"].as_f64().unwrap() - gain).abs() < 1e-12);
    }
    let arff = read(&["export", "try", "--format", "aslib"]);
    assert!(
        arff.contains("@ATTRIBUTE runstatus {ok,") && arff.contains("none,1,arm1,"),
        "{arff}"
    );
    let (_, unknown) = expect(&test_run.captime(&["best", "tri"]), 2);
    assert!(unknown.contains("did you mean `try`?"), "{unknown}");
}

#[test]
fn completions_and_the_manual_name_every_command() {
    let test_run = TestRun::new("");
    let (help, _) = expect(&test_run.captime(&["--help"]), 0);
    let commands: Vec<&str> = help
        .lines()
        .skip_while(|line| *line != "Commands:")
        .skip(1)
        .map_while(|line| line.strip_prefix("  ")?.split(' ').next())
        .filter(|name| !name.is_empty() && *name != "help")
        .collect();
    assert_eq!(commands.len(), 23, "{help}");
    let (page, _) = expect(&test_run.captime(&["man"]), 0);
    for command in &commands {
        assert!(
            page.contains(&format!(".SH CAPTIME {}", command.to_uppercase())),
            "{command}"
        );
    }
    for shell in ["bash", "zsh", "fish"] {
        let (script, _) = expect(&test_run.captime(&["completions", shell]), 0);
        for command in &commands {
            let is_offered = match shell {
                "bash" => script.contains(&format!("captime,{command})")),
                "zsh" => script.contains(&format!("\n'{command}:")),
                _ => script.contains(&format!("-a \"{command}\"")),
            };
            assert!(is_offered, "{command} in {shell}");
        }
    }
}

#[test]
fn events_for_programs_are_json_lines() {
    let test_run = TestRun::new(SCRIPT);
    let (events, _) = test_run.run(0, &["--format", "json"]);
    let events: Vec<Value> = events
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let count = |kind: &str| events.iter().filter(|event| event["event"] == kind).count();
    assert_eq!(
        (count("launched"), count("outcome"), count("end")),
        (30, 30, 1)
    );
    let end = events.last().unwrap();
    assert_eq!(end["best"]["configuration"]["a"], 9);
    for file in ["journal", "report"] {
        let path = test_run.path().join(end[file].as_str().unwrap());
        assert!(path.exists(), "{end}");
    }
}

#[test]
fn failures_are_data_with_their_reason_and_stderr() {
    let test_run = TestRun::new(
        &SCRIPT
            .replace(
                "echo score=0.{a}{b}",
                "if [ {a} = 5 ]; then echo broken >&2; exit 3; fi; echo score=0.{a}{b}",
            )
            .replace("rounds: 30", "rounds: 20"),
    );
    let (summary, _) = test_run.run(0, &[]);
    assert!(summary.contains("exit code 3, which is not 0"), "{summary}");
    assert!(summary.contains("its stderr ends: broken"), "{summary}");
    let (_, outcomes) = story(&test_run.run_folder("try"));
    let failed: Vec<_> = outcomes
        .iter()
        .filter(|outcome| outcome.failed.is_some())
        .collect();
    assert!(!failed.is_empty());
    for outcome in failed {
        assert_eq!(outcome.exit, Some(3));
        assert!(outcome.stderr.as_deref().unwrap().ends_with("broken"));
    }
}

#[test]
fn a_wrong_scenario_is_found_out_after_ten_pulls() {
    let test_run =
        TestRun::new(&SCRIPT.replace("echo score=0.{a}{b}", "echo no such thing >&2; exit 127"));
    let (summary, picture) = test_run.run(2, &[]);
    assert!(!summary.contains("raise the largest limit"), "{summary}");
    assert!(
        picture.contains("the scenario is probably wrong"),
        "{picture}"
    );
    assert!(picture.contains("command   sh -c 'echo seed"), "{picture}");
    assert!(picture.contains("stderr    no such thing"), "{picture}");
    let outcomes = story(&test_run.run_folder("try")).1;
    assert!((10..=12).contains(&outcomes.len()), "{}", outcomes.len());
    let (_, again) = test_run.run(2, &[]);
    assert!(again.contains("the scenario is probably wrong"), "{again}");
    // A command that is not there at all.
    let missing = TestRun::new(&SCRIPT.replace(
        "[sh, -c, 'echo seed {seed} >&2; echo score=0.{a}{b}']",
        "[./absent, '{a}', '{b}']",
    ));
    let (_, picture) = missing.run(2, &[]);
    assert!(picture.contains("cannot run `./absent`"), "{picture}");
    let patient =
        SCRIPT.replace("echo score=0.{a}{b}", "exit 127") + "stop_on_first_failures: false\n";
    let (summary, _) = TestRun::new(&patient).run(3, &[]);
    assert!(summary.contains("100.0 % failed"), "{summary}");
}

#[test]
fn without_a_single_reward_the_exit_code_says_so() {
    let test_run = TestRun::new(
        &SCRIPT
            .replace("echo score=0.{a}{b}", "sleep 60.{a}{b}")
            .replace("[5s, 10s]", "[20ms, 40ms]")
            .replace("rounds: 30", "rounds: 8"),
    );
    let (summary, _) = test_run.run(3, &[]);
    assert!(summary.contains("100.0 % censored"), "{summary}");
    assert!(summary.contains("raise the largest limit"), "{summary}");
    // Asked again, it exits in the same way.
    let (again, _) = test_run.run(3, &["--quiet"]);
    assert!(again.contains("100.0 % censored"), "{again}");
}

#[test]
fn a_wall_budget_ends_the_pulls_in_flight() {
    let test_run = TestRun::new(
        &SCRIPT
            .replace("echo score=0.{a}{b}", "sleep 61.{a}{b}")
            .replace("{rounds: 30}", "{wall: 300ms}"),
    );
    let since = std::time::Instant::now();
    let (summary, _) = test_run.run(3, &[]);
    assert!(since.elapsed().as_secs() < 20, "{summary}");
    assert!(
        summary.contains("time budget (300 ms) used up"),
        "{summary}"
    );
    let (pulls, outcomes) = story(&test_run.run_folder("try"));
    assert_eq!((pulls.len(), outcomes.len()), (2, 0), "they say nothing");
    crate::test_run::nothing_is_left("sleep 61.");
    test_run.run(3, &[]);
    assert_eq!(
        story(&test_run.run_folder("try")).0.len(),
        2,
        "finished is finished"
    );
}

#[test]
fn scratch_folders_stdin_environment_and_files_work_and_leave_nothing() {
    let test_run = TestRun::new(
        "
name: files
target:
  command: [sh, -c, 'read line; echo $line$MORE > {scratch}/out.txt; pwd -P > where']
  stdin: {text: '0.{a}'}
  env: {MORE: '5'}
  reward: {file: '{scratch}/out.txt'}
arms: {grid: {a: [1, 9]}}
limits: {of: wall, grid: [10s]}
price: {cost: x, penalty: 10 * x}
policy: rcucb
budget: {rounds: 6}
",
    );
    let (summary, _) = test_run.run(0, &[]);
    assert!(summary.contains("0.0 % failed"), "{summary}");
    let rewards: Vec<f64> = story(&test_run.run_folder("files"))
        .1
        .iter()
        .map(|outcome| outcome.reward.unwrap())
        .collect();
    assert!(
        rewards.iter().all(|reward| [0.15, 0.95].contains(reward)),
        "{rewards:?}"
    );
    let scratch = test_run.run_folder("files").join("scratch");
    assert!(!scratch.exists() || std::fs::read_dir(scratch).unwrap().count() == 0);
}

#[test]
fn pulls_that_are_tried_show_what_was_read() {
    let test_run = TestRun::new(SCRIPT);
    let (shown, _) = expect(&test_run.captime(&["check", "s.yaml", "--try", "2"]), 0);
    for text in [
        "pull 1    arm 1: a=1 b=1",
        "command   sh -c",
        "limit     10 s",
        "exit      0",
        "read      0.11",
        "reward    0.18",
    ] {
        assert!(shown.contains(text), "{text}\n{shown}");
    }
    assert!(
        !test_run.path().join("runs").exists(),
        "nothing is recorded"
    );
    let broken = TestRun::new(&SCRIPT.replace("echo score=0.{a}{b}", "echo oops >&2; exit 9"));
    let output = broken.captime(&["check", "s.yaml", "--try", "2"]);
    let (shown, message) = expect(&output, 2);
    assert!(
        shown.contains("failed    exit code 9") && shown.contains("stderr    oops"),
        "{shown}"
    );
    assert!(
        message.contains("every one of these pulls failed"),
        "{message}"
    );
}

#[test]
fn a_virtual_run_repeats_itself_to_the_last_byte() {
    let scenario = "
name: virtual
target: {synthetic: {problem: indep}}
policy: joint-ts
budget: {rounds: 500}
seed: 11
";
    let lines = || {
        let test_run = TestRun::new(scenario);
        test_run.run(0, &["--quiet"]);
        let text = std::fs::read_to_string(test_run.journal("virtual")).unwrap();
        // All but the header, which holds the time of day and the folder.
        text.split_once('\n').unwrap().1.to_owned()
    };
    assert_eq!(lines(), lines());
}

#[test]
fn work_on_a_forest_repeats_itself_apart_from_times() {
    let scenario = "
name: forest
target: {forest: {data: houses.csv, predict: price, train: 0.7}}
arms: {grid: {trees: [5, 20, 60], mtry: [1, 2]}}
limits: {of: work, grid: [1000, 3000, 20000]}
price: {cost: x, penalty: 10 * x}
policy: rcucb
budget: {rounds: 60}
slots: 1
seed: 3
";
    let play = |scenario: &str| {
        let test_run = TestRun::new(scenario);
        let mut rows = String::from("size,zone,price\n");
        for row in 0..120 {
            let zone = ["a", "b", "c"][row % 3];
            writeln!(rows, "{},{zone},{}", row * 7 % 53, row * 7 % 53 + row % 3).unwrap();
        }
        test_run.write("houses.csv", &rows);
        let (summary, _) = test_run.run(0, &[]);
        assert!(
            summary.contains("captime forest") && summary.contains("--resource work"),
            "{summary}"
        );
        decisions_follow(&test_run.run_folder("forest"));
        let (pulls, mut outcomes) = story(&test_run.run_folder("forest"));
        for outcome in &mut outcomes {
            (outcome.wall, outcome.cpu, outcome.at) = (None, None, None);
            (outcome.memory, outcome.exit) = (None, None);
        }
        (pulls, outcomes)
    };
    let (first, second) = (play(scenario), play(scenario));
    assert!(
        first.1.iter().any(|outcome| outcome.censored.is_some()),
        "some are cut off"
    );
    assert!(
        first.1.iter().any(|outcome| outcome.reward.is_some()),
        "some are not"
    );
    assert_eq!(first, second);
    let apart = play(&scenario.replace("train: 0.7", "train: 0.7, isolation: process"));
    assert_eq!(first, apart, "a process of its own counts the same");
}

#[test]
fn a_forest_in_a_process_of_its_own_can_be_limited_in_memory() {
    let scenario = "
name: forest
target: {forest: {data: houses.csv, predict: price, isolation: process}}
arms: {grid: {trees: [5, 20]}}
limits: {of: cpu, grid: [20s], memory: 400MiB}
price: {cost: x, penalty: 10 * x}
policy: rcucb
budget: {rounds: 4}
slots: 1
";
    let test_run = TestRun::new(scenario);
    let mut rows = String::from("size,price\n");
    for row in 0..60 {
        writeln!(rows, "{row},{}", row * 2).unwrap();
    }
    test_run.write("houses.csv", &rows);
    let (summary, _) = test_run.run(0, &[]);
    assert!(summary.contains("0.0 % failed"), "{summary}");
}

#[test]
fn guards_end_a_fit_in_our_own_process_while_it_runs() {
    let mut rows = String::from("size,age,price\n");
    for row in 0..2000 {
        writeln!(rows, "{row},{},{}", row * 7919 % 101, row * 2).unwrap();
    }
    for (guard, limits) in [
        ("cpu", "of: work, grid: [1000000000000], cpu: 0.2s"),
        ("work", "of: wall, grid: [500s], work: 5000000"),
    ] {
        let test_run = TestRun::new(&format!(
            "
name: forest
target: {{forest: {{data: houses.csv, predict: price}}}}
arms: {{grid: {{trees: [900000, 1000000]}}}}
limits: {{{limits}}}
price: {{cost: x, penalty: 10 * x}}
policy: uniform
budget: {{rounds: 2}}
slots: 1
"
        ));
        test_run.write("houses.csv", &rows);
        let (summary, _) = test_run.run(3, &["--quiet"]);
        assert!(
            summary.contains("There is no answer yet: all 2 pulls failed."),
            "{summary}"
        );
        let (_, outcomes) = story(&test_run.run_folder("forest"));
        assert_eq!(outcomes.len(), 2);
        for outcome in outcomes {
            assert_eq!(
                outcome.guard.map(captime::round::Guard::name),
                Some(guard),
                "{outcome:?}"
            );
            let cpu = outcome.cpu.unwrap();
            assert!(guard == "work" || (0.2..0.4).contains(&cpu), "{cpu}");
        }
    }
}

#[test]
fn several_slots_are_named_in_the_journal_and_one_is_not() {
    let scenario = "
name: slots
target: {command: [sleep, '0.02'], reward: {exit: [0]}}
arms: {list: [{name: a}, {name: b}]}
limits: {of: wall, max: 7s, grid: 9}
price: {cost: x, penalty: 10 * x}
policy: uniform
budget: {rounds: 8}
";
    let test_run = TestRun::new(scenario);
    test_run.run(0, &["--quiet", "--slots", "2"]);
    let (_, outcomes) = story(&test_run.run_folder("slots"));
    let slots: std::collections::BTreeSet<_> = outcomes.iter().map(|one| one.slot).collect();
    assert_eq!(slots, [Some(1), Some(2)].into());
    // The line to paste is the same everywhere, and its limit is written as a person would write it.
    let best = test_run.captime(&["best", "slots", "--format", "json"]);
    let best: Value = serde_json::from_slice(&best.stdout).unwrap();
    let line = best["command"].as_str().unwrap();
    let limit = line.strip_prefix("captime exec --wall ").unwrap();
    let limit = limit.strip_suffix("s -- sleep 0.02").unwrap();
    assert!(limit.len() <= 8, "{line}");
    let page = test_run.captime(&["report", "slots", "--format", "json", "--out", "-"]);
    let page = String::from_utf8_lossy(&page.stdout).into_owned();
    assert!(page.contains(line), "{line} is not in {page}");
    test_run.run(0, &["--quiet", "--fresh", "--slots", "1"]);
    let (_, outcomes) = story(&test_run.run_folder("slots-2"));
    assert!(outcomes.iter().all(|one| one.slot.is_none()));
}

#[test]
fn what_was_recorded_can_be_replayed() {
    let test_run = TestRun::new(SCRIPT);
    let (line, _) = expect(
        &test_run.captime(&["record", "s.yaml", "--times", "3", "--out", "matrix"]),
        0,
    );
    let table = test_run.path().join("matrix/consumption.csv");
    let expected = format!("target: {{recorded: {{consumption: {}, ", table.display());
    assert!(line.starts_with(&expected), "{line}");
    let rewards = std::fs::read_to_string(test_run.path().join("matrix/reward.csv")).unwrap();
    let mut lines = rewards.lines();
    assert_eq!(
        lines.next().unwrap(),
        "instance,a=1 b=1,a=1 b=8,a=5 b=1,a=5 b=8,a=9 b=1,a=9 b=8"
    );
    assert_eq!(lines.next().unwrap(), "run-1,0.11,0.18,0.51,0.58,0.91,0.98");
    assert_eq!(lines.count(), 2);
    let replay = format!(
        "name: replay\n{line}limits: {{of: wall, grid: [5s, 10s]}}\nprice: {{cost: x, penalty: 10 * x}}\n\
         policy: joint-ts\nbudget: {{rounds: 200}}\n"
    );
    test_run.write("s.yaml", &replay);
    let (summary, _) = test_run.run(0, &["--quiet"]);
    assert!(summary.contains("best      arm 6"), "{summary}");
}
