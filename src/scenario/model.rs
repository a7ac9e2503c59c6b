//! A scenario as the rest of the program uses it: plain data, checked.

mod target;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::template::{Filling, shell_word};
use crate::policy::{PolicyKind, Problem};
use crate::resource::Resource;
use crate::round::{Curve, Limit, LimitGrid, Price};
use crate::space::Space;

pub use target::{
    Command, Engine, External, Forest, Isolation, Launch, LaunchStdin, Levels, Normalise, Recorded,
    Reward, ScoreForm, ScorePlace, ScoreScale, Stdin, Target, Task,
};

/// Everything a run is about.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// Names the run's folder.
    pub name: String,
    /// The file it was read from, as it was named.
    pub file: PathBuf,
    /// The folder that paths in it are relative to, and where commands run.
    pub folder: PathBuf,
    /// The text it was read from, word for word.
    pub text: String,
    /// What a pull runs.
    pub target: Target,
    /// The arms.
    pub space: Space,
    /// The limits.
    pub limits: Limits,
    /// What consumption and being censored cost.
    pub price: Prices,
    /// The policies: `run` uses the first, `study` sets them all against each other. At least one.
    pub policies: Vec<PolicyKind>,
    /// When to stop.
    pub budget: Budget,
    /// How many pulls at a time.
    pub slots: Slots,
    /// Whether slots have CPUs of their own.
    pub pin: Pin,
    /// Where all chance comes from.
    pub seed: u64,
    /// Whether to stop when the first pulls all fail.
    pub stop_on_first_failures: bool,
    /// How often a run that was lost with its launcher is run again.
    pub retries: u32,
}

impl Scenario {
    /// The policy that chooses.
    ///
    /// # Panics
    /// Never: a checked scenario has at least one.
    pub fn policy(&self) -> &PolicyKind {
        self.policies.first().expect("a scenario has a policy")
    }

    /// Cost and penalty once the largest limit is known, which is the unit unless one is given.
    pub fn price(&self, max: Limit) -> Price {
        let unit = self.price.unit.unwrap_or(max.get());
        Price::of(self.price.cost.clone(), self.price.penalty.clone(), unit)
    }

    /// What the policy is told, once the limits are known.
    pub fn problem(&self, limits: LimitGrid) -> Problem {
        let price = self.price(limits.max());
        Problem {
            arms: self.space.len(),
            limits,
            price,
            space: Some(Arc::new(self.space.clone())),
            instances: self.target.instances().len(),
        }
    }

    /// A path as the scenario writes it: relative to its folder where it lies there.
    pub fn path_as_written<'p>(&self, path: &'p Path) -> &'p Path {
        path.strip_prefix(&self.folder).unwrap_or(path)
    }

    /// The command line that runs this pull by hand, for people to copy; none where nothing is run.
    ///
    /// Commands run in their own directory; for a forest it is `captime forest` in the scenario's folder.
    pub fn command_line(&self, with: &Filling<'_>) -> Option<String> {
        match &self.target {
            Target::Command(command) => Some(command.launch(with).shell_line()),
            Target::Forest(forest) => Some(self.forest_line(forest, with)),
            Target::Synthetic(_) | Target::Recorded(_) | Target::External(_) => None,
        }
    }

    fn forest_line(&self, forest: &Forest, with: &Filling<'_>) -> String {
        let mut words = vec![
            "captime".to_owned(),
            "forest".into(),
            self.path_as_written(&forest.data).display().to_string(),
            "--predict".into(),
            forest.predict.clone(),
        ];
        let mut option = |name: &str, value: String| words.extend([format!("--{name}"), value]);
        option("train", forest.train.to_string());
        if forest.task != Task::Auto {
            option("task", forest.task.name().into());
        }
        if forest.engine != Engine::Builtin {
            option("engine", forest.engine.name().into());
        }
        if forest.normalise != Normalise::Range {
            option("normalise", forest.normalise.name().into());
        }
        if forest.threads != 1 {
            option("threads", forest.threads.to_string());
        }
        if !forest.drop.is_empty() {
            option("drop", crate::listed::write(&forest.drop));
        }
        match &forest.levels {
            Levels::ByMean => option("level-order", "by-response".into()),
            Levels::Alphabetical(listed) => {
                for (column, levels) in listed {
                    option(
                        "levels",
                        format!("{column}={}", crate::listed::write(levels)),
                    );
                }
            }
        }
        for (name, value) in with.configuration.iter() {
            option(&name.replace('_', "-"), value.to_string());
        }
        let unit = if self.limits.of == Resource::Work {
            ""
        } else {
            "s"
        };
        option("limit", format!("{}{unit}", with.limit));
        option("resource", self.limits.of.name().into());
        option("seed", with.seed.to_string());
        words
            .iter()
            .map(|word| shell_word(word))
            .collect::<Vec<_>>()
            .join(" ")
    }

    /// The limit on CPU time of a pull: what the policy granted if that is CPU time, else the guard.
    pub fn cpu_limit(&self, limit: Limit) -> Option<f64> {
        match self.limits.of {
            Resource::Cpu => Some(limit.get()),
            Resource::Wall | Resource::Work => self.limits.guards.cpu,
        }
    }
}

/// What the policy limits and prices, and the guards around that.
#[derive(Debug, Clone, PartialEq)]
pub struct Limits {
    /// The resource.
    pub of: Resource,
    /// Fixed bounds on every pull.
    pub guards: Guards,
    /// The admissible limits, or how to find them.
    pub from: LimitSource,
    /// How long a command may tidy up after SIGTERM, in seconds; 0 kills at once.
    pub grace: f64,
}

/// Fixed bounds on every pull; to hit one is a failure.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Guards {
    /// Seconds.
    pub wall: Option<f64>,
    /// Seconds.
    pub cpu: Option<f64>,
    /// A plain count, for calibrating a forest.
    pub work: Option<f64>,
    /// Bytes.
    pub memory: Option<u64>,
}

impl Guards {
    /// The guard on this resource.
    pub fn of(&self, resource: Resource) -> Option<f64> {
        match resource {
            Resource::Wall => self.wall,
            Resource::Cpu => self.cpu,
            Resource::Work => self.work,
        }
    }
}

/// Where limits come from.
#[derive(Debug, Clone, PartialEq)]
pub enum LimitSource {
    /// Given.
    Grid(LimitGrid),
    /// Only the largest is given: z-RCUCB makes its own grid.
    Max(Limit),
    /// Found by running arms once under the guard of the same resource.
    Calibrate(Calibrate),
}

/// How limits are found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Calibrate {
    /// How many limits.
    pub points: usize,
    /// Between which quantiles of the consumptions, type 7.
    pub quantiles: (f64, f64),
    /// With how many arms, a seeded sample; all if not given.
    pub arms: Option<usize>,
}

/// What consumption and being censored cost; a [`Price`] once the unit is known.
#[derive(Debug, Clone)]
pub struct Prices {
    /// c.
    pub cost: Curve,
    /// lambda.
    pub penalty: Curve,
    /// Consumption per x; the largest limit if not given.
    pub unit: Option<f64>,
}

/// When to stop: whichever comes first.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Budget {
    /// So many rounds.
    pub rounds: Option<u64>,
    /// So many seconds.
    pub wall: Option<f64>,
    /// So much of the limited resource, in seconds or counts.
    pub consumption: Option<f64>,
}

/// More slots than this are refused, here and by `--slots`.
pub(super) const MOST_SLOTS: i64 = 4096;

/// How many pulls at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Slots {
    /// As many as CPUs that we may use.
    Auto,
    /// So many.
    Count(usize),
}

/// Whether slots have CPUs of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pin {
    /// If there are enough.
    Auto,
    /// Never.
    Never,
}

/// `path` as seen from the scenario's folder.
pub(super) fn resolve(folder: &Path, path: &str) -> PathBuf {
    folder.join(path)
}
