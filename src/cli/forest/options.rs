//! Options of `captime forest` that need parsing: orders of levels, limits, test rows.

use std::collections::BTreeMap;
use std::path::Path;

use crate::cli::Failure;
use crate::listed;
use crate::quantity;
use crate::regular_file;
use captime_forest::engine::{EngineError, EngineKind};
use captime_forest::{Allowance, Params, Resource, Split, SplitError};

/// Refuses options that an engine ignores, because they would seem to have an effect.
pub(super) fn refuse_ignored(engine: EngineKind, params: &Params) -> Result<(), Failure> {
    engine.keeps_to(params).map_err(ignored)
}

/// The option that an engine ignores, by its name on the command line.
pub(super) fn ignored(error: EngineError) -> Failure {
    match error {
        EngineError::Ignored { engine, setting } => {
            let option = format!("--{}", setting.name().replace('_', "-"));
            let (engine, instead) = (engine.name(), setting.instead());
            Failure::usage(format!("engine `{engine}` ignores `{option}`: {instead}")).hint(Some(
                format!("leave `{option}` out, or use `--engine builtin`"),
            ))
        }
        error => Failure::usage(&error).hint(error.hint()),
    }
}

/// Orders of levels, written like `Quality=Poor,Fair,Good`, by column.
pub(super) fn levels(
    orders: &[String],
    columns: &[String],
) -> Result<BTreeMap<String, Vec<String>>, Failure> {
    let mut levels = BTreeMap::new();
    for order in orders {
        let (column, names) = column_and_levels(order, columns).ok_or_else(|| {
            Failure::usage(format!("--levels `{order}` names no column"))
                .hint(Some("write it like Quality=Poor,Fair,Good"))
        })?;
        let column = column.trim();
        if levels
            .insert(column.to_owned(), listed::read(names))
            .is_some()
        {
            return Err(
                Failure::usage(format!("--levels gives the order of `{column}` twice"))
                    .hint(Some("give each column one order")),
            );
        }
    }
    Ok(levels)
}

/// Splits an order into column and levels. Names may contain `=` too, so the longest name that the table has is taken.
fn column_and_levels<'a>(order: &'a str, columns: &[String]) -> Option<(&'a str, &'a str)> {
    let parts = |(place, _)| (&order[..place], &order[place + 1..]);
    let is_known = |name: &str| columns.iter().any(|column| column == name.trim());
    let mut ways = order.match_indices('=').rev().map(parts);
    // If the table has none of them, report the first as missing.
    ways.find(|(name, _)| is_known(name))
        .or_else(|| order.split_once('='))
}

/// The limit that `--limit` and `--resource` give together.
pub(super) fn allowance(
    limit: Option<&str>,
    resource: Option<Resource>,
) -> Result<Option<Allowance>, Failure> {
    let Some(limit) = limit else {
        return match resource {
            None => Ok(None),
            Some(_) => Err(Failure::usage(
                "--resource says what a limit is on, but there is no --limit",
            )
            .hint(Some("add a limit, such as --limit 250ms"))),
        };
    };
    let resource = resource.unwrap_or(Resource::Wall);
    let amount = match resource {
        Resource::Work => limit
            .parse::<f64>()
            .ok()
            .filter(|amount| !amount.is_nan())
            .ok_or_else(|| {
                Failure::usage(format!("--limit `{limit}` is not a number"))
                    .hint(Some("work is a plain count: write it like 1e6"))
            })?,
        Resource::Wall | Resource::Cpu => quantity::parse_seconds(limit)
            .map_err(|error| Failure::usage(format!("--limit {error}")).hint(Some(error.hint())))?,
    };
    if amount == f64::INFINITY {
        return Err(Failure::usage(format!("--limit `{limit}` is too large"))
            .hint(Some("leave it out for no limit")));
    }
    if amount <= 0.0 {
        return Err(Failure::usage(format!("--limit `{limit}` is not above 0")));
    }
    Ok(Some(Allowance { resource, amount }))
}

/// A split by a file of test rows, one number per line. Errors name the line.
pub(super) fn split_by_file(path: &Path, rows: usize) -> Result<Split, Failure> {
    let file = path.display();
    let text = regular_file::open(path)
        .and_then(std::io::read_to_string)
        .map_err(|error| Failure::usage(format!("cannot read `{file}`: {error}")))?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let mut lines = Vec::new();
    let mut test_rows = Vec::new();
    for (line, number) in (1..).zip(text.lines().map(str::trim)) {
        if number.is_empty() {
            continue;
        }
        let row: u64 = number.parse().map_err(|_| {
            Failure::usage(format!(
                "{file}: line {line}: `{number}` is not a row number"
            ))
            .hint(Some("write one whole number a line"))
        })?;
        lines.push(line);
        test_rows.push(row);
    }
    Split::by_test_rows(rows, &test_rows).map_err(|error| {
        let at = match error {
            SplitError::NoSuchRow { row, .. } => line_of(row, 0, &test_rows, &lines),
            SplitError::Twice { row } => line_of(row, 1, &test_rows, &lines),
            _ => None,
        };
        let at = at
            .map(|line: u64| format!(" line {line}:"))
            .unwrap_or_default();
        Failure::usage(format!("{file}:{at} {error}")).hint(error.hint())
    })
}

/// The line of a row, after this many earlier lines with the same number.
fn line_of(row: u64, earlier: usize, rows: &[u64], lines: &[u64]) -> Option<u64> {
    let same = rows.iter().zip(lines).filter(|&(&other, _)| other == row);
    same.map(|(_, &line)| line).nth(earlier)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_name_that_the_table_has_is_the_one_with_an_order() {
        let columns = ["a", "a=b", "c=d=e"].map(str::to_owned);
        for (order, expected) in [
            ("a=x,y", Some(("a", "x,y"))),
            ("a=b=x,y", Some(("a=b", "x,y"))),
            ("a=c=x", Some(("a", "c=x"))),
            ("c=d=e=x=y", Some(("c=d=e", "x=y"))),
            ("z=x=y", Some(("z", "x=y"))),
            ("a", None),
        ] {
            assert_eq!(column_and_levels(order, &columns), expected, "{order}");
        }
    }
}
