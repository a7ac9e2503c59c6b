//! What a pull runs, as a line to paste into a shell. The summary, `best` and the report's page all show this one.

use std::path::Path;

use super::command::Commands;
use super::forest::as_command;
use crate::round::{Limit, Pull};
use crate::scenario::{Isolation, Launch, Resource, Scenario, Target};

/// A line that runs the pair: the command under its limit, on the first instance; none for virtual targets.
pub fn use_line(scenario: &Scenario, pull: Pull) -> Option<String> {
    let pull = Pull {
        limit: pull.limit.written(),
        ..pull
    };
    match &scenario.target {
        Target::Forest(_) => {
            let line = command_line(scenario, pull, scenario.seed)?;
            Some(format!(
                "{line} {limit}",
                limit = forest_limit(scenario.limits.of, pull.limit)
            ))
        }
        Target::Command(_) => {
            let limit = limit_option(scenario.limits.of, pull.limit);
            Some(launch(scenario, pull, scenario.seed)?.exec_line(&limit))
        }
        _ => None,
    }
}

fn limit_option(of: Resource, limit: Limit) -> String {
    match of {
        Resource::Wall => format!("--wall {limit}s"),
        Resource::Cpu | Resource::Work => format!("--cpu {limit}s"),
    }
}

fn forest_limit(of: Resource, limit: Limit) -> String {
    match of {
        Resource::Work => format!("--limit {limit} --resource work"),
        Resource::Wall | Resource::Cpu => format!("--limit {limit}s --resource {}", of.name()),
    }
}

/// What a pull runs, as a shell reads it.
pub fn command_line(scenario: &Scenario, pull: Pull, seed: u64) -> Option<String> {
    launch(scenario, pull, seed).map(|launch| launch.shell_line())
}

/// What a pull launches; on the first instance where none is given.
fn launch(scenario: &Scenario, mut pull: Pull, seed: u64) -> Option<Launch> {
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
    Some(commands.launch(pull, 1, seed, Path::new("/tmp")))
}
