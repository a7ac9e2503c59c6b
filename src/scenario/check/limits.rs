//! `limits`: what the policy limits, the admissible limits, and the guards around them. And `budget`, which limits the run.

use super::fields::flat;
use super::{Check, Fields, TargetKind};
use crate::nearest::nearest;
use crate::resource::Resource;
use crate::round::{Limit, LimitError, LimitGrid};
use crate::scenario::Fault;
use crate::scenario::keys::{self, MOST_POINTS};
use crate::scenario::model::{Budget, Calibrate, Guards, LimitSource, Limits};
use crate::scenario::raw::{Node, Raw};
use crate::yaml::Span;

const RESOURCES: &[(&str, Resource)] = &[
    ("wall", Resource::Wall),
    ("cpu", Resource::Cpu),
    ("work", Resource::Work),
    ("memory", Resource::Memory),
];

/// The section as read. `from` is `None` if the limits could not be read.
#[derive(Debug)]
pub(super) struct Read {
    pub(super) of: Resource,
    pub(super) guards: Guards,
    pub(super) from: Option<LimitSource>,
    pub(super) grace: f64,
    /// Where the resource is named.
    pub(super) of_at: Span,
    /// Where the limits themselves are given.
    pub(super) at: Span,
    pub(super) memory_at: Option<Span>,
    pub(super) work_at: Option<Span>,
    pub(super) calibrate_arms_at: Option<Span>,
}

impl Read {
    pub(super) fn finish(self) -> Option<Limits> {
        Some(Limits {
            of: self.of,
            guards: self.guards,
            from: self.from?,
            grace: self.grace,
        })
    }
}

pub(super) fn read(
    check: &mut Check<'_>,
    fields: &mut Fields<'_>,
    (kind, reports_consumption): (Option<TargetKind>, bool),
) -> Option<Read> {
    let node = if matches!(kind, Some(TargetKind::Synthetic)) && !fields.has("limits") {
        return None;
    } else {
        fields.need(check, "limits", "limits: {max: 5s, grid: 10}")?
    };
    let mut fields = Fields::of(check, node, &keys::LIMITS)?;
    let of = match fields.take(check, "of") {
        Some(node) => {
            let of = match check.word(node, "of", RESOURCES) {
                Some(of) => Some(of),
                None => meant(node),
            };
            let counts = matches!(
                kind,
                None | Some(
                    TargetKind::Forest
                        | TargetKind::External
                        | TargetKind::Recorded
                        | TargetKind::Surrogate
                        | TargetKind::Synthetic
                )
            );
            if of == Some(Resource::Work) && !counts && !reports_consumption {
                check.fault(node.at, Fault::WorkNeedsForest);
            }
            let has_processes = matches!(
                kind,
                None | Some(
                    TargetKind::Command
                        | TargetKind::Wrapper
                        | TargetKind::Forest
                        | TargetKind::External
                )
            );
            if of == Some(Resource::Memory) && !has_processes {
                check.fault(node.at, Fault::MemoryNeedsProgram);
            }
            of
        }
        // The paper's problems have no unit.
        None if kind == Some(TargetKind::Synthetic) => Some(Resource::Work),
        None => Some(Resource::Wall),
    };
    let known = of;
    // Whatever was meant, the rest of the section is read too: as time, which it usually is.
    let of = known.unwrap_or(Resource::Wall);
    let guards = guards(check, &mut fields);
    let grace = fields
        .take(check, "grace")
        .map_or(Some(0.0), |node| match node.value {
            Raw::Integer(0) => Some(0.0),
            _ => check.seconds(node, "grace"),
        });
    let at = ["calibrate", "grid", "from", "max"]
        .into_iter()
        .find_map(|key| fields.key_at(key))
        .unwrap_or(fields.at());
    let calibrate_arms_at = fields.key_at("calibrate");
    let largest_at = ["max", "to", "grid"]
        .into_iter()
        .find_map(|key| fields.key_at(key))
        .unwrap_or(at);
    let of_at = fields.key_at("of").unwrap_or(at);
    let from = source(check, &mut fields, node, of, guards.as_ref());
    let memory_at = fields.key_at("memory");
    let work_at = fields.key_at("work");
    fields.finish(check);
    known?;
    let guards = guards?;
    let largest = from.as_ref().map(LimitSource::largest);
    if let (Some(largest), Some(guard)) = (largest, guards.of(of))
        && largest.get() > guard
    {
        check.fault(
            largest_at,
            Fault::LimitAboveGuard {
                of: of.name(),
                limit: of.amount(largest.get()),
                guard: of.amount(guard),
            },
        );
    }
    Some(Read {
        of,
        guards,
        from,
        grace: grace?,
        of_at,
        at,
        memory_at,
        work_at,
        calibrate_arms_at,
    })
}

/// The resource that a misspelt word probably means, so that other mistakes are found too.
fn meant(node: &Node) -> Option<Resource> {
    let Raw::Text(word) = &node.value else {
        return None;
    };
    let name = nearest(word, RESOURCES.iter().map(|(name, _)| *name))?;
    let found = RESOURCES.iter().find(|(known, _)| *known == name)?;
    Some(found.1)
}

fn guards(check: &mut Check<'_>, fields: &mut Fields<'_>) -> Option<Guards> {
    let wall = fields
        .take(check, "wall")
        .map(|node| check.seconds(node, "wall"));
    let cpu = fields
        .take(check, "cpu")
        .map(|node| check.seconds(node, "cpu"));
    let work = fields
        .take(check, "work")
        .map(|node| check.amount(node, "work", Resource::Work));
    let memory = fields
        .take(check, "memory")
        .map(|node| check.memory(node, "memory"));
    Some(Guards {
        wall: flat(wall)?,
        cpu: flat(cpu)?,
        work: flat(work)?,
        memory: flat(memory)?,
    })
}

/// Reads the limits, which must be given in exactly one way.
fn source(
    check: &mut Check<'_>,
    fields: &mut Fields<'_>,
    node: &Node,
    of: Resource,
    guards: Option<&Guards>,
) -> Option<LimitSource> {
    let max = fields.take(check, "max");
    let grid = fields.take(check, "grid");
    let from = fields.take(check, "from");
    let calibrate = fields.take(check, "calibrate");
    let is_range =
        from.is_some() || fields.has("to") || fields.has("points") || fields.has("scale");
    let is_count = grid.is_some_and(|grid| !matches!(grid.value, Raw::List(_)));
    let ways: Vec<&str> = [
        (calibrate.is_some(), "calibrate"),
        (is_range, "from"),
        (grid.is_some() && !is_count, "grid"),
        (max.is_some() || is_count, "max"),
    ]
    .into_iter()
    .filter_map(|(given, name)| given.then_some(name))
    .collect();
    let example = "max: 5s, grid: 10";
    match ways[..] {
        ["calibrate"] => {
            let at = fields.key_at("calibrate").unwrap_or(node.at);
            self::calibrate(check, calibrate?, at, of, guards).map(LimitSource::Calibrate)
        }
        ["from"] => range(check, fields, of).map(LimitSource::Grid),
        ["grid"] => list(check, grid?, of).map(LimitSource::Grid),
        ["max"] => {
            let Some(max) = max else {
                if !fields.is_misspelt("max") {
                    check.fault(
                        grid?.at,
                        Fault::Missing {
                            section: "limits".into(),
                            key: "max",
                            example: "max: 5s, grid: 10",
                        },
                    );
                }
                return None;
            };
            let max = check.amount(max, "max", of);
            let points =
                grid.map(|grid| check.whole(grid, "grid", 1, MOST_POINTS, ", or a list of limits"));
            let (max, points) = (max?, flat(points)?);
            match points {
                None => Limit::new(max).ok().map(LimitSource::Max),
                Some(points) => LimitGrid::fractions(max, points as usize)
                    .ok()
                    .map(LimitSource::Grid),
            }
        }
        [] => {
            // A key that is misspelt or has no value is reported as such.
            if !["max", "grid", "from", "calibrate"]
                .iter()
                .any(|key| fields.has(key) || fields.is_misspelt(key))
            {
                check.choose_one(
                    node,
                    "limits",
                    vec!["max, grid", "grid", "from, to, points", "calibrate"],
                    "none is",
                    example,
                );
            }
            None
        }
        _ => {
            let given = format!("{} are", ways.join(" and "));
            check.choose_one(
                node,
                "limits",
                vec!["max, grid", "grid", "from, to, points", "calibrate"],
                &given,
                example,
            );
            None
        }
    }
}

fn list(check: &mut Check<'_>, node: &Node, of: Resource) -> Option<LimitGrid> {
    let items = check.list(node, "grid", "limits")?;
    if items.len() > MOST_POINTS as usize {
        check.out_of_range(node, "grid", format!("at most {MOST_POINTS} limits"));
        return None;
    }
    let values: Vec<Option<f64>> = items
        .iter()
        .map(|item| check.amount(item, "grid", of))
        .collect();
    let values: Option<Vec<f64>> = values.into_iter().collect();
    let values = values?;
    match LimitGrid::new(values.iter().copied()) {
        Ok(grid) => Some(grid),
        Err(error) => {
            let at = match error {
                LimitError::Twice(value) => values
                    .iter()
                    .rposition(|other| *other == value)
                    .map_or(node.at, |place| items[place].at),
                _ => node.at,
            };
            check.fault(at, Fault::Limit(error));
            None
        }
    }
}

fn range(check: &mut Check<'_>, fields: &mut Fields<'_>, of: Resource) -> Option<LimitGrid> {
    let from_node = fields.need(check, "from", "from: 0.1s, to: 300s, points: 8, scale: log");
    let to_node = fields.need(check, "to", "from: 0.1s, to: 300s, points: 8, scale: log");
    let points_node = fields.need(
        check,
        "points",
        "from: 0.1s, to: 300s, points: 8, scale: log",
    );
    let scale = fields.take(check, "scale").map_or(Some(false), |node| {
        check.word(node, "scale", &[("log", true), ("linear", false)])
    });
    let from = from_node.and_then(|node| check.amount(node, "from", of));
    let to = to_node.and_then(|node| check.amount(node, "to", of));
    let points = points_node.and_then(|node| check.whole(node, "points", 1, MOST_POINTS, ""));
    let (from, to, points) = (from?, to?, points? as usize);
    if from > to {
        check.fault(
            from_node?.at,
            Fault::EmptyRange {
                name: "limits".into(),
                from: check.plain(from_node?),
                to: check.plain(to_node?),
            },
        );
        return None;
    }
    let grid = if scale? {
        LimitGrid::logarithmic(from, to, points)
    } else {
        LimitGrid::equidistant(from, to, points)
    };
    grid.map_err(|error| {
        check.fault(
            from_node.map_or(Span::default(), |node| node.at),
            Fault::Limit(error),
        );
    })
    .ok()
}

fn calibrate(
    check: &mut Check<'_>,
    node: &Node,
    at: Span,
    of: Resource,
    guards: Option<&Guards>,
) -> Option<Calibrate> {
    let mut fields = Fields::of(check, node, &keys::CALIBRATE)?;
    let points = fields.read(check, "points");
    let quantiles = fields
        .take(check, "quantiles")
        .map_or(Some((0.25, 0.75)), |node| {
            let items = check.list(node, "quantiles", "two numbers")?;
            let [low, high] = items else {
                check.wrong_type(node, "quantiles", "two numbers like [0.25, 0.75]");
                return None;
            };
            let (low, high) = (
                check.number(low, "quantiles"),
                check.number(high, "quantiles"),
            );
            let (low, high) = (low?, high?);
            if 0.0 <= low && low < high && high <= 1.0 {
                Some((low, high))
            } else {
                check.out_of_range(
                    node,
                    "quantiles",
                    "two numbers from 0 to 1, the smaller first",
                );
                None
            }
        });
    let arms = fields.take(check, "arms").map(|node| match &node.value {
        Raw::Text(word) if word == "all" => Some(None),
        _ => check
            .whole(node, "arms", 1, i64::from(u32::MAX), " or `all`")
            .map(|arms| Some(arms as usize)),
    });
    fields.finish(check);
    // A guard that cannot be read is reported as such.
    let guard = guards?.of(of);
    if guard.is_none() {
        let example = match of {
            Resource::Wall | Resource::Cpu => "60s",
            Resource::Work => "1e9",
            Resource::Memory => "4GiB",
        };
        check.fault(
            at,
            Fault::CalibrateWithoutGuard {
                of: of.name(),
                example,
            },
        );
    }
    Some(Calibrate {
        guard: Limit::new(guard?).ok()?,
        points: points?,
        quantiles: quantiles?,
        arms: flat(arms)?.flatten(),
    })
}

/// `budget`: when to stop.
pub(super) fn budget(
    check: &mut Check<'_>,
    fields: &mut Fields<'_>,
    of: Option<Resource>,
) -> Option<Budget> {
    let Some(node) = fields.take(check, "budget") else {
        return Some(Budget::default());
    };
    let mut fields = Fields::of(check, node, &keys::BUDGET)?;
    let rounds = fields.read_optional(check, "rounds");
    let wall = fields
        .take(check, "wall")
        .map(|node| check.seconds(node, "wall"));
    let consumption = fields
        .take(check, "consumption")
        .map(|node| check.amount(node, "consumption", of.unwrap_or(Resource::Wall)));
    fields.finish(check);
    Some(Budget {
        rounds: rounds?,
        wall: flat(wall)?,
        consumption: flat(consumption)?,
    })
}

impl Check<'_> {
    /// An amount of the resource: a duration, or a plain count of work.
    pub(super) fn amount(&mut self, node: &Node, key: &str, of: Resource) -> Option<f64> {
        match of {
            Resource::Wall | Resource::Cpu => self.seconds(node, key),
            Resource::Memory => self.memory(node, key).map(|bytes| bytes as f64),
            Resource::Work => {
                let value = self.number(node, key)?;
                if value > 0.0 {
                    Some(value)
                } else {
                    self.out_of_range(node, key, "a number above 0");
                    None
                }
            }
        }
    }
}
