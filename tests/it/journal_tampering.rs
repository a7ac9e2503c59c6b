//! Targets that tamper with the journal, in a new run and in a resumed one.

use std::fs;

use crate::test_run::{TestRun, decisions_follow, nothing_is_left, story};

/// A run of this many rounds whose pulls do this first.
fn doing(what: &str, marker: &str, rounds: u64) -> String {
    format!(
        "
name: night
target:
  command: [sh, -c, ': {marker}; {what}; echo score=0.5']
  reward: {{stdout: 'score=([0-9.]+)'}}
arms: {{grid: {{a: [1, 2, 3]}}}}
limits: {{of: wall, grid: [20s]}}
price: {{cost: x, penalty: 10 * x}}
policy: rcucb
budget: {{rounds: {rounds}}}
slots: 2
pin: never
"
    )
}

#[test]
fn what_a_target_appends_to_our_journal_is_gone_in_the_end() {
    let marker = format!("appends-{}", std::process::id());
    for what in [
        "echo x >> runs/night/journal.jsonl",
        // Longer than any line of the journal, and without an end.
        "head -c 3000 /dev/zero | tr \"\\\\0\" y >> runs/night/journal.jsonl",
    ] {
        let test_run = TestRun::new("");
        let mut before = vec![];
        for rounds in [8, 20, 30] {
            test_run.write("s.yaml", &doing(what, &marker, rounds));
            test_run.run(0, &["--quiet"]);
            let (_, outcomes) = story(&test_run.run_folder("night"));
            assert_eq!(outcomes.len() as u64, rounds);
            assert_eq!(outcomes[..before.len()], before[..]);
            before = outcomes;
            let text = fs::read_to_string(test_run.journal("night")).unwrap();
            assert!(text.ends_with("\"}\n"), "nothing follows our last line");
            assert!(!text.contains("\nx\n") && !text.contains("yyy"));
            decisions_follow(&test_run.run_folder("night"));
        }
        nothing_is_left(&marker);
    }
}

#[test]
fn a_journal_that_is_taken_away_ends_the_run_at_once() {
    let marker = format!("takes-{}", std::process::id());
    for (what, said) in [
        ("rm -f runs/night/journal.jsonl", "it was deleted"),
        (": > runs/night/journal.jsonl", "it was shortened"),
        (
            "echo > other; mv other runs/night/journal.jsonl",
            "it was replaced",
        ),
        (
            "ln -f runs/night/journal.jsonl kept; echo > other; mv other runs/night/journal.jsonl",
            "it was replaced",
        ),
    ] {
        for sessions_before in [0, 1] {
            let guarded = format!("if [ -e now ]; then {what}; fi");
            let test_run = TestRun::new(&doing(&guarded, &marker, 6));
            if sessions_before == 1 {
                test_run.run(0, &["--quiet"]);
            }
            test_run.write("s.yaml", &doing(&guarded, &marker, 400));
            test_run.write("now", "");
            let (_, message) = test_run.run(1, &["--quiet"]);
            assert!(message.contains(said), "{what}: {message}");
            assert!(!message.contains("panicked"), "{message}");
            nothing_is_left(&marker);
        }
    }
}

#[test]
fn a_run_whose_files_are_links_or_no_journal_is_refused_and_nothing_is_lost() {
    let marker = format!("odd-{}", std::process::id());
    let scene = TestRun::new(&doing("true", &marker, 2));
    fs::create_dir_all(scene.run_folder("night")).unwrap();
    for (name, text) in [
        ("lock", "my notes\n"),
        ("journal.jsonl", "my notes, one line\n"),
        ("journal.jsonl", "my notes"),
        ("journal.jsonl", ""),
    ] {
        let notes = scene.write("notes", text);
        let link = scene.run_folder("night").join(name);
        std::os::unix::fs::symlink(&notes, &link).unwrap();
        let (_, message) = scene.run(1, &["--quiet"]);
        assert!(message.contains("hint"), "{message}");
        assert_eq!(fs::read_to_string(&notes).unwrap(), text, "{message}");
        fs::remove_file(&link).unwrap();
    }
    // Half a line is somebody's work, not a fresh start.
    scene.write("runs/night/journal.jsonl", "{\"journal\":2,\"capt");
    let (_, message) = scene.run(1, &["--quiet"]);
    assert!(message.contains("no complete line"), "{message}");
    let kept = fs::read_to_string(scene.journal("night")).unwrap();
    assert_eq!(kept, "{\"journal\":2,\"capt");
    // Nothing at all is a fresh start.
    scene.write("runs/night/journal.jsonl", "");
    scene.run(0, &["--quiet"]);
    assert_eq!(story(&scene.run_folder("night")).1.len(), 2);
}

/// The hint for damage elsewhere keeps the lines before it. Before the first line there is nothing to keep: followed to the letter, it would
/// empty the journal.
#[test]
fn the_hint_for_a_damaged_first_line_keeps_the_run() {
    let test_run = TestRun::new(&doing(":", "whole", 6));
    test_run.run(0, &["--quiet"]);
    let journal = test_run.journal("night");
    let whole = fs::read_to_string(&journal).unwrap();
    for (line, keeps) in [(0, false), (3, true)] {
        let mut lines: Vec<String> = whole.lines().map(str::to_owned).collect();
        lines[line] = lines[line].replacen(':', ";", 1);
        let damaged = lines.join("\n") + "\n";
        fs::write(&journal, &damaged).unwrap();
        let output = test_run.captime(&["run", "s.yaml"]);
        assert_eq!(output.status.code(), Some(1));
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains("restore the file from a copy"), "{said}");
        assert_eq!(said.contains("head -n 3 "), keeps, "{said}");
        assert_eq!(said.contains("head"), keeps, "{said}");
        assert_eq!(fs::read_to_string(&journal).unwrap(), damaged);
    }
}
