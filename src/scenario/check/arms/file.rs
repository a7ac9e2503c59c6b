//! Arms from a CSV file: the first line names the parameters, each further line is an arm.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use super::Read;
use crate::quantity::counted;
use crate::regular_file;
use crate::scenario::Fault;
use crate::scenario::check::Check;
use crate::scenario::model::resolve;
use crate::scenario::raw::Node;
use crate::space::{Space, SpaceError, Table};

pub(super) fn read(check: &mut Check<'_>, node: &Node, drop: Option<&Node>) -> Option<Read> {
    let path = resolve(check.folder, &check.text(node, "file")?);
    let drop = match drop {
        Some(drop) => check.texts(drop, "drop")?,
        None => vec![],
    };
    match table(&path, &drop) {
        Ok(space) => Some(Read {
            arguments: BTreeMap::new(),
            places: vec![node.at; space.parameters().len()],
            value_places: vec![node.at; space.parameters().len()],
            names: space
                .parameters()
                .iter()
                .map(|parameter| parameter.name().to_owned())
                .collect(),
            at: node.at,
            space: Some(space),
            open: None,
            unsampled_at: None,
            start_run: None,
        }),
        Err(fault) => {
            check.fault(node.at, fault);
            None
        }
    }
}

fn table(path: &Path, drop: &[String]) -> Result<Space, Fault> {
    let file = regular_file::open(path).map_err(|error| Fault::Unreadable {
        path: path.into(),
        reason: error.to_string(),
    })?;
    let mut reader = csv::ReaderBuilder::new()
        .trim(csv::Trim::All)
        .comment(Some(b'#'))
        .from_reader(std::io::BufReader::new(file));
    let problem = |line: u64, reason: String| Fault::Csv {
        path: path.into(),
        line,
        reason,
    };
    let failed = |error: csv::Error| {
        let line = error.position().map_or(1, csv::Position::line);
        let reason = match error.kind() {
            csv::ErrorKind::UnequalLengths {
                expected_len, len, ..
            } => {
                format!(
                    "{}, but the first line has {expected_len}",
                    counted(*len, "cell")
                )
            }
            csv::ErrorKind::Utf8 { .. } => "not UTF-8 text".into(),
            _ => error.to_string(),
        };
        problem(line, reason)
    };
    let header = reader.headers().map_err(failed)?.clone();
    let header: Vec<&str> = header
        .iter()
        .map(|name| name.trim_start_matches('\u{feff}'))
        .collect();
    for column in drop {
        if !header.iter().any(|name| matches(column, name)) {
            return Err(Fault::NoColumn {
                path: path.into(),
                column: column.clone(),
                known: header.iter().map(ToString::to_string).collect(),
            });
        }
    }
    let mut name_column = None;
    let mut columns: Vec<(usize, Arc<str>)> = vec![];
    for (column, name) in header.iter().enumerate() {
        if drop.iter().any(|dropped| matches(dropped, name)) {
            continue;
        }
        if name.is_empty() {
            return Err(problem(1, format!("column {} has no name", column + 1)));
        }
        if name.contains(['{', '}']) {
            return Err(problem(
                1,
                format!("column `{name}` has braces in its name"),
            ));
        }
        if columns.iter().any(|(_, other)| **other == **name) {
            return Err(problem(1, format!("column `{name}` is there twice")));
        }
        if *name == "name" {
            name_column = Some(column);
        } else {
            columns.push((column, (*name).into()));
        }
    }
    let (places, names): (Vec<usize>, Vec<Arc<str>>) = columns.into_iter().unzip();
    let mut arms = Table::new(names);
    let mut seen = HashSet::new();
    let mut record = csv::StringRecord::new();
    while reader.read_record(&mut record).map_err(failed)? {
        let line = record.position().map_or(0, csv::Position::line);
        let name: Option<Arc<str>> = name_column.map(|column| record[column].into());
        match &name {
            Some(name) if name.is_empty() => {
                return Err(problem(line, "an arm without a name".into()));
            }
            Some(name) if !seen.insert(Arc::clone(name)) => {
                return Err(problem(line, format!("a second arm called `{name}`")));
            }
            _ => {}
        }
        arms.begin(name).map_err(Fault::Space)?;
        for (place, column) in places.iter().enumerate() {
            // An empty cell means that this arm does not have the parameter.
            let cell = &record[*column];
            if !cell.is_empty() {
                arms.read(place, cell);
            }
        }
    }
    arms.finish().map_err(|error| match error {
        SpaceError::Empty => problem(1, "no arm below the first line".into()),
        error => Fault::Space(error),
    })
}

/// `dummy*` matches every column that begins with `dummy`.
fn matches(pattern: &str, name: &str) -> bool {
    pattern
        .strip_suffix('*')
        .map_or(pattern == name, |prefix| name.starts_with(prefix))
}
