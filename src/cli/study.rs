//! `captime study`: compares policies over repetitions.

mod folder;
mod holdout;
mod real;

use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};

use super::scenario_file::read_scenario;
use super::{Exit, Failure};
use crate::policy::PolicyKind;
use crate::scenario::{Scenario, Target};
use crate::study::{
    Show, Standing, StudyError, StudyProgress, StudySetting, VirtualStudy, play_all, summary_csv,
    text,
};
use crate::target::TargetError;
use crate::target::synthetic::{Grid, SyntheticProblem};

/// The policies of the paper's main table.
const PAPER: [&str; 3] = ["rcucb", "ucb", "ts"];

/// The paper's T, the default number of rounds.
const ROUNDS: u64 = 100_000;

/// The default number of repetitions.
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
      it, and the same command resumes
  captime study replay.yaml --budget 1h,10h,100h --repetitions 20 \\
          --policy halving --policy race
      play on the training instances until this much CPU time is spent, judge the
      answer on the test instances (`--out` draws PAR10 against CPU time)
  captime study a.yaml b.yaml --halves 10 --budget 0.1B,1B,10B --policy race
      the same on random halves of the instances, B being the cost of one run
      of every arm: how much of the gap from the median to the best arm is
      closed, on average and at worst

Exit codes: 0 done; 1 captime itself failed; 2 bad usage or scenario; 130 interrupted (run the same command to resume real runs).";

/// Compare policies over repetitions: regret, share of censored rounds, quality of the answer
///
/// Plays every policy on every problem in virtual time, on all cores. The result does not depend on the number of threads.
/// Regret is measured against the best pair of the grid, whose gain is known exactly. On real targets, policies are compared by
/// cumulative reward and gain, and `--out` keeps their journals.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct StudyArgs {
    /// `paper` for the paper's synthetic problems, or a scenario; several with `--budget`
    #[arg(value_name = "SCENARIO|paper", required = true)]
    what: Vec<PathBuf>,
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
    /// Rounds of a repetition [default: the scenario's budget, or 100000; 2 x arms x limits on real targets]
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=1_000_000_000_000))]
    rounds: Option<u64>,
    /// CPU time to spend instead of rounds, on a recorded target: answers are judged by PAR10 on held-out instances.
    /// `0.1B` is a tenth of what one run of every arm costs at the largest limit
    #[arg(long, value_name = "TIME,...", value_delimiter = ',', value_parser = holdout::budget, conflicts_with = "rounds")]
    budget: Vec<holdout::HoldoutBudget>,
    /// Train on this many random halves of the instances, one after the other, and judge on the rest [default: train on
    /// all but the held-out instances, or on the first half]
    #[arg(long, value_name = "K", requires = "budget", value_parser = clap::value_parser!(u64).range(1..=10_000))]
    halves: Option<u64>,
    /// Pulls in flight, in virtual time; with `--budget` several numbers are compared [default: 1]
    #[arg(long, value_name = "N,...", value_delimiter = ',', value_parser = clap::value_parser!(u64).range(1..=100_000))]
    slots: Vec<u64>,
    /// Repetitions of every policy on every problem [default: 100; 1 with `--halves` or on real targets]
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    repetitions: Option<u64>,
    /// Random seed [default: 1, or the scenario's]
    #[arg(long)]
    seed: Option<u64>,
    /// How many repetitions to run at a time [default: one per CPU]
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=1024))]
    threads: Option<u64>,
    /// Output format on stdout
    #[arg(long, value_enum, default_value_t = StudyFormat::Text)]
    format: StudyFormat,
    /// Also write a page with charts (HTML), curves (SVG) and data (JSON, CSV) into this folder
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// Print no progress
    #[arg(long, short)]
    quiet: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum StudyFormat {
    /// A table per problem
    Text,
    /// A list with one object per problem, grid and policy
    Json,
    /// One row per problem, grid and policy
    Csv,
}

impl StudyArgs {
    fn is_paper(&self) -> bool {
        self.what.iter().any(|what| what.as_os_str() == "paper")
    }
}

/// Runs the command.
pub fn run(args: StudyArgs) -> Result<Exit, Failure> {
    if !args.budget.is_empty() {
        return holdout::run(&args);
    }
    // Read once, because its warnings are printed each time.
    let [file] = &args.what[..] else {
        let message = "only a study with `--budget` takes several scenarios";
        return Err(Failure::usage(message).hint(Some("study them one by one")));
    };
    let scenario = (!args.is_paper())
        .then(|| scenario(&args, file))
        .transpose()?;
    if let Some(scenario) = &scenario {
        needs_list(&args, scenario)?;
    }
    let plan = match scenario {
        // The gains of arms of an open space are not known.
        Some(scenario)
            if matches!(scenario.target, Target::Command(_) | Target::Forest(_))
                || scenario.space.opened().is_some() =>
        {
            if !args.slots.is_empty() {
                let message = "`--slots` is for virtual time, but this target takes real time";
                return Err(Failure::usage(message).hint(Some("leave it out")));
            }
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

/// Refuses policies that need a finite list of arms where the space is open.
fn needs_list(args: &StudyArgs, scenario: &Scenario) -> Result<(), Failure> {
    let given = given_policies(args)?;
    let mut finite = given.iter().filter(|policy| !policy.takes_more_arms());
    match (scenario.space.opened(), finite.next()) {
        (Some(_), Some(policy)) => Err(super::needs_sample(&format!(
            "the policy `{}`",
            policy.name()
        ))),
        _ => Ok(()),
    }
}

/// A bar for so much work, where one is wanted.
fn progress(args: &StudyArgs, all: u64) -> StudyProgress {
    if args.quiet {
        StudyProgress::silent()
    } else {
        bar_on_terminal(all)
    }
}

/// The progress of a study, as a bar on stderr.
struct Bar(ProgressBar);

/// A bar over this many rounds, or seconds of virtual time. Nothing if stderr is not a terminal.
fn bar_on_terminal(all: u64) -> StudyProgress {
    if !io::stderr().is_terminal() {
        return StudyProgress::silent();
    }
    let bar = ProgressBar::new(all);
    let template = "{bar:32} {percent:>3} %  {msg}  {elapsed} elapsed, {eta} left";
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(250));
    StudyProgress::shown_by(Bar(bar))
}

impl Show for Bar {
    fn advance(&self, more: u64) {
        self.0.inc(more);
    }

    fn at(&self, what: String) {
        self.0.set_message(what);
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// Writes the standings to the folder, if there is one, and to stdout.
fn show(args: &StudyArgs, standings: &[Standing]) -> Result<(), Failure> {
    if let Some(folder) = &args.out {
        folder::standings(standings, folder)?;
    }
    let mut stdout = BufWriter::new(io::stdout().lock());
    match args.format {
        StudyFormat::Text => text(standings, &mut stdout)?,
        StudyFormat::Json => write_json(&standings, &mut stdout)?,
        StudyFormat::Csv => summary_csv(standings, &mut stdout)?,
    }
    stdout.flush()?;
    Ok(())
}

fn given_policies(args: &StudyArgs) -> Result<Vec<PolicyKind>, Failure> {
    args.policy.iter().map(|spec| policy(spec)).collect()
}

fn threads(args: &StudyArgs) -> usize {
    let cores = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    args.threads.map_or_else(cores, |threads| threads as usize)
}

/// Pulls in flight: one by default.
fn slots(args: &StudyArgs) -> Vec<usize> {
    let given = args.slots.iter().map(|slots| *slots as usize);
    let given: Vec<usize> = given.collect();
    if given.is_empty() {
        vec![1]
    } else {
        without_repeats(given)
    }
}

fn only_slots(args: &StudyArgs) -> Result<usize, Failure> {
    let [slots] = slots(args)[..] else {
        let message = "only a study with `--budget` takes several numbers of slots";
        return Err(Failure::usage(message).hint(Some("study them one by one")));
    };
    Ok(slots)
}

/// What to play, and on how many threads.
fn plan(args: &StudyArgs, scenario: Option<&Scenario>) -> Result<VirtualStudy, Failure> {
    let mut plan = VirtualStudy {
        settings: vec![],
        policies: given_policies(args)?,
        rounds: args.rounds.unwrap_or(ROUNDS),
        repetitions: args.repetitions.unwrap_or(REPETITIONS),
        seed: args.seed.unwrap_or(1),
        threads: threads(args),
        slots: only_slots(args)?,
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

/// Takes what the scenario says, unless the command line says otherwise.
fn add_scenario(
    args: &StudyArgs,
    scenario: &Scenario,
    plan: &mut VirtualStudy,
) -> Result<(), Failure> {
    let setting = StudySetting::of_scenario(scenario)
        .map_err(|error| refused_study(&args.what[0], &error))?;
    plan.settings = vec![setting];
    if plan.policies.is_empty() {
        plan.policies.clone_from(&scenario.policies);
    }
    plan.rounds = args.rounds.or(scenario.budget.rounds).unwrap_or(ROUNDS);
    plan.seed = args.seed.unwrap_or(scenario.seed);
    let has_other_budget = scenario.budget.wall.is_some() || scenario.budget.consumption.is_some();
    if args.rounds.is_none() && has_other_budget {
        let rounds = plan.rounds;
        // If stderr itself is gone, this cannot be reported.
        let _ = writeln!(
            io::stderr(),
            "captime: a study counts rounds, not time: playing {rounds}; `--rounds` says otherwise"
        );
    }
    Ok(())
}

fn refused_study(file: &Path, error: &StudyError) -> Failure {
    Failure::usage(format!("{}: {error}", file.display())).hint(error.hint())
}

/// The scenario. Its problem and limits cannot come from options.
fn scenario(args: &StudyArgs, file: &Path) -> Result<Scenario, Failure> {
    for (option, given) in [("--problem", &args.problem), ("--grid", &args.grid)] {
        if !given.is_empty() {
            let message = format!("`{option}` goes with `paper`, not with a scenario");
            let hint =
                "set them in the scenario: `target: {synthetic: {problem: poscorr, grid: m1}}`";
            return Err(Failure::usage(message).hint(Some(hint)));
        }
    }
    let mut scenario = read_scenario(file)?;
    // Policies are compared from their first round on, so only the arms are taken over.
    super::scenario_file::take_over(&mut scenario, None)?;
    Ok(scenario)
}

fn paper_settings(args: &StudyArgs) -> Result<Vec<StudySetting>, Failure> {
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
            .map(move |grid| StudySetting::of_paper(*problem, *grid))
    });
    Ok(settings.collect())
}

fn without_repeats<T: PartialEq + Copy>(names: Vec<T>) -> Vec<T> {
    let is_first = |(place, name): &(usize, &T)| !names[..*place].contains(name);
    let first = names.iter().enumerate().filter(is_first);
    first.map(|(_, name)| *name).collect()
}

/// What was given, or else the defaults.
fn names<'a>(given: &'a [String], usual: &'a [&str]) -> impl Iterator<Item = &'a str> {
    let usual = if given.is_empty() { usual } else { &[] };
    given
        .iter()
        .map(String::as_str)
        .chain(usual.iter().copied())
}

fn policy(spec: &str) -> Result<PolicyKind, Failure> {
    PolicyKind::parse(spec).map_err(|errors| Failure::usage(&errors).hint(errors.hint()))
}

fn refused(error: TargetError) -> Failure {
    Failure::usage(&error).hint(error.hint())
}

fn write_json(results: &impl serde::Serialize, to: &mut dyn Write) -> Result<(), Failure> {
    // Through io::Error, so that a closed pipe is still recognised.
    serde_json::to_writer(&mut *to, results).map_err(io::Error::from)?;
    writeln!(to)?;
    Ok(())
}
