//! From a scenario to a target that can run its pulls.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use captime_forest::engine::EngineError;
use captime_forest::{Dataset, DatasetError};
use captime_limit::LimitError;
use serde_json::{Value, json};

use super::command::{CommandTarget, Commands, local_runners};
use super::forest::{ForestTarget, accepts, as_command, counting_work, read_data, scored};
use super::recorded::Recorded;
use super::slots::{CpuClaim, allowed_cpus, cpus_of_slots};
use super::synthetic::Synthetic;
use super::{InVirtualTime, SlotPool, TargetError, VirtualTarget};
use crate::scenario::{self, Isolation, Pin, Resource, Scenario, Slots};
use crate::space::Space;

/// Why the target of a scenario cannot run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PrepareError {
    /// The recorded runs or the synthetic problem are not usable.
    #[error(transparent)]
    Virtual(#[from] TargetError),
    /// Every recorded instance is held out for the test.
    #[error("`test` holds out every recorded instance")]
    NothingToTrainOn,
    /// The data set of a forest cannot be read.
    #[error("{}{source}", named(path, source))]
    Data {
        /// Its file, as the scenario writes it.
        path: PathBuf,
        /// What is wrong with it.
        source: DatasetError,
    },
    /// The engine of a forest cannot learn from its data set.
    #[error("{}: {source}", path.display())]
    Engine {
        /// The file, as the scenario writes it.
        path: PathBuf,
        /// Why not.
        source: EngineError,
    },
    /// Your own program runs the pulls of an external target.
    #[error("captime does not run the pulls of an external target")]
    External,
    /// The policy limits memory, but nothing here enforces that exactly.
    #[error(
        "`of: memory` needs exact memory limits, and here memory is only sampled from time to time"
    )]
    MemorySampled {
        /// How to get exact ones.
        advice: Option<String>,
    },
    /// Limits cannot be enforced here.
    #[error(transparent)]
    Limit(#[from] LimitError),
    /// The system refused threads, or captime's own program cannot be found.
    #[error("cannot start the target: {0}")]
    System(#[from] std::io::Error),
}

/// The file's name in front of a message that does not contain it.
fn named(path: &Path, error: &DatasetError) -> String {
    match error {
        DatasetError::Unreadable { .. } => String::new(),
        _ => format!("{}: ", path.display()),
    }
}

impl PrepareError {
    /// What the user can change to get past this.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Virtual(error) => error.hint(),
            Self::NothingToTrainOn => {
                Some("leave out of `test` the instances to tune on".to_owned())
            }
            Self::Data { source, .. } => source.hint(),
            Self::Engine { source, .. } => source.hint(),
            Self::External => Some(
                "use `captime ask`, or a scenario with a command, a forest or a virtual target"
                    .to_owned(),
            ),
            Self::MemorySampled { advice } => Some(match advice {
                Some(advice) => advice.clone(),
                None => "`captime check` shows what is missing for the level `cgroup2`".to_owned(),
            }),
            Self::Limit(error) => error.hint(),
            Self::System(_) => None,
        }
    }

    /// Whether the scenario, or a file it names, is at fault.
    pub fn is_usage(&self) -> bool {
        !matches!(self, Self::Limit(_) | Self::System(_))
    }
}

/// A target whose files have been read and checked.
pub struct PreparedTarget {
    kind: Kind,
    seed: u64,
    limits: scenario::Limits,
    space: Space,
}

enum Kind {
    Virtual(Box<dyn VirtualTarget>),
    /// The commands, and how many CPUs one pull keeps busy.
    Commands(Arc<Commands>, usize),
    Forest(Box<Dataset>, Box<scenario::Forest>),
}

/// Reads everything that the target of this scenario needs. Its scratch folders are made in `folder`.
pub fn prepare(scenario: &Scenario, folder: &Path) -> Result<PreparedTarget, PrepareError> {
    measures_memory(scenario)?;
    let kind = match &scenario.target {
        scenario::Target::Synthetic(spec) => Kind::Virtual(Box::new(Synthetic::new(spec.problem))),
        scenario::Target::Recorded(recorded) => {
            let all = Recorded::open(&recorded.spec)?;
            let is_for_training = |name: &str| !recorded.test.iter().any(|kept| kept == name);
            let training = all.with_instances_where(is_for_training);
            Kind::Virtual(Box::new(training.ok_or(PrepareError::NothingToTrainOn)?))
        }
        scenario::Target::Surrogate(surrogate) => {
            let training = surrogate.open(&scenario.space)?;
            Kind::Virtual(Box::new(training.ok_or(PrepareError::NothingToTrainOn)?))
        }
        scenario::Target::Command(command) => commands(scenario, (**command).clone(), 1, folder),
        scenario::Target::Forest(forest) => {
            // In a separate process every fit reads the data again, but mistakes are found here, before the first fit.
            let data = dataset(scenario, forest)?;
            match forest.isolation {
                Isolation::Thread => Kind::Forest(Box::new(data), forest.clone()),
                Isolation::Process => {
                    let binary = std::env::current_exe()?;
                    let command = as_command(forest, &scenario.space, &binary);
                    let mut command = scored(command, forest, &data);
                    if scenario.limits.of == Resource::Work {
                        command = counting_work(command);
                    }
                    commands(scenario, command, forest.threads, folder)
                }
            }
        }
        scenario::Target::External(_) => return Err(PrepareError::External),
    };
    Ok(PreparedTarget {
        kind,
        seed: scenario.seed,
        limits: scenario.limits.clone(),
        space: scenario.space.clone(),
    })
}

/// Refuses to limit memory where it is only sampled. Nodes find out themselves.
pub fn measures_memory(scenario: &Scenario) -> Result<(), PrepareError> {
    let is_external = matches!(scenario.target, scenario::Target::External(_));
    if scenario.limits.of != Resource::Memory || scenario.nodes.is_some() || is_external {
        return Ok(());
    }
    let detected = captime_limit::detect();
    if detected.is_memory_exact() {
        return Ok(());
    }
    let advice = detected.advice.first().cloned();
    Err(PrepareError::MemorySampled { advice })
}

/// Reads the data set of a scenario's forest, and checks that the engine can learn from it.
pub fn dataset(scenario: &Scenario, forest: &scenario::Forest) -> Result<Dataset, PrepareError> {
    let path = scenario.path_as_written(&forest.data);
    let data = read_data(forest).map_err(|source| PrepareError::Data {
        path: path.to_owned(),
        source,
    })?;
    accepts(forest, &data).map_err(|source| PrepareError::Engine {
        path: path.to_owned(),
        source,
    })?;
    Ok(data)
}

fn commands(
    scenario: &Scenario,
    command: scenario::Command,
    threads: usize,
    folder: &Path,
) -> Kind {
    let scratch = folder.join("scratch");
    let commands = Commands {
        command,
        space: scenario.space.clone(),
        of: scenario.limits.of,
        guards: scenario.limits.guards,
        grace: scenario.limits.grace,
        scratch: std::path::absolute(&scratch).unwrap_or(scratch),
    };
    Kind::Commands(Arc::new(commands), threads.max(1))
}

impl PreparedTarget {
    /// Whether pulls take no real time.
    pub fn is_virtual(&self) -> bool {
        matches!(self.kind, Kind::Virtual(_))
    }

    /// The training instances, by name.
    pub fn instances(&self) -> &[String] {
        match &self.kind {
            Kind::Virtual(target) => target.instance_names(),
            Kind::Commands(commands, _) => &commands.command.instances,
            Kind::Forest(..) => &[],
        }
    }

    /// The commands that pulls run, if they run any.
    pub fn commands(&self) -> Option<&Arc<Commands>> {
        match &self.kind {
            Kind::Commands(commands, _) => Some(commands),
            Kind::Virtual(_) | Kind::Forest(..) => None,
        }
    }

    /// CPUs that one pull keeps busy.
    pub fn threads(&self) -> usize {
        match &self.kind {
            Kind::Virtual(_) => 1,
            Kind::Commands(_, threads) => *threads,
            Kind::Forest(_, forest) => forest.threads.max(1),
        }
    }

    /// How many pulls run at a time by default.
    pub fn default_slots(&self, wanted: Slots) -> usize {
        match wanted {
            Slots::Count(slots) => slots,
            Slots::Auto if self.is_virtual() => 1,
            Slots::Auto => (allowed_cpus().len() / self.threads()).max(1),
        }
    }

    /// Which limits can be enforced here, for the journal's header.
    pub fn enforcement(&self) -> Value {
        match &self.kind {
            Kind::Virtual(_) => Value::Null,
            Kind::Commands(..) => serde_json::to_value(captime_limit::detect()).unwrap_or_default(),
            Kind::Forest(..) => in_process(),
        }
    }

    /// Starts the target with this many slots. Call it inside a tokio runtime.
    pub async fn start(self, slots: usize, pin: Pin) -> Result<SlotPool, PrepareError> {
        let cpus = match pin {
            Pin::Auto => cpus_of_slots(&allowed_cpus(), slots, self.threads()),
            Pin::Never => None,
        };
        let claim = match &cpus {
            Some(cpus) if !self.is_virtual() => CpuClaim::of(cpus.iter().flatten().copied()),
            _ => CpuClaim::default(),
        };
        let (sender, ends) = tokio::sync::mpsc::unbounded_channel();
        let (target, enforcement): (Box<dyn super::Target>, Value) = match self.kind {
            Kind::Virtual(target) => (
                Box::new(InVirtualTime::new(target, self.seed, sender)),
                Value::Null,
            ),
            Kind::Commands(commands, _) => {
                // Left by a captime that was killed. Each round removes what is in its own way.
                let _ = std::fs::remove_dir_all(&commands.scratch);
                let setup = captime_limit::Setup {
                    contain: commands.command.contain,
                    ..captime_limit::Setup::default()
                };
                let runners = local_runners(&setup, slots).await?;
                let target = CommandTarget::on(runners, &commands, cpus, &sender);
                let enforcement = serde_json::to_value(target.enforcement()).unwrap_or_default();
                (Box::new(target), enforcement)
            }
            Kind::Forest(data, forest) => {
                let target = ForestTarget::start(
                    *data,
                    *forest,
                    self.space,
                    &self.limits,
                    slots,
                    cpus.as_deref(),
                    sender,
                )?;
                (Box::new(target), in_process())
            }
        };
        Ok(SlotPool {
            target,
            ends,
            slots,
            enforcement,
            cpus: claim,
            changes: None,
        })
    }
}

fn in_process() -> Value {
    json!({"level": "in-process"})
}
