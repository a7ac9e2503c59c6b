//! New rows for a fitted forest: its columns, found by name.

use std::collections::HashMap;

use super::header::FirstLine;
use super::read::{MISSING_LEVEL, line_at, number, present, rows_of, utf8};
use super::{At, DatasetError};

/// A predictor as a saved forest knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Predictor {
    /// Its name in the header.
    pub name: String,
    /// The levels of a factor in the order of their codes. `None` for numbers.
    pub levels: Option<Vec<String>>,
}

/// Rows to predict, as plain values.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct NewRows {
    /// One value for each predictor, row by row: the number, the index of the level, or NaN if it is missing.
    pub values: Vec<f64>,
    /// How many rows there are.
    pub rows: usize,
    /// Columns with unknown levels, and how many such cells they have. These count as missing.
    pub unknown: Vec<(String, usize)>,
}

impl NewRows {
    /// Reads a CSV in memory. Columns that are not predictors are ignored, and the order of columns does not matter.
    pub fn parse(text: &[u8], predictors: &[Predictor]) -> Result<Self, DatasetError> {
        let text = utf8(text)?;
        let only = predictors.first().map_or("", |first| first.name.as_str());
        let header = FirstLine::read(text, only)?;
        let places = predictors
            .iter()
            .map(|predictor| header.find(&predictor.name, "predict from"))
            .collect::<Result<Vec<usize>, _>>()?;
        let codes: Vec<Option<HashMap<&str, usize>>> = predictors
            .iter()
            .map(|predictor| {
                let levels = predictor.levels.as_ref()?.iter().enumerate();
                Some(levels.map(|(code, level)| (level.as_str(), code)).collect())
            })
            .collect();
        let mut values = Vec::new();
        let mut rows = 0;
        let mut unknown = vec![0; predictors.len()];
        rows_of(text, header.names.len(), |byte, record| {
            rows += 1;
            for (predictor, &place) in places.iter().enumerate() {
                let at = || At::cell(line_at(text, byte), place as u64 + 1);
                let cell = record.get(place).and_then(present);
                let value = if let Some(codes) = &codes[predictor] {
                    let level = cell.map(String::from_utf8_lossy);
                    let level = level.as_deref().unwrap_or(MISSING_LEVEL);
                    let code = codes.get(level).or_else(|| codes.get(level.trim()));
                    unknown[predictor] += usize::from(cell.is_some() && code.is_none());
                    code.or_else(|| codes.get(MISSING_LEVEL))
                        .map_or(f64::NAN, |&code| code as f64)
                } else {
                    match cell {
                        None => f64::NAN,
                        Some(cell) => finite(cell, at, &predictors[predictor].name)?,
                    }
                };
                values.push(value);
            }
            Ok(())
        })?;
        let names = predictors.iter().map(|predictor| predictor.name.clone());
        let unknown = names.zip(unknown).filter(|&(_, cells)| cells > 0);
        Ok(Self {
            values,
            rows,
            unknown: unknown.collect(),
        })
    }
}

fn finite(cell: &[u8], at: impl Fn() -> At, column: &str) -> Result<f64, DatasetError> {
    let (column, text) = (
        column.to_owned(),
        String::from_utf8_lossy(cell).into_owned(),
    );
    match number(cell) {
        None => Err(DatasetError::NotANumber {
            at: at(),
            column,
            text,
        }),
        Some(value) if value.is_infinite() => Err(DatasetError::Infinite {
            at: at(),
            column,
            text,
        }),
        Some(value) => Ok(value),
    }
}
