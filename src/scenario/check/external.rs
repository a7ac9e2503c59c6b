//! `target: external`: your own program runs the pulls.

use super::{Check, Fields, instances};
use crate::scenario::keys;
use crate::scenario::model::External;
use crate::scenario::raw::{Node, Raw};

pub(super) fn read(check: &mut Check<'_>, node: &Node) -> Option<External> {
    let Raw::Map(_) = &node.value else {
        return Some(External::default());
    };
    let mut fields = Fields::of_target(check, node, &keys::EXTERNAL)?;
    let instances = fields
        .take(check, "instances")
        .map_or(Some(vec![]), |node| {
            instances::read(check, node, "instances")
        });
    let test = fields
        .take(check, "test")
        .map_or(Some(vec![]), |node| instances::read(check, node, "test"));
    fields.finish(check);
    Some(External {
        instances: instances?,
        test: test?,
    })
}
