//! `captime test`: the answer, the default and others side by side, on held-out instances.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Value, json};

use super::best::read_limit;
use super::driving::drive;
use super::run_folder::{self, failure};
use super::{Exit, Failure, TextOrJson, exit_code, report};
use crate::answer::{FinishedRun, PathStep, shortened};
use crate::journal::{EndReason, Learned};
use crate::markup::Visible;
use crate::orchestrator::{
    Budget, Now, Run, RunSetup, TestError, TestOn, TestReader, Watch, test_folder,
};
use crate::progress::Words;
use crate::quantity::{counted, whole};
use crate::report::{History, write_report};
use crate::round::ArmId;
use crate::scenario::{Resource, Scenario, Target, TestPlan, find_instances};
use crate::space::{Configuration, Space};
use crate::target::prepare;

const EXAMPLES: &str = "\
Examples:
  captime test                             answer and default of the newest run
  captime test minisat --arms best,default,top:5 --seeds 3
  captime test minisat --on unseen.txt --limit 60s --format json
  captime test minisat --ablation          which of the changed parameters matter";

/// Steps of an ablation; the last makes all changes that are left.
const MOST_STEPS: usize = 12;
/// Without instances, every arm runs with this many seeds.
const SEEDS_WITHOUT_INSTANCES: u32 = 10;

/// Run the answer and the default side by side on held-out instances.
///
/// Every arm runs on every instance at the full limit, with the same seeds. Prints solved share, PAR10, mean score and the paired
/// difference from the default with its 95 % interval. `--ablation` instead runs what lies between the default and the answer: each step
/// changes one more parameter, in the order of what a model of the gain says it is worth. The test is recorded in the run's folder: Ctrl-C to stop, same command to
/// resume. A finished test is printed again. The report of the run shows it.
#[derive(Debug, Args)]
#[command(after_help = format!("{EXAMPLES}\n\n{}", exit_code::RECORD))]
pub struct TestArgs {
    /// A run's folder, or its name in runs/ [default: the newest run]
    run: Option<PathBuf>,
    #[command(flatten)]
    options: TestOptions,
    /// Output format
    #[arg(long, value_enum, default_value_t = TextOrJson::Text)]
    format: TextOrJson,
}

/// What to test.
#[derive(Debug, Clone, Args)]
pub struct TestOptions {
    /// Instances: `test` (held out by the scenario), `training`, or a file that lists some [default: test if there are any]
    #[arg(long, value_name = "WHICH")]
    on: Option<String>,
    /// Arms: best, default, top:N or numbers, with commas
    #[arg(long, value_name = "ARMS", default_value = "best,default")]
    arms: String,
    /// Instead, run the configurations on the path from the default to the answer, one changed parameter after another
    #[arg(long, conflicts_with = "arms")]
    ablation: bool,
    /// How many seeds every arm runs with on every instance [default: 1, or 10 without instances]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    seeds: Option<u32>,
    /// The limit of every run [default: the largest of the run]
    #[arg(long, value_name = "LIMIT")]
    limit: Option<String>,
    /// How many runs at a time [default: what the scenario says]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=4096))]
    slots: Option<u64>,
    /// Print no progress
    #[arg(long, short)]
    quiet: bool,
}

impl TestOptions {
    /// What `captime run --then-test` tests.
    pub(super) fn usual(quiet: bool) -> Self {
        Self {
            on: None,
            arms: "best,default".into(),
            ablation: false,
            seeds: None,
            limit: None,
            slots: None,
            quiet,
        }
    }
}

/// Runs the command.
pub fn run(args: &TestArgs) -> Result<Exit, Failure> {
    let folder = run_folder::find_or_latest(args.run.as_deref())?;
    let Some(outcome) = test(&folder, &args.options)? else {
        return Ok(Exit::Interrupted);
    };
    let to = std::io::stdout().lock();
    match args.format {
        TextOrJson::Text => outcome.write(&mut Visible(to))?,
        TextOrJson::Json => {
            let mut to = to;
            serde_json::to_writer_pretty(&mut to, &outcome.json()).map_err(std::io::Error::from)?;
            writeln!(to)?;
        }
    }
    Ok(Exit::Done)
}

/// A finished test.
pub(super) struct TestOutcome {
    name: String,
    folder: PathBuf,
    resource: Resource,
    on: Option<TestOn>,
    pub(super) read: TestReader,
}

/// Tests the run in `folder`, or resumes that; none if it was interrupted.
pub(super) fn test(folder: &Path, options: &TestOptions) -> Result<Option<TestOutcome>, Failure> {
    let mut history = History::open(folder).map_err(|error| report::failure(&error))?;
    history
        .catch_up()
        .map_err(|error| report::failure(&error))?;
    let on = match &options.on {
        None => history.resolved.test_on(),
        Some(text) => Some(which(text, history.scenario())?),
    };
    let scenario = scenario(&history, options, on.as_ref())?;
    let test = scenario.test.clone().expect("the scenario of a test");
    let at = test_folder(folder, &scenario);
    let target = prepare(&scenario, &at)?;
    let setup = RunSetup::of(&scenario, &target);
    let total = test.rounds(setup.plan.instances);
    let watch = Counted {
        done: 0,
        total,
        is_quiet: options.quiet,
    };
    let run = Run::open(&at, &setup, watch).map_err(|error| failure(&error))?;
    let budget = Budget {
        rounds: Some(total),
        ..Budget::default()
    };
    let mut run = run
        .with_budget(budget)
        .following(test.sequence(&setup.plan));
    run.watch.done = run.outcomes();
    if !options.quiet && run.watch.done < total {
        say(&format!(
            "testing {} on {}, {} in all{}",
            counted(test.arms.len() as u64, "arm"),
            test.on,
            counted(total, "run"),
            match run.watch.done {
                0 => String::new(),
                done => format!("; resuming after {done}"),
            }
        ));
    }
    if run.over().is_none() {
        let slots = options.slots.map(|slots| slots as usize);
        let slots = slots.unwrap_or_else(|| target.default_slots(scenario.slots));
        let driven = drive(&scenario, target, run, slots, scenario.pin)?;
        if driven.reason == EndReason::Interrupted {
            let done: u64 = driven.runs.iter().map(Run::outcomes).sum();
            say(&format!(
                "stopped after {done} of {}; run the same command to resume",
                counted(total, "run")
            ));
            return Ok(None);
        }
        // The report can be made at any time, so not being able to write it now is no reason to fail.
        if let Err(error) = write_report(folder) {
            say(&format!("warning: cannot write the report: {error}"));
        }
    }
    let read = TestReader::read(&at).map_err(|error| failure(&error))?;
    Ok(Some(TestOutcome {
        name: history.header.name.clone(),
        folder: at,
        resource: history.resource(),
        on,
        read: read.expect("the journal of a test"),
    }))
}

fn say(text: &str) {
    // Not being able to say so is no reason to stop.
    let _ = writeln!(std::io::stderr().lock(), "captime: {text}");
}

fn which(text: &str, scenario: &Scenario) -> Result<TestOn, Failure> {
    let found = match text {
        "test" => return Ok(TestOn::Test),
        "training" => return Ok(TestOn::Training),
        // A pattern is relative to the scenario's folder, as in the scenario; a file is where you are.
        pattern if pattern.contains(['*', '?', '[']) => find_instances(&scenario.folder, pattern),
        file => find_instances(Path::new("."), file),
    };
    let names =
        found.map_err(|fault| Failure::usage(format!("--on: {fault}")).hint(fault.hint()))?;
    let is_elsewhere = matches!(&scenario.target, Target::Command(command) if command.directory != scenario.folder);
    let from_anywhere = |name: String| {
        let path = scenario.folder.join(&name);
        if is_elsewhere && path.exists() {
            path.to_string_lossy().into_owned()
        } else {
            name
        }
    };
    Ok(TestOn::Listed(
        names.into_iter().map(from_anywhere).collect(),
    ))
}

/// The scenario of the test.
fn scenario(
    history: &History,
    options: &TestOptions,
    on: Option<&TestOn>,
) -> Result<Scenario, Failure> {
    let usage = |error: TestError| Failure::usage(&error).hint(error.hint());
    let Some(largest) = history.limits().and_then(<[_]>::last) else {
        return Err(
            Failure::usage("the limits of this run are still being calibrated")
                .hint(Some("resume it with `captime run`, then test it")),
        );
    };
    let limit = match &options.limit {
        Some(limit) => read_limit(limit, history.resource())?,
        None => *largest,
    };
    let Tested {
        arms,
        answer,
        path,
        space,
    } = if options.ablation {
        ablation(history)?
    } else {
        arms(history, &options.arms)?
    };
    let without = if on.is_none() {
        SEEDS_WITHOUT_INSTANCES
    } else {
        1
    };
    let is_unsolved = |run: &FinishedRun| {
        run.is_failed || (run.reach >= limit.get() && !run.is_solved_within(limit.get()))
    };
    let unsolved = |arm: &&ArmId| history.evidence().of(**arm).iter().any(is_unsolved);
    let plan = TestPlan {
        unsolved: arms.iter().filter(unsolved).copied().collect(),
        arms,
        answer,
        seeds: options.seeds.unwrap_or(without),
        on: match on {
            Some(TestOn::Test) => "the test instances".into(),
            Some(TestOn::Training) => "the training instances".into(),
            Some(TestOn::Listed(_)) => {
                format!("the instances of {}", options.on.as_deref().unwrap_or(""))
            }
            None => "fresh seeds".into(),
        },
        path,
    };
    let unit = history.scenario().price.unit.unwrap_or(largest.get());
    history
        .resolved
        .for_test(&space, plan, on, limit, unit)
        .map_err(usage)
}

/// The arms to test.
struct Tested {
    /// Each once.
    arms: Vec<ArmId>,
    answer: Option<ArmId>,
    /// What changes with each but the first, if they lead from the default to the answer.
    path: Vec<String>,
    /// The space they are arms of.
    space: Space,
}

/// The configurations on the path from the default to the answer.
fn ablation(history: &History) -> Result<Tested, Failure> {
    let Some(best) = history.answer() else {
        return Err(no_answer().hint(Some("let it run longer")));
    };
    if best.pull.arm.index() == 0 {
        return Err(Failure::usage(
            "the answer is the default configuration, so nothing changed",
        ));
    }
    let steps = shortened(history.path(&best), MOST_STEPS);
    if steps.is_empty() {
        let why = if history.space.parameters().is_empty() {
            "the arms of this run have no parameters, so there is no path between them"
        } else {
            "too few rounds to say which of the changed parameters matter"
        };
        return Err(Failure::usage(why));
    }
    let configurations: Vec<Configuration> = steps
        .iter()
        .map(|step| step.configuration.clone())
        .collect();
    let extended = history.scenario().space.with_arms(&configurations);
    let (space, along) = extended.map_err(Failure::internal)?;
    let default = ArmId::from_index(0);
    Ok(Tested {
        arms: std::iter::once(default).chain(along).collect(),
        answer: Some(best.pull.arm),
        path: steps.iter().map(PathStep::in_words).collect(),
        space,
    })
}

fn no_answer() -> Failure {
    Failure::usage("there is no answer to test: no pull of this run has earned a reward")
}

/// The arms that the command line names.
fn arms(history: &History, wanted: &str) -> Result<Tested, Failure> {
    let answer = history.answer().map(|best| best.pull.arm);
    let mut arms: Vec<ArmId> = vec![];
    for word in wanted.split(',').map(str::trim) {
        let top = word.strip_prefix("top:").map(str::parse::<usize>);
        let number = word.parse().ok().and_then(ArmId::from_number);
        match (word, top, number) {
            ("best", ..) => match answer {
                Some(arm) => arms.push(arm),
                None => {
                    return Err(no_answer().hint(Some(
                        "let it run longer, or name arms: `--arms default,2,3`",
                    )));
                }
            },
            ("default", ..) => arms.push(ArmId::from_index(0)),
            (_, Some(Ok(count)), _) if count > 0 => arms.extend(history.best_arms(count)),
            (_, _, Some(arm)) if arm.index() < history.space.len() => arms.push(arm),
            (_, _, Some(_)) => {
                return Err(Failure::usage(format!(
                    "--arms: there is no arm {word}, only 1 to {}",
                    history.space.len()
                )));
            }
            _ => {
                return Err(Failure::usage(format!("--arms: `{word}` is not an arm"))
                    .hint(Some("write best, default, top:5 or numbers, with commas")));
            }
        }
    }
    let mut seen = std::collections::HashSet::new();
    arms.retain(|arm| seen.insert(*arm));
    Ok(Tested {
        arms,
        answer,
        path: vec![],
        space: history.space.clone(),
    })
}

impl TestOutcome {
    fn words(&self) -> Words<'_> {
        Words {
            space: &self.read.space,
            resource: self.resource,
        }
    }

    pub(super) fn write(&self, to: &mut dyn Write) -> std::io::Result<()> {
        let read = &self.read;
        let words = self.words();
        let seeds = match (read.instances, read.test.seeds) {
            (0, seeds) => counted(u64::from(seeds), "seed"),
            (instances, 1) => counted(instances as u64, "instance"),
            (instances, seeds) => {
                format!(
                    "{}, {seeds} seeds each",
                    counted(instances as u64, "instance")
                )
            }
        };
        writeln!(
            to,
            "{}: tested on {} ({seeds}) with a limit of {}",
            self.name,
            read.test.on,
            words.limit(read.limit)
        )?;
        if self.on == Some(TestOn::Training) {
            writeln!(
                to,
                "The answer was chosen on these instances, so its figures are too good. Keep some back with `test:`."
            )?;
        }
        for (place, tested) in read.arms.iter().enumerate() {
            let amount = |value| words.amount(value);
            if let Some(step) = place.checked_sub(1)
                && let Some(change) = read.test.path.get(step)
            {
                writeln!(to)?;
                let step_name = format!("step {place}");
                writeln!(to, "{step_name:9} {change}")?;
                writeln!(to, "          {}", tested.values.in_words(words.resource))?;
                if let Some(Some(differences)) = read.steps.get(step) {
                    let text = differences.in_words(&tested.values, amount);
                    writeln!(to, "          against the step before: {text}")?;
                }
                continue;
            }
            let role = match tested.arm {
                arm if Some(arm) == read.test.answer && arm.index() == 0 => "answer, the default",
                arm if Some(arm) == read.test.answer => "answer",
                arm if arm.index() == 0 => "default",
                _ => "",
            };
            writeln!(to)?;
            writeln!(to, "{role:9} {}", words.arm(tested.arm))?;
            writeln!(to, "          {}", tested.values.in_words(words.resource))?;
            if let Some(differences) = &tested.against_default {
                let text = differences.in_words(&tested.values, amount);
                writeln!(to, "          against the default: {text}")?;
            }
        }
        writeln!(to)?;
        writeln!(
            to,
            "journal   {}",
            self.folder.join(crate::journal::FILE).display()
        )
    }

    pub(super) fn json(&self) -> Value {
        let read = &self.read;
        let one = |(place, tested): (usize, &crate::answer::Tested)| {
            let step = place.checked_sub(1);
            json!({
                "arm": tested.arm,
                "configuration": read.space.configuration(tested.arm),
                "change": step.and_then(|step| read.test.path.get(step)),
                "against_step_before": step.and_then(|step| read.steps.get(step)),
                "is_answer": Some(tested.arm) == read.test.answer,
                "is_default": tested.arm.index() == 0,
                "values": tested.values,
                "gain": tested.gain,
                "against_default": tested.against_default,
            })
        };
        json!({
            "name": self.name,
            "on": read.test.on,
            "instances": read.instances,
            "seeds": read.test.seeds,
            "limit": read.limit,
            "resource": read.resource.name(),
            "runs": read.done,
            "arms": read.arms.iter().enumerate().map(one).collect::<Vec<_>>(),
            "folder": self.folder,
        })
    }
}

/// Says now and then how far it has come.
struct Counted {
    done: u64,
    total: u64,
    is_quiet: bool,
}

impl Watch for Counted {
    fn learned(&mut self, _: &Learned, _: &Now<'_>) {
        self.done += 1;
        let step = (self.total / 10).max(1);
        if !self.is_quiet && (self.done == self.total || self.done.is_multiple_of(step)) {
            say(&format!(
                "{} of {}",
                whole(self.done),
                counted(self.total, "run")
            ));
        }
    }
}
