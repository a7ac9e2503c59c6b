//! What a pull runs, as a scenario describes it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use captime_forest::engine::EngineKind;
use captime_forest::{Metric, Normalise, Task};
use captime_limit::Contain;
use regex::Regex;
use serde::{Deserialize, Serialize};

use crate::markup::shell_word;
use crate::scenario::arguments::Arguments;
use crate::scenario::check::instances::glob;
use crate::scenario::stored;
use crate::scenario::template::{Filling, Piece, Template};
use crate::simulated::{TargetError, recorded, synthetic};
use crate::space::Space;

/// What a pull runs.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Target {
    /// A program.
    Command(Box<Command>),
    /// A random forest on a CSV file.
    Forest(Box<Forest>),
    /// One of the paper's problems, in virtual time.
    Synthetic(synthetic::Spec),
    /// Recorded runs, replayed in virtual time.
    Recorded(RecordedTarget),
    /// Runs of any configuration, made from runs that were measured once, in virtual time.
    Surrogate(SurrogateTarget),
    /// Your own program runs the pulls, through `captime ask`.
    External(External),
}

impl Target {
    /// Its name in scenarios.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Command(_) => "command",
            Self::Forest(_) => "forest",
            Self::Synthetic(_) => "synthetic",
            Self::Recorded(_) => "recorded",
            Self::Surrogate(_) => "surrogate",
            Self::External(_) => "external",
        }
    }

    /// Every path it holds.
    pub(in crate::scenario) fn paths_mut(&mut self) -> Vec<&mut PathBuf> {
        match self {
            Self::Command(command) => vec![&mut command.directory],
            Self::Forest(forest) => vec![&mut forest.data],
            Self::Recorded(recorded) => {
                let spec = &mut recorded.spec;
                [&mut spec.consumption]
                    .into_iter()
                    .chain(&mut spec.reward)
                    .collect()
            }
            Self::Surrogate(surrogate) => {
                let spec = &mut surrogate.spec;
                [&mut spec.runs.consumption, &mut spec.arms]
                    .into_iter()
                    .chain(&mut spec.runs.reward)
                    .collect()
            }
            Self::Synthetic(_) | Self::External(_) => vec![],
        }
    }

    /// The names of the instances that each round draws from. Empty if there are none or only the target knows them.
    pub fn instances(&self) -> &[String] {
        match self {
            Self::Command(command) => &command.instances,
            Self::External(external) => &external.instances,
            Self::Forest(_) | Self::Synthetic(_) | Self::Recorded(_) | Self::Surrogate(_) => &[],
        }
    }
}

impl Target {
    /// The names of the instances that are held out for the test.
    pub fn test_instances(&self) -> &[String] {
        match self {
            Self::Command(command) => &command.test,
            Self::External(external) => &external.test,
            Self::Recorded(recorded) => &recorded.test,
            Self::Surrogate(surrogate) => &surrogate.test,
            Self::Forest(_) | Self::Synthetic(_) => &[],
        }
    }

    /// Appends the held-out instances to those that pulls run on.
    pub(super) fn use_test_instances(&mut self) {
        match self {
            Self::Command(command) => command.instances.append(&mut command.test),
            Self::External(external) => external.instances.append(&mut external.test),
            Self::Recorded(recorded) => recorded.test.clear(),
            Self::Surrogate(surrogate) => surrogate.test.clear(),
            Self::Forest(_) | Self::Synthetic(_) => {}
        }
    }
}

/// A program to run, and how to read its reward.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Command {
    /// The program and its arguments.
    pub arguments: Arguments,
    /// Added to captime's own environment.
    pub env: Vec<(String, Template)>,
    /// Where it runs.
    pub directory: PathBuf,
    /// What it reads.
    pub stdin: Stdin,
    /// Training instances: one is drawn each round. Empty if there are none.
    pub instances: Vec<String>,
    /// Instances held out for judging the answer.
    pub test: Vec<String>,
    /// Exit codes that count as success.
    pub success: Vec<i32>,
    /// How the reward is read.
    pub reward: Reward,
    /// The answers that instances are known to have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expect: Option<Expect>,
    /// Where the program itself reports what it consumed. Then captime does not measure that, nor end it at its limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consumption: Option<ScoreSource>,
    /// How much of stdout and stderr is kept, each, in bytes.
    pub output_limit: u64,
    /// What it is kept from; other processes, where that is possible, if not given.
    #[serde(default)]
    pub contain: Option<Contain>,
}

/// What a command reads on its standard input, before its placeholders are filled in. As `Stdin<String>`, after.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stdin<T = Template> {
    /// Nothing.
    Empty,
    /// A file, relative to the command's directory.
    File(T),
    /// This text.
    Text(T),
}

/// A command with every placeholder filled in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilledCommand {
    /// The program and its arguments.
    pub arguments: Vec<String>,
    /// Added to captime's own environment.
    pub env: Vec<(String, String)>,
    /// Where it runs.
    pub directory: PathBuf,
    /// What it reads.
    pub stdin: Stdin<String>,
}

impl Command {
    /// Whether the program is passed this placeholder: as an argument, in its environment or on its standard input.
    pub fn uses(&self, piece: &Piece) -> bool {
        let stdin = match &self.stdin {
            Stdin::Empty => None,
            Stdin::File(text) | Stdin::Text(text) => Some(text),
        };
        let env = self.env.iter().map(|(_, value)| value);
        let mut all = self.arguments.templates.iter().chain(env).chain(stdin);
        all.any(|template| template.uses(piece))
    }

    /// The command of one pull.
    pub fn fill(&self, with: &Filling<'_>) -> FilledCommand {
        FilledCommand {
            arguments: self.arguments.fill(with),
            env: self
                .env
                .iter()
                .map(|(name, value)| (name.clone(), value.fill(with)))
                .collect(),
            directory: self.directory.clone(),
            stdin: match &self.stdin {
                Stdin::Empty => Stdin::Empty,
                Stdin::File(path) => Stdin::File(path.fill(with)),
                Stdin::Text(text) => Stdin::Text(text.fill(with)),
            },
        }
    }
}

impl FilledCommand {
    /// One line for a shell that runs the command as captime would, from the command's directory.
    pub fn shell_line(&self) -> String {
        self.line_of("")
    }

    /// The same under `captime exec` with these options.
    pub fn exec_line(&self, options: &str) -> String {
        let input = match self.stdin {
            Stdin::Empty => "",
            Stdin::File(_) | Stdin::Text(_) => "--input - ",
        };
        self.line_of(&format!("captime exec {options} {input}-- "))
    }

    /// Makes a line of this command work from any directory.
    pub fn from_elsewhere(&self, line: &str) -> String {
        let directory =
            std::path::absolute(&self.directory).unwrap_or_else(|_| self.directory.clone());
        let directory = shell_word(&directory.display().to_string());
        format!("(cd {directory} && {line})")
    }

    /// Variables come before the wrapper, which passes them on. After it, they would be taken for the program.
    fn line_of(&self, wrapper: &str) -> String {
        let env = (self.env.iter()).map(|(name, value)| format!("{name}={} ", shell_word(value)));
        let arguments: Vec<String> = self.arguments.iter().map(|word| shell_word(word)).collect();
        let line = format!(
            "{}{wrapper}{}",
            env.collect::<String>(),
            arguments.join(" ")
        );
        match &self.stdin {
            Stdin::Empty => line,
            Stdin::File(path) => format!("{line} < {}", shell_word(path)),
            Stdin::Text(text) => format!("printf %s {} | {line}", shell_word(text)),
        }
    }
}

/// How the reward of a command is read.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Reward {
    /// 1 if it ended with one of these codes: solved.
    Exit(Vec<i32>),
    /// What the result line of a wrapper says.
    Wrapper {
        /// How its cost becomes a reward; without it, a run that succeeded is worth 1.
        scale: Option<ScoreScale>,
    },
    /// A score found in what it wrote.
    Score {
        /// Where it is found.
        #[serde(flatten)]
        source: ScoreSource,
        /// How the score becomes a reward. Without it, the score is the reward.
        scale: Option<ScoreScale>,
    },
}

/// Where a number is found in what a command wrote.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ScoreSource {
    /// Where it wrote it.
    pub place: ScorePlace,
    /// What part of that is the number.
    pub form: ScoreForm,
}

/// The answers that instances are known to have. Instances without one accept any.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Expect {
    /// A column of the list of instances.
    Column {
        /// Its place in the line, counted from 1.
        place: usize,
        /// The answers by instance, without that column.
        known: BTreeMap<String, String>,
    },
    /// By patterns on the instance's name, the first that matches, each with the answers that are right.
    Name(Vec<(String, Vec<String>)>),
}

impl Expect {
    /// The instances of these lines: takes the column with the answers off them.
    pub fn instances(&mut self, lines: Vec<String>) -> Vec<String> {
        let Self::Column { place, known } = self else {
            return lines;
        };
        let split = |line: String| {
            let mut words: Vec<&str> = line.split_whitespace().collect();
            if words.len() < *place {
                return line;
            }
            let answer = words.remove(*place - 1).to_owned();
            let instance = words.join(" ");
            if !matches!(&*answer, "-" | "?") {
                known.insert(instance.clone(), answer);
            }
            instance
        };
        lines.into_iter().map(split).collect()
    }

    /// The answers that are right for this instance, if any is known.
    pub fn answers(&self, instance: &str) -> Option<&[String]> {
        match self {
            Self::Column { known, .. } => known.get(instance).map(std::slice::from_ref),
            Self::Name(patterns) => {
                let matches =
                    |pattern: &str| glob(pattern).is_some_and(|name| name.is_match(instance));
                let mut patterns = patterns.iter();
                let found = patterns.find(|(pattern, _)| matches(pattern));
                found.map(|(_, answers)| answers.as_slice())
            }
        }
    }

    /// The answers that are right, if this is none of them.
    pub fn contradicts(&self, instance: &str, answer: &str) -> Option<&[String]> {
        let right = self.answers(instance)?;
        let number = |text: &str| text.trim().parse::<f64>().ok();
        let is_same = |known: &String| match (number(known), number(answer)) {
            (Some(known), Some(answer)) => known == answer,
            _ => known.trim() == answer.trim(),
        };
        (!right.iter().any(is_same)).then_some(right)
    }
}

/// Where a score is written.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ScorePlace {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
    /// A file, relative to the command's directory.
    File(Template),
}

/// What part of a text is the score.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ScoreForm {
    /// The only group of the only match.
    Pattern(#[serde(with = "stored::pattern")] Regex),
    /// The only group of the last match, for programs that print a score per epoch.
    LastMatch(#[serde(with = "stored::pattern")] Regex),
    /// The value at this JSON pointer.
    Json(String),
    /// All of it.
    Whole,
}

/// The scores that are worth 0 and 1.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ScoreScale {
    /// Worth 0.
    pub worst: f64,
    /// Worth 1.
    pub best: f64,
    /// The score is a log loss, worth exp(-score) whatever `worst` and `best` are.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_log_loss: bool,
}

impl ScoreScale {
    /// A reward in proportion to the score.
    pub fn linear(worst: f64, best: f64) -> Self {
        Self {
            worst,
            best,
            is_log_loss: false,
        }
    }

    /// The reward of a score, and whether it was clamped to [0, 1]. Not a number stays that.
    pub fn reward(self, score: f64) -> (f64, bool) {
        if self.is_log_loss {
            return ((-score).exp(), false);
        }
        let reward = (score - self.worst) / (self.best - self.worst);
        if reward.is_nan() {
            (reward, false)
        } else {
            (reward.clamp(0.0, 1.0), !(0.0..=1.0).contains(&reward))
        }
    }
}

/// A random forest on a CSV file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Forest {
    /// The CSV file.
    pub data: PathBuf,
    /// The column to predict.
    pub predict: String,
    /// The share of rows that is trained on.
    pub train: f64,
    /// The task. By default, inferred from the column.
    pub task: Option<Task>,
    /// The implementation.
    pub engine: EngineKind,
    /// In-process, or in a process that can be killed.
    pub isolation: Isolation,
    /// Threads per fit.
    pub threads: usize,
    /// What the error is divided by.
    pub normalise: Normalise,
    /// The reward for classification.
    pub reward: Metric,
    /// Columns that are not predictors.
    pub drop: Vec<String>,
    /// The order of a factor's levels.
    pub levels: Levels,
}

/// Where a fit runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(clap::ValueEnum))]
#[serde(rename_all = "lowercase")]
pub enum Isolation {
    /// In this process; stopped by asking
    #[cfg_attr(feature = "cli", value(alias = "none"))]
    Thread,
    /// In its own process; stopped by killing it
    Process,
}

impl Isolation {
    /// Its name in scenarios and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Thread => "thread",
            Self::Process => "process",
        }
    }
}

/// The order of a factor's levels.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Levels {
    /// By name, except for the columns listed.
    Alphabetical(Vec<(String, Vec<String>)>),
    /// By the mean response in the training rows.
    ByMean,
}

/// Recorded runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RecordedTarget {
    /// Where they are.
    #[serde(flatten)]
    pub spec: recorded::Spec,
    /// Names of the instances held out for judging the answer. If empty, the study chooses.
    pub test: Vec<String>,
}

/// Runs of any configuration, made from recorded ones.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SurrogateTarget {
    /// Where these are.
    #[serde(flatten)]
    pub spec: recorded::SurrogateSpec,
    /// Instances kept back for judging the answer, by name.
    pub test: Vec<String>,
}

impl SurrogateTarget {
    /// Ready to run, without the instances that are kept back; none if that are all.
    #[doc(hidden)]
    pub fn open(&self, arms: &Space) -> Result<Option<recorded::Surrogate>, TargetError> {
        let is_for_training = |name: &str| !self.test.iter().any(|kept| kept == name);
        recorded::Surrogate::open(&self.spec, arms, is_for_training)
    }
}

/// Pulls that your own program runs.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct External {
    /// Instances that a policy may ask for. Empty if the scenario lists none.
    pub instances: Vec<String>,
    /// Instances held out for judging the answer.
    pub test: Vec<String>,
}
