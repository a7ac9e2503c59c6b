//! `start`: configurations to run first, or an earlier run to take over.

use super::Check;
use crate::scenario::Fault;
use crate::scenario::model::StartRun;
use crate::scenario::raw::{Node, Raw};

/// What `start` lists.
#[derive(Default)]
pub(super) struct Start<'n> {
    /// Configurations, or files of them.
    pub(super) items: Vec<&'n Node>,
    /// An earlier run.
    pub(super) run: Option<StartRun>,
}

impl<'n> Start<'n> {
    /// One item or a list of them. One may be `{run: FOLDER}`.
    pub(super) fn read(check: &mut Check<'_>, node: &'n Node) -> Self {
        let mut start = Self::default();
        for item in Self::configurations(check, node).items {
            let run = match &item.value {
                Raw::Map(entries) => match &entries[..] {
                    [only] if only.key == "run" => Some(only),
                    _ => None,
                },
                _ => None,
            };
            let Some(run) = run else {
                start.items.push(item);
                continue;
            };
            if start.run.is_some() {
                check.fault(item.at, Fault::SecondStartRun);
            } else if let Some(path) = check.text(&run.value, "run") {
                let at = run.value.at;
                start.run = Some(StartRun { path, at });
            }
        }
        start
    }

    /// The same, where `run` is the name of a parameter.
    pub(super) fn configurations(check: &mut Check<'_>, node: &'n Node) -> Self {
        let items = if let Raw::Map(_) = &node.value {
            vec![node]
        } else {
            let list = check.list(
                node,
                "start",
                "configurations like {decay: 0.8}, or {run: FOLDER}",
            );
            list.into_iter().flatten().collect()
        };
        Self { items, run: None }
    }
}
