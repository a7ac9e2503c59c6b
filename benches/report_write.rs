//! What a report costs: runs of 672 arms with instances, failures and their stderr, of 13,440 and of a million rounds,
//! by RCUCB and by `levels`, which takes longer to replay.
//!
//! `cargo bench --bench report_write [-- --keep FOLDER]` prints size and time of each page; with a folder, runs and pages stay there to be
//! opened. Whole runs are made once each: that is what a user waits for.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

#[allow(dead_code, reason = "made for the tests, which use more of it")]
#[expect(clippy::unwrap_used, reason = "shared with the tests")]
#[path = "../tests/it/report/simulated.rs"]
mod simulated;

use simulated::Simulated;

const ARMS: &str = "grid: {trees: {from: 100, to: 700, step: 100}, mtry: {from: 20, to: 30, step: 2}, \
min_node_size: [3, 5, 7, 9], sample_fraction: [0.55, 0.632, 0.75, 0.8]}";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // `--keep FOLDER` keeps the runs. Cargo adds words of its own.
    let kept = std::env::args().skip_while(|word| word != "--keep").nth(1);
    let scratch = tempfile::tempdir()?;
    let root = kept.map_or_else(|| scratch.path().to_owned(), PathBuf::from);
    let mut out = std::io::stdout().lock();
    for (name, rounds, policy) in [
        ("rounds-13440", 13_440, "rcucb"),
        ("rounds-million", 1_000_000, "rcucb"),
        ("levels-13440", 13_440, "levels"),
        ("levels-100000", 100_000, "levels"),
    ] {
        let run = Simulated {
            name,
            rounds,
            policy,
            arms: ARMS.into(),
            slots: 4,
            ..Simulated::default()
        };
        let folder = run.with_instances(200).write(&root);
        let began = Instant::now();
        captime::report::write_report(&folder)?;
        let seconds = began.elapsed().as_secs_f64();
        let megabytes = |path: &Path| std::fs::metadata(path).map(|of| of.len() as f64 / 1e6);
        writeln!(
            out,
            "{name}: journal {:.1} MB, page {:.2} MB in {seconds:.2} s",
            megabytes(&folder.join("journal.jsonl"))?,
            megabytes(&folder.join(captime::report::REPORT))?
        )?;
    }
    Ok(())
}
