//! Features of instances: what else is known of them, for the report.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::Fault;
use crate::regular_file;

/// More numbers than this are an error: they are stored with every run.
const MOST: usize = 1_000_000;

/// Numbers about instances, by name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Features {
    /// What the numbers are.
    pub names: Vec<String>,
    /// For every instance a number of each, none where it is missing.
    pub rows: BTreeMap<String, Vec<Option<f64>>>,
}

impl Features {
    /// Reads a CSV file: a heading, then the name of an instance and its numbers on each line.
    pub(super) fn read(path: &Path) -> Result<Self, Fault> {
        let bad = |line: u64, what: String| Fault::BadFeatures {
            path: path.to_owned(),
            line,
            what,
        };
        let file = regular_file::open(path).map_err(|error| Fault::Unreadable {
            path: path.to_owned(),
            reason: error.to_string(),
        })?;
        let mut table = csv::ReaderBuilder::new()
            .trim(csv::Trim::All)
            .from_reader(file);
        let malformed = |error: csv::Error| {
            let line = error.position().map_or(1, csv::Position::line);
            bad(line, error.to_string())
        };
        let heading = table.headers().map_err(malformed)?.clone();
        let names: Vec<String> = heading.iter().skip(1).map(str::to_owned).collect();
        if names.is_empty() {
            let what = "needs a column with instances and at least one with numbers";
            return Err(bad(1, what.into()));
        }
        let mut rows = BTreeMap::new();
        for record in table.records() {
            let record = record.map_err(malformed)?;
            let line = record.position().map_or(0, csv::Position::line);
            let instance = record.get(0).unwrap_or_default().to_owned();
            let cells = record.iter().skip(1).zip(&names);
            let numbers = cells.map(|(cell, name)| match cell {
                "" | "?" | "NA" => Ok(None),
                cell => match cell.parse::<f64>() {
                    Ok(number) if number.is_finite() => Ok(Some(number)),
                    Ok(_) => Ok(None),
                    Err(_) => Err(bad(
                        line,
                        format!("`{cell}` in column `{name}` is not a number"),
                    )),
                },
            });
            let numbers: Vec<Option<f64>> = numbers.collect::<Result<_, _>>()?;
            if (rows.len() + 1) * names.len() > MOST {
                return Err(bad(line, format!("more than {MOST} numbers")));
            }
            if rows.insert(instance.clone(), numbers).is_some() {
                return Err(bad(line, format!("`{instance}` is listed twice")));
            }
        }
        if rows.is_empty() {
            return Err(bad(1, "has no instance".into()));
        }
        Ok(Self { names, rows })
    }

    /// How many of these instances have no features.
    pub(super) fn missing<'a>(&self, instances: impl IntoIterator<Item = &'a String>) -> usize {
        let is_missing = |name: &&String| !self.rows.contains_key(*name);
        instances.into_iter().filter(is_missing).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Features, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("features.csv");
        std::fs::write(&path, text).unwrap();
        let shown = |fault: Fault| {
            fault
                .to_string()
                .replace(&path.display().to_string(), "FILE")
        };
        Features::read(&path).map_err(shown)
    }

    #[test]
    fn a_table_of_numbers_is_read_and_gaps_stay_gaps() {
        let read = read("instance, size, ratio\na.cnf, 10, 4.2\nb.cnf,,?\n").unwrap();
        assert_eq!(read.names, ["size", "ratio"]);
        assert_eq!(read.rows["a.cnf"], [Some(10.0), Some(4.2)]);
        assert_eq!(read.rows["b.cnf"], [None, None]);
        assert_eq!(read.missing(&["a.cnf".to_owned(), "c.cnf".to_owned()]), 1);
    }

    #[test]
    fn mistakes_say_where_they_are() {
        for (text, said) in [
            (
                "instance\na\n",
                "`FILE`, line 1: needs a column with instances and at least one with numbers",
            ),
            ("instance,x\n", "`FILE`, line 1: has no instance"),
            (
                "instance,x\na,big\n",
                "`FILE`, line 2: `big` in column `x` is not a number",
            ),
            (
                "instance,x\na,1\na,2\n",
                "`FILE`, line 3: `a` is listed twice",
            ),
        ] {
            assert_eq!(read(text).unwrap_err(), said);
        }
        assert!(read("instance,x\na,1,2\n").unwrap_err().contains("line 2"));
    }
}
