//! Surrogates: runs of any configuration, made from recorded ones.

use std::fmt::Write as _;

use serde_json::Value;

use crate::test_run::{TestRun, expect};

const SCENARIO: &str = "
name: made
target: {surrogate: {consumption: runs.csv, arms: arms.csv, cutoff: 10s, test: [i7, i8]}}
arms:
  space:
    x: {real: [0, 40], default: 35}
    w: {choice: [a, b, c]}
    z: {integer: [1, 5], when: w == c}
  sample: 60
limits: {of: cpu, from: 0.1s, to: 10s, points: 6, scale: log}
price: {cost: x, penalty: 10 * x}
budget: {rounds: 300}
";

/// 120 recorded arms on eight instances: larger is slower, and so are later words.
fn recorded() -> TestRun {
    let run = TestRun::new(SCENARIO);
    let arms: Vec<(usize, usize)> = (0..120).map(|arm| (arm / 3, arm % 3)).collect();
    let mut table = "number,x,w,z\n".to_owned();
    for (number, (x, word)) in arms.iter().enumerate() {
        let z = if *word == 2 {
            (x % 5 + 1).to_string()
        } else {
            String::new()
        };
        writeln!(table, "{number},{x},{},{z}", ["a", "b", "c"][*word]).unwrap();
    }
    run.write("arms.csv", &table);
    let mut runs = String::new();
    for instance in 1..=8 {
        write!(runs, "i{instance}").unwrap();
        for (x, word) in &arms {
            let seconds =
                (0.12 * *x as f64 + *word as f64).exp() / 20.0 * (0.9 + 0.1 * f64::from(instance));
            write!(runs, ",{seconds:.4}").unwrap();
        }
        runs.push('\n');
    }
    run.write("runs.csv", &runs);
    run
}

fn pulls(run: &TestRun, lines: &str) -> Vec<Value> {
    let file = run.write("lines", lines);
    let output = run
        .command(&["pull", "s.yaml", "--lines"])
        .stdin(std::fs::File::open(file).unwrap())
        .output()
        .unwrap();
    let (stdout, _) = expect(&output, 0);
    stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn any_configuration_has_a_run_that_is_like_those_of_its_neighbours() {
    let run = recorded();
    let mut lines = String::new();
    for x in [0.5, 20.25, 39.9] {
        for instance in 1..=8 {
            let seed = instance * 7;
            writeln!(lines, "{{\"configuration\": {{\"x\": {x}, \"w\": \"a\"}}, \"instance\": \"i{instance}\", \"seed\": {seed}}}").unwrap();
        }
    }
    let first = pulls(&run, &lines);
    let cost = |answer: &Value| match answer["outcome"].as_str() {
        Some("rewarded") => answer["consumption"].as_f64().unwrap(),
        Some("censored") => 100.0,
        _ => panic!("{answer}"),
    };
    let means: Vec<f64> = first
        .chunks(8)
        .map(|some| some.iter().map(cost).sum::<f64>() / 8.0)
        .collect();
    assert!(means[0] < means[1] && means[1] < means[2], "{means:?}");
    // Whatever the seed of the pull: a configuration has one run on an instance.
    let again = pulls(&run, &lines.replace("\"seed\": ", "\"seed\": 1"));
    let costs = |answers: &[Value]| answers.iter().map(cost).collect::<Vec<_>>();
    assert_eq!(costs(&first), costs(&again));
    let other = run.path().join("s.yaml");
    std::fs::write(
        other,
        SCENARIO.replace("cutoff: 10s", "cutoff: 10s, seed: 2"),
    )
    .unwrap();
    assert_ne!(costs(&first), costs(&pulls(&run, &lines)));
}

#[test]
fn a_surrogate_is_tuned_tested_and_studied_like_recorded_runs() {
    let run = recorded();
    run.run(0, &["--quiet"]);
    let (best, _) = expect(&run.captime(&["best", "made", "--format", "json"]), 0);
    let best: Value = serde_json::from_str(&best).unwrap();
    assert!(
        best["configuration"]["x"].as_f64().unwrap() < 20.0,
        "{best}"
    );
    let study = [
        "study",
        "s.yaml",
        "--budget",
        "20s,200s",
        "--repetitions",
        "2",
        "--policy",
        "halving",
        "--format",
        "json",
    ];
    let (marks, _) = expect(&run.captime(&study), 0);
    let marks: Value = serde_json::from_str(&marks).unwrap();
    assert!(
        marks[0]["budgets"][1]["test"]["mean"].as_f64().unwrap() < 100.0,
        "{marks}"
    );
    let (regret, _) = expect(
        &run.captime(&[
            "study",
            "s.yaml",
            "--rounds",
            "200",
            "--repetitions",
            "2",
            "--policy",
            "uniform",
        ]),
        0,
    );
    assert!(regret.contains("uniform"), "{regret}");
}

#[test]
fn on_an_open_space_a_study_judges_configurations_that_nobody_listed() {
    let run = recorded();
    run.write("s.yaml", &SCENARIO.replace("  sample: 60\n", ""));
    let study = |more: &[&str]| {
        let args = ["study", "s.yaml", "--budget", "20s,2000s", "--halves", "2"];
        run.captime(&[&args[..], more].concat())
    };
    let (marks, _) = expect(&study(&["--format", "json"]), 0);
    let marks: Value = serde_json::from_str(&marks).unwrap();
    let of = |budget: usize, what: &str| {
        let mean = marks[0]["budgets"][budget][what]["mean"].as_f64();
        mean.unwrap()
    };
    // Compared with the recorded arms: far beyond their median, and nearly as good as their best.
    assert_eq!(marks[0]["is_open"], true);
    assert!(of(1, "share") > 0.9, "{marks}");
    assert!(of(1, "train") <= of(0, "train"), "{marks}");
    assert!(of(1, "test") < 10.0, "{marks}");
    let (again, _) = expect(&study(&["--format", "json", "--threads", "1"]), 0);
    assert_eq!(marks, serde_json::from_str::<Value>(&again).unwrap());
    let (text, _) = expect(&study(&[]), 0);
    assert!(text.contains("made: an open space x 6 limits"), "{text}");
    let (_, refused) = expect(&study(&["--policy", "halving"]), 2);
    assert!(refused.contains("`halving`"), "{refused}");
}

#[test]
fn what_does_not_fit_is_said_with_its_file() {
    let run = recorded();
    let told = |text: &str| {
        std::fs::write(run.path().join("s.yaml"), text).unwrap();
        expect(&run.captime(&["check", "s.yaml"]), 2).1
    };
    let stderr =
        told(&SCENARIO.replace("    w: {choice", "    v: {choice: [1, 2]}\n    w: {choice"));
    assert!(stderr.contains("has no column `v`"), "{stderr}");
    let stderr = told(&SCENARIO.replace("to: 10s", "to: 20s"));
    assert!(stderr.contains("beyond the cutoff 10"), "{stderr}");
    let stderr = told(&SCENARIO.replace("[i7, i8]", "[i9]"));
    assert!(stderr.contains("i9"), "{stderr}");
    run.write("arms.csv", "x,w,z\n1,a,\n");
    let stderr = told(SCENARIO);
    assert!(stderr.contains("arms"), "{stderr}");
}
