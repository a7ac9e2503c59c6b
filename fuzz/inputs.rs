//! What each fuzz target does with its input: anything may be refused, nothing may panic, and what was accepted must hold together.
//!
//! The fuzz targets and the test that replays their corpora share these functions.

use std::path::Path;

use captime::journal::{FILE, Reader, Replay};
use captime::orchestrator::RunReader;
use captime::round::{Limit, Price};
use captime::scenario;
use captime::target::recorded::{Recorded, Spec};
use captime_forest::{Dataset, FitOutcome, Model, Params, ReadOptions, Stop, Task, fit_until};

/// A folder for inputs that are read from files.
fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a folder for the input")
}

/// A scenario file; beside it lie the files that the seeds of the corpus name, so that they are read too.
pub fn scenario(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let folder = folder();
    let beside = |name: &str, text: &str| {
        std::fs::write(folder.path().join(name), text).expect("a file beside the scenario");
    };
    beside(
        "houses.csv",
        "size,zone,price\n1,a,10\n2,b,20\n3,a,30\n4,b,40\n",
    );
    beside("arms.csv", "decay,level\n0.5,1\n0.9,2\n");
    beside("runs.csv", "instance,a,b\nx,1,2\ny,3,4\n");
    beside("instances.txt", "one.cnf\ntwo.cnf\n");
    match scenario::parse(text, Path::new("s.yaml"), folder.path()) {
        Ok(_) => {}
        Err(error) => {
            assert!(!error.mistakes.is_empty(), "an error without a mistake");
            assert!(!error.to_string().is_empty());
        }
    }
}

/// A journal, as it is and with every line sealed anew: otherwise nearly every change ends at the checksum.
pub fn journal(bytes: &[u8]) {
    read_journal(bytes);
    read_journal(&resealed(bytes));
}

/// Reads a journal to its end or to its first damage, line by line, step by step, and as `captime best` does.
fn read_journal(bytes: &[u8]) {
    let folder = folder();
    std::fs::write(folder.path().join(FILE), bytes).expect("a journal");
    let Ok(mut reader) = Reader::open(folder.path()) else {
        return;
    };
    while let Ok(Some(_)) = reader.next() {}
    assert!(reader.whole() <= bytes.len() as u64);
    let Ok(reader) = Reader::open(folder.path()) else {
        return;
    };
    // A run may have millions of arms, which take time and find nothing new.
    let arms = reader.header().resolved["scenario"]["arms"]["count"].as_u64();
    let mut replay = Replay::new(reader);
    while let Ok(Some(_)) = replay.next() {}
    if arms.is_some_and(|arms| arms <= 100)
        && let Ok(run) = RunReader::read(folder.path(), |_| ())
    {
        let _ = run.state.recommend();
    }
}

/// The same lines with the number and the checksum that they need to be read.
fn resealed(bytes: &[u8]) -> Vec<u8> {
    let mut sealed = vec![];
    for (number, line) in (1..).zip(bytes.split(|&byte| byte == b'\n')) {
        let seal = line.windows(5).rposition(|five| five == br#","n":"#);
        let open = line.strip_suffix(b"}").unwrap_or(line);
        let mut body = line
            .get(..seal.unwrap_or(open.len()))
            .unwrap_or(line)
            .to_vec();
        body.extend_from_slice(format!(r#","n":{number}"#).as_bytes());
        let crc = crc32fast::hash(&body);
        body.extend_from_slice(format!("{SEAL}{crc:08x}\"}}\n").as_bytes());
        sealed.append(&mut body);
    }
    sealed
}

/// What separates a line from its checksum.
const SEAL: &str = r#","crc":""#;

/// A table for the forest: what can be read can be fitted and predicted.
pub fn csv(bytes: &[u8]) {
    let names = Dataset::column_names(bytes);
    let Some(target) = names.last() else { return };
    let Ok(data) = Dataset::parse(bytes, &ReadOptions::predict(target)) else {
        return;
    };
    // Many columns or rows take long and find nothing new.
    if data.rows() > 300 || data.predictors() > 40 {
        return;
    }
    let rows: Vec<u32> = (0..data.rows() as u32).collect();
    let params = Params {
        trees: 3,
        ..Params::default()
    };
    let fit = fit_until(&data, &rows, &params, &Stop::new(), None);
    let Ok(FitOutcome::Done { forest, .. }) = fit else {
        panic!("a table that was read cannot be fitted")
    };
    let predicted = forest.predict(&data, &rows);
    assert_eq!(predicted.len(), data.rows());
    assert!(predicted.iter().all(|value| value.is_finite()));
    let model = Model::new(&data, forest);
    let model = Model::from_bytes(&model.to_bytes()).expect("a model that was just written");
    let again = model.read_rows(bytes).expect("the rows it was fitted on");
    if data.task() == Task::Classification {
        assert_eq!(
            model.probabilities(&again).len(),
            predicted.len() * data.target().classes().len()
        );
    }
    assert_eq!(model.predict(&again), predicted);
}

/// An ASlib file of runs.
pub fn arff(bytes: &[u8]) {
    let folder = folder();
    let path = folder.path().join("algorithm_runs.arff");
    std::fs::write(&path, bytes).expect("a file of runs");
    let spec = Spec {
        consumption: path,
        reward: None,
        cutoff: Some(100.0),
        unsolved: None,
    };
    match Recorded::open(&spec) {
        Ok(_) => {}
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// Lines for `captime ask`: each gets one answer, an error or not.
pub fn ask(bytes: &[u8]) {
    let text =
        "target: external\narms: {grid: {a: [1, 2, 3]}}\nlimits: {of: wall, grid: [1s, 5s]}\n";
    let scenario = scenario::parse(text, Path::new("s.yaml"), Path::new("."));
    let scenario = scenario.expect("a correct scenario").scenario;
    let answers = captime::cli::answers(&scenario, bytes).expect("nothing is recorded");
    let lines = bytes.split_inclusive(|&byte| byte == b'\n').count();
    assert_eq!(answers.len(), lines);
    assert!(answers.iter().all(serde_json_object));
}

fn serde_json_object(answer: &impl ToString) -> bool {
    answer.to_string().starts_with('{')
}

/// The expressions of a price, separated by a line end.
pub fn price(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let (cost, penalty) = text.split_once('\n').unwrap_or((text, "10 * x"));
    let max = Limit::new(10.0).expect("a limit");
    match Price::new(cost, penalty, 1.0) {
        Err(error) => assert!(!error.to_string().is_empty()),
        Ok(price) => {
            if price.check(max).is_ok() {
                for x in [0.0, 0.5, 10.0] {
                    assert!(price.cost(x).is_finite(), "cost `{cost}` at {x}");
                }
                assert!(price.penalty(max).is_finite(), "penalty `{penalty}`");
            }
        }
    }
}

/// A model file.
pub fn model(bytes: &[u8]) {
    if let Ok(model) = Model::from_bytes(bytes)
        && let Ok(rows) = model.read_rows(b"size,zone\n1,a\nNA,mars\n,b\n")
    {
        assert_eq!(model.predict(&rows).len(), rows.rows);
    }
}
