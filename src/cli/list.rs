//! `captime list`: all runs with their state.

use std::io::Write;
use std::path::PathBuf;
use std::time::SystemTime;

use clap::Args;
use serde_json::json;

use super::{Exit, Failure, TextOrJson, exit_code, run_folder};
use crate::journal::FILE;
use crate::markup::Visible;
use crate::progress::Words;
use crate::quantity;
use crate::report::{History, Status};

const EXAMPLES: &str = "\
Examples:
  captime list                   all runs in runs/
  captime list --runs /data/runs --format json";

/// List all runs: state, rounds, best arm, age.
#[derive(Debug, Args)]
#[command(after_help = format!("{EXAMPLES}\n\n{}", exit_code::PLAIN))]
pub struct ListArgs {
    /// Output format
    #[arg(long, value_enum, default_value_t = TextOrJson::Text)]
    format: TextOrJson,
}

/// Runs the command.
pub fn run(args: &ListArgs) -> Result<Exit, Failure> {
    let folder = run_folder::runs();
    let names = run_folder::runs_in(&folder).unwrap_or_default();
    let mut runs: Vec<(Option<SystemTime>, String, PathBuf)> = names
        .into_iter()
        .map(|name| {
            let run = folder.join(&name);
            let written = std::fs::metadata(run.join(FILE)).and_then(|of| of.modified());
            (written.ok(), name, run)
        })
        .collect();
    runs.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    let mut to = Visible(std::io::stdout().lock());
    if runs.is_empty() && args.format == TextOrJson::Text {
        writeln!(
            to,
            "there is no run in `{}`; `captime run SCENARIO` starts one",
            folder.display()
        )?;
    }
    for (written, name, run) in runs {
        let age = written
            .and_then(|written| written.elapsed().ok())
            .map(|age| age.as_secs_f64());
        let read = History::open(&run).and_then(|mut history| history.catch_up().map(|_| history));
        match (read, args.format) {
            (Ok(history), TextOrJson::Text) => {
                let (state, _) = Status::state(&history);
                let rounds = quantity::counted(history.rounds.len() as u64, "round");
                let words = Words {
                    space: &history.space,
                    resource: history.resource(),
                };
                let best = words.best(history.answer());
                let age = age.map_or(String::new(), |age| {
                    format!(", {} ago", quantity::seconds(age.ceil()))
                });
                writeln!(to, "{name}: {state}, {rounds}{age}; {best}")?;
            }
            (Ok(history), TextOrJson::Json) => {
                let best = history.answer();
                let line = json!({
                    "run": name,
                    "folder": run,
                    "name": history.header.name,
                    "policy": history.policy().name(),
                    "state": Status::state(&history).0,
                    "started": history.header.started,
                    "age_seconds": age,
                    "rounds": history.rounds.len(),
                    "best": best.map(|best| json!({
                        "arm": best.pull.arm,
                        "configuration": history.space.configuration(best.pull.arm),
                        "limit": best.pull.limit,
                        "gain": best.gain,
                        "interval": best.interval,
                    })),
                });
                writeln!(to.0, "{line}")?;
            }
            (Err(error), TextOrJson::Text) => writeln!(to, "{name}: cannot be read: {error}")?,
            (Err(error), TextOrJson::Json) => {
                let line = json!({"run": name, "folder": run, "error": error.to_string()});
                writeln!(to.0, "{line}")?;
            }
        }
    }
    Ok(Exit::Done)
}
