//! `captime export`: one row per round with an outcome.

use std::io::{BufWriter, Write};
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use serde::Serialize;

use super::run_folder::{self, failure};
use super::{Exit, Failure, exit_code};
use crate::journal::{Learned, Step};
use crate::orchestrator::RunReader;
use crate::round::{Guard, Price, Seen};
use crate::space::{Configuration, Parameter, Space};

const EXAMPLES: &str = "\
Examples:
  captime export ames-forest > rounds.csv
  captime export runs/minisat --format aslib > algorithm_runs.arff";

/// Print all rounds as a table: CSV, JSON lines, or ASlib's algorithm_runs.arff.
///
/// One row per round with an outcome: round, arm, configuration, limit, instance, seed, outcome, reward, consumption, gain,
/// wall_seconds, cpu_seconds, exit_code, signal, arm_name, score, peak_memory_bytes, failure, node. Also works during a run and after
/// a crash. Text is written unchanged: names and messages of programs may contain control characters.
#[derive(Debug, Args)]
#[command(after_help = format!("{EXAMPLES}\n\n{}", exit_code::PLAIN))]
pub struct ExportArgs {
    /// A run's folder, or its name in runs/ [default: the newest run]
    run: Option<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value_t = ExportFormat::Csv)]
    format: ExportFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ExportFormat {
    Csv,
    Jsonl,
    Aslib,
}

/// A round with its outcome.
#[derive(Debug, Serialize)]
struct Row {
    round: u64,
    arm: u32,
    configuration: Configuration,
    limit: f64,
    instance: Option<String>,
    seed: Option<u64>,
    outcome: &'static str,
    reward: Option<f64>,
    consumption: Option<f64>,
    gain: Option<f64>,
    wall_seconds: Option<f64>,
    cpu_seconds: Option<f64>,
    exit_code: Option<i32>,
    signal: Option<i32>,
    arm_name: Option<String>,
    score: Option<f64>,
    peak_memory_bytes: Option<u64>,
    failure: Option<String>,
    node: Option<String>,
}

/// The columns of a table, in this order.
const COLUMNS: [&str; 19] = [
    "round",
    "arm",
    "configuration",
    "limit",
    "instance",
    "seed",
    "outcome",
    "reward",
    "consumption",
    "gain",
    "wall_seconds",
    "cpu_seconds",
    "exit_code",
    "signal",
    "arm_name",
    "score",
    "peak_memory_bytes",
    "failure",
    "node",
];

/// Runs the command.
pub fn run(args: ExportArgs) -> Result<Exit, Failure> {
    let folder = run_folder::find_or_latest(args.run.as_deref())?;
    // Gains need the prices, which calibration may fix late, so all rounds are read first.
    let mut rounds: Vec<Box<Learned>> = vec![];
    let past = RunReader::read(&folder, |step| {
        if let Step::Learned(learned) = step {
            rounds.push(learned.clone());
        }
    })
    .map_err(|error| failure(&error))?;
    rounds.sort_by_key(|learned| learned.pull.round);
    let rows = rounds
        .iter()
        .map(|learned| row(&past, learned, past.state.price()));
    let mut to = BufWriter::new(std::io::stdout().lock());
    match args.format {
        ExportFormat::Csv => csv(rows, past.state.space(), &mut to)?,
        ExportFormat::Jsonl => {
            for row in rows {
                serde_json::to_writer(&mut to, &row).map_err(std::io::Error::from)?;
                to.write_all(b"\n")?;
            }
        }
        ExportFormat::Aslib => aslib(&past, &rounds, rows, &mut to)?,
    }
    to.flush()?;
    Ok(Exit::Done)
}

fn row(past: &RunReader, learned: &Learned, price: Option<&Price>) -> Row {
    let Learned {
        pull,
        observation,
        outcome,
    } = learned;
    Row {
        round: pull.round.0,
        arm: pull.arm.number(),
        configuration: past.state.space().configuration(pull.arm),
        limit: pull.limit.get(),
        instance: pull.instance.map(|number| {
            let named = past.resolved.instances.get(number as usize - 1);
            named.cloned().unwrap_or_else(|| number.to_string())
        }),
        seed: pull.seed,
        outcome: match observation.seen() {
            Seen::Rewarded { .. } => "rewarded",
            Seen::Censored { .. } => "censored",
            Seen::Failed => "failed",
        },
        reward: outcome.reward,
        consumption: outcome.consumption,
        gain: price.map(|price| observation.gain(price)),
        wall_seconds: outcome.wall,
        cpu_seconds: outcome.cpu,
        exit_code: outcome.exit,
        signal: outcome.signal,
        node: outcome.node.as_deref().map(ToOwned::to_owned),
        arm_name: past.state.space().name(pull.arm).map(str::to_owned),
        score: outcome.score,
        peak_memory_bytes: outcome.memory,
        failure: outcome.failed.as_deref().map(str::to_owned),
    }
}

/// One row per round, with a column for every parameter after those that all runs have.
fn csv(rows: impl Iterator<Item = Row>, space: &Space, to: &mut dyn Write) -> Result<(), Failure> {
    let mut table = csv::Writer::from_writer(to);
    let failed = |error: csv::Error| match error.into_kind() {
        csv::ErrorKind::Io(error) => Failure::from(error),
        other => Failure::internal(format!("{other:?}")),
    };
    let parameters = || space.parameters().iter().map(Parameter::name);
    let own = parameters().map(|name| {
        let prefix = if COLUMNS.contains(&name) {
            "parameter_"
        } else {
            ""
        };
        format!("{prefix}{name}")
    });
    let columns = COLUMNS.iter().map(|name| (*name).to_owned());
    table.write_record(columns.chain(own)).map_err(failed)?;
    for row in rows {
        let configuration = serde_json::to_string(&row.configuration).map_err(Failure::internal)?;
        let cell = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
        let values = parameters().map(|name| {
            let value = row.configuration.get(name);
            value.map_or(String::new(), ToString::to_string)
        });
        let values: Vec<String> = values.collect();
        let cells = [
            row.round.to_string(),
            row.arm.to_string(),
            configuration,
            row.limit.to_string(),
            row.instance.unwrap_or_default(),
            row.seed.map_or(String::new(), |seed| seed.to_string()),
            row.outcome.to_owned(),
            cell(row.reward),
            cell(row.consumption),
            cell(row.gain),
            cell(row.wall_seconds),
            cell(row.cpu_seconds),
            row.exit_code.map_or(String::new(), |code| code.to_string()),
            row.signal
                .map_or(String::new(), |signal| signal.to_string()),
            row.arm_name.unwrap_or_default(),
            cell(row.score),
            row.peak_memory_bytes
                .map_or(String::new(), |bytes| bytes.to_string()),
            row.failure.unwrap_or_default(),
            row.node.unwrap_or_default(),
        ];
        table
            .write_record(cells.into_iter().chain(values))
            .map_err(failed)?;
    }
    table.flush()?;
    Ok(())
}

/// ASlib's table of runs: instance, repetition, algorithm, runtime, status.
fn aslib(
    past: &RunReader,
    rounds: &[Box<Learned>],
    rows: impl Iterator<Item = Row>,
    to: &mut dyn Write,
) -> Result<(), Failure> {
    writeln!(
        to,
        "% {} rounds of captime run {}",
        rounds.len(),
        past.header.name
    )?;
    writeln!(
        to,
        "% runtime is the consumption of {}; algorithms are arms",
        past.resolved.resource().name()
    )?;
    writeln!(
        to,
        "@RELATION ALGORITHM_RUNS_{}",
        past.header.name.to_uppercase().replace('-', "_")
    )?;
    writeln!(to)?;
    writeln!(to, "@ATTRIBUTE instance_id STRING")?;
    writeln!(to, "@ATTRIBUTE repetition NUMERIC")?;
    writeln!(to, "@ATTRIBUTE algorithm STRING")?;
    writeln!(to, "@ATTRIBUTE runtime NUMERIC")?;
    writeln!(
        to,
        "@ATTRIBUTE runstatus {{ok, timeout, memout, not_applicable, crash, other}}"
    )?;
    writeln!(to)?;
    writeln!(to, "@DATA")?;
    let mut repetitions: std::collections::HashMap<(String, u32), u64> =
        std::collections::HashMap::new();
    for (row, learned) in rows.zip(rounds) {
        let instance = row.instance.unwrap_or_else(|| "none".into());
        let repetition = repetitions.entry((instance.clone(), row.arm)).or_default();
        *repetition += 1;
        let status = match (row.outcome, learned.outcome.guard) {
            ("rewarded", _) => "ok",
            ("censored", _) | (_, Some(Guard::Wall | Guard::Cpu | Guard::Work)) => "timeout",
            (_, Some(Guard::Memory)) => "memout",
            _ => "crash",
        };
        let runtime = row
            .consumption
            .map_or("?".to_owned(), |used| used.to_string());
        let algorithm = row.arm_name.unwrap_or_else(|| format!("arm{}", row.arm));
        writeln!(
            to,
            "{},{repetition},{},{runtime},{status}",
            quoted(&instance),
            quoted(&algorithm)
        )?;
    }
    Ok(())
}

fn quoted(text: &str) -> String {
    let is_plain = text
        .chars()
        .all(|letter| letter.is_ascii_alphanumeric() || "-_./".contains(letter));
    if is_plain {
        text.to_owned()
    } else {
        // ARFF has no way to write a line break in a name.
        let text: String = text
            .chars()
            .map(|letter| if letter.is_control() { ' ' } else { letter })
            .collect();
        format!("'{}'", text.replace('\\', r"\\").replace('\'', r"\'"))
    }
}
