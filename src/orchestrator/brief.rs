//! What readers need of a scenario, as the journal's header keeps it.
//!
//! A scenario refers to files: arms in a table, instances in a folder, a data set. They may change or be gone when
//! somebody asks for the best pair, so what was read from them is stored with the run.

use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};

use super::plan::{Calibrate, Limits, Plan};
use crate::journal::Header;
use crate::policy::{OptionValue, PolicyKind};
use crate::round::{ArmId, Curve, Limit, LimitGrid};
use crate::scenario::{LimitSource, Resource, Scenario, Target};
use crate::space::{ABSENT, Parameter, Scale, Space, Value};

/// All that decisions, tables and reports need to know of a scenario.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Brief {
    /// What pulls run on: `command`, `forest`, ...
    pub target: String,
    /// What is limited: `wall`, `cpu` or `work`.
    pub resource: String,
    /// The limits, or how they are found.
    pub limits: StoredLimits,
    /// The cost curve.
    pub cost: String,
    /// The penalty curve.
    pub penalty: String,
    /// Consumption per x, where it is not the largest limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<f64>,
    /// The policy's name.
    pub policy: String,
    /// Its options, defaults included.
    pub options: Map<String, Json>,
    /// Whether a run whose first pulls all fail is stopped.
    pub stop_on_first_failures: bool,
    /// How many instances there are.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub instance_count: usize,
    /// Their names, where the scenario has them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub instances: Vec<String>,
    /// The arms.
    pub arms: StoredArms,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// Limits as they are stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StoredLimits {
    /// Given.
    Grid(Vec<Limit>),
    /// To be measured.
    Calibrate {
        /// The limit of every calibration pull.
        guard: Limit,
        /// How many limits to make.
        points: usize,
        /// Between which quantiles.
        quantiles: (f64, f64),
        /// With how many arms.
        arms: Option<usize>,
    },
}

/// Arms as they are stored: as short as they can be told.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StoredArms {
    /// How many.
    pub count: usize,
    /// The parameters with their values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parameters: Vec<StoredParameter>,
    /// For every arm the places of its values, -1 for none; empty if every combination is an arm, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub codes: Vec<Vec<i64>>,
    /// The arms' own names, where they have any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
}

/// A parameter as it is stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StoredParameter {
    /// Its name.
    pub name: String,
    /// Its values.
    pub values: Vec<Json>,
    /// Whether words among them stand in their order.
    #[serde(
        default,
        rename = "ordered",
        skip_serializing_if = "std::ops::Not::not"
    )]
    pub is_ordered: bool,
}

impl Plan {
    /// What a run of this scenario is about; `instances` are those that the target draws from, by name.
    pub fn of(scenario: &Scenario, instances: &[String]) -> Self {
        let limits = match &scenario.limits.from {
            LimitSource::Grid(grid) => Limits::Grid(grid.clone()),
            LimitSource::Max(max) => {
                Limits::Grid(LimitGrid::new([max.get()]).expect("a limit makes a grid"))
            }
            LimitSource::Calibrate(how) => {
                let guard = scenario
                    .limits
                    .guards
                    .of(scenario.limits.of)
                    .and_then(|guard| Limit::new(guard).ok());
                Limits::Calibrate(Calibrate {
                    guard: guard.expect("the check refuses calibration without its guard"),
                    points: how.points,
                    quantiles: how.quantiles,
                    arms: how.arms,
                })
            }
        };
        let is_run = matches!(scenario.target, Target::Command(_) | Target::Forest(_));
        Self {
            arms: scenario.space.len(),
            limits,
            cost: scenario.price.cost.clone(),
            penalty: scenario.price.penalty.clone(),
            unit: scenario.price.unit,
            policy: scenario.policy().clone(),
            seed: scenario.seed,
            instances: instances.len(),
            instance_names: instances.into(),
            space: Some(Arc::new(scenario.space.clone())),
            stop_on_first_failures: scenario.stop_on_first_failures && is_run,
        }
    }
}

impl Brief {
    /// What readers need of this scenario and plan.
    pub fn of(scenario: &Scenario, plan: &Plan) -> Self {
        Self {
            target: scenario.target.name().into(),
            resource: scenario.limits.of.name().into(),
            limits: match &plan.limits {
                Limits::Grid(grid) => StoredLimits::Grid(grid.as_slice().to_vec()),
                Limits::Calibrate(Calibrate {
                    guard,
                    points,
                    quantiles,
                    arms,
                }) => StoredLimits::Calibrate {
                    guard: *guard,
                    points: *points,
                    quantiles: *quantiles,
                    arms: *arms,
                },
            },
            cost: plan.cost.to_string(),
            penalty: plan.penalty.to_string(),
            unit: plan.unit,
            policy: plan.policy.name().into(),
            options: plan.policy.parameters(),
            stop_on_first_failures: plan.stop_on_first_failures,
            instance_count: plan.instances,
            instances: plan.instance_names.to_vec(),
            arms: StoredArms::of(&scenario.space),
        }
    }

    /// What the run is about; none if this was not written by us.
    pub fn plan(&self, seed: u64) -> Option<Plan> {
        let options = self.options.iter().filter_map(|(name, value)| {
            let value = match value {
                Json::Bool(flag) => OptionValue::Flag(*flag),
                Json::Number(number) => OptionValue::Number(number.as_f64()?),
                Json::String(text) => OptionValue::Text(text.clone()),
                _ => return None,
            };
            Some((name.clone(), value))
        });
        Some(Plan {
            arms: self.arms.count,
            limits: match &self.limits {
                StoredLimits::Grid(limits) => {
                    Limits::Grid(LimitGrid::new(limits.iter().map(|limit| limit.get())).ok()?)
                }
                StoredLimits::Calibrate {
                    guard,
                    points,
                    quantiles,
                    arms,
                } => Limits::Calibrate(Calibrate {
                    guard: *guard,
                    points: *points,
                    quantiles: *quantiles,
                    arms: *arms,
                }),
            },
            cost: Curve::parse(&self.cost).ok()?,
            penalty: Curve::parse(&self.penalty).ok()?,
            unit: self.unit,
            policy: PolicyKind::from_options(&self.policy, options.collect()).ok()?,
            seed,
            instances: self.instance_count,
            instance_names: self.instances.as_slice().into(),
            space: self.space().map(Arc::new),
            stop_on_first_failures: self.stop_on_first_failures,
        })
    }

    /// What is limited.
    pub fn resource(&self) -> Resource {
        match self.resource.as_str() {
            "wall" => Resource::Wall,
            "work" => Resource::Work,
            _ => Resource::Cpu,
        }
    }

    /// The scenario as it was when the run was started; none if the files it names are gone or say something else now.
    ///
    /// Its text is read again, but arms and instances are those of the journal: their files may have changed since.
    pub fn scenario(&self, header: &Header) -> Option<Scenario> {
        let (file, folder) = (Path::new(&header.file), Path::new(&header.folder));
        let checked = crate::scenario::parse(&header.scenario, file, folder).ok()?;
        let mut scenario = checked.scenario;
        scenario.space = self.space()?;
        match &mut scenario.target {
            Target::Command(command) => command.instances.clone_from(&self.instances),
            Target::External(external) => external.instances.clone_from(&self.instances),
            Target::Forest(_) | Target::Synthetic(_) | Target::Recorded(_) => {}
        }
        Some(scenario)
    }

    /// The arms; none if this was not written by us.
    pub fn space(&self) -> Option<Space> {
        self.arms.space()
    }
}

impl StoredArms {
    fn of(space: &Space) -> Self {
        let parameters = space.parameters();
        let combinations: usize = parameters
            .iter()
            .map(|parameter| parameter.values().len())
            .product();
        let is_whole_grid =
            !parameters.is_empty() && combinations == space.len() && !space.is_named() && {
                // A table may have as many rows as there are combinations, in another order.
                let ends = [0, space.len() / 2, space.len() - 1].map(ArmId::from_index);
                ends.iter()
                    .all(|arm| place(parameters, &space.codes(*arm)) == Some(arm.index()))
                    && space
                        .arms()
                        .all(|arm| place(parameters, &space.codes(arm)) == Some(arm.index()))
            };
        let codes = if is_whole_grid || parameters.is_empty() {
            vec![]
        } else {
            let stored = |code: u32| if code == ABSENT { -1 } else { i64::from(code) };
            space
                .arms()
                .map(|arm| space.codes(arm).into_iter().map(stored).collect())
                .collect()
        };
        Self {
            count: space.len(),
            parameters: parameters.iter().map(StoredParameter::of).collect(),
            codes,
            names: space
                .arms()
                .filter_map(|arm| space.name(arm).map(str::to_owned))
                .collect(),
        }
    }

    fn space(&self) -> Option<Space> {
        if self.parameters.is_empty() && self.names.is_empty() {
            return Space::numbered(self.count).ok();
        }
        let parameters = self
            .parameters
            .iter()
            .map(StoredParameter::parameter)
            .collect::<Option<Vec<_>>>()?;
        if self.codes.is_empty() && self.names.is_empty() {
            return Space::grid(parameters, &[], &[]).ok();
        }
        let code = |stored: &i64| match stored {
            -1 => Some(ABSENT),
            place => u32::try_from(*place).ok(),
        };
        let codes = self.codes.iter().flatten().map(code);
        let names = self.names.iter().map(|name| Arc::from(name.as_str()));
        Space::coded(
            parameters,
            self.count,
            codes.collect::<Option<_>>()?,
            names.collect(),
        )
        .ok()
    }
}

impl StoredParameter {
    fn of(parameter: &Parameter) -> Self {
        let stored = |value| serde_json::to_value(value).unwrap_or_default();
        Self {
            name: parameter.name().to_owned(),
            values: parameter.values().iter().map(stored).collect(),
            is_ordered: parameter.scale() == Scale::Ordered,
        }
    }

    fn parameter(&self) -> Option<Parameter> {
        let values = self.values.iter().map(value).collect::<Option<_>>()?;
        Some(if self.is_ordered {
            Parameter::ordered(self.name.as_str(), values)
        } else {
            Parameter::new(self.name.as_str(), values)
        })
    }
}

/// Where a combination stands when the last parameter varies fastest; none if one is absent.
fn place(parameters: &[Parameter], codes: &[u32]) -> Option<usize> {
    parameters
        .iter()
        .zip(codes)
        .try_fold(0, |place, (parameter, code)| {
            (*code != ABSENT).then_some(place * parameter.values().len() + *code as usize)
        })
}

fn value(stored: &Json) -> Option<Value> {
    Some(match stored {
        Json::Bool(flag) => Value::Flag(*flag),
        Json::Number(number) => match number.as_i64() {
            Some(whole) => Value::Integer(whole),
            None => Value::Number(number.as_f64()?),
        },
        Json::String(text) => Value::Text(text.as_str().into()),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn scenario(text: &str) -> Scenario {
        let parsed = crate::scenario::parse(text, Path::new("try.yaml"), Path::new("."));
        parsed.unwrap_or_else(|error| panic!("{error}")).scenario
    }

    fn comes_back(text: &str) -> Brief {
        let scenario = scenario(text);
        let plan = Plan::of(&scenario, scenario.target.instances());
        let brief = Brief::of(&scenario, &plan);
        let stored = serde_json::to_string(&brief).unwrap();
        let read: Brief = serde_json::from_str(&stored).unwrap();
        assert_eq!(read, brief);
        // Arms may be stored in another way than they were given; the caller compares them one by one.
        let without_arms = |plan: Plan| {
            format!(
                "{:?}",
                Plan {
                    space: None,
                    ..plan
                }
            )
        };
        let restored = read.plan(plan.seed).unwrap();
        assert_eq!(without_arms(restored), without_arms(plan));
        let space = read.space().unwrap();
        assert_eq!(space.len(), scenario.space.len());
        for arm in space.arms() {
            assert_eq!(space.configuration(arm), scenario.space.configuration(arm));
        }
        read
    }

    #[test]
    fn every_policy_comes_back_with_its_options() {
        for policy in PolicyKind::NAMES {
            let limits = if *policy == "z-rcucb" {
                "max: 5s"
            } else {
                "max: 5s, grid: 10"
            };
            comes_back(&format!(
                "name: t\ntarget: external\narms: {{grid: {{a: [1, 2.5, 3.0], b: [x, 'true']}}}}\n\
                 limits: {{of: cpu, {limits}}}\nprice: {{cost: x, penalty: 10 * x}}\npolicy: {policy}\n\
                 budget: {{rounds: 10}}\n"
            ));
        }
    }

    #[test]
    fn arms_come_back_however_they_were_given() {
        let rest = "target: external\nlimits: {of: wall, max: 5s, grid: 2}\nprice: {cost: x, penalty: 10 * x}\n\
                    policy: rcucb\nbudget: {rounds: 10}\n";
        let whole = comes_back(&format!("arms: {{grid: {{a: [1, 2], b: [3, 4]}}}}\n{rest}"));
        assert!(whole.arms.codes.is_empty());
        let dropped = comes_back(&format!(
            "arms: {{grid: {{a: [1, 2], b: [3, 4]}}, except: [{{a: 1, b: 4}}]}}\n{rest}"
        ));
        assert_eq!(dropped.arms.codes.len(), 3);
        comes_back(&format!(
            "arms: {{list: [{{a: 1, b: 4}}, {{a: 2}}, {{a: 1, b: 3}}, {{a: 2, b: 4}}]}}\n{rest}"
        ));
        comes_back(&format!(
            "arms: {{list: [{{name: one, a: 1}}, {{name: two, a: 2}}]}}\n{rest}"
        ));
    }
}
