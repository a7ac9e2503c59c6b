//! `captime ask`: ask and tell as JSON lines, for any language.

mod protocol;

use std::convert::Infallible;
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;

use super::run_folder::failure;
use super::{Exit, Failure, lines, scenario_file};
use crate::journal::Syncing;
use crate::orchestrator::{Budget, Plan, Run, RunSetup, State};
use crate::scenario::{Scenario, Target};

const EXAMPLES: &str = r#"Write one request per line to stdin. Each gets one line on stdout, flushed at once:
  {"ask":{}}                                           what to run next
      {"pull":{"id":1,"arm":17,"configuration":{"trees":300},"limit":12.5}}
  {"tell":{"id":1,"reward":1.0,"consumption":3.2}}     it ended within its limit
  {"tell":{"id":1,"censored":12.5}}                    it was cut off
  {"tell":{"id":1,"failed":true}}                      it crashed
      {"told":{"id":1}}
  {"best":{}}                                          the pair to use if you stopped now
  {"best":{"limit":300}}                               the arm to use at this limit
  {"explain":{}}                                       why the last pull was chosen
If the scenario lists instances, a pull names the one to run: "instance", counted from 1 in the
order of the list, and "instance_name". Without a list, choose one yourself for every pull.
Several pulls may be open at once. A bad line gets {"error":{"line","what","fix"}} and changes
nothing.

Examples:
  captime ask mine.yaml
  captime ask mine.yaml --journal runs/mine    record and resume

Exit codes: 0 stdin ended; 1 captime itself failed; 2 bad usage or scenario."#;

/// Choose pulls for your own program to run: ask and tell as JSON lines
///
/// The scenario gives arms, limits, price, policy and seed, with `target: external`. Limits and consumptions are in seconds.
/// Without `--journal`, captime writes nothing to disk.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct AskArgs {
    /// The scenario file, with `target: external`
    scenario: PathBuf,
    /// Record in this folder, and resume what it holds
    #[arg(long, value_name = "FOLDER")]
    journal: Option<PathBuf>,
}

/// Runs the command.
pub fn run(args: AskArgs) -> Result<Exit, Failure> {
    let mut scenario = scenario_file::read_scenario(&args.scenario)?;
    let earlier = scenario_file::take_over(&mut scenario, args.journal.as_deref())?;
    let Target::External(external) = &scenario.target else {
        let message = format!(
            "`ask` needs a scenario with `target: external`, not `{}`",
            scenario.target.name()
        );
        return Err(
            Failure::usage(message).hint(Some("use `captime run` to have captime run the pulls"))
        );
    };
    let setup = RunSetup {
        scenario: &scenario,
        plan: Plan::of(&scenario, &external.instances),
        syncing: Syncing::Outcomes,
        enforcement: serde_json::Value::Null,
        earlier: None,
    };
    let setup = setup.taking_over(earlier);
    let run = match &args.journal {
        None => unrecorded(&setup),
        Some(folder) => recorded(folder, &setup)?,
    };
    let mut session = protocol::AskSession::new(&scenario, run);
    let mut input = std::io::stdin().lock();
    let mut output = std::io::stdout().lock();
    let mut number = 0;
    let (mut line, mut written) = (vec![], vec![]);
    loop {
        lines::read(&mut input, &mut line)?;
        if line.is_empty() {
            break;
        }
        number += 1;
        let answer = session
            .answer(number, &line)
            .map_err(|error| failure(&error))?;
        lines::write(&mut output, &mut written, &answer)?;
    }
    session.close().map_err(|error| failure(&error))?;
    Ok(Exit::Done)
}

/// Answers requests in memory, one per line, without a journal. For tests of arbitrary input.
#[doc(hidden)]
pub fn answers(scenario: &Scenario, requests: &[u8]) -> Result<Vec<serde_json::Value>, Failure> {
    let Target::External(external) = &scenario.target else {
        return Err(Failure::usage(
            "`ask` needs a scenario with `target: external`",
        ));
    };
    let state = State::new(Plan::of(scenario, &external.instances));
    let mut session = protocol::AskSession::new(scenario, Run::unrecorded(state, ()));
    let lines = requests.split_inclusive(|&byte| byte == b'\n');
    let answers = (1..)
        .zip(lines)
        .map(|(number, line)| session.answer(number, line));
    answers
        .map(|answer| answer.map_err(|error| failure(&error)))
        .collect()
}

/// A run in memory, which begins with what it takes over.
fn unrecorded(setup: &RunSetup<'_>) -> Run {
    let mut state = State::new(setup.plan.clone());
    if let Some(earlier) = &setup.earlier {
        let Ok(()) = earlier.teach(&mut state, |_| Ok::<_, Infallible>(()));
        scenario_file::say_taken_over(earlier);
    }
    Run::unrecorded(state, ())
}

/// Opens or resumes the run in this folder, and reports on stderr what it found.
fn recorded(folder: &Path, setup: &RunSetup<'_>) -> Result<Run, Failure> {
    let run = Run::open(folder, setup, ()).map_err(|error| failure(&error))?;
    let mut run = run.with_budget(Budget::default());
    run.begin(1, serde_json::Value::Null)
        .map_err(|error| failure(&error))?;
    while run.durable(0, &[]).map_err(|error| failure(&error))? {}
    if let (Some(earlier), true) = (&setup.earlier, run.before().is_new) {
        scenario_file::say_taken_over(earlier);
    }
    let mut notes = std::io::stderr().lock();
    if run.before().is_cut {
        writeln!(
            notes,
            "captime: the last line of the journal was incomplete and has been removed"
        )?;
    }
    if !run.before().is_new {
        let open: Vec<String> = run
            .open_pulls()
            .map(|pull| pull.round.to_string())
            .collect();
        let open = if open.is_empty() {
            "none".into()
        } else {
            open.join(", ")
        };
        writeln!(
            notes,
            "captime: resuming after {}; still open: {open}",
            crate::quantity::counted(run.state().tally().launched, "pull")
        )?;
    }
    Ok(run)
}
