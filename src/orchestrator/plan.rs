//! What a run is about, settled before its first round.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::journal::EndReason;
use crate::policy::{PolicyKind, Problem};
use crate::round::{Curve, Limit, LimitGrid, Price};
use crate::space::Space;

/// Arms, limits, prices, policy and seed: all that decisions depend on besides outcomes.
#[derive(Debug, Clone)]
pub struct Plan {
    /// How many arms there are, at least one.
    pub arms: usize,
    /// Where the limits come from.
    pub limits: Limits,
    /// The paper's c.
    pub cost: Curve,
    /// The paper's lambda.
    pub penalty: Curve,
    /// Consumption per x; the largest limit if none.
    pub unit: Option<f64>,
    /// Who chooses.
    pub policy: PolicyKind,
    /// The seed of all randomness.
    pub seed: u64,
    /// How many instances one is drawn from each round; 0 if there are none.
    pub instances: usize,
    /// What they are called; empty where that is not known.
    pub instance_names: Arc<[String]>,
    /// What the arms are set to, where it is known.
    pub space: Option<Arc<Space>>,
    /// Whether a run whose first pulls all fail is stopped.
    pub stop_on_first_failures: bool,
}

/// Where the limits come from.
#[derive(Debug, Clone)]
pub enum Limits {
    /// They are given.
    Grid(LimitGrid),
    /// They are measured first.
    Calibrate(Calibrate),
}

/// How limits are measured.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Calibrate {
    /// The fixed limit every calibration pull runs under.
    pub guard: Limit,
    /// How many limits to make.
    pub points: usize,
    /// Between which quantiles of the consumptions.
    pub quantiles: (f64, f64),
    /// How many arms to measure; all if none.
    pub arms: Option<usize>,
}

impl Plan {
    /// The price, once the limits are known.
    pub fn price(&self, limits: &LimitGrid) -> Price {
        let unit = self.unit.unwrap_or(limits.max().get());
        Price::of(self.cost.clone(), self.penalty.clone(), unit)
    }

    /// What the policy is told, once the limits are known.
    pub fn problem(&self, limits: LimitGrid) -> Problem {
        Problem {
            arms: self.arms,
            price: self.price(&limits),
            limits,
            space: self.space.clone(),
            instances: self.instances,
        }
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

/// When a run ends: whichever of these comes first.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Budget {
    /// Rounds with an outcome.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rounds: Option<u64>,
    /// Seconds of wall time over all sessions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wall: Option<f64>,
    /// Sum of what the pulls consumed of the limited resource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consumption: Option<f64>,
}

impl Budget {
    /// That of a scenario.
    pub fn of(scenario: &crate::scenario::Budget) -> Self {
        Self {
            rounds: scenario.rounds,
            wall: scenario.wall,
            consumption: scenario.consumption,
        }
    }

    /// Whether it ends earlier than another in any respect.
    pub fn is_below(&self, other: &Self) -> bool {
        let below = |new: Option<f64>, old: Option<f64>| match (new, old) {
            (Some(new), Some(old)) => new < old,
            (Some(_), None) | (None, _) => false,
        };
        below(
            self.rounds.map(|rounds| rounds as f64),
            other.rounds.map(|rounds| rounds as f64),
        ) || below(self.wall, other.wall)
            || below(self.consumption, other.consumption)
    }

    /// Why no further pull may start, if so.
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

    /// What part of the budget is used: that of the kind which is nearest to its end.
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
