//! Everything that can be wrong with a scenario. What to write instead is in [`hint`].

mod hint;

use std::path::PathBuf;

use crate::policy::PolicyError;
use crate::quantity::QuantityError;
use crate::round::{ArmId, LimitError, PriceError};
use crate::simulated::TargetError;
use crate::space::SpaceError;
use crate::space::format::FormatError;
use crate::space::open::{PointError, SampleError};
use crate::yaml::Span;
use captime_forest::engine::Setting;

/// A mistake, and where it is.
#[derive(Debug, Clone, PartialEq)]
pub struct Mistake {
    /// The position in the text.
    pub at: Span,
    /// The mistake.
    pub fault: Fault,
}

/// What is wrong.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[expect(missing_docs, reason = "fields are what the messages say they are")]
#[non_exhaustive]
pub enum Fault {
    // The text itself.
    #[error("not valid YAML: {reason}")]
    NotYaml { reason: String },
    #[error("a tab in the indentation")]
    Tab,
    #[error("duplicate key `{key}`")]
    Twice { key: String },
    #[error("nested more than {most} levels deep")]
    TooDeep { most: usize },
    #[error("too large once aliases are expanded")]
    TooLarge,
    #[error("a second document in the same file")]
    SeveralDocuments,
    #[error("alias without an anchor")]
    UnknownAnchor,
    #[error("alias to something that contains it")]
    Recursive,
    #[error("the file is not UTF-8 text")]
    NotUtf8,
    #[error("the file is larger than {most} bytes")]
    TooManyBytes { most: u64 },
    #[error("cannot read `{}`: {reason}", path.display())]
    Unreadable { path: PathBuf, reason: String },
    #[error("`{}`, line {line}: {what}", path.display())]
    BadFeatures {
        path: PathBuf,
        line: u64,
        what: String,
    },
    #[error("no instance of the scenario is in `{}`", path.display())]
    OtherFeatures { path: PathBuf },
    #[error("cannot read the scenario `{}`: {reason}", path.display())]
    NoScenario { path: PathBuf, reason: String },
    #[error("the file is empty")]
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
    #[error("`{section}` needs the key `{key}`")]
    Missing {
        section: String,
        key: &'static str,
        example: &'static str,
    },
    #[error("`{section}` needs `{}` or `{}`", keys[0], keys[1])]
    MissingEither {
        section: String,
        keys: [&'static str; 2],
        example: &'static str,
    },
    #[error("`{section}` takes one of {known}, but {given} given")]
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
    #[error("`{name}` cannot be the name of a folder")]
    BadName { name: String },
    #[error("`{key}` does not apply to a `{target}` target")]
    NotForTarget { target: &'static str, key: String },

    // Arms.
    #[error("`{key}` is empty")]
    EmptyList { key: String, example: &'static str },
    #[error("parameter `{name}`: step must not be 0")]
    StepZero { name: String },
    #[error("`{name}`: lower bound {from} is above upper bound {to}")]
    EmptyRange {
        name: String,
        from: String,
        to: String,
    },
    #[error("parameter `{name}` has the duplicate value {value}")]
    ValueTwice { name: String, value: String },
    #[error("{0}")]
    Space(SpaceError),
    #[error("{0}")]
    OpenSpace(FormatError),
    #[error("`{}`, line {line}, column {column}: {error}", path.display())]
    InSpaceFile {
        path: PathBuf,
        line: usize,
        column: usize,
        error: FormatError,
    },
    #[error("{0}")]
    Start(PointError),
    #[error("`start` has a second `run`")]
    SecondStartRun,
    #[error("there is no run `{path}` to start from")]
    NoStartRun { path: String, hint: Option<String> },
    #[error("the run `{path}` to start from cannot be read: {reason}")]
    StartRunUnreadable { path: String, reason: String },
    #[error("{0}")]
    Sample(SampleError),
    #[error("`default` is for a grid, a list or a file")]
    DefaultOfSpace,
    #[error("the policy `{policy}` needs a finite list of arms, and this space is open")]
    NeedsSample { policy: &'static str, sample: u64 },
    #[error("unknown parameter `{name}`")]
    UnknownParameter { name: String, known: Vec<String> },
    #[error("parameter `{name}` never has the value {value}")]
    NoSuchValue {
        name: String,
        value: String,
        values: String,
    },
    #[error("no arm matches `default`")]
    NoSuchArm,
    #[error("parameter `{name}` has the name of a placeholder")]
    TakenName { name: String },
    #[error("duplicate arm name `{name}`")]
    NameTwice { name: String },
    #[error("arm {arm} has no name, but other arms do")]
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
    #[error("`calibrate` needs the guard `{of}`: the most an arm may use during calibration")]
    CalibrateWithoutGuard {
        of: &'static str,
        example: &'static str,
    },
    #[error("limit {limit} is above the guard `{of}: {guard}`, which ends the pull first")]
    LimitAboveGuard {
        of: &'static str,
        limit: String,
        guard: String,
    },
    #[error("the policy `{policy}` makes its own grid of limits")]
    GridNotNeeded { policy: &'static str },
    #[error("the policy `{policy}` needs a grid of limits, not only the largest")]
    MaxWithoutGrid { policy: &'static str },
    #[error("`of: work` needs a forest, a target in virtual time, or a command with `consumption`")]
    WorkNeedsForest,
    #[error("the engine `{engine}` does not count `work`")]
    WorkNeedsBuiltin { engine: &'static str },
    #[error("the guard `work` has no effect here: nothing counts work")]
    WorkGuard,
    #[error("`of: memory` needs a command, a wrapper or a forest in its own process")]
    MemoryNeedsProgram,
    #[error("the memory guard needs a forest in its own process")]
    MemoryNeedsProcess,
    #[error("the engine `{engine}` cannot be stopped in-process")]
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
    #[error("unknown placeholder `{{{name}}}`")]
    UnknownPlaceholder { name: String, known: Vec<String> },
    #[error("`{{{name}}}` needs quotes: without them, YAML reads a mapping")]
    Unquoted { name: String },
    #[error("`{{` without a closing `}}`")]
    Unclosed,
    #[error("`}}` without an opening `{{`")]
    Unopened,
    #[error("`{{params}}` expands to several arguments and must be an argument by itself")]
    ParamsNotAlone,
    #[error("`{{instance}}` is used, but the target has no `instances`")]
    NoInstances,
    #[error("`{{cpu_limit}}` is used, but there is no limit on CPU time")]
    NoCpuLimit,
    #[error("`{{name}}` is used, but the arms have no names")]
    NoNames,
    #[error("`{{{name}}}` is used, but arm {arm} has no `{name}`")]
    AbsentInArm { name: String, arm: ArmId },
    #[error("no file matches `{pattern}`")]
    NoMatch { pattern: String },
    #[error("`{pattern}` looks at more than {most} files")]
    PatternTooWide { pattern: String, most: usize },
    #[error("the name of `{}` is not UTF-8", path.display())]
    NameNotUtf8 { path: PathBuf },
    #[error("`{}` lists no instance", path.display())]
    EmptyInstanceFile { path: PathBuf },
    #[error("`{key}`: not a valid regular expression: {reason}")]
    BadRegex { key: String, reason: String },
    #[error("`{key}`: the expression must have exactly one group, the score, but has {groups}")]
    RegexGroups { key: String, groups: usize },
    #[error("`{pointer}` is not a JSON pointer")]
    BadPointer { pointer: String },
    #[error("no instance has an answer in column {place}")]
    NoAnswerColumn { place: usize },
    #[error("the answer `{answer}` expected of `{instance}` earns no reward")]
    ImpossibleAnswer { answer: String, instance: String },
    #[error(
        "`consumption` needs the guard `wall`: nothing else ends a program that does not keep its limit"
    )]
    ConsumptionWithoutGuard,
    #[error("`worst` and `best` are both {value}")]
    SameWorstBest { value: f64 },
    #[error("`{name}` is not a valid name for an environment variable")]
    BadVariable { name: String },

    // Forests and recorded runs.
    #[error("`{}` has no column `{column}`", path.display())]
    NoColumn {
        path: PathBuf,
        column: String,
        known: Vec<String>,
    },
    #[error("`drop` has the duplicate column `{column}`")]
    DropTwice { column: String },
    #[error("`drop` names the column `{column}`, which is the one to predict")]
    DropsTarget { column: String },
    #[error("`levels` orders the column `{column}`, which is dropped")]
    LevelsOfDropped { column: String },
    #[error("column `{column}` has the duplicate level `{level}`")]
    LevelTwice { column: String, level: String },
    #[error("`mtry` is up to {mtry}, but there are only {predictors} predictors")]
    MtryAbovePredictors { mtry: i64, predictors: usize },
    #[error("forest parameter `{name}` must be {expected}, not {value}")]
    ForestValue {
        name: String,
        expected: &'static str,
        value: String,
    },
    #[error("unknown recorded instance `{name}`")]
    UnknownInstance { name: String, known: Vec<String> },
    #[error("the scenario lists {given} arms, but the recorded runs have {recorded}")]
    ArmCount { given: usize, recorded: usize },
    #[error("{0}")]
    Target(TargetError),
}
