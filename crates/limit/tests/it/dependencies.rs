//! What the crate brings along.

use std::collections::BTreeSet;
use std::process::Command;

#[test]
fn the_crate_alone_needs_at_most_25_crates() {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--offline", "--edges=normal", "--prefix=none"])
        .args(["--package=captime-limit", "--format={p}"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    let text = String::from_utf8(output.stdout).unwrap();
    // Those seen before are marked with a star.
    let all: BTreeSet<&str> = text
        .lines()
        .filter(|line| !line.is_empty())
        .map(|line| line.trim_end_matches(" (*)"))
        .collect();
    assert!(all.iter().any(|name| name.starts_with("captime-limit ")));
    assert!(all.len() <= 25, "{all:#?}");
    assert!(!text.contains("tokio"), "the async face is a feature");
}
