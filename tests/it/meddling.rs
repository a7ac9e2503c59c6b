//! Targets that put their hands on our journal, in a new run and in one that goes on.

use std::fs;

use crate::scene::{Scene, decisions_follow, nothing_is_left, story};

/// A run of so many rounds whose pulls do this first.
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
"
    )
}

#[test]
fn what_a_target_appends_to_our_journal_is_gone_in_the_end() {
    let marker = format!("appends-{}", std::process::id());
    for what in [
        "echo x >> runs/night/journal.jsonl",
        // Longer than any line of ours, and without an end.
        "head -c 3000 /dev/zero | tr \"\\\\0\" y >> runs/night/journal.jsonl",
    ] {
        let scene = Scene::new("");
        let mut before = vec![];
        for rounds in [8, 20, 30] {
            scene.write("s.yaml", &doing(what, &marker, rounds));
            scene.run(0, &["--quiet"]);
            let (_, outcomes) = story(&scene.run_folder("night"));
            assert_eq!(outcomes.len() as u64, rounds);
            assert_eq!(outcomes[..before.len()], before[..]);
            before = outcomes;
            let text = fs::read_to_string(scene.journal("night")).unwrap();
            assert!(text.ends_with("\"}\n"), "nothing follows our last line");
            assert!(!text.contains("\nx\n") && !text.contains("yyy"));
            decisions_follow(&scene.run_folder("night"));
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
            "it was deleted",
        ),
    ] {
        for sessions_before in [0, 1] {
            let guarded = format!("if [ -e now ]; then {what}; fi");
            let scene = Scene::new(&doing(&guarded, &marker, 6));
            if sessions_before == 1 {
                scene.run(0, &["--quiet"]);
            }
            scene.write("s.yaml", &doing(&guarded, &marker, 400));
            scene.write("now", "");
            let (_, message) = scene.run(1, &["--quiet"]);
            assert!(message.contains(said), "{what}: {message}");
            assert!(!message.contains("panicked"), "{message}");
            nothing_is_left(&marker);
        }
    }
}
