//! The line to paste: it runs what was tuned, from any folder, even if the scenario's files have changed since.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::test_run::{TestRun, expect, houses};

/// Runs a line in a shell in this folder, with the captime under test as `captime`.
fn pasted(line: &str, folder: &Path) -> Output {
    let ours = Path::new(env!("CARGO_BIN_EXE_captime")).parent().unwrap();
    let path = format!("{}:{}", ours.display(), std::env::var("PATH").unwrap());
    Command::new("sh")
        .args(["-c", line])
        .current_dir(folder)
        .env("PATH", path)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

fn best(test_run: &TestRun, run: &str) -> Value {
    let (best, _) = expect(&test_run.captime(&["best", run, "--format", "json"]), 0);
    serde_json::from_str(&best).unwrap()
}

/// The line of a run's page.
fn of_page(test_run: &TestRun, run: &str) -> Option<String> {
    let args = ["report", run, "--format", "json", "--out", "-"];
    let (page, _) = expect(&test_run.captime(&args), 0);
    let page: Value = serde_json::from_str(&page).unwrap();
    command_line(&page)
}

/// The first paste titled so, wherever the page keeps it.
fn command_line(value: &Value) -> Option<String> {
    match value {
        Value::Object(map) if map.get("title") == Some(&"Command line".into()) => {
            Some(map.get("text")?.as_str()?.to_owned())
        }
        Value::Object(map) => map.values().find_map(command_line),
        Value::Array(list) => list.iter().find_map(command_line),
        _ => None,
    }
}

fn used(summary: &str) -> &str {
    let line = summary.lines().find_map(|line| line.strip_prefix("use "));
    line.unwrap_or_else(|| panic!("no line in {summary}"))
        .trim()
}

/// The line with a limit that a loaded machine keeps: the answer's is just above the longest run.
fn generous(line: &str) -> String {
    let limit = regex::Regex::new(r"(exec --wall|exec --cpu|--limit) [0-9.e-]+s").unwrap();
    // A guard is as generous as it is.
    if !line.contains(" --cpu 0") && line.contains("--wall 50s") && line.contains("--resource work")
    {
        return line.to_owned();
    }
    let seconds = if line.contains("exec --cpu") {
        "30s"
    } else {
        "20s"
    };
    limit
        .replace(line, format!("${{1}} {seconds}"))
        .into_owned()
}

/// A command that only its own folder has, and that needs its environment and its input there.
const ELSEWHERE: &str = "
name: away
target:
  command: [./it.sh, '{a}', '{instance}']
  directory: it's here
  instances: [one, two]
  env: {WORD: 'two words'}
  stdin: {text: 'line {a}'}
  success: [7]
  reward: {stdout: 'score=([0-9.]+)'}
arms: {grid: {a: [1, 5]}}
limits: {of: wall, grid: [20s], cpu: 11s, memory: 300MiB, grace: 0.5s}
price: {cost: x, penalty: 10 * x}
policy: uniform
budget: {rounds: 4}
slots: 1
";

#[test]
fn the_line_runs_the_command_from_where_it_is_read() {
    let test_run = TestRun::new("");
    test_run.write("tuning/away.yaml", ELSEWHERE);
    let script = test_run.program(
        "tuning/it's here/it.sh",
        "#!/bin/sh\nread line\n[ \"$WORD\" = 'two words' ] && [ \"$line\" = \"line $1\" ] && [ \"$2\" = one ] \
         && touch pasted\necho score=0.$1\nexit 7\n",
    );
    let (summary, _) = expect(
        &test_run.captime(&["run", "tuning/away.yaml", "--quiet"]),
        0,
    );
    let line = used(&summary).to_owned();
    assert_eq!(best(&test_run, "away")["command"], line.as_str());
    let line = generous(&line);
    assert!(
        line.contains("--wall 20s --cpu 11s --memory 300MiB --grace 0.5s"),
        "{line}"
    );
    let mark = script.with_file_name("pasted");
    let other = tempfile::tempdir().unwrap();
    let page = generous(&of_page(&test_run, "away").unwrap());
    for (line, folder) in [(&line, test_run.path()), (&page, other.path())] {
        let _ = fs::remove_file(&mark);
        let (stdout, _) = expect(&pasted(line, folder), 7);
        assert!(stdout.starts_with("score=0."), "{stdout}");
        assert!(mark.exists(), "it had all it needs: {line}");
    }
    // From the command's own folder there is no way to go.
    let there = script.parent().unwrap();
    let run = test_run.run_folder("away");
    let asked = Command::new(env!("CARGO_BIN_EXE_captime"))
        .arg("best")
        .arg(&run)
        .current_dir(there)
        .output()
        .unwrap();
    let (text, _) = expect(&asked, 0);
    assert!(!used(&text).contains("cd "), "{text}");
    expect(&pasted(&generous(used(&text)), there), 7);
}

#[test]
fn the_example_as_a_newcomer_runs_it() {
    let test_run = TestRun::new("");
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let copied = Command::new("cp")
        .arg("-r")
        .arg(from)
        .arg(test_run.path())
        .status();
    assert!(copied.unwrap().success());
    let file = test_run.path().join("examples/script/script.yaml");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(
        &file,
        text.replace("rounds: 100", "rounds: 20")
            .replace("[20ms, 50ms, 100ms, 500ms]", "[20s]"),
    )
    .unwrap();
    let args = ["run", "examples/script/script.yaml", "--quiet"];
    let (summary, _) = expect(&test_run.captime(&args), 0);
    let (stdout, _) = expect(&pasted(&generous(used(&summary)), test_run.path()), 0);
    assert!(stdout.starts_with("error="), "{stdout}");
}

#[test]
fn a_forest_is_pasted_with_its_guards() {
    let test_run = TestRun::new("");
    test_run.write("data/houses.csv", &houses(60));
    for (isolation, limits, begins) in [
        ("thread", "of: work, grid: [1e9]", "captime forest "),
        (
            "thread",
            "of: work, grid: [1e9], wall: 50s",
            "captime exec --wall 50s -- captime forest ",
        ),
        (
            "process",
            "of: cpu, grid: [30s], wall: 50s, memory: 1GiB",
            "captime exec --cpu 30s --wall 50s --memory 1GiB -- captime forest ",
        ),
        ("process", "of: work, grid: [1e9]", "captime forest "),
        (
            "process",
            "of: work, grid: [1e9], memory: 1GiB, grace: 1s",
            "captime exec --memory 1GiB --grace 1s -- captime forest ",
        ),
    ] {
        test_run.write(
            "data/s.yaml",
            &format!(
                "name: forest\ntarget: {{forest: {{data: houses.csv, predict: price, isolation: {isolation}}}}}\n\
                 arms: {{grid: {{trees: [5, 6]}}}}\nlimits: {{{limits}}}\nprice: {{cost: x, penalty: 10 * x}}\n\
                 policy: uniform\nbudget: {{rounds: 4}}\nslots: 1\n"
            ),
        );
        let args = ["run", "data/s.yaml", "--quiet", "--fresh"];
        let (summary, _) = expect(&test_run.captime(&args), 0);
        let line = generous(used(&summary));
        assert!(line.starts_with(begins), "{summary}");
        let other = tempfile::tempdir().unwrap();
        let (stdout, _) = expect(&pasted(&line, other.path()), 0);
        assert!(stdout.contains("\"reward\":"), "{stdout}");
    }
}

const TABLE: &str = "
name: table
target:
  command: [echo, 'score=0.{a}', '{instance}']
  instances: cases/*
  reward: {stdout: 'score=([0-9.]+)'}
arms: {file: arms.csv}
limits: {of: wall, grid: [20s]}
price: {cost: x, penalty: 10 * x}
policy: rcucb
budget: {rounds: 30}
slots: 1
";

#[test]
fn what_was_tuned_is_named_whatever_became_of_the_files() {
    let test_run = TestRun::new(TABLE);
    test_run.write("arms.csv", "a\n1\n3\n5\n9\n");
    test_run.write("cases/m", "");
    test_run.run(0, &["--quiet"]);
    let tuned = |line: &str| line.contains("echo score=0.9 cases/m");
    let before = best(&test_run, "table");
    assert!(tuned(before["command"].as_str().unwrap()), "{before}");
    // Other arms and another first instance; fewer arms than the best one's number.
    for (arms, case) in [("a\n9\n7\n6\n4\n", "cases/a"), ("a\n2\n", "cases/b")] {
        test_run.write("arms.csv", arms);
        test_run.write(case, "");
        let now = best(&test_run, "table");
        assert_eq!(now, before);
        let (text, _) = expect(&test_run.captime(&["best", "table"]), 0);
        assert!(
            text.contains("best      arm 4: a=9") && tuned(used(&text)),
            "{text}"
        );
        let line = of_page(&test_run, "table").unwrap();
        assert!(tuned(&line), "{line}");
        // And a run of the changed scenario is refused rather than mixed with the old one.
        let (_, refused) = test_run.run(2, &[]);
        assert!(refused.contains("has changed"), "{refused}");
    }
    fs::remove_file(test_run.path().join("arms.csv")).unwrap();
    let now = best(&test_run, "table");
    assert_eq!(now, before, "the journal has all of the scenario");
    let (text, _) = expect(&test_run.captime(&["best", "table"]), 0);
    assert!(text.contains("best      arm 4: a=9"), "{text}");
    assert!(tuned(&of_page(&test_run, "table").unwrap()));
    expect(&test_run.captime(&["report", "table"]), 0);
}
