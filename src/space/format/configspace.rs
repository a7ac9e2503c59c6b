//! ConfigSpace's JSON and YAML: format 0.4 and older files.

use std::ops::Range;

use serde_json::{Value as Json, json};

use super::{
    Draft, Format, FormatError, SpaceFile, SpaceMistake, WriteError, Written, digits_lost,
};
use crate::nearest::nearest;
use crate::space::Value;
use crate::space::open::{
    Domain, OpenParameter, OpenSpace, Relation, Rule, Spacing, Term, compare,
};
use crate::yaml::{Node, Raw};

const TYPES: &[&str] = &[
    "uniform_float",
    "uniform_int",
    "normal_float",
    "normal_int",
    "beta_float",
    "beta_int",
    "categorical",
    "ordinal",
    "constant",
    "unparametrized",
];

pub(super) fn read(text: &str) -> Result<SpaceFile, Vec<SpaceMistake>> {
    let root = super::parse_tree(text).map_err(|mistake| vec![mistake])?;
    let mut draft = Draft::default();
    for node in list(&mut draft, &root, "hyperparameters", true) {
        let name = match node.get("name").map(|found| &found.value) {
            Some(Raw::Text(name)) => name.as_str(),
            _ => "",
        };
        draft.defines(name, |draft| hyperparameter(draft, node));
    }
    for node in list(&mut draft, &root, "conditions", false) {
        let Some(child) = named(&mut draft, node, "child") else {
            continue;
        };
        draft.condition_count += 1;
        if let Some(rule) = condition(&mut draft, node) {
            draft.condition(child, rule, node.at.range());
        }
    }
    for node in list(&mut draft, &root, "forbiddens", false) {
        if let Some(rule) = forbidden(&mut draft, node) {
            draft.forbid(rule, node.at.range());
        }
    }
    draft.finish(root.at.range())
}

fn list<'n>(draft: &mut Draft, node: &'n Node, key: &'static str, is_needed: bool) -> &'n [Node] {
    match node.get(key).map(|found| (&found.value, found)) {
        Some((Raw::List(items), _)) => items,
        Some((Raw::Null, _)) if !is_needed => &[],
        Some((_, found)) => {
            draft.expected(found.at.range(), "a list", found.shown());
            &[]
        }
        None if is_needed => {
            let section = "the file".to_owned();
            draft.mistake(node.at.range(), FormatError::Missing { section, key });
            &[]
        }
        None => &[],
    }
}

fn text<'n>(
    draft: &mut Draft,
    node: &'n Node,
    key: &'static str,
) -> Option<(&'n str, Range<usize>)> {
    match node.get(key) {
        Some(Node {
            value: Raw::Text(text),
            at,
        }) => Some((text, at.range())),
        Some(found) => {
            draft.expected(found.at.range(), "text", found.shown());
            None
        }
        None => {
            let section = "this entry".to_owned();
            draft.mistake(node.at.range(), FormatError::Missing { section, key });
            None
        }
    }
}

/// The index of the parameter that a key names.
fn named(draft: &mut Draft, node: &Node, key: &'static str) -> Option<usize> {
    let (name, at) = text(draft, node, key)?;
    draft.find(name, &at)
}

fn number(draft: &mut Draft, node: &Node, key: &'static str) -> Option<f64> {
    match node.get(key).map(|found| &found.value) {
        Some(Raw::Integer(value)) => Some(*value as f64),
        Some(Raw::Number(value)) => Some(*value),
        Some(_) => {
            let found = node.get(key)?;
            draft.expected(found.at.range(), "a number", found.shown());
            None
        }
        None => {
            let section = "this entry".to_owned();
            draft.mistake(node.at.range(), FormatError::Missing { section, key });
            None
        }
    }
}

fn plain(draft: &mut Draft, node: &Node) -> Option<Value> {
    match &node.value {
        Raw::Flag(value) => Some(Value::Flag(*value)),
        Raw::Integer(value) => Some(Value::Integer(*value)),
        Raw::Number(value) if value.is_finite() => Some(Value::Number(*value)),
        Raw::Text(value) => Some(Value::Text(value.as_str().into())),
        // Python's own word for it, as its tools would print it.
        Raw::Null => Some(Value::Text("None".into())),
        _ => {
            draft.expected(
                node.at.range(),
                "a number, text, or true or false",
                node.shown(),
            );
            None
        }
    }
}

fn values(draft: &mut Draft, node: &Node, key: &'static str) -> Option<Vec<Value>> {
    let items = list(draft, node, key, true);
    items.iter().map(|item| plain(draft, item)).collect()
}

fn hyperparameter(draft: &mut Draft, node: &Node) {
    let (Some((name, name_at)), Some((kind, kind_at))) =
        (text(draft, node, "name"), text(draft, node, "type"))
    else {
        return;
    };
    let is_log = matches!(
        node.get("log").map(|found| &found.value),
        Some(Raw::Flag(true))
    );
    let spacing = if is_log {
        Spacing::Log
    } else {
        Spacing::Linear
    };
    let is_integer = kind.ends_with("_int");
    let domain = match kind {
        "uniform_float" | "uniform_int" | "normal_float" | "normal_int" | "beta_float"
        | "beta_int" => {
            let is_uniform = kind.starts_with("uniform");
            let bound = |draft: &mut Draft, key, sign: f64| {
                let is_given = node.get(key).is_some_and(|found| found.value != Raw::Null);
                if is_given || !kind.starts_with("normal") {
                    return number(draft, node, key);
                }
                // Mean and deviation are those of the logarithm.
                let bound = number(draft, node, "mu")? + sign * 3.0 * number(draft, node, "sigma")?;
                Some(if is_log { bound.exp() } else { bound })
            };
            let (Some(low), Some(high)) = (bound(draft, "lower", -1.0), bound(draft, "upper", 1.0))
            else {
                return;
            };
            if !is_uniform {
                let shape = kind.split('_').next().unwrap_or_default();
                draft.note(
                    kind_at.clone(),
                    format!("`{name}` is drawn uniformly, not from its {shape} distribution"),
                );
            }
            let step = node.get("q").filter(|found| found.value != Raw::Null);
            let digits = step.and_then(|found| digits_of(&found.value));
            if let Some(found) = step
                && (is_integer || digits.is_none())
                && found.value != Raw::Integer(1)
            {
                let text = format!("`{name}` takes any value, not only steps of its `q`");
                draft.note(found.at.range(), text);
            }
            if is_integer {
                Domain::integer(low.round() as i64, high.round() as i64, spacing)
            } else {
                let domain = Domain::real(low, high, spacing);
                match digits {
                    Some(digits) => domain.and_then(|domain| domain.with_digits(digits)),
                    None => domain,
                }
            }
        }
        "categorical" => {
            let Some(values) = values(draft, node, "choices") else {
                return;
            };
            let is_even = |found: &Node| match &found.value {
                Raw::List(weights) => weights
                    .windows(2)
                    .all(|pair| pair[0].value == pair[1].value),
                _ => true,
            };
            if let Some(weights) = node.get("weights").or(node.get("probabilities"))
                && !is_even(weights)
            {
                draft.note(
                    weights.at.range(),
                    format!(
                        "all values of `{name}` are drawn equally often, whatever their weights"
                    ),
                );
            }
            Domain::choice(values)
        }
        "ordinal" => {
            let Some(values) = values(draft, node, "sequence") else {
                return;
            };
            Domain::ordered(values)
        }
        "constant" | "unparametrized" => {
            let Some(value) = node.get("value").and_then(|found| plain(draft, found)) else {
                let (section, key) = ("this entry".to_owned(), "value");
                draft.mistake(node.at.range(), FormatError::Missing { section, key });
                return;
            };
            Domain::choice(vec![value])
        }
        other => {
            let error = FormatError::UnknownType {
                name: other.to_owned(),
                nearest: nearest(other, TYPES.iter().copied()).map(str::to_owned),
            };
            draft.mistake(kind_at, error);
            return;
        }
    };
    let domain = match domain {
        Ok(domain) => domain,
        Err(error) => {
            let name = name.to_owned();
            draft.mistake(name_at, FormatError::Domain { name, error });
            return;
        }
    };
    let mut parameter = OpenParameter::new(name, domain);
    let default = node.get("default_value").or(node.get("default"));
    let default = default.filter(|found| found.value != Raw::Null);
    let default_at = default.map_or(name_at.clone(), |found| found.at.range());
    if let Some(found) = default {
        parameter.default = plain(draft, found);
    }
    draft.add(parameter, name_at, default_at);
}

/// The digits after the point of numbers in steps of 1, 0.1, 0.01 and so on.
fn digits_of(step: &Raw) -> Option<f64> {
    let step = match step {
        Raw::Integer(step) => *step as f64,
        Raw::Number(step) => *step,
        _ => return None,
    };
    let digits = -step.log10();
    let is_whole = (digits - digits.round()).abs() < 1e-9 && digits >= 0.0;
    is_whole.then(|| digits.round())
}

/// The reader of the tree refuses conditions and clauses that are nested deeper than this can handle.
fn condition(draft: &mut Draft, node: &Node) -> Option<Rule> {
    let (kind, at) = text(draft, node, "type")?;
    let comparison = match kind {
        "AND" | "OR" => {
            let parts = list(draft, node, "conditions", true);
            let rules: Option<Vec<Rule>> =
                parts.iter().map(|part| condition(draft, part)).collect();
            return rules.map(if kind == "AND" { Rule::all } else { Rule::any });
        }
        "EQ" => Relation::Equal,
        "NEQ" => Relation::NotEqual,
        "LT" => Relation::Less,
        "GT" => Relation::More,
        "IN" => {
            let parent = named(draft, node, "parent")?;
            return one_of(draft, node, parent);
        }
        other => {
            unknown(
                draft,
                other,
                at,
                &["EQ", "NEQ", "LT", "GT", "IN", "AND", "OR"],
            );
            return None;
        }
    };
    let parent = named(draft, node, "parent")?;
    against(draft, node, parent, comparison)
}

fn forbidden(draft: &mut Draft, node: &Node) -> Option<Rule> {
    let (kind, at) = text(draft, node, "type")?;
    let legacy = |lambda: &str| match lambda {
        "LT" | "LESS" => Some(Relation::Less),
        "EQ" | "EQUALS" => Some(Relation::Equal),
        "GT" | "GREATER" => Some(Relation::More),
        _ => None,
    };
    let comparison = match kind {
        "AND" | "OR" => {
            let parts = list(draft, node, "clauses", true);
            let rules: Option<Vec<Rule>> =
                parts.iter().map(|part| forbidden(draft, part)).collect();
            return rules.map(if kind == "AND" { Rule::all } else { Rule::any });
        }
        "IN" => {
            let parameter = named(draft, node, "name")?;
            return one_of(draft, node, parameter);
        }
        "EQUALS" | "RELATION_EQ" => Relation::Equal,
        "CLAUSE_LT" | "RELATION_LT" => Relation::Less,
        "CLAUSE_LE" | "RELATION_LE" => Relation::AtMost,
        "CLAUSE_GT" | "RELATION_GT" => Relation::More,
        "CLAUSE_GE" | "RELATION_GE" => Relation::AtLeast,
        "RELATION" => {
            let (lambda, at) = text(draft, node, "lambda")?;
            let Some(comparison) = legacy(lambda) else {
                unknown(draft, lambda, at, &["LT", "EQ", "GT"]);
                return None;
            };
            comparison
        }
        other => {
            let known = [
                "EQUALS",
                "IN",
                "AND",
                "OR",
                "CLAUSE_LT",
                "CLAUSE_LE",
                "CLAUSE_GT",
                "CLAUSE_GE",
                "RELATION_LT",
                "RELATION_LE",
                "RELATION_EQ",
                "RELATION_GT",
                "RELATION_GE",
            ];
            unknown(draft, other, at, &known);
            return None;
        }
    };
    if kind.starts_with("RELATION") {
        let (left, right) = (named(draft, node, "left")?, named(draft, node, "right")?);
        let is_category = |place: usize| draft.parameters[place].domain.categories().is_some();
        if comparison == Relation::Equal && (is_category(left) || is_category(right)) {
            return Some(Rule::Same {
                left,
                right,
                is_negated: false,
            });
        }
        let has_numbers = |place: usize| draft.parameters[place].domain.has_numbers();
        for place in [left, right] {
            if !has_numbers(place) {
                let name = draft.parameters[place].name.to_string();
                draft.mistake(
                    node.at.range(),
                    crate::space::open::ExpressionError::NotNumeric { name },
                );
                return None;
            }
        }
        return Some(Rule::Compare(
            comparison,
            Term::Parameter(left),
            Term::Parameter(right),
        ));
    }
    let parameter = named(draft, node, "name")?;
    against(draft, node, parameter, comparison)
}

fn unknown(draft: &mut Draft, name: &str, at: Range<usize>, known: &[&str]) {
    let error = FormatError::UnknownType {
        name: name.to_owned(),
        nearest: nearest(name, known.iter().copied()).map(str::to_owned),
    };
    draft.mistake(at, error);
}

fn against(draft: &mut Draft, node: &Node, parameter: usize, comparison: Relation) -> Option<Rule> {
    let Some(found) = node.get("value") else {
        let (section, key) = ("this entry".to_owned(), "value");
        draft.mistake(node.at.range(), FormatError::Missing { section, key });
        return None;
    };
    let value = plain(draft, found)?;
    compare(&draft.parameters, parameter, comparison, &value.to_string())
        .map_err(|error| draft.mistake(found.at.range(), error))
        .ok()
}

fn one_of(draft: &mut Draft, node: &Node, parameter: usize) -> Option<Rule> {
    let items = list(draft, node, "values", true);
    let values: Option<Vec<_>> = items
        .iter()
        .map(|item| Some((plain(draft, item)?.to_string(), item.at.range())))
        .collect();
    crate::space::open::among(&draft.parameters, parameter, &values?, false)
        .map_err(|misread| draft.misread(0, misread))
        .ok()
}

/// Writes ConfigSpace's tree.
pub(super) fn write(space: &OpenSpace, format: Format) -> Result<Written, WriteError> {
    let defaults = space.all_defaults();
    let mut hyperparameters = vec![];
    for known in space.parameters() {
        let name = &*known.name;
        let default = defaults.get(name).map_or(Json::Null, json_value);
        let is_log = |spacing: &Spacing| *spacing == Spacing::Log;
        hyperparameters.push(match &known.domain {
            Domain::Real {
                low, high, spacing, ..
            } => json!({
                "type": "uniform_float", "name": name, "lower": low, "upper": high,
                "default_value": default, "log": is_log(spacing), "meta": null,
            }),
            Domain::Integer { low, high, spacing } => json!({
                "type": "uniform_int", "name": name, "lower": low, "upper": high,
                "default_value": default, "log": is_log(spacing), "meta": null,
            }),
            Domain::Choice(values) if values.values().len() == 1 => json!({
                "type": "constant", "name": name, "value": default, "meta": null,
            }),
            Domain::Choice(values) => json!({
                "type": "categorical", "name": name,
                "choices": values.values().iter().map(json_value).collect::<Vec<_>>(),
                "weights": null, "default_value": default, "meta": null,
            }),
            Domain::Ordered(values) => json!({
                "type": "ordinal", "name": name,
                "sequence": values.values().iter().map(json_value).collect::<Vec<_>>(),
                "default_value": default, "meta": null,
            }),
        });
    }
    let mut conditions = vec![];
    for known in space.parameters() {
        if let Some(when) = &known.when {
            conditions.push(condition_json(space, &known.name, when, format)?);
        }
    }
    let forbiddens: Result<Vec<Json>, WriteError> = space
        .forbid()
        .iter()
        .map(|rule| clause_json(space, rule, format))
        .collect();
    let tree = json!({
        "name": null,
        "hyperparameters": hyperparameters,
        "conditions": conditions,
        "forbiddens": forbiddens?,
        "python_module_version": "1.2.0",
        "format_version": 0.4,
    });
    let text = if format == Format::ConfigSpaceJson {
        serde_json::to_string_pretty(&tree)
            .map_err(|error| WriteError::new(format, error.to_string()))?
            + "\n"
    } else {
        serde_yaml::to_string(&tree).map_err(|error| WriteError::new(format, error.to_string()))?
    };
    let has_arguments = space
        .parameters()
        .iter()
        .any(|known| known.argument.is_some());
    let mut notes = digits_lost(space, "ConfigSpace");
    if has_arguments {
        notes.push("ConfigSpace has no place for `argument`".to_owned());
    }
    Ok(Written { text, notes })
}

fn json_value(value: &Value) -> Json {
    serde_json::to_value(value).unwrap_or(Json::Null)
}

fn number_json(number: f64) -> Json {
    if number.fract() == 0.0 && number.abs() <= 2_f64.powi(53) {
        json!(number as i64)
    } else {
        json!(number)
    }
}

fn category(space: &OpenSpace, parameter: usize, code: u32) -> Json {
    let values = space.parameters()[parameter].domain.categories();
    values.map_or(Json::Null, |values| {
        json_value(&values.values()[code as usize])
    })
}

fn condition_json(
    space: &OpenSpace,
    child: &str,
    rule: &Rule,
    format: Format,
) -> Result<Json, WriteError> {
    let refused = || {
        let what = format!("the condition `{}` of `{child}`", space.rule_text(rule));
        Err(WriteError::new(format, what))
    };
    let parent = |place: usize| space.parameters()[place].name.to_string();
    let single = |kind: &str, place: usize, value: Json| {
        Ok(json!({"type": kind, "child": child, "parent": parent(place), "value": value}))
    };
    match rule {
        Rule::All(rules) | Rule::Any(rules) if !rules.is_empty() => {
            let kind = if matches!(rule, Rule::All(_)) {
                "AND"
            } else {
                "OR"
            };
            let parts: Result<Vec<Json>, WriteError> = rules
                .iter()
                .map(|rule| condition_json(space, child, rule, format))
                .collect();
            Ok(json!({"type": kind, "child": child, "conditions": parts?}))
        }
        Rule::Among {
            parameter,
            codes,
            is_negated,
        } => match (codes.as_slice(), is_negated) {
            ([code], false) => single("EQ", *parameter, category(space, *parameter, *code)),
            ([code], true) => single("NEQ", *parameter, category(space, *parameter, *code)),
            (codes, false) => {
                let values: Vec<Json> = codes
                    .iter()
                    .map(|code| category(space, *parameter, *code))
                    .collect();
                Ok(
                    json!({"type": "IN", "child": child, "parent": parent(*parameter), "values": values}),
                )
            }
            (codes, true) => {
                let count = space.parameters()[*parameter]
                    .domain
                    .categories()
                    .map_or(0, |known| known.values().len() as u32);
                let values: Vec<Json> = (0..count)
                    .filter(|code| !codes.contains(code))
                    .map(|code| category(space, *parameter, code))
                    .collect();
                if values.is_empty() {
                    return refused();
                }
                Ok(
                    json!({"type": "IN", "child": child, "parent": parent(*parameter), "values": values}),
                )
            }
        },
        Rule::OneOf {
            term: Term::Parameter(place),
            numbers,
            is_negated: false,
        } => {
            let values: Vec<Json> = numbers.iter().copied().map(number_json).collect();
            Ok(json!({"type": "IN", "child": child, "parent": parent(*place), "values": values}))
        }
        Rule::Compare(comparison, Term::Parameter(place), Term::Number(number)) => {
            let is_integer = matches!(space.parameters()[*place].domain, Domain::Integer { .. });
            match comparison {
                Relation::Equal => single("EQ", *place, number_json(*number)),
                Relation::NotEqual => single("NEQ", *place, number_json(*number)),
                Relation::Less => single("LT", *place, number_json(*number)),
                Relation::More => single("GT", *place, number_json(*number)),
                Relation::AtMost if is_integer => {
                    single("LT", *place, number_json(number.floor() + 1.0))
                }
                Relation::AtLeast if is_integer => {
                    single("GT", *place, number_json(number.ceil() - 1.0))
                }
                Relation::AtMost | Relation::AtLeast => refused(),
            }
        }
        _ => refused(),
    }
}

fn clause_json(space: &OpenSpace, rule: &Rule, format: Format) -> Result<Json, WriteError> {
    let name = |place: usize| space.parameters()[place].name.to_string();
    let refused = || {
        let what = format!("the constraint `{}`", space.rule_text(rule));
        Err(WriteError::new(format, what))
    };
    match rule {
        Rule::All(rules) | Rule::Any(rules) if !rules.is_empty() => {
            let kind = if matches!(rule, Rule::All(_)) {
                "AND"
            } else {
                "OR"
            };
            let parts: Result<Vec<Json>, WriteError> = rules
                .iter()
                .map(|rule| clause_json(space, rule, format))
                .collect();
            Ok(json!({"type": kind, "clauses": parts?}))
        }
        Rule::Among {
            parameter,
            codes,
            is_negated: false,
        } => match codes.as_slice() {
            [code] => Ok(
                json!({"type": "EQUALS", "name": name(*parameter), "value": category(space, *parameter, *code)}),
            ),
            codes => {
                let values: Vec<Json> = codes
                    .iter()
                    .map(|code| category(space, *parameter, *code))
                    .collect();
                Ok(json!({"type": "IN", "name": name(*parameter), "values": values}))
            }
        },
        Rule::OneOf {
            term: Term::Parameter(place),
            numbers,
            is_negated: false,
        } => {
            let values: Vec<Json> = numbers.iter().copied().map(number_json).collect();
            Ok(json!({"type": "IN", "name": name(*place), "values": values}))
        }
        Rule::Same {
            left,
            right,
            is_negated: false,
        } => Ok(json!({"type": "RELATION_EQ", "left": name(*left), "right": name(*right)})),
        Rule::Compare(comparison, Term::Parameter(place), Term::Number(number)) => {
            let kind = match comparison {
                Relation::Equal => "EQUALS",
                Relation::Less => "CLAUSE_LT",
                Relation::AtMost => "CLAUSE_LE",
                Relation::More => "CLAUSE_GT",
                Relation::AtLeast => "CLAUSE_GE",
                Relation::NotEqual => return refused(),
            };
            Ok(json!({"type": kind, "name": name(*place), "value": number_json(*number)}))
        }
        Rule::Compare(comparison, Term::Parameter(left), Term::Parameter(right)) => {
            let kind = match comparison {
                Relation::Equal => "RELATION_EQ",
                Relation::Less => "RELATION_LT",
                Relation::AtMost => "RELATION_LE",
                Relation::More => "RELATION_GT",
                Relation::AtLeast => "RELATION_GE",
                Relation::NotEqual => return refused(),
            };
            Ok(json!({"type": kind, "left": name(*left), "right": name(*right)}))
        }
        _ => refused(),
    }
}
