//! A scenario as the rest of the program uses it: plain data, checked.

use std::path::{Path, PathBuf};

use regex::Regex;

use super::template::{Arguments, Filling, Template, shell_word};
use crate::policy::{PolicyKind, Problem};
use crate::round::{Curve, Limit, LimitGrid, Price};
use crate::space::Space;
use crate::target::{recorded, synthetic};

/// Everything a run is about.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// Names the run's folder.
    pub name: String,
    /// The file it was read from, as it was named.
    pub file: PathBuf,
    /// The folder that paths in it are relative to, and where commands run.
    pub folder: PathBuf,
    /// The text it was read from, word for word.
    pub text: String,
    /// What a pull runs.
    pub target: Target,
    /// The arms.
    pub space: Space,
    /// The limits.
    pub limits: Limits,
    /// What consumption and being censored cost.
    pub price: Prices,
    /// The policies: `run` uses the first, `study` sets them all against each other. At least one.
    pub policies: Vec<PolicyKind>,
    /// When to stop.
    pub budget: Budget,
    /// How many pulls at a time.
    pub slots: Slots,
    /// Whether slots have CPUs of their own.
    pub pin: Pin,
    /// Where all chance comes from.
    pub seed: u64,
    /// Whether to stop when the first pulls all fail.
    pub stop_on_first_failures: bool,
    /// How often a run that was lost with its launcher is run again.
    pub retries: u32,
}

impl Scenario {
    /// The policy that chooses.
    ///
    /// # Panics
    /// Never: a checked scenario has at least one.
    pub fn policy(&self) -> &PolicyKind {
        self.policies.first().expect("a scenario has a policy")
    }

    /// Cost and penalty once the largest limit is known, which is the unit unless one is given.
    pub fn price(&self, max: Limit) -> Price {
        let unit = self.price.unit.unwrap_or(max.get());
        Price::of(self.price.cost.clone(), self.price.penalty.clone(), unit)
    }

    /// What the policy is told, once the limits are known.
    pub fn problem(&self, limits: LimitGrid) -> Problem {
        let price = self.price(limits.max());
        Problem {
            arms: self.space.len(),
            limits,
            price,
        }
    }

    /// A path as the scenario writes it: relative to its folder where it lies there.
    pub fn path_as_written<'p>(&self, path: &'p Path) -> &'p Path {
        path.strip_prefix(&self.folder).unwrap_or(path)
    }

    /// The command line that runs this pull by hand, for people to copy; none where nothing is run.
    ///
    /// Commands run in their own directory; for a forest it is `captime forest` in the scenario's folder.
    pub fn command_line(&self, with: &Filling<'_>) -> Option<String> {
        match &self.target {
            Target::Command(command) => Some(command.launch(with).shell_line()),
            Target::Forest(forest) => Some(self.forest_line(forest, with)),
            Target::Synthetic(_) | Target::Recorded(_) | Target::External(_) => None,
        }
    }

    fn forest_line(&self, forest: &Forest, with: &Filling<'_>) -> String {
        let mut words = vec![
            "captime".to_owned(),
            "forest".into(),
            self.path_as_written(&forest.data).display().to_string(),
            "--predict".into(),
            forest.predict.clone(),
        ];
        let mut option = |name: &str, value: String| words.extend([format!("--{name}"), value]);
        option("train", forest.train.to_string());
        if forest.task != Task::Auto {
            option("task", forest.task.name().into());
        }
        if forest.engine != Engine::Builtin {
            option("engine", forest.engine.name().into());
        }
        if forest.normalise != Normalise::Range {
            option("normalise", forest.normalise.name().into());
        }
        if forest.threads != 1 {
            option("threads", forest.threads.to_string());
        }
        for (name, value) in with.configuration.iter() {
            option(&name.replace('_', "-"), value.to_string());
        }
        let unit = if self.limits.of == Resource::Work {
            ""
        } else {
            "s"
        };
        option("limit", format!("{}{unit}", with.limit));
        option("resource", self.limits.of.name().into());
        option("seed", with.seed.to_string());
        words
            .iter()
            .map(|word| shell_word(word))
            .collect::<Vec<_>>()
            .join(" ")
    }

    /// The limit on CPU time of a pull: what the policy granted if that is CPU time, else the guard.
    pub fn cpu_limit(&self, limit: Limit) -> Option<f64> {
        match self.limits.of {
            Resource::Cpu => Some(limit.get()),
            Resource::Wall | Resource::Work => self.limits.guards.cpu,
        }
    }
}

/// What a pull runs.
#[derive(Debug, Clone)]
pub enum Target {
    /// A program.
    Command(Box<Command>),
    /// A random forest on a CSV file.
    Forest(Box<Forest>),
    /// One of the paper's problems, in virtual time.
    Synthetic(synthetic::Spec),
    /// Runs that somebody measured once, replayed in virtual time.
    Recorded(Recorded),
    /// Somebody else runs the pulls, through `captime ask`.
    External(External),
}

impl Target {
    /// As scenarios call it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Command(_) => "command",
            Self::Forest(_) => "forest",
            Self::Synthetic(_) => "synthetic",
            Self::Recorded(_) => "recorded",
            Self::External(_) => "external",
        }
    }

    /// The instances a round is drawn from, by name; empty where there are none or the target keeps them to itself.
    pub fn instances(&self) -> &[String] {
        match self {
            Self::Command(command) => &command.instances,
            Self::External(external) => &external.instances,
            Self::Forest(_) | Self::Synthetic(_) | Self::Recorded(_) => &[],
        }
    }
}

/// A program to run, and how to read its reward.
#[derive(Debug, Clone)]
pub struct Command {
    /// The program and its arguments.
    pub arguments: Arguments,
    /// Added to our own environment.
    pub env: Vec<(String, Template)>,
    /// Where it runs.
    pub directory: PathBuf,
    /// What it reads.
    pub stdin: Stdin,
    /// Training instances: one is drawn each round. Empty if there are none.
    pub instances: Vec<String>,
    /// Instances kept back for judging the answer.
    pub test: Vec<String>,
    /// Exit codes of a normal end.
    pub success: Vec<i32>,
    /// How the reward is read.
    pub reward: Reward,
    /// How much of stdout and stderr is kept, each, in bytes.
    pub output_limit: u64,
}

/// What a command reads on its standard input.
#[derive(Debug, Clone, PartialEq)]
pub enum Stdin {
    /// Nothing.
    Empty,
    /// A file.
    File(Template),
    /// This text.
    Text(Template),
}

/// A command with every placeholder filled in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launch {
    /// The program and its arguments.
    pub arguments: Vec<String>,
    /// Added to our own environment.
    pub env: Vec<(String, String)>,
    /// Where it runs.
    pub directory: PathBuf,
    /// What it reads.
    pub stdin: LaunchStdin,
}

/// What a launched command reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LaunchStdin {
    /// Nothing.
    Empty,
    /// A file, relative to the directory.
    File(PathBuf),
    /// This text.
    Text(String),
}

impl Command {
    /// The command of one pull.
    pub fn launch(&self, with: &Filling<'_>) -> Launch {
        Launch {
            arguments: self.arguments.fill(with),
            env: self
                .env
                .iter()
                .map(|(name, value)| (name.clone(), value.fill(with)))
                .collect(),
            directory: self.directory.clone(),
            stdin: match &self.stdin {
                Stdin::Empty => LaunchStdin::Empty,
                Stdin::File(path) => LaunchStdin::File(self.directory.join(path.fill(with))),
                Stdin::Text(text) => LaunchStdin::Text(text.fill(with)),
            },
        }
    }
}

impl Launch {
    /// One line that a shell runs as we would, from the command's directory.
    pub fn shell_line(&self) -> String {
        let mut words: Vec<String> = self
            .env
            .iter()
            .map(|(name, value)| format!("{name}={}", shell_word(value)))
            .collect();
        words.extend(self.arguments.iter().map(|argument| shell_word(argument)));
        let line = words.join(" ");
        match &self.stdin {
            LaunchStdin::Empty => line,
            LaunchStdin::File(path) => {
                let path = path.strip_prefix(&self.directory).unwrap_or(path);
                format!("{line} < {}", shell_word(&path.display().to_string()))
            }
            LaunchStdin::Text(text) => format!("printf %s {} | {line}", shell_word(text)),
        }
    }
}

/// How the reward of a command is read.
#[derive(Debug, Clone)]
pub enum Reward {
    /// 1 if it ended with one of these codes: solved.
    Exit(Vec<i32>),
    /// A score found in what it wrote.
    Score {
        /// Where it wrote it.
        place: ScorePlace,
        /// What part of that is the score.
        form: ScoreForm,
        /// How the score becomes a reward; without it, it is one already.
        scale: Option<ScoreScale>,
    },
}

/// Where a score is written.
#[derive(Debug, Clone, PartialEq)]
pub enum ScorePlace {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
    /// A file, relative to the command's directory.
    File(Template),
}

/// What part of a text is the score.
#[derive(Debug, Clone)]
pub enum ScoreForm {
    /// The only group of the only match.
    Pattern(Regex),
    /// The value at this JSON pointer.
    Json(String),
    /// All of it.
    Whole,
}

/// The scores worth 0 and 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ScoreScale {
    /// Worth 0.
    pub worst: f64,
    /// Worth 1.
    pub best: f64,
}

impl ScoreScale {
    /// The reward of a score, and whether it had to be clamped to [0, 1]; not a number stays none.
    pub fn reward(self, score: f64) -> (f64, bool) {
        let reward = (score - self.worst) / (self.best - self.worst);
        if reward.is_nan() {
            (reward, false)
        } else {
            (reward.clamp(0.0, 1.0), !(0.0..=1.0).contains(&reward))
        }
    }
}

/// A random forest on a CSV file.
#[derive(Debug, Clone, PartialEq)]
pub struct Forest {
    /// The CSV file.
    pub data: PathBuf,
    /// The column to predict.
    pub predict: String,
    /// The share of rows that is trained on.
    pub train: f64,
    /// Regression, classification, or what the column looks like.
    pub task: Task,
    /// Which implementation.
    pub engine: Engine,
    /// In a thread of ours, or in a process that can be killed.
    pub isolation: Isolation,
    /// Threads per fit.
    pub threads: usize,
    /// What the error is divided by.
    pub normalise: Normalise,
    /// Columns that are no predictors.
    pub drop: Vec<String>,
    /// In what order the levels of a factor stand.
    pub levels: Levels,
}

/// What a forest predicts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Task {
    /// What the column looks like.
    Auto,
    /// A number.
    Regression,
    /// A class.
    Classification,
}

impl Task {
    /// As scenarios call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Regression => "regression",
            Self::Classification => "classification",
        }
    }
}

/// Which forest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    /// Ours.
    Builtin,
    /// That of smartcore.
    Smartcore,
    /// That of linfa.
    Linfa,
}

impl Engine {
    /// As scenarios call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Builtin => "builtin",
            Self::Smartcore => "smartcore",
            Self::Linfa => "linfa",
        }
    }
}

/// Where a forest grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Isolation {
    /// In a thread of ours; stopped by asking.
    Thread,
    /// In a process of its own; stopped by killing.
    Process,
}

impl Isolation {
    /// As scenarios call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Thread => "thread",
            Self::Process => "process",
        }
    }
}

/// What the root mean squared error is divided by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Normalise {
    /// The range of the column.
    Range,
    /// Its standard deviation.
    Sd,
}

impl Normalise {
    /// As scenarios call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Range => "range",
            Self::Sd => "sd",
        }
    }
}

/// In what order the levels of a factor stand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Levels {
    /// By name, except those of the columns listed.
    Alphabetical(Vec<(String, Vec<String>)>),
    /// By the mean response in the training rows.
    ByMean,
}

/// Runs that somebody measured once.
#[derive(Debug, Clone, PartialEq)]
pub struct Recorded {
    /// Where they are.
    pub spec: recorded::Spec,
    /// Instances kept back for judging the answer, by name; empty leaves the choice to the study.
    pub test: Vec<String>,
}

/// Pulls that somebody else runs.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct External {
    /// Instances a policy may ask for; empty if the scenario lists none.
    pub instances: Vec<String>,
    /// Instances kept back for judging the answer.
    pub test: Vec<String>,
}

/// What may be limited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resource {
    /// Wall-clock time.
    Wall,
    /// CPU time of the whole process tree.
    Cpu,
    /// A plain count.
    Work,
}

impl Resource {
    /// As scenarios call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Wall => "wall",
            Self::Cpu => "cpu",
            Self::Work => "work",
        }
    }

    /// An amount of it, for people.
    pub fn amount(self, value: f64) -> String {
        match self {
            Self::Wall | Self::Cpu => crate::quantity::seconds(value),
            Self::Work => format!("{value}"),
        }
    }
}

/// What the policy limits and prices, and the guards around that.
#[derive(Debug, Clone, PartialEq)]
pub struct Limits {
    /// The resource.
    pub of: Resource,
    /// Fixed bounds on every pull.
    pub guards: Guards,
    /// The admissible limits, or how to find them.
    pub from: LimitSource,
    /// How long a command may tidy up after SIGTERM, in seconds; 0 kills at once.
    pub grace: f64,
}

/// Fixed bounds on every pull; to hit one is a failure.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Guards {
    /// Seconds.
    pub wall: Option<f64>,
    /// Seconds.
    pub cpu: Option<f64>,
    /// A plain count, for calibrating a forest.
    pub work: Option<f64>,
    /// Bytes.
    pub memory: Option<u64>,
}

impl Guards {
    /// The guard on this resource.
    pub fn of(&self, resource: Resource) -> Option<f64> {
        match resource {
            Resource::Wall => self.wall,
            Resource::Cpu => self.cpu,
            Resource::Work => self.work,
        }
    }
}

/// Where limits come from.
#[derive(Debug, Clone, PartialEq)]
pub enum LimitSource {
    /// Given.
    Grid(LimitGrid),
    /// Only the largest is given: z-RCUCB makes its own grid.
    Max(Limit),
    /// Found by running arms once under the guard of the same resource.
    Calibrate(Calibrate),
}

/// How limits are found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Calibrate {
    /// How many limits.
    pub points: usize,
    /// Between which quantiles of the consumptions, type 7.
    pub quantiles: (f64, f64),
    /// With how many arms, a seeded sample; all if not given.
    pub arms: Option<usize>,
}

/// What consumption and being censored cost; a [`Price`] once the unit is known.
#[derive(Debug, Clone)]
pub struct Prices {
    /// c.
    pub cost: Curve,
    /// lambda.
    pub penalty: Curve,
    /// Consumption per x; the largest limit if not given.
    pub unit: Option<f64>,
}

/// When to stop: whichever comes first.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Budget {
    /// So many rounds.
    pub rounds: Option<u64>,
    /// So many seconds.
    pub wall: Option<f64>,
    /// So much of the limited resource, in seconds or counts.
    pub consumption: Option<f64>,
}

/// How many pulls at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Slots {
    /// As many as CPUs that we may use.
    Auto,
    /// So many.
    Count(usize),
}

/// Whether slots have CPUs of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pin {
    /// If there are enough.
    Auto,
    /// Never.
    Never,
}

/// `path` as seen from the scenario's folder.
pub(super) fn resolve(folder: &Path, path: &str) -> PathBuf {
    folder.join(path)
}
