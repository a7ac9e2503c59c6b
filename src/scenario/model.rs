//! A scenario as the rest of the program uses it: plain data, checked.

mod target;

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Features, stored};
use crate::policy::{PolicyKind, Problem};
use crate::resource::Resource;
use crate::round::{ArmId, Curve, Limit, LimitGrid, Price};
use crate::space::open::Point;
use crate::space::{OpenSpace, Space};
use crate::yaml::Span;

pub use target::{
    Command, Expect, External, FilledCommand, Forest, Isolation, Levels, RecordedTarget, Reward,
    ScoreForm, ScorePlace, ScoreScale, ScoreSource, Stdin, SurrogateTarget, Target,
};

/// Everything that defines a run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Scenario {
    /// Names the run's folder.
    pub name: String,
    /// The file it was read from, as it was named.
    #[serde(skip)]
    pub file: PathBuf,
    /// The folder that paths in it are relative to, and where commands run.
    #[serde(skip)]
    pub folder: PathBuf,
    /// The text it was read from, word for word.
    #[serde(skip)]
    pub text: String,
    /// What a pull runs.
    pub target: Target,
    /// The arms.
    #[serde(rename = "arms", with = "stored::arms")]
    pub space: Space,
    /// The open space that the arms are drawn from, if there is one.
    #[serde(skip)]
    pub open: Option<Arc<OpenSpace>>,
    /// An earlier run whose arms and rounds a new run takes over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_run: Option<StartRun>,
    /// The limits.
    pub limits: Limits,
    /// What consumption and being censored cost.
    pub price: Prices,
    /// The policies: `run` uses the first, `study` compares them all. At least one.
    #[serde(rename = "policy", with = "stored::policies")]
    pub policies: Vec<PolicyKind>,
    /// When to stop.
    pub budget: Budget,
    /// How many pulls at a time, on this machine.
    pub slots: Slots,
    /// Other machines to run pulls on, instead of this one. They may change from session to session.
    #[serde(skip)]
    pub nodes: Option<Nodes>,
    /// Whether slots have their own CPUs.
    pub pin: Pin,
    /// The seed of all randomness.
    pub seed: u64,
    /// Whether to stop when the first pulls all fail.
    pub stop_on_first_failures: bool,
    /// How runs on nodes of different speed are compared.
    #[serde(default)]
    pub compare: Compare,
    /// What is known of the instances, for the report.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub features: Option<Features>,
    /// How often a run that was lost with its launcher is run again.
    pub retries: u32,
    /// What `captime test` runs instead of what a policy would choose.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test: Option<TestPlan>,
}

/// An earlier run to start from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct StartRun {
    /// Its folder, or its name, as the scenario writes it.
    pub path: String,
    /// Where the scenario writes it.
    #[serde(skip)]
    pub at: Span,
}

/// Arms that are run side by side on the same instances and seeds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestPlan {
    /// The arms, each once.
    pub arms: Vec<ArmId>,
    /// The answer of the run when the test was started.
    pub answer: Option<ArmId>,
    /// How often every arm runs on every instance, each time with another seed.
    pub seeds: u32,
    /// What it runs on, for people.
    pub on: String,
    /// If the arms lead from the default to the answer: what changes with each of them but the first, for people.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub path: Vec<String>,
    /// The arms that left a run unsolved before, under the limit of the test or by failing. A test of a few dozen runs may not show that.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unsolved: Vec<ArmId>,
}

/// How runs on nodes of different speed are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Compare {
    /// By what they consumed.
    #[default]
    AsMeasured,
    /// By what they would have consumed on the mean node, as far as its speed is known.
    ByNode,
}

impl Scenario {
    /// The policy that chooses.
    ///
    /// # Panics
    /// Never: a checked scenario has at least one.
    pub fn policy(&self) -> &PolicyKind {
        self.policies.first().expect("a scenario has a policy")
    }

    /// Cost and penalty, once the largest limit is known. It is the default unit.
    pub fn price(&self, max: Limit) -> Price {
        let unit = self.price.unit.unwrap_or(max.get());
        Price::of(self.price.cost.clone(), self.price.penalty.clone(), unit)
    }

    /// The problem that the policy solves, once the limits are known.
    pub fn problem(&self, limits: LimitGrid) -> Problem {
        let price = self.price(limits.max()).tabulated(&limits);
        Problem {
            arms: self.space.first_arms(),
            limits,
            price,
            space: self
                .space
                .opened()
                .is_none()
                .then(|| Arc::new(self.space.clone())),
            instances: self.target.instances().len(),
            instance_names: self.target.instances().into(),
        }
    }

    /// Whether the program itself reports what it consumed, instead of captime measuring and ending it.
    pub fn reports_consumption(&self) -> bool {
        matches!(&self.target, Target::Command(command) if command.consumption.is_some())
    }

    /// The same, with pulls also on the instances that are held out for the test.
    #[must_use]
    pub fn with_test_instances(mut self) -> Self {
        self.target.use_test_instances();
        self
    }

    /// Adds arms of an earlier run right after the default, where the arms come from an open space. A sampled list keeps its
    /// length: its last arms make room.
    pub fn add_arms(&mut self, earlier: &[Point]) {
        let Some(open) = &self.open else { return };
        let known: Vec<Point> = if let Some(opened) = self.space.opened() {
            opened.points().cloned().collect()
        } else {
            let arms = self.space.arms().map(|arm| self.space.configuration(arm));
            arms.filter_map(|arm| open.point(arm.iter()).ok()).collect()
        };
        let mut seen = HashSet::new();
        let all = known[..1].iter().chain(earlier).chain(&known[1..]);
        let all = all.filter(|point| seen.insert(*point));
        if self.space.opened().is_some() {
            let start: Vec<Point> = all.skip(1).cloned().collect();
            self.space = Space::open(Arc::clone(open), start);
        } else {
            let listed: Vec<&Point> = all.take(self.space.len()).collect();
            if let Ok(space) = open.list(&listed) {
                self.space = space;
            }
        }
    }

    /// A path as the scenario writes it: relative to its folder if it is inside.
    pub fn path_as_written<'p>(&self, path: &'p Path) -> &'p Path {
        path.strip_prefix(&self.folder).unwrap_or(path)
    }

    /// The limit on CPU time of a pull: what the policy granted if it limits CPU time, else the guard.
    pub fn cpu_limit(&self, limit: Limit) -> Option<f64> {
        match self.limits.of {
            Resource::Cpu => Some(limit.get()),
            Resource::Wall | Resource::Work | Resource::Memory => self.limits.guards.cpu,
        }
    }
}

/// What the policy limits and prices, and the guards.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Limits {
    /// The resource.
    pub of: Resource,
    /// Fixed bounds on every pull.
    #[serde(flatten)]
    pub guards: Guards,
    /// The admissible limits, or how to find them.
    #[serde(flatten)]
    pub from: LimitSource,
    /// How long a command may clean up after SIGTERM, in seconds. 0 kills at once.
    pub grace: f64,
}

/// Fixed bounds on every pull. Hitting one is a failure.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
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
            Resource::Memory => self.memory.map(|bytes| bytes as f64),
        }
    }
}

/// Where limits come from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum LimitSource {
    /// Given.
    Grid(LimitGrid),
    /// Only the largest is given, and z-RCUCB makes its own grid.
    Max(Limit),
    /// Found by running arms once, under the guard of the same resource.
    Calibrate(Calibrate),
}

impl LimitSource {
    /// The limits, unless they still have to be found.
    pub fn grid(&self) -> Option<LimitGrid> {
        match self {
            Self::Grid(grid) => Some(grid.clone()),
            Self::Max(max) => LimitGrid::new([max.get()]).ok(),
            Self::Calibrate(_) => None,
        }
    }

    /// The largest limit of any pull: for a calibration, the guard.
    pub fn largest(&self) -> Limit {
        match self {
            Self::Grid(grid) => grid.max(),
            Self::Max(max) => *max,
            Self::Calibrate(calibrate) => calibrate.guard,
        }
    }
}

/// How limits are found.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Calibrate {
    /// The guard on the limited resource: the limit of every calibration pull.
    pub guard: Limit,
    /// How many limits.
    pub points: usize,
    /// Between which quantiles of the consumptions (type 7).
    pub quantiles: (f64, f64),
    /// How many arms, a seeded sample. By default, all.
    pub arms: Option<usize>,
}

/// What consumption and being censored cost. Becomes a [`Price`] once the unit is known.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Prices {
    /// c.
    pub cost: Curve,
    /// lambda.
    pub penalty: Curve,
    /// Consumption per x. By default, the largest limit.
    pub unit: Option<f64>,
}

/// When to stop: at whichever bound is reached first.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    /// Rounds with an outcome.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rounds: Option<u64>,
    /// Seconds of wall time over all sessions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wall: Option<f64>,
    /// Sum of what the pulls consume of the limited resource, in seconds or counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consumption: Option<f64>,
}

/// More slots than this are an error, here and in `--slots`.
pub(super) const MOST_SLOTS: i64 = 4096;

/// How many pulls at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Slots {
    /// One per CPU that captime may use.
    Auto,
    /// This many.
    Count(usize),
}

/// Whether slots have their own CPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Pin {
    /// If there are enough.
    Auto,
    /// Never.
    Never,
}

/// Resolves `path` relative to the scenario's folder.
pub(super) fn resolve(folder: &Path, path: &str) -> PathBuf {
    folder.join(path)
}

/// Machines that pulls run on instead of this one.
#[derive(Debug, Clone, PartialEq)]
pub struct Nodes {
    /// How they are reached.
    pub engines: Engines,
    /// How many seconds a node may be silent before it counts as lost.
    pub lost_after: f64,
}

/// How nodes are reached.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Engines {
    /// All nodes of the Slurm allocation that captime runs in.
    Slurm,
    /// These hosts, by ssh.
    Ssh(Vec<SshHost>),
    /// By any commands that connect a stream.
    Launch(Vec<LaunchCommand>),
}

/// A host that is reached by ssh.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SshHost {
    /// Its name for ssh.
    pub host: String,
    /// Pulls at a time. By default, as many as its CPUs allow.
    pub slots: Option<usize>,
    /// The program there. By default, `captime`.
    pub captime: Option<String>,
}

/// A command that connects its stdin and stdout with an agent's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaunchCommand {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Pulls at a time. By default, as many as the CPUs there allow.
    pub slots: Option<usize>,
}

impl Nodes {
    /// The engine's name in scenarios.
    pub fn engine(&self) -> &'static str {
        match &self.engines {
            Engines::Slurm => "slurm",
            Engines::Ssh(_) => "ssh",
            Engines::Launch(_) => "launch",
        }
    }
}
