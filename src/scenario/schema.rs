//! The JSON schema of a scenario, so that editors complete keys and explain them.
//!
//! It says what the check accepts, as far as a schema can; tests hold the two together.

mod shape;
mod target;

use serde_json::{Map, Value, json};

use super::model::MOST_SLOTS;
use crate::policy::PolicyKind;
use shape::{
    amount, flag, list, number, object, one_of, scalar, size, text, texts, whole, with_required,
    words,
};
use target::target;

/// The schema, as `docs/scenario.schema.json` has it.
pub fn schema() -> Value {
    let mut root = object(
        "A captime scenario: what to tune, and how.",
        vec![
            (
                "name",
                text(
                    "Names the run's folder; the file's own name unless given. Letters, digits, `-`, `_`, `.`.",
                ),
            ),
            ("target", target()),
            ("arms", arms()),
            ("limits", limits()),
            ("price", price()),
            ("policy", policy()),
            (
                "recommend",
                words(
                    "The rule by which the answer is chosen.",
                    &["safe", "best", "finest", "posterior"],
                ),
            ),
            ("budget", budget()),
            (
                "slots",
                one_of(
                    "How many pulls run at a time.",
                    vec![
                        words("As many as CPUs that we may use.", &["auto"]),
                        json!({
                            "description": "So many.",
                            "type": "integer",
                            "minimum": 1,
                            "maximum": MOST_SLOTS,
                        }),
                    ],
                ),
            ),
            (
                "pin",
                one_of(
                    "Whether slots have CPUs of their own.",
                    vec![
                        words(
                            "If slots x threads fit (auto), or never.",
                            &["auto", "never"],
                        ),
                        json!({"const": false}),
                    ],
                ),
            ),
            (
                "seed",
                whole("Where all chance comes from; 1 unless given.", 0),
            ),
            (
                "stop_on_first_failures",
                flag(
                    "Stop when the first pulls all fail without hitting a guard; true unless given.",
                ),
            ),
            (
                "retries",
                whole(
                    "How often a run that was lost with its launcher is run again; 2 unless given.",
                    0,
                ),
            ),
        ],
    );
    if let Value::Object(root) = &mut root {
        root.insert(
            "$schema".into(),
            json!("https://json-schema.org/draft/2020-12/schema"),
        );
        root.insert("title".into(), json!("captime scenario"));
        root.insert("required".into(), json!(["target"]));
    }
    root
}

fn arms() -> Value {
    let range = object(
        "Numbers from here to there.",
        vec![
            ("from", number("The first.")),
            ("to", number("The last.")),
            ("step", number("From one to the next.")),
            ("points", whole("How many, instead of a step.", 2)),
            (
                "scale",
                words(
                    "Equal steps or equal ratios, with points.",
                    &["linear", "log"],
                ),
            ),
        ],
    );
    let ordered = with_required(
        object(
            "Words with an order.",
            vec![("ordered", list("In their order.", scalar("A value.")))],
        ),
        &["ordered"],
    );
    let values = one_of(
        "The values of a parameter.",
        vec![
            list("These.", scalar("A value.")),
            with_required(range, &["from", "to"]),
            ordered,
            scalar("This one."),
        ],
    );
    let wanted = one_of(
        "What a value must be to match.",
        vec![
            scalar("This."),
            list("One of these.", scalar("A value.")),
            object(
                "A number in this range.",
                vec![
                    ("from", number("The smallest.")),
                    ("to", number("The largest.")),
                ],
            ),
        ],
    );
    let pattern = json!({"type": "object", "additionalProperties": wanted});
    let patterns = |description: &str| {
        one_of(
            description,
            vec![pattern.clone(), list("Any of these.", pattern.clone())],
        )
    };
    object(
        "Where arms come from: a grid, a list, or a file.",
        vec![
            (
                "grid",
                json!({"type": "object", "minProperties": 1, "description": "Every combination is an arm.", "additionalProperties": values}),
            ),
            (
                "list",
                list(
                    "The arms one by one; each a name, or parameters with an optional name.",
                    one_of(
                        "An arm.",
                        vec![
                            json!({"type": "string"}),
                            json!({"type": "object", "additionalProperties": scalar("A value.")}),
                        ],
                    ),
                ),
            ),
            (
                "file",
                text(
                    "A CSV: the first line names the parameters, each further line is an arm; a column `name` names it.",
                ),
            ),
            (
                "only",
                patterns("Of the grid, keep the combinations that match one of these."),
            ),
            (
                "except",
                patterns("Of the grid, drop the combinations that match one of these."),
            ),
            (
                "drop",
                texts(
                    "Columns of the file that are no parameters; `dummy*` drops all that begin so.",
                ),
            ),
        ],
    )
}

fn limits() -> Value {
    let calibrate = object(
        "Find the limits: run arms once under the guard of the same resource, then spread limits over what they took.",
        vec![
            ("points", whole("How many limits; 10 unless given.", 1)),
            (
                "quantiles",
                json!({"type": "array", "items": {"type": "number", "minimum": 0, "maximum": 1}, "minItems": 2, "maxItems": 2, "description": "Between which quantiles; [0.25, 0.75] unless given."}),
            ),
            (
                "arms",
                one_of(
                    "With how many arms; all unless given.",
                    vec![whole("So many.", 1), words("All.", &["all"])],
                ),
            ),
        ],
    );
    object(
        "What the policy limits, the limits it may choose, and the guards around them. One of: max with grid; grid; from, to, points; calibrate; max alone for z-rcucb.",
        vec![
            (
                "of",
                words(
                    "What is limited and priced; wall unless given. work is a plain count, for forests and targets in virtual time.",
                    &["wall", "cpu", "work"],
                ),
            ),
            ("max", amount("The largest limit.")),
            (
                "grid",
                one_of(
                    "A number of limits up to max, or the limits themselves.",
                    vec![
                        whole("max k/grid for k = 1..grid.", 1),
                        list("The limits.", amount("A limit.")),
                    ],
                ),
            ),
            ("from", amount("The smallest limit.")),
            ("to", amount("The largest limit.")),
            (
                "points",
                whole("How many from the smallest to the largest.", 1),
            ),
            (
                "scale",
                words(
                    "Equal steps or equal ratios; linear unless given.",
                    &["linear", "log"],
                ),
            ),
            ("calibrate", calibrate),
            ("wall", amount("Guard: no pull may take longer.")),
            ("cpu", amount("Guard: no pull may use more CPU time.")),
            ("work", amount("Guard: no fit may do more work.")),
            ("memory", size("Guard: no pull may use more memory.")),
            (
                "grace",
                one_of(
                    "Time between SIGTERM and SIGKILL; 0 unless given.",
                    vec![amount("So long."), json!({"const": 0})],
                ),
            ),
        ],
    )
}

fn price() -> Value {
    let curve = |description: &str| json!({"type": ["string", "number"], "description": description, "examples": ["none", "linear", "par10", "x / 10 if x <= 0.5 else 10 * x"]});
    object(
        "What consumption and being cut off cost; x = consumption / unit.",
        vec![
            ("cost", curve("Of what a pull consumed; x unless given.")),
            (
                "penalty",
                curve("Of the limit a pull was cut off at; 10 * x unless given."),
            ),
            (
                "unit",
                amount("Consumption per x; the largest limit unless given."),
            ),
        ],
    )
}

fn policy() -> Value {
    let names = PolicyKind::NAMES;
    let mut with_options = Map::new();
    for name in names {
        with_options.insert(
            (*name).into(),
            json!({"type": ["object", "null"], "additionalProperties": {"type": ["number", "string", "boolean"]}}),
        );
    }
    let one = one_of(
        "A policy.",
        vec![
            json!({"type": "string", "pattern": format!("^({})(:.*)?$", names.join("|")), "examples": names}),
            json!({"type": "object", "minProperties": 1, "maxProperties": 1, "additionalProperties": false, "properties": with_options}),
        ],
    );
    one_of(
        "Who chooses; similar-ts unless given. `run` uses the first of a list, `study` sets them against each other.",
        vec![one.clone(), list("Several.", one)],
    )
}

fn budget() -> Value {
    object(
        "When to stop: whichever ends first.",
        vec![
            ("rounds", whole("So many rounds.", 1)),
            ("wall", amount("So much time.")),
            ("consumption", amount("So much of what is limited.")),
        ],
    )
}

#[cfg(test)]
mod tests {
    use super::super::check;
    use super::*;

    fn keys(schema: &Value) -> Vec<String> {
        schema["properties"]
            .as_object()
            .unwrap()
            .keys()
            .cloned()
            .collect()
    }

    fn same(schema: &Value, known: &[&str]) {
        let mut known: Vec<String> = known.iter().map(ToString::to_string).collect();
        known.sort();
        let mut keys = keys(schema);
        keys.sort();
        assert_eq!(keys, known);
    }

    #[test]
    fn the_schema_has_the_keys_that_the_check_knows() {
        same(&schema(), check::KEYS);
        same(&arms(), check::arms::KEYS);
        same(&limits(), check::limits::KEYS);
        same(&target::reward(), check::reward::KEYS);
        same(&target::command(), check::command::KEYS);
        same(&target::forest(), check::forest::KEYS);
    }
}
