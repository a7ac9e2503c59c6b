//! From the raw tree to a [`Scenario`]: section by section, all mistakes at once.
//!
//! Every section reads what it can and notes what it cannot. What depends on several sections is checked afterwards, if
//! all of them could be read. So a mistake in one section does not cause reports about others.

pub(super) mod arms;
pub(super) mod command;
mod expect;
mod fields;
pub(super) mod forest;
pub(super) mod instances;
pub(super) mod limits;
mod nodes;
mod placeholders;
mod policy;
mod price;
pub(super) mod reward;
mod together;
mod values;
mod virtual_target;
mod wrapper;

use std::path::Path;

use fields::Fields;

use super::keys;
use super::model::{External, MOST_SLOTS, Pin, Scenario, Slots, Target, resolve};
use super::raw::{Node, Raw};
use super::template::Piece;
use super::{Caution, Fault, Features, Mistake, Notice};
use crate::yaml::Span;

/// What is known while a scenario is checked, and the mistakes so far.
pub(super) struct Check<'s> {
    pub(super) text: &'s str,
    pub(super) folder: &'s Path,
    pub(super) mistakes: Vec<Mistake>,
    pub(super) notices: Vec<Notice>,
    /// Every placeholder of the target, its position, and whether its part disappears with it.
    pub(super) placeholders: Vec<(Piece, Span, bool)>,
}

impl Check<'_> {
    /// The whole scenario. `None` if there was any mistake.
    pub(super) fn scenario(&mut self, root: &Node, file: &Path) -> Option<Scenario> {
        let top = Span::new(0, 0);
        if root.value == Raw::Null {
            self.fault(top, Fault::Empty);
            return None;
        }
        let mut fields = Fields::of(self, root, &keys::SCENARIO)?;
        let name = self.name(&mut fields, file);
        let target_node = fields.take(self, "target");
        let kind = target_node.and_then(|node| TargetKind::of(self, node));
        if !fields.has("target") && !fields.is_misspelt("target") {
            self.fault(
                top,
                Fault::Missing {
                    section: "scenario".into(),
                    key: "target",
                    example: "target: {command: [./solver, \"{instance}\"]}",
                },
            );
        }
        let seed = fields.read(self, "seed");
        let arms = arms::read(self, &mut fields, kind, seed.unwrap_or(1));
        let policies = policy::read(self, &mut fields);
        let reports_consumption = matches!(target_node.map(|node| &node.value),
            Some(Raw::Map(entries)) if entries.iter().any(|entry| entry.key == "consumption"));
        let limits = limits::read(self, &mut fields, (kind, reports_consumption));
        let price = price::read(self, &mut fields, kind, limits.as_ref());
        let budget = limits::budget(self, &mut fields, limits.as_ref().map(|limits| limits.of));
        let slots_node = fields.take(self, "slots");
        let nodes = slots_node
            .filter(|node| matches!(node.value, Raw::Map(_)))
            .and_then(|node| nodes::read(self, node));
        let slots = slots_node.map_or(Some(Slots::Auto), |node| match &node.value {
            Raw::Text(word) if word == "auto" => Some(Slots::Auto),
            Raw::Map(_) => Some(Slots::Auto),
            _ => self
                .whole(node, "slots", 1, MOST_SLOTS, " or `auto`")
                .map(|count| Slots::Count(count as usize)),
        });
        if let (Some(Slots::Count(slots)), Some(at)) = (slots, fields.key_at("slots"))
            && kind.is_some_and(TargetKind::is_run)
        {
            let cpus = std::thread::available_parallelism().map_or(1, usize::from);
            if slots > 2 * cpus {
                self.caution(at, Caution::ManySlots { slots, cpus });
            }
        }
        let pin = fields
            .take(self, "pin")
            .map_or(Some(Pin::Auto), |node| match &node.value {
                Raw::Flag(false) => Some(Pin::Never),
                _ => self.word(node, "pin", &[("auto", Pin::Auto), ("never", Pin::Never)]),
            });
        let stop_on_first_failures = fields.read(self, "stop_on_first_failures");
        let retries = fields.read(self, "retries");
        let compare = fields.read(self, "compare");
        let target = match (kind, target_node) {
            (Some(kind), Some(node)) => kind.read(self, node),
            _ => None,
        };
        let features = fields.take(self, "features").and_then(|node| {
            let known = target.as_ref().map_or(&[][..], Target::instances);
            self.features(node, known)
        });
        fields.finish(self);
        let parts = together::Parts {
            kind,
            target,
            target_at: target_node.map_or(top, |node| node.at),
            arms,
            limits,
            price,
            policies,
            budget,
            target_node,
        };
        let whole = parts.check(self)?;
        if !self.mistakes.is_empty() {
            return None;
        }
        Some(Scenario {
            name: name?,
            file: file.to_owned(),
            folder: self.folder.to_owned(),
            text: self.text.to_owned(),
            target: whole.target,
            space: whole.space,
            open: whole.open,
            start_run: whole.start_run,
            limits: whole.limits,
            price: whole.price,
            policies: whole.policies,
            budget: whole.budget,
            slots: slots?,
            nodes,
            pin: pin?,
            seed: seed?,
            stop_on_first_failures: stop_on_first_failures?,
            compare: compare?,
            features,
            retries: retries?,
            test: None,
        })
    }

    /// The features of instances; `known` are those that the scenario names itself.
    fn features(&mut self, node: &Node, known: &[String]) -> Option<Features> {
        let path = resolve(self.folder, &self.text(node, "features")?);
        let features = match Features::read(&path) {
            Ok(features) => features,
            Err(fault) => {
                self.fault(node.at, fault);
                return None;
            }
        };
        let (missing, count) = (features.missing(known), known.len());
        if count > 0 && missing == count {
            self.fault(node.at, Fault::OtherFeatures { path });
        } else if missing > 0 {
            self.caution(node.at, Caution::MissingFeatures { missing, count });
        }
        Some(features)
    }

    /// The run's name: as given, or that of the file.
    fn name(&mut self, fields: &mut Fields<'_>, file: &Path) -> Option<String> {
        let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
        let Some(node) = fields.take(self, "name") else {
            let stem = file.file_stem().unwrap_or_default().to_string_lossy();
            let plain = stem.replace(|letter| !is_plain(letter), "-");
            let plain: String = plain
                .trim_start_matches(['.', '-'])
                .chars()
                .take(100)
                .collect();
            return Some(if plain.is_empty() {
                "scenario".into()
            } else {
                plain
            });
        };
        let name = self.text(node, "name")?;
        let is_fine = (1..=100).contains(&name.len())
            && !name.starts_with(['.', '-'])
            && name.chars().all(is_plain);
        if is_fine {
            Some(name)
        } else {
            self.fault(node.at, Fault::BadName { name });
            None
        }
    }

    /// Notes a mistake.
    pub(super) fn fault(&mut self, at: Span, fault: Fault) {
        let mistake = Mistake { at, fault };
        if !self.mistakes.contains(&mistake) {
            self.mistakes.push(mistake);
        }
    }

    /// Notes a warning.
    pub(super) fn caution(&mut self, at: Span, caution: Caution) {
        self.notices.push(Notice { at, caution });
    }
}

/// The kind of target. Known even when the target has mistakes, so that other sections know what to expect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TargetKind {
    Command,
    Wrapper,
    Forest,
    Synthetic,
    Recorded,
    Surrogate,
    External,
}

impl TargetKind {
    const ALL: &[(&'static str, Self)] = &[
        ("command", Self::Command),
        ("wrapper", Self::Wrapper),
        ("forest", Self::Forest),
        ("synthetic", Self::Synthetic),
        ("recorded", Self::Recorded),
        ("surrogate", Self::Surrogate),
        ("external", Self::External),
    ];

    /// Whether its pulls take real time.
    pub(super) fn is_run(self) -> bool {
        matches!(self, Self::Command | Self::Wrapper | Self::Forest)
    }

    pub(super) fn name(self) -> &'static str {
        Self::ALL
            .iter()
            .find(|(_, kind)| *kind == self)
            .map_or("target", |(name, _)| *name)
    }

    fn of(check: &mut Check<'_>, node: &Node) -> Option<Self> {
        let known = || Self::ALL.iter().map(|(name, _)| *name);
        match &node.value {
            Raw::Text(_) => {
                let kind = check.word(node, "target", Self::ALL)?;
                if kind == Self::External {
                    return Some(kind);
                }
                check.wrong_type(
                    node,
                    "target",
                    format!("a mapping with the key `{}`, or `external`", kind.name()),
                );
                None
            }
            Raw::Map(entries) => {
                let given: Vec<Self> = Self::ALL
                    .iter()
                    .filter(|(name, _)| entries.iter().any(|entry| entry.key == *name))
                    .map(|(_, kind)| *kind)
                    .collect();
                match given[..] {
                    [kind] => Some(kind),
                    [] => {
                        let unknown = entries.iter().find_map(|entry| {
                            crate::nearest::nearest(&entry.key, known())
                                .map(|_| (entry.key_at, entry.key.clone()))
                        });
                        if let Some((at, key)) = unknown {
                            check.fault(
                                at,
                                Fault::UnknownKey {
                                    section: "target".into(),
                                    key,
                                    known: known().collect(),
                                },
                            );
                        } else {
                            check.choose_one(
                                node,
                                "target",
                                known().collect(),
                                "nothing is",
                                TARGET,
                            );
                        }
                        None
                    }
                    _ => {
                        let names: Vec<&str> = given.iter().map(|kind| kind.name()).collect();
                        let given = format!("{} are", names.join(" and "));
                        check.choose_one(node, "target", known().collect(), &given, TARGET);
                        None
                    }
                }
            }
            _ => {
                check.wrong_type(node, "target", "a mapping, or `external`");
                None
            }
        }
    }

    fn read(self, check: &mut Check<'_>, node: &Node) -> Option<Target> {
        match self {
            Self::Command => {
                command::read(check, node).map(|command| Target::Command(Box::new(command)))
            }
            Self::Wrapper => {
                wrapper::read(check, node).map(|command| Target::Command(Box::new(command)))
            }
            Self::Forest => {
                forest::read(check, node).map(|forest| Target::Forest(Box::new(forest)))
            }
            Self::Synthetic => virtual_target::synthetic(check, node).map(Target::Synthetic),
            Self::Recorded => virtual_target::recorded(check, node).map(Target::Recorded),
            Self::Surrogate => virtual_target::surrogate(check, node).map(Target::Surrogate),
            Self::External => external(check, node).map(Target::External),
        }
    }
}

/// `target: external`: your own program runs the pulls.
fn external(check: &mut Check<'_>, node: &Node) -> Option<External> {
    let Raw::Map(_) = &node.value else {
        return Some(External::default());
    };
    let mut fields = Fields::of_target(check, node, &keys::EXTERNAL)?;
    let instances = fields
        .take(check, "instances")
        .map_or(Some(vec![]), |node| {
            instances::read(check, node, "instances")
        });
    let test = fields
        .take(check, "test")
        .map_or(Some(vec![]), |node| instances::read(check, node, "test"));
    fields.finish(check);
    Some(External {
        instances: instances?,
        test: test?,
    })
}

const TARGET: &str = "target: {command: [./solver, \"{instance}\"]}";
