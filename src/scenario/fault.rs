//! Everything that can be wrong with a scenario. What to write instead is in [`hint`].

mod hint;

use std::path::PathBuf;

use super::source::Span;
use crate::learner::engine::Setting;
use crate::policy::PolicyError;
use crate::quantity::QuantityError;
use crate::round::{ArmId, LimitError, PriceError};
use crate::space::SpaceError;
use crate::target::TargetError;

/// Something wrong, and where.
#[derive(Debug, Clone, PartialEq)]
pub struct Mistake {
    /// Where in the text.
    pub at: Span,
    /// What.
    pub fault: Fault,
}

/// What is wrong.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[expect(missing_docs, reason = "fields are what the messages say they are")]
pub enum Fault {
    // The text itself.
    #[error("this is not YAML: {reason}")]
    NotYaml { reason: String },
    #[error("a tab in the indentation")]
    Tab,
    #[error("the key `{key}` stands twice")]
    Twice { key: String },
    #[error("nested more than {most} levels deep")]
    TooDeep { most: usize },
    #[error("this grows too large, aliases included")]
    TooLarge,
    #[error("a second document")]
    SeveralDocuments,
    #[error("an alias without its anchor")]
    UnknownAnchor,
    #[error("an alias to something that contains it")]
    Recursive,
    #[error("the file is not UTF-8 text")]
    NotUtf8,
    #[error("the file has {bytes} bytes, a scenario at most {most}")]
    TooManyBytes { bytes: u64, most: u64 },
    #[error("cannot read `{}`: {reason}", path.display())]
    Unreadable { path: PathBuf, reason: String },
    #[error("cannot read the scenario `{}`: {reason}", path.display())]
    NoScenario { path: PathBuf, reason: String },
    #[error("there is nothing in this file")]
    Empty,

    // Keys and types.
    #[error("`{section}` has no key `{key}`")]
    UnknownKey {
        section: String,
        key: String,
        known: Vec<&'static str>,
    },
    #[error("`{key}` has no value")]
    NoValue { key: String },
    #[error("`{key}` must be {expected}, not {found}")]
    WrongType {
        key: String,
        expected: String,
        found: String,
    },
    #[error("`{section}` lacks `{key}`")]
    Missing {
        section: String,
        key: &'static str,
        example: &'static str,
    },
    #[error("`{section}` lacks `{}` or `{}`", keys[0], keys[1])]
    MissingEither {
        section: String,
        keys: [&'static str; 2],
        example: &'static str,
    },
    #[error("`{section}` is one of {known}, but {given} given")]
    ChooseOne {
        section: String,
        known: String,
        given: String,
        example: &'static str,
    },
    #[error("`{key}`: {source}")]
    Quantity { key: String, source: QuantityError },
    #[error("`{key}` must be {expected}, not {value}")]
    OutOfRange {
        key: String,
        expected: String,
        value: String,
    },
    #[error("`{key}` cannot be `{word}`")]
    UnknownWord {
        key: String,
        word: String,
        known: Vec<&'static str>,
    },
    #[error("`{name}` cannot name a run's folder")]
    BadName { name: String },
    #[error("a `{target}` target has no use for `{key}`")]
    NotForTarget { target: &'static str, key: String },

    // Arms.
    #[error("`{key}` is empty")]
    EmptyList { key: String, example: &'static str },
    #[error("parameter `{name}`: step 0 never arrives")]
    StepZero { name: String },
    #[error("`{name}`: lower bound {from} is above upper bound {to}")]
    EmptyRange {
        name: String,
        from: String,
        to: String,
    },
    #[error("parameter `{name}` has the value {value} twice")]
    ValueTwice { name: String, value: String },
    #[error("{0}")]
    Space(SpaceError),
    #[error("there is no parameter `{name}`")]
    UnknownParameter { name: String, known: Vec<String> },
    #[error("parameter `{name}` never has the value {value}")]
    NoSuchValue {
        name: String,
        value: String,
        values: String,
    },
    #[error("parameter `{name}` has the name of a placeholder")]
    TakenName { name: String },
    #[error("two arms are called `{name}`")]
    NameTwice { name: String },
    #[error("arm {arm} has no name, but others have")]
    Unnamed { arm: ArmId },
    #[error("`{}`, line {line}: {reason}", path.display())]
    Csv {
        path: PathBuf,
        line: u64,
        reason: String,
    },

    // Limits, prices, policies.
    #[error("`limits`: {0}")]
    Limit(LimitError),
    #[error("`calibrate` needs the guard `{of}`: how long may an arm take while we look?")]
    CalibrateWithoutGuard {
        of: &'static str,
        example: &'static str,
    },
    #[error("limit {limit} is above the guard `{of}: {guard}`, which would end it first")]
    LimitAboveGuard {
        of: &'static str,
        limit: String,
        guard: String,
    },
    #[error("the policy `z-rcucb` makes its own grid of limits")]
    GridForZrcucb,
    #[error("the policy `{policy}` needs a grid of limits, not only the largest")]
    MaxWithoutGrid { policy: &'static str },
    #[error("only a forest counts `work`")]
    WorkNeedsForest,
    #[error("the engine `{engine}` does not count `work`")]
    WorkNeedsBuiltin { engine: &'static str },
    #[error("the guard `work` cannot be kept: nothing counts it here")]
    WorkGuard,
    #[error("a forest in a thread of ours cannot be held to a memory limit")]
    MemoryNeedsProcess,
    #[error("the engine `{engine}` cannot be stopped inside our process")]
    EngineNeedsProcess { engine: &'static str },
    #[error("the engine `{engine}` ignores `{}`: {}", setting.name(), setting.instead())]
    EngineIgnores {
        engine: &'static str,
        setting: Setting,
    },
    #[error("`{key}`: {source}")]
    Price {
        key: &'static str,
        source: PriceError,
    },
    #[error("{0}")]
    Policy(PolicyError),

    // Commands.
    #[error("there is no placeholder `{{{name}}}`")]
    UnknownPlaceholder { name: String, known: Vec<String> },
    #[error("`{{{name}}}` without quotes is a mapping to YAML")]
    Unquoted { name: String },
    #[error("`{{` without its `}}`")]
    Unclosed,
    #[error("`}}` without its `{{`")]
    Unopened,
    #[error("`{{params}}` stands for several arguments and must be one by itself")]
    ParamsNotAlone,
    #[error("`{{instance}}` is used, but there are no `instances`")]
    NoInstances,
    #[error("`{{cpu_limit}}` is used, but nothing limits CPU time")]
    NoCpuLimit,
    #[error("`{{name}}` is used, but the arms have no names")]
    NoNames,
    #[error("`{{{name}}}` is used, but arm {arm} has no `{name}`")]
    AbsentInArm { name: String, arm: ArmId },
    #[error("no file matches `{pattern}`")]
    NoMatch { pattern: String },
    #[error("`{}` lists no instance", path.display())]
    EmptyInstanceFile { path: PathBuf },
    #[error("`{key}`: this is not a regular expression: {reason}")]
    BadRegex { key: String, reason: String },
    #[error("`{key}`: the expression has {groups} groups, but exactly one holds the score")]
    RegexGroups { key: String, groups: usize },
    #[error("`{pointer}` is not a JSON pointer")]
    BadPointer { pointer: String },
    #[error("`worst` and `best` are both {value}")]
    SameWorstBest { value: f64 },
    #[error("`{name}` is not the name of an environment variable")]
    BadVariable { name: String },

    // Forests and recorded runs.
    #[error("`{}` has no column `{column}`", path.display())]
    NoColumn {
        path: PathBuf,
        column: String,
        known: Vec<String>,
    },
    #[error("`drop` names the column `{column}` twice")]
    DropTwice { column: String },
    #[error("`drop` names the column `{column}`, which is to be predicted")]
    DropsTarget { column: String },
    #[error("`levels` orders the column `{column}`, which is dropped")]
    LevelsOfDropped { column: String },
    #[error("column `{column}` has the level `{level}` twice")]
    LevelTwice { column: String, level: String },
    #[error("`mtry` goes up to {mtry}, but there are {predictors} predictors")]
    MtryAbovePredictors { mtry: i64, predictors: usize },
    #[error("forest parameter `{name}` must be {expected}, not {value}")]
    ForestValue {
        name: String,
        expected: &'static str,
        value: String,
    },
    #[error("there is no recorded instance `{name}`")]
    UnknownInstance { name: String, known: Vec<String> },
    #[error("{given} arms are listed, but the recorded runs have {recorded}")]
    ArmCount { given: usize, recorded: usize },
    #[error("{0}")]
    Target(TargetError),
}
