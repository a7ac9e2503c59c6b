//! `captime best`: the pair to use.

use std::io::Write;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use super::run::summary::AnswerText;
use super::{Exit, Failure, exit_code, report, run_folder};
use crate::answer::{Values, Verdict};
use crate::markup::Visible;
use crate::progress::Words;
use crate::quantity;
use crate::report::History;
use crate::resource::Resource;
use crate::round::{ArmId, Limit};
use crate::target::paste::{Paster, use_line};

const EXAMPLES: &str = "\
Examples:
  captime best                           the answer of the newest run
  captime best ames-forest --limit 5s    the arm to use if every run gets 5 s
  captime best runs/minisat --pareto     trade reward against time yourself
  captime best minisat --format json     the same for programs";

/// Print the answer: configuration, limit, gain with its interval, and a command line to paste.
///
/// Also works during a run and after a crash. As long as no pull has earned a reward there is no answer; JSON and YAML output
/// then contain null.
#[derive(Debug, Args)]
#[command(after_help = format!("{EXAMPLES}\n\n{}", exit_code::BEST))]
pub struct BestArgs {
    /// A run's folder, or its name in runs/ [default: the newest run]
    run: Option<PathBuf>,
    /// The arm to use if every run is granted this limit: a time such as 5s, or a number for `work`
    #[arg(long, value_name = "LIMIT", conflicts_with = "pareto")]
    limit: Option<String>,
    /// List the arms that no other arm beats in both reward and consumption
    #[arg(long)]
    pareto: bool,
    /// Output format
    #[arg(long, value_enum, default_value_t = BestFormat::Text)]
    format: BestFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum BestFormat {
    Text,
    Json,
    Yaml,
}

/// Runs the command.
pub fn run(args: BestArgs) -> Result<Exit, Failure> {
    let folder = run_folder::find_or_latest(args.run.as_deref())?;
    let mut history = History::open(&folder).map_err(|error| report::failure(&error))?;
    history
        .catch_up()
        .map_err(|error| report::failure(&error))?;
    if args.pareto {
        return pareto(&history, args.format);
    }
    let at_limit = match &args.limit {
        None => None,
        Some(limit) => {
            let limit = read_limit(limit, history.resource())?;
            Some(history.verdict_on(history.answer_at(limit), true))
        }
    };
    let verdict = at_limit.as_ref().unwrap_or_else(|| history.verdict());
    let mut to = std::io::stdout().lock();
    match args.format {
        BestFormat::Text => {
            let answer = AnswerText {
                verdict,
                words: &words(&history),
                scenario: Some(history.scenario()),
            };
            answer.write(&mut Visible(to))?;
        }
        format => write_value(&value(&history, verdict), format, &mut to)?,
    }
    Ok(match verdict.best {
        Some(_) => Exit::Done,
        None => Exit::NoReward,
    })
}

fn words(history: &History) -> Words<'_> {
    Words {
        space: &history.scenario().space,
        resource: history.resource(),
    }
}

pub(super) fn read_limit(text: &str, resource: Resource) -> Result<Limit, Failure> {
    let value = match resource {
        Resource::Work => text.parse().map_err(|_| {
            Failure::usage(format!("--limit `{text}` is not a number")).hint(Some(
                "this run limits `work`, a plain count: write it like 1e6",
            ))
        })?,
        Resource::Memory => quantity::parse_bytes(text)
            .map(|bytes| bytes as f64)
            .map_err(|error| Failure::usage(format!("--limit {error}")).hint(Some(error.hint())))?,
        Resource::Wall | Resource::Cpu => quantity::parse_seconds(text)
            .map_err(|error| Failure::usage(format!("--limit {error}")).hint(Some(error.hint())))?,
    };
    Limit::new(value).map_err(|error| Failure::usage(format!("--limit: {error}")))
}

/// The arms that no other beats in both reward and consumption.
fn pareto(history: &History, format: BestFormat) -> Result<Exit, Failure> {
    let front = history.pareto();
    let is_empty = front.is_empty();
    let words = words(history);
    let mut to = std::io::stdout().lock();
    if format == BestFormat::Text {
        let mut to = Visible(to);
        if is_empty {
            writeln!(to, "no answer yet: no pull has earned a reward")?;
        }
        for (arm, limit, values) in front {
            let (label, limit) = (words.arm(arm), words.amount(limit));
            let shown = values.in_words(words.resource);
            let pulls = quantity::counted(values.runs as u64, "pull");
            writeln!(to, "{label}: {shown}; {pulls} up to {limit}")?;
        }
    } else {
        let one = |(arm, limit, values): (ArmId, f64, Values)| {
            json!({
                "arm": arm,
                "configuration": history.space.configuration(arm),
                "limit": limit,
                "values": values,
            })
        };
        let value = json!({
            "name": history.header.name,
            "resource": history.resource().name(),
            "front": front.into_iter().map(one).collect::<Vec<_>>(),
        });
        write_value(&value, format, &mut to)?;
    }
    Ok(if is_empty { Exit::NoReward } else { Exit::Done })
}

fn write_value(value: &Value, format: BestFormat, to: &mut dyn Write) -> Result<(), Failure> {
    if format == BestFormat::Yaml {
        let text = serde_yaml::to_string(value).map_err(Failure::internal)?;
        to.write_all(text.as_bytes())?;
    } else {
        serde_json::to_writer_pretty(&mut *to, value).map_err(std::io::Error::from)?;
        writeln!(to)?;
    }
    Ok(())
}

/// Has the same keys with and without an answer. Without one, they are null.
fn value(history: &History, verdict: &Verdict) -> Value {
    let best = verdict.best;
    let command = best.and_then(|best| use_line(history.scenario(), best.pull, Paster::Here));
    json!({
        "name": history.header.name,
        "arm": best.map(|best| best.pull.arm),
        "configuration": best.map(|best| history.space.configuration(best.pull.arm)),
        "limit": best.map(|best| best.pull.limit),
        "resource": history.resource().name(),
        "gain": best.map(|best| best.gain),
        "interval": best.map(|best| best.interval),
        "pulls": best.map(|best| best.pulls),
        "censored": best.map(|best| best.censored),
        "why_limit": verdict.limit,
        "values": verdict.values,
        "default": verdict.comparison,
        "afforded": verdict.afforded,
        "unchanged_since": verdict.unchanged_since,
        "outlook": verdict.outlook,
        "path": verdict.path,
        "no_answer": verdict.no_answer.as_ref().map(|(why, fix)| json!({"why": why, "fix": fix})),
        "rounds": history.rounds.len(),
        "command": command,
    })
}
