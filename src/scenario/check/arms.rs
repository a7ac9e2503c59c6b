//! `arms`: a grid, a list, a CSV file, or an open space.

mod file;
mod filter;
mod space;
mod values;

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Check, Fields, TargetKind};
use crate::round::ArmId;
use crate::scenario::Fault;
use crate::scenario::arguments::ParamsForm;
use crate::scenario::keys;
use crate::scenario::model::StartRun;
use crate::scenario::raw::{Entry, Node, Raw};
use crate::space::{OpenSpace, Parameter, Row, Space, SpaceError, Value};
use crate::yaml::Span;

/// The arms, and where their parameters are named.
#[derive(Debug)]
pub(super) struct Read {
    /// `None` if some could not be read. Their parameters are known even then.
    pub(super) space: Option<Space>,
    pub(super) names: Vec<String>,
    pub(super) at: Span,
    /// Where each parameter is named. For those of a file, the position of `arms`.
    pub(super) places: Vec<Span>,
    /// The position of each parameter's values.
    pub(super) value_places: Vec<Span>,
    /// Parameters with their own argument.
    pub(super) arguments: BTreeMap<String, ParamsForm>,
    /// The open space they are drawn from, if there is one.
    pub(super) open: Option<Arc<OpenSpace>>,
    /// The position of an open space that is not sampled.
    pub(super) unsampled_at: Option<Span>,
    /// An earlier run to start from.
    pub(super) start_run: Option<StartRun>,
}

/// The forms that arms can have.
const FORMS: [&str; 4] = ["grid", "list", "file", "space"];

const EXAMPLE: &str = "arms: {grid: {trees: [100, 300]}}";

pub(super) fn read(
    check: &mut Check<'_>,
    fields: &mut Fields<'_>,
    kind: Option<TargetKind>,
    seed: u64,
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
    let mut fields = Fields::of(check, node, &keys::ARMS)?;
    let grid = fields.take(check, "grid");
    let list = fields.take(check, "list");
    let file = fields.take(check, "file");
    let open = fields.take(check, "space");
    let forbid = fields.take(check, "forbid");
    let start = fields.take(check, "start");
    let has_run = |open: &Node| match &open.value {
        Raw::Map(entries) => entries.iter().any(|entry| entry.key == "run"),
        _ => false,
    };
    let start = match start {
        // A parameter may be called `run`.
        Some(node) if open.is_some_and(has_run) => Start::configurations(check, node),
        Some(node) => Start::read(check, node),
        None => Start::default(),
    };
    let with = space::With {
        forbid,
        start: &start.items,
        sample: fields.take(check, "sample"),
        seed,
    };
    let only = fields.take(check, "only");
    let except = fields.take(check, "except");
    let drop = fields.take(check, "drop");
    let default = fields.take(check, "default");
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
    let read = match (grid, list, file, open) {
        (Some(grid), None, None, None) => self::grid(check, grid, only, except),
        (None, Some(list), None, None) => self::list(check, list),
        (None, None, Some(file), None) => file::read(check, file, drop),
        (None, None, None, Some(open)) => space::read(check, open, with),
        (None, None, None, None) => {
            if !FORMS
                .iter()
                .any(|key| fields.has(key) || fields.is_misspelt(key))
            {
                check.choose_one(node, "arms", FORMS.into(), "none is", EXAMPLE);
            }
            None
        }
        _ => {
            check.choose_one(node, "arms", FORMS.into(), "several are", EXAMPLE);
            None
        }
    };
    if open.is_none() {
        for key in ["forbid", "start", "sample"] {
            // An earlier run may also start a finite list.
            let is_run = key == "start" && start.items.is_empty() && start.run.is_some();
            if let Some(at) = fields.key_at(key).filter(|_| !is_run) {
                check.fault(
                    at,
                    Fault::Missing {
                        section: "arms".into(),
                        key: "space",
                        example: "space: {decay: {real: [0.75, 0.999]}}, sample: 500",
                    },
                );
            }
        }
    }
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
        read.start_run = start.run;
        if let (Some(node), Some(_)) = (default, read.unsampled_at) {
            check.fault(node.at, Fault::DefaultOfSpace);
        } else if let Some(node) = default {
            let space = read.space.take();
            read.space = space.and_then(|space| default_first(check, node, space));
        }
        read
    })
}

/// Makes the default configuration arm 1: the first arm, or the given one moved to the front.
fn default_first(check: &mut Check<'_>, node: &Node, space: Space) -> Option<Space> {
    let found = if let Raw::Map(entries) = &node.value {
        let mut wanted = vec![];
        for entry in entries {
            let mut parameters = space.parameters().iter();
            let Some(place) = parameters.position(|known| known.name() == entry.key) else {
                let known = space.parameters().iter();
                let known = known.map(|parameter| parameter.name().to_owned()).collect();
                let name = entry.key.clone();
                check.fault(entry.key_at, Fault::UnknownParameter { name, known });
                return None;
            };
            let value = values::value(check, &entry.value, &entry.key)?;
            let known = space.parameters()[place].values();
            wanted.push((place, known.iter().position(|known| known.means(&value))));
        }
        space.arms().find(|arm| {
            let codes = space.codes(*arm);
            let is_it =
                |&(place, code): &(usize, Option<usize>)| code == Some(codes[place] as usize);
            wanted.iter().all(is_it)
        })
    } else {
        let name = check.text(node, "default")?;
        space.arms().find(|arm| space.name(*arm) == Some(&name))
    };
    let Some(first) = found else {
        check.fault(node.at, Fault::NoSuchArm);
        return None;
    };
    if first.index() == 0 {
        return Some(space);
    }
    let order = || std::iter::once(first).chain(space.arms().filter(move |arm| *arm != first));
    let names = order()
        .filter_map(|arm| space.name(arm).map(Arc::from))
        .collect();
    let codes = order().flat_map(|arm| space.codes(arm)).collect();
    Space::coded(space.parameters().to_vec(), space.len(), codes, names)
        .map_err(|error| check.fault(node.at, Fault::Space(error)))
        .ok()
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
    let mut arguments = BTreeMap::new();
    let parameters: Vec<Option<Parameter>> = entries
        .iter()
        .map(|entry| {
            check.parameter_name(&entry.key, entry.key_at);
            let (parameter, argument) = values::parameter(check, entry)?;
            arguments.extend(argument.map(|form| (entry.key.clone(), form)));
            Some(parameter)
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
        arguments,
        open: None,
        unsampled_at: None,
        start_run: None,
    })
}

/// A block has no width, so point to its first key instead.
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
        arguments: BTreeMap::new(),
        open: None,
        unsampled_at: None,
        start_run: None,
    })
}

/// Checks that all arms have a name or none has, and that names are unique.
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
    /// Checks that a name can be used in a placeholder.
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

/// Formats values for a message.
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

/// What `start` lists: configurations to run first, or an earlier run to take over.
#[derive(Default)]
struct Start<'n> {
    /// Configurations, or files of them.
    items: Vec<&'n Node>,
    /// An earlier run.
    run: Option<StartRun>,
}

impl<'n> Start<'n> {
    /// One item or a list of them. One may be `{run: FOLDER}`.
    fn read(check: &mut Check<'_>, node: &'n Node) -> Self {
        let mut start = Self::default();
        for item in Self::configurations(check, node).items {
            let run = match &item.value {
                Raw::Map(entries) => match &entries[..] {
                    [only] if only.key == "run" => Some(only),
                    _ => None,
                },
                _ => None,
            };
            let Some(run) = run else {
                start.items.push(item);
                continue;
            };
            if start.run.is_some() {
                check.fault(item.at, Fault::SecondStartRun);
            } else if let Some(path) = check.text(&run.value, "run") {
                let at = run.value.at;
                start.run = Some(StartRun { path, at });
            }
        }
        start
    }

    /// The same, where `run` is the name of a parameter.
    fn configurations(check: &mut Check<'_>, node: &'n Node) -> Self {
        let items = if let Raw::Map(_) = &node.value {
            vec![node]
        } else {
            let list = check.list(
                node,
                "start",
                "configurations like {decay: 0.8}, or {run: FOLDER}",
            );
            list.into_iter().flatten().collect()
        };
        Self { items, run: None }
    }
}
