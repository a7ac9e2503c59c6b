//! `captime study`: policies against each other over repetitions.

mod exam;
mod folder;
mod real;

use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::scenario_file::read_scenario;
use super::{Exit, Failure};
use crate::policy::{PolicyError, PolicyKind};
use crate::quantity;
use crate::scenario::{Scenario, Target};
use crate::study::{Plan, Progress, Setting, Standing, StudyError, play_all, summary_csv, text};
use crate::target::TargetError;
use crate::target::synthetic::{Grid, SyntheticProblem};

/// The policies of the paper's main table.
const PAPER: [&str; 3] = ["rcucb", "ucb", "ts"];

/// The paper's T, where nothing else is said.
const ROUNDS: u64 = 100_000;

/// How often, where nothing else is said.
const REPETITIONS: u64 = 100;

const EXAMPLES: &str = "\
Examples:
  captime study paper
      the paper's main table: rcucb, ucb and ts on poscorr, negcorr and indep
  captime study paper --problem indep,large20 --grid m1,m2 \\
          --policy joint-ts --policy rcucb:alpha=0.25
      other problems, limits and policies
  captime study paper --rounds 10000 --repetitions 20 --out figures
      also writes one page with all charts, regret curves as SVG, and the data
  captime study replay.yaml --policy rcucb --policy fixed --format json
      a scenario with a synthetic or recorded target
  captime study arms.yaml --policy rcucb --policy ucb --rounds 2000 --out real
      real fits: policies take turns; `budget: {wall: 8h}` in the scenario ends
      it, and the same command goes on
  captime study replay.yaml --budget 1h,10h,100h --repetitions 20 \\
          --policy halving --policy race
      play on the training instances until so much CPU time is spent, judge the
      answer on the test instances (`--out` draws PAR10 against CPU time)

Exit codes: 0 done; 1 failure of ours; 2 bad usage or scenario; 130 interrupted: real runs go on with the same command.";

/// Compare policies over repetitions: regret, share of censored rounds, quality of the answer
///
/// Plays every policy on every problem in virtual time, on all cores; the result does not depend on the number of threads.
/// Regret is against the best pair of the grid, whose gain is known exactly. Scenarios whose pulls are really run are compared
/// by cumulative reward and gain; their journals are kept in `--out`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct StudyArgs {
    /// `paper` for the paper's synthetic problems, or a scenario
    #[arg(value_name = "SCENARIO|paper")]
    what: PathBuf,
    /// Problems of `paper`: poscorr, negcorr, indep, large20, large50, large80 (any number of arms), lowcens
    /// [default: poscorr,negcorr,indep]
    #[arg(long, value_delimiter = ',')]
    problem: Vec<String>,
    /// Limits of `paper`: recovered, printed, m1, m2 [default: recovered]
    #[arg(long, value_delimiter = ',')]
    grid: Vec<String>,
    /// A policy with options, like `rcucb:alpha=0.25,width=gain-only`; repeatable [default: rcucb, ucb and ts, or the scenario's]
    #[arg(long, value_name = "SPEC")]
    policy: Vec<String>,
    /// Rounds of a repetition [default: the scenario's budget, or 100000; 2 x arms x limits where pulls are really run]
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=1_000_000_000_000))]
    rounds: Option<u64>,
    /// CPU time to spend instead of rounds, on a recorded target: answers are judged on instances kept back, by PAR10
    #[arg(long, value_name = "TIME,...", value_delimiter = ',', value_parser = budget, conflicts_with = "rounds")]
    budget: Vec<f64>,
    /// How often every policy meets every problem [default: 100; 1 where pulls are really run]
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    repetitions: Option<u64>,
    /// Where all randomness comes from [default: 1, or the scenario's]
    #[arg(long)]
    seed: Option<u64>,
    /// Repetitions that run at a time [default: one per CPU]
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=1024))]
    threads: Option<u64>,
    /// How results are written to stdout
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// Also write a page with charts (HTML), curves (SVG) and data (JSON, CSV) into this folder
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// No progress
    #[arg(long, short)]
    quiet: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// A table per problem
    Text,
    /// A list with one object per problem, grid and policy
    Json,
    /// One row per problem, grid and policy
    Csv,
}

/// Runs the command.
pub fn run(args: StudyArgs) -> Result<Exit, Failure> {
    if !args.budget.is_empty() {
        return exam::run(&args);
    }
    // Read once: what is odd about it is told each time.
    let is_paper = args.what.as_os_str() == "paper";
    let scenario = (!is_paper).then(|| scenario(&args)).transpose()?;
    let plan = match scenario {
        Some(scenario) if matches!(scenario.target, Target::Command(_) | Target::Forest(_)) => {
            return real::run(&args, scenario);
        }
        scenario => plan(&args, scenario.as_ref())?,
    };
    if let Some(folder) = &args.out {
        folder::make(folder)?;
    }
    let standings = {
        let progress = progress(&args, plan.total_rounds());
        play_all(&plan, &progress)
    };
    show(&args, &standings)?;
    Ok(Exit::Done)
}

/// A bar for so much work, where one is wanted.
fn progress(args: &StudyArgs, all: u64) -> Progress {
    if args.quiet {
        Progress::silent()
    } else {
        Progress::on_terminal(all)
    }
}

/// Writes the standings to the folder, if there is one, and to stdout.
fn show(args: &StudyArgs, standings: &[Standing]) -> Result<(), Failure> {
    if let Some(folder) = &args.out {
        folder::standings(standings, folder)?;
    }
    let mut stdout = BufWriter::new(io::stdout().lock());
    match args.format {
        Format::Text => text(standings, &mut stdout)?,
        Format::Json => write_json(&standings, &mut stdout)?,
        Format::Csv => summary_csv(standings, &mut stdout)?,
    }
    stdout.flush()?;
    Ok(())
}

/// A budget in seconds.
fn budget(text: &str) -> Result<f64, String> {
    let seconds =
        quantity::parse_seconds(text).map_err(|error| format!("{error}; {}", error.hint()))?;
    if seconds > 0.0 {
        Ok(seconds)
    } else {
        Err(format!("`{text}` is no time to spend; write it like `10h`"))
    }
}

fn given_policies(args: &StudyArgs) -> Result<Vec<PolicyKind>, Failure> {
    args.policy.iter().map(|spec| policy(spec)).collect()
}

fn threads(args: &StudyArgs) -> usize {
    let cores = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    args.threads.map_or_else(cores, |threads| threads as usize)
}

/// What is to be played, and on how many threads.
fn plan(args: &StudyArgs, scenario: Option<&Scenario>) -> Result<Plan, Failure> {
    let mut plan = Plan {
        settings: vec![],
        policies: given_policies(args)?,
        rounds: args.rounds.unwrap_or(ROUNDS),
        repetitions: args.repetitions.unwrap_or(REPETITIONS),
        seed: args.seed.unwrap_or(1),
        threads: threads(args),
    };
    if let Some(scenario) = scenario {
        add_scenario(args, scenario, &mut plan)?;
    } else {
        plan.settings = paper_settings(args)?;
        if plan.policies.is_empty() {
            plan.policies = PAPER
                .iter()
                .map(|spec| policy(spec))
                .collect::<Result<_, _>>()?;
        }
    }
    Ok(plan)
}

/// What a scenario says, where the command line does not say otherwise.
fn add_scenario(args: &StudyArgs, scenario: &Scenario, plan: &mut Plan) -> Result<(), Failure> {
    let setting = Setting::of_scenario(scenario).map_err(|error| refused_study(args, &error))?;
    plan.settings = vec![setting];
    if plan.policies.is_empty() {
        plan.policies.clone_from(&scenario.policies);
    }
    plan.rounds = args.rounds.or(scenario.budget.rounds).unwrap_or(ROUNDS);
    plan.seed = args.seed.unwrap_or(scenario.seed);
    let has_other_budget = scenario.budget.wall.is_some() || scenario.budget.consumption.is_some();
    if args.rounds.is_none() && has_other_budget {
        let rounds = plan.rounds;
        // Nowhere to complain to when stderr itself is gone.
        let _ = writeln!(
            io::stderr(),
            "captime: a study counts rounds, not time: playing {rounds}; `--rounds` says otherwise"
        );
    }
    Ok(())
}

fn refused_study(args: &StudyArgs, error: &StudyError) -> Failure {
    Failure::usage(format!("{}: {error}", args.what.display())).hint(error.hint())
}

/// The scenario, which has its problem and limits from nowhere else.
fn scenario(args: &StudyArgs) -> Result<Scenario, Failure> {
    for (option, given) in [("--problem", &args.problem), ("--grid", &args.grid)] {
        if !given.is_empty() {
            let message = format!("`{option}` goes with `paper`, not with a scenario");
            let hint =
                "a scenario says it itself: `target: {synthetic: {problem: poscorr, grid: m1}}`";
            return Err(Failure::usage(message).hint(Some(hint)));
        }
    }
    read_scenario(&args.what)
}

fn paper_settings(args: &StudyArgs) -> Result<Vec<Setting>, Failure> {
    let problems = names(&args.problem, &["poscorr", "negcorr", "indep"])
        .map(SyntheticProblem::parse)
        .collect::<Result<Vec<_>, _>>()
        .map(without_repeats)
        .map_err(refused)?;
    let grids = names(&args.grid, &["recovered"])
        .map(Grid::parse)
        .collect::<Result<Vec<_>, _>>()
        .map(without_repeats)
        .map_err(refused)?;
    let settings = problems.iter().flat_map(|problem| {
        grids
            .iter()
            .map(move |grid| Setting::of_paper(*problem, *grid))
    });
    Ok(settings.collect())
}

fn without_repeats<T: PartialEq + Copy>(names: Vec<T>) -> Vec<T> {
    let is_first = |(place, name): &(usize, &T)| !names[..*place].contains(name);
    let first = names.iter().enumerate().filter(is_first);
    first.map(|(_, name)| *name).collect()
}

/// What was given, or else what is usual.
fn names<'a>(given: &'a [String], usual: &'a [&str]) -> impl Iterator<Item = &'a str> {
    let usual = if given.is_empty() { usual } else { &[] };
    given
        .iter()
        .map(String::as_str)
        .chain(usual.iter().copied())
}

fn policy(spec: &str) -> Result<PolicyKind, Failure> {
    PolicyKind::parse(spec).map_err(|errors| {
        let message: Vec<String> = errors.iter().map(ToString::to_string).collect();
        let hint = errors.iter().find_map(PolicyError::hint);
        Failure::usage(message.join("; ")).hint(hint)
    })
}

fn refused(error: TargetError) -> Failure {
    Failure::usage(&error).hint(error.hint())
}

fn write_json(results: &impl serde::Serialize, to: &mut dyn Write) -> Result<(), Failure> {
    // Through io::Error, so that a closed pipe is still known as one.
    serde_json::to_writer(&mut *to, results).map_err(io::Error::from)?;
    writeln!(to)?;
    Ok(())
}
