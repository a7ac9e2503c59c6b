//! `captime best` if there is nothing to recommend.

use serde_json::Value;

use crate::run::SCRIPT;
use crate::test_run::{TestRun, expect};

/// Pulls that all fail, and a run that plays on regardless.
pub fn failing() -> TestRun {
    let failing = SCRIPT.replace("echo score=0.{a}{b}", "exit 9");
    TestRun::new(&(failing + "stop_on_first_failures: false\n"))
}

/// The answer in both forms for programs.
fn answers(test_run: &TestRun) -> [Value; 2] {
    let (json, _) = expect(&test_run.captime(&["best", "try", "--format", "json"]), 3);
    let (yaml, _) = expect(&test_run.captime(&["best", "try", "--format", "yaml"]), 3);
    [
        serde_json::from_str(&json).unwrap(),
        serde_yaml::from_str(&yaml).unwrap(),
    ]
}

fn has_no_pair(answer: &Value) {
    for key in ["arm", "configuration", "limit", "gain", "interval"] {
        assert_eq!(answer.get(key), Some(&Value::Null), "{key} of {answer}");
    }
    for key in ["pulls", "censored", "command"] {
        assert_eq!(answer.get(key), Some(&Value::Null), "{key} of {answer}");
    }
    assert_eq!(answer["name"], "try");
    assert_eq!(answer["resource"], "wall");
}

#[test]
fn without_a_reward_there_is_no_pair_for_people_nor_for_programs() {
    let test_run = failing();
    let (events, _) = test_run.run(3, &["--format", "json"]);
    let end: Value = serde_json::from_str(events.lines().last().unwrap()).unwrap();
    assert_eq!(end["event"], "end");
    assert_eq!(end.get("best"), Some(&Value::Null), "{end}");
    let (text, _) = expect(&test_run.captime(&["best", "try"]), 3);
    assert!(
        text.contains("There is no answer yet: all 30 pulls failed."),
        "{text}"
    );
    assert!(
        !text.contains("raise the largest limit"),
        "none was cut off: {text}"
    );
    for answer in answers(&test_run) {
        has_no_pair(&answer);
        assert_eq!(answer["rounds"], 30);
    }
}

#[test]
fn without_an_outcome_best_says_so_with_the_same_exit_code() {
    let test_run = TestRun::new(SCRIPT);
    test_run.run(0, &["--quiet"]);
    let journal = std::fs::read_to_string(test_run.journal("try")).unwrap();
    let header = journal.split_inclusive('\n').next().unwrap();
    std::fs::write(test_run.journal("try"), header).unwrap();
    let (text, _) = expect(&test_run.captime(&["best", "try"]), 3);
    assert!(
        text.contains("There is no answer yet: no pull has finished."),
        "{text}"
    );
    for answer in answers(&test_run) {
        has_no_pair(&answer);
        assert_eq!(answer["rounds"], 0);
    }
}

#[test]
fn the_newest_run_and_other_folders_are_found() {
    let test_run = TestRun::new(SCRIPT);
    let (_, none) = expect(&test_run.captime(&["best"]), 2);
    assert!(none.contains("there is no run in `runs`"), "{none}");
    let (empty, _) = expect(&test_run.captime(&["list"]), 0);
    assert!(empty.starts_with("there is no run in `runs`"), "{empty}");
    test_run.run(0, &["--quiet"]);
    test_run.run(0, &["--quiet", "--fresh"]);
    let (newest, _) = expect(&test_run.captime(&["best"]), 0);
    assert_eq!(
        newest,
        expect(&test_run.captime(&["best", "runs/try-2"]), 0).0
    );
    let (list, _) = expect(&test_run.captime(&["list"]), 0);
    assert!(list.starts_with("try-2: finished, 30 rounds"), "{list}");
    assert!(
        list.contains("\ntry: finished, 30 rounds") && list.contains("arm 6 (a=9 b=8)"),
        "{list}"
    );
    let (lines, _) = expect(&test_run.captime(&["list", "--format", "json"]), 0);
    let first: Value = serde_json::from_str(lines.lines().next().unwrap()).unwrap();
    assert_eq!(
        (&first["run"], &first["best"]["arm"]),
        (&"try-2".into(), &6.into())
    );
    let moved = test_run.path().join("elsewhere");
    std::fs::rename(test_run.path().join("runs"), &moved).unwrap();
    let (there, _) = expect(&test_run.captime(&["--runs", "elsewhere", "best"]), 0);
    assert!(there.contains("best      arm 6: a=9 b=8"), "{there}");
    let by_variable = test_run
        .command(&["best", "try"])
        .env("CAPTIME_RUNS", &moved)
        .output()
        .unwrap();
    assert_eq!(expect(&by_variable, 0).0, there);
}

#[test]
fn a_limit_and_the_front_can_be_asked_for() {
    let test_run = TestRun::new(SCRIPT);
    test_run.run(0, &["--quiet"]);
    let (text, _) = expect(&test_run.captime(&["best", "try", "--limit", "5s"]), 0);
    assert!(text.contains("limit     5 s of wall time"), "{text}");
    let (_, bare) = expect(&test_run.captime(&["best", "try", "--limit", "5"]), 2);
    assert!(bare.contains("write `5s`"), "{bare}");
    let (front, _) = expect(&test_run.captime(&["best", "try", "--pareto"]), 0);
    assert!(
        front.contains("arm 6 (a=9 b=8): mean reward 0.98"),
        "{front}"
    );
    let (json, _) = expect(
        &test_run.captime(&["best", "try", "--pareto", "--format", "json"]),
        0,
    );
    let front: Value = serde_json::from_str(&json).unwrap();
    assert!(!front["front"].as_array().unwrap().is_empty(), "{front}");
}

/// The best arm ends in half a second, so the policy never grants it 20 s. It is the best under 20 s too.
#[test]
fn an_arm_that_never_needed_a_limit_is_the_answer_under_it() {
    for seed in 1..=4 {
        let test_run = TestRun::new(&format!(
            "name: try
target: {{recorded: {{consumption: seconds.csv, cutoff: 40s, unsolved: 99}}}}
limits: {{of: cpu, grid: [0.5s, 1.5s, 4s, 12s, 36s]}}
price: {{cost: x, penalty: 10 * x}}
budget: {{rounds: 60}}
seed: {seed}
"
        ));
        let row = |instance: u32| {
            let seconds = [9.0, 8.0, 7.0, 2.5, 0.4, 12.0];
            let cells =
                seconds.map(|of: f64| format!(",{:.2}", of * f64::from(10 + instance) / 10.0));
            format!("\ni{instance}{}", cells.concat())
        };
        let rows: Vec<String> = (0..12).map(row).collect();
        let table = format!("instance,a,b,c,d,fast,e{}\n", rows.concat());
        test_run.write("seconds.csv", &table);
        test_run.run(0, &["--quiet"]);
        for limit in ["20s", "36s"] {
            let (text, _) = expect(&test_run.captime(&["best", "try", "--limit", limit]), 0);
            assert!(
                text.starts_with("Use arm 5 (fast) with a limit of"),
                "{text}"
            );
            assert!(
                text.contains(&limit.replace('s', " s of CPU time")),
                "{text}"
            );
        }
    }
}

/// Neither program output nor the name of an arm reaches the terminal as a control sequence.
#[test]
fn escapes_of_a_program_are_made_visible() {
    let test_run = TestRun::new(
        "name: try
target:
  command: [sh, -c, 'printf \"\\033]0;gotcha\\007\\033[2J\" >&2; exit 3', '{instance}', '{p}']
  instances: inst/*
  reward: {exit: [0]}
arms: {list: [{name: \"x\\e[31m\", p: \"\\e[5m\"}, {name: y, p: z}]}
limits: {of: wall, grid: [5s]}
budget: {rounds: 6}
stop_on_first_failures: false
",
    );
    for name in ["in\u{1b}[2Jst", "other\r"] {
        test_run.write(&format!("inst/{name}"), "");
    }
    for args in [
        &["check", "s.yaml"][..],
        &["check", "s.yaml", "--try", "2"],
        &["run", "s.yaml"],
        &["best", "try"],
        &["explain", "try"],
        &["list"],
    ] {
        let output = test_run.captime(args);
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8_lossy(&text);
        let acts = |c: char| c.is_control() && c != '\n' && c != '\t';
        assert!(!text.contains(acts), "{args:?}: {text:?}");
        if args.contains(&"--try") || args[0] == "run" {
            assert!(text.contains(r"\u{1b}]0;gotcha\u{7}"), "{text}");
        }
    }
    let (rows, _) = expect(
        &test_run.captime(&["export", "try", "--format", "jsonl"]),
        0,
    );
    assert!(
        rows.contains(r"x\u001b[31m"),
        "names are exported as they are: {rows}"
    );
}

/// The answer: three sentences and the figures, the same as in JSON and in the report.
#[test]
fn one_estimate_is_told_everywhere() {
    let test_run = TestRun::new(SCRIPT);
    let (summary, _) = test_run.run(0, &["--quiet"]);
    let (text, _) = expect(&test_run.captime(&["best", "try"]), 0);
    let gain = |text: &str| {
        text.lines()
            .find(|line| line.starts_with("gain "))
            .map(str::to_owned)
    };
    let limit = |text: &str| {
        text.lines()
            .find(|line| line.starts_with("limit "))
            .map(str::to_owned)
    };
    assert!(gain(&text).is_some(), "{text}");
    assert_eq!(
        (gain(&summary), limit(&summary)),
        (gain(&text), limit(&text))
    );
    let (json, _) = expect(&test_run.captime(&["best", "try", "--format", "json"]), 0);
    let json: Value = serde_json::from_str(&json).unwrap();
    let shown = format!(
        "gain      {:.4} (95 % interval {:.4} to {:.4})",
        json["gain"].as_f64().unwrap(),
        json["interval"][0].as_f64().unwrap(),
        json["interval"][1].as_f64().unwrap()
    );
    assert!(text.contains(&shown), "{text} {shown}");
    let (page, _) = expect(
        &test_run.captime(&["report", "try", "--format", "json", "--out", "-"]),
        0,
    );
    let page: Value = serde_json::from_str(&page).unwrap();
    let near = |a: &Value, b: &Value| (a.as_f64().unwrap() - b.as_f64().unwrap()).abs() < 1e-4;
    assert!(near(&page["answer"]["gain"], &json["gain"]));
    assert!(near(&page["answer"]["limit"], &json["limit"]));
    assert!(near(&page["answer"]["low"], &json["interval"][0]));
    // The limit is just above the longest run, not one of the grid's 5 s and 10 s.
    assert!(json["limit"].as_f64().unwrap() < 4.9, "{json}");
    assert!(
        json["limit"].as_f64() > json["why_limit"]["longest"].as_f64(),
        "{json}"
    );
}
