//! The values of one parameter: a list, a range, or one value.

use crate::scenario::Fault;
use crate::scenario::check::{Check, Fields};
use crate::scenario::raw::{Entry, Node, Raw};
use crate::space::{MOST_ARMS, Parameter, SpaceError, Value};

pub(super) fn parameter(check: &mut Check<'_>, entry: &Entry) -> Option<Parameter> {
    let name = &entry.key;
    match &entry.value.value {
        Raw::List(items) => list(check, &entry.value, items, name)
            .map(|values| Parameter::new(name.as_str(), values)),
        Raw::Map(entries) if entries.iter().any(|entry| entry.key == "ordered") => {
            let mut fields = Fields::new(check, &entry.value, name, &["ordered"])?;
            let node = fields.take(check, "ordered")?;
            fields.finish(check);
            let items = check.list(node, name, "values in their order")?;
            list(check, node, items, name).map(|values| Parameter::ordered(name.as_str(), values))
        }
        Raw::Map(_) => {
            range(check, &entry.value, name).map(|values| Parameter::new(name.as_str(), values))
        }
        Raw::Null => {
            check.fault(entry.key_at, Fault::NoValue { key: name.clone() });
            None
        }
        _ => {
            value(check, &entry.value, name).map(|value| Parameter::new(name.as_str(), vec![value]))
        }
    }
}

/// One value.
pub(super) fn value(check: &mut Check<'_>, node: &Node, name: &str) -> Option<Value> {
    match &node.value {
        Raw::Flag(flag) => Some(Value::Flag(*flag)),
        Raw::Integer(value) => Some(Value::Integer(*value)),
        Raw::Number(value) if value.is_finite() => Some(Value::Number(*value)),
        Raw::Number(_) => {
            check.out_of_range(node, name, "a finite number (quote it if it is a word)");
            None
        }
        Raw::Text(text) if text.contains('\0') => {
            check.out_of_range(node, name, "text without a NUL byte");
            None
        }
        Raw::Text(text) => Some(Value::Text(text.as_str().into())),
        Raw::Null | Raw::List(_) | Raw::Map(_) => {
            check.wrong_type(node, name, "a number, a word, or true or false");
            None
        }
    }
}

fn list(check: &mut Check<'_>, node: &Node, items: &[Node], name: &str) -> Option<Vec<Value>> {
    if items.is_empty() {
        check.fault(
            node.at,
            Fault::EmptyList {
                key: name.into(),
                example: "[1, 2, 3]",
            },
        );
        return None;
    }
    let values: Vec<Option<Value>> = items.iter().map(|item| value(check, item, name)).collect();
    let mut seen = std::collections::HashSet::new();
    for (item, value) in items.iter().zip(&values) {
        let Some(value) = value else { continue };
        let key = value
            .number()
            .map_or_else(|| format!("{value:?}"), |number| format!("{number:?}"));
        if !seen.insert(key) {
            check.fault(
                item.at,
                Fault::ValueTwice {
                    name: name.into(),
                    value: value.to_string(),
                },
            );
        }
    }
    values.into_iter().collect()
}

/// `{from, to, step}`, or `{from, to, points, scale}`.
fn range(check: &mut Check<'_>, node: &Node, name: &str) -> Option<Vec<Value>> {
    let mut fields = Fields::new(
        check,
        node,
        name,
        &["from", "to", "step", "points", "scale"],
    )?;
    let example = "{from: 100, to: 700, step: 100}";
    let from = fields.need(check, "from", example);
    let to = fields.need(check, "to", example);
    let step = fields.take(check, "step");
    let points = fields.take(check, "points");
    let scale = fields.take(check, "scale");
    let (has, is_misspelt) = (
        fields.has("step") || fields.has("points"),
        fields.is_misspelt("step") || fields.is_misspelt("points"),
    );
    if !has && !is_misspelt {
        check.fault(
            fields.at(),
            Fault::MissingEither {
                section: name.into(),
                keys: ["step", "points"],
                example,
            },
        );
    }
    if let (Some(_), Some(points)) = (step, points) {
        check.choose_one(points, name, vec!["step", "points"], "both are", example);
    }
    fields.finish(check);
    let (from_node, to_node) = (from?, to?);
    let (from, to) = (check.number(from_node, name), check.number(to_node, name));
    let step_value = step.map(|step| check.number(step, name));
    let points_value = points.map(|points| check.whole(points, name, 2, 10_000_000, ""));
    let is_log = match scale {
        Some(node) => check.word(node, "scale", &[("linear", false), ("log", true)])?,
        None => false,
    };
    let (from, to) = (from?, to?);
    if from > to {
        check.fault(
            from_node.at,
            Fault::EmptyRange {
                name: name.into(),
                from: check.plain(from_node),
                to: check.plain(to_node),
            },
        );
        return None;
    }
    match (step, step_value, points_value) {
        (Some(step_node), Some(step), None) => {
            let step = step?;
            if step == 0.0 {
                check.fault(step_node.at, Fault::StepZero { name: name.into() });
                return None;
            }
            if step < 0.0 {
                check.out_of_range(step_node, "step", "above 0");
                return None;
            }
            if scale.is_some() {
                check.choose_one(
                    step_node,
                    name,
                    vec!["step", "points, scale"],
                    "both are",
                    example,
                );
                return None;
            }
            steps(check, [from_node, to_node, step_node], (from, to, step))
        }
        (None, None, Some(points)) => {
            let points = points? as usize;
            if is_log && from <= 0.0 {
                check.out_of_range(from_node, "from", "above 0 on a log scale");
                return None;
            }
            Some(spread(from, to, points, is_log))
        }
        _ => None,
    }
}

/// `from`, `from + step`, ... up to `to`: whole numbers if all three are, else decimals without the dust of binary sums.
fn steps(
    check: &mut Check<'_>,
    nodes: [&Node; 3],
    (from, to, step): (f64, f64, f64),
) -> Option<Vec<Value>> {
    // A step that should hit `to` hits it in spite of rounding.
    let count = ((to - from) / step + 1e-9).floor() + 1.0;
    if count > MOST_ARMS as f64 {
        check.fault(
            nodes[2].at,
            Fault::Space(SpaceError::TooMany {
                count: count as u128,
            }),
        );
        return None;
    }
    let count = count as i64;
    if let [Raw::Integer(from), Raw::Integer(_), Raw::Integer(step)] = nodes.map(|node| &node.value)
    {
        return Some(
            (0..count)
                .map(|k| Value::Integer(from + k * step))
                .collect(),
        );
    }
    let decimals = nodes
        .iter()
        .map(|node| decimals(&check.text[node.at.within(check.text).range()]))
        .max()
        .unwrap_or(0);
    Some(
        (0..count)
            .map(|k| {
                let exact = from + k as f64 * step;
                // Through text: the shortest decimal that was meant, not the nearest sum of binary fractions.
                let rounded = format!("{exact:.decimals$}")
                    .parse::<f64>()
                    .unwrap_or(exact);
                Value::Number(rounded)
            })
            .collect(),
    )
}

/// Digits after the point, an exponent included.
fn decimals(text: &str) -> usize {
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let digits = mantissa
        .split_once('.')
        .map_or(0, |(_, digits)| i32::try_from(digits.len()).unwrap_or(1000));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    digits.saturating_sub(exponent).clamp(0, 17) as usize
}

fn spread(from: f64, to: f64, points: usize, is_log: bool) -> Vec<Value> {
    (0..points)
        .map(|k| {
            let share = k as f64 / (points - 1) as f64;
            Value::Number(if k == 0 {
                from
            } else if k + 1 == points {
                to
            } else if is_log {
                from * (to / from).powf(share)
            } else {
                from + (to - from) * share
            })
        })
        .collect()
}
