//! `captime forest`: one split, one fit, one evaluation.

mod ignored;
mod isolated;
mod options;
mod text;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

use self::isolated::Isolated;
use super::{Exit, Failure};
use crate::learner::engine::{EngineError, EngineKind, Fit};
use crate::learner::{
    Allowance, Dataset, DatasetError, ForestReport, Importance, LevelOrder, Normalise, Params,
    ReadOptions, Resource, Simd, Split, Stop, Task,
};
use crate::listed;
use clap::{Args, ValueEnum};

/// Fit a random forest on part of a CSV file and test it on the rest.
///
/// One random split, one fit, one evaluation: the learner that `captime run` tunes, as a command of its own. Text columns are
/// factors; `NA` and empty cells are missing. The same seed gives the same split and the same forest, on any machine and for
/// any number of threads; with the engine `linfa` the same split, but ties in its trees fall differently in every run.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub struct ForestArgs {
    /// The CSV file; its first line names the columns
    data: PathBuf,
    /// The column to predict
    #[arg(long, value_name = "COLUMN")]
    predict: String,
    /// Columns to leave out, such as ids: Id,Name; quoted, as in CSV, where a name holds a comma
    #[arg(long, value_name = "COLUMNS")]
    drop: Vec<String>,
    /// The order of the levels of a text column, as COLUMN=LOW,MIDDLE,HIGH; may be given several times
    #[arg(long, value_name = "ORDER")]
    levels: Vec<String>,
    /// The order of the levels of all other text columns
    #[arg(long, value_enum, default_value_t)]
    level_order: LevelOrder,
    /// What the target is; seen from the column if not given
    #[arg(long, value_enum)]
    task: Option<Task>,
    /// How many trees
    #[arg(long, value_name = "N", default_value_t = 500)]
    trees: usize,
    /// Predictors drawn at each node [default: root of their number]
    #[arg(long, value_name = "M")]
    mtry: Option<usize>,
    /// Nodes of at most this many draws are not split [default: 5, classes 1]
    #[arg(long, value_name = "K")]
    min_node_size: Option<usize>,
    /// Draws per tree, as a fraction of the training rows
    #[arg(long, value_name = "F", default_value_t = 1.0)]
    sample_fraction: f64,
    /// Who fits
    #[arg(long, value_enum, default_value_t)]
    engine: EngineKind,
    /// Where a fit runs
    #[arg(long, value_enum, default_value_t = Isolation::Thread)]
    isolation: Isolation,
    /// Fit only this of the splits, for one that keeps the time
    #[arg(long, hide = true)]
    only_split: Option<u32>,
    /// Fraction of the rows to learn from
    #[arg(long, value_name = "F", default_value_t = 0.7)]
    train: f64,
    /// Rows to test on, one number a line, counted from 1 below the header; instead of a random split
    #[arg(long, value_name = "FILE", conflicts_with_all = ["train", "splits"])]
    test_rows: Option<PathBuf>,
    /// How many random splits, each with its own seed; means are given
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    splits: u32,
    /// Seed of the split and of the forest
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// Threads that grow trees
    #[arg(long, value_name = "N", default_value_t = 1)]
    threads: usize,
    /// End each fit after this much: a duration such as 250ms, or a number with --resource work
    #[arg(long, value_name = "LIMIT")]
    limit: Option<String>,
    /// What the limit is on [default: wall]
    #[arg(long, value_enum)]
    resource: Option<Resource>,
    /// What the error is set against for the reward
    #[arg(long, value_enum, default_value_t)]
    normalise: Normalise,
    /// Also tell the error on rows out of the bag, worked out after the fit and outside of its limit
    #[arg(long)]
    oob: bool,
    /// Also tell how much each predictor matters
    #[arg(long, value_enum, num_args = 0..=1, default_value_t = Importance::None, default_missing_value = "impurity", hide_default_value = true)]
    importance: Importance,
    /// Which instructions may be used; the forest is the same
    #[arg(long, value_enum, default_value_t)]
    simd: Simd,
    /// How to write the result
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

const HELP: &str = "\
Examples:
  captime forest houses.csv --predict Price
  captime forest houses.csv --predict Price --trees 300 --mtry 24 --splits 10
  captime forest houses.csv --predict Price --limit 250ms --resource cpu
  captime forest iris.csv --predict Species --engine linfa --limit 2s

A fit that hits its limit is told as `stopped`, without error or reward, and is no failure; of several splits, one is enough. In a process of its own the limit is on \
the whole process, reading the file included.

Exit codes: 0 done or stopped; 1 failure of ours; 2 bad usage or data.";

/// How to write the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Text,
    Json,
}

/// Where a fit runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Isolation {
    /// In this process, unless a limit must hold for an engine that cannot be stopped
    #[value(alias = "none")]
    Thread,
    /// In a process of its own, ended at the limit
    Process,
}

/// Runs the command.
pub fn run(args: ForestArgs) -> Result<Exit, Failure> {
    // Started together, the clock first, so that one thread never seems to use more CPU time than there was.
    let started = Instant::now();
    let cpu_before = process_cpu_seconds();
    let allowance = options::allowance(args.limit.as_deref(), args.resource)?;
    ignored::refuse(args.engine, &params(&args, args.seed))?;
    let data = read(&args)?;
    let engine = args.engine.engine();
    let is_timed = allowance.is_some_and(|allowance| allowance.resource != Resource::Work);
    if allowance.is_some() && !is_timed && !engine.is_stoppable() {
        let name = args.engine.name();
        return Err(
            Failure::usage(format!("engine `{name}` does not count work"))
                .hint(Some("limit its wall or cpu time")),
        );
    }
    let needs_process = is_timed && !engine.is_stoppable();
    let is_child = args.only_split.is_some();
    let report = if !is_child && (needs_process || args.isolation == Isolation::Process) {
        in_processes(&args, &data, allowance)?
    } else {
        let numbers = match args.only_split {
            Some(number) => number..number + 1,
            None => 0..args.splits,
        };
        // The one who started us keeps the time.
        let allowance = allowance.filter(|_| !(is_child && is_timed));
        let reports = numbers
            .map(|number| one_split(&args, &data, number, allowance))
            .collect::<Result<Vec<_>, _>>()?;
        let mut report = mean(&reports)?;
        let cpu = process_cpu_seconds() - cpu_before;
        report.cpu_seconds = cpu / f64::from(report.splits);
        report.wall_seconds = started.elapsed().as_secs_f64() / f64::from(report.splits);
        report
    };
    let mut to = std::io::stdout().lock();
    if is_child || args.format == Format::Json {
        let text = serde_json::to_string(&report).map_err(Failure::ours)?;
        writeln!(to, "{text}")?;
    } else {
        text::print(&report, &mut to)?;
    }
    Ok(Exit::Done)
}

/// Fits every split in a process of its own.
fn in_processes(
    args: &ForestArgs,
    data: &Dataset,
    allowance: Option<Allowance>,
) -> Result<ForestReport, Failure> {
    // What is wrong with the parameters is said here, before any process is started.
    params(args, args.seed)
        .check_for(data.predictors())
        .map_err(|error| Failure::usage(&error).hint(error.hint()))?;
    split(args, data, args.seed)?;
    let mut isolated = Isolated::start()?;
    let reports = (0..args.splits)
        .map(|number| isolated.run(number, data, args.engine, allowance))
        .collect::<Result<Vec<_>, _>>();
    isolated.close();
    mean(&reports?)
}

fn mean(reports: &[ForestReport]) -> Result<ForestReport, Failure> {
    ForestReport::mean(reports).ok_or_else(|| Failure::usage("no split was asked for"))
}

/// Fits and evaluates one split, by number from 0, in this process.
fn one_split(
    args: &ForestArgs,
    data: &Dataset,
    number: u32,
    allowance: Option<Allowance>,
) -> Result<ForestReport, Failure> {
    let seed = args.seed.wrapping_add(u64::from(number));
    let split = split(args, data, seed)?;
    let fit = Fit {
        data,
        split: &split,
        params: &params(args, seed),
        stop: &Stop::new(),
        allowance,
    };
    let outcome = args.engine.engine().run(&fit).map_err(engine_failure)?;
    Ok(ForestReport::new(
        data,
        args.engine,
        &split,
        &outcome,
        args.normalise,
    ))
}

fn read(args: &ForestArgs) -> Result<Dataset, Failure> {
    let bad = |error| bad_data(&args.data, &error);
    let text = std::fs::read(&args.data).map_err(|source| {
        bad(DatasetError::Unreadable {
            path: args.data.clone(),
            source,
        })
    })?;
    let drop = args.drop.iter().flat_map(|word| listed::read(word));
    let options = ReadOptions {
        predict: args.predict.clone(),
        drop: drop.collect(),
        levels: options::levels(&args.levels, &Dataset::column_names(&text))?,
        order: args.level_order,
        task: args.task,
    };
    Dataset::parse(&text, &options).map_err(bad)
}

/// What is wrong with a file of data, which is named.
pub(super) fn bad_data(path: &Path, error: &DatasetError) -> Failure {
    let message = match error {
        DatasetError::Unreadable { .. } => error.to_string(),
        _ => format!("{}: {error}", path.display()),
    };
    Failure::usage(message).hint(error.hint())
}

fn params(args: &ForestArgs, seed: u64) -> Params {
    Params {
        trees: args.trees,
        mtry: args.mtry,
        min_node_size: args.min_node_size,
        sample_fraction: args.sample_fraction,
        seed,
        threads: args.threads,
        importance: args.importance,
        out_of_bag: args.oob,
        simd: args.simd,
    }
}

fn split(args: &ForestArgs, data: &Dataset, seed: u64) -> Result<Split, Failure> {
    match &args.test_rows {
        Some(path) => options::split_by_file(path, data.rows()),
        None => Split::random(data.rows(), args.train, seed)
            .map_err(|error| Failure::usage(&error).hint(error.hint())),
    }
}

fn engine_failure(error: EngineError) -> Failure {
    Failure::usage(&error).hint(error.hint())
}

fn process_cpu_seconds() -> f64 {
    let now = nix::time::ClockId::CLOCK_PROCESS_CPUTIME_ID
        .now()
        .expect("every process has this clock");
    now.tv_sec() as f64 + now.tv_nsec() as f64 / 1e9
}
