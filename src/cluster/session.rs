//! From a scenario to slots: on this machine, or on the nodes that the scenario names.

use std::path::{Path, PathBuf};
use std::time::Duration;

use captime_limit::{Launch, is_program_there};
use serde_json::{Value, json};

use super::agent::Opening;

use super::files::{FileMark, HASHED};
use super::fleet::Work;
use super::link::Place;
use super::message::Open;
use super::node::{NodeStatus, given_cpus};
use super::pool::{Agents, Cluster};
use super::{ClusterError, places};
use crate::round::{ArmId, Limit, Pull};
use crate::scenario::{Engines, Nodes, Pin, Resource, Scenario, Target};
use crate::target::{PrepareError, PreparedTarget, SlotPool, Start, prepare};

/// Slots that pulls can run in.
pub struct StartedSlots {
    /// For the driver.
    pub pool: SlotPool,
    /// The nodes, and those that did not answer. Empty on one machine.
    pub nodes: Vec<NodeStatus>,
    /// Nodes that cannot be used now, with the reason.
    pub absent: Vec<(String, String)>,
    /// To wait for the agents to leave.
    pub agents: Agents,
}

impl StartedSlots {
    /// Ends everything and waits until the agents have left.
    pub async fn close(self) {
        self.pool.close().await;
        self.agents.left().await;
    }
}

/// Why there are no slots.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The target cannot run here.
    #[error(transparent)]
    Prepare(#[from] PrepareError),
    /// There are no agents.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
}

impl StartError {
    /// What the user can change to get past this.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Prepare(error) => error.hint(),
            Self::Cluster(error) => error.hint().map(ToOwned::to_owned),
        }
    }
}

/// Starts the slots that a scenario asks for, on this machine or on its nodes. Call it inside a tokio runtime.
pub async fn start_slots(
    scenario: &Scenario,
    target: PreparedTarget,
    slots: usize,
    pin: Pin,
) -> Result<StartedSlots, StartError> {
    let Some(nodes) = scenario.nodes.as_ref().filter(|_| !target.is_virtual()) else {
        return Ok(StartedSlots {
            pool: target.start(slots, pin).await?,
            nodes: vec![],
            absent: vec![],
            agents: Agents::default(),
        });
    };
    let places = all_places(nodes)?;
    let cluster = Cluster::start(places, work(scenario, &target, nodes)).await?;
    let nodes = cluster.nodes.clone();
    let absent = cluster.absent.clone();
    let (pool, agents) = cluster.into_pool(enforcement(&nodes));
    Ok(StartedSlots {
        pool,
        nodes,
        absent,
        agents,
    })
}

fn all_places(nodes: &Nodes) -> Result<Vec<Place>, ClusterError> {
    Ok(match &nodes.engines {
        Engines::Slurm => places::slurm()?,
        Engines::Ssh(hosts) => (hosts.iter())
            .map(|host| places::ssh(&host.host, host.slots, host.captime.as_deref()))
            .collect(),
        Engines::Launch(commands) => (commands.iter().enumerate())
            .map(|(index, launch)| places::launch(&launch.command, launch.slots, index + 1))
            .collect(),
    })
}

fn work(scenario: &Scenario, target: &PreparedTarget, nodes: &Nodes) -> Work {
    let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let limits = scenario.limits.clone();
    let reports_consumption = scenario.reports_consumption();
    Work {
        open: Open {
            file: absolute(&scenario.file),
            folder: absolute(&scenario.folder),
            scenario: scenario.stored(),
            slots: None,
            files: files(scenario, target),
        },
        lost_after: Duration::try_from_secs_f64(nodes.lost_after)
            .unwrap_or(Duration::from_secs(30)),
        longest: Box::new(move |pull| {
            let limit = pull.limit.get();
            let wall = limits.guards.wall;
            let longest = match limits.of {
                _ if reports_consumption => wall,
                Resource::Wall => Some(wall.map_or(limit, |wall| wall.min(limit))),
                // Without a guard nothing bounds the wall time, but one thread needs at least this much.
                Resource::Cpu => Some(wall.unwrap_or(limit)),
                Resource::Work | Resource::Memory => wall,
            };
            longest.map(|seconds| seconds + limits.grace)
        }),
    }
}

/// The files that must be the same on every node: data, instances, and the program unless it is looked up in `PATH`.
fn files(scenario: &Scenario, target: &PreparedTarget) -> Vec<FileMark> {
    match &scenario.target {
        // Every node reads all of it anyway.
        Target::Forest(forest) => FileMark::of(&forest.data, u64::MAX).into_iter().collect(),
        Target::Command(command) => {
            let program = program(target).filter(|program| program.contains('/'));
            let paths = program.iter().chain(&command.instances);
            paths
                .filter_map(|path| FileMark::of(&command.directory.join(path), HASHED))
                .collect()
        }
        Target::Synthetic(_) | Target::Recorded(_) | Target::Surrogate(_) | Target::External(_) => {
            vec![]
        }
    }
}

/// The program that every pull runs, if it is the same for all.
fn program(target: &PreparedTarget) -> Option<String> {
    let commands = target.commands()?;
    commands
        .is_program_fixed()
        .then(|| sample(target).and_then(|launch| launch.command.into_iter().next()))
        .flatten()
        .map(|program| program.to_string_lossy().into_owned())
}

/// The command of one pull, to check that its program exists.
fn sample(target: &PreparedTarget) -> Option<Launch> {
    let commands = target.commands()?;
    let pull = Pull {
        instance: (!commands.command.instances.is_empty()).then_some(0),
        ..Pull::new(ArmId::from_index(0), Limit::new(1.0).ok()?)
    };
    let filled = commands.fill(&Start::alone(pull, 1), &commands.scratch);
    Some(Launch {
        env: (filled.env.iter())
            .map(|(name, value)| (name.into(), value.into()))
            .collect(),
        directory: Some(filled.directory.clone()),
        ..Launch::new(filled.arguments)
    })
}

/// What all nodes enforce, with the nodes, for the journal.
fn enforcement(nodes: &[NodeStatus]) -> Value {
    let weakest = |key: &str, weak: &str| {
        let mut all = nodes.iter().map(|node| &node.enforcement[key]);
        let first = all.clone().next().cloned().unwrap_or_default();
        all.find(|value| *value == weak).cloned().unwrap_or(first)
    };
    json!({
        "level": weakest("level", "subreaper"),
        "memory": weakest("memory", "sampled"),
        "contain": weakest("contain", "off"),
        "nodes": nodes,
    })
}

/// On a node: prepares to run the pulls of a scenario. Scratch folders are made in `scratch`.
pub fn open_work(open: Open, scratch: PathBuf) -> Opening {
    Box::pin(async move {
        // Reading files may take long, and heartbeats must not wait for it.
        let reading = tokio::task::spawn_blocking(move || read(&open, &scratch));
        let (target, slots, pin) = reading.await.map_err(|error| error.to_string())??;
        let pool = target.start(slots, pin).await;
        pool.map_err(|error| error.to_string())
    })
}

fn read(open: &Open, scratch: &Path) -> Result<(PreparedTarget, usize, Pin), String> {
    if let Some(fault) = open.files.iter().find_map(FileMark::fault) {
        return Err(fault);
    }
    if !open.folder.is_dir() {
        return Err(format!("there is no folder `{}`", open.folder.display()));
    }
    let scenario = Scenario::from_stored(&open.scenario, &open.file, &open.folder, "")
        .map_err(|error| format!("the scenario cannot be used there: {error}"))?;
    let target = prepare(&scenario, scratch).map_err(|error| error.to_string())?;
    if let Some(launch) = sample(&target)
        && let Some(program) = program(&target)
    {
        if !is_program_there(&launch) {
            return Err(format!("the program `{program}` is missing"));
        }
        if let Some(missing) = missing_interpreter(&launch, &program) {
            return Err(format!("`{program}` needs `{missing}`, which is missing"));
        }
    }
    let cpus = given_cpus();
    let slots = open
        .slots
        .unwrap_or(cpus.count / target.threads().max(1))
        .max(1);
    let pin = match cpus.which {
        Some(_) => scenario.pin,
        None => Pin::Never,
    };
    Ok((target, slots, pin))
}

/// The interpreter that a script names, if it does not exist.
fn missing_interpreter(launch: &Launch, program: &str) -> Option<String> {
    let path = launch.directory.as_deref()?.join(program);
    let mut beginning = [0; 256];
    let count = std::io::Read::read(&mut std::fs::File::open(path).ok()?, &mut beginning).ok()?;
    let line = beginning[..count].strip_prefix(b"#!")?;
    let line = line.split(|byte| *byte == b'\n').next()?;
    let text = String::from_utf8_lossy(line);
    let mut words = text.split_whitespace();
    let interpreter = words.next()?;
    let wanted = if interpreter.ends_with("/env") {
        words.find(|word| !word.starts_with('-') && !word.contains('='))
    } else {
        None
    };
    [Some(interpreter), wanted]
        .into_iter()
        .flatten()
        .find(|name| {
            let of = Launch {
                command: vec![(*name).into()],
                ..launch.clone()
            };
            !is_program_there(&of)
        })
        .map(ToOwned::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_whose_interpreter_is_missing_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let launch = Launch {
            directory: Some(folder.path().to_owned()),
            ..Launch::new(["./solve"])
        };
        for (line, missing) in [
            ("#!/bin/sh\n", None),
            ("#!/usr/bin/env -S sh -e\n", None),
            ("#!/no/such/shell -e\n", Some("/no/such/shell")),
            ("#!/usr/bin/env no-such-python\n", Some("no-such-python")),
            ("\x7fELF", None),
        ] {
            std::fs::write(folder.path().join("solve"), line).unwrap();
            let found = missing_interpreter(&launch, "./solve");
            assert_eq!(found.as_deref(), missing, "{line}");
        }
    }

    #[test]
    fn the_weakest_node_is_what_a_session_promises() {
        let node = |level: &str| NodeStatus {
            node: level.into(),
            slots: 2,
            facts: super::super::NodeFacts::here(),
            enforcement: json!({"level": level, "memory": "cgroup2"}),
            shared_cpus: vec![],
        };
        let all = enforcement(&[node("cgroup2"), node("subreaper")]);
        assert_eq!(all["level"], "subreaper");
        assert_eq!(all["memory"], "cgroup2");
        assert_eq!(all["nodes"].as_array().unwrap().len(), 2);
    }
}
