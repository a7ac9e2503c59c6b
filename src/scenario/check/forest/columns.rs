//! Checks the columns that a forest's keys name, against each other and against the table.

use std::path::Path;

use super::Check;
use crate::scenario::Fault;
use crate::scenario::raw::{Node, Raw};
use crate::yaml::Span;

/// The names that were given and could be read, each with its position.
pub(super) struct Named<'n> {
    pub(super) predict: Option<(&'n Node, &'n str)>,
    pub(super) drop: Option<(&'n Node, &'n [String])>,
    /// One order per entry of the mapping.
    pub(super) levels: Option<(&'n Node, &'n [Order])>,
}

/// A column and its levels in order.
type Order = (String, Vec<String>);

impl Named<'_> {
    /// Finds names that contradict each other.
    pub(super) fn check(&self, check: &mut Check<'_>) {
        let target = self.predict.map(|(_, name)| name.trim());
        let dropped = self.drop.map_or(&[][..], |(_, names)| names);
        for (number, (at, name)) in self.drops().enumerate() {
            let column = name.trim().to_owned();
            if target == Some(name.trim()) {
                check.fault(at, Fault::DropsTarget { column });
            } else if is_among(&dropped[..number], name) {
                check.fault(at, Fault::DropTwice { column });
            }
        }
        let Some((Raw::Map(entries), orders)) =
            self.levels.map(|(node, orders)| (&node.value, orders))
        else {
            return;
        };
        for (entry, (name, levels)) in entries.iter().zip(orders) {
            let column = name.trim().to_owned();
            if is_among(dropped, name) {
                check.fault(entry.key_at, Fault::LevelsOfDropped { column });
            }
            for (number, (item, level)) in items(&entry.value).iter().zip(levels).enumerate() {
                if levels[..number].contains(level) {
                    let (column, level) = (name.trim().to_owned(), level.clone());
                    check.fault(item.at, Fault::LevelTwice { column, level });
                }
            }
        }
    }

    /// Finds names that the table does not have. `node` is where the table is named.
    pub(super) fn check_in(&self, check: &mut Check<'_>, data: &Path, node: &Node) {
        let columns = match read(data) {
            Ok(columns) => columns,
            Err(reason) => {
                let path = data.into();
                check.fault(node.at, Fault::Unreadable { path, reason });
                return;
            }
        };
        let mut known = |at: Span, name: &str| {
            if !is_among(&columns, name) {
                check.fault(
                    at,
                    Fault::NoColumn {
                        path: data.into(),
                        column: name.into(),
                        known: columns.clone(),
                    },
                );
            }
        };
        if let Some((node, name)) = self.predict {
            known(node.at, name);
        }
        for (at, name) in self.drops() {
            known(at, name);
        }
        if let Some(Raw::Map(entries)) = self.levels.map(|(node, _)| &node.value) {
            for entry in entries {
                known(entry.key_at, &entry.key);
            }
        }
    }

    fn drops(&self) -> impl Iterator<Item = (Span, &str)> {
        let all = self.drop.into_iter();
        all.flat_map(|(node, names)| items(node).iter().zip(names))
            .map(|(item, name)| (item.at, name.as_str()))
    }
}

/// Whether a name is in a list. Surrounding spaces do not count, as when reading a table.
pub(super) fn is_among(names: &[String], name: &str) -> bool {
    names.iter().any(|other| other.trim() == name.trim())
}

/// The nodes of one name or of a list of names.
fn items(node: &Node) -> &[Node] {
    match &node.value {
        Raw::List(items) => items,
        _ => std::slice::from_ref(node),
    }
}

/// The names in the first line of a table, or why it cannot be read.
pub(super) fn read(data: &Path) -> Result<Vec<String>, String> {
    let file = crate::regular_file::open(data).map_err(|error| error.to_string())?;
    let mut reader = csv::ReaderBuilder::new().from_reader(std::io::BufReader::new(file));
    let header = reader.byte_headers().map_err(|error| error.to_string())?;
    let name = |name: &[u8]| {
        String::from_utf8_lossy(name)
            .trim_start_matches('\u{feff}')
            .trim()
            .to_owned()
    };
    Ok(header.iter().map(name).collect())
}
