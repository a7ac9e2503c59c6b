//! Every key of a scenario file, described once.
//!
//! The check takes the known keys from here, editors use the [`schema`], and the tables of `docs/scenario.md` are
//! generated. Words, bounds and defaults are here only: `Fields::read` hands what the file says, or the default, to the
//! type that the model has for it. So a new key is a line here and a field in the model that is read in one line.

use serde_json::{Map, Value, json};

use super::model::MOST_SLOTS;
use crate::policy::PolicyKind;
use crate::simulated::synthetic::{Grid, SyntheticProblem};
use crate::space::MOST_ARMS;

/// A mapping with a fixed set of keys.
pub(super) struct Section {
    /// The key it is under.
    pub(super) name: &'static str,
    about: &'static str,
    keys: &'static [Key],
}

/// A section, written as its name, what it is for, and its keys.
macro_rules! section {
    ($name:literal, $about:literal, [$($key:expr),* $(,)?]) => {
        Section { name: $name, about: $about, keys: &[$($key),*] }
    };
}

/// One key.
pub(super) struct Key {
    pub(super) name: &'static str,
    about: &'static str,
    /// Its default: empty if it is optional and has none, [`REQUIRED`] if it must be given.
    default: &'static str,
    pub(super) shape: Shape,
}

/// What the value of a key may be.
#[derive(Clone, Copy)]
pub(super) enum Shape {
    Text,
    /// One text or several.
    Texts,
    Flag,
    Number,
    /// A number between two others, neither included.
    Between(f64, f64),
    /// A whole number from the first to the second, which may be [`ANY`].
    Whole(i64, i64),
    Words(&'static [&'static str]),
    /// A duration, or a plain number where work is counted.
    Amount,
    Size,
    /// A number, a word, or true or false.
    Scalar,
    Codes,
    Instances,
    List(&'static Shape),
    /// A mapping from any name.
    Map(&'static Shape),
    Section(&'static Section),
    AnyOf(&'static [Shape]),
    /// Anything else that a schema can express.
    Other(fn() -> Value),
}

const REQUIRED: &str = "required";

/// No upper bound.
const ANY: i64 = i64::MAX;

/// More limits than this do not help any policy.
pub(super) const MOST_POINTS: i64 = 1000;

impl Section {
    /// The description of a key.
    ///
    /// # Panics
    /// If the section has no such key.
    pub(super) fn key(&self, name: &str) -> &Key {
        let found = self.keys.iter().find(|key| key.name == name);
        found.expect("only known keys are read")
    }

    /// The keys it may have.
    pub(super) fn names(&self) -> Vec<&'static str> {
        self.keys.iter().map(|key| key.name).collect()
    }

    fn schema(&self) -> Value {
        let properties: Map<String, Value> = self
            .keys
            .iter()
            .map(|key| (key.name.to_owned(), key.schema()))
            .collect();
        let mut schema =
            json!({"type": "object", "additionalProperties": false, "properties": properties});
        let required = self.keys.iter().filter(|key| key.default == REQUIRED);
        let required: Vec<&str> = required.map(|key| key.name).collect();
        if !required.is_empty() {
            schema["required"] = json!(required);
        }
        if !self.about.is_empty() {
            schema["description"] = json!(self.about);
        }
        schema
    }

    /// Its table in the documentation.
    #[cfg(test)]
    fn table(&self) -> String {
        let mut table = "| key | meaning | default |\n|---|---|---|\n".to_owned();
        for key in self.keys {
            let Key {
                name,
                about,
                default,
                ..
            } = key;
            table.extend([format!("| `{name}` | {about} | {default} |\n")]);
        }
        table.replace("{|", "{\\|")
    }
}

impl Key {
    /// Its default, if that is a plain value.
    pub(super) fn default_value(&self) -> Option<Value> {
        let text = self.default.trim_matches('`');
        match self.shape {
            Words(words) => words.contains(&text).then(|| json!(text)),
            Flag | Whole(..) | Between(..) => text.parse().ok(),
            _ => None,
        }
    }

    fn schema(&self) -> Value {
        let mut schema = self.shape.schema();
        let about = match self.default {
            "" | REQUIRED => format!("{}.", self.about),
            default => format!("{}. Default: {default}.", self.about),
        };
        // A section describes itself.
        if schema["description"].is_null() {
            schema["description"] = json!(about);
        }
        schema
    }
}

impl Shape {
    fn schema(self) -> Value {
        match self {
            Self::Text => json!({"type": "string"}),
            Self::Texts => Self::AnyOf(&[Self::Scalar, Self::List(&Self::Scalar)]).schema(),
            Self::Flag => json!({"type": "boolean"}),
            Self::Number => json!({"type": "number"}),
            Self::Between(low, high) => {
                json!({"type": "number", "exclusiveMinimum": low, "exclusiveMaximum": high})
            }
            Self::Whole(least, ANY) => json!({"type": "integer", "minimum": least}),
            Self::Whole(least, most) => {
                json!({"type": "integer", "minimum": least, "maximum": most})
            }
            Self::Words(words) => json!({"enum": words}),
            Self::Amount => {
                json!({"type": ["string", "number"], "examples": ["2.5s", "1h 30m"]})
            }
            Self::Size => json!({"type": ["string", "integer"], "examples": ["200MiB", "2GiB"]}),
            Self::Scalar => json!({"type": ["string", "number", "boolean"]}),
            Self::Codes => {
                let code = json!({"type": "integer", "minimum": 0, "maximum": 255});
                json!({"anyOf": [code, {"type": "array", "minItems": 1, "items": code}]})
            }
            Self::Instances => Self::AnyOf(&[Self::Text, Self::List(&Self::Scalar)]).schema(),
            Self::List(item) => json!({"type": "array", "minItems": 1, "items": item.schema()}),
            Self::Map(value) => {
                json!({"type": "object", "minProperties": 1, "additionalProperties": value.schema()})
            }
            Self::Section(section) => section.schema(),
            Self::AnyOf(shapes) => {
                let schemas: Vec<Value> = shapes.iter().map(|shape| shape.schema()).collect();
                json!({"anyOf": schemas})
            }
            Self::Other(schema) => schema(),
        }
    }
}

/// The JSON schema of a scenario, as in `docs/scenario.schema.json`.
pub fn schema() -> Value {
    let mut root = SCENARIO.schema();
    root["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    root["title"] = json!("captime scenario");
    root
}

// These three shorten the tables below.

const fn required(name: &'static str, shape: Shape, about: &'static str) -> Key {
    key(name, shape, REQUIRED, about)
}

const fn optional(name: &'static str, shape: Shape, about: &'static str) -> Key {
    key(name, shape, "", about)
}

/// A key with its default.
const fn key(name: &'static str, shape: Shape, default: &'static str, about: &'static str) -> Key {
    Key {
        name,
        about,
        default,
        shape,
    }
}

use Shape::{
    Amount, AnyOf, Between, Codes, Flag, Instances, List, Number, Other, Scalar, Size, Text, Texts,
    Whole, Words,
};

/// The section that a key belongs to, if there is exactly one.
pub(super) fn section_with(key: &str) -> Option<&'static str> {
    let sections = [&SCENARIO, &COMMAND, &ARMS, &LIMITS, &PRICE, &BUDGET];
    let has_it = |section: &&&Section| section.keys.iter().any(|known| known.name == key);
    let mut found = sections.iter().filter(has_it);
    let only = found.next()?;
    found.next().is_none().then_some(only.name)
}

#[rustfmt::skip]
pub(super) static SCENARIO: Section = section!("scenario", "A captime scenario: what to tune, and how.", [
        key("name", Text, "the name of the file", "The name of the run's folder: letters, digits, `-`, `_`, `.`"),
        required("target", Other(target), "What a pull runs"),
        key("arms", Shape::Section(&ARMS), "required, except for `synthetic` and `recorded`", "The configurations to choose from"),
        key("limits", Shape::Section(&LIMITS), "required, except for `synthetic`", "What is limited, the limits to choose from, and the guards"),
        optional("price", Shape::Section(&PRICE), "What consumption and being cut off cost"),
        key("policy", Other(policy), "`levels`", "The policy that chooses. `run` uses the first of a list, `study` compares them all"),
        key("recommend", Words(&["safe", "best", "finest", "posterior"]), "depends on the policy", "The rule that picks the answer"),
        key("budget", Shape::Section(&BUDGET), "none: runs until you stop it", "When to stop"),
        key("slots", AnyOf(&[Words(&["auto"]), Other(slots), Other(nodes)]), "`auto`", "How many pulls run at a time. `auto` is one per CPU. Or the machines to run them on"),
        key("pin", AnyOf(&[Words(&["auto", "never"]), Other(|| json!({"const": false}))]), "`auto`", "Whether each slot gets its own CPUs. `auto` pins if slots x threads fit"),
        key("seed", Whole(0, ANY), "1", "The seed of all randomness"),
        key("stop_on_first_failures", Flag, "true", "Whether to stop if the first pulls all fail without hitting a guard"),
        key("compare", Words(&["as-measured", "by-node"]), "`as-measured`", "How runs on nodes of different speed are compared. `by-node` divides what a run consumed by the measured factor of its node"),
        optional("features", Text, "A CSV file with numbers about the instances, whose names are in its first column. The report says which of them go with the instances that the answer is bad at, and its model of the gain uses them"),
        key("retries", Whole(0, 1000), "2", "How often a run that was lost with its launcher is retried"),
]);

#[rustfmt::skip]
pub(super) static COMMAND: Section = section!("target", "A program.", [
        required("command", List(&Scalar), "The program and its arguments, never a shell line. Placeholders: every parameter, `{instance}`, `{seed}`, `{limit}`, `{cpu_limit}`, `{round}`, `{scratch}`, `{params}`, `{name}`. A part in square brackets disappears if a parameter in it is absent"),
        key("params", Other(one_or_two), "`\"--{name}={value}\"`", "What `{params}` writes for each parameter, with `{name}` and `{value}`"),
        optional("instances", Instances, "A pattern of files with `*`, `?`, `[abc]` or `**`, a file with one instance per line, or a list"),
        optional("test", Instances, "Instances held out for testing the answer"),
        key("reward", Shape::Section(&REWARD), "1 for exit code 0", "How the reward is read"),
        key("success", Codes, "0, or the codes of `reward: {exit: ...}`", "The exit codes of a normal end"),
        optional("expect", Shape::Section(&EXPECT), "The answers that instances are known to have. Any other is a failure, `wrong answer`"),
        key("consumption", Shape::Section(&CONSUMPTION), "captime measures it", "Where the program itself reports what it consumed: seconds, or counted work with `of: work`"),
        optional("env", Other(env), "Environment variables, with placeholders"),
        key("directory", Text, "the scenario's folder", "Where the program runs"),
        key("stdin", Shape::Section(&STDIN), "empty", "What the program reads"),
        key("contain", Words(&["off", "pids", "full"]), "`pids` where possible", "What the program is kept from. `pids`: other processes, and changes to control groups. `full`: also the network, and it has its own empty `/tmp` and `/dev/shm`"),
        key("output_limit", Size, "1 MiB", "How much of stdout and of stderr is kept"),
]);

#[rustfmt::skip]
pub(super) static WRAPPER: Section = section!("wrapper", "A wrapper of AClib, ParamILS or SMAC.", [
        required("wrapper", Texts, "The wrapper and its own arguments"),
        key("call", Words(&["old", "new"]), "`old`", "How it is called. `old`: `INSTANCE SPECIFICS CUTOFF LENGTH SEED -name value ...`, as ParamILS and SMAC do. `new`: `--instance I --cutoff C --seed S --config -name value ...`, as AClib2 does"),
        key("quality", Shape::Section(&QUALITY), "a run that succeeded is worth 1", "How the quality or cost that it reports becomes a reward"),
        optional("instances", Instances, "As for `command`. Words after the first are what the old call passes as specifics"),
        optional("test", Instances, "Instances held out for testing the answer"),
        optional("expect", Shape::Section(&EXPECT), "The answers that instances are known to have: `SAT` or `UNSAT`, or costs with `quality`. Any other is a failure, `wrong answer`. A plain `SUCCESS` is always accepted"),
        optional("env", Other(env), "Environment variables, with placeholders"),
        key("directory", Text, "the scenario's folder", "Where the wrapper runs"),
        key("contain", Words(&["off", "pids", "full"]), "`pids` where possible", "What the program is kept from. `pids`: other processes, and changes to control groups. `full`: also the network, and it has its own empty `/tmp` and `/dev/shm`"),
        key("output_limit", Size, "1 MiB", "How much of stdout and of stderr is kept"),
]);

#[rustfmt::skip]
pub(super) static QUALITY: Section = section!("quality", "The costs worth 0 and 1.", [
        required("worst", Number, "The cost worth 0"),
        required("best", Number, "The cost worth 1"),
]);

#[rustfmt::skip]
pub(super) static STDIN: Section = section!("stdin", "What the program reads. One of the two.", [
        optional("file", Text, "A file, with placeholders"),
        optional("text", Text, "A text, with placeholders"),
]);

#[rustfmt::skip]
pub(super) static REWARD: Section = section!("reward", "How the reward is read.", [
        optional("exit", Codes, "The reward is 1 if the program ends with one of these exit codes: solved"),
        optional("stdout", Text, "A regular expression with one group: the score, in the output"),
        optional("stderr", Text, "The same, in the error output"),
        optional("json", Text, "A JSON pointer to the score, such as `/score`, in the output or in `file`"),
        optional("file", Text, "A file that the program writes, with placeholders"),
        optional("match", Text, "A regular expression with one group: the score, in `file`"),
        key("which", Words(&["only", "last"]), "`only`", "Which match counts. `only`: several are an error. `last`: the last one, for programs that print a score per epoch"),
        optional("worst", Number, "The score worth 0"),
        optional("best", Number, "The score worth 1"),
]);

#[rustfmt::skip]
pub(super) static EXPECT: Section = section!("expect", "The answers that instances are known to have: exit codes, scores, or what a wrapper reports. One of the two.", [
        optional("column", Whole(2, 100), "The word of an instance's line that is its answer, counted from 1. It is not part of `{instance}`. Instances without it, or with `-`, accept any answer"),
        optional("name", Shape::Map(&AnyOf(&[Scalar, List(&Scalar)])), "Patterns on the instance's name, each with its answer or a list of them. The first that matches counts"),
]);

#[rustfmt::skip]
pub(super) static CONSUMPTION: Section = section!("consumption", "Where the program itself reports what it consumed.", [
        optional("stdout", Text, "A regular expression with one group: the number, in the output"),
        optional("stderr", Text, "The same, in the error output"),
        optional("json", Text, "A JSON pointer to the number, such as `/seconds`, in the output or in `file`"),
        optional("file", Text, "A file that the program writes, with placeholders"),
        optional("match", Text, "A regular expression with one group: the number, in `file`"),
        key("which", Words(&["only", "last"]), "`only`", "Which match counts, as for `reward`"),
]);

#[rustfmt::skip]
pub(super) static FOREST: Section = section!("forest", "A random forest on a CSV file.", [
        required("data", Text, "The CSV file, with a header"),
        required("predict", Text, "The column to predict"),
        key("train", Between(0.0, 1.0), "0.7", "The fraction of the rows to train on"),
        key("task", Words(&["auto", "regression", "classification"]), "`auto`", "What to predict. `auto` infers it from the column"),
        key("engine", Words(&["builtin", "smartcore", "linfa"]), "`builtin`", "The forest implementation"),
        key("isolation", Words(&["thread", "process"]), "`thread` for `builtin`, else `process`", "Where a fit runs: in-process, or in its own process, which the memory guard needs"),
        key("threads", Whole(1, 1024), "1", "Threads per fit"),
        key("normalise", Words(&["range", "sd"]), "`range`", "What the error is divided by: the range of the column, or its standard deviation"),
        key("reward", Words(&["accuracy", "auc", "log_loss"]), "`accuracy`", "The reward of a classification: the accuracy, the area under the ROC curve, or exp(-log loss)"),
        optional("drop", Texts, "Columns that are not predictors"),
        key("levels", AnyOf(&[Words(&["alphabetical", "by-response"]), Shape::Map(&List(&Scalar))]), "`alphabetical`", "The order of the levels of a factor: by name, by mean response, or as listed for some columns"),
]);

#[rustfmt::skip]
pub(super) static SYNTHETIC: Section = section!("synthetic", "One of the paper's problems, in virtual time.", [
        required("problem", Other(problem), "Which problem. `large` takes any number of arms after it"),
        key("grid", Words(&Grid::NAMES), "`recovered`", "The limits, unless the scenario gives its own"),
]);

#[rustfmt::skip]
pub(super) static RECORDED: Section = section!("recorded", "Runs that were measured once, replayed in virtual time.", [
        required("consumption", Text, "A CSV file with a row per instance (its name first) and a column per arm, or an ASlib `algorithm_runs.arff`"),
        key("reward", Text, "1 for every run that ended", "A CSV file of rewards with the same shape"),
        key("cutoff", Amount, "from ASlib's `description.txt`", "The cutoff of the measured runs"),
        optional("unsolved", Amount, "The value that means not solved. Anything above the cutoff does too"),
        optional("test", Instances, "Instances held out for testing the answer"),
]);

#[rustfmt::skip]
pub(super) static SURROGATE: Section = section!("surrogate", "Runs of any configuration of a space, made from recorded ones, in virtual time.", [
        required("consumption", Text, "The recorded runs, as for `recorded`"),
        required("arms", Text, "A CSV file with the configuration of every recorded arm, in their order. The first line names the parameters; columns that the space does not have are ignored"),
        key("reward", Text, "1 for every run that ended", "A CSV file of rewards with the same shape"),
        key("cutoff", Amount, "from ASlib's `description.txt`", "The cutoff of the measured runs"),
        optional("unsolved", Amount, "The value that means not solved. Anything above the cutoff does too"),
        optional("test", Instances, "Instances kept back for testing the answer"),
        key("seed", Whole(0, ANY), "1", "Another seed gives other luck to every configuration"),
]);

#[rustfmt::skip]
pub(super) static EXTERNAL: Section = section!("external", "Your own program runs the pulls, through `captime ask`.", [
        optional("instances", Instances, "Instances that a policy may ask for"),
        optional("test", Instances, "Instances held out for testing the answer"),
]);

#[rustfmt::skip]
pub(super) static ARMS: Section = section!("arms", "The configurations to choose from: a grid, a list, a file, or an open space.", [
        optional("grid", Shape::Map(&AnyOf(&[Scalar, List(&Scalar), Shape::Section(&RANGE)])), "Parameters and their values. Every combination is an arm"),
        optional("list", List(&AnyOf(&[Text, Shape::Map(&Scalar)])), "The arms one by one: a name, or parameters with an optional `name`"),
        optional("file", Text, "A CSV file: the first line names the parameters, every other line is an arm. A column `name` names it"),
        optional("space", AnyOf(&[Text, Shape::Map(&AnyOf(&[Scalar, Shape::Section(&PARAMETER)]))]), "An open space: parameters with ranges, or a file of them (PCS, ConfigSpace, irace). See [spaces](spaces.md)"),
        optional("forbid", Texts, "Combinations of the space that are not allowed, such as `decay * restarts > 5000`"),
        optional("start", AnyOf(&[Shape::Map(&Scalar), List(&Shape::Map(&Scalar))]), "Configurations of the space that come right after the default, or `{file: known-good.csv}`. With `{run: runs/last-night}`, the arms of an earlier run, and its rounds where nothing else changed: see [warm start](spaces.md#starting-from-an-earlier-run)"),
        optional("sample", Whole(1, MOST_ARMS.cast_signed() as i64), "How many arms to draw from the space, as a finite list. Without it, arms are opened as the run goes"),
        key("default", AnyOf(&[Scalar, Shape::Map(&Scalar)]), "the first arm", "The default configuration, by name or by values. It becomes arm 1"),
        optional("only", Other(patterns), "Keep only the combinations of the grid that match one of these"),
        optional("except", Other(patterns), "Drop the combinations of the grid that match one of these"),
        optional("drop", Texts, "Columns of the file that are not parameters. `dummy*` drops all that start so"),
]);

#[rustfmt::skip]
static PARAMETER: Section = section!("parameter", "One parameter of an open space.", [
        optional("real", List(&Number), "The smallest and the largest value"),
        optional("integer", List(&Number), "The smallest and the largest whole number"),
        optional("choice", List(&Scalar), "Values without an order"),
        optional("ordered", List(&Scalar), "Values in their order"),
        key("scale", Words(&["linear", "log"]), "`linear`", "How drawn numbers spread over the range"),
        key("digits", Whole(0, ANY), "about six that count", "How many digits drawn numbers of `real` have after the point"),
        key("default", Scalar, "the middle of the range, or the first value", "The value in the default configuration"),
        key("when", Scalar, "always", "When the parameter is active, such as `heuristic == chb`"),
        key("argument", Texts, "as `params` says", "What `{params}` writes for it, such as `--decay={value}`"),
]);

#[rustfmt::skip]
pub(super) static RANGE: Section = section!("range", "The values of a parameter: a range, or words in their order.", [
        optional("from", Number, "The smallest value"),
        optional("to", Number, "The largest value"),
        optional("integer", List(&Number), "The smallest and the largest value, instead of `from` and `to`: every value is whole"),
        key("step", Number, "1 for `integer`", "The difference between neighbours"),
        optional("points", Whole(2, 10_000_000), "How many values, instead of a step"),
        key("scale", Words(&["linear", "log"]), "`linear`", "Equal differences or equal ratios, with `points`"),
        optional("ordered", List(&Scalar), "Words in their order, instead of a range"),
        optional("choice", List(&Scalar), "Values without an order, instead of a range"),
        optional("argument", Text, "What `{params}` writes for this parameter, such as `\"--decay={value}\"`. For true and false: the argument, or nothing"),
]);

#[rustfmt::skip]
pub(super) static LIMITS: Section = section!("limits", "What is limited, the limits to choose from, and the guards. Give one of: `max` and `grid`; `grid`; `from`, `to` and `points`; `calibrate`; `max` alone for z-rcucb.", [
        key("of", Words(&["wall", "cpu", "work", "memory"]), "`wall`", "What is limited and priced. `work` is a plain count, for forests, targets in virtual time, and commands with `consumption`. `memory` is the peak memory of a program, where the kernel enforces memory limits exactly"),
        optional("max", Amount, "The largest limit"),
        optional("grid", AnyOf(&[Whole(1, MOST_POINTS), List(&Amount)]), "The number of limits up to `max`, or the limits themselves"),
        optional("from", Amount, "The smallest limit"),
        optional("to", Amount, "The largest limit"),
        optional("points", Whole(1, MOST_POINTS), "How many limits from the smallest to the largest"),
        key("scale", Words(&["linear", "log"]), "`linear`", "Equal differences or equal ratios"),
        optional("calibrate", Shape::Section(&CALIBRATE), "Measure the limits first"),
        optional("wall", Amount, "Guard: the longest a pull may take"),
        optional("cpu", Amount, "Guard: the most CPU time a pull may use"),
        optional("work", Amount, "Guard: the most work a fit may do"),
        optional("memory", Size, "Guard: the most memory a pull may use"),
        key("grace", Other(grace), "0", "The time between SIGTERM and SIGKILL"),
]);

#[rustfmt::skip]
pub(super) static CALIBRATE: Section = section!("calibrate", "Run arms once under the guard on the limited resource, then spread limits between quantiles of what they took.", [
        key("points", Whole(1, MOST_POINTS), "10", "How many limits"),
        key("quantiles", Other(quantiles), "[0.25, 0.75]", "Between which quantiles"),
        key("arms", AnyOf(&[Whole(1, 4_294_967_295), Words(&["all"])]), "`all`", "How many arms to run"),
]);

#[rustfmt::skip]
pub(super) static PRICE: Section = section!("price", "What consumption and being cut off cost, with x = consumption / unit.", [
        key("cost", Other(curve), "`x`", "The cost of what a pull consumed"),
        key("penalty", Other(curve), "`10 * x`", "The penalty of the limit that a pull was cut off at"),
        key("unit", Amount, "the largest limit", "The consumption at x = 1"),
]);

#[rustfmt::skip]
pub(super) static BUDGET: Section = section!("budget", "When to stop: whichever ends first.", [
        optional("rounds", Whole(1, ANY), "How many rounds"),
        optional("wall", Amount, "How much time"),
        optional("consumption", Amount, "How much of the limited resource, over all pulls"),
]);

fn target() -> Value {
    let only = |section: &Section| {
        json!({
            "type": "object",
            "additionalProperties": false,
            "required": [section.name],
            "properties": {section.name: section.schema()},
        })
    };
    json!({"anyOf": [
        {"enum": ["external"], "description": EXTERNAL.about},
        COMMAND.schema(),
        WRAPPER.schema(),
        only(&FOREST),
        only(&SYNTHETIC),
        only(&RECORDED),
        only(&SURROGATE),
        only(&EXTERNAL),
    ]})
}

fn policy() -> Value {
    let names = PolicyKind::NAMES;
    let options = json!({
        "type": ["object", "null"],
        "additionalProperties": {"type": ["number", "string", "boolean"]},
    });
    let properties: Map<String, Value> = names
        .iter()
        .map(|name| ((*name).to_owned(), options.clone()))
        .collect();
    let one = json!({"anyOf": [
        {"type": "string", "pattern": format!("^({})(:.*)?$", names.join("|")), "examples": names},
        {
            "type": "object",
            "minProperties": 1,
            "maxProperties": 1,
            "additionalProperties": false,
            "properties": properties,
        },
    ]});
    json!({"anyOf": [one, {"type": "array", "minItems": 1, "items": one}]})
}

fn slots() -> Value {
    json!({"type": "integer", "minimum": 1, "maximum": MOST_SLOTS})
}

fn nodes() -> Value {
    let words = List(&Scalar).schema();
    let engine = |name: &str, value: Value| {
        json!({
            "type": "object",
            "properties": {name: value, "lost_after": Amount.schema()},
            "required": [name],
            "additionalProperties": false,
        })
    };
    let item = |short: Value, required: &str, properties: Value| {
        let long = json!({
            "type": "object",
            "properties": properties,
            "required": [required],
            "additionalProperties": false,
        });
        json!({"type": "array", "minItems": 1, "items": {"anyOf": [short, long]}})
    };
    let text = Text.schema();
    let hosts = json!({"host": text, "slots": slots(), "captime": text});
    let commands = json!({"command": words, "slots": slots()});
    json!({"anyOf": [
        engine("slurm", json!({"const": "auto"})),
        engine("ssh", json!({"anyOf": [text, item(text.clone(), "host", hosts)]})),
        engine("launch", item(words, "command", commands)),
    ]})
}

fn one_or_two() -> Value {
    json!({"anyOf": [
        {"type": "string"},
        {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 2},
    ]})
}

fn env() -> Value {
    let value = json!({"type": ["string", "number", "boolean", "null"]});
    json!({"type": "object", "additionalProperties": value})
}

fn problem() -> Value {
    json!({
        "type": "string",
        "examples": SyntheticProblem::NAMES,
        "pattern": "^(poscorr|negcorr|indep|lowcens|large[0-9]+)$",
    })
}

fn patterns() -> Value {
    let range = json!({
        "type": "object",
        "additionalProperties": false,
        "properties": {"from": {"type": "number"}, "to": {"type": "number"}},
    });
    let wanted = json!({"anyOf": [Scalar.schema(), List(&Scalar).schema(), range]});
    let pattern = json!({"type": "object", "additionalProperties": wanted});
    json!({"anyOf": [pattern, {"type": "array", "minItems": 1, "items": pattern}]})
}

fn grace() -> Value {
    json!({"anyOf": [Amount.schema(), {"const": 0}]})
}

fn quantiles() -> Value {
    let quantile = json!({"type": "number", "minimum": 0, "maximum": 1});
    json!({"type": "array", "items": quantile, "minItems": 2, "maxItems": 2})
}

fn curve() -> Value {
    json!({
        "type": ["string", "number"],
        "examples": ["none", "linear", "par10", "x / 10 if x <= 0.5 else 10 * x"],
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::tests::check;
    use crate::scenario::{Checked, Fault, ScenarioError};

    /// Scenarios of all sections with plain keys. `@` is the place for one more key.
    const WITH_ONE_MORE: [(&Section, &str); 6] = [
        (
            &SCENARIO,
            "target: external\narms: {list: [a, b]}\nlimits: {max: 5s, grid: 2}\n@\n",
        ),
        (
            &COMMAND,
            "target: {command: ['true'], @}\narms: {list: [a, b]}\nlimits: {max: 5s, grid: 2}\n",
        ),
        (
            &WRAPPER,
            "target: {wrapper: ['true'], instances: [i], @}\narms: {list: [a, b]}\nlimits: {max: 5s, grid: 2}\n",
        ),
        (
            &FOREST,
            "target: {forest: {data: ../scenarios/bad/files/houses.csv, predict: zone, @}}\narms: {grid: {trees: [1, 2]}}\nlimits: {max: 5s, grid: 2}\n",
        ),
        (
            &CALIBRATE,
            "target: external\narms: {list: [a, b]}\nlimits: {wall: 9s, calibrate: {@}}\n",
        ),
        (
            &BUDGET,
            "target: external\narms: {list: [a, b]}\nlimits: {max: 5s, grid: 2}\nbudget: {wall: 1h, @}\n",
        ),
    ];

    /// The mistakes in how the key itself is written.
    fn refusals(key: &str, read: &Result<Checked, ScenarioError>) -> Vec<String> {
        let mistakes = read
            .as_ref()
            .err()
            .into_iter()
            .flat_map(|error| &error.mistakes);
        let of_key = mistakes.filter(|mistake| match &mistake.fault {
            Fault::UnknownKey { key: of, .. }
            | Fault::UnknownWord { key: of, .. }
            | Fault::WrongType { key: of, .. }
            | Fault::OutOfRange { key: of, .. } => of == key,
            _ => false,
        });
        of_key.map(|mistake| mistake.fault.to_string()).collect()
    }

    #[test]
    fn a_scenario_may_say_what_the_description_of_a_key_allows_and_nothing_else() {
        for (section, text) in WITH_ONE_MORE {
            for key in section.keys {
                let name = key.name;
                let read = |value: &str| check(&text.replace('@', &format!("{name}: {value}")));
                let (allowed, refused) = match key.shape {
                    // Each policy has rules of its own.
                    Words(_) if name == "recommend" => continue,
                    Words(words) => (words.to_vec(), vec!["nonsense".to_owned()]),
                    Flag => (vec!["true", "false"], vec!["nonsense".to_owned()]),
                    Whole(least, most) => {
                        let beyond = [Some(least - 1), most.checked_add(1)];
                        let beyond = beyond.iter().flatten().map(ToString::to_string);
                        (vec![], beyond.collect())
                    }
                    Between(low, high) => (vec![], vec![low.to_string(), high.to_string()]),
                    _ => continue,
                };
                for word in allowed {
                    assert_eq!(refusals(name, &read(word)), [""; 0], "{name}: {word}");
                }
                for value in refused {
                    assert_eq!(refusals(name, &read(&value)).len(), 1, "{name}: {value}");
                }
            }
        }
    }

    #[test]
    fn the_default_of_a_description_is_what_a_scenario_without_the_key_means() {
        let mut compared = vec![];
        for (section, text) in WITH_ONE_MORE {
            let stored = |more: &str| match check(&text.replace('@', more)) {
                Ok(checked) => checked.scenario.stored(),
                Err(error) => panic!("{error}"),
            };
            for key in section.keys {
                let Some(default) = key.default_value() else {
                    continue;
                };
                let explicit = stored(&format!("{}: {default}", key.name));
                assert_eq!(explicit, stored(""), "{}", key.name);
                compared.push(key.name);
            }
        }
        assert!(compared.contains(&"retries"), "{compared:?}");
    }

    /// The tables are between `<!-- keys: NAME -->` and `<!-- end -->`. `CAPTIME_UPDATE=1` writes them.
    #[test]
    fn the_tables_of_the_documentation_are_those_of_the_keys() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/scenario.md");
        let mut page = std::fs::read_to_string(path).unwrap();
        let before = page.clone();
        let sections = [
            &SCENARIO,
            &COMMAND,
            &EXPECT,
            &CONSUMPTION,
            &WRAPPER,
            &REWARD,
            &FOREST,
            &SYNTHETIC,
            &RECORDED,
            &SURROGATE,
            &EXTERNAL,
            &ARMS,
            &PARAMETER,
            &RANGE,
            &LIMITS,
            &CALIBRATE,
            &PRICE,
            &BUDGET,
        ];
        for section in sections {
            let start = format!("<!-- keys: {} -->\n", section.name);
            let at = page.find(&start).unwrap_or_else(|| panic!("no `{start}`")) + start.len();
            let end = at + page[at..].find("<!-- end -->").unwrap();
            page.replace_range(at..end, &section.table());
        }
        if std::env::var_os("CAPTIME_UPDATE").is_some() {
            std::fs::write(path, &page).unwrap();
        } else {
            assert_eq!(before, page, "run this test with CAPTIME_UPDATE=1");
        }
    }
}
