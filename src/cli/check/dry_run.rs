//! A dry run: a few pulls, to see their outcomes. Nothing is recorded.

use std::io::Write;
use std::sync::Arc;

use super::super::run_folder::failure;
use super::super::{Exit, Failure, runtime};
use super::describe::listed_samples;
use super::start_nodes;
use crate::journal::{EndReason, PullRecord};
use crate::markup::Visible;
use crate::orchestrator::{
    Driver, Now, PAUSES, Planned, Run, RunSetup, Sequence, Signals, State, Wall, Watch, spread,
    target_seed,
};
use crate::resource::Resource;
use crate::round::{ArmId, Pull, Seen};
use crate::scenario::Scenario;
use crate::space::Configuration;
use crate::target::command::Commands;
use crate::target::{Ending, Failing, Guard, Outcome, Start, prepare};

/// Runs the pulls that `check` has shown as samples, and more if wanted, at the largest limit, and shows each.
pub(super) fn run(scenario: &Scenario, count: u64) -> Result<Exit, Failure> {
    let folder = tempfile::Builder::new()
        .prefix("captime-try-")
        .tempdir()
        .map_err(Failure::internal)?;
    let mut scenario = scenario.clone();
    scenario.at_largest_limit();
    let target = prepare(&scenario, folder.path())?;
    let plan = RunSetup::of(&scenario, &target).plan;
    let (limit, seed) = (plan.limits.largest(), plan.seed);
    let arms: Vec<ArmId> = match scenario.space.opened() {
        Some(_) => spread(plan.arms, count as usize).collect(),
        None => listed_samples(seed, plan.arms, count as usize)
            .into_iter()
            .map(ArmId::from_index)
            .collect(),
    };
    let sequence = Sequence::new(count, move |round| Planned {
        pull: Pull::new(arms[(round.0 - 1) as usize % arms.len()], limit),
        seed: Some(target_seed(seed, round)),
        by: None,
    });
    let show = Show {
        commands: target.commands().cloned(),
        of: scenario.limits.of,
        failed: 0,
        cannot_write: None,
    };
    let run = Run::unrecorded(State::new(plan), show)
        .following(sequence)
        .with_retries(0, PAUSES);
    let runtime = runtime()?;
    let driven = runtime.block_on(async {
        let mut slots = start_nodes(&scenario, target).await?;
        let mut signals = Signals::listen().map_err(Failure::internal)?;
        let driver = Driver::begin(vec![run], &mut slots.pool, &mut signals, Wall::default());
        let driver = driver.map_err(|error| failure(&error))?;
        let driven = driver.drive().await.map_err(|error| failure(&error));
        slots.close().await;
        driven
    });
    runtime.shutdown_background();
    let driven = driven?;
    for Run { watch, .. } in driven.runs {
        if let Some(error) = watch.cannot_write {
            return Err(error.into());
        }
        if driven.reason == EndReason::Interrupted {
            return Err(Failure::interrupted());
        }
        if watch.failed == count {
            return Err(Failure::usage("every one of these pulls failed")
                .hint(Some("fix the failure shown above, then try again")));
        }
    }
    Ok(Exit::Done)
}

/// Shows every pull on stdout.
struct Show {
    commands: Option<Arc<Commands>>,
    of: Resource,
    failed: u64,
    cannot_write: Option<std::io::Error>,
}

impl Watch for Show {
    fn ended(&mut self, pull: &PullRecord, ending: &Ending, now: &Now<'_>) {
        // Arms of an open space are opened as they are pulled: only the state knows them.
        let configuration = now.state.space().configuration(pull.arm);
        let mut to = Visible(std::io::stdout().lock());
        let shown = self.show(pull, configuration, ending, &mut to);
        self.cannot_write = shown.err();
    }

    fn is_gone(&self) -> bool {
        self.cannot_write.is_some()
    }
}

impl Show {
    fn show(
        &mut self,
        pull: &PullRecord,
        configuration: Configuration,
        ending: &Ending,
        to: &mut dyn Write,
    ) -> std::io::Result<()> {
        writeln!(
            to,
            "\npull {}    arm {}: {configuration}",
            pull.round, pull.arm
        )?;
        if let Some(commands) = &self.commands {
            let line = commands.shell_line(&Start {
                slot: 0,
                round: pull.round,
                pull: pull.pull(),
                seed: pull.seed.unwrap_or_default(),
                configuration: Some(Arc::new(configuration)),
            });
            writeln!(to, "command   {line}")?;
        }
        if let Ending::Brought(outcome) = ending
            && let Some(node) = &outcome.node
        {
            writeln!(to, "node      {node}")?;
        }
        let limit = self.of.amount(pull.limit.get());
        writeln!(to, "limit     {limit} of {}", self.of.name())?;
        match ending {
            Ending::Lost { why } | Ending::NodeLost { why, .. } => {
                self.failed += 1;
                writeln!(to, "lost      {why}")
            }
            Ending::Stopped => writeln!(to, "stopped"),
            Ending::Brought(outcome) | Ending::NotStarted(outcome) => {
                self.failed += u64::from(outcome.failure.is_some());
                self.used(outcome, to)?;
                brought(outcome, to)
            }
        }
    }

    /// How the pull ended, and what it used.
    fn used(&self, outcome: &Outcome, to: &mut dyn Write) -> std::io::Result<()> {
        let measured = &outcome.measured;
        if self.commands.is_some() && measured.wall.is_some() {
            writeln!(to, "cause     {}", self.cause(outcome))?;
            match (measured.exit, measured.signal) {
                (Some(code), _) => writeln!(to, "exit      {code}")?,
                (None, Some(signal)) => writeln!(to, "signal    {signal}")?,
                (None, None) => {}
            }
            let seconds = |value: Option<f64>| crate::quantity::seconds(value.unwrap_or(0.0));
            let (wall, cpu) = (seconds(measured.wall), seconds(measured.cpu));
            writeln!(to, "used      {wall} of wall, {cpu} of cpu")?;
        }
        let reports = self.commands.as_ref();
        let reports = reports.is_some_and(|commands| commands.command.consumption.is_some());
        if self.commands.is_none() || !self.of.is_time() || reports {
            let head = match (&self.commands, reports) {
                (None, _) => "used",
                (Some(_), true) => "reported",
                (Some(_), false) => "",
            };
            if let Some(used) = outcome.consumption {
                let used = self.of.amount(used);
                writeln!(to, "{head:10}{used} of {}", self.of.name())?;
            }
        }
        Ok(())
    }

    fn cause(&self, outcome: &Outcome) -> &'static str {
        let failing = outcome.failure.as_ref();
        let guard = failing.and_then(|failing| failing.guard);
        let is_stopped = matches!(outcome.observation.seen(), Seen::Censored { .. })
            && outcome.measured.exit.is_none();
        match (guard, is_stopped.then_some(self.of)) {
            (Some(Guard::Wall), _) | (None, Some(Resource::Wall)) => "stopped at its wall time",
            (Some(Guard::Cpu), _) | (None, Some(Resource::Cpu)) => "stopped at its CPU time",
            (Some(Guard::Memory), _) | (None, Some(Resource::Memory)) => "stopped at its memory",
            (Some(Guard::Work), _) | (None, Some(Resource::Work) | None) => "ended by itself",
        }
    }
}

/// Shows the outcome of a pull.
fn brought(outcome: &Outcome, to: &mut dyn Write) -> std::io::Result<()> {
    if let Some(Failing { reason, stderr, .. }) = &outcome.failure {
        writeln!(to, "failed    {reason}")?;
        let lines: Vec<&str> = stderr.lines().collect();
        for line in &lines[lines.len().saturating_sub(5)..] {
            writeln!(to, "stderr    {line}")?;
        }
        return Ok(());
    }
    match outcome.observation.seen() {
        Seen::Rewarded { reward, .. } => {
            if let Some(text) = &outcome.read {
                writeln!(to, "read      {text}")?;
            }
            let clamped = if outcome.is_clamped { " (clamped)" } else { "" };
            writeln!(to, "reward    {reward}{clamped}")
        }
        Seen::Censored { .. } if outcome.measured.exit.is_some() => {
            writeln!(to, "censored  it ended past its limit")
        }
        Seen::Censored { .. } => writeln!(to, "censored  it was still running at its limit"),
        Seen::Failed => writeln!(to, "failed"),
    }
}
