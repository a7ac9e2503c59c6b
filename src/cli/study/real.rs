//! Studies whose pulls are really run.

use std::collections::BTreeSet;
use std::io::Write;
use std::time::{Duration, Instant};

use tokio::sync::mpsc::unbounded_channel;

use super::super::run::stage::Stage;
use super::super::run_folder::{elsewhere, failure};
use super::super::runtime;
use super::{Exit, Failure, StudyArgs, given_policies, refused_study, show};
use crate::quantity;
use crate::scenario::Scenario;
use crate::study::{Ground, Halt, RealError, RealPlan, StudyError, file_name};

/// How often a line says how far it is.
const NEWS: Duration = Duration::from_secs(20);

/// Plays what is left, shows what was played.
pub(super) fn run(args: &StudyArgs, scenario: Scenario) -> Result<Exit, Failure> {
    let Some(folder) = args.out.clone() else {
        let target = scenario.target.name();
        return Err(refused_study(args, &StudyError::NotVirtual { target }));
    };
    let given = given_policies(args)?;
    let policies = if given.is_empty() {
        scenario.policies.clone()
    } else {
        given
    };
    let stage = Stage::prepare(&scenario, &folder)?;
    let plan = RealPlan {
        instances: stage.instances().to_vec(),
        policies,
        rounds: args.rounds.or(scenario.budget.rounds),
        repetitions: args.repetitions.unwrap_or(1),
        wall: scenario.budget.wall,
        seed: args.seed.unwrap_or(scenario.seed),
        folder: folder.join("runs"),
        enforcement: stage.enforcement(),
        scenario,
    };
    let names: BTreeSet<String> = plan.labels().map(|label| file_name(&label)).collect();
    if names.len() < plan.policies.len() {
        return Err(Failure::usage("a policy is listed twice"));
    }
    let runtime = runtime()?;
    let played = runtime.block_on(async {
        let (ends, ended) = unbounded_channel();
        let (target, _) = stage.start(&plan.scenario, 1, None, ends).await?;
        let mut ground = Ground {
            target,
            ends: ended,
            news: Box::new(news(args.quiet)),
        };
        plan.play(&mut ground).await.map_err(|error| cannot(&error))
    });
    runtime.shutdown_background();
    let (standings, halt) = played?;
    if halt == Halt::Wall {
        let wall = plan.wall.map(quantity::seconds).unwrap_or_default();
        note(&format!(
            "the wall budget of {wall} is over; raise it and the same command goes on"
        ));
    }
    if halt == Halt::Interrupted {
        note("stopped; the same command goes on");
    }
    if standings.is_empty() {
        note("nothing has been played yet");
    } else {
        show(args, &standings)?;
    }
    Ok(match halt {
        Halt::Done | Halt::Wall => Exit::Done,
        Halt::Interrupted => Exit::Interrupted,
    })
}

/// A line on stderr, if anybody is left to read it: a terminal that was closed is no reason to lose the results.
fn note(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "captime: {text}");
}

/// A line on stderr now and then.
fn news(is_quiet: bool) -> impl FnMut(u64, u64) {
    let mut last = Instant::now();
    move |played, all| {
        if !is_quiet && last.elapsed() >= NEWS {
            last = Instant::now();
            note(&format!("{played} of {all} rounds"));
        }
    }
}

fn cannot(error: &RealError) -> Failure {
    match error {
        RealError::Run(error) => elsewhere(failure(error), error),
        RealError::Hopeless { .. } => Failure::usage(error).hint(Some(
            "`captime check SCENARIO --try 3` shows what becomes of a pull",
        )),
    }
}
