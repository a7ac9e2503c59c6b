//! `only` and `except`: which combinations of a grid are arms.

use super::{shown, values};
use crate::scenario::Fault;
use crate::scenario::check::{Check, Fields};
use crate::scenario::raw::{Entry, Node, Raw};
use crate::space::{Condition, Parameter, Pattern};

/// One pattern or a list of them. Empty if the key is missing.
pub(super) fn read(
    check: &mut Check<'_>,
    node: Option<&Node>,
    key: &'static str,
    names: &[String],
    parameters: &[Option<Parameter>],
) -> Option<Vec<Pattern>> {
    let Some(node) = node else {
        return Some(vec![]);
    };
    let items = match &node.value {
        Raw::List(items) => items.as_slice(),
        _ => std::slice::from_ref(node),
    };
    let patterns: Vec<Option<Pattern>> = items
        .iter()
        .map(|item| {
            let Raw::Map(entries) = &item.value else {
                check.wrong_type(
                    item,
                    key,
                    "parameters with values, like `{trees: 700, mtry: [28, 30]}`",
                );
                return None;
            };
            let conditions: Vec<_> = entries
                .iter()
                .map(|entry| condition(check, entry, names, parameters))
                .collect();
            let conditions = conditions.into_iter().collect::<Option<Vec<_>>>()?;
            Some(Pattern { conditions })
        })
        .collect();
    patterns.into_iter().collect()
}

fn condition(
    check: &mut Check<'_>,
    entry: &Entry,
    names: &[String],
    parameters: &[Option<Parameter>],
) -> Option<(usize, Condition)> {
    let name = &entry.key;
    let Some(place) = names.iter().position(|known| known == name) else {
        check.fault(
            entry.key_at,
            Fault::UnknownParameter {
                name: name.clone(),
                known: names.to_vec(),
            },
        );
        return None;
    };
    if let Raw::Map(_) = &entry.value.value {
        let mut fields = Fields::new(check, &entry.value, name, &["from", "to"])?;
        let from = fields
            .take(check, "from")
            .map(|node| check.number(node, name));
        let to = fields
            .take(check, "to")
            .map(|node| check.number(node, name));
        fields.finish(check);
        let from = from.map_or(Some(f64::NEG_INFINITY), |from| from)?;
        let to = to.map_or(Some(f64::INFINITY), |to| to)?;
        if from > to {
            check.fault(
                entry.value.at,
                Fault::EmptyRange {
                    name: name.clone(),
                    from: format!("{from}"),
                    to: format!("{to}"),
                },
            );
        }
        return Some((place, Condition::Between(from, to)));
    }
    let items = match &entry.value.value {
        Raw::List(items) => items.as_slice(),
        _ => std::slice::from_ref(&entry.value),
    };
    let mut wanted = vec![];
    let mut is_fine = true;
    for item in items {
        let value = values::value(check, item, name)?;
        // A value that never occurs is a mistake: it would silently keep or drop nothing.
        if let Some(parameter) = &parameters[place]
            && !parameter.values().iter().any(|known| known.means(&value))
        {
            check.fault(
                item.at,
                Fault::NoSuchValue {
                    name: name.clone(),
                    value: value.to_string(),
                    values: shown(parameter.values()),
                },
            );
            is_fine = false;
        }
        wanted.push(value);
    }
    is_fine.then_some((place, Condition::OneOf(wanted)))
}
