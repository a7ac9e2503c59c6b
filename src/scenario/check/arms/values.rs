//! The values of one parameter: a list, a range, or one value.

use crate::scenario::Fault;
use crate::scenario::arguments::ParamsForm;
use crate::scenario::check::{Check, Fields};
use crate::scenario::keys;
use crate::scenario::raw::{Entry, Node, Raw};
use crate::space::{MOST_ARMS, Parameter, SpaceError, Value};

/// A parameter of a grid, and its own argument if it has one.
pub(super) fn parameter(
    check: &mut Check<'_>,
    entry: &Entry,
) -> Option<(Parameter, Option<ParamsForm>)> {
    let name = &entry.key;
    let plain = |values| (Parameter::new(name.as_str(), values), None);
    match &entry.value.value {
        Raw::List(items) => list(check, &entry.value, items, name).map(plain),
        Raw::Map(_) => described(check, &entry.value, name),
        Raw::Null => {
            check.fault(entry.key_at, Fault::NoValue { key: name.clone() });
            None
        }
        _ => value(check, &entry.value, name).map(|value| plain(vec![value])),
    }
}

/// A range, ordered words, or a choice, with the parameter's own argument.
fn described(
    check: &mut Check<'_>,
    node: &Node,
    name: &str,
) -> Option<(Parameter, Option<ParamsForm>)> {
    let known = keys::RANGE.names();
    let mut fields = Fields::new(check, node, name, &known)?;
    let ordered = fields.take(check, "ordered");
    let choice = fields.take(check, "choice");
    let argument = fields.take(check, "argument");
    let parameter = match (ordered, choice) {
        (None, None) => range(check, &mut fields, name).map(|values| Parameter::new(name, values)),
        (Some(node), None) => {
            let items = check.list(node, name, "values in their order")?;
            list(check, node, items, name).map(|values| Parameter::ordered(name, values))
        }
        (None, Some(node)) => {
            let items = check.list(node, name, "values")?;
            list(check, node, items, name).map(|values| Parameter::new(name, values))
        }
        (Some(_), Some(node)) => {
            let example = "{ordered: [low, medium, high]}";
            check.choose_one(node, name, vec!["ordered", "choice"], "both are", example);
            None
        }
    };
    fields.finish(check);
    let parameter = parameter?;
    let form = match argument {
        Some(node) => Some(own_argument(check, node, &parameter)?),
        None => None,
    };
    Some((parameter, form))
}

/// `--decay={value}`; for a flag the bare argument.
fn own_argument(check: &mut Check<'_>, node: &Node, parameter: &Parameter) -> Option<ParamsForm> {
    let arguments = check.texts(node, "argument")?;
    let is_flag = |value: &Value| matches!(value, Value::Flag(_));
    let has_value = arguments
        .iter()
        .any(|argument| argument.contains("{value}"));
    if has_value || parameter.values().iter().all(is_flag) {
        Some(ParamsForm { arguments })
    } else {
        check.out_of_range(
            node,
            "argument",
            "text with {value}, like \"--decay={value}\"",
        );
        None
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

/// `{from, to, step}`, `{from, to, points, scale}`, or the same with `integer: [from, to]`.
fn range(check: &mut Check<'_>, fields: &mut Fields<'_>, name: &str) -> Option<Vec<Value>> {
    let example = "{from: 100, to: 700, step: 100}";
    let integer = fields.take(check, "integer");
    let (from, to) = match integer.map(|node| (node, &node.value)) {
        None => (
            fields.need(check, "from", example),
            fields.need(check, "to", example),
        ),
        Some((_, Raw::List(ends))) if ends.len() == 2 => {
            if let Some(at) = fields.key_at("from").or(fields.key_at("to")) {
                check.choose_one_at(at, name, vec!["integer", "from, to"], "both are", example);
                return None;
            }
            for end in ends {
                check.whole(end, name, -(1 << 53), 1 << 53, "")?;
            }
            (Some(&ends[0]), Some(&ends[1]))
        }
        Some((node, _)) => {
            check.wrong_type(
                node,
                "integer",
                "the smallest and the largest value, like [1, 100]",
            );
            return None;
        }
    };
    let step = fields.take(check, "step");
    let points = fields.take(check, "points");
    let scale = fields.take(check, "scale");
    let (has, is_misspelt) = (
        fields.has("step") || fields.has("points"),
        fields.is_misspelt("step") || fields.is_misspelt("points"),
    );
    if !has && !is_misspelt && integer.is_none() {
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
                check.out_of_range(step_node, "step", "a number above 0");
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
            let is_whole = |node: &Node| matches!(node.value, Raw::Integer(_));
            let whole = match (integer, is_whole(from_node) && is_whole(to_node)) {
                (Some(_), _) => Whole::All,
                (None, true) => Whole::WhereItIs,
                (None, false) => Whole::Never,
            };
            Some(spread(from, to, points, is_log, whole))
        }
        (None, None, None) if integer.is_some() => {
            if from.fract() != 0.0 || to - from >= MOST_ARMS as f64 {
                let count = (to - from) as u128 + 1;
                check.fault(to_node.at, Fault::Space(SpaceError::TooMany { count }));
                return None;
            }
            Some((from as i64..=to as i64).map(Value::Integer).collect())
        }
        _ => None,
    }
}

/// `from`, `from + step`, ... up to `to`. Whole numbers if all three are, else decimals without binary rounding errors.
fn steps(
    check: &mut Check<'_>,
    nodes: [&Node; 3],
    (from, to, step): (f64, f64, f64),
) -> Option<Vec<Value>> {
    // A step that should hit `to` hits it despite rounding.
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

/// Digits after the decimal point, taking an exponent into account.
fn decimals(text: &str) -> usize {
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let digits = mantissa
        .split_once('.')
        .map_or(0, |(_, digits)| i32::try_from(digits.len()).unwrap_or(1000));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    digits.saturating_sub(exponent).clamp(0, 17) as usize
}

/// Which points of a range are whole numbers.
#[derive(Clone, Copy, PartialEq)]
enum Whole {
    /// `integer`: all of them, rounded.
    All,
    /// Both ends are written as whole numbers, so a whole point is printed as a whole number.
    WhereItIs,
    Never,
}

fn spread(from: f64, to: f64, points: usize, is_log: bool, whole: Whole) -> Vec<Value> {
    let mut values: Vec<Value> = (0..points)
        .map(|k| {
            let share = k as f64 / (points - 1) as f64;
            let exact = if k == 0 {
                from
            } else if k + 1 == points {
                to
            } else if is_log {
                tidy(from * (to / from).powf(share))
            } else {
                tidy(from + (to - from) * share)
            };
            match whole {
                Whole::All => Value::Integer(exact.round() as i64),
                Whole::WhereItIs if exact.fract() == 0.0 && exact.abs() < 9e15 => {
                    Value::Integer(exact as i64)
                }
                _ => Value::Number(exact),
            }
        })
        .collect();
    // Small whole numbers on a log scale may coincide after rounding.
    values.dedup();
    values
}

/// The number with the fewest digits that differs from this one only by rounding.
fn tidy(exact: f64) -> f64 {
    let shorter = (0..16).filter_map(|digits| format!("{exact:.digits$e}").parse::<f64>().ok());
    let mut near = shorter.filter(|value| (value - exact).abs() <= 1e-14 * exact.abs());
    near.next().unwrap_or(exact)
}

#[cfg(test)]
mod tests {
    use crate::scenario::tests::check as checked;

    fn values(of: &str) -> String {
        let text = format!(
            "target: external\narms: {{grid: {{p: {of}}}}}\nlimits: {{max: 1s, grid: 2}}\n"
        );
        let space = checked(&text)
            .unwrap_or_else(|error| panic!("{error}"))
            .scenario
            .space;
        let shown = space.parameters()[0]
            .values()
            .iter()
            .map(ToString::to_string);
        shown.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn numbers_are_printed_as_the_user_would_write_them() {
        assert_eq!(
            values("{from: 1, to: 100000, points: 6, scale: log}"),
            "1 10 100 1000 10000 100000"
        );
        assert_eq!(values("{from: 1, to: 9, points: 5}"), "1 3 5 7 9");
        assert_eq!(
            values("{from: 0.1, to: 0.9, points: 5}"),
            "0.1 0.3 0.5 0.7 0.9"
        );
        assert_eq!(
            values("{from: 0.001, to: 10, points: 5, scale: log}"),
            "0.001 0.01 0.1 1.0 10.0"
        );
        assert_eq!(
            values("{from: 1, to: 10, points: 3, scale: log}"),
            "1 3.1622776601684 10"
        );
        assert_eq!(values("{integer: [1, 4]}"), "1 2 3 4");
        assert_eq!(values("{integer: [0, 100], step: 25}"), "0 25 50 75 100");
        assert_eq!(
            values("{integer: [1, 1000], points: 5, scale: log}"),
            "1 6 32 178 1000"
        );
        assert_eq!(values("{integer: [1, 3], points: 9, scale: log}"), "1 2 3");
        assert_eq!(values("{choice: [a, b]}"), "a b");
    }
}
