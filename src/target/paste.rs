//! What a pull runs, as a line to paste into a shell. The summary, `best` and the report show such lines.
//!
//! ```
//! use captime::round::{ArmId, Limit, Pull};
//! use captime::scenario::parse;
//! use captime::target::paste::command_line;
//!
//! let text = "target: {command: [solve, '-d={decay}'], reward: {exit: [10]}}\n\
//!             arms: {grid: {decay: [0.8, 0.9]}}\nlimits: {max: 10s, grid: 5}\n";
//! let scenario = parse(text, "mine.yaml".as_ref(), ".".as_ref())?.scenario;
//! let pull = Pull::new(ArmId::from_index(1), Limit::new(4.0)?);
//! assert_eq!(command_line(&scenario, pull, 1).as_deref(), Some("solve -d=0.9"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::path::Path;

use super::Start;
use super::command::Commands;
use super::forest::as_command;
use crate::round::{Limit, Pull};
use crate::scenario::{FilledCommand, Isolation, Limits, Resource, Scenario, Target};

/// Where a line will be pasted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Paster {
    /// In the current folder.
    Here,
    /// Anywhere: the report can be read in any folder.
    Anywhere,
}

/// A line that runs the pair as the run did: under its limit and all guards, on the first instance. `None` for virtual
/// targets.
pub fn use_line(scenario: &Scenario, pull: Pull, by: Paster) -> Option<String> {
    let pull = Pull {
        limit: pull.limit.written(),
        ..pull
    };
    let filled = filled(scenario, pull, scenario.seed)?;
    let mut guards = guard_options(scenario);
    match &scenario.target {
        // An in-process fit checks its limit itself, and so does any fit with a limit on work, which `exec` cannot count.
        Target::Forest(forest)
            if forest.isolation == Isolation::Thread || scenario.limits.of == Resource::Work =>
        {
            if forest.isolation == Isolation::Process {
                guards.extend(grace_option(scenario));
            }
            let limit = forest_limit(scenario.limits.of, pull.limit);
            Some(match &*guards.join(" ") {
                "" => format!("{} {limit}", filled.shell_line()),
                guards => format!("{} {limit}", filled.exec_line(guards)),
            })
        }
        // Its paths are absolute, so it runs anywhere.
        Target::Forest(_) => Some(filled.exec_line(&exec_options(scenario, pull, guards))),
        _ => {
            let line = filled.exec_line(&exec_options(scenario, pull, guards));
            Some(placed(&filled, &line, by))
        }
    }
}

/// The options of `exec`: the limit, then the guards.
fn exec_options(scenario: &Scenario, pull: Pull, guards: Vec<String>) -> String {
    let limit = pull.limit;
    let limit = match scenario.limits.of {
        // The program keeps it itself.
        _ if scenario.reports_consumption() => None,
        Resource::Wall => Some(format!("--wall {limit}s")),
        Resource::Memory => Some(format!(
            "--memory {}",
            Resource::Memory.written(limit.get())
        )),
        Resource::Cpu | Resource::Work => Some(format!("--cpu {limit}s")),
    };
    let grace = grace_option(scenario);
    let contain = match &scenario.target {
        Target::Command(command) => command
            .contain
            .map(|contain| format!("--contain {contain}")),
        _ => None,
    };
    let options = limit.into_iter().chain(guards).chain(grace);
    let options: Vec<String> = options.chain(contain).collect();
    options.join(" ")
}

fn grace_option(scenario: &Scenario) -> Option<String> {
    let grace = scenario.limits.grace;
    (grace > 0.0).then(|| format!("--grace {grace}s"))
}

/// The bounds on other resources than the limited one, as options of `exec`.
fn guard_options(scenario: &Scenario) -> Vec<String> {
    let Limits { of, guards, .. } = &scenario.limits;
    let clock = |name: &str, resource: Resource| {
        let is_guard = *of != resource || scenario.reports_consumption();
        let guard = guards.of(resource).filter(|_| is_guard);
        guard.map(|seconds| format!("--{name} {seconds}s"))
    };
    let memory = guards
        .memory
        .filter(|_| *of != Resource::Memory || scenario.reports_consumption())
        .map(|bytes| format!("--memory {}", size(bytes)));
    [
        clock("wall", Resource::Wall),
        clock("cpu", Resource::Cpu),
        memory,
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Bytes in the largest unit that is exact.
fn size(bytes: u64) -> String {
    let units = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    let exact = units.iter().find(|(unit, _)| bytes.is_multiple_of(*unit));
    exact.map_or_else(
        || format!("{bytes}B"),
        |(unit, name)| format!("{}{name}", bytes / unit),
    )
}

fn forest_limit(of: Resource, limit: Limit) -> String {
    match of {
        of if of.is_time() => format!("--limit {limit}s --resource {}", of.name()),
        of => format!("--limit {limit} --resource {}", of.name()),
    }
}

/// What a pull runs, as a line for a shell in the current folder.
pub fn command_line(scenario: &Scenario, pull: Pull, seed: u64) -> Option<String> {
    let filled = filled(scenario, pull, seed)?;
    let line = filled.shell_line();
    Some(match scenario.target {
        Target::Forest(_) => line,
        _ => placed(&filled, &line, Paster::Here),
    })
}

/// The line, with a `cd` to its directory if it has to run there.
fn placed(filled: &FilledCommand, line: &str, by: Paster) -> String {
    let is_here = || {
        let there = filled.directory.canonicalize();
        there.is_ok_and(|there| std::env::current_dir().is_ok_and(|here| here == there))
    };
    if by == Paster::Here && is_here() {
        line.to_owned()
    } else {
        filled.from_elsewhere(line)
    }
}

/// The command of a pull, on the first instance if the pull names none.
fn filled(scenario: &Scenario, mut pull: Pull, seed: u64) -> Option<FilledCommand> {
    let command = match &scenario.target {
        Target::Command(command) => (**command).clone(),
        Target::Forest(forest) => {
            let mut plain = forest.clone();
            plain.isolation = Isolation::Process;
            as_command(&plain, &scenario.space, Path::new("captime"))
        }
        _ => return None,
    };
    if pull.instance.is_none() && !command.instances.is_empty() {
        pull.instance = Some(0);
    }
    let commands = Commands {
        command,
        space: scenario.space.clone(),
        of: scenario.limits.of,
        guards: scenario.limits.guards,
        grace: scenario.limits.grace,
        scratch: "/tmp".into(),
    };
    Some(commands.fill(&Start::alone(pull, seed), Path::new("/tmp")))
}
