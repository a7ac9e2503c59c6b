//! `target: {synthetic: ...}` and `{recorded: ...}`: targets in virtual time.

use super::budget::flat;
use super::{Check, Fields, arms, instances, limits};
use crate::round::LimitGrid;
use crate::scenario::Fault;
use crate::scenario::model::{LimitSource, Recorded, resolve};
use crate::scenario::raw::{Node, Raw};
use crate::scenario::source::Span;
use crate::space::{Row, Space};
use crate::target::synthetic::{Grid, SyntheticProblem};
use crate::target::{TargetError, recorded, synthetic};

pub(super) fn synthetic(check: &mut Check<'_>, node: &Node) -> Option<synthetic::Spec> {
    let mut outer = Fields::new(check, node, "target", &["synthetic"])?;
    let inner = outer.take(check, "synthetic");
    outer.finish(check);
    let mut fields = Fields::new(check, inner?, "synthetic", &["problem", "grid"])?;
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

pub(super) fn recorded(check: &mut Check<'_>, node: &Node) -> Option<Recorded> {
    let mut outer = Fields::new(check, node, "target", &["recorded"])?;
    let inner = outer.take(check, "recorded");
    outer.finish(check);
    let keys = &["consumption", "reward", "cutoff", "unsolved", "test"];
    let mut fields = Fields::new(check, inner?, "recorded", keys)?;
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
    fields.finish(check);
    let spec = recorded::Spec {
        consumption: consumption?,
        reward: flat(reward)?,
        cutoff: flat(cutoff)?,
        unsolved: flat(unsolved)?,
    };
    Some(Recorded { spec, test: test? })
}

fn file(check: &mut Check<'_>, node: &Node, key: &str) -> Option<std::path::PathBuf> {
    let path = resolve(check.folder, &check.text(node, key)?);
    let reason = match std::fs::File::open(&path).and_then(|file| file.metadata()) {
        Ok(meta) if meta.is_file() => return Some(path),
        Ok(_) => "it is not a file".into(),
        Err(error) => error.to_string(),
    };
    check.fault(node.at, Fault::Unreadable { path, reason });
    None
}

/// A duration, or a plain number in the unit of the file.
fn amount(check: &mut Check<'_>, node: &Node, key: &str) -> Option<f64> {
    match node.value {
        Raw::Integer(_) | Raw::Number(_) => check.number(node, key),
        _ => check.seconds(node, key),
    }
}

/// The arms and limits of a synthetic problem, where the scenario does not say otherwise.
pub(super) fn synthetic_parts(spec: &synthetic::Spec) -> Option<(Space, LimitGrid)> {
    let space = Space::numbered(spec.problem.arms()).ok()?;
    Some((space, spec.grid.limits(spec.problem)))
}

/// The arms of recorded runs: as listed, if the scenario lists them, else what the file calls them.
pub(super) fn recorded_arms(
    check: &mut Check<'_>,
    target: &Recorded,
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
    if let Some(limits) = limits {
        let grid = match &limits.from {
            Some(LimitSource::Grid(grid)) => Some(grid.clone()),
            Some(LimitSource::Max(max)) => LimitGrid::new([max.get()]).ok(),
            Some(LimitSource::Calibrate(_)) | None => None,
        };
        if let Some(Err(error)) = grid.map(|grid| runs.check_limits(&grid)) {
            check.fault(limits.at, Fault::Target(error));
        }
    }
    for name in &target.test {
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

impl Check<'_> {
    fn target<T>(&mut self, node: &Node, read: Result<T, TargetError>) -> Option<T> {
        read.map_err(|error| self.fault(node.at, Fault::Target(error)))
            .ok()
    }
}
