//! The header of a CSV file, and what the options ask of its columns.

use std::collections::{HashMap, HashSet};

use super::read::{byte_of, check_quotes, line_at, records};
use super::{At, Dataset, DatasetError, ReadOptions};
use crate::nearest::nearest;

impl Dataset {
    /// The names in the header of a CSV that is in memory, whatever else may be wrong with it.
    ///
    /// For who has to tell a name from what follows it, as in `COLUMN=LOW,HIGH`, before there are options to read with.
    pub fn column_names(text: &[u8]) -> Vec<String> {
        let mut record = csv::ByteRecord::new();
        // Nothing is read from an empty text, and nothing else can go wrong.
        let _ = records(text).read_byte_record(&mut record);
        names(&record).collect()
    }
}

fn names(record: &csv::ByteRecord) -> impl Iterator<Item = String> {
    let names = record.iter();
    names.map(|name| String::from_utf8_lossy(name).trim().to_owned())
}

/// The first line, and which columns are used for what.
pub(super) struct Header {
    pub(super) names: Vec<String>,
    /// The line it stands on, which is not the first where blank ones come before.
    line: u64,
    pub(super) target: usize,
    /// Whether a column is neither predictor nor target.
    pub(super) dropped: Vec<bool>,
}

impl Header {
    pub(super) fn read(text: &[u8], options: &ReadOptions) -> Result<Self, DatasetError> {
        let mut names: Vec<String> = Vec::new();
        let mut first_of: HashMap<String, usize> = HashMap::new();
        let mut record = csv::ByteRecord::new();
        if !records(text).read_byte_record(&mut record).unwrap_or(false) {
            return Err(DatasetError::Empty);
        }
        check_quotes(text, byte_of(&record))?;
        let line = line_at(text, byte_of(&record));
        for (column, name) in self::names(&record).enumerate() {
            if let Some(first) = first_of.insert(name.clone(), column) {
                return Err(DatasetError::DuplicateHeader {
                    at: At::cell(line, column as u64 + 1),
                    name,
                    first: first as u64 + 1,
                });
            }
            names.push(name);
        }
        if let [name] = &names[..]
            && name != options.predict.trim()
            && let Some(separator) = other_separator(name)
        {
            return Err(DatasetError::Separator {
                at: At::line(line),
                name: name.clone(),
                separator,
            });
        }
        let find = |name: &str, purpose| {
            first_of.get(name.trim()).copied().ok_or_else(|| {
                let known = names.iter().map(String::as_str);
                DatasetError::NoSuchColumn {
                    at: At::line(line),
                    name: name.to_owned(),
                    purpose,
                    nearest: nearest(name, known).map(str::to_owned),
                }
            })
        };
        let target = find(&options.predict, "predict")?;
        let mut dropped = vec![false; names.len()];
        for name in &options.drop {
            dropped[find(name, "drop")?] = true;
        }
        let kept = |column: usize, purpose| {
            let at = At::cell(line, column as u64 + 1);
            let name = names[column].clone();
            if dropped[column] {
                Err(DatasetError::Dropped { at, name, purpose })
            } else {
                Ok(at)
            }
        };
        kept(target, "predict")?;
        for (name, order) in &options.levels {
            let column = find(name, "order the levels of")?;
            let at = kept(column, "have its levels in order")?;
            let mut seen = HashSet::new();
            if let Some(level) = order.iter().find(|&level| !seen.insert(level)) {
                return Err(DatasetError::RepeatedLevel {
                    at,
                    column: names[column].clone(),
                    level: level.clone(),
                });
            }
        }
        Ok(Self {
            names,
            line,
            target,
            dropped,
        })
    }

    pub(super) fn at(&self, column: usize) -> At {
        At::cell(self.line, column as u64 + 1)
    }
}

/// What stands between the names of a header that has no comma, if it looks like anything.
fn other_separator(header: &str) -> Option<&'static str> {
    let separators = [(';', "semicolons"), ('\t', "tabs")];
    let found = separators
        .into_iter()
        .find(|&(sign, _)| header.contains(sign));
    found.map(|(_, name)| name)
}
