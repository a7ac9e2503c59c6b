//! `captime explain`: why a pull was chosen.

mod text;

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Value, json};

use self::text::as_text;
use super::run_folder::{self, failure};
use super::{Exit, Failure, TextOrJson, exit_code};
use crate::journal::{By, PullRecord, Reader, Replay, Step};
use crate::orchestrator::{Next, ResolvedScenario, RunError, State};
use crate::policy::Explanation;
use crate::progress::Words;
use crate::resource::Resource;
use crate::space::Space;

const EXAMPLES: &str = "\
Examples:
  captime explain ames-forest         the last round
  captime explain ames-forest 120     round 120";

/// Show why a pull was chosen: its index, the runner-up, counts and widths.
///
/// Replays the journal up to that round, so you see what the policy knew when it chose.
#[derive(Debug, Args)]
#[command(after_help = format!("{EXAMPLES}\n\n{}", exit_code::PLAIN))]
pub struct ExplainArgs {
    /// A run's folder, or its name in runs/
    run: PathBuf,
    /// The round [default: the last one]
    round: Option<u64>,
    /// Output format
    #[arg(long, value_enum, default_value_t = TextOrJson::Text)]
    format: TextOrJson,
}

/// Runs the command.
pub fn run(args: ExplainArgs) -> Result<Exit, Failure> {
    let folder = run_folder::find(&args.run)?;
    let round = match args.round {
        Some(round) => round,
        None => last_round(&folder).map_err(|error| failure(&error))?,
    };
    let found = choice(&folder, round).map_err(|error| failure(&error))?;
    let Some(choice) = found else {
        return Err(
            Failure::usage(format!("{} has no round {round}", folder.display())).hint(Some(
                "rounds are numbered from 1; `captime export` lists them",
            )),
        );
    };
    let mut to = std::io::stdout().lock();
    match args.format {
        TextOrJson::Json => writeln!(to, "{}", as_json(&choice))?,
        TextOrJson::Text => {
            to.write_all(as_text(&choice.pull, &choice.explanation, &choice.words()).as_bytes())?;
        }
    }
    if !choice.is_same {
        writeln!(
            std::io::stderr().lock(),
            "captime: warning: this captime would have chosen otherwise; the run was made by another version"
        )?;
    }
    Ok(Exit::Done)
}

/// Why this round was played, in words. `None` if there is no such round.
#[cfg(feature = "serve")]
pub(super) fn text(folder: &Path, round: u64) -> Result<Option<String>, RunError> {
    let found = choice(folder, round)?;
    Ok(found.map(|choice| as_text(&choice.pull, &choice.explanation, &choice.words())))
}

struct Choice {
    pull: PullRecord,
    explanation: Explanation,
    space: Space,
    resource: Resource,
    is_same: bool,
}

impl Choice {
    fn words(&self) -> Words<'_> {
        Words {
            space: &self.space,
            resource: self.resource,
        }
    }
}

fn last_round(folder: &Path) -> Result<u64, RunError> {
    let mut reader = Reader::open(folder)?;
    let mut last = 0;
    while let Some(record) = reader.next()? {
        if let crate::journal::Record::Pull(pull) = record {
            last = pull.round.0;
        }
    }
    Ok(last)
}

/// Replays up to the decision of this round, and makes it again.
fn choice(folder: &Path, round: u64) -> Result<Option<Choice>, RunError> {
    let reader = Reader::open(folder)?;
    let resolved = ResolvedScenario::read(reader.header(), folder)?;
    let resource = resolved.resource();
    let mut state = State::new(resolved.plan());
    let mut replay = Replay::new(reader);
    while let Some(step) = replay.next()? {
        if let Step::Launched(pull) = &step
            && pull.round.0 == round
        {
            let again = state.choose();
            // What is recorded was never a policy's choice.
            let is_same = matches!(pull.by, Some(By::Record | By::Test | By::Earlier))
                || matches!(again, Next::Pull(again) if again.pull() == pull.pull());
            let explanation = state
                .explain()
                .filter(|_| pull.by.is_none())
                .unwrap_or(Explanation::NOTHING);
            return Ok(Some(Choice {
                pull: *pull,
                explanation,
                space: state.space().clone(),
                resource,
                is_same,
            }));
        }
        if !state.replay(&step) {
            return Err(RunError::Foreign {
                line: replay.reader().lines(),
            });
        }
    }
    Ok(None)
}

fn as_json(choice: &Choice) -> Value {
    let Choice {
        pull, explanation, ..
    } = choice;
    json!({
        "round": pull.round,
        "arm": pull.arm,
        "configuration": choice.space.configuration(pull.arm),
        "origin": choice.words().origin(pull.arm),
        "limit": pull.limit,
        "by": pull.by,
        "outcomes_seen": pull.seen,
        "why": explanation.why,
        "chosen": explanation.chosen,
        "runner_up": explanation.runner_up,
        "turn": explanation.turn,
    })
}
