//! `captime report`: one self-contained HTML file.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use super::{Exit, Failure, exit_code, run_folder};
use crate::report::{self, History, REPORT, ReportError, Summary};

const EXAMPLES: &str = "\
Examples:
  captime report ames-forest                     runs/ames-forest/report.html
  captime report runs/minisat --out minisat.html
  captime report minisat --format json --out -   the same data, for programs";

/// One self-contained HTML file: what to use, why this limit, what matters, how it went
///
/// Reads the journal only, so it also works on a run that is still going, or was killed. The file needs nothing but a
/// browser: no network, no other file. The path of the file is written to stdout.
#[derive(Debug, Args)]
#[command(after_help = format!("{EXAMPLES}\n\n{}", exit_code::PLAIN))]
pub struct ReportArgs {
    /// A run's folder, or its name in runs/
    run: PathBuf,
    /// Where to write it; `-` is stdout [default: report.html in the run's folder]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// How to write it
    #[arg(long, value_enum, default_value_t = Format::Html)]
    format: Format,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// The page
    Html,
    /// Its data
    Json,
}

/// Runs the command.
pub fn run(args: ReportArgs) -> Result<Exit, Failure> {
    let folder = run_folder::find(&args.run)?;
    let mut history = History::open(&folder).map_err(|error| failure(&error))?;
    history.catch_up().map_err(|error| failure(&error))?;
    let summary = Summary::of(&history);
    let content = match args.format {
        Format::Html => report::page(&summary, None).into_bytes(),
        Format::Json => {
            let mut content = vec![];
            report::write_json(&summary, &mut content)?;
            content
        }
    };
    let path = args.out.unwrap_or_else(|| match args.format {
        Format::Html => folder.join(REPORT),
        Format::Json => folder.join("report.json"),
    });
    let mut stdout = std::io::stdout().lock();
    if path == Path::new("-") {
        stdout.write_all(&content)?;
    } else {
        report::write_file(&path, &content).map_err(|error| failure(&error))?;
        writeln!(stdout, "{}", path.display())?;
    }
    Ok(Exit::Done)
}

/// A report that cannot be made, as the user reads it.
pub(super) fn failure(error: &ReportError) -> Failure {
    Failure::ours(error).hint(error.hint())
}
