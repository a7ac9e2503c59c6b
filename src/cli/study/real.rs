//! Studies with real runs.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::io::Write;
use std::time::{Duration, Instant};

use super::super::run_folder::{elsewhere, failure};
use super::super::runtime;
use super::{Exit, Failure, StudyArgs, given_policies, refused_study, show};
use crate::journal::EndReason;
use crate::quantity::{self, counted, whole};
use crate::scenario::{Pin, Scenario};
use crate::study::{RealError, RealStudy, StudyError, file_name};
use crate::target::prepare;

/// How often a line reports the progress.
const NEWS: Duration = Duration::from_secs(20);

/// Plays what is left, and shows what was played.
pub(super) fn run(args: &StudyArgs, scenario: Scenario) -> Result<Exit, Failure> {
    let Some(folder) = args.out.clone() else {
        let target = scenario.target.name();
        return Err(refused_study(
            &args.what[0],
            &StudyError::NotVirtual { target },
        ));
    };
    let given = given_policies(args)?;
    let policies = if given.is_empty() {
        scenario.policies.clone()
    } else {
        given
    };
    let target = prepare(&scenario, &folder)?;
    let plan = RealStudy {
        instances: target.instances().to_vec(),
        policies,
        rounds: args.rounds.or(scenario.budget.rounds),
        repetitions: args.repetitions.unwrap_or(1),
        wall: scenario.budget.wall,
        seed: args.seed.unwrap_or(scenario.seed),
        folder: folder.join("runs"),
        enforcement: target.enforcement(),
        scenario,
    };
    let names: BTreeSet<String> = plan.labels().map(|label| file_name(&label)).collect();
    if names.len() < plan.policies.len() {
        return Err(Failure::usage("a policy is listed twice"));
    }
    let runtime = runtime()?;
    let played = runtime.block_on(async {
        let mut pool = target.start(1, Pin::Never).await?;
        let played = plan.play(&mut pool, &news(args.quiet)).await;
        played.map_err(|error| cannot(&error))
    });
    runtime.shutdown_background();
    let (standings, reason) = played?;
    if reason == EndReason::Wall {
        let wall = plan.wall.map(quantity::seconds).unwrap_or_default();
        note(&format!(
            "time budget ({wall}) used up; raise it and run the same command to resume"
        ));
    }
    if reason == EndReason::Interrupted {
        note("stopped; run the same command to resume");
    }
    if standings.is_empty() {
        note("no round is over yet");
    } else {
        show(args, &standings)?;
    }
    Ok(match reason {
        EndReason::Interrupted => Exit::Interrupted,
        _ => Exit::Done,
    })
}

/// Prints a line on stderr, if it is still open. A closed terminal is no reason to lose the results.
fn note(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "captime: {text}");
}

/// Prints a line on stderr at intervals.
fn news(is_quiet: bool) -> impl Fn(u64, u64) {
    let last = Cell::new(Instant::now());
    move |played, all| {
        if !is_quiet && last.get().elapsed() >= NEWS {
            last.set(Instant::now());
            note(&format!("{} of {}", whole(played), counted(all, "round")));
        }
    }
}

fn cannot(error: &RealError) -> Failure {
    match error {
        RealError::Run(error) => elsewhere(failure(error), error),
        RealError::Hopeless { .. } => Failure::usage(error).hint(Some(
            "run `captime check SCENARIO --try 3` to see the outcomes of three pulls",
        )),
    }
}
