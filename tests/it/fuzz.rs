//! The corpora of the fuzz targets through the same functions, whole, cut and changed.

#[path = "../../fuzz/inputs.rs"]
mod inputs;

use std::path::Path;

/// Replays one corpus: every file, every beginning of it, and the file with each of its bytes changed, or some of each where
/// it is long.
fn replay(target: &str, run: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("fuzz/corpus")
        .join(target);
    let mut files: Vec<_> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    assert!(files.len() >= 3, "{target}: {files:?}");
    for file in files {
        let whole = std::fs::read(&file).unwrap();
        let checked = |what: &str, bytes: &[u8]| {
            let outcome = std::panic::catch_unwind(|| run(bytes));
            assert!(outcome.is_ok(), "{}: {what}", file.display());
        };
        checked("whole", &whole);
        let step = (whole.len() / 100).max(1);
        for place in (0..whole.len()).step_by(step) {
            checked(&format!("cut at {place}"), &whole[..place]);
            let mut changed = whole.clone();
            changed[place] ^= 1 << (place % 8);
            checked(&format!("byte {place} changed"), &changed);
        }
    }
}

#[test]
fn the_corpus_of_scenarios_is_read_without_a_panic() {
    replay("scenario", inputs::scenario);
}

#[test]
fn the_corpus_of_journals_is_read_without_a_panic() {
    replay("journal", inputs::journal);
}

#[test]
fn the_corpus_of_tables_is_read_and_fitted_without_a_panic() {
    replay("csv", inputs::csv);
}

#[test]
fn the_corpus_of_recorded_runs_is_read_without_a_panic() {
    replay("arff", inputs::arff);
}

#[test]
fn the_corpus_of_requests_is_answered_without_a_panic() {
    replay("ask", inputs::ask);
}

#[test]
fn the_corpus_of_prices_is_computed_without_a_panic() {
    replay("price", inputs::price);
}

#[test]
fn the_corpus_of_models_is_read_without_a_panic() {
    replay("model", inputs::model);
}
