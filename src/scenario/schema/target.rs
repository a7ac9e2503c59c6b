//! What a pull runs.

use serde_json::{Value, json};

use super::shape::{
    amount, codes, instances, list, number, object, one_of, one_or_two, scalar, size, text, texts,
    whole, with_required, words,
};
use crate::target::synthetic::{Grid, SyntheticProblem};

/// The section `target`.
pub(super) fn target() -> Value {
    let only =
        |key: &'static str, inner: Value| with_required(object("", vec![(key, inner)]), &[key]);
    one_of(
        "What a pull runs.",
        vec![
            words(
                "Pulls are run by somebody else, through `captime ask`.",
                &["external"],
            ),
            command(),
            only("forest", forest()),
            only("synthetic", synthetic()),
            only("recorded", recorded()),
            only("external", external()),
        ],
    )
}

/// A program.
pub(super) fn command() -> Value {
    with_required(
        object(
            "A program.",
            vec![
                (
                    "command",
                    list(
                        "The program and its arguments, never a shell line. Placeholders: every parameter, {instance}, {seed}, {limit}, {cpu_limit}, {round}, {scratch}, {params}, {name}; {{ and }} are braces.",
                        scalar("An argument."),
                    ),
                ),
                (
                    "params",
                    one_or_two(
                        "The form of what {params} expands to, with {name} and {value}; \"--{name}={value}\" unless given.",
                    ),
                ),
                ("instances", instances("One is drawn each round.")),
                ("test", instances("Kept back for judging the answer.")),
                ("reward", reward()),
                (
                    "success",
                    codes(
                        "Exit codes of a normal end; [0] unless given, or those of `reward: {exit: ...}`.",
                    ),
                ),
                (
                    "env",
                    json!({"type": "object", "description": "Environment variables, with placeholders.", "additionalProperties": one_of("A value.", vec![scalar("A value."), json!({"type": "null"})])}),
                ),
                (
                    "directory",
                    text("Where it runs; the scenario's folder unless given."),
                ),
                (
                    "stdin",
                    object(
                        "What it reads; nothing unless given.",
                        vec![
                            ("file", text("A file, with placeholders.")),
                            ("text", text("This text, with placeholders.")),
                        ],
                    ),
                ),
                (
                    "output_limit",
                    size("How much of stdout and of stderr is kept; 1MiB unless given."),
                ),
            ],
        ),
        &["command"],
    )
}

/// A random forest.
pub(super) fn forest() -> Value {
    with_required(
        object(
            "A random forest on a CSV file.",
            vec![
                ("data", text("The CSV file, with a header.")),
                ("predict", text("The column to predict.")),
                (
                    "train",
                    json!({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1, "description": "Share of the rows to train on; 0.7 unless given."}),
                ),
                (
                    "task",
                    words(
                        "What to predict; what the column looks like unless given.",
                        &["auto", "regression", "classification"],
                    ),
                ),
                (
                    "engine",
                    words(
                        "Which implementation; builtin unless given.",
                        &["builtin", "smartcore", "linfa"],
                    ),
                ),
                (
                    "isolation",
                    words(
                        "In a thread of ours, or in a process of its own, which the memory guard needs.",
                        &["thread", "process"],
                    ),
                ),
                ("threads", whole("Threads per fit; 1 unless given.", 1)),
                (
                    "normalise",
                    words(
                        "What the error is divided by; the range of the column unless given.",
                        &["range", "sd"],
                    ),
                ),
                ("drop", texts("Columns that are no predictors.")),
                (
                    "levels",
                    one_of(
                        "In what order the levels of a factor stand.",
                        vec![
                            words(
                                "By name, or by the mean response in the training rows.",
                                &["alphabetical", "by-response"],
                            ),
                            json!({"type": "object", "description": "For some columns, their levels in order.", "additionalProperties": list("Levels in order.", scalar("A level."))}),
                        ],
                    ),
                ),
            ],
        ),
        &["data", "predict"],
    )
}

/// One of the paper's problems.
pub(super) fn synthetic() -> Value {
    let problems: Vec<&str> = SyntheticProblem::NAMES.to_vec();
    with_required(
        object(
            "One of the paper's problems, in virtual time.",
            vec![
                (
                    "problem",
                    json!({"type": "string", "description": "Which one; `large` takes any number of arms after it.", "examples": problems, "pattern": "^(poscorr|negcorr|indep|lowcens|large[0-9]+)$"}),
                ),
                (
                    "grid",
                    words(
                        "Its limits, where the scenario gives none; recovered unless given.",
                        &Grid::NAMES,
                    ),
                ),
            ],
        ),
        &["problem"],
    )
}

/// Recorded runs.
pub(super) fn recorded() -> Value {
    with_required(
        object(
            "Runs that somebody measured once, replayed in virtual time.",
            vec![
                (
                    "consumption",
                    text(
                        "A CSV with a row per instance (its name first) and a column per arm, or an ASlib algorithm_runs.arff.",
                    ),
                ),
                (
                    "reward",
                    text("A CSV of rewards of the same shape; whatever ended gives 1 without it."),
                ),
                ("cutoff", amount("Up to where runs were measured.")),
                (
                    "unsolved",
                    amount("The value that means not ended; anything above the cutoff does too."),
                ),
                (
                    "test",
                    instances("Instances kept back for judging the answer."),
                ),
            ],
        ),
        &["consumption"],
    )
}

/// Pulls run by somebody else.
pub(super) fn external() -> Value {
    object(
        "Pulls that somebody else runs, through `captime ask`.",
        vec![
            ("instances", instances("Instances a policy may ask for.")),
            ("test", instances("Kept back for judging the answer.")),
        ],
    )
}

/// The section `reward`.
pub(super) fn reward() -> Value {
    object(
        "How the reward is read; 1 for exit code 0 unless given.",
        vec![
            ("exit", codes("1 if it ends with one of these: solved.")),
            (
                "stdout",
                text("A regular expression whose only group is the score."),
            ),
            ("stderr", text("The same, on the error output.")),
            (
                "json",
                text("A JSON pointer to the score, as /score, in the output or in `file`."),
            ),
            ("file", text("A file it writes, with placeholders.")),
            (
                "match",
                text("A regular expression whose only group is the score, in `file`."),
            ),
            ("worst", number("The score worth 0.")),
            ("best", number("The score worth 1.")),
        ],
    )
}
