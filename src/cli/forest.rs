//! `captime forest`: one split, one fit, one evaluation.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::{Args, ValueEnum};
use serde::Serialize;

use super::{Exit, Failure};
use crate::learner::engine::{EngineError, EngineKind, EngineOutcome, Job};
use crate::learner::{
    Allowance, Dataset, DatasetError, Importance, LevelOrder, Normalise, Params, Quality,
    ReadOptions, Resource, Simd, Split, Stop, Task,
};
use crate::quantity;

/// Fit a random forest on part of a CSV file and test it on the rest.
///
/// One random split, one fit, one evaluation: the learner that `captime run` tunes, as a command of its own. Text columns are
/// factors; `NA` and empty cells are missing. The same seed gives the same split and the same forest, on any machine and for
/// any number of threads.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub struct ForestArgs {
    /// The CSV file; its first line names the columns
    data: PathBuf,
    /// The column to predict
    #[arg(long, value_name = "COLUMN")]
    predict: String,
    /// Columns to leave out, such as ids
    #[arg(long, value_name = "COLUMN", value_delimiter = ',')]
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
    /// What the limit is on
    #[arg(long, value_enum, default_value_t = Resource::Wall)]
    resource: Resource,
    /// What the error is set against for the reward
    #[arg(long, value_enum, default_value_t)]
    normalise: Normalise,
    /// Also tell the error on rows out of the bag
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
  captime forest houses.csv --predict Price --trees 300 --mtry 24 --min-node-size 5 --sample-fraction 0.632 --splits 10
  captime forest houses.csv --predict Price --limit 250ms --resource cpu --format json
  captime forest iris.csv --predict Species --engine linfa

A fit that hits its limit is told as `stopped`, without error or reward, and is no failure.
Exit codes: 0 done or stopped; 1 failure of ours; 2 bad usage or data.";

/// How to write the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Text,
    Json,
}

/// What is told; means where there were several splits.
#[derive(Debug, Serialize)]
struct Report {
    task: Task,
    engine: EngineKind,
    rows: usize,
    predictors: usize,
    splits: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    rmse: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    accuracy: Option<f64>,
    reward: Option<f64>,
    leaves: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    out_of_bag_error: Option<f64>,
    /// Of the whole command, per split: reading, fitting, predicting.
    wall_seconds: f64,
    cpu_seconds: f64,
    /// Of the fit alone.
    fit_seconds: f64,
    fit_cpu_seconds: f64,
    predict_seconds: Option<f64>,
    work: f64,
    stopped: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    importance: Option<BTreeMap<String, f64>>,
}

/// Runs the command.
pub fn run(args: ForestArgs) -> Result<Exit, Failure> {
    let started = Instant::now();
    let data = read(&args)?;
    let allowance = allowance(&args)?;
    let mut mean = Mean::default();
    let mut importance: Vec<Vec<f64>> = Vec::new();
    for number in 0..u64::from(args.splits) {
        let seed = args.seed.wrapping_add(number);
        let split = split(&args, &data, seed)?;
        let params = params(&args, seed);
        let job = Job {
            data: &data,
            split: &split,
            params: &params,
            stop: &Stop::new(),
            allowance,
        };
        let outcome = args.engine.engine().run(&job).map_err(engine_failure)?;
        let consumed = match &outcome {
            EngineOutcome::Stopped { consumed } => consumed,
            EngineOutcome::Done(fitted) => &fitted.consumed,
        };
        mean.add("fit", consumed.wall.as_secs_f64());
        mean.add("fit cpu", consumed.cpu.as_secs_f64());
        mean.add("work", consumed.work as f64);
        let EngineOutcome::Done(fitted) = outcome else {
            mean.stopped = true;
            continue;
        };
        let seen = data.evaluate(&split.test, &fitted.predicted, args.normalise);
        match seen.quality {
            Quality::Rmse(rmse) => mean.add("rmse", rmse),
            Quality::Accuracy(accuracy) => mean.add("accuracy", accuracy),
        }
        mean.add("reward", seen.reward);
        mean.add("predict", fitted.predict_seconds);
        mean.add_some("leaves", fitted.leaves);
        mean.add_some("oob", fitted.out_of_bag_error);
        importance.extend(fitted.importance);
    }
    let per_split = 1.0 / f64::from(args.splits);
    let report = Report {
        task: data.task(),
        engine: args.engine,
        rows: data.rows(),
        predictors: data.predictors(),
        splits: args.splits,
        rmse: mean.of("rmse"),
        accuracy: mean.of("accuracy"),
        reward: mean.of("reward"),
        leaves: mean.of("leaves"),
        out_of_bag_error: mean.of("oob"),
        wall_seconds: started.elapsed().as_secs_f64() * per_split,
        cpu_seconds: process_cpu_seconds() * per_split,
        fit_seconds: mean.of("fit").unwrap_or(0.0),
        fit_cpu_seconds: mean.of("fit cpu").unwrap_or(0.0),
        predict_seconds: mean.of("predict"),
        work: mean.of("work").unwrap_or(0.0),
        stopped: mean.stopped,
        importance: mean_importance(&data, &importance),
    };
    let mut to = std::io::stdout().lock();
    match args.format {
        Format::Json => {
            let text = serde_json::to_string(&report).map_err(Failure::ours)?;
            writeln!(to, "{text}")?;
        }
        Format::Text => print(&report, &mut to)?,
    }
    Ok(Exit::Done)
}

/// Sums of what was seen, by name.
#[derive(Default)]
struct Mean {
    sums: BTreeMap<&'static str, (f64, u32)>,
    stopped: bool,
}

impl Mean {
    fn add(&mut self, name: &'static str, value: f64) {
        let (sum, count) = self.sums.entry(name).or_default();
        *sum += value;
        *count += 1;
    }

    fn add_some(&mut self, name: &'static str, value: Option<f64>) {
        if let Some(value) = value {
            self.add(name, value);
        }
    }

    fn of(&self, name: &str) -> Option<f64> {
        let (sum, count) = self.sums.get(name)?;
        Some(sum / f64::from(*count))
    }
}

fn mean_importance(data: &Dataset, all: &[Vec<f64>]) -> Option<BTreeMap<String, f64>> {
    if all.is_empty() {
        return None;
    }
    let mean = |place: usize| all.iter().map(|one| one[place]).sum::<f64>() / all.len() as f64;
    let columns = data.columns().iter().enumerate();
    Some(
        columns
            .map(|(place, column)| (column.name().to_owned(), mean(place)))
            .collect(),
    )
}

fn read(args: &ForestArgs) -> Result<Dataset, Failure> {
    let mut levels = BTreeMap::new();
    for order in &args.levels {
        let (column, names) = order.split_once('=').ok_or_else(|| {
            Failure::usage(format!("--levels `{order}` names no column"))
                .hint(Some("write it like Quality=Poor,Fair,Good"))
        })?;
        let names = names.split(',').map(str::to_owned).collect();
        levels.insert(column.to_owned(), names);
    }
    let options = ReadOptions {
        predict: args.predict.clone(),
        drop: args.drop.clone(),
        levels,
        order: args.level_order,
        task: args.task,
    };
    Dataset::read(&args.data, &options).map_err(|error| {
        let message = match &error {
            DatasetError::Unreadable { .. } => error.to_string(),
            _ => format!("{}: {error}", args.data.display()),
        };
        Failure::usage(message).hint(error.hint())
    })
}

fn allowance(args: &ForestArgs) -> Result<Option<Allowance>, Failure> {
    let Some(limit) = &args.limit else {
        return Ok(None);
    };
    let amount = match args.resource {
        Resource::Work => limit.parse::<f64>().map_err(|_| {
            Failure::usage(format!("--limit `{limit}` is not a number"))
                .hint(Some("work is a plain count: write it like 1e6"))
        })?,
        Resource::Wall | Resource::Cpu => quantity::parse_seconds(limit)
            .map_err(|error| Failure::usage(format!("--limit {error}")).hint(Some(error.hint())))?,
    };
    if !(amount > 0.0 && amount.is_finite()) {
        return Err(Failure::usage(format!("--limit `{limit}` is not above 0")));
    }
    Ok(Some(Allowance {
        resource: args.resource,
        amount,
    }))
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
    let split = match &args.test_rows {
        Some(path) => Split::by_test_rows(data.rows(), &read_test_rows(path)?),
        None => Split::random(data.rows(), args.train, seed),
    };
    split.map_err(|error| Failure::usage(&error).hint(error.hint()))
}

fn read_test_rows(path: &Path) -> Result<Vec<u64>, Failure> {
    let at = path.display();
    let text = std::fs::read_to_string(path)
        .map_err(|error| Failure::usage(format!("cannot read `{at}`: {error}")))?;
    let lines = text.lines().enumerate();
    lines
        .filter(|(_, line)| !line.trim().is_empty())
        .map(|(number, line)| {
            line.trim().parse().map_err(|_| {
                let line_number = number + 1;
                Failure::usage(format!(
                    "{at}: line {line_number}: `{line}` is no row number"
                ))
            })
        })
        .collect()
}

fn engine_failure(error: EngineError) -> Failure {
    Failure::usage(&error).hint(error.hint())
}

fn process_cpu_seconds() -> f64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    now.tv_sec as f64 + now.tv_nsec as f64 / 1e9
}

fn print(report: &Report, to: &mut dyn Write) -> std::io::Result<()> {
    let (rows, predictors) = (report.rows, report.predictors);
    let task = report.task.name();
    writeln!(to, "{task} of {rows} rows by {predictors} predictors")?;
    if report.stopped {
        writeln!(to, "stopped at the limit")?;
    }
    if let Some(rmse) = report.rmse {
        writeln!(to, "rmse      {rmse:.6}")?;
    }
    if let Some(accuracy) = report.accuracy {
        writeln!(to, "accuracy  {accuracy:.6}")?;
    }
    if let Some(reward) = report.reward {
        writeln!(to, "reward    {reward:.6}")?;
    }
    if let Some(error) = report.out_of_bag_error {
        writeln!(to, "oob error {error:.6}")?;
    }
    if let Some(leaves) = report.leaves {
        writeln!(to, "leaves    {leaves:.1} per tree")?;
    }
    let wall = quantity::seconds(report.fit_seconds);
    let cpu = quantity::seconds(report.fit_cpu_seconds);
    writeln!(
        to,
        "fit       {wall} ({cpu} of CPU time, {:.0} units of work)",
        report.work
    )?;
    if let Some(importance) = &report.importance {
        let mut sorted: Vec<_> = importance.iter().collect();
        sorted.sort_by(|a, b| b.1.total_cmp(a.1));
        writeln!(to, "\nimportance")?;
        for (name, value) in sorted {
            writeln!(to, "{value:>16.6}  {name}")?;
        }
    }
    Ok(())
}
