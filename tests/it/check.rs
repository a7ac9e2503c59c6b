//! `captime check`: a scenario shown, or its mistakes.

use std::path::Path;
use std::time::{Duration, Instant};

use assert_cmd::Command;

use crate::test_run::{TestRun, expect};

fn captime(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_captime"));
    command.current_dir(folder).env("NO_COLOR", "1");
    command
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

const FOREST: &str = "target:
  forest: {data: data.csv, predict: y, drop: [id]}
arms:
  grid:
    trees: {from: 100, to: 700, step: 100}
    mtry: {from: 20, to: 30, step: 2}
    min_node_size: [3, 5, 7, 9]
    sample_fraction: [0.55, 0.632, 0.75, 0.8]
limits: {of: cpu, cpu: 60s, calibrate: {points: 10, arms: 60}}
budget: {wall: 100s}
slots: 2
";

fn forest_folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let columns: Vec<String> = (1..=80).map(|k| format!("x{k}")).collect();
    let row = |id: u32| format!("{id}{},{}\n", ",1".repeat(80), id * id);
    let data = format!("id,{},y\n{}{}", columns.join(","), row(1), row(2));
    std::fs::write(folder.path().join("data.csv"), data).unwrap();
    std::fs::write(folder.path().join("arms.yaml"), FOREST).unwrap();
    folder
}

#[test]
fn a_forest_scenario_is_shown_with_its_672_arms() {
    let folder = forest_folder();
    let done = captime(folder.path())
        .args(["check", "arms.yaml"])
        .assert()
        .code(0);
    assert!(done.get_output().stderr.is_empty());
    let shown = text(&done.get_output().stdout);
    let folder = folder.path().display().to_string();
    insta::assert_snapshot!(shown.replace(&folder, "FOLDER"));
}

#[test]
fn bad_data_are_refused_with_file_and_place_and_large_ones_left_to_try() {
    let folder = forest_folder();
    let path = folder.path().join("data.csv");
    let good = std::fs::read_to_string(&path).unwrap();
    let check = |code: i32, args: &[&str]| {
        let done = captime(folder.path())
            .args([&["check", "arms.yaml"], args].concat())
            .assert()
            .code(code);
        text(&done.get_output().stderr)
    };
    for (data, expected) in [
        (
            format!("{good}3,1\n"),
            "data.csv: line 4, column 3: 2 fields",
        ),
        (
            good.replace(",4\n", ",1\n"),
            "data.csv: line 1, column 82: target `y` is constant",
        ),
        (
            good.replacen(",1,", ",inf,", 1),
            "data.csv: line 2, column 2: `x1` is infinite",
        ),
        (
            good.lines().next().unwrap().to_owned(),
            "data.csv: line 1: too few rows below the header: 0",
        ),
    ] {
        std::fs::write(&path, &data).unwrap();
        for said in [check(2, &[]), check(2, &["--try", "1"])] {
            assert!(said.starts_with(&format!("captime: {expected}")), "{said}");
        }
        let run = captime(folder.path())
            .args(["run", "arms.yaml"])
            .assert()
            .code(2);
        let said = text(&run.get_output().stderr);
        assert!(said.contains(&format!("captime: {expected}")), "{said}");
        assert!(!folder.path().join("runs").exists(), "nothing has begun");
    }
    // A compressed table is called what it is, and not a table with strange columns.
    std::fs::write(&path, b"\x1f\x8b\x08\x00,;").unwrap();
    let said = check(2, &[]);
    assert!(said.contains("compressed with gzip"), "{said}");
    // A ragged row at the end of more than 20 MB is not found.
    let row = format!("{}\n", "1".repeat(80));
    std::fs::write(&path, format!("{good}{}", row.repeat(300_000))).unwrap();
    let said = check(0, &[]);
    assert!(
        said.contains("data.csv has 24 MB, of which only the header was read; `--try 1` reads"),
        "{said}"
    );
}

#[test]
fn a_command_scenario_is_shown_with_three_command_lines() {
    let folder = tempfile::tempdir().unwrap();
    let scenario = r#"
target:
  command: [sh, -c, "echo \"$0\" $1", "it's {mode}", "{instance}", "{params}"]
  instances: [a.txt, b c.txt]
  test: [d]
  reward: {stdout: 'score=([0-9.]+)', worst: 10, best: 0}
  env: {SEED: "{seed}"}
  stdin: {file: "{instance}"}
arms:
  grid: {mode: [fast, "so so", slow], level: {from: 1, to: 9, step: 1}, deep: [true, false]}
  except: {mode: fast, deep: true}
limits: {of: cpu, from: 0.1s, to: 10s, points: 5, scale: log, wall: 20s, memory: 512MiB, grace: 1s}
price: {cost: x / 10, penalty: x / 10 if x <= 0.5 else 10 * x}
policy: {rcucb: {alpha: 2}}
budget: {rounds: 1000, consumption: 2h}
slots: 2
pin: never
"#;
    std::fs::write(folder.path().join("s.yaml"), scenario).unwrap();
    let done = captime(folder.path())
        .args(["check", "s.yaml"])
        .assert()
        .code(0);
    assert_eq!(text(&done.get_output().stderr), "");
    insta::assert_snapshot!(text(&done.get_output().stdout));
}

#[test]
fn who_chooses_the_instances_is_said() {
    let folder = tempfile::tempdir().unwrap();
    for (policy, how) in [
        ("levels", "chosen by the policy"),
        ("race", "chosen by the policy"),
        ("halving:common=true", "chosen by the policy"),
        ("halving", "one drawn each round"),
        ("rcucb", "one drawn each round"),
        (
            "[levels, rcucb]",
            "chosen by the policy or drawn each round",
        ),
    ] {
        let scenario = format!(
            "target: {{command: [sh, -c, 'true', '{{instance}}'], instances: [a, b]}}\n\
             arms: {{list: [{{name: one}}, {{name: two}}]}}\nlimits: {{max: 10s, grid: 5}}\npolicy: {policy}\n"
        );
        std::fs::write(folder.path().join("s.yaml"), scenario).unwrap();
        let done = captime(folder.path())
            .args(["check", "s.yaml"])
            .assert()
            .code(0);
        let shown = text(&done.get_output().stdout);
        assert!(shown.contains(&format!("instances 2, {how}\n")), "{shown}");
    }
}

#[test]
fn an_external_scenario_is_shown_with_the_pulls_that_ask_would_give() {
    let folder = tempfile::tempdir().unwrap();
    let scenario = "target: external\narms: {list: [{name: one, p: 1}, {name: two, q: x}]}\nlimits: {max: 10s, grid: 20}\n";
    std::fs::write(folder.path().join("s.yaml"), scenario).unwrap();
    let done = captime(folder.path())
        .args(["check", "s.yaml"])
        .assert()
        .code(0);
    insta::assert_snapshot!(text(&done.get_output().stdout));
}

#[test]
fn virtual_targets_and_zoomed_limits_are_shown_too() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("runs.csv", "instance,a,b\ni1,1,2\ni2,3,400\n");
    write(
        "synthetic.yaml",
        "target: {synthetic: {problem: indep}}\npolicy: [rcucb, uniform]\n",
    );
    write(
        "recorded.yaml",
        "target: {recorded: {consumption: runs.csv, cutoff: 10s}}\nlimits: {max: 10s}\npolicy: z-rcucb\n",
    );
    let mut shown = String::new();
    for name in ["synthetic.yaml", "recorded.yaml"] {
        let done = captime(folder.path())
            .args(["check", name])
            .assert()
            .code(0);
        shown += &text(&done.get_output().stdout);
        shown.push_str("\n----\n");
    }
    insta::assert_snapshot!(shown);
}

#[test]
fn mistakes_go_to_stderr_with_exit_2_and_warnings_do_not_stop() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(
        folder.path().join("bad.yaml"),
        "target: external\nlimts: 5\nseed: x\n",
    )
    .unwrap();
    let bad = captime(folder.path())
        .args(["check", "bad.yaml"])
        .assert()
        .code(2);
    assert!(bad.get_output().stdout.is_empty());
    let shown = text(&bad.get_output().stderr);
    assert!(
        shown.contains("did you mean `limits`?") && shown.contains("bad.yaml:3:7"),
        "{shown}"
    );
    assert!(!shown.contains('\u{1b}'), "no colours outside a terminal");
    let missing = captime(folder.path())
        .args(["check", "nowhere.yaml"])
        .assert()
        .code(2);
    assert!(text(&missing.get_output().stderr).contains("nowhere.yaml"));
    let warned = "target: external\narms: {grid: {a: [1, 2]}}\nlimits: {max: 5s, grid: 10}\nprice: {cost: 3 * x}\n";
    std::fs::write(folder.path().join("warned.yaml"), warned).unwrap();
    let done = captime(folder.path())
        .args(["check", "warned.yaml"])
        .assert()
        .code(0);
    assert!(text(&done.get_output().stderr).contains("warning: the cost is 3"));
}

/// Figures: 50 ms for 672 arms, 2 s for a million. A loaded machine gets many times that.
#[test]
fn a_check_is_quick() {
    let folder = forest_folder();
    let million = "target: external\narms:\n  grid:\n    a: {from: 1, to: 100, step: 1}\n    b: {from: 1, to: 100, step: 1}\n    c: {from: 1, to: 100, step: 1}\n  except: {a: 7, b: {to: 50}}\nlimits: {max: 5s, grid: 10}\n";
    std::fs::write(folder.path().join("million.yaml"), million).unwrap();
    for (name, most) in [("arms.yaml", 3_000), ("million.yaml", 20_000)] {
        let start = Instant::now();
        captime(folder.path())
            .args(["check", name])
            .assert()
            .code(0);
        assert!(
            start.elapsed() < Duration::from_millis(most),
            "{name}: {:?}",
            start.elapsed()
        );
    }
}

/// Arms of an open space get their configurations as they are pulled.
#[test]
fn pulls_of_an_open_space_can_be_tried() {
    let folder = tempfile::tempdir().unwrap();
    let scenario = "target: {command: [sh, -c, 'exit 0', x, '{decay}']}\n\
         arms: {space: {decay: {real: [0.5, 1], default: 0.75}}}\n\
         limits: {of: wall, grid: [60s]}\nbudget: {rounds: 5}\n";
    std::fs::write(folder.path().join("open.yaml"), scenario).unwrap();
    let done = captime(folder.path())
        .args(["check", "open.yaml", "--try", "3"])
        .assert()
        .code(0);
    let shown = text(&done.get_output().stdout);
    assert!(shown.contains("affords   about 5 pulls\n"), "{shown}");
    for arm in ["arm 1: decay=0.75", "arm 2: decay=0.", "arm 3: decay=0."] {
        assert!(shown.contains(arm), "{shown}");
    }
}

/// `--try` runs the arms that `check` has just shown, and then others: the default first, and not the corners of a grid.
#[test]
fn the_sample_pulls_are_the_ones_that_are_tried() {
    let test_run = TestRun::new(
        "name: try
target: {command: [sh, -c, 'exit 0', x, '{a}', '{b}']}
arms: {grid: {a: [1, 2, 3, 4, 5, 6], b: [1, 2, 3, 4, 5]}}
limits: {of: wall, grid: [60s]}
slots: 1
",
    );
    let arms = |text: &str, begin: &str| -> Vec<String> {
        let lines = text.lines().filter(|line| line.starts_with(begin));
        lines
            .map(|line| {
                let rest = line.split("arm ").nth(1).unwrap();
                rest.split([':', ',', ' ']).next().unwrap().to_owned()
            })
            .collect()
    };
    let (text, _) = expect(&test_run.captime(&["check", "s.yaml", "--try", "5"]), 0);
    let (shown, tried) = (arms(&text, "  arm "), arms(&text, "pull "));
    assert_eq!(shown.len(), 3, "{text}");
    assert_eq!(shown, tried[..3], "{text}");
    let different: std::collections::BTreeSet<_> = tried.iter().collect();
    assert_eq!(different.len(), 5, "{text}");
    // More than there are: all of them, and some again.
    let few = TestRun::new(
        "target: {command: ['true']}\narms: {list: [{a: 1}, {a: 2}]}\nlimits: {grid: [60s]}\nslots: 1\n",
    );
    let (text, _) = expect(&few.captime(&["check", "s.yaml", "--try", "3"]), 0);
    assert_eq!(arms(&text, "pull ").len(), 3, "{text}");
}

/// What a budget affords is said before the night begins.
#[test]
fn check_says_what_the_budget_affords() {
    let scenario = |budget: &str| {
        format!(
            "name: try
target: {{command: [sh, -c, 'exit 0'], reward: {{exit: [0]}}}}
arms: {{grid: {{a: [1, 2, 3, 4, 5, 6], b: [1, 2, 3, 4, 5]}}}}
limits: {{of: wall, grid: [2s, 30s]}}
policy: joint-ts
slots: 2
budget: {budget}
"
        )
    };
    let affords = |budget: &str| {
        let test_run = TestRun::new(&scenario(budget));
        let (text, _) = expect(&test_run.captime(&["check", "s.yaml"]), 0);
        let line = text.lines().find(|line| line.starts_with("affords"));
        line.map(str::to_owned).unwrap_or_default()
    };
    assert_eq!(
        affords("{wall: 15m}"),
        "affords   about 900 pulls at the smallest limit, 60 at the largest; 15 per pair of arm and limit"
    );
    assert_eq!(
        affords("{rounds: 12}"),
        "affords   about 12 pulls; 0.2 per pair of arm and limit"
    );
    assert_eq!(
        affords("{consumption: 60s, rounds: 7}"),
        "affords   about 7 pulls at the smallest limit, 2 at the largest; 0.1 per pair of arm and limit"
    );
}
