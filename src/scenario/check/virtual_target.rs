//! `target: {synthetic: ...}`, `{recorded: ...}` and `{surrogate: ...}`: targets in virtual time.

use super::fields::flat;
use super::{Check, Fields, arms, instances, limits};
use crate::regular_file;
use crate::round::LimitGrid;
use crate::scenario::Fault;
use crate::scenario::keys;
use crate::scenario::model::{LimitSource, RecordedTarget, SurrogateTarget, resolve};
use crate::scenario::raw::{Node, Raw};
use crate::simulated::synthetic::{Grid, SyntheticProblem};
use crate::simulated::{TargetError, recorded, synthetic};
use crate::space::{Row, Space};
use crate::yaml::Span;

pub(super) fn synthetic(check: &mut Check<'_>, node: &Node) -> Option<synthetic::Spec> {
    let mut fields = Fields::of_target(check, node, &keys::SYNTHETIC)?;
    let problem = fields
        .need(check, "problem", "problem: poscorr")
        .and_then(|node| {
            let name = check.text(node, "problem")?;
            check.target(node, SyntheticProblem::parse(&name))
        });
    let grid = fields
        .take(check, "grid")
        .map_or(Some(Grid::default()), |node| {
            let name = check.text(node, "grid")?;
            check.target(node, Grid::parse(&name))
        });
    fields.finish(check);
    Some(synthetic::Spec {
        problem: problem?,
        grid: grid?,
    })
}

pub(super) fn recorded(check: &mut Check<'_>, node: &Node) -> Option<RecordedTarget> {
    let mut fields = Fields::of_target(check, node, &keys::RECORDED)?;
    let runs = runs(check, &mut fields);
    fields.finish(check);
    let (spec, test) = runs?;
    Some(RecordedTarget { spec, test })
}

pub(super) fn surrogate(check: &mut Check<'_>, node: &Node) -> Option<SurrogateTarget> {
    let mut fields = Fields::of_target(check, node, &keys::SURROGATE)?;
    let read = runs(check, &mut fields);
    let arms = fields
        .need(check, "arms", "arms: configurations.csv")
        .and_then(|node| file(check, node, "arms"));
    let seed = fields.read(check, "seed");
    fields.finish(check);
    let (runs, test) = read?;
    let (arms, seed) = (arms?, seed?);
    let spec = recorded::SurrogateSpec { runs, arms, seed };
    Some(SurrogateTarget { spec, test })
}

/// Where recorded runs are, and the instances to keep back.
fn runs(check: &mut Check<'_>, fields: &mut Fields<'_>) -> Option<(recorded::Spec, Vec<String>)> {
    let consumption = fields
        .need(
            check,
            "consumption",
            "consumption: runtimes.csv, cutoff: 300s",
        )
        .and_then(|node| file(check, node, "consumption"));
    let reward = fields
        .take(check, "reward")
        .map(|node| file(check, node, "reward"));
    let cutoff = fields
        .take(check, "cutoff")
        .map(|node| amount(check, node, "cutoff"));
    let unsolved = fields
        .take(check, "unsolved")
        .map(|node| amount(check, node, "unsolved"));
    let test = fields
        .take(check, "test")
        .map_or(Some(vec![]), |node| instances::read(check, node, "test"));
    let spec = recorded::Spec {
        consumption: consumption?,
        reward: flat(reward)?,
        cutoff: flat(cutoff)?,
        unsolved: flat(unsolved)?,
    };
    Some((spec, test?))
}

fn file(check: &mut Check<'_>, node: &Node, key: &str) -> Option<std::path::PathBuf> {
    let path = resolve(check.folder, &check.text(node, key)?);
    match regular_file::open(&path) {
        Ok(_) => Some(path),
        Err(error) => {
            let reason = error.to_string();
            check.fault(node.at, Fault::Unreadable { path, reason });
            None
        }
    }
}

/// A duration, or a plain number in the unit of the file.
fn amount(check: &mut Check<'_>, node: &Node, key: &str) -> Option<f64> {
    match node.value {
        Raw::Integer(_) | Raw::Number(_) => check.number(node, key),
        _ => check.seconds(node, key),
    }
}

/// The arms and limits of a synthetic problem, unless the scenario gives others.
pub(super) fn synthetic_parts(spec: &synthetic::Spec) -> Option<(Space, LimitGrid)> {
    let space = Space::numbered(spec.problem.arms()).ok()?;
    Some((space, spec.grid.limits(spec.problem)))
}

/// The arms of recorded runs: those that the scenario lists, or else the names in the file.
pub(super) fn recorded_arms(
    check: &mut Check<'_>,
    target: &RecordedTarget,
    at: Span,
    arms: Option<&arms::Read>,
    limits: Option<&limits::Read>,
) -> Option<Space> {
    let runs = match recorded::Recorded::open(&target.spec) {
        Ok(runs) => runs,
        Err(error) => {
            check.fault(at, Fault::Target(error));
            return None;
        }
    };
    check_runs(check, &runs, at, &target.test, limits);
    let names = runs.arm_names();
    let Some(arms) = arms else {
        let rows: Vec<Row> = names
            .iter()
            .map(|name| Row {
                name: Some(name.as_str().into()),
                values: vec![],
            })
            .collect();
        return Space::table(vec![], &rows)
            .map_err(|error| check.fault(at, Fault::Space(error)))
            .ok();
    };
    let space = arms.space.as_ref()?;
    if space.len() != names.len() {
        let (given, recorded) = (space.len(), names.len());
        check.fault(arms.at, Fault::ArmCount { given, recorded });
        return None;
    }
    Some(space.clone())
}

/// Limits and instances that a surrogate does not have, and files that do not fit its space.
pub(super) fn check_surrogate(
    check: &mut Check<'_>,
    target: &SurrogateTarget,
    at: Span,
    arms: Option<&arms::Read>,
    limits: Option<&limits::Read>,
) {
    let Some(space) = arms.and_then(|arms| arms.space.as_ref()) else {
        return;
    };
    match recorded::Surrogate::open(&target.spec, space, |_| true) {
        Ok(Some(surrogate)) => {
            check_runs(check, surrogate.recorded(), at, &target.test, limits);
        }
        Ok(None) => {}
        Err(error) => check.fault(at, Fault::Target(error)),
    }
}

/// Limits beyond what was measured, and instances to keep back that there are not.
fn check_runs(
    check: &mut Check<'_>,
    runs: &recorded::Recorded,
    at: Span,
    test: &[String],
    limits: Option<&limits::Read>,
) {
    if let Some(limits) = limits {
        let grid = limits.from.as_ref().and_then(LimitSource::grid);
        if let Some(Err(error)) = grid.map(|grid| runs.check_limits(&grid)) {
            check.fault(limits.at, Fault::Target(error));
        }
    }
    for name in test {
        if !runs.instance_names().contains(name) {
            let known = runs.instance_names().to_vec();
            check.fault(
                at,
                Fault::UnknownInstance {
                    name: name.clone(),
                    known,
                },
            );
        }
    }
}

impl Check<'_> {
    fn target<T>(&mut self, node: &Node, read: Result<T, TargetError>) -> Option<T> {
        read.map_err(|error| self.fault(node.at, Fault::Target(error)))
            .ok()
    }
}
