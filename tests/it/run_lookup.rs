//! The ways to name a run: by folder, by name, by journal, or by something mistaken for a run.

use std::fs::{Permissions, set_permissions};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use crate::test_run::{TestRun, expect};

const QUICK: &str = "\
name: quick
target: {synthetic: {problem: lowcens}}
policy: [rcucb, uniform]
budget: {rounds: 40}
";

fn played() -> TestRun {
    let test_run = TestRun::new(QUICK);
    test_run.run(0, &[]);
    test_run
}

#[test]
fn a_run_is_found_by_its_name_its_folder_and_its_journal() {
    let test_run = played();
    let (named, _) = expect(&test_run.captime(&["best", "quick"]), 0);
    for run in ["runs/quick", "runs/quick/", "runs/quick/journal.jsonl"] {
        let (found, _) = expect(&test_run.captime(&["best", run]), 0);
        assert_eq!(found, named, "{run}");
    }
    let inside = test_run
        .command(&["best", "journal.jsonl"])
        .current_dir(test_run.run_folder("quick"))
        .output()
        .unwrap();
    assert_eq!(expect(&inside, 0).0, named);
}

#[test]
fn whoever_names_the_scenario_is_told_the_name_of_its_run() {
    let test_run = TestRun::new(QUICK);
    let (_, said) = expect(&test_run.captime(&["best", "s.yaml"]), 2);
    let hint = "hint: that is a scenario; its run is called `quick`";
    let none =
        "hint: that is a scenario; its run would be called `quick`, but there is none in `runs`";
    assert!(said.contains(none), "{said}");
    test_run.run(0, &[]);
    let (_, said) = expect(&test_run.captime(&["best", "s.yaml"]), 2);
    assert!(said.contains("there is no run `s.yaml`"), "{said}");
    assert!(said.ends_with(&format!("{hint}\n")), "{said}");
    test_run.write("notes.txt", "no scenario\n");
    let (_, said) = expect(&test_run.captime(&["best", "notes.txt"]), 2);
    assert!(said.contains("hint: runs in `runs`: quick"), "{said}");
}

#[test]
fn a_folder_of_runs_is_told_with_the_runs_in_it() {
    let test_run = played();
    test_run.run(0, &["--fresh"]);
    let (_, said) = expect(&test_run.captime(&["report", "runs"]), 2);
    let hint = "runs in it: runs/quick, runs/quick-2\n";
    assert!(said.contains(hint), "{said}");
    // As a study has it: its runs are one folder further in.
    std::fs::create_dir(test_run.path().join("st")).unwrap();
    std::fs::rename(
        test_run.path().join("runs"),
        test_run.path().join("st/runs"),
    )
    .unwrap();
    let (_, said) = expect(&test_run.captime(&["report", "st"]), 2);
    let hint = "runs in it: st/runs/quick, st/runs/quick-2\n";
    assert!(said.contains(hint), "{said}");
    expect(&test_run.captime(&["report", "st/runs/quick"]), 0);
    let many = test_run.path().join("st/runs");
    for number in 10..40 {
        let folder = many.join(format!("more-{number}"));
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(folder.join("journal.jsonl"), "").unwrap();
    }
    let (_, said) = expect(&test_run.captime(&["report", "st"]), 2);
    assert!(
        said.contains("st/runs/more-29 and 12 more\n") && said.contains("st/runs/more-10, "),
        "{said}"
    );
}

/// captime without root's right to read everything.
fn plain_user(test_run: &TestRun, args: &[&str]) -> (String, String) {
    let plain = test_run.command(args);
    let output = if rustix::process::getuid().is_root() {
        Command::new("setpriv")
            .args(["--bounding-set=-all", "--inh-caps=-all"])
            .arg(plain.get_program())
            .args(plain.get_args())
            .current_dir(test_run.path())
            .output()
    } else {
        test_run.command(args).output()
    };
    expect(&output.unwrap(), 1)
}

#[test]
fn runs_that_may_not_be_read_are_not_said_to_be_missing() {
    let test_run = played();
    for (locked, wanted, named) in [
        ("runs", "quick", "runs/quick"),
        ("runs", "other", "runs/other"),
        ("runs", "runs", "runs"),
        ("runs/quick", "quick", "runs/quick"),
        ("runs/quick", "runs/quick", "runs/quick"),
    ] {
        let locked = test_run.path().join(locked);
        set_permissions(&locked, Permissions::from_mode(0o000)).unwrap();
        let (_, said) = plain_user(&test_run, &["best", wanted]);
        set_permissions(&locked, Permissions::from_mode(0o755)).unwrap();
        let message = format!("cannot read `{named}`: Permission denied");
        assert!(said.contains(&message), "{wanted}: {said}");
    }
}

#[test]
fn rounds_are_exported_as_csv_unless_another_form_is_asked_for() {
    let test_run = played();
    let (plain, _) = expect(&test_run.captime(&["export", "quick"]), 0);
    let (csv, _) = expect(
        &test_run.captime(&["export", "quick", "--format", "csv"]),
        0,
    );
    assert_eq!(plain, csv);
    assert_eq!(csv.lines().count(), 41);
    let aslib = test_run.captime(&["export", "quick", "--format", "aslib"]);
    let (aslib, _) = expect(&aslib, 0);
    assert!(
        aslib.starts_with("% 40 rounds of captime run quick\n"),
        "{aslib}"
    );
}
