//! Checks the placeholders of a command against the arms: each must have a meaning, and each parameter must have an
//! effect.

use super::{Check, arms, limits};
use crate::resource::Resource;
use crate::scenario::model::Command;
use crate::scenario::raw::{Node, Raw};
use crate::scenario::template::{Piece, RESERVED};
use crate::scenario::{Caution, Fault};
use crate::yaml::Span;

/// Works with whatever could be read, so that a mistake elsewhere hides nothing.
pub(super) fn check(
    check: &mut Check<'_>,
    target: &Node,
    arms: &arms::Read,
    limits: Option<&limits::Read>,
) {
    for (name, at) in arms.names.iter().zip(&arms.places) {
        if RESERVED.contains(&name.as_str()) {
            check.fault(*at, Fault::TakenName { name: name.clone() });
        }
    }
    let known = || {
        let reserved = RESERVED.iter().map(ToString::to_string);
        arms.names.iter().cloned().chain(reserved).collect()
    };
    let instances_at = key_at(target, "instances");
    let used = std::mem::take(&mut check.placeholders);
    for (piece, at, is_optional) in &used {
        let fault = match piece {
            Piece::Parameter(name) => match arms.names.iter().position(|known| known == name) {
                Some(place) => {
                    let lacking = arms
                        .space
                        .as_ref()
                        .and_then(|space| space.first_without(place));
                    lacking
                        .filter(|_| !is_optional)
                        .map(|arm| Fault::AbsentInArm {
                            name: name.clone(),
                            arm,
                        })
                }
                None if name == "name" => {
                    let is_unnamed = arms.space.as_ref().is_some_and(|space| !space.is_named());
                    is_unnamed.then_some(Fault::NoNames)
                }
                None => Some(Fault::UnknownPlaceholder {
                    name: name.clone(),
                    known: known(),
                }),
            },
            Piece::Instance if instances_at.is_none() => Some(Fault::NoInstances),
            Piece::CpuLimit if limits.is_some_and(has_no_cpu_limit) => Some(Fault::NoCpuLimit),
            _ => None,
        };
        if let Some(fault) = fault {
            check.fault(*at, fault);
        }
    }
    let uses = |wanted: &Piece| used.iter().any(|(piece, ..)| piece == wanted);
    if !uses(&Piece::Params) {
        for (place, name) in arms.names.iter().enumerate() {
            let varies = arms
                .space
                .as_ref()
                .is_some_and(|space| space.parameters()[place].values().len() > 1);
            if varies && !uses(&Piece::Parameter(name.clone())) {
                check.caution(
                    arms.places[place],
                    Caution::UnusedParameter { name: name.clone() },
                );
            }
        }
    }
    if let (Some(at), false) = (instances_at, uses(&Piece::Instance)) {
        check.caution(at, Caution::UnusedInstances);
    }
}

/// Checks that the program exists, as far as possible without running it.
pub(super) fn check_program(check: &mut Check<'_>, command: &Command, target: Option<&Node>) {
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
        let at = target.and_then(program_at).unwrap_or_default();
        let program = program.clone();
        check.caution(at, Caution::NoProgram { program });
    }
}

fn program_at(target: &Node) -> Option<Span> {
    let Raw::Map(entries) = &target.value else {
        return None;
    };
    let command = entries.iter().find(|entry| entry.key == "command")?;
    let Raw::List(arguments) = &command.value.value else {
        return None;
    };
    arguments.first().map(|argument| argument.at)
}

pub(super) fn key_at(node: &Node, key: &str) -> Option<Span> {
    let Raw::Map(entries) = &node.value else {
        return None;
    };
    entries
        .iter()
        .find(|entry| entry.key == key)
        .map(|entry| entry.key_at)
}

fn has_no_cpu_limit(limits: &limits::Read) -> bool {
    limits.of != Resource::Cpu && limits.guards.cpu.is_none()
}
