//! `slots` that name other machines.

use super::Check;
use super::fields::Fields;
use crate::regular_file;
use crate::scenario::Fault;
use crate::scenario::model::{Engines, LaunchCommand, MOST_SLOTS, Nodes, SshHost};
use crate::scenario::raw::{Node, Raw};

const EXAMPLE: &str = "slots: {ssh: [alpha, beta]}";

/// By default, a node that is silent for this many seconds is lost.
const LOST_AFTER: f64 = 30.0;

/// Reads `slots: {slurm | ssh | launch: ...}`.
pub(super) fn read(check: &mut Check<'_>, node: &Node) -> Option<Nodes> {
    let known = ["slurm", "ssh", "launch", "lost_after"];
    let mut fields = Fields::new(check, node, "slots", &known)?;
    let given: Vec<&str> = known[..3]
        .iter()
        .copied()
        .filter(|key| fields.has(key))
        .collect();
    let lost_after = fields
        .take(check, "lost_after")
        .map_or(Some(LOST_AFTER), |node| check.seconds(node, "lost_after"));
    let engines = match given[..] {
        ["slurm"] => {
            let value = fields.take(check, "slurm");
            let word = value.and_then(|node| check.word(node, "slurm", &[("auto", ())]));
            word.map(|()| Engines::Slurm)
        }
        ["ssh"] => {
            let value = fields.take(check, "ssh");
            value.and_then(|node| hosts(check, node)).map(Engines::Ssh)
        }
        ["launch"] => {
            let value = fields.take(check, "launch");
            value
                .and_then(|node| commands(check, node))
                .map(Engines::Launch)
        }
        _ => {
            check.choose_one(
                node,
                "slots",
                known[..3].to_vec(),
                &given.join(", "),
                EXAMPLE,
            );
            None
        }
    };
    fields.finish(check);
    Some(Nodes {
        engines: engines?,
        lost_after: lost_after?,
    })
}

/// A list of hosts, or a file with one on each line.
fn hosts(check: &mut Check<'_>, node: &Node) -> Option<Vec<SshHost>> {
    if let Raw::Text(path) = &node.value {
        let path = check.folder.join(path);
        let opened = regular_file::open(&path).and_then(std::io::read_to_string);
        let text = match opened {
            Ok(text) => text,
            Err(error) => {
                let reason = error.to_string();
                check.fault(node.at, Fault::Unreadable { path, reason });
                return None;
            }
        };
        let lines = text
            .lines()
            .map(|line| line.split('#').next().unwrap_or(""));
        let names = lines.map(str::trim).filter(|line| !line.is_empty());
        let hosts: Vec<SshHost> = names.map(host).collect();
        if hosts.is_empty() {
            check.out_of_range(node, "ssh", "a file with a host on each line");
        }
        return (!hosts.is_empty()).then_some(hosts);
    }
    let items = check.list(node, "ssh", "hosts, or a file that lists them")?;
    if items.is_empty() {
        check.out_of_range(node, "ssh", "at least one host");
        return None;
    }
    let hosts: Vec<_> = items
        .iter()
        .map(|item| match &item.value {
            Raw::Map(_) => {
                let mut fields = Fields::new(check, item, "ssh", &["host", "slots", "captime"])?;
                let name = fields.need(check, "host", "{host: beta, slots: 16}");
                let name = name.and_then(|node| check.text(node, "host"));
                let slots = slots(check, &mut fields);
                let captime = match fields.take(check, "captime") {
                    Some(node) => Some(check.text(node, "captime")?),
                    None => None,
                };
                fields.finish(check);
                Some(SshHost {
                    slots: slots?,
                    captime,
                    ..host(&name?)
                })
            }
            _ => check.text(item, "ssh").map(|name| host(&name)),
        })
        .collect();
    hosts.into_iter().collect()
}

fn host(name: &str) -> SshHost {
    SshHost {
        host: name.to_owned(),
        slots: None,
        captime: None,
    }
}

fn commands(check: &mut Check<'_>, node: &Node) -> Option<Vec<LaunchCommand>> {
    let items = check.list(node, "launch", "commands")?;
    if items.is_empty() {
        check.out_of_range(node, "launch", "at least one command");
        return None;
    }
    let commands: Vec<_> = items
        .iter()
        .map(|item| match &item.value {
            Raw::Map(_) => {
                let mut fields = Fields::new(check, item, "launch", &["command", "slots"])?;
                let example = "{command: [ssh, gamma, captime, agent], slots: 8}";
                let words = fields.need(check, "command", example);
                let words = words.and_then(|node| words_of(check, node));
                let slots = slots(check, &mut fields);
                fields.finish(check);
                Some(LaunchCommand {
                    command: words?,
                    slots: slots?,
                })
            }
            _ => words_of(check, item).map(|command| LaunchCommand {
                command,
                slots: None,
            }),
        })
        .collect();
    commands.into_iter().collect()
}

/// A command is a list of words, never a shell line.
fn words_of(check: &mut Check<'_>, node: &Node) -> Option<Vec<String>> {
    let items = check.list(node, "launch", "words: a program and its arguments")?;
    if items.is_empty() {
        check.out_of_range(node, "launch", "a program and its arguments");
        return None;
    }
    let words: Vec<_> = items
        .iter()
        .map(|item| check.text(item, "launch"))
        .collect();
    words.into_iter().collect()
}

/// The slots of one node, if given. `None` after a mistake.
#[expect(
    clippy::option_option,
    reason = "whether it could be read, and whether it is given"
)]
fn slots(check: &mut Check<'_>, fields: &mut Fields<'_>) -> Option<Option<usize>> {
    match fields.take(check, "slots") {
        Some(node) => {
            let count = check.whole(node, "slots", 1, MOST_SLOTS, "")?;
            Some(Some(count as usize))
        }
        None => Some(None),
    }
}
