//! Everything about a run that is fixed before its first round.

use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};

use super::RunError;
use crate::journal::{EndReason, FILE, Header, JournalError};
use crate::policy::{PolicyKind, Problem};
use crate::quantity::{counted, whole};
use crate::resource::Resource;
use crate::round::{Curve, LimitGrid, Price};
pub use crate::scenario::{Budget, Calibrate, LimitSource};
use crate::scenario::{Compare, Scenario, Target};
use crate::space::Space;

/// A scenario with the instances that its target draws from, as stored in the journal's header.
///
/// A scenario refers to files: arms in a table, instances in a folder, recorded runs. They may have changed or be gone
/// when you ask for the best pair, so their contents are stored with the run.
#[derive(Debug, Clone)]
pub struct ResolvedScenario {
    /// The scenario, with its arms.
    pub scenario: Scenario,
    /// The names of the instances. Only the target knows those of recorded runs.
    pub instances: Vec<String>,
}

impl ResolvedScenario {
    /// This scenario, with the instances that its target draws from.
    pub fn of(scenario: &Scenario, instances: &[String]) -> Self {
        Self {
            scenario: scenario.clone(),
            instances: instances.to_vec(),
        }
    }

    /// The scenario of the run in `folder`, from the header of its journal.
    pub fn read(header: &Header, folder: &Path) -> Result<Self, RunError> {
        let read = || -> Result<Self, serde_json::Error> {
            let (file, root) = (Path::new(&header.file), Path::new(&header.folder));
            let stored = &header.resolved["scenario"];
            Ok(Self {
                scenario: Scenario::from_stored(stored, file, root, &header.scenario)?,
                instances: serde_json::from_value(header.resolved["instances"].clone())?,
            })
        };
        read().map_err(|error| {
            tracing::debug!(%error, "the header's scenario");
            RunError::Journal(JournalError::Senseless {
                path: folder.join(FILE),
                line: 1,
                what: "the header has arms, limits or a policy that this version of captime does not support",
            })
        })
    }

    /// What to store in the journal's header.
    pub fn stored(&self) -> Value {
        json!({"scenario": self.scenario.stored(), "instances": self.instances})
    }

    /// The plan for a run of it.
    pub fn plan(&self) -> Plan {
        Plan::of(&self.scenario, &self.instances)
    }

    /// The limited resource.
    pub fn resource(&self) -> Resource {
        self.scenario.limits.of
    }
}

/// Arms, limits, prices, policy and seed: everything but outcomes that decisions depend on.
#[derive(Debug, Clone)]
pub struct Plan {
    /// How many arms the policy begins with, at least one.
    pub arms: usize,
    /// Where the limits come from.
    pub limits: LimitSource,
    /// The paper's c.
    pub cost: Curve,
    /// The paper's lambda.
    pub penalty: Curve,
    /// Consumption per x; the largest limit if none.
    pub unit: Option<f64>,
    /// The policy that chooses.
    pub policy: PolicyKind,
    /// The seed of all randomness.
    pub seed: u64,
    /// How many instances each round draws from, or 0 if there are none.
    pub instances: usize,
    /// Their names, or empty if unknown.
    pub instance_names: Arc<[String]>,
    /// What the arms are set to. Where it is open, a run adds the arms that it opens.
    pub space: Arc<Space>,
    /// Whether a run whose first pulls all fail is stopped.
    pub stop_on_first_failures: bool,
    /// How runs on nodes of different speed are compared.
    pub compare: Compare,
    /// What a forest is scored by if it predicts classes.
    pub metric: Option<&'static str>,
}

impl Plan {
    /// The plan for a run of this scenario. `instances` names those that the target draws from.
    pub fn of(scenario: &Scenario, instances: &[String]) -> Self {
        let is_run = matches!(scenario.target, Target::Command(_) | Target::Forest(_));
        Self {
            arms: scenario.space.first_arms(),
            limits: scenario.limits.from.clone(),
            cost: scenario.price.cost.clone(),
            penalty: scenario.price.penalty.clone(),
            unit: scenario.price.unit,
            policy: scenario.policy().clone(),
            seed: scenario.seed,
            instances: instances.len(),
            instance_names: instances.into(),
            space: Arc::new(scenario.space.clone()),
            stop_on_first_failures: scenario.stop_on_first_failures && is_run,
            compare: scenario.compare,
            metric: match &scenario.target {
                Target::Forest(forest) => Some(forest.reward.name()),
                _ => None,
            },
        }
    }

    /// The price, once the limits are known.
    pub fn price(&self, limits: &LimitGrid) -> Price {
        let unit = self.unit.unwrap_or(limits.max().get());
        Price::of(self.cost.clone(), self.penalty.clone(), unit).tabulated(limits)
    }

    /// The problem that the policy solves, once the limits are known.
    pub fn problem(&self, limits: LimitGrid) -> Problem {
        Problem {
            arms: self.arms,
            price: self.price(&limits),
            limits,
            space: self
                .space
                .opened()
                .is_none()
                .then(|| Arc::clone(&self.space)),
            instances: self.instances,
            instance_names: Arc::clone(&self.instance_names),
        }
    }
}

impl Scenario {
    /// Grants every pull the largest limit, and keeps nothing that is only needed for choosing. Measurements then
    /// depend only on arms, target and guards.
    pub fn at_largest_limit(&mut self) {
        let limit = self.limits.from.largest();
        let grid = LimitGrid::new([limit.get()]).expect("a limit makes a grid");
        self.limits.from = LimitSource::Grid(grid);
        self.policies = vec![PolicyKind::parse("uniform").expect("a known policy")];
        self.budget = Budget::default();
        self.stop_on_first_failures = false;
    }
}

impl std::fmt::Display for Budget {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let parts = [
            self.rounds.map(|rounds| format!("rounds {rounds}")),
            self.wall
                .map(|wall| format!("wall {}", crate::quantity::seconds(wall))),
            self.consumption
                .map(|consumption| format!("consumption {consumption}")),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        to.write_str(if parts.is_empty() { "none" } else { "" })?;
        to.write_str(&parts.join(", "))
    }
}

impl Budget {
    /// The bound that was lowered or added since `before` to less than the run has already used, if any.
    pub fn below_use(
        &self,
        before: &Self,
        rounds: u64,
        wall: f64,
        consumption: f64,
    ) -> Option<String> {
        let lowered = |new: Option<f64>, old: Option<f64>, used: f64| {
            new.filter(|new| *new < used && old.is_none_or(|old| *new < old))
        };
        let count = |rounds: Option<u64>| rounds.map(|rounds| rounds as f64);
        let seconds = crate::quantity::seconds;
        if let Some(new) = lowered(count(self.rounds), count(before.rounds), rounds as f64) {
            Some(format!(
                "{}, but {} are done",
                counted(new as u64, "round"),
                whole(rounds)
            ))
        } else if let Some(new) = lowered(self.wall, before.wall, wall) {
            Some(format!(
                "{} of wall time, but {} are used",
                seconds(new),
                seconds(wall)
            ))
        } else {
            let new = lowered(self.consumption, before.consumption, consumption)?;
            Some(format!("a consumption of {new}, but {consumption} is used"))
        }
    }

    /// Why no further pull may start, if the budget is used up.
    pub fn ended(&self, launched: u64, wall: f64, consumption: f64) -> Option<EndReason> {
        if self.rounds.is_some_and(|rounds| launched >= rounds) {
            Some(EndReason::Rounds)
        } else if self.wall.is_some_and(|budget| wall >= budget) {
            Some(EndReason::Wall)
        } else if self.consumption.is_some_and(|budget| consumption >= budget) {
            Some(EndReason::Consumption)
        } else {
            None
        }
    }

    /// How many pulls it affords if all run to this limit of `resource`, `slots` at a time; none if it has no end, or none that
    /// can be computed from limits.
    pub fn affords(&self, limit: f64, resource: Resource, slots: usize) -> Option<f64> {
        let is_time = resource.is_time();
        let bounds = [
            self.rounds.map(|rounds| rounds as f64),
            (self.wall.filter(|_| is_time)).map(|wall| wall * slots as f64 / limit),
            self.consumption.map(|consumption| consumption / limit),
        ];
        bounds.into_iter().flatten().reduce(f64::min)
    }

    /// The share of the budget that is used, for the bound that is nearest to its end.
    pub fn share(&self, rounds: u64, wall: f64, consumption: f64) -> Option<f64> {
        let shares = [
            self.rounds
                .map(|budget| rounds as f64 / budget.max(1) as f64),
            self.wall.map(|budget| wall / budget),
            self.consumption.map(|budget| consumption / budget),
        ];
        shares
            .into_iter()
            .flatten()
            .reduce(f64::max)
            .map(|share| share.clamp(0.0, 1.0))
    }
}
