//! Studies that spend a budget of CPU time and are judged on held-out instances.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use super::{
    Exit, Failure, REPETITIONS, StudyArgs, StudyFormat, folder, given_policies, needs_list,
    progress, refused_study, scenario, slots, threads, write_json,
};
use crate::quantity;
use crate::study::holdout::{self, Holdout, HoldoutPlan, Marks, Unit, judge_all};

/// Runs the command with `--budget`.
pub(super) fn run(args: &StudyArgs) -> Result<Exit, Failure> {
    if args.is_paper() {
        let message =
            "`--budget` goes with a scenario whose target is `recorded`, not with `paper`";
        return Err(
            Failure::usage(message).hint(Some("`--rounds` says how long to play on `paper`"))
        );
    }
    let (budgets, unit) = budgets(&args.budget)?;
    let given = given_policies(args)?;
    let plan = |file: &Path| -> Result<HoldoutPlan, Failure> {
        let scenario = scenario(args, file)?;
        needs_list(args, &scenario)?;
        let seed = args.seed.unwrap_or(scenario.seed);
        let holdouts = match args.halves {
            Some(halves) => Holdout::random_halves(&scenario, halves, seed),
            None => Holdout::of_scenario(&scenario).map(|holdout| vec![holdout]),
        };
        Ok(HoldoutPlan {
            holdouts: holdouts.map_err(|error| refused_study(file, &error))?,
            policies: if given.is_empty() {
                scenario.policies
            } else {
                given.clone()
            },
            budgets: budgets.clone(),
            unit,
            repetitions: args.repetitions.unwrap_or(if args.halves.is_some() {
                1
            } else {
                REPETITIONS
            }),
            seed,
            threads: threads(args),
            slots: slots(args),
        })
    };
    let plans: Vec<HoldoutPlan> = args
        .what
        .iter()
        .map(|file| plan(file))
        .collect::<Result<_, _>>()?;
    if plans.iter().any(|plan| plan.policies != plans[0].policies) {
        let message = "the scenarios name different policies";
        return Err(Failure::usage(message).hint(Some("say which with `--policy`")));
    }
    if let Some(folder) = &args.out {
        folder::make(folder)?;
    }
    let by_scenario: Vec<Vec<Marks>> = {
        let progress = progress(args, plans.iter().map(HoldoutPlan::total_seconds).sum());
        let judged = plans.iter().map(|plan| judge_all(plan, &progress));
        judged.collect()
    };
    let marks = by_scenario.concat();
    if let Some(folder) = &args.out {
        folder::marks(&marks, folder)?;
    }
    let mut stdout = BufWriter::new(io::stdout().lock());
    match args.format {
        StudyFormat::Text if by_scenario.len() > 1 => {
            holdout::text_of_several(&by_scenario, &mut stdout)?;
        }
        StudyFormat::Text => holdout::text(&marks, &mut stdout)?,
        StudyFormat::Json => write_json(&marks, &mut stdout)?,
        StudyFormat::Csv => holdout::summary_csv(&marks, &mut stdout)?,
    }
    stdout.flush()?;
    Ok(Exit::Done)
}

/// A budget as it is written.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct HoldoutBudget {
    amount: f64,
    unit: Unit,
}

/// Reads `10h`, or `0.1B`: one tenth of what one run of every arm costs at the largest limit.
pub(super) fn budget(text: &str) -> Result<HoldoutBudget, String> {
    let sweeps = text.trim().strip_suffix('B');
    let (amount, unit) = match sweeps.map(|number| number.trim().parse::<f64>()) {
        Some(Ok(amount)) => (amount, Unit::Sweeps),
        Some(Err(_)) => return Err(format!("`{text}` is not a number of B, like `0.1B`")),
        None => {
            let seconds = quantity::parse_seconds(text);
            let seconds = seconds.map_err(|error| format!("{error}; {}", error.hint()))?;
            (seconds, Unit::Seconds)
        }
    };
    if amount.is_finite() && amount > 0.0 {
        Ok(HoldoutBudget { amount, unit })
    } else {
        Err(format!(
            "`{text}` is not a budget; write it like `10h` or `0.1B`"
        ))
    }
}

/// All budgets in one unit.
fn budgets(given: &[HoldoutBudget]) -> Result<(Vec<f64>, Unit), Failure> {
    let unit = given[0].unit;
    if given.iter().any(|budget| budget.unit != unit) {
        let message = "`--budget` mixes times and B";
        return Err(Failure::usage(message).hint(Some("write all of them as times or all as B")));
    }
    Ok((given.iter().map(|budget| budget.amount).collect(), unit))
}
