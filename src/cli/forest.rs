//! `captime forest`: one split, one fit, one evaluation.

mod isolated;
mod options;
mod text;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

use self::isolated::Isolated;
use super::{Exit, Failure, TextOrJson};
use crate::listed;
use crate::regular_file;
use crate::scenario::Isolation;
use captime_forest::engine::{EngineError, EngineKind, Fit};
use captime_forest::{
    Allowance, Dataset, DatasetError, FitOutcome, ForestReport, Importance, LevelOrder, Metric,
    Model, Normalise, Params, ReadOptions, Resource, Scoring, Simd, Split, Stop, Task, fit_until,
};
use clap::Args;

/// Fit a random forest on part of a CSV file and test it on the rest.
///
/// One random split, one fit, one evaluation: the learner that `captime run` tunes, as a separate command. Text columns are
/// factors. `NA` and empty cells are missing values. The same seed gives the same split and the same forest, on any machine and
/// with any number of threads. The engine `linfa` gives the same split, but breaks ties in its trees differently in every run.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub struct ForestArgs {
    /// The CSV file, with column names in its first line
    data: PathBuf,
    /// The column to predict
    #[arg(long, value_name = "COLUMN")]
    predict: String,
    /// Columns to leave out, such as ids: Id,Name (quote a name that contains a comma, as in CSV)
    #[arg(long, value_name = "COLUMNS")]
    drop: Vec<String>,
    /// Order of the levels of a text column, as COLUMN=LOW,MIDDLE,HIGH; repeatable
    #[arg(long, value_name = "ORDER")]
    levels: Vec<String>,
    /// Order of the levels of all other text columns
    #[arg(long, value_enum, default_value_t)]
    level_order: LevelOrder,
    /// What to predict: a number or a class [default: inferred from the column]
    #[arg(long, value_enum)]
    task: Option<Task>,
    /// Number of trees
    #[arg(long, value_name = "N", default_value_t = 500)]
    trees: usize,
    /// Predictors drawn at each node [default: square root of their number]
    #[arg(long, value_name = "M")]
    mtry: Option<usize>,
    /// Do not split nodes of at most this many draws [default: 5, or 1 for classes]
    #[arg(long, value_name = "K")]
    min_node_size: Option<usize>,
    /// Draws per tree, as a fraction of the training rows
    #[arg(long, value_name = "F", default_value_t = 1.0)]
    sample_fraction: f64,
    /// Forest implementation
    #[arg(long, value_enum, default_value_t)]
    engine: EngineKind,
    /// Where to run a fit
    #[arg(long, value_enum, default_value_t = Isolation::Thread)]
    isolation: Isolation,
    /// Fit only this of the splits, for one that keeps the time
    #[arg(long, hide = true)]
    only_split: Option<u32>,
    /// Fraction of the rows to train on
    #[arg(long, value_name = "F", default_value_t = 0.7)]
    train: f64,
    /// File of test rows instead of a random split: one number per line, 1 is the first row below the header
    #[arg(long, value_name = "FILE", conflicts_with_all = ["train", "splits"])]
    test_rows: Option<PathBuf>,
    /// Number of random splits, each with its own seed; prints means
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    splits: u32,
    /// Seed of the split and of the forest
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// Threads that grow trees
    #[arg(long, value_name = "N", default_value_t = 1)]
    threads: usize,
    /// Stop each fit at this limit: a duration such as 250ms, or a number with --resource work
    #[arg(long, value_name = "LIMIT")]
    limit: Option<String>,
    /// What to limit [default: wall]
    #[arg(long, value_enum)]
    resource: Option<Resource>,
    /// How to normalise the error for the reward
    #[arg(long, value_enum, default_value_t)]
    normalise: Normalise,
    /// What the reward of a classification is
    #[arg(long, value_enum, default_value_t)]
    reward: Metric,
    /// Also fit a forest on all rows and save it for `captime predict`
    #[arg(long, value_name = "FILE", conflicts_with = "limit")]
    save: Option<PathBuf>,
    /// Also report the out-of-bag error, computed after the fit and not counted against its limit
    #[arg(long)]
    oob: bool,
    /// Also report the importance of each predictor
    #[arg(long, value_enum, num_args = 0..=1, default_value_t = Importance::None, default_missing_value = "impurity", hide_default_value = true)]
    importance: Importance,
    /// Which CPU instructions to use; the forest is the same
    #[arg(long, value_enum, default_value_t)]
    simd: Simd,
    /// Output format
    #[arg(long, value_enum, default_value_t = TextOrJson::Text)]
    format: TextOrJson,
}

const HELP: &str = "\
Examples:
  captime forest houses.csv --predict Price
  captime forest houses.csv --predict Price --trees 300 --mtry 24 --splits 10
  captime forest houses.csv --predict Price --limit 250ms --resource cpu
  captime forest iris.csv --predict Species --engine linfa --limit 2s
  captime forest iris.csv --predict Species --splits 10 --save iris.bin

A fit that hits its limit is reported as `stopped`, without error or reward. That is not a failure. With several splits, one \
stopped fit is enough. The model of `--save` is fitted on all rows, so the errors printed are those of forests with fewer rows. With `--isolation process` the limit covers the whole process, including reading the file.

Exit codes: 0 done or stopped; 1 captime itself failed; 2 bad usage or data.";

/// Runs the command.
pub fn run(args: ForestArgs) -> Result<Exit, Failure> {
    // Both clocks start together, the wall clock first, so that one thread never seems to use more CPU time than wall
    // time.
    let started = Instant::now();
    let cpu_before = process_cpu_seconds();
    let allowance = options::allowance(args.limit.as_deref(), args.resource)?;
    options::refuse_ignored(args.engine, &params(&args, args.seed))?;
    if args.save.is_some() && args.engine != EngineKind::Builtin {
        let name = args.engine.name();
        return Err(
            Failure::usage(format!("a forest of engine `{name}` cannot be saved"))
                .hint(Some("leave `--save` out, or use `--engine builtin`")),
        );
    }
    let data = read(&args)?;
    args.engine
        .scores_by(args.reward, data.task())
        .map_err(options::ignored)?;
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
        // The parent process enforces the limit.
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
    if is_child || args.format == TextOrJson::Json {
        let text = serde_json::to_string(&report).map_err(Failure::internal)?;
        writeln!(to, "{text}")?;
    } else {
        text::print(&report, &mut to)?;
    }
    if let (Some(path), false) = (&args.save, is_child) {
        save(&args, &data, path)?;
    }
    Ok(Exit::Done)
}

/// Fits a forest on all rows and writes it to a file, completely or not at all.
fn save(args: &ForestArgs, data: &Dataset, path: &Path) -> Result<(), Failure> {
    let rows: Vec<u32> = (0..data.rows() as u32).collect();
    let params = params(args, args.seed);
    let fit = fit_until(data, &rows, &params, &Stop::new(), None)
        .map_err(|error| Failure::usage(&error).hint(error.hint()))?;
    let FitOutcome::Done { forest, .. } = fit else {
        return Err(Failure::internal("the fit on all rows was stopped"));
    };
    let write = || {
        let folder = path
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty());
        let mut file = tempfile::NamedTempFile::new_in(folder.unwrap_or(Path::new(".")))?;
        file.write_all(&Model::new(data, forest).to_bytes())?;
        file.as_file().sync_all()?;
        file.persist(path).map_err(|error| error.error)?;
        std::io::Result::Ok(())
    };
    write().map_err(|error| {
        Failure::internal(format!("cannot write `{}`: {error}", path.display())).hint(Some(
            "give `--save` a file in a folder that you may write to",
        ))
    })
}

/// Fits every split in its own process.
fn in_processes(
    args: &ForestArgs,
    data: &Dataset,
    allowance: Option<Allowance>,
) -> Result<ForestReport, Failure> {
    // Reports wrong parameters here, before any process is started.
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
        Scoring {
            normalise: args.normalise,
            metric: args.reward,
        },
    ))
}

fn read(args: &ForestArgs) -> Result<Dataset, Failure> {
    let bad = |error| bad_data(&args.data, &error);
    let text = regular_file::read(&args.data, u64::MAX).map_err(|source| {
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

/// A problem with a data file, with its name.
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
