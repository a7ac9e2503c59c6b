//! `budget`: when to stop.

use super::{Check, Fields};
use crate::resource::Resource;
use crate::scenario::keys;
use crate::scenario::model::Budget;

pub(super) fn read(
    check: &mut Check<'_>,
    fields: &mut Fields<'_>,
    of: Option<Resource>,
) -> Option<Budget> {
    let Some(node) = fields.take(check, "budget") else {
        return Some(Budget::default());
    };
    let mut fields = Fields::of(check, node, &keys::BUDGET)?;
    let rounds = fields.read_optional(check, "rounds");
    let wall = fields
        .take(check, "wall")
        .map(|node| check.seconds(node, "wall"));
    let consumption = fields
        .take(check, "consumption")
        .map(|node| check.amount(node, "consumption", of.unwrap_or(Resource::Wall)));
    fields.finish(check);
    Some(Budget {
        rounds: rounds?,
        wall: flat(wall)?,
        consumption: flat(consumption)?,
    })
}

/// A missing key is fine, a wrong value is not.
#[expect(
    clippy::option_option,
    reason = "not given; given and wrong; given and right"
)]
pub(super) fn flat<T>(field: Option<Option<T>>) -> Option<Option<T>> {
    match field {
        None => Some(None),
        Some(Some(value)) => Some(Some(value)),
        Some(None) => None,
    }
}
