//! Arms with their own names, like recorded ones.

use std::fmt::Write;
use std::fs;

use serde_json::json;

use super::browser::browser;
use super::captime;

#[test]
fn arms_whose_names_begin_alike_are_told_apart_in_charts() {
    let Some(mut browser) = browser() else { return };
    let root = tempfile::tempdir().unwrap();
    let mut table = String::from("instance");
    for variant in 1..=6 {
        let _ = write!(table, ",solver/2.1.3/long-variant-{variant}");
    }
    for instance in 1..=20 {
        let _ = write!(table, "\ni{instance}");
        for variant in 1..=6 {
            let _ = write!(table, ",{}", 0.01 * f64::from(instance * variant));
        }
    }
    fs::write(root.path().join("runs.csv"), table + "\n").unwrap();
    let scenario = "name: named\ntarget:\n  recorded: {consumption: runs.csv, cutoff: 2s}\n\
                    limits: {from: 0.01s, to: 2s, points: 6, scale: log}\npolicy: rcucb\nbudget: {rounds: 300}\n";
    fs::write(root.path().join("named.yaml"), scenario).unwrap();
    captime()
        .current_dir(&root)
        .args(["run", "named.yaml", "--quiet"])
        .assert()
        .code(0);
    browser.open_file(&root.path().join("runs/named/report.html"));
    browser.draw_all();
    browser.assert_quiet();
    for chart in ["parts", "spent"] {
        let ticks = browser.evaluate(&format!(
            "new Set([...document.querySelectorAll('#chart-{chart} [aria-label=\"y-axis tick label\"] text')].map((tick) => tick.textContent)).size"
        ));
        assert!(ticks.as_u64().unwrap() >= 5, "{chart}: {ticks}");
    }
    // Limits from 10 ms to 2 s do not lie on top of each other.
    let first = browser.evaluate(
        "document.querySelector('#chart-gain-by-limit [aria-label=\"x-axis tick label\"] text').textContent",
    );
    assert_ne!(first, json!("0"));
}
