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

/// Write the report: one self-contained HTML file
///
/// It shows what to use, why this limit, which parameters matter and how the run went. The report also works during a run and
/// after a crash. The file needs only a browser: no network, no other file. Prints the path of the file.
#[derive(Debug, Args)]
#[command(after_help = format!("{EXAMPLES}\n\n{}", exit_code::PLAIN))]
pub struct ReportArgs {
    /// A run's folder, or its name in runs/ [default: the newest run]
    run: Option<PathBuf>,
    /// Write to FILE; `-` is stdout [default: report.html in the run's folder]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value_t = ReportFormat::Html)]
    format: ReportFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ReportFormat {
    /// The page
    Html,
    /// Its data
    Json,
}

/// Runs the command.
pub fn run(args: ReportArgs) -> Result<Exit, Failure> {
    let folder = run_folder::find_or_latest(args.run.as_deref())?;
    let mut history = History::open(&folder).map_err(|error| failure(&error))?;
    history.catch_up().map_err(|error| failure(&error))?;
    let summary = Summary::of(&history);
    let content = match args.format {
        ReportFormat::Html => report::page(&summary, None).into_bytes(),
        ReportFormat::Json => {
            let mut content = serde_json::to_vec(&summary).map_err(std::io::Error::from)?;
            content.push(b'\n');
            content
        }
    };
    let path = args.out.unwrap_or_else(|| match args.format {
        ReportFormat::Html => folder.join(REPORT),
        ReportFormat::Json => folder.join("report.json"),
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

/// An error of the report, for the user.
pub(super) fn failure(error: &ReportError) -> Failure {
    Failure::internal(error).hint(error.hint())
}
