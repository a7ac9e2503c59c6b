//! Compares the scenario's documentation and schema with the program.

use std::path::{Path, PathBuf};

use captime::scenario::{parse, schema};
use serde_json::Value;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// The YAML blocks of the documentation.
fn examples() -> Vec<String> {
    let text = std::fs::read_to_string(root().join("docs/scenario.md")).unwrap();
    let blocks = text.split("```yaml\n").skip(1);
    blocks
        .map(|block| block.split("```").next().unwrap().to_owned())
        .collect()
}

/// An example of one section becomes a scenario by adding the sections it lacks.
fn completed(example: &str) -> String {
    let has = |key: &str| {
        example
            .lines()
            .any(|line| line.starts_with(&format!("{key}:")))
    };
    let mut text = example.to_owned();
    if !has("target") {
        text += "target: external\n";
        for (key, section) in [
            ("arms", "arms: {grid: {a: [1, 2]}}\n"),
            ("limits", "limits: {max: 5s, grid: 10}\n"),
        ] {
            if !has(key) {
                text += section;
            }
        }
    }
    text
}

#[test]
fn every_example_in_the_documentation_is_a_scenario() {
    let folder = root().join("tests/fixtures/scenario_files");
    let examples = examples();
    assert!(examples.len() > 15, "{}", examples.len());
    for example in examples {
        let text = completed(&example);
        if let Err(error) = parse(&text, Path::new("docs.yaml"), &folder) {
            panic!("{error}\n\n{text}");
        }
    }
}

#[test]
fn every_key_is_documented() {
    let text = std::fs::read_to_string(root().join("docs/scenario.md")).unwrap();
    let mut keys = vec![];
    property_names(&schema(), &mut keys);
    // Policies are explained elsewhere.
    keys.retain(|key| !captime::policy::PolicyKind::NAMES.contains(&key.as_str()));
    for key in keys {
        let is_told = [format!("`{key}`"), format!("{key}:"), format!("`{{{key}: ")]
            .iter()
            .any(|form| text.contains(form.as_str()));
        assert!(is_told, "`{key}` is not documented");
    }
}

fn property_names(schema: &Value, to: &mut Vec<String>) {
    match schema {
        Value::Object(map) => {
            if let Some(Value::Object(properties)) = map.get("properties") {
                to.extend(properties.keys().cloned());
            }
            for value in map.values() {
                property_names(value, to);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| property_names(item, to)),
        _ => {}
    }
}

/// Run with `CAPTIME_UPDATE=1` to write the file again.
#[test]
fn the_schema_in_the_documentation_is_the_one_of_the_program() {
    let path = root().join("docs/scenario.schema.json");
    let wanted = serde_json::to_string_pretty(&schema()).unwrap() + "\n";
    if std::env::var_os("CAPTIME_UPDATE").is_some() {
        std::fs::write(&path, &wanted).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == wanted,
        "docs/scenario.schema.json is out of date: run this test with CAPTIME_UPDATE=1"
    );
}

#[test]
fn the_program_prints_the_schema() {
    let output = assert_cmd::Command::new(env!("CARGO_BIN_EXE_captime"))
        .arg("schema")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(
        serde_json::from_slice::<Value>(&output.stdout).unwrap(),
        schema()
    );
}

#[test]
fn what_the_program_takes_the_schema_takes_too() {
    let mut texts: Vec<String> = examples()
        .iter()
        .map(|example| completed(example))
        .collect();
    texts.push(std::fs::read_to_string(root().join("arms.yaml")).unwrap());
    for kind in ["forest", "solver", "script"] {
        let file = root().join(format!("src/cli/init/{kind}.yaml"));
        texts.push(std::fs::read_to_string(file).unwrap());
    }
    let schema = schema();
    for text in texts {
        let value: Value = serde_yaml::from_str(&text).unwrap();
        let mut complaints = vec![];
        validate(&schema, &value, "", &mut complaints);
        assert!(complaints.is_empty(), "{complaints:?}\n{text}");
    }
}

#[test]
fn what_the_schema_can_refuse_it_refuses() {
    let schema = schema();
    for (name, is_for_a_schema) in [
        ("unknown_top_key", true),
        ("unknown_nested_key", true),
        ("wrong_type_seed", true),
        ("wrong_type_section", true),
        ("missing_target", true),
        ("target_unknown", true),
        ("empty_grid", true),
        ("empty_values", true),
        ("command_is_a_line", true),
        ("unknown_policy", true),
        ("slots_and_pin", true),
        ("from_above_to", false),
        ("penalty_falling", false),
    ] {
        let file = root().join(format!("tests/fixtures/scenarios/bad/{name}.yaml"));
        let value: Value = serde_yaml::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
        let mut complaints = vec![];
        validate(&schema, &value, "", &mut complaints);
        assert_eq!(
            !complaints.is_empty(),
            is_for_a_schema,
            "{name}: {complaints:?}"
        );
    }
}

/// The part of JSON schema that the scenario's schema uses.
fn validate(schema: &Value, value: &Value, at: &str, complaints: &mut Vec<String>) {
    let mut complain = |what: &str| complaints.push(format!("{at}: {what}: {value}"));
    if let Some(known) = schema.get("enum").and_then(Value::as_array) {
        if !known.contains(value) {
            complain("not one of the words");
        }
        return;
    }
    if let Some(constant) = schema.get("const") {
        if constant != value {
            complain("not the constant");
        }
        return;
    }
    if let Some(types) = schema.get("type") {
        let types: Vec<&str> = match types {
            Value::Array(types) => types.iter().filter_map(Value::as_str).collect(),
            one => one.as_str().into_iter().collect(),
        };
        let is_fine = types.iter().any(|kind| match *kind {
            "object" => value.is_object(),
            "array" => value.is_array(),
            "string" => value.is_string(),
            "number" => value.is_number(),
            "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
            "boolean" => value.is_boolean(),
            "null" => value.is_null(),
            other => panic!("the validator does not know the type {other}"),
        });
        if !is_fine {
            complain("wrong type");
            return;
        }
    }
    if let (Some(least), Some(number)) = (
        schema.get("minimum").and_then(Value::as_f64),
        value.as_f64(),
    ) && number < least
    {
        complain("too small");
    }
    if let (Some(pattern), Some(text)) = (
        schema.get("pattern").and_then(Value::as_str),
        value.as_str(),
    ) && !regex::Regex::new(pattern).unwrap().is_match(text)
    {
        complain("does not match the pattern");
    }
    if let Some(items) = value.as_array() {
        let least = schema.get("minItems").and_then(Value::as_u64).unwrap_or(0);
        let most = schema
            .get("maxItems")
            .and_then(Value::as_u64)
            .unwrap_or(u64::MAX);
        if !(least..=most).contains(&(items.len() as u64)) {
            complain("wrong number of items");
        }
        if let Some(inner) = schema.get("items") {
            for (place, item) in items.iter().enumerate() {
                validate(inner, item, &format!("{at}/{place}"), complaints);
            }
        }
    }
    if let Some(map) = value.as_object() {
        validate_object(schema, map, at, complaints);
    }
    if let Some(ways) = schema.get("anyOf").and_then(Value::as_array) {
        let mut all = vec![];
        let fits = ways.iter().any(|way| {
            let mut inner = vec![];
            validate(way, value, at, &mut inner);
            let fits = inner.is_empty();
            all.extend(inner);
            fits
        });
        if !fits {
            complaints.push(format!("{at}: none of the ways: {}", all.join("; ")));
        }
    }
}

fn validate_object(
    schema: &Value,
    map: &serde_json::Map<String, Value>,
    at: &str,
    complaints: &mut Vec<String>,
) {
    if let Some(least) = schema.get("minProperties").and_then(Value::as_u64)
        && (map.len() as u64) < least
    {
        complaints.push(format!("{at}: empty"));
    }
    for key in schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        if !map.contains_key(key.as_str().unwrap()) {
            complaints.push(format!("{at}: lacks {key}"));
        }
    }
    for (key, inner) in map {
        let known = schema.get("properties").and_then(|known| known.get(key));
        let others = schema.get("additionalProperties");
        match (known, others) {
            (Some(known), _) => validate(known, inner, &format!("{at}/{key}"), complaints),
            (None, Some(Value::Bool(false))) => {
                complaints.push(format!("{at}: unknown key {key}"));
            }
            (None, Some(others)) => validate(others, inner, &format!("{at}/{key}"), complaints),
            (None, None) => {}
        }
    }
}

/// The same for wall time, which only real runs use.
#[test]
fn a_wall_budget_may_be_raised_and_added_but_not_lowered_below_what_was_used() {
    let folder = tempfile::tempdir().unwrap();
    let run = |budget: &str| {
        let text = format!(
            "target: {{command: [sleep, '0.4'], reward: {{exit: [0]}}}}\narms: {{list: [{{a: 1}}]}}\n\
             limits: {{of: wall, grid: [20s]}}\nslots: 1\npin: never\nbudget: {{{budget}}}\n"
        );
        std::fs::write(folder.path().join("s.yaml"), text).unwrap();
        let output = assert_cmd::Command::new(env!("CARGO_BIN_EXE_captime"))
            .current_dir(folder.path())
            .args(["run", "s.yaml", "--quiet"])
            .output()
            .unwrap();
        let journal = std::fs::read_to_string(folder.path().join("runs/s/journal.jsonl")).unwrap();
        let rounds = journal.matches("{\"outcome\":").count();
        let stderr = String::from_utf8(output.stderr).unwrap();
        (output.status.code(), rounds, stderr)
    };
    assert_eq!(run("rounds: 1").1, 1);
    let (code, rounds, said) = run("rounds: 2, wall: 0.1s");
    assert_eq!((code, rounds), (Some(2), 1), "{said}");
    assert!(said.contains("of wall time, but"), "{said}");
    let (code, rounds, said) = run("rounds: 2, wall: 10m");
    assert_eq!((code, rounds), (Some(0), 2), "{said}");
    let (code, rounds, said) = run("rounds: 3, wall: 20m");
    assert_eq!((code, rounds), (Some(0), 3), "{said}");
    let (code, rounds, said) = run("rounds: 4, wall: 0.2s");
    assert_eq!((code, rounds), (Some(2), 3), "{said}");
}

/// A budget may change while a run is under way, but not to less than what was used.
#[test]
fn a_budget_may_be_raised_extended_and_lowered_to_what_is_not_used_yet() {
    let folder = tempfile::tempdir().unwrap();
    let run = |budget: &str, seed: u32| {
        let text = format!(
            "target: {{synthetic: {{problem: indep}}}}\npolicy: uniform\nbudget: {{{budget}}}\nseed: {seed}\n"
        );
        std::fs::write(folder.path().join("s.yaml"), text).unwrap();
        let output = assert_cmd::Command::new(env!("CARGO_BIN_EXE_captime"))
            .current_dir(folder.path())
            .args(["run", "s.yaml", "--quiet"])
            .output()
            .unwrap();
        let journal = std::fs::read_to_string(folder.path().join("runs/s/journal.jsonl")).unwrap();
        let rounds = journal.matches("{\"outcome\":").count();
        let stderr = String::from_utf8(output.stderr).unwrap();
        (output.status.code(), rounds, stderr)
    };
    assert_eq!(run("rounds: 10", 1).1, 10);
    assert_eq!(run("rounds: 20", 1).1, 20, "raised");
    let (code, rounds, said) = run("rounds: 15", 1);
    assert_eq!((code, rounds), (Some(2), 20), "{said}");
    assert!(said.contains("15 rounds, but 20 are done"), "{said}");
    let (code, rounds, said) = run("rounds: 30, consumption: 0.5s", 1);
    assert_eq!((code, rounds), (Some(2), 20), "{said}");
    assert!(said.contains("consumption of 0.5"), "{said}");
    assert_eq!(
        run("rounds: 30, consumption: 1000s", 1).1,
        30,
        "a bound was added"
    );
    assert_eq!(run("rounds: 40", 1).1, 40, "a bound was removed");
    assert_eq!(
        run("rounds: 1000, consumption: 900s", 1).0,
        Some(0),
        "lowered, but not below what was used"
    );
    let (code, _, said) = run("rounds: 1000", 2);
    assert_eq!(code, Some(2));
    assert!(said.contains("seed: 1 -> 2"), "{said}");
}
