//! What concerns several sections at once.

use super::{Check, TargetKind, arms, command, forest, limits, policy, price, virtual_target};
use crate::policy::PolicyKind;
use crate::scenario::model::{
    Budget, Command, Guards, Isolation, LimitSource, Limits, Prices, Resource, Target,
};
use crate::scenario::raw::{Entry, Node, Raw};
use crate::scenario::source::Span;
use crate::scenario::template::{Piece, RESERVED, Template};
use crate::scenario::{Caution, Fault};
use crate::space::Space;

/// The sections as far as they could be read.
pub(super) struct Parts<'n> {
    pub(super) kind: Option<TargetKind>,
    pub(super) target: Option<Target>,
    pub(super) target_at: Span,
    pub(super) target_node: Option<&'n Node>,
    pub(super) arms: Option<arms::Read>,
    pub(super) limits: Option<limits::Read>,
    pub(super) price: Option<price::Read>,
    pub(super) policies: Option<Vec<policy::Read>>,
    pub(super) budget: Option<Budget>,
}

/// The sections that depend on one another, checked.
pub(super) struct Whole {
    pub(super) target: Target,
    pub(super) space: Space,
    pub(super) limits: Limits,
    pub(super) price: Prices,
    pub(super) policies: Vec<PolicyKind>,
    pub(super) budget: Budget,
}

impl Parts<'_> {
    pub(super) fn check(self, check: &mut Check<'_>) -> Option<Whole> {
        match (&self.target, &self.arms) {
            (Some(Target::Command(command)), Some(arms)) => self.placeholders(check, command, arms),
            (Some(Target::Forest(forest)), Some(arms)) => forest::check_arms(check, forest, arms),
            _ => {}
        }
        if let Some(limits) = &self.limits {
            self.guards(check, limits);
            if let Some(policies) = &self.policies {
                limits_for(check, limits, policies);
            }
            if let Some(price) = &self.price {
                price.check(check, limits);
            }
            if let (Some(LimitSource::Calibrate(calibrate)), Some(arms)) =
                (&limits.from, &self.arms)
                && let Some(wanted) = calibrate.arms.filter(|wanted| *wanted > arms.space.len())
            {
                let at = limits.calibrate_arms_at.unwrap_or(limits.at);
                check.caution(
                    at,
                    Caution::FewerArms {
                        arms: wanted,
                        count: arms.space.len(),
                    },
                );
            }
        }
        for policy in self.policies.iter().flatten() {
            // Only where it was chosen: the default is what the paper's own experiments use.
            if let (Some(warning), Some(at)) = (policy.kind.warning(), policy.alpha_at) {
                check.caution(at, Caution::Policy(warning));
            }
        }
        let runs = matches!(self.kind, Some(TargetKind::Command | TargetKind::Forest));
        if runs && self.budget == Some(Budget::default()) {
            check.caution(Span::default(), Caution::NoBudget);
        }
        let (space, limits) = match &self.target {
            Some(Target::Synthetic(spec)) => {
                let (space, grid) = virtual_target::synthetic_parts(spec)?;
                let limits = match self.limits {
                    Some(limits) => limits.finish(),
                    None => Some(Limits {
                        of: Resource::Work,
                        guards: Guards::default(),
                        from: LimitSource::Grid(grid),
                        grace: 0.0,
                    }),
                };
                (Some(space), limits)
            }
            Some(Target::Recorded(target)) => {
                let (arms, limits) = (self.arms.as_ref(), self.limits.as_ref());
                let space =
                    virtual_target::recorded_arms(check, target, self.target_at, arms, limits);
                (space, self.limits.and_then(limits::Read::finish))
            }
            _ => (
                self.arms.map(|arms| arms.space),
                self.limits.and_then(limits::Read::finish),
            ),
        };
        Some(Whole {
            target: self.target?,
            space: space?,
            limits: limits?,
            price: self.price?.prices,
            policies: self
                .policies?
                .into_iter()
                .map(|policy| policy.kind)
                .collect(),
            budget: self.budget?,
        })
    }

    /// Guards that the target cannot be held to, or that it needs.
    fn guards(&self, check: &mut Check<'_>, limits: &limits::Read) {
        if let (Some(Target::Forest(forest)), Some(at)) = (&self.target, limits.memory_at)
            && forest.isolation == Isolation::Thread
        {
            check.fault(at, Fault::MemoryNeedsProcess);
        }
        let is_command = matches!(self.target, Some(Target::Command(_)));
        if is_command && limits.of == Resource::Cpu && limits.guards.wall.is_none() {
            check.caution(limits.of_at, Caution::NoWallGuard);
        }
    }

    /// Every placeholder means something, and every parameter makes a difference.
    fn placeholders(&self, check: &mut Check<'_>, command: &Command, arms: &arms::Read) {
        let names: Vec<&str> = arms
            .space
            .parameters()
            .iter()
            .map(crate::space::Parameter::name)
            .collect();
        for (place, name) in names.iter().enumerate() {
            if RESERVED.contains(name) {
                check.fault(
                    arms.places[place],
                    Fault::TakenName {
                        name: (*name).into(),
                    },
                );
            }
        }
        let pieces: Vec<&Piece> = command::templates(command)
            .into_iter()
            .flat_map(Template::pieces)
            .collect();
        let uses_params = pieces.contains(&&Piece::Params);
        let mut known: Vec<String> = names.iter().map(ToString::to_string).collect();
        known.extend(RESERVED.iter().map(ToString::to_string));
        for piece in &pieces {
            let (fault, name) = match piece {
                Piece::Parameter(name) => match names.iter().position(|known| known == name) {
                    Some(place) => match arms.space.first_without(place) {
                        Some(arm) => (
                            Fault::AbsentInArm {
                                name: name.clone(),
                                arm,
                            },
                            name.as_str(),
                        ),
                        None => continue,
                    },
                    None if name == "name" && arms.space.is_named() => continue,
                    None if name == "name" => (Fault::NoNames, "name"),
                    None => (
                        Fault::UnknownPlaceholder {
                            name: name.clone(),
                            known: known.clone(),
                        },
                        name.as_str(),
                    ),
                },
                Piece::Instance if command.instances.is_empty() => (Fault::NoInstances, "instance"),
                Piece::CpuLimit if self.limits.as_ref().is_some_and(has_no_cpu_limit) => {
                    (Fault::NoCpuLimit, "cpu_limit")
                }
                _ => continue,
            };
            let at = self.placeholder_at(check, name);
            check.fault(at, fault);
        }
        if !uses_params {
            for (place, name) in names.iter().enumerate() {
                let is_used = command.arguments.placed.iter().any(|placed| placed == name);
                if !is_used && arms.space.parameters()[place].values().len() > 1 {
                    check.caution(
                        arms.places[place],
                        Caution::UnusedParameter {
                            name: (*name).into(),
                        },
                    );
                }
            }
        }
        if !command.instances.is_empty()
            && !pieces.contains(&&Piece::Instance)
            && let Some(at) = self.target_node.and_then(|node| key_at(node, "instances"))
        {
            check.caution(at, Caution::UnusedInstances);
        }
        self.program(check, command);
    }

    /// Whether the program is there, as far as that can be known without running it.
    fn program(&self, check: &mut Check<'_>, command: &Command) {
        let [Piece::Text(program)] = command.arguments.templates[0].pieces() else {
            return;
        };
        let is_there = if program.contains('/') {
            command.directory.join(program).exists()
        } else {
            std::env::var_os("PATH").is_some_and(|path| {
                std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
            })
        };
        if !is_there {
            let at = self.placeholder_at(check, program);
            check.caution(
                at,
                Caution::NoProgram {
                    program: program.clone(),
                },
            );
        }
    }

    /// Where a placeholder (or a word) stands in the target.
    fn placeholder_at(&self, check: &Check<'_>, name: &str) -> Span {
        let Some(node) = self.target_node else {
            return self.target_at;
        };
        let braced = format!("{{{name}}}");
        let found = scalars(node).into_iter().find_map(|scalar| {
            let Raw::Text(text) = &scalar.value else {
                return None;
            };
            let within = match text.find(&braced) {
                Some(at) => at..at + braced.len(),
                None if text == name => 0..text.len(),
                None => return None,
            };
            Some(check.inside(scalar, text, within))
        });
        found.unwrap_or(self.target_at)
    }
}

fn key_at(node: &Node, key: &str) -> Option<Span> {
    let Raw::Map(entries) = &node.value else {
        return None;
    };
    entries
        .iter()
        .find(|entry| entry.key == key)
        .map(|entry| entry.key_at)
}

fn scalars(node: &Node) -> Vec<&Node> {
    match &node.value {
        Raw::List(items) => items.iter().flat_map(scalars).collect(),
        Raw::Map(entries) => entries
            .iter()
            .flat_map(|Entry { value, .. }| scalars(value))
            .collect(),
        _ => vec![node],
    }
}

fn has_no_cpu_limit(limits: &limits::Read) -> bool {
    limits.of != Resource::Cpu && limits.guards.cpu.is_none()
}

/// z-RCUCB makes its own grid; all others need one.
fn limits_for(check: &mut Check<'_>, limits: &limits::Read, policies: &[policy::Read]) {
    let zooms = |policy: &policy::Read| policy.kind.finds_limits();
    match &limits.from {
        Some(LimitSource::Grid(_)) if policies.iter().all(zooms) => {
            check.fault(limits.at, Fault::GridForZrcucb);
        }
        Some(LimitSource::Max(_)) => {
            if let Some(policy) = policies.iter().find(|policy| !zooms(policy)) {
                check.fault(
                    limits.at,
                    Fault::MaxWithoutGrid {
                        policy: policy.kind.name(),
                    },
                );
            }
        }
        _ => {}
    }
}
