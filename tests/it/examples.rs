//! The examples that ship, run as a newcomer would.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::scene::{Scene, decisions_follow, expect, skipped, story};

/// A copy of an example's folder, since runs and instances are made next to it.
fn example(name: &str) -> Scene {
    let scene = Scene::new("");
    let from = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("examples")
        .join(name);
    let copied = Command::new("cp")
        .arg("-r")
        .arg(from)
        .arg(scene.path())
        .status()
        .unwrap();
    assert!(copied.success());
    scene
}

fn best(scene: &Scene, run: &str) -> Value {
    let (best, _) = expect(&scene.captime(&["best", run, "--format", "json"]), 0);
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
    let scene = example("minisat");
    let made = Command::new("minisat/make-instances")
        .args(["6", "90"])
        .current_dir(scene.path())
        .status()
        .unwrap();
    assert!(made.success());
    assert_eq!(
        fs::read_dir(scene.path().join("minisat/instances"))
            .unwrap()
            .count(),
        6
    );
    let file = scene.path().join("minisat/minisat.yaml");
    let scenario = fs::read_to_string(&file).unwrap();
    fs::write(&file, scenario.replace("rounds: 400", "rounds: 60")).unwrap();
    let (summary, _) = expect(&scene.captime(&["run", "minisat/minisat.yaml"]), 0);
    assert!(
        summary.contains("captime exec --cpu") && summary.contains("minisat -verb=0"),
        "{summary}"
    );
    let folder = scene.run_folder("minisat");
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
    assert!(best(&scene, "minisat")["pulls"].as_u64().unwrap() >= 1);
    let (table, _) = expect(
        &scene.captime(&["export", "minisat", "--format", "aslib"]),
        0,
    );
    assert!(
        table.contains("random-") && table.contains(",ok"),
        "{table}"
    );
}

#[test]
fn a_script_with_instances_and_seeds_is_tuned() {
    let scene = example("script");
    let (summary, _) = expect(&scene.captime(&["run", "script/script.yaml"]), 0);
    assert!(
        summary.contains("captime exec --cpu") && summary.contains("./score.sh"),
        "{summary}"
    );
    let folder = scene.run_folder("script");
    let (pulls, outcomes) = story(&folder);
    assert_eq!(outcomes.len(), 100);
    let instances: std::collections::BTreeSet<_> = pulls.iter().map(|pull| pull.instance).collect();
    assert_eq!(instances.len(), 3, "all instances are drawn");
    assert!(outcomes.iter().any(|outcome| outcome.score.is_some()));
    decisions_follow(&folder);
}

#[test]
fn the_default_scenario_finds_a_better_arm_than_the_median() {
    let scene = Scene::new("");
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let scenario = fs::read_to_string(root.join("arms.yaml")).unwrap();
    // A tenth of the arms, of the budget and of the forests: the whole takes two minutes, and is for the reader.
    let small = scenario
        .replace("{from: 100, to: 700, step: 100}", "[10, 40, 70]")
        .replace("{from: 20, to: 30, step: 2}", "[20, 30]")
        .replace("arms: 60", "arms: 12")
        .replace("{wall: 100s}", "{rounds: 150}")
        .replace("of: cpu ", "of: work ")
        .replace("cpu: 60s", "work: 1e12");
    assert_ne!(small, scenario);
    scene.write("arms.yaml", &small);
    fs::create_dir(scene.path().join("datasets")).unwrap();
    fs::copy(
        root.join("datasets/ames_like.csv"),
        scene.path().join("datasets/ames_like.csv"),
    )
    .unwrap();
    let (summary, _) = expect(&scene.captime(&["run", "arms.yaml"]), 0);
    let best = best(&scene, "ames-forest");
    let (rows, _) = expect(
        &scene.captime(&["export", "ames-forest", "--format", "jsonl"]),
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
    // What the page says of the fits that ship is what they give: share, reward and gain.
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
