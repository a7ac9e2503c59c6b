//! What the pulls of a scenario run on, made ready before anything is written.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;

use super::super::{Failure, forest_data};
use crate::learner::Dataset;
use crate::limit;
use crate::scenario::{self, Isolation, Resource, Scenario};
use crate::target::command::{CommandTarget, Commands};
use crate::target::forest::{ForestTarget, as_command, counting_work};
use crate::target::recorded::Recorded;
use crate::target::synthetic::Synthetic;
use crate::target::{Ends, InVirtualTime, Target, VirtualTarget};

/// A target that can be started.
pub(in crate::cli) enum Stage {
    Virtual(Box<dyn VirtualTarget>),
    /// With the CPUs that one pull keeps busy.
    Commands(Arc<Commands>, usize),
    Forest(Box<Dataset>, Box<scenario::Forest>),
}

impl Stage {
    /// Reads what the target needs.
    pub(in crate::cli) fn prepare(scenario: &Scenario, folder: &Path) -> Result<Self, Failure> {
        let refused = |error: crate::target::TargetError| Failure::usage(&error).hint(error.hint());
        Ok(match &scenario.target {
            scenario::Target::Synthetic(spec) => {
                Self::Virtual(Box::new(Synthetic::new(spec.problem)))
            }
            scenario::Target::Recorded(recorded) => {
                let all = Recorded::open(&recorded.spec).map_err(refused)?;
                // What is kept back for the test is not met while tuning.
                let is_for_training = |name: &str| !recorded.test.iter().any(|kept| kept == name);
                let training = all.with_instances_where(is_for_training);
                Self::Virtual(Box::new(training.ok_or_else(|| {
                    Failure::usage("`test` keeps back every recorded instance")
                        .hint(Some("leave out of `test` those to tune on"))
                })?))
            }
            scenario::Target::Command(command) => {
                Self::commands(scenario, (**command).clone(), 1, folder)
            }
            scenario::Target::Forest(forest) => match forest.isolation {
                Isolation::Process => {
                    // Every pull reads them again, but what is wrong with them is said once, before the first.
                    forest_data::read(scenario, forest)?;
                    let binary = std::env::current_exe().map_err(Failure::ours)?;
                    let mut command = as_command(forest, &scenario.space, &binary);
                    if scenario.limits.of == Resource::Work {
                        command = counting_work(command);
                    }
                    Self::commands(scenario, command, forest.threads, folder)
                }
                Isolation::Thread => {
                    let data = forest_data::read(scenario, forest)?;
                    Self::Forest(Box::new(data), forest.clone())
                }
            },
            scenario::Target::External(_) => {
                return Err(Failure::usage(
                    "pulls of an external target are run by whoever calls `captime ask`",
                ));
            }
        })
    }

    fn commands(
        scenario: &Scenario,
        command: scenario::Command,
        threads: usize,
        folder: &Path,
    ) -> Self {
        let scratch: PathBuf = folder.join("scratch");
        let commands = Arc::new(Commands {
            command,
            space: scenario.space.clone(),
            of: scenario.limits.of,
            guards: scenario.limits.guards,
            grace: scenario.limits.grace,
            scratch: std::path::absolute(&scratch).unwrap_or(scratch),
        });
        Self::Commands(commands, threads.max(1))
    }

    /// Whether pulls take no time of ours.
    pub(in crate::cli) fn is_virtual(&self) -> bool {
        matches!(self, Self::Virtual(_))
    }

    /// The instances one is drawn from, by name.
    pub(in crate::cli) fn instances(&self) -> &[String] {
        match self {
            Self::Virtual(target) => target.instance_names(),
            Self::Commands(commands, _) => &commands.command.instances,
            Self::Forest(..) => &[],
        }
    }

    /// CPUs that one pull keeps busy.
    pub(in crate::cli) fn threads(&self) -> usize {
        match self {
            Self::Virtual(_) => 1,
            Self::Commands(_, threads) => *threads,
            Self::Forest(_, forest) => forest.threads.max(1),
        }
    }

    /// What of the limits can be enforced here, for the record.
    pub(in crate::cli) fn enforcement(&self) -> Value {
        match self {
            Self::Virtual(_) => Value::Null,
            Self::Commands(..) => serde_json::to_value(limit::detect()).unwrap_or_default(),
            Self::Forest(..) => serde_json::json!({"level": "in-process"}),
        }
    }

    /// Starts it, in a tokio runtime.
    pub(in crate::cli) async fn start(
        self,
        scenario: &Scenario,
        slots: usize,
        cpus: Option<Vec<Vec<usize>>>,
        ends: Ends,
    ) -> Result<(Box<dyn Target>, Value), Failure> {
        Ok(match self {
            Self::Virtual(target) => (
                Box::new(InVirtualTime::new(target, scenario.seed, ends)),
                Value::Null,
            ),
            Self::Commands(commands, _) => {
                sweep(&commands.scratch);
                let (target, enforcement) =
                    CommandTarget::start(commands, &limit::Setup::default(), slots, cpus, ends)
                        .await
                        .map_err(|error| Failure::ours(&error).hint(error.hint()))?;
                (Box::new(target), enforcement)
            }
            Self::Forest(data, forest) => {
                let target = ForestTarget::start(
                    *data,
                    *forest,
                    scenario.space.clone(),
                    &scenario.limits,
                    slots,
                    cpus.as_deref(),
                    ends,
                )
                .map_err(Failure::ours)?;
                (Box::new(target), serde_json::json!({"level": "in-process"}))
            }
        })
    }
}

/// Scratch folders of a captime that was killed; the run's lock is ours, so nobody uses them.
fn sweep(scratch: &Path) {
    if scratch.exists() {
        // What cannot be removed is in nobody's way: rounds remove what stands in theirs.
        let _ = std::fs::remove_dir_all(scratch);
    }
}
