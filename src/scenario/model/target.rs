//! What a pull runs, as a scenario describes it.

use std::path::PathBuf;

use regex::Regex;

use crate::scenario::template::{Arguments, Filling, Template, shell_word};
use crate::target::{recorded, synthetic};

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
        self.line_of("")
    }

    /// The same under `captime exec` with these options.
    pub fn exec_line(&self, options: &str) -> String {
        let input = match self.stdin {
            LaunchStdin::Empty => "",
            LaunchStdin::File(_) | LaunchStdin::Text(_) => "--input - ",
        };
        self.line_of(&format!("captime exec {options} {input}-- "))
    }

    /// A line of this launch for somebody who is not in its directory.
    pub fn from_elsewhere(&self, line: &str) -> String {
        let directory =
            std::path::absolute(&self.directory).unwrap_or_else(|_| self.directory.clone());
        let directory = shell_word(&directory.display().to_string());
        format!("(cd {directory} && {line})")
    }

    /// Variables come before the wrapper, which hands them on: behind it they would be taken for the program.
    fn line_of(&self, wrapper: &str) -> String {
        let env = (self.env.iter()).map(|(name, value)| format!("{name}={} ", shell_word(value)));
        let arguments: Vec<String> = self.arguments.iter().map(|word| shell_word(word)).collect();
        let line = format!(
            "{}{wrapper}{}",
            env.collect::<String>(),
            arguments.join(" ")
        );
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
