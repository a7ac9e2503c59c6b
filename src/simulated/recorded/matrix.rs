//! A matrix from CSV: one row per instance, its name first, and one column per arm.

use std::path::Path;

use csv::{ReaderBuilder, StringRecord, Trim};

use super::cell::{RecordedRun, WORDS, ended_as, within};
use super::{Recorded, Spec};
use crate::simulated::TargetError;

/// A table of text with its positions in the file.
struct Table<'a> {
    path: &'a Path,
    /// Names of the columns after the first, if there is a header.
    header: Option<Vec<String>>,
    rows: Vec<StringRecord>,
}

/// Reads the matrix of consumptions and, if there is one, that of rewards.
pub(super) fn read(spec: &Spec) -> Result<Recorded, TargetError> {
    let cutoff = spec.cutoff.ok_or_else(|| TargetError::NoCutoff {
        path: spec.consumption.clone(),
    })?;
    let table = Table::read(&spec.consumption)?;
    let arms = table.columns() - 1;
    let mut cells = Vec::with_capacity(table.rows.len() * arms);
    for row in &table.rows {
        for column in 1..=arms {
            let run = run(&row[column], cutoff, spec.unsolved);
            cells.push(vec![
                run.map_err(|expected| table.bad_cell(row, column, expected))?,
            ]);
        }
    }
    if let Some(path) = &spec.reward {
        add_rewards(&mut cells, &table, path)?;
    }
    let names = table
        .header
        .unwrap_or_else(|| (1..=arms).map(|arm| arm.to_string()).collect());
    let instances = table.rows.iter().map(|row| row[0].to_owned()).collect();
    Ok(Recorded::new(names, instances, &cells, cutoff))
}

impl<'a> Table<'a> {
    fn read(path: &'a Path) -> Result<Self, TargetError> {
        let file = crate::regular_file::open(path).map_err(|error| TargetError::Unreadable {
            path: path.into(),
            reason: error.to_string(),
        })?;
        let mut reader = ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .trim(Trim::All)
            .from_reader(file);
        let mut rows = vec![];
        for row in reader.records() {
            let row: StringRecord = row.map_err(|error| match error.position() {
                Some(position) => TargetError::BadLine {
                    path: path.into(),
                    line: position.line(),
                    reason: "it is not text in UTF-8".into(),
                },
                None => TargetError::Unreadable {
                    path: path.into(),
                    reason: error.to_string(),
                },
            })?;
            rows.push(row);
        }
        let has_header = rows.first().is_some_and(is_header);
        let header = has_header.then(|| rows.remove(0).iter().skip(1).map(str::to_owned).collect());
        let table = Self { path, header, rows };
        table.check()?;
        Ok(table)
    }

    /// How many columns there are, including that of the names.
    fn columns(&self) -> usize {
        match &self.header {
            Some(names) => names.len() + 1,
            None => self.rows.first().map_or(0, StringRecord::len),
        }
    }

    fn check(&self) -> Result<(), TargetError> {
        let columns = self.columns();
        if self.rows.is_empty() || columns < 2 {
            return Err(TargetError::NoRuns {
                path: self.path.into(),
            });
        }
        match self.rows.iter().find(|row| row.len() != columns) {
            None => Ok(()),
            Some(row) => Err(TargetError::RowLength {
                path: self.path.into(),
                line: line(row),
                found: row.len(),
                expected: columns,
            }),
        }
    }

    fn bad_cell(&self, row: &StringRecord, column: usize, expected: &'static str) -> TargetError {
        TargetError::BadCell {
            path: self.path.into(),
            line: line(row),
            column: column + 1,
            value: row[column].to_owned(),
            expected,
        }
    }
}

fn line(row: &StringRecord) -> u64 {
    row.position().map_or(0, csv::Position::line)
}

/// Whether a first row is a header: it begins with `instance`, or one of its cells is not a measurement.
fn is_header(row: &StringRecord) -> bool {
    let is_measurement = |text: &str| {
        let is_word = WORDS.iter().any(|word| word.eq_ignore_ascii_case(text));
        text.parse::<f64>().is_ok() || is_word || text.is_empty() || text == "?"
    };
    let names_instances = row
        .get(0)
        .is_some_and(|first| first.to_ascii_lowercase().starts_with("instance"));
    names_instances || !row.iter().skip(1).all(is_measurement)
}

/// Reads one measurement, or returns what was expected.
fn run(text: &str, cutoff: f64, unsolved: Option<f64>) -> Result<RecordedRun, &'static str> {
    match text.parse::<f64>() {
        Ok(value) if Some(value) == unsolved => Ok(RecordedRun::Unsolved),
        Ok(value) if value >= 0.0 => Ok(within(value, cutoff)),
        Ok(_) => Err("a number from 0 up"),
        Err(_) if text.eq_ignore_ascii_case("ok") => Err("a number from 0 up"),
        Err(_) => {
            ended_as(text, f64::INFINITY, cutoff).ok_or("a number from 0 up, `timeout` or `failed`")
        }
    }
}

/// Sets the rewards of the runs that ended. The others have none.
fn add_rewards(
    cells: &mut [Vec<RecordedRun>],
    consumptions: &Table,
    path: &Path,
) -> Result<(), TargetError> {
    let rewards = Table::read(path)?;
    let (rows, columns) = (consumptions.rows.len(), consumptions.columns());
    if (rewards.rows.len(), rewards.columns()) != (rows, columns) {
        return Err(TargetError::RewardShape {
            path: path.into(),
            found: (rewards.rows.len(), rewards.columns() - 1),
            expected: (rows, columns - 1),
        });
    }
    for (place, (row, beside)) in rewards.rows.iter().zip(&consumptions.rows).enumerate() {
        if row[0] != beside[0] {
            return Err(TargetError::RewardRow {
                path: path.into(),
                line: line(row),
                found: row[0].to_owned(),
                expected: beside[0].to_owned(),
            });
        }
        for column in 1..columns {
            let run = &mut cells[place * (columns - 1) + column - 1][0];
            if let RecordedRun::Ended { reward, .. } = run {
                *reward = match row[column].parse::<f64>() {
                    Ok(value) if (0.0..=1.0).contains(&value) => value,
                    _ => return Err(rewards.bad_cell(row, column, "a number from 0 to 1")),
                };
            }
        }
    }
    Ok(())
}
