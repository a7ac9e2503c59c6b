//! Studies that spend a budget of CPU time and are judged on instances kept back.

use std::io::{self, BufWriter, Write};

use super::{
    Exit, Failure, Format, REPETITIONS, StudyArgs, folder, given_policies, progress, refused_study,
    scenario, threads, write_json,
};
use crate::study::exam::{self, Exam, ExamPlan, judge_all};

/// Runs the command with `--budget`.
pub(super) fn run(args: &StudyArgs) -> Result<Exit, Failure> {
    if args.what.as_os_str() == "paper" {
        let message =
            "`--budget` goes with a scenario whose target is `recorded`, not with `paper`";
        return Err(
            Failure::usage(message).hint(Some("`--rounds` says how long to play on `paper`"))
        );
    }
    let scenario = scenario(args)?;
    let given = given_policies(args)?;
    let plan = ExamPlan {
        exam: Exam::of_scenario(&scenario).map_err(|error| refused_study(args, &error))?,
        policies: if given.is_empty() {
            scenario.policies.clone()
        } else {
            given
        },
        budgets: args.budget.clone(),
        repetitions: args.repetitions.unwrap_or(REPETITIONS),
        seed: args.seed.unwrap_or(scenario.seed),
        threads: threads(args),
    };
    if let Some(folder) = &args.out {
        folder::make(folder)?;
    }
    let marks = {
        let progress = progress(args, plan.total_seconds());
        judge_all(&plan, &progress)
    };
    if let Some(folder) = &args.out {
        folder::marks(&marks, folder)?;
    }
    let mut stdout = BufWriter::new(io::stdout().lock());
    match args.format {
        Format::Text => exam::text(&marks, &mut stdout)?,
        Format::Json => write_json(&marks, &mut stdout)?,
        Format::Csv => exam::summary_csv(&marks, &mut stdout)?,
    }
    stdout.flush()?;
    Ok(Exit::Done)
}
