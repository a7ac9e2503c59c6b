//! What to write instead of what is wrong.

use super::Fault;
use crate::nearest::nearest;
use crate::policy::PolicyError;
use crate::round::LimitError;
use crate::scenario::keys::section_with;
use crate::space::SpaceError;
use crate::space::open::PointError;

/// Offers the nearest known name, or lists them all.
fn choose<'a>(
    what: &str,
    written: &str,
    known: impl IntoIterator<Item = &'a str> + Clone,
) -> Option<String> {
    if let Some(name) = nearest(written, known.clone()) {
        return Some(format!("did you mean `{name}`?"));
    }
    let names: Vec<&str> = known.into_iter().take(40).collect();
    if names.is_empty() {
        None
    } else {
        Some(format!("{what}: {}", names.join(", ")))
    }
}

/// A typical value of a key.
fn example(key: &str) -> Option<&'static str> {
    Some(match key {
        "arms" => "arms: {grid: {trees: [100, 300]}}",
        "limits" => "limits: {max: 5s, grid: 10}",
        "price" => "price: {cost: x, penalty: 10 * x}",
        "policy" => "policy: rcucb",
        "budget" => "budget: {wall: 1h}",
        "rounds" => "rounds: 1000",
        "slots" => "slots: auto",
        "seed" => "seed: 1",
        "retries" => "retries: 2",
        "pin" => "pin: auto",
        "target" => "target: {command: [./solver, \"{instance}\"]}",
        "command" => "command: [minisat, \"{instance}\"]",
        "train" => "train: 0.7",
        "threads" => "threads: 1",
        "points" => "points: 10",
        "quantiles" => "quantiles: [0.25, 0.75]",
        "success" | "exit" => "[0]",
        "params" => "params: \"--{name}={value}\"",
        "reward" => r"reward: {stdout: 'score=(\S+)'}",
        "env" => "env: {LC_ALL: C}",
        "stdin" => "stdin: {file: \"{instance}\"}",
        _ => return None,
    })
}

/// A value that is valid for the option of a policy.
fn fitting_value(error: &PolicyError) -> Option<String> {
    let PolicyError::BadValue {
        option,
        expected,
        value,
        ..
    } = error
    else {
        return None;
    };
    let value = if let Some(words) = expected.strip_prefix("one of ") {
        let words: Vec<&str> = words.split(", ").collect();
        nearest(value, words.iter().copied()).or(words.first().copied())?
    } else if let Some(least) = expected.strip_prefix("a whole number from ") {
        least.split(' ').next()?
    } else if expected == "true or false" {
        return Some(flag(option, value));
    } else {
        "1"
    };
    Some(format!("write `{option}: {value}`"))
}

/// What to write for a value of the wrong kind or size.
fn instead(fault: &Fault) -> Option<String> {
    let (Fault::WrongType {
        key,
        expected,
        found,
    }
    | Fault::OutOfRange {
        key,
        expected,
        value: found,
    }) = fault
    else {
        return None;
    };
    if expected == "true or false" {
        return Some(flag(key, found.trim_matches(['`', '"', '\''])));
    }
    Some(match example(key) {
        Some(example) => format!("write `{example}`"),
        None if expected.starts_with("a duration") => "write it like `2.5s` or `1h 30m`".into(),
        None if expected.starts_with("a size") => "write it like `200MiB` or `2GiB`".into(),
        None => format!("write {expected}"),
    })
}

/// What a word means where `true` or `false` is expected.
fn flag(key: &str, word: &str) -> String {
    match word.to_lowercase().as_str() {
        "no" | "off" | "n" => format!("write `{key}: false`"),
        "yes" | "on" | "y" => format!("write `{key}: true`"),
        _ => format!("write `{key}: true` or `{key}: false`"),
    }
}

/// What to write instead, for a forest and its columns.
fn fitting_forest(fault: &Fault) -> Option<String> {
    match fault {
        Fault::NoColumn { column, known, .. } => {
            choose("columns", column, known.iter().map(String::as_str))
        }
        Fault::DropsTarget { .. } => {
            Some("remove it from `drop`, or predict another column".into())
        }
        Fault::LevelsOfDropped { .. } => Some("remove it from `levels`, or from `drop`".into()),
        Fault::MtryAbovePredictors { predictors, .. } => {
            Some(format!("write at most {predictors}"))
        }
        Fault::EngineIgnores { setting, .. } => Some(format!(
            "remove `{}`, or write `engine: builtin`",
            setting.name()
        )),
        _ => None,
    }
}

impl Fault {
    /// What the user can write instead.
    pub fn hint(&self) -> Option<String> {
        let text = |text: &str| Some(text.to_owned());
        match self {
            Self::NotYaml { .. } => text(
                "quote text that contains `: `, ` #`, `{`, `[`, `*`, `&`, `!`, `%` or `@`, and close every bracket and quote",
            ),
            Self::Tab => text("indent with spaces"),
            Self::Twice { .. }
            | Self::ValueTwice { .. }
            | Self::DropTwice { .. }
            | Self::LevelTwice { .. }
            | Self::Limit(LimitError::Twice(_)) => text("remove one of them"),
            Self::TooDeep { .. } => text("a scenario needs at most six levels"),
            Self::TooLarge => {
                text("put long lists of arms into a CSV file: `arms: {file: arms.csv}`")
            }
            Self::TooManyBytes { .. } => text(
                "put long lists of arms or instances into separate files: `arms: {file: arms.csv}`",
            ),
            Self::SeveralDocuments => {
                text("write one scenario per file: remove the line `---` and everything after it")
            }
            Self::UnknownAnchor => {
                text("quote text that starts with `*`, or define the anchor with `&`")
            }
            Self::Recursive => text("write the value in full"),
            Self::NotUtf8 => text("save it as UTF-8, if it is a YAML file"),
            Self::Unreadable { .. } => text("paths are relative to the scenario's folder"),
            Self::BadFeatures { .. } => text(
                "write a heading, then an instance and its numbers on each line: `a.cnf,120,4.2`",
            ),
            Self::OtherFeatures { .. } => {
                text("write instances in its first column as the scenario names them")
            }
            Self::NoScenario { .. } | Self::Empty => {
                text("`captime init` writes a scenario to start from")
            }
            Self::UnknownKey {
                section,
                key,
                known,
            } => match section_with(key).filter(|other| other != section) {
                Some("scenario") => Some(format!("`{key}` belongs at the top level")),
                Some(other) => Some(format!("`{key}` is a key of `{other}`: write it there")),
                None => choose("keys", key, known.iter().copied()),
            },
            Self::NoValue { .. } => text("write a value after the colon, or remove the key"),
            Self::WrongType { .. } | Self::OutOfRange { .. } => instead(self),
            Self::ForestValue { expected, .. } => Some(format!("write {expected}")),
            Self::Missing { example, .. }
            | Self::MissingEither { example, .. }
            | Self::ChooseOne { example, .. }
            | Self::EmptyList { example, .. } => Some(format!("write `{example}`")),
            Self::Quantity { source, .. } => Some(source.hint()),
            Self::UnknownWord { word, known, .. } => {
                choose("use one of", word, known.iter().copied())
            }
            Self::BadName { .. } => text(
                "use at most 100 letters, digits, `-`, `_` and `.`, and do not start with `-` or `.`",
            ),
            Self::NotForTarget { .. } => text("remove it"),
            Self::StepZero { .. } => text("write a step above 0"),
            Self::EmptyRange { from, to, .. } => {
                Some(format!("swap them: `from: {to}, to: {from}`"))
            }
            Self::OpenSpace(error) | Self::InSpaceFile { error, .. } => error.hint(),
            Self::Start(PointError::UnknownName { nearest, .. }) => nearest
                .as_ref()
                .map(|name| format!("did you mean `{name}`?")),
            Self::Start(PointError::BadValue { .. }) => text("stay within the parameter's values"),
            Self::Start(PointError::Forbidden { .. }) => text("change it, or loosen `forbid`"),
            Self::Sample(_) => text("loosen this constraint"),
            Self::SecondStartRun => text("start from one run; it has what its own `start` gave it"),
            Self::NoStartRun { hint, .. } => hint.clone(),
            Self::StartRunUnreadable { .. } => text("start from another run, or leave out `run`"),
            Self::DefaultOfSpace => text("give the parameters of the space their own `default`"),
            Self::NeedsSample { sample, .. } => Some(format!(
                "add `sample: {sample}` to `arms` to draw {sample} arms from the space"
            )),
            Self::Space(SpaceError::TooMany { .. }) => {
                text("use larger steps or fewer values, or list the arms in a file")
            }
            Self::Space(SpaceError::AllDropped { .. }) => text("loosen `only` or `except`"),
            Self::Space(SpaceError::Empty) => text("give `arms` a grid, a list or a file"),
            Self::UnknownParameter { name, known } => {
                choose("parameters", name, known.iter().map(String::as_str))
            }
            Self::NoSuchValue { values, .. } => Some(format!("its values: {values}")),
            Self::TakenName { name } => Some(format!("rename it, say to `my_{name}`")),
            Self::NameTwice { .. } => text("give every arm its own name"),
            Self::Unnamed { .. } => text("name all arms, or none"),
            Self::Csv { .. } => {
                text("the first line names the parameters, every other line is an arm")
            }
            Self::Limit(LimitError::NotPositive(_)) => text("limits must be above 0"),
            Self::Limit(LimitError::Empty) => text("write `grid: [0.2s, 0.5s, 1s]`"),
            Self::CalibrateWithoutGuard { of, example } => {
                Some(format!("add `{of}: {example}` to `limits`"))
            }
            Self::LimitAboveGuard { .. } => text("lower the limits or raise the guard"),
            Self::GridNotNeeded { .. } => text("write only `max: 5s`, or choose another policy"),
            Self::MaxWithoutGrid { .. } => text("add `grid: 10`, or choose the policy `z-rcucb`"),
            Self::WorkNeedsForest => text("write `of: cpu` or `of: wall`"),
            Self::WorkNeedsBuiltin { .. } => {
                text("write `of: cpu` or `of: wall`, or use the engine `builtin`")
            }
            Self::WorkGuard => text("use the guard `cpu` or `wall` instead"),
            Self::MemoryNeedsProgram => text("write `of: wall`, `of: cpu` or `of: work`"),
            Self::MemoryNeedsProcess => {
                text("add `isolation: process` to the forest, or remove `memory`")
            }
            Self::EngineNeedsProcess { .. } => {
                text("write `isolation: process`, or remove `isolation`")
            }
            Self::Price { source, .. } => Some(source.hint()),
            Self::Policy(error) => error.hint().or_else(|| fitting_value(error)),
            Self::UnknownPlaceholder { name, known } => {
                choose("placeholders", name, known.iter().map(String::as_str))
                    .map(|hint| format!("{hint} (for a literal brace, write `{{{{` or `}}}}`)"))
            }
            Self::Unquoted { name } => Some(format!("write \"{{{name}}}\"")),
            Self::Unclosed => text("close the placeholder, or write `{{` for a literal brace"),
            Self::Unopened => text("write `}}` for a literal brace"),
            Self::ParamsNotAlone => text(
                "write \"{params}\" as a separate argument; to change its form, write `params: \"--{name}={value}\"`",
            ),
            Self::NoInstances => text("add `instances: instances/*.cnf` to the target"),
            Self::NoCpuLimit => text("write `of: cpu`, or add the guard `cpu: 60s` to `limits`"),
            Self::NoNames => text("list the arms with names: `list: [{name: fast, ...}]`"),
            Self::AbsentInArm { .. } => text(
                "put the part in square brackets, or use `{params}`: both leave out what an arm does not have",
            ),
            Self::NoMatch { .. } => {
                text("paths are relative to the scenario's folder; use `*`, `?`, `[abc]` and `**`")
            }
            Self::NoSuchArm => text("name an arm, or give values that one of the arms has"),
            Self::PatternTooWide { .. } => text("start the pattern in the folder that has them"),
            Self::NameNotUtf8 { .. } => text("rename the file"),
            Self::EmptyInstanceFile { .. } => {
                text("write one instance per line; lines that start with `#` are comments")
            }
            Self::BadRegex { .. } => {
                text("put it in single quotes, and write a backslash before special characters")
            }
            Self::RegexGroups { groups: 0, .. } => {
                text(r"put parentheses around the score: 'rmse=(\S+)'")
            }
            Self::RegexGroups { .. } => text("make the other groups non-capturing: `(?:...)`"),
            Self::NoAnswerColumn { .. } => text(
                "write the answer behind the instance, in the file that lists them: `a.cnf 10`",
            ),
            Self::ImpossibleAnswer { .. } => text(
                "expect one of the codes of `reward: {exit: [10, 20]}`, a number if the reward is a score, or `SAT` or `UNSAT` of a wrapper",
            ),
            Self::ConsumptionWithoutGuard => {
                text("add the guard `wall: 60s` to `limits`, and pass `{limit}` to the program")
            }
            Self::BadPointer { .. } => text("write `/score`, or `/results/0/score`"),
            Self::SameWorstBest { .. } => {
                text("`worst` is the score worth 0, `best` is the score worth 1")
            }
            Self::BadVariable { .. } => {
                text("use letters, digits and `_`, and do not start with a digit")
            }
            Self::NoColumn { .. }
            | Self::DropsTarget { .. }
            | Self::LevelsOfDropped { .. }
            | Self::MtryAbovePredictors { .. }
            | Self::EngineIgnores { .. } => fitting_forest(self),
            Self::UnknownInstance { name, known } => {
                choose("instances", name, known.iter().map(String::as_str))
            }
            Self::ArmCount { .. } => {
                text("list one arm per column of the matrix, in the same order")
            }
            Self::Target(error) => error.hint(),
        }
    }
}
