//! `captime record`: measures every arm and writes a matrix that `recorded` targets replay.

use std::collections::{BTreeMap, VecDeque};
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use clap::Args;
use rand::Rng;
use tokio::sync::mpsc::unbounded_channel;

use super::run::stage::Stage;
use super::run_folder::{elsewhere, failure};
use super::{Exit, Failure, exit_code, runtime};
use crate::journal::{By, OutcomeRecord, PullRecord, Session, Step, Syncing, timestamp};
use crate::orchestrator::{
    Clock, Limits, Opened, Plan, RunError, Signals, allowed_cpus, open, outcome_record,
};
use crate::policy::PolicyKind;
use crate::round::{ArmId, Limit, LimitGrid, Observation, Purpose, Round, Seen, randomness};
use crate::scenario::{Budget, LimitSource, Resource, Scenario};
use crate::study::{LostPulls, Settled};
use crate::target::{Ended, Ending, Start};

const EXAMPLES: &str = "\
Examples:
  captime record examples/script/script.yaml
      writes recorded/script/consumption.csv and reward.csv, and prints what to
      write as `target` of a scenario that replays them
  captime record arms.yaml --times 5 --out measured
      five times, to another folder; Ctrl-C stops, the same command goes on";

/// The folder that holds recordings, as `runs` holds runs.
const RECORDED: &str = "recorded";

/// Measure every arm and write a matrix of consumptions and one of rewards, for `recorded` targets to replay.
///
/// Every arm runs on every instance (or so many times, where there are none) up to the largest limit. One row per instance, one
/// column per arm; `unsolved` is what was stopped at the limit, `failed` what gave no reward. The folder also holds the journal of
/// the measurements: the same command goes on where it was stopped, and a larger `--times` adds to what is there.
#[derive(Debug, Args)]
#[command(after_help = format!("{EXAMPLES}\n\n{}", exit_code::RECORD))]
pub struct RecordArgs {
    /// The scenario
    scenario: PathBuf,
    /// How often every arm runs, on every instance
    #[arg(long, value_name = "K", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    times: u32,
    /// The folder to write consumption.csv and reward.csv to [default: recorded/NAME, after the scenario's name]
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// Pulls at a time; more than the CPUs makes for bad measurements
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=4096))]
    slots: u64,
    /// No progress
    #[arg(long, short)]
    quiet: bool,
}

/// What stands for the consumption of a run that gave no reward.
const FAILED: &str = "failed";

/// What was measured of one cell.
#[derive(Debug, Clone)]
struct Cell {
    consumption: String,
    reward: f64,
}

/// Runs the command.
pub fn run(args: RecordArgs) -> Result<Exit, Failure> {
    let mut scenario = super::scenario_file::read_scenario(&args.scenario)?;
    let out = args.out.clone();
    let out = out.unwrap_or_else(|| Path::new(RECORDED).join(&scenario.name));
    let stage = Stage::prepare(&scenario, &out)?;
    let plan = measuring(&mut scenario, stage.instances());
    let limit = scenario_limit(&plan);
    let mut cells = BTreeMap::new();
    let syncing = if stage.is_virtual() {
        Syncing::AtEnd
    } else {
        Syncing::Outcomes
    };
    let enforcement = stage.enforcement();
    let opened = open(
        &out,
        &scenario,
        plan.clone(),
        syncing,
        &enforcement,
        |step| {
            if let Step::Learned(learned) = step {
                cells.insert(learned.outcome.outcome, cell(&learned.observation));
            }
        },
    )
    .map_err(|error| elsewhere(failure(&error), &error))?;
    let rows = rows(&plan, args.times);
    let total = (rows.len() * plan.arms) as u64;
    let slots = (args.slots as usize).min(allowed_cpus().len().max(1) * 64);
    let runtime = runtime()?;
    let measurement = Measurement {
        plan: &plan,
        limit,
        total,
        is_quiet: args.quiet,
    };
    let is_whole = runtime.block_on(measurement.go_on(&scenario, stage, opened, slots, &mut cells));
    runtime.shutdown_background();
    if !is_whole? {
        // Nobody may be left to read it, as when the terminal was closed.
        let _ = writeln!(
            std::io::stderr().lock(),
            "captime: stopped after {} of {total} runs; the same command goes on",
            cells.len()
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
    writeln!(
        std::io::stdout().lock(),
        "target: {{recorded: {{consumption: {}, reward: {}, cutoff: {}}}}}",
        yaml_path(&out.join("consumption.csv")),
        yaml_path(&out.join("reward.csv")),
        yaml_amount(scenario.limits.of, limit),
    )?;
    Ok(Exit::Done)
}

/// A path for any scenario, wherever its file is: absolute, and quoted where YAML would read something else.
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

/// A limit with its unit, as scenarios want it.
fn yaml_amount(of: Resource, limit: Limit) -> String {
    match of {
        Resource::Wall | Resource::Cpu => format!("{limit}s"),
        Resource::Work => limit.to_string(),
    }
}

/// What is measured depends on arms, target and guards only, not on who will choose among them, at what price and how long:
/// every run is granted the largest limit there is.
fn measuring(scenario: &mut Scenario, instances: &[String]) -> Plan {
    let limit = match Plan::of(scenario, instances).limits {
        Limits::Grid(grid) => grid.max(),
        Limits::Calibrate(how) => how.guard,
    };
    scenario.limits.from =
        LimitSource::Grid(LimitGrid::new([limit.get()]).expect("a limit makes a grid"));
    scenario.policies = vec![PolicyKind::parse("uniform").expect("it is one of ours")];
    scenario.budget = Budget::default();
    scenario.stop_on_first_failures = false;
    Plan::of(scenario, instances)
}

fn scenario_limit(plan: &Plan) -> Limit {
    match &plan.limits {
        Limits::Grid(grid) => grid.max(),
        Limits::Calibrate(how) => how.guard,
    }
}

/// Row by row, arm by arm: run number n is that of arm n mod arms in row n / arms, counted from 0.
struct Measurement<'a> {
    plan: &'a Plan,
    limit: Limit,
    total: u64,
    is_quiet: bool,
}

impl Measurement<'_> {
    /// Measures what is missing; false if interrupted.
    async fn go_on(
        &self,
        scenario: &Scenario,
        stage: Stage,
        opened: Opened,
        slots: usize,
        cells: &mut BTreeMap<u64, Cell>,
    ) -> Result<bool, Failure> {
        let Opened {
            progress,
            mut journal,
            lock: _lock,
            state,
            ..
        } = opened;
        for learned in &progress.waiting {
            cells.insert(learned.outcome.outcome, cell(&learned.observation));
        }
        let (mut launched, before) = (state.tally().launched, cells.len() as u64);
        if before >= self.total && progress.in_flight.is_empty() {
            return Ok(true);
        }
        let journaled = |error: crate::journal::JournalError| failure(&RunError::from(error));
        let (ends, mut ended) = unbounded_channel();
        let (mut target, enforcement) = stage.start(scenario, slots, None, ends).await?;
        let session = Session {
            session: progress.sessions + 1,
            started: Some(timestamp()),
            slots,
            budget: serde_json::Value::default(),
            enforcement,
        };
        journal.append(&session).map_err(journaled)?;
        let mut signals = Signals::listen().map_err(Failure::ours)?;
        let clock = Clock::from(progress.seconds);
        let mut again: VecDeque<PullRecord> = progress.in_flight;
        let mut free: Vec<usize> = (0..slots).rev().collect();
        let mut running: Vec<Option<PullRecord>> = vec![None; slots];
        let mut lost = LostPulls::new(scenario.retries, progress.lost);
        loop {
            while let Some(slot) = free.pop() {
                let pull = if let Some(pull) = again.pop_front() {
                    pull
                } else if launched < self.total {
                    let pull = self.pull(launched, cells.len() as u64);
                    journal.append(&pull).map_err(journaled)?;
                    launched += 1;
                    pull
                } else {
                    free.push(slot);
                    break;
                };
                running[slot] = Some(pull);
                target.start(Start {
                    slot,
                    round: pull.round,
                    pull: pull.pull(),
                    seed: pull.seed.unwrap_or_default(),
                });
            }
            if free.len() == slots {
                journal.sync().map_err(journaled)?;
                return Ok(true);
            }
            let Ended { slot, ending, .. } = tokio::select! {
                Some(ended) = ended.recv() => ended,
                () = signals.next() => return Ok(false),
            };
            let Some(pull) = running[slot].take() else {
                continue;
            };
            if ending == Ending::Stopped {
                return Err(Failure::ours("a run was stopped by somebody else"));
            }
            let has_run = cells.values().any(|cell| cell.consumption != FAILED);
            let settled = lost
                .settle(&mut journal, &pull, ending, has_run, &mut signals)
                .await;
            let outcome = match settled.map_err(|error| failure(&error))? {
                Settled::Brought(outcome) => *outcome,
                Settled::Again => {
                    again.push_back(pull);
                    free.push(slot);
                    continue;
                }
                Settled::Interrupted => return Ok(false),
            };
            let seen = cell(&outcome.observation);
            let line = OutcomeRecord {
                at: Some(clock.seconds()),
                ..outcome_record(pull.round, outcome)
            };
            journal.append(&line).map_err(journaled)?;
            if journal.syncing() == Syncing::Outcomes {
                journal.sync().map_err(journaled)?;
            }
            cells.insert(pull.round.0, seen);
            free.push(slot);
            self.say(cells.len() as u64);
        }
    }

    /// The run of this number, counted from 0.
    fn pull(&self, number: u64, seen: u64) -> PullRecord {
        let (row, arm) = (
            number / self.plan.arms as u64,
            number as usize % self.plan.arms,
        );
        let instances = self.plan.instances as u64;
        // One seed per row: arms are compared on the same luck.
        let mut luck = randomness(self.plan.seed, Round(row + 1), Purpose::Target);
        PullRecord {
            round: Round(number + 1),
            arm: ArmId::from_index(arm),
            limit: self.limit,
            instance: (instances > 0).then(|| (row % instances) as u32 + 1),
            seed: Some(luck.next_u64() >> 33),
            seen,
            by: Some(By::Record),
        }
    }

    fn say(&self, done: u64) {
        let total = self.total;
        if !self.is_quiet && (done == total || done.is_multiple_of(self.plan.arms as u64)) {
            // Nobody reads it: the measurement itself matters.
            let _ = writeln!(std::io::stderr().lock(), "captime: {done} of {total} runs");
        }
    }
}

fn cell(seen: &Observation) -> Cell {
    let without = |word: &str| Cell {
        consumption: word.into(),
        reward: 0.0,
    };
    match seen.seen() {
        Seen::Rewarded {
            reward,
            consumption,
        } => Cell {
            consumption: consumption.to_string(),
            reward,
        },
        Seen::Censored { .. } => without("unsolved"),
        Seen::Failed => without(FAILED),
    }
}

/// The names of the rows: instances, or numbers where there are none.
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
    let file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path);
    let mut table =
        csv::Writer::from_writer(file.map_err(|error| Failure::cannot_write(path, error))?);
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
