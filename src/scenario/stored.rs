//! A scenario as stored in a journal, and how two scenarios differ.
//!
//! Comments, order and spelling of a scenario file do not count: what is stored is the checked [`Scenario`] itself,
//! with defaults filled in and with the contents of the files it names. A run may be resumed with another budget. Any
//! other change would mix two experiments in one journal.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use serde_json::{Map, Value};

use super::model::Scenario;
use crate::policy::{OptionValue, PolicyKind};
use crate::round::ArmId;
use crate::space::open::{Opened, Origin};
use crate::space::{self, ABSENT, Parameter, Scale, Space, format};

impl Scenario {
    /// Everything that counts, with paths as the scenario writes them, wherever captime was started.
    pub fn stored(&self) -> Value {
        let mut plain = self.clone();
        for path in plain.target.paths_mut() {
            *path = self.path_as_written(path).to_owned();
        }
        let mut value = serde_json::to_value(&plain).expect("a scenario is plain data");
        value.sort_all_objects();
        value
    }

    /// Restores a stored scenario, with its file, its folder and its text. An unknown word is an error.
    pub fn from_stored(
        value: &Value,
        file: &Path,
        folder: &Path,
        text: &str,
    ) -> Result<Self, serde_json::Error> {
        let mut scenario = Self::deserialize(value)?;
        if scenario.policies.is_empty() {
            return Err(serde_json::Error::custom("no policy"));
        }
        file.clone_into(&mut scenario.file);
        folder.clone_into(&mut scenario.folder);
        text.clone_into(&mut scenario.text);
        for path in scenario.target.paths_mut() {
            // Joining an empty path would leave a trailing slash.
            *path = if path.as_os_str().is_empty() {
                folder.to_owned()
            } else {
                folder.join(&*path)
            };
        }
        Ok(scenario)
    }

    /// A hash of the stored form: the same for the same scenario, however it is written.
    pub fn hash(&self) -> String {
        let stored = self.stored().to_string();
        blake3::hash(stored.as_bytes()).to_hex().to_string()
    }
}

/// One difference.
#[derive(Debug, Clone, PartialEq)]
pub struct ScenarioChange {
    /// The key, such as `limits.grid`.
    pub key: String,
    /// The old value. Null if there was none.
    pub before: Value,
    /// The new value. Null if it was removed.
    pub after: Value,
}

impl fmt::Display for ScenarioChange {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |value: &Value| match value {
            Value::Null => "(nothing)".to_owned(),
            Value::String(text) => text.clone(),
            value => value.to_string(),
        };
        let (before, after) = (shown(&self.before), shown(&self.after));
        if before.len() + after.len() > 400 {
            return write!(to, "{}: changed", self.key);
        }
        write!(to, "{}: {before} -> {after}", self.key)
    }
}

/// How two stored scenarios differ, apart from the budget, which may change during a run.
pub fn difference(before: &Value, after: &Value) -> Vec<ScenarioChange> {
    let mut changes = vec![];
    compare("", before, after, &mut changes);
    changes.retain(|change| change.key != "budget" && !change.key.starts_with("budget."));
    changes
}

fn compare(key: &str, before: &Value, after: &Value, changes: &mut Vec<ScenarioChange>) {
    match (before, after) {
        (Value::Object(old), Value::Object(new)) => {
            let mut keys: Vec<&String> = old.keys().chain(new.keys()).collect();
            keys.sort();
            keys.dedup();
            for name in keys {
                let inner = if key.is_empty() {
                    name.clone()
                } else {
                    format!("{key}.{name}")
                };
                compare(
                    &inner,
                    old.get(name).unwrap_or(&Value::Null),
                    new.get(name).unwrap_or(&Value::Null),
                    changes,
                );
            }
        }
        _ if before == after => {}
        _ => changes.push(ScenarioChange {
            key: key.into(),
            before: before.clone(),
            after: after.clone(),
        }),
    }
}

/// Policies as `[{rcucb: {alpha: 0.25, ...}}]`, every option written out.
pub(super) mod policies {
    use super::{
        Deserialize, Deserializer, Map, OptionValue, PolicyKind, Serialize, Serializer, Value,
    };
    use serde::de::Error as _;

    pub(crate) fn serialize<S: Serializer>(
        policies: &[PolicyKind],
        to: S,
    ) -> Result<S::Ok, S::Error> {
        let all = policies.iter().map(|policy| {
            Map::from_iter([(policy.name().to_owned(), Value::from(policy.parameters()))])
        });
        all.collect::<Vec<_>>().serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Vec<PolicyKind>, D::Error> {
        let stored: Vec<Map<String, Value>> = Vec::deserialize(from)?;
        let policies = stored.iter().flatten().map(|(name, options)| {
            let unknown = || D::Error::custom(format!("unknown policy or option: {name}"));
            let none = Map::new();
            let options = match options {
                Value::Null => &none,
                options => options.as_object().ok_or_else(unknown)?,
            };
            let given = options.iter().filter(|(_, value)| !value.is_null());
            let given = given.map(|(name, value)| {
                let value = match value {
                    Value::Bool(flag) => OptionValue::Flag(*flag),
                    Value::Number(number) => {
                        OptionValue::Number(number.as_f64().ok_or_else(unknown)?)
                    }
                    Value::String(text) => OptionValue::Text(text.clone()),
                    _ => return Err(unknown()),
                };
                Ok((name.clone(), value))
            });
            PolicyKind::from_options(name, given.collect::<Result<_, _>>()?).map_err(|_| unknown())
        });
        policies.collect()
    }
}

/// A regular expression as its text.
pub(super) mod pattern {
    use super::{Deserialize, Deserializer, Serializer};
    use regex::Regex;
    use serde::de::Error as _;

    /// Compiles a score's expression: `^` and `$` match the ends of a line, and its size is bounded.
    pub(crate) fn compile(text: &str) -> Result<Regex, regex::Error> {
        regex::RegexBuilder::new(text)
            .multi_line(true)
            .size_limit(1 << 20)
            .build()
    }

    pub(crate) fn serialize<S: Serializer>(pattern: &Regex, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(pattern.as_str())
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Regex, D::Error> {
        compile(&String::deserialize(from)?).map_err(D::Error::custom)
    }
}

/// Arms as they are stored: in the shortest form that defines them.
#[derive(Serialize, Deserialize)]
struct StoredArms {
    count: usize,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    parameters: Vec<StoredParameter>,
    /// For every arm the indices of its values, -1 for none. Empty if every combination is an arm, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    codes: Vec<Vec<i64>>,
    /// The arms' names, if they have any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    names: Vec<String>,
    /// An open space, as `captime import` would print it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    space: Option<String>,
    /// What arms of an open space to start with, after the default.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    start: Vec<Value>,
}

#[derive(Serialize, Deserialize)]
struct StoredParameter {
    name: String,
    values: Vec<Value>,
    #[serde(
        default,
        rename = "ordered",
        skip_serializing_if = "std::ops::Not::not"
    )]
    is_ordered: bool,
    #[serde(
        default,
        rename = "category",
        skip_serializing_if = "std::ops::Not::not"
    )]
    is_category: bool,
}

/// A finite list of arms.
pub(super) mod arms {
    use super::{Deserialize, Deserializer, Serialize, Serializer, Space, StoredArms};
    use serde::de::Error as _;

    pub(crate) fn serialize<S: Serializer>(space: &Space, to: S) -> Result<S::Ok, S::Error> {
        StoredArms::of(space).serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Space, D::Error> {
        let stored = StoredArms::deserialize(from)?;
        stored
            .space()
            .ok_or_else(|| D::Error::custom("arms that do not fit their parameters"))
    }
}

impl StoredArms {
    fn of(space: &Space) -> Self {
        if let Some(opened) = space.opened() {
            return Self::open(space, opened);
        }
        let parameters = space.parameters();
        // A sample of an open space has many values of each parameter.
        let counts = parameters.iter().map(|known| known.values().len());
        let combinations = counts.fold(1, usize::saturating_mul);
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
            space: None,
            start: vec![],
        }
    }

    fn open(space: &Space, opened: &Opened) -> Self {
        let given = |arm: &ArmId| *opened.origin(*arm) == Origin::Start;
        let configuration = |arm| serde_json::to_value(space.configuration(arm));
        let start = space.arms().filter(given).map(configuration);
        let text = format::write(opened.space(), format::Format::Captime).map(|file| file.text);
        Self {
            count: 0,
            parameters: vec![],
            codes: vec![],
            names: vec![],
            space: Some(text.unwrap_or_default()),
            start: start.filter_map(Result::ok).collect(),
        }
    }

    fn space(&self) -> Option<Space> {
        if let Some(text) = &self.space {
            let space = format::read(text, format::Format::Captime).ok()?.space;
            let point = |stored: &Value| space.read_point(stored.as_object()?);
            let start: Option<Vec<_>> = self.start.iter().map(point).collect();
            return Some(Space::open(Arc::new(space), start?));
        }
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
            is_category: parameter.scale() == Scale::Category,
        }
    }

    fn parameter(&self) -> Option<Parameter> {
        let values = self.values.iter().map(space::Value::from_json);
        let values = values.collect::<Option<_>>()?;
        Some(if self.is_ordered {
            Parameter::ordered(self.name.as_str(), values)
        } else if self.is_category {
            Parameter::category(self.name.as_str(), values)
        } else {
            Parameter::new(self.name.as_str(), values)
        })
    }
}

/// The index of a combination when the last parameter varies fastest. `None` if a parameter is absent.
fn place(parameters: &[Parameter], codes: &[u32]) -> Option<usize> {
    parameters
        .iter()
        .zip(codes)
        .try_fold(0, |place, (parameter, code)| {
            (*code != ABSENT).then_some(place * parameter.values().len() + *code as usize)
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::tests::check;

    const BASE: &str = "target: external
arms: {grid: {a: [1, 2], b: [x, y]}}
limits: {grid: [60s, 120s]}
budget: {rounds: 10, wall: 1h}
seed: 3
";

    fn scenario(text: &str) -> Scenario {
        check(text)
            .unwrap_or_else(|error| panic!("{error}"))
            .scenario
    }

    fn changed(from: &str, to: &str) -> Vec<ScenarioChange> {
        assert!(BASE.contains(from));
        difference(
            &scenario(BASE).stored(),
            &scenario(&BASE.replace(from, to)).stored(),
        )
    }

    /// Stores a scenario, reads it back, and compares the two, arm by arm.
    fn comes_back(text: &str) -> Value {
        let scenario = scenario(text);
        let stored = scenario.stored();
        let written: Value = serde_json::from_str(&stored.to_string()).unwrap();
        let Scenario {
            file, folder, text, ..
        } = &scenario;
        let read = Scenario::from_stored(&written, file, folder, text).unwrap();
        assert_eq!(read.stored(), stored);
        assert_eq!(read.hash(), scenario.hash());
        assert_eq!(read.space.len(), scenario.space.len());
        for arm in read.space.arms() {
            assert_eq!(
                read.space.configuration(arm),
                scenario.space.configuration(arm)
            );
        }
        // Arms may be stored in another form than they were given in.
        let without_arms = |mut scenario: Scenario| {
            scenario.space = Space::numbered(1).unwrap();
            format!("{scenario:?}")
        };
        assert_eq!(without_arms(read), without_arms(scenario));
        stored
    }

    #[test]
    fn spelling_order_and_comments_do_not_count() {
        let same = "# the same\nseed: 3\nbudget: {wall: 60m, rounds: 1e1}
limits:\n  of: wall\n  grid: [2m, 1m]
arms:\n  grid:\n    a: {from: 1, to: 2, step: 1}\n    b: [x, y]
target: external\npolicy: levels\nprice: {cost: x, penalty: 10 * x}\nslots: auto\n";
        assert_eq!(scenario(BASE).stored(), scenario(same).stored());
        assert_eq!(scenario(BASE).hash(), scenario(same).hash());
    }

    #[test]
    fn every_change_but_one_of_the_budget_counts() {
        for (from, to) in [
            ("seed: 3", "seed: 3 # same"),
            ("rounds: 10", "rounds: 11"),
            ("rounds: 10", "rounds: 9"),
            ("rounds: 10, wall: 1h", "rounds: 10"),
            ("wall: 1h", "wall: 1h, consumption: 1h"),
        ] {
            assert_eq!(changed(from, to), [], "{from} -> {to}");
        }
        for (from, to) in [
            ("a: [1, 2]", "a: [2, 1]"),
            ("a: [1, 2], b: [x, y]", "b: [x, y], a: [1, 2]"),
            ("seed: 3", "seed: 4"),
            ("120s", "121s"),
            ("seed: 3", "seed: 3\npolicy: {rcucb: {alpha: 2}}"),
            ("seed: 3", "seed: 3\nprice: {penalty: par2}"),
            ("b: [x, y]}", "b: [x, y]}, except: {a: 1, b: x}"),
        ] {
            assert!(!changed(from, to).is_empty(), "{from} -> {to}");
        }
    }

    #[test]
    fn a_change_is_shown_with_its_key() {
        let changes = changed("seed: 3", "seed: 4\npolicy: uniform");
        let shown: Vec<String> = changes.iter().map(ToString::to_string).collect();
        assert_eq!(shown.last().unwrap(), "seed: 3 -> 4");
        assert!(shown[0].starts_with("policy: "), "{shown:?}");
        let changes = changed("[60s, 120s]", "[60s]");
        assert_eq!(
            changes[0].to_string(),
            "limits.grid: [60.0,120.0] -> [60.0]"
        );
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
    fn every_target_comes_back() {
        for text in [
            "target: {synthetic: {problem: large7, grid: m2}}\npolicy: uniform\n",
            "target: {external: {instances: [a, b], test: [c]}}\narms: {list: [x, y]}\nlimits: {max: 1s, grid: 2}\n",
            "target: {forest: {data: datasets/ames_like.csv, predict: Sale_Price, isolation: process, engine: smartcore, \
             task: regression, normalise: sd, levels: by-response}}\narms: {grid: {trees: [1, 2]}}\n\
             limits: {of: cpu, cpu: 60s, calibrate: {points: 5, arms: 2}}\nbudget: {rounds: 3}\n",
            "target:\n  command: ['{x}{{}}', '{params}', '{seed}', '{instance}']\n  env: {A: '{limit}', B: }\n  stdin: {text: '{round}'}\n  \
             instances: [p, q]\n  reward: {stderr: '^s=([0-9.]+)$', worst: 1, best: 0}\n  success: [3]\n\
             arms: {grid: {x: [a, b], y: {ordered: [low, high]}}}\nlimits: {max: 1s, grid: 2, memory: 1GiB, grace: 1s}\n\
             budget: {rounds: 3}\nslots: 3\npin: never\n",
        ] {
            comes_back(text);
        }
    }

    #[test]
    fn arms_come_back_however_they_were_given() {
        let rest = "target: external\nlimits: {of: wall, max: 5s, grid: 2}\npolicy: rcucb\nbudget: {rounds: 10}\n";
        let whole = comes_back(&format!("arms: {{grid: {{a: [1, 2], b: [3, 4]}}}}\n{rest}"));
        assert_eq!(whole["arms"]["codes"], Value::Null);
        let dropped = comes_back(&format!(
            "arms: {{grid: {{a: [1, 2], b: [3, 4]}}, except: [{{a: 1, b: 4}}]}}\n{rest}"
        ));
        assert_eq!(dropped["arms"]["codes"].as_array().unwrap().len(), 3);
        comes_back(&format!(
            "arms: {{list: [{{a: 1, b: 4}}, {{a: 2}}, {{a: 1, b: 3}}, {{a: 2, b: 4}}]}}\n{rest}"
        ));
        comes_back(&format!(
            "arms: {{list: [{{name: one, a: 1}}, {{name: two, a: 2}}]}}\n{rest}"
        ));
    }

    #[test]
    fn an_unknown_word_in_a_header_is_an_error() {
        let stored = scenario(BASE).stored();
        let read =
            |stored: &Value| Scenario::from_stored(stored, Path::new("a"), Path::new("."), "");
        assert!(read(&stored).is_ok());
        for (pointer, word) in [
            ("/limits/of", Value::from("gpu")),
            ("/pin", Value::from("sometimes")),
            ("/policy", serde_json::json!([{"greedy": {}}])),
            ("/policy", serde_json::json!([])),
            ("/price/cost", Value::from("2 y")),
            ("/arms/count", Value::from("many")),
        ] {
            let mut damaged = stored.clone();
            *damaged.pointer_mut(pointer).unwrap() = word;
            assert!(read(&damaged).is_err(), "{pointer}");
        }
    }
}
