//! `captime study SCENARIO --budget TIME`: a budget of CPU time on training instances, judged on test instances.

use std::fs;

use serde_json::{Value, json};

use super::{refusal, stdout};

/// A scenario on a matrix, in a folder of its own.
struct Matrix(tempfile::TempDir);

impl Matrix {
    fn new(matrix: &str, rest: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("m.csv"), matrix).unwrap();
        let scenario = format!(
            "name: by-hand\ntarget: {{recorded: {{consumption: m.csv, cutoff: 10s}}}}\n{rest}price: {{cost: x, penalty: 10 * x}}\n"
        );
        fs::write(folder.path().join("s.yaml"), scenario).unwrap();
        Self(folder)
    }

    fn file(&self) -> String {
        self.0.path().join("s.yaml").to_str().unwrap().to_owned()
    }

    fn study(&self, args: &[&str]) -> Value {
        let file = self.file();
        let args = [&[file.as_str(), "--format", "json"], args].concat();
        serde_json::from_str(&stdout(&args)).unwrap()
    }
}

const FULL: &str = "limits: {grid: [1s, 10s]}\npolicy: fixed\n";

/// CPU time spent, runs, share censored and gain after the first budget.
fn spent(entry: &Value) -> [f64; 4] {
    let mark = &entry["budgets"][0];
    ["spent", "runs", "censored", "gain"].map(|name| mark[name]["mean"].as_f64().unwrap())
}

fn assert_near(seen: [f64; 4], expected: [f64; 4]) {
    for (seen, wanted) in seen.into_iter().zip(expected) {
        assert!((seen - wanted).abs() < 1e-9, "{seen} for {wanted}");
    }
}

#[test]
fn the_shortest_run_costs_a_hundredth_of_a_second() {
    let short = Matrix::new("instance,a\none,0.001\ntwo,0.001\n", FULL);
    let study = short.study(&["--budget", "105ms", "--repetitions", "1"]);
    // Ten runs of 10 ms; the eleventh is lost. Each is worth 1 - 0.001 / 10.
    assert_near(spent(&study[0]), [0.1, 10.0, 0.0, 10.0 * 0.9999]);
}

#[test]
fn the_run_in_flight_is_lost_and_one_that_just_ends_is_not() {
    let long = Matrix::new("instance,a\none,4\ntwo,4\n", FULL);
    let study = long.study(&["--budget", "8s,11s,12s", "--repetitions", "1"]);
    let budgets = study[0]["budgets"].as_array().unwrap();
    let runs = budgets.iter().map(|mark| mark["runs"]["mean"].clone());
    assert_eq!(runs.collect::<Vec<_>>(), [2.0, 2.0, 3.0].map(Value::from));
    let spent = budgets.iter().map(|mark| mark["spent"]["mean"].clone());
    assert_eq!(spent.collect::<Vec<_>>(), [8.0, 8.0, 12.0].map(Value::from));
    // Before the first run has ended there is no answer, and nothing is censored of nothing.
    let early = &study[0]["curve"][0];
    assert_eq!(
        (&early["answered"], &early["runs"]["mean"]),
        (&json!(0.0), &json!(0.0))
    );
    assert!(early["censored"]["mean"].is_null());
}

#[test]
fn runs_that_are_cut_off_cost_their_limit_and_bring_the_penalty() {
    let short = "limits: {grid: [1s]}\npolicy: fixed\n";
    let long = Matrix::new("instance,a\none,4\ntwo,4\n", short);
    let study = long.study(&["--budget", "3.5s", "--repetitions", "1"]);
    // x is the time over the largest limit: each costs 10.
    assert_near(spent(&study[0]), [3.0, 3.0, 1.0, -30.0]);
}

const TWO_ARMS: &str = "\
instance,a,b
one,1,4
two,2,4
three,2,unsolved
four,3,1
five,9,failed
";

#[test]
fn answers_are_judged_by_par10_on_the_second_half() {
    let matrix = Matrix::new(TWO_ARMS, FULL);
    let study = matrix.study(&["--budget", "1h", "--repetitions", "3"]);
    let entry = &study[0];
    // The larger half is the first: one, two, three.
    assert_eq!((&entry["training"], &entry["test"]), (&json!(3), &json!(2)));
    assert_eq!(entry["cutoff"], 10.0);
    // Training: (1 + 2 + 2) / 3 and (4 + 4 + 100) / 3; test: (3 + 9) / 2 and (1 + 100) / 2.
    let (a, b) = (
        json!({"arm": 1, "train": 5.0 / 3.0, "test": 6.0}),
        json!({"arm": 2, "train": 36.0, "test": 50.5}),
    );
    let baselines = &entry["baselines"];
    assert_eq!(baselines["best_test"], a);
    assert_eq!(baselines["best_training"], a);
    assert_eq!(baselines["median_training"], b);
    let mark = &entry["budgets"][0];
    assert_eq!(
        mark["test"],
        json!({"mean": 6.0, "se": 0.0}),
        "arm a is found"
    );
    assert_eq!(mark["train"]["mean"], 5.0 / 3.0);
    assert_eq!(mark["answered"], 1.0);
}

#[test]
fn instances_may_be_kept_back_by_name() {
    let matrix = Matrix::new(TWO_ARMS, FULL);
    let path = matrix.0.path().join("s.yaml");
    let text = fs::read_to_string(&path).unwrap();
    let text = text.replace("cutoff: 10s", "cutoff: 10s, test: [one, four]");
    fs::write(&path, text).unwrap();
    let study = matrix.study(&["--budget", "1m", "--repetitions", "1"]);
    assert_eq!(
        (&study[0]["training"], &study[0]["test"]),
        (&json!(3), &json!(2))
    );
    let baselines = &study[0]["baselines"];
    // Test: (1 + 3) / 2 and (4 + 1) / 2; training: (2 + 2 + 9) / 3 and (4 + 100 + 100) / 3.
    assert_eq!(
        baselines["best_training"],
        json!({"arm": 1, "train": 13.0 / 3.0, "test": 2.0})
    );
    assert_eq!(
        baselines["median_training"],
        json!({"arm": 2, "train": 68.0, "test": 2.5})
    );
    let one = Matrix::new("instance,a,b\none,1,2\n", FULL);
    let refused = refusal(&[&one.file(), "--budget", "1m"]);
    assert!(
        refused.contains("no instance to judge an answer on"),
        "{refused}"
    );
}

#[test]
fn a_folder_gets_a_page_and_the_data() {
    let matrix = Matrix::new(TWO_ARMS, &FULL.replace("fixed", "[fixed, halving]"));
    let out = matrix.0.path().join("out");
    let args = [
        "--budget",
        "10s,100s",
        "--repetitions",
        "3",
        "--out",
        out.to_str().unwrap(),
    ];
    let study = matrix.study(&args);
    let read = |name: &str| fs::read_to_string(out.join(name)).unwrap();
    let written: Value = serde_json::from_str(&read("study.json")).unwrap();
    assert_eq!(written, study);
    assert_eq!(read("study.csv").lines().count(), 1 + 2 * 2);
    let points = study[0]["curve"].as_array().unwrap().len();
    assert!(points > 20);
    let curves = read("curves.csv");
    assert_eq!(curves.lines().count(), 1 + 2 * points);
    assert!(
        curves
            .lines()
            .next()
            .unwrap()
            .contains("cpu,sweeps,share_mean")
    );
    let page = read("study.html");
    assert!(page.contains("function startHoldout()") && page.contains("\"label\":\"halving\""));
    assert!(!page.contains("<script src") && !page.contains("http-equiv=\"refresh"));
    // A folder that cannot be created is reported before anything is played.
    let file = matrix.file();
    let in_a_file = format!("{file}/out");
    super::study(&[&file, "--budget", "10000h", "--out", &in_a_file])
        .assert()
        .code(1);
}

#[test]
fn a_budget_in_b_is_counted_in_runs_of_every_arm_on_each_random_half() {
    // One run of a and b costs 3 + 5 s on every instance, so 2 B are 16 s.
    let rows = (0..9).map(|row| format!("i{row},3,5\n"));
    let matrix = format!("instance,a,b\n{}", rows.collect::<String>());
    let matrix = Matrix::new(&matrix, FULL);
    let study = matrix.study(&["--budget", "2B", "--halves", "4"]);
    let entry = &study[0];
    assert_eq!((&entry["training"], &entry["test"]), (&json!(5), &json!(4)));
    assert_eq!(
        (&entry["halves"], &entry["repetitions"]),
        (&json!(4), &json!(1))
    );
    let mark = &entry["budgets"][0];
    assert_eq!((&mark["cpu"], &mark["sweeps"]), (&json!(16.0), &json!(2.0)));
    // Both arms have been run by then, so the answer is the better one: from the median (4) to the best (3).
    assert_eq!(mark["share"], json!({"mean": 1.0, "se": 0.0}));
    let file = matrix.file();
    let refused = refusal(&[&file, "--budget", "2B,1h"]);
    assert!(refused.contains("mixes times and B"), "{refused}");
    let refused = refusal(&[&file, "--budget", "xB"]);
    assert!(refused.contains("not a number of B"), "{refused}");
}

#[test]
fn halves_differ_and_are_the_same_under_the_same_seed() {
    let matrix = Matrix::new(TWO_ARMS, FULL);
    let study = |seed| {
        let args = ["--budget", "1m", "--halves", "3", "--seed", seed];
        matrix.study(&args)[0]["baselines"].clone()
    };
    assert_eq!(study("1"), study("1"));
    assert_ne!(study("1"), study("2"));
}

#[test]
fn several_scenarios_are_summed_up_by_mean_and_worst() {
    let (one, two) = (Matrix::new(TWO_ARMS, FULL), Matrix::new(TWO_ARMS, FULL));
    let (one, two) = (one.file(), two.file());
    let args = [
        one.as_str(),
        two.as_str(),
        "--budget",
        "0.5B,20B",
        "--repetitions",
        "2",
    ];
    insta::assert_snapshot!(stdout(&args));
    let refused = refusal(&[&one, &two]);
    assert!(refused.contains("several scenarios"), "{refused}");
}

#[test]
fn with_slots_pulls_are_in_flight_together() {
    let matrix = Matrix::new(TWO_ARMS, FULL);
    let study = |slots: &str| {
        let args = [
            "--budget",
            "20s,60s",
            "--repetitions",
            "3",
            "--slots",
            slots,
        ];
        matrix.study(&args)
    };
    let (one, four) = (study("1"), study("4"));
    assert_eq!(
        one,
        matrix.study(&["--budget", "20s,60s", "--repetitions", "3"])
    );
    assert_ne!(one, four);
    // What is in flight when the budget is spent is lost: the budget counts what has ended.
    for mark in four[0]["budgets"].as_array().unwrap() {
        assert!(mark["spent"]["mean"].as_f64() <= mark["cpu"].as_f64());
    }
}

#[test]
fn several_numbers_of_slots_are_compared() {
    let matrix = Matrix::new(TWO_ARMS, FULL);
    let budget = ["--budget", "20s,60s", "--repetitions", "3"];
    let study = |slots: &str| matrix.study(&[&budget[..], &["--slots", slots]].concat());
    let (one, four, both) = (study("1"), study("4"), study("1,4,4"));
    assert_eq!(both, json!([one[0], four[0]]));
    assert_eq!(
        (&both[0]["slots"], &both[1]["slots"]),
        (&json!(1), &json!(4))
    );
    let file = matrix.file();
    let text = stdout(&[&[file.as_str(), "--slots", "1,4"], &budget[..]].concat());
    assert!(text.contains("fixed, 4 slots"), "{text}");
    let refused = refusal(&[&file, "--slots", "1,4"]);
    assert!(refused.contains("several numbers of slots"), "{refused}");
}
