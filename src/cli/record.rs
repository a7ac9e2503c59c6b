//! `captime record`: measures every arm and writes a matrix that `recorded` targets replay.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use clap::Args;
use rand::Rng;
use tokio::sync::mpsc::unbounded_channel;

use super::run::stage::Stage;
use super::{Exit, Failure, exit_code};
use crate::orchestrator::{Limits, Plan, allowed_cpus};
use crate::round::{ArmId, Limit, Pull, Purpose, Round, Seen, randomness};
use crate::scenario::Scenario;
use crate::target::{Ended, Ending, Job};

const EXAMPLES: &str = "\
Examples:
  captime record examples/script/script.yaml --out recorded
  captime record arms.yaml --times 5 --out recorded
      then, in a scenario: target: {recorded: {consumption: recorded/consumption.csv, reward: recorded/reward.csv, cutoff: ...}}";

/// Measure every arm and write a matrix of consumptions and one of rewards, for `recorded` targets to replay.
///
/// Every arm runs on every instance (or so many times, where there are none) up to the largest limit. One row per instance, one
/// column per arm; `unsolved` is what was stopped at the limit, `failed` what gave no reward.
#[derive(Debug, Args)]
#[command(after_help = format!("{EXAMPLES}\n\n{}", exit_code::HELP))]
pub struct RecordArgs {
    /// The scenario
    scenario: PathBuf,
    /// How often every arm runs, on every instance
    #[arg(long, value_name = "K", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    times: u32,
    /// The folder to write consumption.csv and reward.csv to
    #[arg(long, value_name = "FOLDER")]
    out: PathBuf,
    /// Pulls at a time; more than the CPUs makes for bad measurements [default: 1]
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=4096))]
    slots: u64,
    /// No progress
    #[arg(long, short)]
    quiet: bool,
}

/// What was measured of one cell.
#[derive(Debug, Clone, Default)]
struct Cell {
    consumption: String,
    reward: f64,
}

/// Runs the command.
pub fn run(args: RecordArgs) -> Result<Exit, Failure> {
    let scenario = super::scenario_file::read_scenario(&args.scenario)?;
    fs::create_dir_all(&args.out).map_err(|error| cannot_write(&args.out, &error))?;
    let folder = tempfile::Builder::new()
        .prefix("captime-record-")
        .tempdir()
        .map_err(Failure::ours)?;
    let stage = Stage::prepare(&scenario, folder.path())?;
    let plan = Plan::of(&scenario, stage.instances());
    let limit = match &plan.limits {
        Limits::Grid(grid) => grid.max(),
        Limits::Calibrate(how) => how.guard,
    };
    let slots = (args.slots as usize).min(allowed_cpus().len().max(1) * 64);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Failure::ours)?;
    let cells = runtime.block_on(measure(&args, &scenario, stage, &plan, limit, slots))?;
    runtime.shutdown_background();
    let Some(cells) = cells else {
        return Ok(Exit::Interrupted);
    };
    let rows = rows(&scenario, &plan, args.times);
    write(
        &args.out.join("consumption.csv"),
        &scenario,
        &rows,
        &cells,
        |cell| cell.consumption.clone(),
    )?;
    write(
        &args.out.join("reward.csv"),
        &scenario,
        &rows,
        &cells,
        |cell| cell.reward.to_string(),
    )?;
    writeln!(
        std::io::stdout().lock(),
        "target: {{recorded: {{consumption: {0}/consumption.csv, reward: {0}/reward.csv, cutoff: {limit}}}}}",
        args.out.display()
    )?;
    Ok(Exit::Done)
}

/// Row by row, arm by arm; none if interrupted.
async fn measure(
    args: &RecordArgs,
    scenario: &Scenario,
    stage: Stage,
    plan: &Plan,
    limit: Limit,
    slots: usize,
) -> Result<Option<Vec<Cell>>, Failure> {
    let (ends, mut ended) = unbounded_channel();
    let (mut target, _) = stage.start(scenario, slots, None, ends).await?;
    let rows = plan.instances.max(1) * args.times as usize;
    let total = rows * plan.arms;
    let job = |number: usize, slot: usize| {
        let (row, arm) = (number / plan.arms, number % plan.arms);
        let mut pull = Pull::new(ArmId::from_index(arm), limit);
        pull.instance = (plan.instances > 0).then(|| (row % plan.instances) as u32);
        let round = Round(number as u64 + 1);
        // One seed per row: arms are compared on the same luck.
        let luck = Round(row as u64 + 1);
        let seed = randomness(plan.seed, luck, Purpose::Target).next_u64() >> 33;
        Job {
            slot,
            round,
            pull,
            seed,
        }
    };
    let mut cells = vec![Cell::default(); total];
    let (mut started, mut done) = (0, 0);
    while started < total.min(slots) {
        target.start(job(started, started));
        started += 1;
    }
    while done < total {
        let Ended {
            slot,
            round,
            ending,
        } = tokio::select! {
            Some(ended) = ended.recv() => ended,
            _ = tokio::signal::ctrl_c() => return Ok(None),
        };
        let number = round.0 as usize - 1;
        cells[number] = cell(ending)?;
        done += 1;
        if started < total {
            target.start(job(started, slot));
            started += 1;
        }
        if !args.quiet && (done == total || done % plan.arms == 0) {
            // Nobody reads it: the measurement itself matters.
            let _ = writeln!(std::io::stderr().lock(), "captime: {done} of {total} runs");
        }
    }
    Ok(Some(cells))
}

fn cell(ending: Ending) -> Result<Cell, Failure> {
    let outcome = match ending {
        Ending::Brought(outcome) => outcome,
        Ending::Stopped => return Err(Failure::ours("a run was stopped by somebody else")),
        Ending::Lost { why } => return Err(Failure::ours(format!("a run was lost: {why}"))),
    };
    Ok(match outcome.observation.seen() {
        Seen::Rewarded {
            reward,
            consumption,
        } => Cell {
            consumption: consumption.to_string(),
            reward,
        },
        Seen::Censored { .. } => Cell {
            consumption: "unsolved".into(),
            reward: 0.0,
        },
        Seen::Failed => Cell {
            consumption: "failed".into(),
            reward: 0.0,
        },
    })
}

/// The names of the rows: instances, or numbers where there are none.
fn rows(scenario: &Scenario, plan: &Plan, times: u32) -> Vec<String> {
    let names = scenario.target.instances();
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
    let file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path);
    let mut table = csv::Writer::from_writer(file.map_err(|error| cannot_write(path, &error))?);
    let failed =
        |error: csv::Error| Failure::ours(format!("cannot write `{}`: {error}", path.display()));
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
    table.flush().map_err(|error| cannot_write(path, &error))
}

fn cannot_write(path: &Path, error: &std::io::Error) -> Failure {
    Failure::ours(format!("cannot write `{}`: {error}", path.display()))
        .hint(Some("give `--out` a folder that you may write to"))
}
