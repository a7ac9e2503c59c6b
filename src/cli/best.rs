//! `captime best`: the pair to use.

use std::io::Write;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use super::run::summary;
use super::run_folder::{self, failure};
use super::{Exit, Failure, exit_code};
use crate::orchestrator::Past;
use crate::progress::Words;
use crate::scenario::Scenario;
use crate::target::paste::{Paster, use_line};

const EXAMPLES: &str = "\
Examples:
  captime best ames-forest                 the newest run of that name in runs/
  captime best runs/ames-forest --format json";

/// The pair to use: configuration, limit, gain with its interval, and a command line to paste.
///
/// Reads the journal only, so it also works on a run that is still going, or was killed.
#[derive(Debug, Args)]
#[command(after_help = format!("{EXAMPLES}\n\n{}", exit_code::HELP))]
pub struct BestArgs {
    /// A run's folder, or its name in runs/
    run: PathBuf,
    /// How to write it
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Text,
    Json,
    Yaml,
}

/// Runs the command.
pub fn run(args: BestArgs) -> Result<Exit, Failure> {
    let folder = run_folder::find(&args.run)?;
    let past = Past::read(&folder, |_| ()).map_err(|error| failure(&error))?;
    let Some(best) = past.state.recommend() else {
        return Err(
            Failure::usage(format!("{} has nothing to recommend yet", folder.display())).hint(
                Some("it has no outcome that a policy learned from; let `captime run` go on"),
            ),
        );
    };
    let words = Words {
        space: past.space.clone(),
        resource: past.brief.resource(),
    };
    let scenario = past.brief.scenario(&past.header);
    let mut to = std::io::stdout().lock();
    match args.format {
        Format::Text => {
            if past.state.tally().rewarded == 0 {
                summary::write_nothing(&mut to)?;
            } else if let Some(scenario) = &scenario {
                summary::write_best(scenario, &words, best, &mut to)?;
            } else {
                let configuration = past.space.configuration(best.pull.arm);
                writeln!(to, "best      arm {}: {configuration}", best.pull.arm)?;
                let limit = words.limit(best.pull.limit);
                writeln!(to, "limit     {limit} of {}", past.brief.resource)?;
                summary::write_gain(best, &mut to)?;
            }
        }
        Format::Json => {
            let value = value(&past, scenario.as_ref(), best);
            serde_json::to_writer_pretty(&mut to, &value).map_err(std::io::Error::from)?;
            writeln!(to)?;
        }
        Format::Yaml => {
            let value = value(&past, scenario.as_ref(), best);
            let text = serde_yaml::to_string(&value).map_err(Failure::ours)?;
            to.write_all(text.as_bytes())?;
        }
    }
    Ok(Exit::Done)
}

fn value(past: &Past, scenario: Option<&Scenario>, best: crate::policy::Recommendation) -> Value {
    let command = scenario.and_then(|scenario| use_line(scenario, best.pull, Paster::Here));
    json!({
        "name": past.header.name,
        "arm": best.pull.arm,
        "configuration": past.space.configuration(best.pull.arm),
        "limit": best.pull.limit,
        "resource": past.brief.resource,
        "gain": best.gain,
        "mean": best.mean,
        "interval": best.interval,
        "pulls": best.pulls,
        "censored": best.censored,
        "rounds": past.state.tally().learned,
        "command": command,
    })
}
