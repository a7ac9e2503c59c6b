//! The header of a CSV file, and what the options need from its columns.

use std::collections::{HashMap, HashSet};

use super::error::nearest;
use super::read::{byte_of, check_quotes, line_at, records};
use super::{At, Dataset, DatasetError, ReadOptions};

impl Dataset {
    /// The names in the header of a CSV in memory, whatever else may be wrong with it.
    ///
    /// Use it to separate a name from what follows it, as in `COLUMN=LOW,HIGH`, before there are options to read with.
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

/// The names of the columns, each of them once.
pub(super) struct FirstLine {
    pub(super) names: Vec<String>,
    places: HashMap<String, usize>,
    line: u64,
}

impl FirstLine {
    /// Reads it. A table whose only column is `wanted` is not mistaken for one with another separator.
    pub(super) fn read(text: &[u8], wanted: &str) -> Result<Self, DatasetError> {
        let mut names: Vec<String> = Vec::new();
        let mut places: HashMap<String, usize> = HashMap::new();
        let mut record = csv::ByteRecord::new();
        if !records(text).read_byte_record(&mut record).unwrap_or(false) {
            return Err(DatasetError::Empty);
        }
        check_quotes(text, byte_of(&record))?;
        let line = line_at(text, byte_of(&record));
        for (column, name) in self::names(&record).enumerate() {
            if let Some(first) = places.insert(name.clone(), column) {
                return Err(DatasetError::DuplicateHeader {
                    at: At::cell(line, column as u64 + 1),
                    name,
                    first: first as u64 + 1,
                });
            }
            names.push(name);
        }
        if let [name] = &names[..]
            && name != wanted
            && let Some(separator) = other_separator(name)
        {
            return Err(DatasetError::Separator {
                at: At::line(line),
                name: name.clone(),
                separator,
            });
        }
        Ok(Self {
            names,
            places,
            line,
        })
    }

    /// The index of a column that is needed for some purpose.
    pub(super) fn find(&self, name: &str, purpose: &'static str) -> Result<usize, DatasetError> {
        self.places.get(name.trim()).copied().ok_or_else(|| {
            let known = self.names.iter().map(String::as_str);
            DatasetError::NoSuchColumn {
                at: At::line(self.line),
                name: name.to_owned(),
                purpose,
                nearest: nearest(name, known).map(str::to_owned),
            }
        })
    }
}

/// The first line, and which columns are used for what.
pub(super) struct Header {
    pub(super) names: Vec<String>,
    /// Its line, which is not the first if blank lines come before.
    line: u64,
    pub(super) target: usize,
    /// Whether a column is neither predictor nor target.
    pub(super) dropped: Vec<bool>,
}

impl Header {
    pub(super) fn read(text: &[u8], options: &ReadOptions) -> Result<Self, DatasetError> {
        let first_line = FirstLine::read(text, options.predict.trim())?;
        let find = |name: &str, purpose| first_line.find(name, purpose);
        let target = find(&options.predict, "predict")?;
        let (names, line) = (&first_line.names, first_line.line);
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
            line,
            names: first_line.names,
            target,
            dropped,
        })
    }

    pub(super) fn at(&self, column: usize) -> At {
        At::cell(self.line, column as u64 + 1)
    }
}

/// The separator of a header without commas, if it seems to have one.
fn other_separator(header: &str) -> Option<&'static str> {
    let separators = [(';', "semicolons"), ('\t', "tabs")];
    let found = separators
        .into_iter()
        .find(|&(sign, _)| header.contains(sign));
    found.map(|(_, name)| name)
}
