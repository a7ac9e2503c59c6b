//! `captime predict`: a saved forest on new rows.

use std::io::Write;
use std::path::PathBuf;

use captime_forest::{DatasetError, Model, Task};
use clap::Args;

use super::forest::bad_data;
use super::{Exit, Failure};
use crate::quantity;

const HELP: &str = "\
Examples:
  captime predict model.bin new.csv
  captime predict iris.bin flowers.csv > predicted.csv

Exit codes: 0 done; 1 captime itself failed; 2 bad usage, model or data.";

/// Predict rows of a CSV file with a forest saved by `captime forest --save`.
///
/// Writes CSV to stdout, one line per row in the order of the file: the prediction, and for classes the probability of each,
/// which is the share of trees that vote for it. Columns are found by name. The file may have other columns, and the target, too. A level
/// that the forest has not seen counts as missing.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub struct PredictArgs {
    /// The model file
    model: PathBuf,
    /// The CSV file, with column names in its first line
    rows: PathBuf,
}

/// Runs the command.
pub fn run(args: &PredictArgs) -> Result<Exit, Failure> {
    let file = args.model.display();
    let bytes = std::fs::read(&args.model)
        .map_err(|error| Failure::usage(format!("cannot read `{file}`: {error}")))?;
    let model = Model::from_bytes(&bytes)
        .map_err(|error| Failure::usage(format!("{file}: {error}")).hint(error.hint()))?;
    let text = std::fs::read(&args.rows).map_err(|source| {
        let path = args.rows.clone();
        bad_data(&args.rows, &DatasetError::Unreadable { path, source })
    })?;
    let rows = model
        .read_rows(&text)
        .map_err(|error| bad_data(&args.rows, &error))?;
    for (column, cells) in &rows.unknown {
        let cells = quantity::counted(*cells as u64, "cell");
        let _ = writeln!(
            std::io::stderr().lock(),
            "captime: warning: column `{column}`: {cells} with levels the model has not seen, taken for missing"
        );
    }
    let mut to = csv::Writer::from_writer(std::io::stdout().lock());
    let predicted = model.predict(&rows);
    if model.task() == Task::Regression {
        to.write_record([model.target()]).map_err(written)?;
        for value in predicted {
            to.write_record([value.to_string()]).map_err(written)?;
        }
    } else {
        let classes = model.classes();
        let names = classes.iter().map(|class| format!("p({class})"));
        let header = std::iter::once(model.target().to_owned()).chain(names);
        to.write_record(header).map_err(written)?;
        let shares = model.probabilities(&rows);
        for (&class, shares) in predicted.iter().zip(shares.chunks_exact(classes.len())) {
            let shares = shares.iter().map(f64::to_string);
            let record = std::iter::once(classes[class as usize].clone()).chain(shares);
            to.write_record(record).map_err(written)?;
        }
    }
    to.flush()?;
    Ok(Exit::Done)
}

/// A closed pipe ends the output without a message. Anything else is an error.
fn written(error: csv::Error) -> Failure {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error.into(),
        kind => Failure::internal(format!("cannot write the predictions: {kind:?}")),
    }
}
