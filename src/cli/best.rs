//! `captime best`: the pair to use.

use std::io::Write;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use super::run::summary;
use super::run_folder::{self, failure};
use super::{Exit, Failure, exit_code};
use crate::orchestrator::Past;
use crate::policy::Recommendation;
use crate::progress::Words;
use crate::scenario::Scenario;
use crate::target::paste::{Paster, use_line};

const EXAMPLES: &str = "\
Examples:
  captime best ames-forest                 the newest run of that name in runs/
  captime best runs/ames-forest --format json";

/// The pair to use: configuration, limit, gain with its interval, and a command line to paste.
///
/// Reads the journal only, so it also works on a run that is still going, or was killed. Where no pull has brought a reward,
/// there is no pair to use: JSON and YAML have null for it and all that belongs to it.
#[derive(Debug, Args)]
#[command(after_help = format!("{EXAMPLES}\n\n{}", exit_code::BEST))]
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
    let best = summary::best(&past.state);
    let words = Words {
        space: past.space.clone(),
        resource: past.brief.resource(),
    };
    let scenario = past.brief.scenario(&past.header);
    let mut to = std::io::stdout().lock();
    match args.format {
        Format::Text => match (best, &scenario) {
            (None, _) => summary::write_nothing(past.state.tally(), &mut to)?,
            (Some(best), Some(scenario)) => summary::write_best(scenario, &words, best, &mut to)?,
            (Some(best), None) => {
                let configuration = past.space.configuration(best.pull.arm);
                writeln!(to, "best      arm {}: {configuration}", best.pull.arm)?;
                let limit = words.limit(best.pull.limit);
                writeln!(to, "limit     {limit} of {}", past.brief.resource)?;
                summary::write_gain(best, &mut to)?;
            }
        },
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
    Ok(match best {
        Some(_) => Exit::Done,
        None => Exit::NoReward,
    })
}

/// The same keys with and without an answer, so that programs find null where there is none.
fn value(past: &Past, scenario: Option<&Scenario>, best: Option<Recommendation>) -> Value {
    let command = scenario.zip(best);
    let command = command.and_then(|(scenario, best)| use_line(scenario, best.pull, Paster::Here));
    json!({
        "name": past.header.name,
        "arm": best.map(|best| best.pull.arm),
        "configuration": best.map(|best| past.space.configuration(best.pull.arm)),
        "limit": best.map(|best| best.pull.limit),
        "resource": past.brief.resource,
        "gain": best.map(|best| best.gain),
        "mean": best.map(|best| best.mean),
        "interval": best.map(|best| best.interval),
        "pulls": best.map(|best| best.pulls),
        "censored": best.map(|best| best.censored),
        "rounds": past.state.tally().learned,
        "command": command,
    })
}
