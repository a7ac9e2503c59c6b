//! `captime ask`: ask and tell as JSON lines, for any language.

mod protocol;

use std::io::{BufRead, Write};
use std::path::PathBuf;

use clap::Args;

use super::run_folder::failure;
use super::{Exit, Failure};
use crate::journal::{Appender, RunLock, Session, Syncing, timestamp};
use crate::orchestrator::{Opened, Plan, State, open};
use crate::scenario::{Scenario, Target};

const EXAMPLES: &str = r#"Each line on stdin is one request, each gets one line on stdout, flushed at once:
  {"ask":{}}                                           what to run next
      {"pull":{"id":1,"arm":17,"configuration":{"trees":300},"limit":12.5}}
  {"tell":{"id":1,"reward":1.0,"consumption":3.2}}     it ended within its limit
  {"tell":{"id":1,"censored":12.5}}                    it was cut off
  {"tell":{"id":1,"failed":true}}                      it crashed
      {"told":{"id":1}}
  {"best":{}}                                          the pair to use if you stopped now
  {"best":{"limit":300}}                               the arm to use where every run is granted this limit
  {"explain":{}}                                       why the last pull was chosen
Where the scenario lists instances, a pull says on which one to run: "instance", counted from 1
in the order of the list, and "instance_name". The policy chose it, or it was drawn. Without a
list it is for you to choose, anew each time.
Several pulls may be open at once. A bad line gets {"error":{"line","what","fix"}} and changes nothing.

Examples:
  captime ask mine.yaml
  captime ask mine.yaml --journal runs/mine    records, and goes on

Exit codes: 0 stdin ended; 1 failure of ours; 2 bad usage or scenario."#;

/// Choose pulls for somebody else to run: ask and tell as JSON lines
///
/// The scenario gives arms, limits, price, policy and seed, with `target: external`. Limits and consumptions are in seconds.
/// Nothing is written to disk unless `--journal` is given.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct AskArgs {
    /// The scenario, with `target: external`
    scenario: PathBuf,
    /// Record in this folder, and go on with what it holds
    #[arg(long, value_name = "FOLDER")]
    journal: Option<PathBuf>,
}

/// Where rounds are recorded, if they are.
struct Recording {
    journal: Appender,
    _lock: RunLock,
}

/// Runs the command.
pub fn run(args: AskArgs) -> Result<Exit, Failure> {
    let scenario = super::scenario_file::read_scenario(&args.scenario)?;
    let Target::External(external) = &scenario.target else {
        let message = format!(
            "`ask` needs a scenario with `target: external`, not `{}`",
            scenario.target.name()
        );
        return Err(
            Failure::usage(message).hint(Some("use `captime run` to have captime run the pulls"))
        );
    };
    let plan = Plan::of(&scenario, &external.instances);
    let mut desk = match &args.journal {
        None => protocol::Desk::new(&scenario, State::new(plan), None, vec![]),
        Some(folder) => recorded(folder, &scenario, plan)?,
    };
    let mut input = std::io::stdin().lock();
    let mut output = std::io::stdout().lock();
    let mut number = 0;
    let mut line = vec![];
    loop {
        line.clear();
        // One byte more than we take, so that what is too long is known as such.
        let most = protocol::LONGEST as u64 + 1;
        std::io::Read::take(&mut input, most).read_until(b'\n', &mut line)?;
        if line.is_empty() {
            break;
        }
        number += 1;
        let is_cut = line.last() != Some(&b'\n') && line.len() as u64 == most;
        if is_cut {
            input.skip_until(b'\n')?;
        }
        let answer = desk
            .answer(number, &line)
            .map_err(|error| failure(&error.into()))?;
        serde_json::to_writer(&mut output, &answer).map_err(std::io::Error::from)?;
        output.write_all(b"\n")?;
        output.flush()?;
    }
    desk.close().map_err(|error| failure(&error.into()))?;
    Ok(Exit::Done)
}

fn recorded<'s>(
    folder: &std::path::Path,
    scenario: &'s Scenario,
    plan: Plan,
) -> Result<protocol::Desk<'s>, Failure> {
    let opened = open(
        folder,
        scenario,
        plan,
        Syncing::Outcomes,
        &serde_json::Value::Null,
        |_| (),
    )
    .map_err(|error| failure(&error))?;
    let Opened {
        mut state,
        progress,
        mut journal,
        lock,
        is_new,
        is_cut,
        ..
    } = opened;
    for learned in &progress.waiting {
        state.learned(learned);
    }
    let session = Session {
        session: progress.sessions + 1,
        started: Some(timestamp()),
        slots: 1,
        budget: serde_json::Value::Object(serde_json::Map::new()),
        enforcement: serde_json::Value::Null,
    };
    if let Some(found) = state.due_calibration() {
        journal
            .append(&found)
            .map_err(|error| failure(&error.into()))?;
        // They were made from a grid, so they are one.
        let _ = state.calibrated(&found.limits);
    }
    journal
        .append(&session)
        .map_err(|error| failure(&error.into()))?;
    let mut notes = std::io::stderr().lock();
    if is_cut {
        writeln!(
            notes,
            "captime: the last line of the journal was torn and has been cut"
        )?;
    }
    let open: Vec<_> = progress.in_flight.into_iter().collect();
    if !is_new {
        let ids: Vec<String> = open.iter().map(|pull| pull.round.to_string()).collect();
        let ids = if ids.is_empty() {
            "none".into()
        } else {
            ids.join(", ")
        };
        writeln!(
            notes,
            "captime: going on after {} pulls; still open: {ids}",
            state.tally().launched
        )?;
    }
    let recording = Recording {
        journal,
        _lock: lock,
    };
    Ok(protocol::Desk::new(scenario, state, Some(recording), open))
}
