//! `captime run`: from a scenario to the pair to use.

pub(super) mod summary;

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;

use super::driving::drive;
use super::failure::unless_pipe_closed;
use super::run_folder::{self, failure};
use super::test::TestOptions;
use super::{Exit, Failure, TextOrJson, exit_code, runtime, scenario_file};
use crate::answer::{NodeRow, Verdict};
use crate::journal::{Calibrated, EndReason, FILE, Learned, PullRecord, RunLock, Step};
use crate::markup::Visible;
use crate::orchestrator::{Before, Driven, Now, Run, RunError, RunSetup, Signals, Tally, Watch};
use crate::progress::{Account, Events, Lines, Terminal, Words};
use crate::quantity;
use crate::report::{History, ReportUpdater, write_report};
use crate::scenario::{Resource, Scenario, Target};
use crate::space::Space;
use crate::target::{Enforcement, PreparedTarget, prepare};
use summary::RunSummary;

const EXAMPLES: &str = "\
Examples:
  captime run arms.yaml                 tune until the budget is used up;
                                        Ctrl-C to stop, same command to resume
  captime run arms.yaml --slots 4       run four pulls at a time
  captime run arms.yaml --fresh         start a new run: runs/NAME-2
  captime run arms.yaml --then-test     test the answer at the end of the budget
  captime run arms.yaml --format json   print one JSON event per line";

/// Tune: run pulls under limits until the budget is used up, then recommend an arm and a limit.
///
/// An arm is one configuration; a pull runs an arm once under a limit. Every pull is recorded in runs/NAME/journal.jsonl. If an
/// unfinished run of the same scenario exists, captime resumes it, even after a crash. If the run is finished, captime prints
/// its summary again and exits with the same code. Between sessions you may change the budget, but not to less than is used, and
/// nothing else.
#[derive(Debug, Args)]
#[command(after_help = format!("{EXAMPLES}\n\n{}", exit_code::RUN))]
pub struct RunArgs {
    /// The scenario file
    scenario: PathBuf,
    /// Start a new run (NAME-2 and so on) instead of resuming the newest
    #[arg(long)]
    fresh: bool,
    /// How many pulls to run at a time [default: what the scenario says]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=4096))]
    slots: Option<u64>,
    /// How often to rewrite runs/NAME/report.html during the run
    #[arg(long, value_name = "TIME", default_value = "3m", value_parser = super::exec::time)]
    report_every: Duration,
    /// Print only the summary, no progress
    #[arg(long, short)]
    quiet: bool,
    /// Test the answer when the budget is used up, as `captime test` does
    #[arg(long)]
    then_test: bool,
    /// What to print on stdout: the summary as text, or events and summary as JSON lines
    #[arg(long, value_enum, default_value_t = TextOrJson::Text)]
    format: TextOrJson,
}

/// Runs the command.
pub fn run(args: RunArgs) -> Result<Exit, Failure> {
    let mut scenario = scenario_file::read_scenario(&args.scenario)?;
    if let Target::External(_) = scenario.target {
        return Err(
            Failure::usage("`captime run` cannot run `target: external`").hint(Some(
                "use `captime ask`, or give a command, a forest or a virtual target",
            )),
        );
    }
    if let [first, _, ..] = &scenario.policies[..] {
        warn(&format!(
            "using the first policy, {}; `captime study` compares several",
            first.name()
        ));
    }
    let folder = if args.fresh {
        run_folder::fresh(&scenario.name)
    } else {
        run_folder::newest(&scenario.name)
    };
    let earlier = scenario_file::take_over(&mut scenario, Some(&folder))?;
    let target = prepare(&scenario, &folder)?;
    let is_virtual = target.is_virtual();
    let setup = RunSetup::of(&scenario, &target).taking_over(earlier);
    let run = Run::open(&folder, &setup, Booking::default()).map_err(|error| match error {
        // There may be several runs of this name.
        RunError::Changed { .. } | RunError::Lowered { .. } => {
            Failure::usage(format!("{}: {error}", folder.display())).hint(error.hint())
        }
        error => failure(&error),
    })?;
    say_how_it_opens(&run, &folder, args.quiet);
    if let (Some(earlier), false, true) = (&setup.earlier, args.quiet, run.before().is_new) {
        scenario_file::say_taken_over(earlier);
    }
    let slots = args
        .slots
        .map_or(target.default_slots(scenario.slots), |n| n as usize);
    let is_finished = run.over().is_some();
    // Nodes report themselves how they enforce limits.
    let is_local = scenario.nodes.is_none();
    let level = weak_level(&setup.enforcement).filter(|_| is_local);
    if let (Some(level), false, false) = (&level, is_finished, args.quiet) {
        // Failing to report this is no reason to stop.
        let _ = writeln!(
            std::io::stderr().lock(),
            "captime: limits are enforced at level `{level}`; `captime check` shows what that means and how to get more"
        );
    }
    let (mut finished, looked_at);
    if is_finished {
        finished = finished_before(run, scenario.limits.of)?;
        looked_at = written_history(&folder).map(|history| history.verdict().clone());
    } else {
        if is_local {
            warn_if_lowered(run.before(), &setup.enforcement);
        }
        // A run that is over in a moment needs no report meanwhile.
        let updater = (!is_virtual).then(|| ReportUpdater::start(&folder, args.report_every));
        let view = view(&args, scenario.limits.of, slots);
        finished = play(&scenario, target, run, slots, view)?;
        looked_at = if finished.is_hasty {
            // Its thread ends with the process. A report can be made at any time.
            std::mem::forget(updater);
            None
        } else {
            finish_report(updater, &folder)?
        };
    }
    let mut scenario = scenario.clone();
    scenario.space = finished.space;
    if let Some(looked_at) = looked_at {
        finished.verdict.unchanged_since = looked_at.unchanged_since;
        finished.verdict.outlook = looked_at.outlook;
        finished.verdict.path = looked_at.path;
    }
    let summary = RunSummary {
        verdict: &finished.verdict,
        enforcement: finished.enforcement,
        scenario: &scenario,
        tally: finished.tally,
        nodes: &finished.nodes,
        account: &finished.account,
        words: &Words {
            space: &scenario.space,
            resource: scenario.limits.of,
        },
        folder: &folder,
        seconds: finished.seconds,
        reason: finished.reason,
        file: &args.scenario,
    };
    let written = match args.format {
        TextOrJson::Text => summary.write(&mut Visible(std::io::stdout().lock())),
        TextOrJson::Json => summary.write_json(&mut std::io::stdout().lock()),
    };
    written.or_else(unless_pipe_closed)?;
    if finished.reason == EndReason::FirstFailures {
        return Err(summary.hopeless());
    }
    let exit = exit(finished.reason, finished.tally);
    if args.then_test && exit == Exit::Done {
        return then_test(&folder, &args);
    }
    Ok(exit)
}

/// Tests the answer of a run that is finished.
fn then_test(folder: &Path, args: &RunArgs) -> Result<Exit, Failure> {
    let options = TestOptions::usual(args.quiet || args.format == TextOrJson::Json);
    let Some(outcome) = super::test::test(folder, &options)? else {
        return Ok(Exit::Interrupted);
    };
    let mut to = std::io::stdout().lock();
    let written = match args.format {
        TextOrJson::Text => writeln!(to).and_then(|()| outcome.write(&mut Visible(to))),
        TextOrJson::Json => {
            let mut event = outcome.json();
            event["event"] = "test".into();
            writeln!(to, "{event}")
        }
    };
    written.or_else(unless_pipe_closed)?;
    Ok(Exit::Done)
}

/// Writes the last report. A signal quits at once, because it can be made at any time. Returns the verdict with its
/// course and outlook.
fn finish_report(
    updater: Option<ReportUpdater>,
    folder: &Path,
) -> Result<Option<Verdict>, Failure> {
    let runtime = runtime()?;
    let folder = folder.to_owned();
    let written = runtime.block_on(async {
        let mut signals = Signals::listen().map_err(Failure::internal)?;
        let writing = tokio::task::spawn_blocking(move || {
            drop(updater);
            write_report(&folder).map(|history| history.verdict().clone())
        });
        tokio::select! {
            written = writing => Ok(written.ok()),
            () = signals.next() => Ok::<_, Failure>(None),
        }
    })?;
    runtime.shutdown_background();
    match written {
        Some(Ok(verdict)) => Ok(Some(verdict)),
        Some(Err(error)) => {
            warn(&format!("cannot write the report: {error}"));
            Ok(None)
        }
        None => Ok(None),
    }
}

/// The run from its journal, if that can be read.
fn written_history(folder: &Path) -> Option<History> {
    let mut history = History::open(folder).ok()?;
    history.catch_up().ok()?;
    Some(history)
}

/// How limits are enforced, if that is weaker than control groups.
fn weak_level(enforcement: &serde_json::Value) -> Option<String> {
    let level = enforcement.get("level")?.as_str()?;
    (level == "subreaper").then(|| level.to_owned())
}

/// Warns on stderr, if it is still open.
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

fn say_how_it_opens(run: &Run<Booking>, folder: &Path, is_quiet: bool) {
    let before = run.before();
    let shown = folder.display();
    if before.is_cut {
        warn(&format!(
            "the last line of {} was incomplete and has been removed",
            folder.join(FILE).display()
        ));
    }
    if !is_quiet && !before.is_new {
        let rounds = quantity::counted(run.outcomes(), "round");
        let what = match run.over() {
            Some(EndReason::FirstFailures) => format!("{shown} stopped after {rounds}"),
            Some(_) => format!(
                "{shown} is finished after {rounds}; raise the budget to continue, or start again with `--fresh`"
            ),
            None => format!("resuming {shown} after {rounds}"),
        };
        // Failing to report this is no reason to stop.
        let _ = writeln!(std::io::stderr().lock(), "captime: {what}");
    }
}

/// Warns if limits are enforced in another way than when the run was started.
fn warn_if_lowered(before: &Before, now: &serde_json::Value) {
    let then = &before.enforcement;
    if !then.is_null() && (then["level"] != now["level"] || then["memory"] != now["memory"]) {
        warn(&format!(
            "this run started with limits enforced by {} (memory: {}); now it is {} (memory: {})",
            then["level"], then["memory"], now["level"], now["memory"]
        ));
    }
}

/// What the summary needs of a run after its session. What the policy and the answer rest on has been freed, because the report
/// reads it from the journal.
struct Finished {
    verdict: Verdict,
    tally: Tally,
    nodes: Vec<NodeRow>,
    enforcement: Option<Enforcement>,
    /// With the arms that were opened.
    space: Space,
    account: Account,
    seconds: f64,
    reason: EndReason,
    is_hasty: bool,
    _lock: Option<RunLock>,
}

impl Finished {
    fn of(run: Run<Booking>, resource: Resource, reason: EndReason, is_hasty: bool) -> Self {
        let (state, seconds) = (run.state(), run.seconds());
        let verdict = state.verdict(resource);
        let (tally, nodes, space) = (state.tally(), state.nodes().rows(), state.space().clone());
        let enforcement = state.enforcement();
        // Dropping the view shows the last progress before the summary.
        let (lock, Booking { account, .. }) = run.close();
        Self {
            verdict,
            tally,
            nodes,
            enforcement,
            space,
            account,
            seconds,
            reason,
            is_hasty,
            _lock: lock,
        }
    }
}

/// A run that had already ended: nothing is started and nothing is written.
fn finished_before(mut run: Run<Booking>, resource: Resource) -> Result<Finished, Failure> {
    while run.durable(0, &[]).map_err(|error| failure(&error))? {}
    let reason = if run.state().is_hopeless() {
        EndReason::FirstFailures
    } else {
        run.over().unwrap_or(EndReason::Rounds)
    };
    Ok(Finished::of(run, resource, reason, false))
}

/// What shows the progress of the run.
fn view(args: &RunArgs, resource: Resource, slots: usize) -> Box<dyn Watch> {
    if args.format == TextOrJson::Json {
        let stdout = Box::new(std::io::stdout());
        Box::new(Events::new(stdout))
    } else if args.quiet {
        Box::new(())
    } else if std::io::stderr().is_terminal() {
        Box::new(Terminal::new(resource, slots))
    } else {
        Box::new(Lines::new(resource, Box::new(std::io::stderr())))
    }
}

fn play(
    scenario: &Scenario,
    target: PreparedTarget,
    mut run: Run<Booking>,
    slots: usize,
    view: Box<dyn Watch>,
) -> Result<Finished, Failure> {
    run.watch.view = view;
    let Driven {
        mut runs,
        reason,
        is_hasty,
    } = drive(scenario, target, run, slots, scenario.pin)?;
    let run = runs.pop().expect("the driver gives back the run it got");
    Ok(Finished::of(run, scenario.limits.of, reason, is_hasty))
}

/// Adds up what the pulls cost, and passes everything on to the view.
struct Booking {
    view: Box<dyn Watch>,
    account: Account,
}

impl Default for Booking {
    fn default() -> Self {
        Self {
            view: Box::new(()),
            account: Account::default(),
        }
    }
}

impl Watch for Booking {
    fn period(&self) -> Option<Duration> {
        self.view.period()
    }

    fn replayed(&mut self, step: &Step) {
        self.account.step(step);
    }

    fn launched(&mut self, slot: usize, pull: &PullRecord, now: &Now<'_>) {
        self.view.launched(slot, pull, now);
    }

    fn learned(&mut self, learned: &Learned, now: &Now<'_>) {
        self.account.learned(learned);
        self.view.learned(learned, now);
    }

    fn calibrated(&mut self, found: &Calibrated, now: &Now<'_>) {
        self.view.calibrated(found, now);
    }

    fn lost(&mut self, pull: &PullRecord, why: &str) {
        self.account.lost += 1;
        self.view.lost(pull, why);
    }

    fn node(&mut self, node: &str, slots: usize) {
        self.view.node(node, slots);
    }

    fn noticed(&mut self, text: &str) {
        self.view.noticed(text);
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
