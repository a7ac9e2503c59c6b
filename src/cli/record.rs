//! `captime record`: measures every arm and writes a matrix that `recorded` targets replay.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use clap::Args;

use super::driving::drive;
use super::run_folder::{elsewhere, failure};
use super::{Exit, Failure, exit_code};
use crate::journal::{By, EndReason, Learned, Step};
use crate::orchestrator::{
    Budget, Now, Plan, Planned, Run, RunSetup, Schedule, Sequence, Watch, target_seed,
};
use crate::quantity::{counted, whole};
use crate::round::{ArmId, Pull, Round, Seen};
use crate::scenario::{Pin, Scenario};
use crate::target::{PreparedTarget, allowed_cpus, prepare};

const EXAMPLES: &str = "\
Examples:
  captime record examples/script/script.yaml
      write recorded/script/consumption.csv, reward.csv and arms.csv, and print
      the `target` and `arms` of a scenario that replays them
  captime record arms.yaml --times 5 --out measured
      five times, to another folder; Ctrl-C to stop, same command to resume";

/// The folder that holds recordings, as `runs` holds runs.
const RECORDED: &str = "recorded";

/// Measure every arm and write matrices of consumptions and rewards that `recorded` targets replay.
///
/// Runs every arm on every instance up to the largest limit. Each matrix has one row per instance (or per repetition, if there
/// are no instances) and one column per arm. `unsolved` marks a run that was stopped at the limit, `failed` one without a
/// reward. score.csv and memory.csv hold raw scores and peak memory in bytes where there are any. The folder also holds the journal of the measurements: run the same command to resume, or raise `--times` to add
/// repetitions.
#[derive(Debug, Args)]
#[command(after_help = format!("{EXAMPLES}\n\n{}", exit_code::RECORD))]
pub struct RecordArgs {
    /// The scenario file
    scenario: PathBuf,
    /// How often to run every arm on every instance
    #[arg(long, value_name = "K", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    times: u32,
    /// Folder for consumption.csv and reward.csv [default: recorded/NAME, with the scenario's name]
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// How many pulls to run at a time; more than one per CPU distorts the measurements
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=4096))]
    slots: u64,
    /// Print no progress
    #[arg(long, short)]
    quiet: bool,
}

/// The consumption of a run that gave no reward.
const FAILED: &str = "failed";

/// The measurements of one cell.
#[derive(Debug, Clone)]
struct Cell {
    consumption: String,
    reward: f64,
    score: Option<f64>,
    memory: Option<u64>,
}

/// Runs the command.
pub fn run(args: RecordArgs) -> Result<Exit, Failure> {
    let mut scenario = super::scenario_file::read_scenario_without_budget(&args.scenario)?;
    // What is measured is measured here, so only the arms are taken over.
    super::scenario_file::take_over(&mut scenario, None)?;
    if scenario.space.opened().is_some() {
        return Err(super::needs_sample("`captime record`"));
    }
    let out = args.out.clone();
    let out = out.unwrap_or_else(|| Path::new(RECORDED).join(&scenario.name));
    let target = prepare(&scenario, &out)?;
    scenario.at_largest_limit();
    let setup = RunSetup::of(&scenario, &target);
    let plan = &setup.plan;
    let limit = plan.limits.largest();
    let rows = rows(plan, args.times);
    let total = (rows.len() * plan.arms) as u64;
    let measured = Measured {
        cells: BTreeMap::new(),
        total,
        arms: plan.arms as u64,
        is_quiet: args.quiet,
    };
    let budget = Budget {
        rounds: Some(total),
        ..Budget::default()
    };
    let run =
        Run::open(&out, &setup, measured).map_err(|error| elsewhere(failure(&error), &error))?;
    let run = run.with_budget(budget).following(sequence(plan, total));
    let slots = (args.slots as usize).min(allowed_cpus().len().max(1) * 64);
    let (cells, reason) = measure(&scenario, target, run, slots)?;
    if reason == EndReason::Interrupted {
        // The terminal may have been closed.
        let _ = writeln!(
            std::io::stderr().lock(),
            "captime: stopped after {} of {}; run the same command to resume",
            whole(cells.len() as u64),
            counted(total, "run")
        );
        return Ok(Exit::Interrupted);
    }
    let cells: Vec<Cell> = cells.into_values().take(total as usize).collect();
    write(
        &out.join("consumption.csv"),
        &scenario,
        &rows,
        &cells,
        |cell| cell.consumption.clone(),
    )?;
    write(&out.join("reward.csv"), &scenario, &rows, &cells, |cell| {
        cell.reward.to_string()
    })?;
    // What `recorded` targets do not replay, but people ask for.
    let number = |number: Option<f64>| number.map_or(String::new(), |number| number.to_string());
    if cells.iter().any(|cell| cell.score.is_some()) {
        write(&out.join("score.csv"), &scenario, &rows, &cells, |cell| {
            number(cell.score)
        })?;
    }
    if cells.iter().any(|cell| cell.memory.is_some()) {
        write(&out.join("memory.csv"), &scenario, &rows, &cells, |cell| {
            number(cell.memory.map(|bytes| bytes as f64))
        })?;
    }
    let mut stdout = std::io::stdout().lock();
    let arms = write_arms(&out.join("arms.csv"), &scenario)?;
    writeln!(
        stdout,
        "target: {{recorded: {{consumption: {}, reward: {}, cutoff: {}}}}}",
        yaml_path(&out.join("consumption.csv")),
        yaml_path(&out.join("reward.csv")),
        scenario.limits.of.written(limit.get()),
    )?;
    if arms {
        writeln!(
            stdout,
            "arms: {{file: {}}}",
            yaml_path(&out.join("arms.csv"))
        )?;
    }
    Ok(Exit::Done)
}

/// Writes the configuration of every arm, for scenarios that replay the runs or make a surrogate of them. Arms that have no
/// parameters need no such file.
fn write_arms(path: &Path, scenario: &Scenario) -> Result<bool, Failure> {
    let space = &scenario.space;
    if space.parameters().is_empty() {
        return Ok(false);
    }
    let mut table = csv_file(path)?;
    let failed = |error: csv::Error| Failure::cannot_write(path, error);
    let names = || space.parameters().iter().map(crate::space::Parameter::name);
    let own = space.is_named().then_some("name");
    table
        .write_record(own.into_iter().chain(names()))
        .map_err(failed)?;
    for arm in space.arms() {
        let configuration = space.configuration(arm);
        let value = |name| configuration.get(name).map(ToString::to_string);
        let values = names().map(|name| value(name).unwrap_or_default());
        let own = configuration.name().map(str::to_owned);
        table
            .write_record(own.into_iter().chain(values))
            .map_err(failed)?;
    }
    table
        .flush()
        .map_err(|error| Failure::cannot_write(path, error))?;
    Ok(true)
}

fn csv_file(path: &Path) -> Result<csv::Writer<std::fs::File>, Failure> {
    let file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path);
    let file = file.map_err(|error| Failure::cannot_write(path, error))?;
    Ok(csv::Writer::from_writer(file))
}

/// A path for any scenario, wherever its file is: absolute, and quoted if YAML needs it.
fn yaml_path(path: &Path) -> String {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let path = path.display().to_string();
    let is_plain = |letter: char| letter.is_alphanumeric() || "/._-+".contains(letter);
    if path.chars().all(is_plain) {
        path
    } else {
        // A JSON string is one in YAML too.
        serde_json::Value::from(path).to_string()
    }
}

/// Row by row, arm by arm: round n is that of arm (n - 1) mod arms in row (n - 1) / arms, both counted from 0.
fn sequence(plan: &Plan, total: u64) -> impl Schedule + use<> {
    let (arms, instances) = (plan.arms as u64, plan.instances as u64);
    let (limit, seed) = (plan.limits.largest(), plan.seed);
    Sequence::new(total, move |round| {
        let (row, arm) = ((round.0 - 1) / arms, (round.0 - 1) % arms);
        let mut pull = Pull::new(ArmId::from_index(arm as usize), limit);
        pull.instance = (instances > 0).then(|| (row % instances) as u32);
        Planned {
            pull,
            // The same seed for all arms of a row, so that they are compared under the same conditions.
            seed: Some(target_seed(seed, Round(row + 1))),
            by: Some(By::Record),
        }
    })
}

/// Measures what is missing.
fn measure(
    scenario: &Scenario,
    target: PreparedTarget,
    run: Run<Measured>,
    slots: usize,
) -> Result<(BTreeMap<u64, Cell>, EndReason), Failure> {
    let driven = drive(scenario, target, run, slots, Pin::Never)?;
    let cells = driven.runs.into_iter().flat_map(|run| run.watch.cells);
    Ok((cells.collect(), driven.reason))
}

/// Collects the cells of the matrix, by round.
struct Measured {
    cells: BTreeMap<u64, Cell>,
    total: u64,
    arms: u64,
    is_quiet: bool,
}

impl Watch for Measured {
    fn replayed(&mut self, step: &Step) {
        if let Step::Learned(learned) = step {
            self.cells.insert(learned.outcome.outcome, cell(learned));
        }
    }

    fn learned(&mut self, learned: &Learned, _: &Now<'_>) {
        self.cells.insert(learned.outcome.outcome, cell(learned));
        let (done, total) = (self.cells.len() as u64, self.total);
        if !self.is_quiet && (done == total || done.is_multiple_of(self.arms)) {
            // Failing to report this is no reason to stop.
            let (done, total) = (whole(done), counted(total, "run"));
            let _ = writeln!(std::io::stderr().lock(), "captime: {done} of {total}");
        }
    }
}

fn cell(learned: &Learned) -> Cell {
    let (consumption, reward) = match learned.observation.seen() {
        Seen::Rewarded {
            reward,
            consumption,
        } => (consumption.to_string(), reward),
        Seen::Censored { .. } => ("unsolved".into(), 0.0),
        Seen::Failed => (FAILED.into(), 0.0),
    };
    Cell {
        consumption,
        reward,
        score: learned.outcome.score,
        memory: learned.outcome.memory,
    }
}

/// The names of the rows: instances, or numbers if there are none.
fn rows(plan: &Plan, times: u32) -> Vec<String> {
    let names = &plan.instance_names;
    (0..times)
        .flat_map(|time| {
            (0..plan.instances.max(1)).map(move |instance| match names.get(instance) {
                Some(name) if time == 0 => name.clone(),
                Some(name) => format!("{name}#{}", time + 1),
                None if plan.instances == 0 => format!("run-{}", time + 1),
                None => format!("instance-{}#{}", instance + 1, time + 1),
            })
        })
        .collect()
}

fn write(
    path: &Path,
    scenario: &Scenario,
    rows: &[String],
    cells: &[Cell],
    text: impl Fn(&Cell) -> String,
) -> Result<(), Failure> {
    let mut table = csv_file(path)?;
    let failed = |error: csv::Error| Failure::cannot_write(path, error);
    let arms = scenario.space.arms().map(|arm| {
        let configuration = scenario.space.configuration(arm);
        if configuration.is_empty() {
            format!("arm-{arm}")
        } else {
            configuration.to_string()
        }
    });
    table
        .write_record(std::iter::once("instance".to_owned()).chain(arms))
        .map_err(failed)?;
    for (row, cells) in rows.iter().zip(cells.chunks(scenario.space.len())) {
        table
            .write_record(std::iter::once(row.clone()).chain(cells.iter().map(&text)))
            .map_err(failed)?;
    }
    table
        .flush()
        .map_err(|error| Failure::cannot_write(path, error))
}
