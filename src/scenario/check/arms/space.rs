//! Arms from an open space, given in the scenario or in a file of captime or another tool.

use std::path::Path;
use std::sync::Arc;

use super::Read;
use crate::scenario::check::Check;
use crate::scenario::model::resolve;
use crate::scenario::raw::{self, Raw};
use crate::scenario::{Caution, Fault, ParamsForm};
use crate::space::format::{self, Format, FormatError, SpaceFile, SpaceMistake, line_column};
use crate::space::open::Point;
use crate::space::{MOST_ARMS, OpenSpace, Space, Value};
use crate::yaml::Span;

/// The keys allowed beside `space`.
pub(super) struct With<'n> {
    pub(super) forbid: Option<&'n raw::Node>,
    pub(super) start: &'n [&'n raw::Node],
    pub(super) sample: Option<&'n raw::Node>,
    pub(super) seed: u64,
}

pub(super) fn read(check: &mut Check<'_>, node: &raw::Node, with: With<'_>) -> Option<Read> {
    let count = match with.sample {
        Some(node) => {
            Some(check.whole(node, "sample", 1, MOST_ARMS.cast_signed() as i64, "")? as usize)
        }
        None => None,
    };
    let (file, places) = if let Raw::Text(path) = &node.value {
        let file = from_file(check, node, path, with.forbid)?;
        let places = vec![node.at; file.space.parameters().len()];
        (file, places)
    } else {
        let read = format::read_nodes(check.text, node, with.forbid);
        let file = read
            .map_err(|mistakes| {
                for SpaceMistake { at, error } in mistakes {
                    check.fault(Span::new(at.start, at.end), Fault::OpenSpace(error));
                }
            })
            .ok()?;
        let places = match &node.value {
            Raw::Map(entries) => entries.iter().map(|entry| entry.key_at).collect(),
            _ => vec![],
        };
        (file, places)
    };
    let space = Arc::new(file.space);
    for note in file.notes {
        check.caution(node.at, Caution::SpaceNote(note.text));
    }
    let start = start(check, with.start, &space)?;
    let argument = |known: &crate::space::OpenParameter| {
        let arguments = known.argument.clone()?;
        Some((known.name.to_string(), ParamsForm { arguments }))
    };
    let names = space
        .parameters()
        .iter()
        .map(|known| known.name.to_string());
    Some(Read {
        names: names.collect(),
        at: node.at,
        value_places: places.clone(),
        places,
        arguments: space.parameters().iter().filter_map(argument).collect(),
        space: match count {
            None => Some(Space::open(Arc::clone(&space), start)),
            Some(count) => sampled(check, node, &space, (&start, count, with.seed)),
        },
        open: Some(space),
        unsampled_at: count.is_none().then_some(node.at),
        start_run: None,
    })
}

fn sampled(
    check: &mut Check<'_>,
    node: &raw::Node,
    space: &OpenSpace,
    (start, count, seed): (&[Point], usize, u64),
) -> Option<Space> {
    let points = space
        .sample(start, count, seed)
        .map_err(|error| check.fault(node.at, Fault::Sample(error)))
        .ok()?;
    if points.len() < count {
        let (wanted, found) = (count, points.len());
        check.caution(node.at, Caution::FewerSampled { wanted, found });
    }
    space
        .list(&points)
        .map_err(|error| check.fault(node.at, Fault::Space(error)))
        .ok()
}

fn from_file(
    check: &mut Check<'_>,
    node: &raw::Node,
    path: &str,
    forbid: Option<&raw::Node>,
) -> Option<SpaceFile> {
    let path = resolve(check.folder, path);
    let (text, encoding) = match format::load(&path) {
        Ok(loaded) => loaded,
        Err(reason) => {
            check.fault(node.at, Fault::Unreadable { path, reason });
            return None;
        }
    };
    let format = Format::detect(&path, &text);
    let mut file = match format::read(&text, format) {
        Ok(file) => file,
        Err(mistakes) => {
            for SpaceMistake { at, error } in mistakes {
                let (line, column) = line_column(&text, at.start);
                let path = path.clone();
                check.fault(
                    node.at,
                    Fault::InSpaceFile {
                        path,
                        line,
                        column,
                        error,
                    },
                );
            }
            return None;
        }
    };
    file.notes.splice(0..0, encoding);
    let Some(forbid) = forbid else {
        return Some(file);
    };
    // The scenario adds constraints to those of the file, so the space is built again with both.
    let more = format::read_rules(check.text, forbid, file.space.parameters());
    let more = more.map_err(|mistakes| {
        for SpaceMistake { at, error } in mistakes {
            check.fault(Span::new(at.start, at.end), Fault::OpenSpace(error));
        }
    });
    let rules = file.space.forbid().iter().cloned().chain(more.ok()?);
    let space = OpenSpace::new(file.space.parameters().to_vec(), rules.collect());
    let space = space.map_err(|flaws| {
        for flaw in flaws {
            check.fault(forbid.at, Fault::OpenSpace(FormatError::Space(flaw.error)));
        }
    });
    Some(SpaceFile {
        space: space.ok()?,
        ..file
    })
}

/// Configurations to run first: parameters with their values, or a CSV file of them.
fn start(check: &mut Check<'_>, items: &[&raw::Node], space: &OpenSpace) -> Option<Vec<Point>> {
    let mut points = vec![];
    let mut is_fine = true;
    for item in items {
        let at = item.at;
        let values = match format::start_values(item) {
            Ok(values) => values,
            Err(SpaceMistake { at, error }) => {
                check.fault(Span::new(at.start, at.end), Fault::OpenSpace(error));
                is_fine = false;
                continue;
            }
        };
        let rows = match &values[..] {
            [(key, Value::Text(path))]
                if key == "file"
                    && space
                        .parameters()
                        .iter()
                        .all(|known| &*known.name != "file") =>
            {
                match start_file(&resolve(check.folder, path)) {
                    Ok(rows) => rows,
                    Err(fault) => {
                        check.fault(at, fault);
                        is_fine = false;
                        continue;
                    }
                }
            }
            _ => vec![values],
        };
        for row in rows {
            match space.point(row.iter().map(|(name, value)| (name.as_str(), value))) {
                Ok(point) => points.push(point),
                Err(error) => {
                    check.fault(at, Fault::Start(error));
                    is_fine = false;
                }
            }
        }
    }
    is_fine.then_some(points)
}

type Values = Vec<(String, Value)>;

/// Rows of a CSV file whose first line names the parameters; empty cells and `NA` are left out.
fn start_file(path: &Path) -> Result<Vec<Values>, Fault> {
    let problem = |error: csv::Error| Fault::Csv {
        path: path.into(),
        line: error.position().map_or(1, csv::Position::line),
        reason: error.to_string(),
    };
    let mut reader = csv::ReaderBuilder::new()
        .trim(csv::Trim::All)
        .comment(Some(b'#'))
        .from_path(path)
        .map_err(|error| Fault::Unreadable {
            path: path.into(),
            reason: error.to_string(),
        })?;
    let header = reader.headers().map_err(problem)?.clone();
    let mut rows = vec![];
    for record in reader.records() {
        let record = record.map_err(problem)?;
        let cells = header.iter().zip(&record);
        let given = cells.filter(|(_, cell)| !cell.is_empty() && *cell != "NA");
        rows.push(
            given
                .map(|(name, cell)| (name.to_owned(), Value::read(cell)))
                .collect(),
        );
    }
    Ok(rows)
}
