//! The shapes that the schema is made of.

use serde_json::{Map, Value, json};

pub(super) fn object(description: &str, keys: Vec<(&'static str, Value)>) -> Value {
    let properties: Map<String, Value> = keys
        .into_iter()
        .map(|(key, schema)| (key.to_owned(), schema))
        .collect();
    let mut object =
        json!({"type": "object", "additionalProperties": false, "properties": properties});
    describe(&mut object, description);
    object
}

pub(super) fn with_required(mut object: Value, keys: &[&str]) -> Value {
    if let Value::Object(object) = &mut object {
        object.insert("required".into(), json!(keys));
    }
    object
}

pub(super) fn describe(schema: &mut Value, description: &str) {
    if let (Value::Object(schema), false) = (schema, description.is_empty()) {
        schema.insert("description".into(), json!(description));
    }
}

pub(super) fn one_of(description: &str, schemas: Vec<Value>) -> Value {
    json!({"anyOf": schemas, "description": description})
}

pub(super) fn text(description: &str) -> Value {
    json!({"type": "string", "description": description})
}

pub(super) fn flag(description: &str) -> Value {
    json!({"type": "boolean", "description": description})
}

pub(super) fn number(description: &str) -> Value {
    json!({"type": "number", "description": description})
}

pub(super) fn whole(description: &str, least: u64) -> Value {
    json!({"type": "integer", "minimum": least, "description": description})
}

pub(super) fn scalar(description: &str) -> Value {
    json!({"type": ["string", "number", "boolean"], "description": description})
}

pub(super) fn words(description: &str, words: &[&str]) -> Value {
    json!({"enum": words, "description": description})
}

pub(super) fn list(description: &str, items: Value) -> Value {
    json!({"type": "array", "minItems": 1, "items": items, "description": description})
}

pub(super) fn texts(description: &str) -> Value {
    one_of(
        description,
        vec![scalar("One."), list("Several.", scalar("One."))],
    )
}

pub(super) fn one_or_two(description: &str) -> Value {
    one_of(
        description,
        vec![
            json!({"type": "string"}),
            json!({"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 2}),
        ],
    )
}

pub(super) fn codes(description: &str) -> Value {
    let code = json!({"type": "integer", "minimum": 0, "maximum": 255});
    one_of(description, vec![code.clone(), list("Several.", code)])
}

pub(super) fn instances(description: &str) -> Value {
    one_of(
        description,
        vec![
            text(
                "A pattern of files with `*`, `?`, `[abc]` or `**`, or a file that lists one a line.",
            ),
            list("The instances.", scalar("An instance.")),
        ],
    )
}

/// A duration, or a plain number where work is counted.
pub(super) fn amount(description: &str) -> Value {
    json!({"type": ["string", "number"], "description": description, "examples": ["2.5s", "1h 30m"]})
}

pub(super) fn size(description: &str) -> Value {
    json!({"type": ["string", "integer"], "description": description, "examples": ["200MiB", "2GiB"]})
}
