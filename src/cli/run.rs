//! `captime run`: from a scenario to the pair to use.

pub(super) mod stage;
pub(super) mod summary;

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, ValueEnum};
use tokio::sync::mpsc::unbounded_channel;

use super::failure::unless_nobody_reads;
use super::run_folder::{self, failure};
use super::{Exit, Failure, exit_code, runtime};
use crate::journal::{EndReason, Syncing};
use crate::orchestrator::{
    Budget, Finished, Next, Now, Opened, Orchestrator, PAUSES, Plan, RunError, Setup, Signals,
    Tally, Watch, allowed_cpus, cpus_of_slots, open,
};
use crate::progress::{Account, Events, Lines, Terminal, Words};
use crate::quantity;
use crate::report::{Keeper, write_report};
use crate::scenario::{Pin, Scenario, Slots, Target};
use stage::Stage;
use summary::Summary;

const EXAMPLES: &str = "\
Examples:
  captime run arms.yaml                 tunes until the budget ends, or Ctrl-C;
                                        the same command goes on
  captime run arms.yaml --slots 4       four pulls at a time
  captime run arms.yaml --fresh         a new run beside the old: runs/NAME-2
  captime run arms.yaml --format json   one event per line, for programs";

/// Tune: choose pulls, run them under limits, learn, recommend.
///
/// Everything is recorded in runs/NAME/journal.jsonl. An unfinished run of the same scenario goes on where it stopped, however
/// it stopped; on a finished one the summary is printed again, and the exit code is 0. Only the budget may change in between, upwards.
#[derive(Debug, Args)]
#[command(after_help = format!("{EXAMPLES}\n\n{}", exit_code::RUN))]
pub struct RunArgs {
    /// The scenario
    scenario: PathBuf,
    /// Start a new run, NAME-2 and so on, instead of going on with the newest
    #[arg(long)]
    fresh: bool,
    /// Pulls at a time, instead of what the scenario says
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=4096))]
    slots: Option<u64>,
    /// How often runs/NAME/report.html is written while the run goes on
    #[arg(long, value_name = "TIME", default_value = "3m", value_parser = super::exec::time)]
    report_every: Duration,
    /// No progress, only the summary
    #[arg(long, short)]
    quiet: bool,
    /// What goes to stdout: the summary, or events and the summary as JSON lines
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// How much is logged to stderr
    #[arg(long, value_enum, default_value_t = LogLevel::Warn, value_name = "LEVEL")]
    log_level: LogLevel,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Text,
    Json,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum LogLevel {
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

/// Runs the command.
pub fn run(args: RunArgs) -> Result<Exit, Failure> {
    log(args.log_level);
    let scenario = super::scenario_file::read_scenario(&args.scenario)?;
    if let Target::External(_) = scenario.target {
        return Err(
            Failure::usage("`target: external` is run by somebody else").hint(Some(
                "use `captime ask`, or give a command, a forest or a virtual target",
            )),
        );
    }
    if let [first, _, ..] = &scenario.policies[..] {
        warn(&format!(
            "`run` takes the first policy, {}; `captime study` sets them against each other",
            first.name()
        ));
    }
    let folder = if args.fresh {
        run_folder::fresh(&scenario.name)
    } else {
        run_folder::newest(&scenario.name)
    };
    let stage = Stage::prepare(&scenario, &folder)?;
    let plan = Plan::of(&scenario, stage.instances());
    let syncing = if stage.is_virtual() {
        Syncing::AtEnd
    } else {
        Syncing::Outcomes
    };
    let mut account = Account::default();
    let enforcement = stage.enforcement();
    let opened = open(&folder, &scenario, plan, syncing, &enforcement, |step| {
        account.step(step);
    })
    .map_err(|error| match error {
        // Which of several runs of that name is meant is not plain.
        RunError::Changed { .. } | RunError::Lowered { .. } => {
            Failure::usage(format!("{}: {error}", folder.display())).hint(error.hint())
        }
        error => failure(&error),
    })?;
    let budget = Budget::of(&scenario.budget);
    let is_finished = is_finished(&opened, budget);
    say_how_it_opens(&opened, &folder, is_finished, args.quiet);
    if !is_finished {
        warn_if_lowered(&opened, &enforcement);
    }
    let slots = slots(&args, &scenario, &stage);
    let words = Words {
        space: scenario.space.clone(),
        resource: scenario.limits.of,
    };
    let finished = if is_finished {
        over(opened, budget, &mut account)
    } else {
        // What is over in a moment needs no report on the way.
        let keeper = (!stage.is_virtual()).then(|| Keeper::start(&folder, args.report_every));
        let finished = play(
            &args,
            &scenario,
            stage,
            opened,
            budget,
            slots,
            &words,
            &mut account,
        )?;
        if finished.is_hasty {
            // Its thread ends with us; the report can be made at any time.
            std::mem::forget(keeper);
        } else {
            finish_report(keeper, &folder)?;
        }
        finished
    };
    let summary = Summary {
        scenario: &scenario,
        state: &finished.state,
        account: &account,
        words: &words,
        folder: &folder,
        seconds: finished.seconds,
        reason: finished.reason,
        file: &args.scenario,
    };
    let told = match args.format {
        Format::Text => summary.write(&mut std::io::stdout().lock()),
        Format::Json => summary.write_json(&mut std::io::stdout().lock()),
    };
    told.or_else(unless_nobody_reads)?;
    if finished.reason == EndReason::FirstFailures {
        return Err(summary.hopeless());
    }
    // That it brought no reward was told when it ended; now only the summary was asked for.
    Ok(if is_finished {
        Exit::Done
    } else {
        exit(finished.reason, finished.state.tally())
    })
}

/// Writes the last report; a signal leaves at once, since it can be made at any time.
fn finish_report(keeper: Option<Keeper>, folder: &Path) -> Result<(), Failure> {
    let runtime = runtime()?;
    let folder = folder.to_owned();
    let written = runtime.block_on(async {
        let mut signals = Signals::listen().map_err(Failure::ours)?;
        let writing = tokio::task::spawn_blocking(move || {
            drop(keeper);
            write_report(&folder)
        });
        tokio::select! {
            written = writing => Ok(written.ok()),
            () = signals.next() => Ok::<_, Failure>(None),
        }
    })?;
    runtime.shutdown_background();
    if let Some(Err(error)) = written {
        warn(&format!("there is no report: {error}"));
    }
    Ok(())
}

/// Says something on stderr, if anybody is there.
fn warn(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "captime: warning: {text}");
}

fn exit(reason: EndReason, tally: Tally) -> Exit {
    match reason {
        EndReason::Interrupted => Exit::Interrupted,
        EndReason::FirstFailures => Exit::Usage,
        EndReason::Rounds | EndReason::Wall | EndReason::Consumption if tally.rewarded == 0 => {
            Exit::NoReward
        }
        EndReason::Rounds | EndReason::Wall | EndReason::Consumption => Exit::Done,
    }
}

fn log(level: LogLevel) {
    let level = match level {
        LogLevel::Error => tracing::Level::ERROR,
        LogLevel::Warn => tracing::Level::WARN,
        LogLevel::Info => tracing::Level::INFO,
        LogLevel::Debug => tracing::Level::DEBUG,
        LogLevel::Trace => tracing::Level::TRACE,
    };
    let colours = super::failure::has_colours(&std::io::stderr());
    // Set already only where commands are called from a test.
    let _ = tracing_subscriber::fmt()
        .with_max_level(level)
        .with_writer(std::io::stderr)
        .with_ansi(colours)
        // To complain about a stderr that is gone would be to panic.
        .log_internal_errors(false)
        .try_init();
}

fn say_how_it_opens(opened: &Opened, folder: &Path, is_finished: bool, is_quiet: bool) {
    if opened.is_cut {
        warn(&format!(
            "the last line of {} was torn and has been cut",
            opened.journal.path().display()
        ));
    }
    if !is_quiet && !opened.is_new {
        let rounds = opened.state.tally().learned + opened.progress.waiting.len() as u64;
        let (rounds, run) = (quantity::counted(rounds, "round"), folder.display());
        let is_hopeless = opened.progress.ended == Some(EndReason::FirstFailures);
        let what = match (is_finished, is_hopeless) {
            (true, true) => format!("{run} had stopped after {rounds}"),
            (true, false) => format!(
                "{run} is finished, after {rounds}; a larger budget goes on, `--fresh` starts anew"
            ),
            (false, _) => format!("going on with {run} after {rounds}"),
        };
        // Nobody reads it: the run itself matters.
        let _ = writeln!(std::io::stderr().lock(), "captime: {what}");
    }
}

/// Limits are never silently enforced in another way than when the run was started.
fn warn_if_lowered(opened: &Opened, now: &serde_json::Value) {
    let then = &opened.enforcement;
    if !then.is_null() && (then["level"] != now["level"] || then["memory"] != now["memory"]) {
        warn(&format!(
            "limits were enforced by {} (memory: {}) when this run was started, now by {} (memory: {})",
            then["level"], then["memory"], now["level"], now["memory"]
        ));
    }
}

fn slots(args: &RunArgs, scenario: &Scenario, stage: &Stage) -> usize {
    match (args.slots, scenario.slots) {
        (Some(slots), _) => slots as usize,
        (None, Slots::Count(slots)) => slots,
        (None, Slots::Auto) if stage.is_virtual() => 1,
        (None, Slots::Auto) => (allowed_cpus().len() / stage.threads()).max(1),
    }
}

/// Whether the budget had ended when the run was left.
fn is_finished(opened: &Opened, budget: Budget) -> bool {
    if opened.is_new {
        return false;
    }
    let tally = opened.state.tally();
    let waiting = opened.progress.waiting.iter();
    let consumption = tally.consumption
        + waiting
            .filter_map(|learned| learned.outcome.consumption)
            .sum::<f64>();
    match budget.ended(tally.launched, opened.progress.seconds, consumption) {
        Some(EndReason::Wall) => true,
        Some(_) => opened.progress.in_flight.is_empty(),
        None => opened.progress.ended == Some(EndReason::FirstFailures),
    }
}

/// A run that had ended: nothing is started and nothing is written.
fn over(opened: Opened, budget: Budget, account: &mut Account) -> Finished {
    let Opened {
        mut state,
        progress,
        ..
    } = opened;
    for learned in &progress.waiting {
        account.learned(learned);
        state.learned(learned);
    }
    let is_hopeless = state.is_hopeless() || state.choose() == Next::Hopeless;
    let tally = state.tally();
    let ended = budget.ended(tally.launched, progress.seconds, tally.consumption);
    let reason = if is_hopeless {
        EndReason::FirstFailures
    } else {
        ended.unwrap_or(EndReason::Rounds)
    };
    Finished {
        reason,
        seconds: progress.seconds,
        is_hasty: false,
        state,
    }
}

#[expect(
    clippy::too_many_arguments,
    reason = "the parts of a session, each used once"
)]
fn play(
    args: &RunArgs,
    scenario: &Scenario,
    stage: Stage,
    opened: Opened,
    budget: Budget,
    slots: usize,
    words: &Words,
    account: &mut Account,
) -> Result<Finished, Failure> {
    let cpus = match scenario.pin {
        Pin::Auto => cpus_of_slots(&allowed_cpus(), slots, stage.threads()),
        Pin::Never => None,
    };
    let view: Box<dyn Watch> = if args.format == Format::Json {
        Box::new(Events::new(
            scenario.space.clone(),
            Box::new(std::io::stdout()),
        ))
    } else if args.quiet {
        Box::new(())
    } else if std::io::stderr().is_terminal() {
        Box::new(Terminal::new(words.clone(), slots))
    } else {
        Box::new(Lines::new(words.clone(), Box::new(std::io::stderr())))
    };
    for waiting in &opened.progress.waiting {
        // What is learned in this session is booked when it is; this was not seen in the replay.
        tracing::debug!(round = waiting.outcome.outcome, "waits to be learned from");
    }
    let mut watch = Booking { view, account };
    let runtime = runtime()?;
    let Opened {
        state,
        progress,
        journal,
        lock,
        ..
    } = opened;
    let finished = runtime.block_on(async {
        let (ends, ended) = unbounded_channel();
        let (target, enforcement) = stage.start(scenario, slots, cpus, ends).await?;
        let setup = Setup {
            state,
            progress,
            journal,
            target,
            ends: ended,
            slots,
            budget,
            retries: scenario.retries,
            pauses: PAUSES,
            enforcement,
            watch: &mut watch,
        };
        let session = Orchestrator::begin(setup).map_err(|error| failure(&error))?;
        session.run().await.map_err(|error| failure(&error))
    });
    // Whatever still runs on the runtime's threads ends with the process.
    runtime.shutdown_background();
    drop(lock);
    finished
}

/// Books what is learned, and passes everything on.
struct Booking<'a> {
    view: Box<dyn Watch>,
    account: &'a mut Account,
}

impl Watch for Booking<'_> {
    fn period(&self) -> Option<Duration> {
        self.view.period()
    }

    fn launched(&mut self, slot: usize, pull: &crate::journal::PullRecord, now: &Now<'_>) {
        self.view.launched(slot, pull, now);
    }

    fn learned(&mut self, learned: &crate::journal::Learned, now: &Now<'_>) {
        self.account.learned(learned);
        self.view.learned(learned, now);
    }

    fn calibrated(&mut self, found: &crate::journal::Calibrated, now: &Now<'_>) {
        self.view.calibrated(found, now);
    }

    fn lost(&mut self, pull: &crate::journal::PullRecord, why: &str) {
        self.account.lost += 1;
        self.view.lost(pull, why);
    }

    fn stopping(&mut self, reason: EndReason, now: &Now<'_>) {
        self.view.stopping(reason, now);
    }

    fn tick(&mut self, now: &Now<'_>) {
        self.view.tick(now);
    }

    fn is_gone(&self) -> bool {
        self.view.is_gone()
    }
}
