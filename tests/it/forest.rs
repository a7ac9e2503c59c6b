//! `captime forest`.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use assert_cmd::Command;
use serde_json::Value;

const HOUSES: &str = "datasets/ames_like.csv";
const GROUND: &str = "datasets/ground_like.csv";

fn forest(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_captime"));
    command.current_dir(env!("CARGO_MANIFEST_DIR"));
    command.arg("forest").args(args);
    command
}

/// The report of a run that must succeed in silence.
fn report(args: &[&str]) -> Value {
    let assert = forest(args).args(["--format", "json"]).assert().code(0);
    let output = assert.get_output();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    serde_json::from_slice(&output.stdout).expect("one JSON object")
}

/// The message of a command that must be refused.
fn refusal(args: &[&str]) -> String {
    let assert = forest(args).assert().code(2);
    let output = assert.get_output();
    assert!(output.stdout.is_empty());
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// What does not depend on the clock.
fn timeless(mut report: Value) -> Value {
    let fields = report.as_object_mut().expect("an object");
    fields.retain(|name, _| !name.ends_with("_seconds"));
    report
}

const SMALL: [&str; 8] = [
    "--trees",
    "30",
    "--mtry",
    "20",
    "--min-node-size",
    "9",
    "--sample-fraction",
    "0.55",
];

#[test]
fn houses_are_predicted_and_everything_is_told() {
    let args = [&[HOUSES, "--predict", "Sale_Price"][..], &SMALL].concat();
    let seen = report(&args);
    for (name, expected) in [
        ("task", Value::from("regression")),
        ("rows", Value::from(2930)),
        ("predictors", Value::from(80)),
        ("stopped", Value::from(false)),
    ] {
        assert_eq!(seen[name], expected, "{name}");
    }
    let reward = seen["reward"].as_f64().expect("a reward");
    assert!((0.94..0.98).contains(&reward), "{reward}");
    assert!(seen["rmse"].as_f64().expect("an error") > 0.0);
    assert!(seen["leaves"].as_f64().expect("leaves") > 100.0);
    assert!(seen["work"].as_u64().expect("a whole number") > 1_000_000);
    let seconds = |name: &str| seen[name].as_f64().expect("seconds");
    assert!(seconds("fit_seconds") > 0.0 && seconds("fit_seconds") < seconds("wall_seconds"));
    assert!(seconds("cpu_seconds") > 0.0);
    assert!(seconds("cpu_seconds") <= seconds("wall_seconds"));
}

#[test]
fn neither_threads_nor_instructions_change_the_result() {
    let args = [&[HOUSES, "--predict", "Sale_Price", "--oob"][..], &SMALL].concat();
    let run = |more: &[&str]| timeless(report(&[&args[..], more].concat()));
    let expected = run(&[]);
    assert_eq!(run(&["--threads", "2"]), expected);
    assert_eq!(run(&["--simd", "portable"]), expected);
    assert_ne!(run(&["--seed", "2"]), expected);
}

#[test]
fn a_limit_on_work_stops_or_does_not_the_same_way_every_time() {
    let args = [&[HOUSES, "--predict", "Sale_Price"][..], &SMALL].concat();
    let run =
        |limit: &str| report(&[&args[..], &["--resource", "work", "--limit", limit]].concat());
    let free = report(&args);
    let work = free["work"].as_f64().expect("work");
    let enough = run(&work.to_string());
    assert_eq!(
        (&enough["stopped"], &enough["rmse"]),
        (&Value::from(false), &free["rmse"])
    );
    let less = timeless(run(&(work - 1.0).to_string()));
    assert_eq!(
        (&less["stopped"], &less["reward"]),
        (&Value::from(true), &Value::Null)
    );
    assert_eq!(timeless(run(&(work - 1.0).to_string())), less);
}

#[test]
fn limits_on_time_end_a_fit_that_would_take_minutes() {
    for resource in ["wall", "cpu"] {
        let long = [
            HOUSES,
            "--predict",
            "Sale_Price",
            "--trees",
            "200000",
            "--mtry",
            "80",
        ];
        let limit = ["--limit", "50ms", "--resource", resource];
        let seen = report(&[&long[..], &limit].concat());
        assert_eq!(seen["stopped"], true);
        let name = if resource == "wall" {
            "fit_seconds"
        } else {
            "fit_cpu_seconds"
        };
        let used = seen[name].as_f64().expect("seconds");
        // Another process may have the processor when the time has come.
        assert!((0.05..2.0).contains(&used), "{resource}: {used}");
    }
}

#[test]
fn classes_are_told_apart_by_every_engine_that_can() {
    let args = [
        GROUND,
        "--predict",
        "Cover",
        "--drop",
        "Plot",
        "--trees",
        "60",
    ];
    let ours = report(&args);
    assert_eq!(ours["task"], "classification");
    assert!(ours["accuracy"].as_f64().expect("a share") > 0.6);
    assert_eq!(ours["accuracy"], ours["reward"]);
    for engine in ["smartcore", "linfa"] {
        let with_gaps = [&args[..], &["--engine", engine]].concat();
        let said = refusal(&with_gaps);
        assert!(
            said.contains("cannot handle missing numbers, and column `Acidity`"),
            "{said}"
        );
        let whole = [&with_gaps[..], &["--drop", "Acidity,To_Water"]].concat();
        let seen = report(&whole);
        assert_eq!(seen["work"], Value::Null);
        let share = seen["accuracy"].as_f64().expect("a share");
        assert!(share > 0.5, "{engine}: {share}");
    }
    let said = refusal(&[HOUSES, "--predict", "Sale_Price", "--engine", "linfa"]);
    insta::assert_snapshot!(said);
}

#[test]
fn given_test_rows_are_used_and_checked() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| -> PathBuf {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("written");
        path
    };
    let rows: String = (1..=879).fold(String::new(), |mut text, row| {
        let _ = writeln!(text, "{row}");
        text
    });
    let run = |path: &Path| {
        let path = path.to_str().expect("a plain path");
        let args = [
            &[HOUSES, "--predict", "Sale_Price", "--test-rows", path][..],
            &SMALL,
        ]
        .concat();
        forest(&args)
            .args(["--format", "json"])
            .output()
            .expect("it runs")
    };
    for mark in ["", "\u{feff}"] {
        let good = run(&write("good", &format!("{mark}{rows}")));
        assert_eq!(good.status.code(), Some(0), "{good:?}");
    }
    for (text, said) in [
        (
            "1\n2931\n",
            "bad: line 2: test row 2931 is not in the table",
        ),
        ("0\n", "bad: line 1: test row 0 is not in the table"),
        ("\u{feff}7\n\n8\n7\n", "bad: line 4: duplicate test row 7"),
        ("1\nx\n", "bad: line 2: `x` is not a row number"),
        (
            "",
            "bad: a split of 2930 rows with 2930 for training leaves one side empty",
        ),
    ] {
        let bad = run(&write("bad", text));
        assert_eq!(bad.status.code(), Some(2));
        let stderr = String::from_utf8_lossy(&bad.stderr).into_owned();
        assert!(stderr.contains(said), "{stderr}");
    }
}

#[test]
fn several_splits_give_means_and_importance_names_the_columns() {
    let args = [
        &[HOUSES, "--predict", "Sale_Price", "--splits", "2"][..],
        &SMALL,
    ]
    .concat();
    let both = report(&args);
    let one = |seed: &str| {
        let args = [
            &[HOUSES, "--predict", "Sale_Price", "--seed", seed][..],
            &SMALL,
        ]
        .concat();
        report(&args)["rmse"].as_f64().expect("an error")
    };
    let mean = f64::midpoint(one("1"), one("2"));
    assert!((both["rmse"].as_f64().expect("an error") - mean).abs() < 1e-6);
    for kind in ["impurity", "permutation"] {
        let seen = report(&[&args[..], &["--importance", kind]].concat());
        let table = seen["importance"].as_object().expect("a table");
        assert_eq!(table.len(), 80);
    }
}

#[test]
fn splits_that_were_stopped_leave_no_mean_of_the_others() {
    let one = |seed: &str| {
        let args = [HOUSES, "--predict", "Sale_Price", "--seed", seed];
        report(&[&args[..], &SMALL].concat())["work"]
            .as_f64()
            .expect("work")
    };
    let mut work = ["1", "2", "3"].map(one);
    work.sort_by(f64::total_cmp);
    let limit = work[1].to_string();
    let args = [HOUSES, "--predict", "Sale_Price", "--splits", "3"];
    let limit = ["--resource", "work", "--limit", &limit];
    let args = [&args[..], &SMALL, &limit].concat();
    let seen = report(&args);
    assert_eq!(
        (&seen["stopped"], &seen["stopped_splits"]),
        (&Value::from(true), &Value::from(1))
    );
    for name in ["rmse", "reward", "leaves"] {
        assert_eq!(seen[name], Value::Null, "{name}");
    }
    let assert = forest(&args).assert().code(0);
    let text = String::from_utf8_lossy(&assert.get_output().stdout).into_owned();
    assert!(
        text.contains("1 of 3 splits was stopped at the limit\nfit "),
        "{text}"
    );
}

#[test]
fn mistakes_are_explained() {
    let mut said = String::new();
    for line in [
        "datasets/ames_like.csv --predict Sale_Prise",
        "datasets/ames_like.csv --predict Sale_Price --mtry 81",
        "datasets/ames_like.csv --predict Sale_Price --limit 50",
        "datasets/ames_like.csv --predict Sale_Price --limit 0s",
        "datasets/ames_like.csv --predict Sale_Price --limit 1s --resource work",
        "datasets/ames_like.csv --predict Sale_Price --train 1",
        "datasets/ames_like.csv --predict Sale_Price --sample-fraction 2",
        "datasets/ames_like.csv --predict Sale_Price --levels Quality",
        "datasets/no_such.csv --predict Sale_Price",
        "datasets/ames_like.csv --predict Sale_Price --limit nan",
        "datasets/ames_like.csv --predict Sale_Price --limit 1e400",
        "datasets/ames_like.csv --predict Sale_Price --limit 1e307d",
        "datasets/ames_like.csv --predict Sale_Price --resource work --limit nan",
        "datasets/ames_like.csv --predict Sale_Price --resource work --limit 1e400",
        "datasets/ames_like.csv --predict Sale_Price --resource cpu",
        "datasets/ames_like.csv --predict Sale_Price --drop Sale_Price",
        "datasets/ames_like.csv --predict Sale_Price --levels Street=a,b --levels Street=b,a",
    ] {
        let args: Vec<&str> = line.split(' ').collect();
        let _ = writeln!(said, "$ captime forest {line}\n{}", refusal(&args));
    }
    insta::assert_snapshot!(said);
}

#[test]
fn limits_hold_for_engines_that_cannot_be_stopped() {
    for resource in ["wall", "cpu"] {
        let args = [HOUSES, "--predict", "Sale_Price", "--engine", "smartcore"];
        let limit = [
            "--trees",
            "2000",
            "--limit",
            "300ms",
            "--resource",
            resource,
        ];
        let started = std::time::Instant::now();
        let seen = report(&[&args[..], &limit].concat());
        assert_eq!(
            (&seen["stopped"], &seen["reward"]),
            (&Value::from(true), &Value::Null)
        );
        let name = if resource == "wall" {
            "fit_seconds"
        } else {
            "fit_cpu_seconds"
        };
        // The work of a killed process is not counted.
        assert_eq!(seen["work"], Value::Null);
        let used = seen[name].as_f64().expect("seconds");
        assert!((0.29..5.0).contains(&used), "{resource}: {used}");
        assert!(started.elapsed() < std::time::Duration::from_mins(1));
    }
    let said = refusal(&[
        HOUSES,
        "--predict",
        "Sale_Price",
        "--engine",
        "smartcore",
        "--limit",
        "1e6",
        "--resource",
        "work",
    ]);
    assert!(
        said.contains("engine `smartcore` does not count work"),
        "{said}"
    );
}

#[test]
fn a_process_of_its_own_gives_the_same_result() {
    let args = [
        &[HOUSES, "--predict", "Sale_Price", "--splits", "2"][..],
        &SMALL,
    ]
    .concat();
    let apart = |more: &[&str]| report(&[&args[..], &["--isolation", "process"], more].concat());
    assert_eq!(timeless(apart(&[])), timeless(report(&args)));
    // The current name, and the old one.
    for name in ["thread", "none"] {
        let within = report(&[&args[..], &["--isolation", name]].concat());
        assert_eq!(timeless(within), timeless(report(&args)));
    }
    assert_eq!(
        apart(&["--limit", "1000", "--resource", "work"])["stopped"],
        true
    );
    assert_eq!(apart(&["--limit", "5ms"])["stopped"], true);
    let said = refusal(&[&args[..], &["--isolation", "process", "--engine", "linfa"]].concat());
    assert!(
        said.starts_with("captime: engine `linfa` cannot do regression"),
        "{said}"
    );
}

#[test]
fn a_column_whose_name_holds_an_equals_sign_has_an_order_too() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("equal.csv");
    let rows = (0..40).map(|row| {
        let level = ["low", "mid", "high"][row % 3];
        format!("{level},{row},{}\n", row % 3 * 10 + row % 2)
    });
    let text = format!("q=a,q,y\n{}", rows.collect::<String>());
    std::fs::write(&path, text).expect("written");
    let data = path.to_str().expect("a plain path");
    let args = [
        data,
        "--predict",
        "y",
        "--task",
        "regression",
        "--trees",
        "5",
    ];
    for isolation in ["thread", "process"] {
        let run = |order| {
            let more = ["--isolation", isolation, "--levels", order];
            [&args[..], &more].concat()
        };
        assert_eq!(report(&run("q=a=low,mid,high"))["predictors"], 2);
        let said = refusal(&run("q=a=low,mid"));
        assert!(
            said.contains("level `high` of `q=a` is not in the order"),
            "{said}"
        );
    }
}

/// Peak memory of the process, as the kernel counts it.
#[test]
fn a_fit_on_houses_needs_less_than_40_mb() {
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_captime"))
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .args([
            "forest",
            HOUSES,
            "--predict",
            "Sale_Price",
            "--trees",
            "700",
            "--mtry",
            "30",
        ])
        .args(["--min-node-size", "3", "--sample-fraction", "0.8"])
        .stdout(std::process::Stdio::null())
        .spawn()
        .expect("it starts");
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    while child.try_wait().expect("a child of this test").is_none() {
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find(|line| line.starts_with("VmHWM:"));
        let kib = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
        peak = peak.max(kib.unwrap_or(0));
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    assert!((1_000..40_000).contains(&peak), "{peak} KiB");
}

fn predict(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_captime"));
    command.current_dir(env!("CARGO_MANIFEST_DIR"));
    command.arg("predict").args(args);
    command
}

#[test]
fn a_saved_forest_predicts_other_rows() {
    let folder = tempfile::tempdir().expect("a folder");
    let model = folder.path().join("model.bin");
    let model = model.to_str().expect("a plain path");
    let args = [
        GROUND,
        "--predict",
        "Cover",
        "--drop",
        "Plot",
        "--trees",
        "20",
        "--save",
        model,
    ];
    report(&args);
    let mode = std::fs::metadata(model).expect("it is there").permissions();
    assert_eq!(
        std::os::unix::fs::PermissionsExt::mode(&mode) & 0o777,
        0o600
    );
    let assert = predict(&[model, GROUND]).assert().code(0);
    let output = assert.get_output();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    let text = std::fs::read_to_string(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/datasets/ground_like.csv"
    ));
    let text = text.expect("it ships");
    let mut table = csv::Reader::from_reader(text.as_bytes());
    let place = table
        .headers()
        .expect("a header")
        .iter()
        .position(|name| name == "Cover");
    let truth = table
        .records()
        .map(|row| row.expect("a row")[place.expect("a target")].to_owned());
    let mut seen = csv::Reader::from_reader(&output.stdout[..]);
    let header: Vec<String> = seen
        .headers()
        .expect("a header")
        .iter()
        .map(str::to_owned)
        .collect();
    assert!(
        header[0] == "Cover" && header[1].starts_with("p("),
        "{header:?}"
    );
    let (mut right, mut rows) = (0, 0);
    for (row, truth) in seen.records().zip(truth) {
        let row = row.expect("a row");
        let shares: Vec<f64> = row
            .iter()
            .skip(1)
            .map(|share| share.parse().expect("a share"))
            .collect();
        assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-9);
        rows += 1;
        right += u32::from(row[0] == truth);
    }
    // These are the rows it has learned.
    assert!(
        rows == 420 && f64::from(right) > 0.95 * f64::from(rows),
        "{right} of {rows}"
    );
}

#[test]
fn a_model_or_rows_that_cannot_be_used_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).display().to_string();
    let write = |name: &str, bytes: &[u8]| std::fs::write(path(name), bytes).expect("written");
    write(
        "rows.csv",
        b"size,zone,price\n1,a,10\n2,b,20\n3,a,30\n4,b,42\n5,a,50\n",
    );
    let fit = ["--predict", "price", "--trees", "5", "--save"];
    report(
        &[
            &[path("rows.csv").as_str()],
            &fit[..],
            &[&path("model.bin")],
        ]
        .concat(),
    );
    let whole = std::fs::read(path("model.bin")).expect("a model");
    write("cut.bin", &whole[..whole.len() - 1]);
    let mut damaged = whole.clone();
    damaged[60] ^= 1;
    write("damaged.bin", &damaged);
    write("fewer.csv", b"size\n1\n");
    write("text.csv", b"size,zone\nbig,a\n");
    let mut said = String::new();
    for (model, rows) in [
        ("cut.bin", "rows.csv"),
        ("damaged.bin", "rows.csv"),
        ("rows.csv", "rows.csv"),
        ("absent.bin", "rows.csv"),
        ("model.bin", "absent.csv"),
        ("model.bin", "fewer.csv"),
        ("model.bin", "text.csv"),
    ] {
        let assert = predict(&[&path(model), &path(rows)]).assert().code(2);
        let stderr = String::from_utf8_lossy(&assert.get_output().stderr).into_owned();
        let stderr = stderr.replace(&folder.path().display().to_string(), "FOLDER");
        let _ = writeln!(said, "$ captime predict {model} {rows}\n{stderr}");
    }
    insta::assert_snapshot!(said);
    write("mars.csv", b"zone,size,id\nmars,1,7\nb,2,8\n");
    let assert = predict(&[&path("model.bin"), &path("mars.csv")])
        .assert()
        .code(0);
    let output = assert.get_output();
    assert_eq!(
        String::from_utf8_lossy(&output.stderr),
        "captime: warning: column `zone`: 1 cell with levels the model has not seen, taken for missing\n"
    );
    assert_eq!(String::from_utf8_lossy(&output.stdout).lines().count(), 3);
}

#[test]
fn classes_are_scored_by_auc_and_log_loss_too_and_splits_have_a_spread() {
    let args = [
        GROUND,
        "--predict",
        "Cover",
        "--drop",
        "Plot",
        "--trees",
        "30",
        "--splits",
        "3",
    ];
    let seen = report(&args);
    let figure = |report: &Value, name: &str| report[name].as_f64().expect("a number");
    assert!((0.7..1.0).contains(&figure(&seen, "auc")));
    assert!((0.1..3.0).contains(&figure(&seen, "log_loss")));
    for name in ["accuracy", "auc", "log_loss", "reward"] {
        assert!(seen["sd"][name].as_f64().expect("a spread") > 0.0, "{name}");
    }
    let auc = report(&[&args[..], &["--reward", "auc"]].concat());
    assert_eq!(auc["reward"], auc["auc"]);
    let loss = report(&[&args[..7], &["--reward", "log_loss"]].concat());
    assert!((figure(&loss, "reward") - (-figure(&loss, "log_loss")).exp()).abs() < 1e-12);
    assert_eq!(loss["sd"], Value::Null);
    let assert = forest(&args).assert().code(0);
    let text = String::from_utf8_lossy(&assert.get_output().stdout).into_owned();
    for begin in ["accuracy  0.", "auc       0.", "log loss  ", "reward    0."] {
        let line = text
            .lines()
            .find(|line| line.starts_with(begin))
            .expect(begin);
        assert!(
            line.contains(" (sd ") && line.ends_with(" over 3 splits)"),
            "{line}"
        );
    }
    for (line, reason) in [
        (
            "datasets/ames_like.csv --predict Sale_Price --reward auc",
            "the reward `auc` is for classes, but the target is a number",
        ),
        (
            "datasets/ground_like.csv --predict Cover --engine smartcore --reward auc",
            "engine `smartcore` ignores `--reward`: it gives classes without probabilities",
        ),
        (
            "datasets/ground_like.csv --predict Cover --engine linfa --save x.bin",
            "a forest of engine `linfa` cannot be saved",
        ),
    ] {
        let said = refusal(&line.split(' ').collect::<Vec<_>>());
        assert!(said.contains(reason), "{said}");
    }
}
