//! The examples that ship, run as a newcomer would.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::test_run::{TestRun, decisions_follow, expect, skipped, story};

/// A copy of an example's folder, because runs and instances are created next to it.
fn example(name: &str) -> TestRun {
    let test_run = TestRun::new("");
    let from = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("examples")
        .join(name);
    let copied = Command::new("cp")
        .arg("-r")
        .arg(from)
        .arg(test_run.path())
        .status()
        .unwrap();
    assert!(copied.success());
    test_run
}

fn best(test_run: &TestRun, run: &str) -> Value {
    let (best, _) = expect(&test_run.captime(&["best", run, "--format", "json"]), 0);
    serde_json::from_str(&best).unwrap()
}

#[test]
fn minisat_is_tuned_on_random_formulas() {
    if Command::new("minisat").arg("--help").output().is_err() {
        assert!(
            std::env::var_os("CAPTIME_REQUIRE_PROGRAMS").is_none(),
            "minisat is not installed"
        );
        skipped("minisat is not installed");
        return;
    }
    let test_run = example("minisat");
    let made = Command::new("minisat/make-instances")
        .args(["6", "90"])
        .current_dir(test_run.path())
        .status()
        .unwrap();
    assert!(made.success());
    assert_eq!(
        fs::read_dir(test_run.path().join("minisat/instances"))
            .unwrap()
            .count(),
        6
    );
    let file = test_run.path().join("minisat/minisat.yaml");
    let scenario = fs::read_to_string(&file).unwrap();
    fs::write(&file, scenario.replace("rounds: 400", "rounds: 60")).unwrap();
    let (summary, _) = expect(&test_run.captime(&["run", "minisat/minisat.yaml"]), 0);
    assert!(
        summary.contains("captime exec --cpu") && summary.contains("minisat -verb=0"),
        "{summary}"
    );
    let folder = test_run.run_folder("minisat");
    decisions_follow(&folder);
    let (pulls, outcomes) = story(&folder);
    assert_eq!(outcomes.len(), 60);
    assert!(
        pulls
            .iter()
            .all(|pull| pull.instance.is_some() && pull.seed.is_some())
    );
    let solved = outcomes
        .iter()
        .filter(|outcome| outcome.reward == Some(1.0))
        .count();
    assert!(solved >= 30, "{solved} of 60 solved\n{summary}");
    assert!(
        outcomes.iter().all(|outcome| outcome.failed.is_none()),
        "{summary}"
    );
    assert!(best(&test_run, "minisat")["pulls"].as_u64().unwrap() >= 1);
    let (table, _) = expect(
        &test_run.captime(&["export", "minisat", "--format", "aslib"]),
        0,
    );
    assert!(
        table.contains("random-") && table.contains(",ok"),
        "{table}"
    );
}

#[test]
fn a_script_with_instances_and_seeds_is_tuned() {
    let test_run = example("script");
    let (summary, _) = expect(&test_run.captime(&["run", "script/script.yaml"]), 0);
    assert!(
        summary.contains("captime exec --cpu") && summary.contains("./score.sh"),
        "{summary}"
    );
    let folder = test_run.run_folder("script");
    let (pulls, outcomes) = story(&folder);
    assert_eq!(outcomes.len(), 100);
    let instances: std::collections::BTreeSet<_> = pulls.iter().map(|pull| pull.instance).collect();
    assert_eq!(instances.len(), 3, "all instances are drawn");
    assert!(outcomes.iter().any(|outcome| outcome.score.is_some()));
    decisions_follow(&folder);
}

#[test]
fn the_default_scenario_finds_a_better_arm_than_the_median() {
    let test_run = TestRun::new("");
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let scenario = fs::read_to_string(root.join("arms.yaml")).unwrap();
    // Small forests, few rounds, and work instead of time, so that a loaded machine gives the same result.
    let mut small = scenario;
    for (whole, part) in [
        ("[320, 160, 80, 40, 20, 10]", "[40, 20, 10]"),
        ("{wall: 100s}", "{rounds: 150}"),
        (
            "of: cpu, from: 20ms, to: 1s",
            "of: work, from: 1e6, to: 5e7",
        ),
        ("unit: 1s", "unit: 5e7"),
    ] {
        assert!(small.contains(whole), "{whole}");
        small = small.replace(whole, part);
    }
    test_run.write("arms.yaml", &small);
    fs::create_dir(test_run.path().join("datasets")).unwrap();
    fs::copy(
        root.join("datasets/ames_like.csv"),
        test_run.path().join("datasets/ames_like.csv"),
    )
    .unwrap();
    let (summary, _) = expect(&test_run.captime(&["run", "arms.yaml"]), 0);
    let best = best(&test_run, "houses");
    let (rows, _) = expect(
        &test_run.captime(&["export", "houses", "--format", "jsonl"]),
        0,
    );
    let mut by_arm: std::collections::BTreeMap<u64, Vec<f64>> = std::collections::BTreeMap::new();
    for line in rows.lines() {
        let row: Value = serde_json::from_str(line).unwrap();
        by_arm
            .entry(row["arm"].as_u64().unwrap())
            .or_default()
            .push(row["gain"].as_f64().unwrap());
    }
    let mut means: Vec<f64> = by_arm
        .values()
        .map(|gains| gains.iter().sum::<f64>() / gains.len() as f64)
        .collect();
    means.sort_by(f64::total_cmp);
    let median = means[means.len() / 2];
    assert!(
        best["gain"].as_f64().unwrap() > median,
        "{best} against {median}\n{summary}"
    );
}

#[test]
fn the_papers_forests_are_checked_and_replayed() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/ames-forest");
    let captime = |args: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_captime"))
            .args(args)
            .current_dir(&folder)
            .output()
            .unwrap();
        expect(&output, 0).0
    };
    for (scenario, arms) in [
        ("ames-forest.yaml", 672),
        ("replay.yaml", 672),
        ("small.yaml", 24),
    ] {
        let picture = captime(&["check", scenario]);
        assert!(
            picture.contains(&format!("arms      {arms}")),
            "{scenario}: {picture}"
        );
    }
    let args = [
        "--repetitions",
        "10",
        "--policy",
        "rcucb",
        "--format",
        "json",
    ];
    let json = captime(&[&["study", "replay.yaml"], &args[..]].concat());
    let study: Value = serde_json::from_str(&json).unwrap();
    let entry = &study[0];
    assert_eq!(
        (&entry["arms"], &entry["limits"], &entry["rounds"]),
        (&672.into(), &10.into(), &13440.into())
    );
    // What the page says about the fits that ship must match: share, reward and gain.
    let page = fs::read_to_string(folder.join("../../docs/paper-experiments.md")).unwrap();
    let mean = |name: &str| entry[name]["mean"].as_f64().unwrap();
    let share = format!("{:.4}", mean("censored"));
    let row = format!("| rcucb | .0589 | {} |", share.trim_start_matches('0'));
    let told = page.lines().find(|line| line.starts_with(&row));
    let told = told.unwrap_or_else(|| panic!("no row begins with {row}"));
    for sum in ["reward", "gain"].map(mean) {
        let thousands = format!("{},{:03.0}", (sum / 1000.0).trunc(), sum % 1000.0);
        assert!(told.contains(&thousands), "{thousands} is not in {told}");
    }
}

/// Recorded runs that ship: a study of their replay, a run on their surrogate, and one pull of any configuration.
fn replayed_and_imitated(example_name: &str, instances: usize, surrogate: &str, any: [&str; 2]) {
    let test_run = example(example_name);
    let file = |name: &str| format!("{example_name}/{name}");
    let read = |name: &str| fs::read_to_string(test_run.path().join(file(name))).unwrap();
    let matrix = read("consumption.csv");
    assert_eq!(matrix.lines().count(), 1 + instances, "and a header");
    assert!(matrix.lines().all(|row| row.split(',').count() == 1 + 300));
    let replay = file("replay.yaml");
    let study = ["study", &replay, "--budget", "5s", "--repetitions", "2"];
    let (table, _) = expect(
        &test_run.captime(&[&study[..], &["--format", "json"]].concat()),
        0,
    );
    let study: Value = serde_json::from_str(&table).unwrap();
    assert_eq!(study[0]["arms"], 300);
    let short = read("surrogate.yaml").replace("consumption: 100s", "rounds: 100");
    fs::write(test_run.path().join(file("surrogate.yaml")), short).unwrap();
    expect(
        &test_run.captime(&["run", &file("surrogate.yaml"), "--quiet"]),
        0,
    );
    let parameter = any[0].split_once('=').unwrap().0;
    assert!(best(&test_run, surrogate)["configuration"][parameter].is_string());
    let (pulled, _) = expect(
        &test_run.captime(&["pull", &file("surrogate.yaml"), any[0], any[1]]),
        0,
    );
    assert!(pulled.contains("\"outcome\":"), "{pulled}");
}

#[test]
fn the_recorded_runs_of_clasp_are_replayed_and_imitated() {
    let any = ["heuristic=Vsids", "vsids_decay=95"];
    replayed_and_imitated("recorded", 34, "clasp-surrogate", any);
}

#[test]
fn the_recorded_runs_of_cbc_are_replayed_and_imitated() {
    let any = ["presolve=more", "nodeStrategy=depth"];
    replayed_and_imitated("cbc", 40, "cbc-surrogate", any);
}

#[test]
fn cbc_is_tuned_on_generated_problems() {
    if Command::new("cbc").arg("-quit").output().is_err() {
        assert!(
            std::env::var_os("CAPTIME_REQUIRE_PROGRAMS").is_none(),
            "cbc is not installed"
        );
        skipped("cbc is not installed");
        return;
    }
    let test_run = example("cbc");
    let made = Command::new("cbc/make-instances")
        .current_dir(test_run.path())
        .status()
        .unwrap();
    assert!(made.success());
    let file = test_run.path().join("cbc/cbc.yaml");
    let scenario = fs::read_to_string(&file).unwrap();
    fs::write(&file, scenario.replace("wall: 5m", "rounds: 40")).unwrap();
    let (summary, _) = expect(&test_run.captime(&["run", "cbc/cbc.yaml"]), 0);
    let (_, outcomes) = story(&test_run.run_folder("cbc"));
    let solved = outcomes
        .iter()
        .filter(|outcome| outcome.reward == Some(1.0))
        .count();
    assert!(solved >= 5, "{solved} of 40 solved\n{summary}");
}
