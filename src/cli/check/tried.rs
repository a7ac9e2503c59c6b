//! A few pulls that are run to see what becomes of them; nothing is recorded.

use std::io::Write;

use super::super::run::stage::Stage;
use super::super::{Exit, Failure, runtime};
use crate::limit::{Cause, Setup, Supervisor};
use crate::orchestrator::{Calibrate, Limits, Plan, Signals};
use crate::round::{ArmId, Limit, Observation, Pull, Purpose, Round, Seen, randomness};
use crate::scenario::{Resource, Scenario};
use crate::target::command::{CommandRun, Commands};
use crate::target::{Ending, Start};
use rand::{Rng, RngExt};

/// Runs pulls of arms spread over the space, at the largest limit, and shows each.
pub(super) fn run(scenario: &Scenario, count: u64) -> Result<Exit, Failure> {
    let folder = tempfile::Builder::new()
        .prefix("captime-try-")
        .tempdir()
        .map_err(Failure::ours)?;
    let stage = Stage::prepare(scenario, folder.path())?;
    let plan = Plan::of(scenario, stage.instances());
    let limit = match &plan.limits {
        Limits::Grid(grid) => grid.max(),
        Limits::Calibrate(Calibrate { guard, .. }) => *guard,
    };
    let runtime = runtime()?;
    let mut to = std::io::stdout().lock();
    let failed = runtime.block_on(async {
        match stage {
            Stage::Commands(commands, _) => {
                commands_tried(&commands, &plan, limit, count, &mut to).await
            }
            stage => others_tried(stage, scenario, &plan, limit, count, &mut to).await,
        }
    })?;
    runtime.shutdown_background();
    if failed == count {
        return Err(Failure::usage("every one of these pulls failed")
            .hint(Some("put right what `failed` says above, then try again")));
    }
    Ok(Exit::Done)
}

/// A pull to try: arms evenly spread, instances and seeds as a run would draw them.
fn nth(plan: &Plan, limit: Limit, number: u64, count: u64) -> Start {
    let round = Round(number);
    let place = (number - 1) as usize * (plan.arms - 1) / (count.max(2) - 1) as usize;
    let mut pull = Pull::new(ArmId::from_index(place.min(plan.arms - 1)), limit);
    if plan.instances > 0 {
        let mut rng = randomness(plan.seed, round, Purpose::Instance);
        pull.instance = Some(rng.random_range(0..plan.instances as u32));
    }
    let seed = randomness(plan.seed, round, Purpose::Target).next_u64() >> 33;
    Start {
        slot: 0,
        round,
        pull,
        seed,
    }
}

async fn commands_tried(
    commands: &Commands,
    plan: &Plan,
    limit: Limit,
    count: u64,
    to: &mut dyn Write,
) -> Result<u64, Failure> {
    let mut supervisor = Supervisor::start(&Setup::default())
        .await
        .map_err(|error| Failure::ours(&error).hint(error.hint()))?;
    let mut signals = Signals::listen().map_err(Failure::ours)?;
    let mut failed = 0;
    for number in 1..=count {
        let start = nth(plan, limit, number, count);
        let run = tokio::select! {
            run = commands.run(&mut supervisor, &start, None) => run,
            () = signals.next() => return Err(Failure::interrupted()),
        };
        failed += u64::from(show(commands, &start, &run, number, to)?);
    }
    supervisor.close().await;
    Ok(failed)
}

/// Writes what became of a pull; true if it failed.
fn show(
    commands: &Commands,
    start: &Start,
    run: &CommandRun,
    number: u64,
    to: &mut dyn Write,
) -> Result<bool, Failure> {
    writeln!(
        to,
        "\npull {number}    arm {}: {}",
        start.pull.arm,
        commands.space.configuration(start.pull.arm)
    )?;
    writeln!(to, "command   {}", run.line)?;
    writeln!(
        to,
        "limit     {} of {}",
        commands.of.amount(start.pull.limit.get()),
        commands.of.name()
    )?;
    if let Some(report) = &run.report {
        let cause = match report.cause {
            Cause::None => "ended by itself",
            Cause::Wall => "stopped at its wall time",
            Cause::Cpu => "stopped at its CPU time",
            Cause::Memory => "stopped at its memory",
            Cause::Cancelled => "cancelled",
        };
        writeln!(to, "cause     {cause}")?;
        match (report.exit_code, report.signal) {
            (Some(code), _) => writeln!(to, "exit      {code}")?,
            (None, Some(signal)) => writeln!(to, "signal    {signal}")?,
            (None, None) => {}
        }
        writeln!(
            to,
            "used      {} of wall, {} of cpu",
            crate::quantity::seconds(report.wall_seconds),
            crate::quantity::seconds(report.cpu_seconds)
        )?;
        if let (Resource::Work, Ending::Brought(outcome)) = (commands.of, &run.ending)
            && let Some(used) = outcome.consumption
        {
            writeln!(to, "          {} of work", commands.of.amount(used))?;
        }
    }
    let is_failed = outcome(
        &run.ending,
        run.reading
            .as_ref()
            .ok()
            .map(|reading| reading.text.as_str()),
        to,
    )?;
    if is_failed
        && let Some(stderr) = run
            .report
            .as_ref()
            .and_then(|report| report.stderr.as_ref())
    {
        let text = stderr.text();
        for line in text
            .lines()
            .rev()
            .take(5)
            .collect::<Vec<_>>()
            .into_iter()
            .rev()
        {
            writeln!(to, "stderr    {line}")?;
        }
    }
    Ok(is_failed)
}

/// Writes how a pull ended; true if it failed.
fn outcome(ending: &Ending, text: Option<&str>, to: &mut dyn Write) -> Result<bool, Failure> {
    match ending {
        Ending::Lost { why } => {
            writeln!(to, "lost      {why}")?;
            Ok(true)
        }
        Ending::Stopped => {
            writeln!(to, "stopped")?;
            Ok(false)
        }
        Ending::Brought(outcome) | Ending::NotStarted(outcome) => {
            if let Some(failing) = &outcome.failure {
                writeln!(to, "failed    {}", failing.reason)?;
                return Ok(true);
            }
            match Observation::seen(&outcome.observation) {
                Seen::Rewarded { reward, .. } => {
                    if let Some(text) = text {
                        writeln!(to, "read      {text}")?;
                    }
                    let clamped = if outcome.is_clamped { " (clamped)" } else { "" };
                    writeln!(to, "reward    {reward}{clamped}")?;
                }
                Seen::Censored { .. } => {
                    writeln!(to, "censored  it was still running at its limit")?;
                }
                Seen::Failed => {
                    writeln!(to, "failed")?;
                    return Ok(true);
                }
            }
            Ok(false)
        }
    }
}

/// Forests and virtual targets: no command line, but the same picture.
async fn others_tried(
    stage: Stage,
    scenario: &Scenario,
    plan: &Plan,
    limit: Limit,
    count: u64,
    to: &mut dyn Write,
) -> Result<u64, Failure> {
    let (ends, mut ended) = tokio::sync::mpsc::unbounded_channel();
    let (mut target, _) = stage.start(scenario, 1, None, ends).await?;
    let mut signals = Signals::listen().map_err(Failure::ours)?;
    let mut failed = 0;
    for number in 1..=count {
        let start = nth(plan, limit, number, count);
        target.start(start);
        let ending = tokio::select! {
            Some(ended) = ended.recv() => ended.ending,
            () = signals.next() => return Err(Failure::interrupted()),
        };
        writeln!(
            to,
            "\npull {number}    arm {}: {}",
            start.pull.arm,
            scenario.space.configuration(start.pull.arm)
        )?;
        let of = scenario.limits.of;
        writeln!(to, "limit     {} of {}", of.amount(limit.get()), of.name())?;
        if let Ending::Brought(outcome) = &ending
            && let Some(used) = outcome.consumption
        {
            writeln!(to, "used      {} of {}", of.amount(used), of.name())?;
        }
        failed += u64::from(outcome(&ending, None, to)?);
    }
    Ok(failed)
}
