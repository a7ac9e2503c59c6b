//! `arms`: a grid, a list, or a CSV file.

mod file;
mod filter;
mod values;

use std::sync::Arc;

use super::{Check, Fields, TargetKind};
use crate::round::ArmId;
use crate::scenario::Fault;
use crate::scenario::raw::{Entry, Node, Raw};
use crate::scenario::source::Span;
use crate::space::{Parameter, Row, Space, SpaceError, Value};

/// The arms and where their parameters are named.
#[derive(Debug)]
pub(super) struct Read {
    /// None if they could not all be read, while their parameters have names all the same.
    pub(super) space: Option<Space>,
    pub(super) names: Vec<String>,
    pub(super) at: Span,
    /// Where each parameter is named; the place of the arms for those of a file.
    pub(super) places: Vec<Span>,
    /// Where the values of each parameter stand.
    pub(super) value_places: Vec<Span>,
}

pub(in crate::scenario) const KEYS: &[&str] = &["grid", "list", "file", "only", "except", "drop"];

const EXAMPLE: &str = "arms: {grid: {trees: [100, 300]}}";

pub(super) fn read(
    check: &mut Check<'_>,
    fields: &mut Fields<'_>,
    kind: Option<TargetKind>,
) -> Option<Read> {
    let may_lack = matches!(kind, Some(TargetKind::Synthetic | TargetKind::Recorded));
    if may_lack && !fields.has("arms") {
        return None;
    }
    let node = fields.need(check, "arms", EXAMPLE)?;
    if kind == Some(TargetKind::Synthetic) {
        let at = fields.key_at("arms").unwrap_or(node.at);
        check.fault(
            at,
            Fault::NotForTarget {
                target: "synthetic",
                key: "arms".into(),
            },
        );
        return None;
    }
    let arms_at = fields.key_at("arms").unwrap_or(node.at);
    let mut fields = Fields::new(check, node, "arms", KEYS)?;
    let grid = fields.take(check, "grid");
    let list = fields.take(check, "list");
    let file = fields.take(check, "file");
    let only = fields.take(check, "only");
    let except = fields.take(check, "except");
    let drop = fields.take(check, "drop");
    if let (Some(_), None) = (drop, file) {
        let at = fields.key_at("drop").unwrap_or(node.at);
        check.fault(
            at,
            Fault::Missing {
                section: "arms".into(),
                key: "file",
                example: "file: arms.csv, drop: [number]",
            },
        );
    }
    let read = match (grid, list, file) {
        (Some(grid), None, None) => self::grid(check, grid, only, except),
        (None, Some(list), None) => self::list(check, list),
        (None, None, Some(file)) => file::read(check, file, drop),
        (None, None, None) => {
            if !["grid", "list", "file"]
                .iter()
                .any(|key| fields.has(key) || fields.is_misspelt(key))
            {
                check.choose_one(
                    node,
                    "arms",
                    vec!["grid", "list", "file"],
                    "none is",
                    EXAMPLE,
                );
            }
            None
        }
        _ => {
            check.choose_one(
                node,
                "arms",
                vec!["grid", "list", "file"],
                "several are",
                EXAMPLE,
            );
            None
        }
    };
    if grid.is_none() {
        for key in ["only", "except"] {
            if let Some(at) = fields.key_at(key) {
                check.fault(
                    at,
                    Fault::Missing {
                        section: "arms".into(),
                        key: "grid",
                        example: "grid: {...}, except: [...]",
                    },
                );
            }
        }
    }
    fields.finish(check);
    read.map(|mut read| {
        read.at = arms_at;
        read
    })
}

fn grid(
    check: &mut Check<'_>,
    node: &Node,
    only: Option<&Node>,
    except: Option<&Node>,
) -> Option<Read> {
    let Raw::Map(entries) = &node.value else {
        check.wrong_type(node, "grid", "a mapping from parameters to their values");
        return None;
    };
    if entries.is_empty() {
        check.fault(
            node.at,
            Fault::EmptyList {
                key: "grid".into(),
                example: "grid: {trees: [100, 300]}",
            },
        );
        return None;
    }
    let parameters: Vec<Option<Parameter>> = entries
        .iter()
        .map(|entry| {
            check.parameter_name(&entry.key, entry.key_at);
            values::parameter(check, entry)
        })
        .collect();
    let names: Vec<String> = entries.iter().map(|entry| entry.key.clone()).collect();
    let only = filter::read(check, only, "only", &names, &parameters);
    let except = filter::read(check, except, "except", &names, &parameters);
    let parameters: Option<Vec<Parameter>> = parameters.into_iter().collect();
    let space = match (parameters, only, except) {
        (Some(parameters), Some(only), Some(except)) => Space::grid(parameters, &only, &except)
            .map_err(|error| check.fault(node_or_first(node, entries), Fault::Space(error)))
            .ok(),
        _ => None,
    };
    Some(Read {
        space,
        names,
        at: node.at,
        places: entries.iter().map(|entry| entry.key_at).collect(),
        value_places: entries.iter().map(|entry| entry.value.at).collect(),
    })
}

/// A block has no width; its first key is the better place to point to.
fn node_or_first(node: &Node, entries: &[Entry]) -> Span {
    entries.first().map_or(node.at, |entry| entry.key_at)
}

fn list(check: &mut Check<'_>, node: &Node) -> Option<Read> {
    let items = check.list(node, "list", "arms, each with its parameters or a name")?;
    if items.is_empty() {
        check.fault(node.at, Fault::Space(SpaceError::Empty));
        return None;
    }
    let mut names: Vec<Arc<str>> = vec![];
    let mut places = vec![];
    let mut rows = vec![];
    let mut is_fine = true;
    for item in items {
        let row = match &item.value {
            Raw::Text(name) => Row {
                name: Some(name.as_str().into()),
                values: vec![],
            },
            Raw::Map(entries) => {
                let mut row = Row::default();
                for entry in entries {
                    if entry.key == "name" {
                        match check.text(&entry.value, "name") {
                            Some(name) => row.name = Some(name.into()),
                            None => is_fine = false,
                        }
                        continue;
                    }
                    let Some(value) = values::value(check, &entry.value, &entry.key) else {
                        is_fine = false;
                        continue;
                    };
                    let place = names
                        .iter()
                        .position(|name| **name == *entry.key)
                        .unwrap_or_else(|| {
                            check.parameter_name(&entry.key, entry.key_at);
                            names.push(entry.key.as_str().into());
                            places.push(entry.key_at);
                            names.len() - 1
                        });
                    row.values.push((place, value));
                }
                row
            }
            _ => {
                check.wrong_type(item, "list", "parameters with their values, or a name");
                is_fine = false;
                continue;
            }
        };
        rows.push((row, item.at));
    }
    let as_text = names.iter().map(ToString::to_string).collect();
    check_names(
        check,
        rows.iter().map(|(row, at)| (row.name.as_deref(), *at)),
    );
    let rows: Vec<Row> = rows.into_iter().map(|(row, _)| row).collect();
    let space = if is_fine {
        Space::table(names, &rows)
            .map_err(|error| check.fault(node.at, Fault::Space(error)))
            .ok()
    } else {
        None
    };
    Some(Read {
        space,
        names: as_text,
        at: node.at,
        value_places: places.clone(),
        places,
    })
}

/// All arms have a name or none has, and no two have the same.
fn check_names<'a>(check: &mut Check<'_>, names: impl Iterator<Item = (Option<&'a str>, Span)>) {
    let names: Vec<_> = names.collect();
    if names.iter().all(|(name, _)| name.is_none()) {
        return;
    }
    let mut seen = std::collections::HashSet::new();
    for (arm, (name, at)) in names.into_iter().enumerate() {
        match name {
            None => check.fault(
                at,
                Fault::Unnamed {
                    arm: ArmId::from_index(arm),
                },
            ),
            Some(name) if !seen.insert(name) => {
                check.fault(at, Fault::NameTwice { name: name.into() });
            }
            Some(_) => {}
        }
    }
}

impl Check<'_> {
    /// A name that can stand in a placeholder.
    fn parameter_name(&mut self, name: &str, at: Span) {
        if name.trim().is_empty() || name.contains(['{', '}', '\n']) {
            self.fault(
                at,
                Fault::OutOfRange {
                    key: "parameter".into(),
                    expected: "a name without braces".into(),
                    value: format!("`{name}`"),
                },
            );
        }
    }
}

/// A value for a message.
fn shown(values: &[Value]) -> String {
    let mut text = values
        .iter()
        .take(12)
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(", ");
    if values.len() > 12 {
        text += ", ...";
    }
    text
}
