//! What makes a scenario the same scenario: comments, order and spelling do not count, everything else does.
//!
//! A run goes on with a raised budget; any other change would mix two experiments in one journal.

use std::fmt;
use std::path::Path;

use serde_json::{Map, Value, json};

use super::Pin;
use super::model::{
    Budget, Command, Forest, Levels, LimitSource, Reward, Scenario, ScoreForm, ScorePlace, Slots,
    Stdin, Target,
};
use super::template::{Piece, Template};
use crate::space::{Scale, Space};

/// One thing that differs.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// What, as `limits.grid`.
    pub key: String,
    /// As it was; null if it was not there.
    pub before: Value,
    /// As it is; null if it is gone.
    pub after: Value,
}

impl fmt::Display for Change {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |value: &Value| match value {
            Value::Null => "(nothing)".to_owned(),
            Value::String(text) => text.clone(),
            value => value.to_string(),
        };
        write!(
            to,
            "{}: {} -> {}",
            self.key,
            shown(&self.before),
            shown(&self.after)
        )
    }
}

/// How two scenarios differ.
#[derive(Debug, Clone, PartialEq)]
pub enum Difference {
    /// Not at all.
    None,
    /// Only the budget was raised: a run may go on.
    BudgetRaised(Vec<Change>),
    /// In something that makes it another experiment.
    Other(Vec<Change>),
}

/// Compares two normal forms.
pub fn difference(before: &Value, after: &Value) -> Difference {
    let mut changes = vec![];
    compare("", before, after, &mut changes);
    if changes.is_empty() {
        Difference::None
    } else if changes.iter().all(is_raised_budget) {
        Difference::BudgetRaised(changes)
    } else {
        Difference::Other(changes)
    }
}

/// A larger budget, or one bound less.
fn is_raised_budget(change: &Change) -> bool {
    change.key.starts_with("budget.")
        && match (change.before.as_f64(), change.after.as_f64()) {
            (Some(before), Some(after)) => after > before,
            (Some(_), None) => true,
            _ => false,
        }
}

fn compare(key: &str, before: &Value, after: &Value, changes: &mut Vec<Change>) {
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
        _ => changes.push(Change {
            key: key.into(),
            before: before.clone(),
            after: after.clone(),
        }),
    }
}

impl Scenario {
    /// A hash of the normal form, the budget included: the same for the same scenario however it is written.
    pub fn hash(&self) -> String {
        blake3::hash(canonical(&self.normal()).as_bytes())
            .to_hex()
            .to_string()
    }

    /// Everything that counts, defaults written out, durations in seconds: what a journal stores to compare with.
    pub fn normal(&self) -> Value {
        let limits = &self.limits;
        let from = match &limits.from {
            LimitSource::Grid(grid) => {
                json!({"grid": grid.as_slice().iter().map(|limit| limit.get()).collect::<Vec<_>>()})
            }
            LimitSource::Max(max) => json!({"max": max.get()}),
            LimitSource::Calibrate(calibrate) => json!({"calibrate": {
                "points": calibrate.points,
                "quantiles": [calibrate.quantiles.0, calibrate.quantiles.1],
                "arms": calibrate.arms,
            }}),
        };
        let mut limited = json!({
            "of": limits.of.name(),
            "wall": limits.guards.wall,
            "cpu": limits.guards.cpu,
            "work": limits.guards.work,
            "memory": limits.guards.memory,
            "grace": limits.grace,
        });
        if let (Value::Object(limited), Value::Object(from)) = (&mut limited, from) {
            limited.extend(from);
        }
        let policies: Vec<Value> = self
            .policies
            .iter()
            .map(|policy| json!({policy.name(): policy.parameters()}))
            .collect();
        json!({
            "name": self.name,
            "target": {self.target.name(): self.normal_target()},
            "arms": normal_space(&self.space),
            "limits": limited,
            "price": {
                "cost": self.price.cost.to_string(),
                "penalty": self.price.penalty.to_string(),
                "unit": self.price.unit,
            },
            "policy": policies,
            "budget": normal_budget(&self.budget),
            "slots": match self.slots {
                Slots::Auto => json!("auto"),
                Slots::Count(count) => json!(count),
            },
            "pin": match self.pin {
                Pin::Auto => "auto",
                Pin::Never => "never",
            },
            "seed": self.seed,
            "stop_on_first_failures": self.stop_on_first_failures,
            "retries": self.retries,
        })
    }

    fn normal_target(&self) -> Value {
        match &self.target {
            Target::Command(command) => self.normal_command(command),
            Target::Forest(forest) => self.normal_forest(forest),
            Target::Synthetic(spec) => json!({
                "problem": spec.problem.to_string(),
                "grid": spec.grid.name(),
            }),
            Target::Recorded(recorded) => json!({
                "consumption": self.normal_path(&recorded.spec.consumption),
                "reward": recorded.spec.reward.as_deref().map(|path| self.normal_path(path)),
                "cutoff": recorded.spec.cutoff,
                "unsolved": recorded.spec.unsolved,
                "test": recorded.test,
            }),
            Target::External(external) => json!({
                "instances": external.instances,
                "test": external.test,
            }),
        }
    }

    fn normal_command(&self, command: &Command) -> Value {
        let reward = match &command.reward {
            Reward::Exit(codes) => json!({"exit": codes}),
            Reward::Score { place, form, scale } => {
                let place = match place {
                    ScorePlace::Stdout => "stdout".to_owned(),
                    ScorePlace::Stderr => "stderr".to_owned(),
                    ScorePlace::File(path) => format!("file {}", written(path)),
                };
                let form = match form {
                    ScoreForm::Pattern(pattern) => format!("match {pattern}"),
                    ScoreForm::Json(pointer) => format!("json {pointer}"),
                    ScoreForm::Whole => "whole".to_owned(),
                };
                json!({"place": place, "form": form, "scale": scale.map(|scale| [scale.worst, scale.best])})
            }
        };
        let env: Map<String, Value> = command
            .env
            .iter()
            .map(|(name, value)| (name.clone(), written(value).into()))
            .collect();
        json!({
            "command": command.arguments.templates.iter().map(written).collect::<Vec<_>>(),
            "params": command.arguments.form.arguments,
            "instances": command.instances,
            "test": command.test,
            "reward": reward,
            "success": command.success,
            "env": env,
            "directory": self.normal_path(&command.directory),
            "stdin": match &command.stdin {
                Stdin::Empty => Value::Null,
                Stdin::File(path) => json!({"file": written(path)}),
                Stdin::Text(text) => json!({"text": written(text)}),
            },
            "output_limit": command.output_limit,
        })
    }

    fn normal_forest(&self, forest: &Forest) -> Value {
        json!({
            "data": self.normal_path(&forest.data),
            "predict": forest.predict,
            "train": forest.train,
            "task": forest.task.name(),
            "engine": forest.engine.name(),
            "isolation": forest.isolation.name(),
            "threads": forest.threads,
            "normalise": forest.normalise.name(),
            "drop": forest.drop,
            "levels": match &forest.levels {
                Levels::ByMean => json!("by-response"),
                Levels::Alphabetical(given) => {
                    let given: Map<String, Value> =
                        given.iter().map(|(column, levels)| (column.clone(), json!(levels))).collect();
                    json!(given)
                }
            },
        })
    }

    /// Paths count as the scenario writes them, wherever it was called from.
    fn normal_path(&self, path: &Path) -> String {
        self.path_as_written(path).display().to_string()
    }
}

fn normal_budget(budget: &Budget) -> Value {
    json!({
        "rounds": budget.rounds,
        "wall": budget.wall,
        "consumption": budget.consumption,
    })
}

/// Parameters with their values, and a digest of which combinations are arms.
fn normal_space(space: &Space) -> Value {
    let parameters: Vec<Value> = space
        .parameters()
        .iter()
        .map(|parameter| {
            let mut values: Vec<Value> = parameter
                .values()
                .iter()
                .map(|value| json!(value))
                .collect();
            if values.len() > 1000 {
                let all = blake3::hash(json!(values).to_string().as_bytes())
                    .to_hex()
                    .to_string();
                values.truncate(10);
                values.push(json!(all));
            }
            let scale = match parameter.scale() {
                Scale::Number => "number",
                Scale::Ordered => "ordered",
                Scale::Category => "category",
            };
            json!({"name": parameter.name(), "scale": scale, "values": values})
        })
        .collect();
    json!({
        "count": space.len(),
        "parameters": parameters,
        "which": space.digest(),
    })
}

/// A template as it is written.
fn written(template: &Template) -> String {
    let mut out = String::new();
    for piece in template.pieces() {
        let name = match piece {
            Piece::Text(text) => {
                out += &text.replace('{', "{{").replace('}', "}}");
                continue;
            }
            Piece::Parameter(name) => name,
            Piece::Instance => "instance",
            Piece::Seed => "seed",
            Piece::Limit => "limit",
            Piece::CpuLimit => "cpu_limit",
            Piece::Round => "round",
            Piece::Scratch => "scratch",
            Piece::Params => "params",
        };
        out.extend(["{", name, "}"]);
    }
    out
}

/// JSON with sorted keys, so that the hash does not depend on how a map keeps its order.
fn canonical(value: &Value) -> String {
    match value {
        Value::Object(map) => {
            let mut keys: Vec<&String> = map.keys().collect();
            keys.sort();
            let inner: Vec<String> = keys
                .iter()
                .map(|key| format!("{}:{}", json!(key), canonical(&map[*key])))
                .collect();
            format!("{{{}}}", inner.join(","))
        }
        Value::Array(items) => {
            let inner: Vec<String> = items.iter().map(canonical).collect();
            format!("[{}]", inner.join(","))
        }
        value => value.to_string(),
    }
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

    fn changed(from: &str, to: &str) -> Difference {
        assert!(BASE.contains(from));
        difference(
            &scenario(BASE).normal(),
            &scenario(&BASE.replace(from, to)).normal(),
        )
    }

    #[test]
    fn spelling_order_and_comments_do_not_count() {
        let same = "# the same\nseed: 3\nbudget: {wall: 60m, rounds: 1e1}
limits:\n  of: wall\n  grid: [2m, 1m]
arms:\n  grid:\n    a: {from: 1, to: 2, step: 1}\n    b: [x, y]
target: external\npolicy: similar-ts\nprice: {cost: x, penalty: 10 * x}\nslots: auto\n";
        assert_eq!(scenario(BASE).normal(), scenario(same).normal());
        assert_eq!(scenario(BASE).hash(), scenario(same).hash());
    }

    #[test]
    fn only_a_raised_budget_lets_a_run_go_on() {
        assert_eq!(changed("seed: 3", "seed: 3 # same"), Difference::None);
        assert!(matches!(
            changed("rounds: 10", "rounds: 11"),
            Difference::BudgetRaised(_)
        ));
        assert!(matches!(
            changed("rounds: 10, wall: 1h", "rounds: 10"),
            Difference::BudgetRaised(_)
        ));
        assert!(matches!(
            changed("rounds: 10", "rounds: 9"),
            Difference::Other(_)
        ));
        assert!(matches!(
            changed("wall: 1h", "wall: 1h, consumption: 1h"),
            Difference::Other(_)
        ));
        for (from, to) in [
            ("a: [1, 2]", "a: [2, 1]"),
            ("a: [1, 2], b: [x, y]", "b: [x, y], a: [1, 2]"),
            ("seed: 3", "seed: 4"),
            ("120s", "121s"),
            ("seed: 3", "seed: 3\npolicy: {rcucb: {alpha: 2}}"),
            ("seed: 3", "seed: 3\nprice: {penalty: par2}"),
            ("b: [x, y]}", "b: [x, y]}, except: {a: 1, b: x}"),
        ] {
            assert!(
                matches!(changed(from, to), Difference::Other(_)),
                "{from} -> {to}"
            );
        }
    }

    #[test]
    fn a_change_is_shown_with_its_key() {
        let Difference::Other(changes) = changed("seed: 3", "seed: 4\npolicy: uniform") else {
            panic!("no change")
        };
        let shown: Vec<String> = changes.iter().map(ToString::to_string).collect();
        assert_eq!(shown.last().unwrap(), "seed: 3 -> 4");
        assert!(shown[0].starts_with("policy: "), "{shown:?}");
    }
}
