//! What a round costs besides the child itself, end to end: `captime run` against plain spawn-and-wait and fdatasync.
//!
//! Medians, in one go, since machines are seldom quiet; not a criterion bench, because a run is not repeatable in place.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use captime::journal::{Reader, Record};

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn timed(times: usize, mut work: impl FnMut()) -> f64 {
    let each = (0..times).map(|_| {
        let started = Instant::now();
        work();
        started.elapsed().as_secs_f64()
    });
    median(each.collect())
}

fn scenario(folder: &Path, name: &str, target: &str, rest: &str) {
    let text = format!("name: {name}\n{target}\n{rest}\n");
    std::fs::write(folder.join("s.yaml"), text).expect("a scenario");
}

fn captime(folder: &Path, args: &[&str]) -> f64 {
    let started = Instant::now();
    let status = Command::new(env!("CARGO_BIN_EXE_captime"))
        .args(args)
        .current_dir(folder)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .expect("captime starts");
    assert!(status.success(), "{args:?}");
    started.elapsed().as_secs_f64()
}

/// Seconds between two outcomes, as the journal has them.
fn between_outcomes(folder: &Path, name: &str) -> f64 {
    let mut reader = Reader::open(&folder.join("runs").join(name)).expect("a journal");
    let mut times = vec![];
    while let Some(record) = reader.next().expect("a whole journal") {
        if let Record::Outcome(outcome) = record {
            times.push(outcome.at.expect("real rounds have times"));
        }
    }
    median(times.windows(2).map(|pair| pair[1] - pair[0]).collect())
}

fn main() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let rest = "arms: {list: [{name: a}, {name: b}]}\nlimits: {of: wall, grid: [5s]}\n\
                price: {cost: x, penalty: 10 * x}\npolicy: uniform\n";
    let spawn = timed(300, || {
        Command::new("true").status().expect("true is there");
    });
    let mut file = File::create(folder.join("sync")).expect("a file");
    let sync = timed(300, || {
        file.write_all(&[b'x'; 150]).expect("written");
        file.sync_data().expect("synced");
    });
    scenario(
        folder,
        "true",
        "target: {command: ['true'], reward: {exit: [0]}}",
        &format!("{rest}budget: {{rounds: 300}}\nslots: 1"),
    );
    captime(folder, &["run", "s.yaml", "--quiet"]);
    let round = between_outcomes(folder, "true");
    let mut rates = vec![];
    for slots in [1, 2] {
        let name = format!("sleep-{slots}");
        scenario(
            folder,
            &name,
            "target: {command: [sleep, '0.02'], reward: {exit: [0]}}",
            &format!("{rest}budget: {{rounds: 100}}\nslots: {slots}"),
        );
        rates.push(100.0 / captime(folder, &["run", "s.yaml", "--quiet"]));
    }
    scenario(
        folder,
        "virtual",
        "target: {synthetic: {problem: large10000}}",
        "limits: {of: work, from: 0.1, to: 0.9, points: 10, scale: log}\npolicy: rcucb\nbudget: {rounds: 100000}",
    );
    let virtual_rounds = captime(folder, &["run", "s.yaml", "--quiet"]);
    let resumed = captime(folder, &["best", "virtual"]);
    let ms = 1e3;
    let text = format!(
        "spawn and wait           {:.2} ms\nfdatasync                {:.2} ms\nround of `true`, 1 slot   {:.2} ms: {:.2} ms besides both (at most 1.5)\n\
         `sleep 0.02`             {:.1} rounds/s with one slot, {:.1} with two: {:.2} x (at least 1.8)\n\
         virtual, 10,000 x 10     100,000 rounds in {virtual_rounds:.2} s (at most 3), replayed in {resumed:.2} s\n",
        ms * spawn,
        ms * sync,
        ms * round,
        ms * (round - spawn - sync),
        rates[0],
        rates[1],
        rates[1] / rates[0],
    );
    std::io::stdout()
        .write_all(text.as_bytes())
        .expect("stdout is there");
}
