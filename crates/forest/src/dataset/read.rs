//! Reads real-world CSV: quotes, a byte order mark, CRLF, `NA` or empty cells, blanks in headers and levels.
//!
//! The text is read twice: first to find out which columns are numbers, then to code them. So a column that turns out
//! to be text in its last row keeps the spelling of all its levels, and no cell is stored as its own string.

use std::collections::{BTreeMap, HashMap};
use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use super::error::nearest;
use super::header::Header;
use super::{At, Column, Dataset, DatasetError, LevelOrder, Target, Task};

/// How to read a table.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ReadOptions {
    /// The column to predict.
    pub predict: String,
    /// Columns to leave out, such as ids.
    pub drop: Vec<String>,
    /// The order of the levels of factors, by column. Every level must be listed. Takes precedence over `order`.
    pub levels: BTreeMap<String, Vec<String>>,
    /// The order of all other factors.
    pub order: LevelOrder,
    /// Whether the target is a number or a class; inferred from the column by default.
    pub task: Option<Task>,
}

impl ReadOptions {
    /// Options that only name the column to predict.
    pub fn predict(column: impl Into<String>) -> Self {
        Self {
            predict: column.into(),
            ..Self::default()
        }
    }
}

/// The level of factor cells that are missing.
pub(super) const MISSING_LEVEL: &str = "NA";
/// A whole-number target with at most this many values, and enough rows for each, is treated as classes.
const FEW_CLASSES: usize = 10;
const ROWS_PER_CLASS: usize = 5;

impl Dataset {
    /// Reads a CSV file.
    pub fn read(path: impl AsRef<Path>, options: &ReadOptions) -> Result<Self, DatasetError> {
        let unreadable = |source| DatasetError::Unreadable {
            path: path.as_ref().to_owned(),
            source,
        };
        let mut text = Vec::new();
        open(path.as_ref())
            .and_then(|mut file| file.read_to_end(&mut text))
            .map_err(unreadable)?;
        Self::parse(&text, options)
    }

    /// Reads a CSV in memory. Bytes that are not UTF-8 are replaced, not refused.
    pub fn parse(text: &[u8], options: &ReadOptions) -> Result<Self, DatasetError> {
        let text = utf8(text)?;
        let header = Header::read(text, options)?;
        let is_text = text_columns(text, &header)?;
        let cells = Cells::read(text, &header, &is_text)?;
        cells.into_dataset(text, &header, options)
    }
}

/// Opens a regular file: a pipe would hang, a device would never end.
fn open(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(nix::libc::O_NONBLOCK)
        .open(path)?;
    let kind = file.metadata()?.file_type();
    if kind.is_file() || kind.is_dir() {
        // Reading a folder fails by itself.
        return Ok(file);
    }
    let what = "not a regular file";
    Err(io::Error::new(io::ErrorKind::InvalidInput, what))
}

/// The text without its byte-order mark.
pub(super) fn utf8(text: &[u8]) -> Result<&[u8], DatasetError> {
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    if text.starts_with(b"\xff\xfe") || text.starts_with(b"\xfe\xff") {
        return Err(DatasetError::Utf16);
    }
    if text.starts_with(b"\x1f\x8b") {
        return Err(DatasetError::Gzip);
    }
    Ok(text)
}

pub(super) fn records(text: &[u8]) -> csv::Reader<&[u8]> {
    csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .from_reader(text)
}

/// The line on which a record starts, computed from its position in the text.
///
/// The reader's own count is wrong after blank lines, which it skips, and after CRLF. This is only used for errors.
pub(super) fn line_at(text: &[u8], byte: u64) -> u64 {
    let start = usize::try_from(byte).unwrap_or(usize::MAX).min(text.len());
    let is_end = |byte: &u8| matches!(byte, b'\r' | b'\n');
    let skipped = text[start..].iter().take_while(|byte| is_end(byte)).count();
    let before = &text[..start + skipped];
    let ends = before.iter().enumerate().filter(|&(place, &byte)| {
        byte == b'\n' || (byte == b'\r' && text.get(place + 1) != Some(&b'\n'))
    });
    ends.count() as u64 + 1
}

pub(super) fn byte_of(record: &csv::ByteRecord) -> u64 {
    record.position().map_or(0, csv::Position::byte)
}

/// Refuses a record in which a quote is never closed.
pub(super) fn check_quotes(text: &[u8], record: u64) -> Result<(), DatasetError> {
    match unclosed(text, record) {
        Some((quote, field)) => Err(DatasetError::UnclosedQuote {
            at: At::cell(line_at(text, quote), field + 1),
        }),
        None => Ok(()),
    }
}

/// Passes every row below the header to `each` with its position in the text, after checking its number of fields.
pub(super) fn rows_of(
    text: &[u8],
    expected: usize,
    mut each: impl FnMut(u64, &csv::ByteRecord) -> Result<(), DatasetError>,
) -> Result<(), DatasetError> {
    let mut reader = records(text);
    let mut record = csv::ByteRecord::new();
    let mut is_header = true;
    let mut last = 0;
    // Bytes in memory, any number of fields, no UTF-8 needed: the reader cannot fail.
    while reader.read_byte_record(&mut record).unwrap_or(false) {
        if std::mem::take(&mut is_header) {
            continue;
        }
        last = byte_of(&record);
        let found = record.len();
        if found != expected {
            check_quotes(text, last)?;
            let column = found.min(expected) as u64 + 1;
            return Err(DatasetError::Ragged {
                at: At::cell(line_at(text, last), column),
                found,
                expected,
            });
        }
        each(last, &record)?;
    }
    check_quotes(text, last)
}

/// The text of a cell, or `None` if it is missing.
pub(super) fn present(cell: &[u8]) -> Option<&[u8]> {
    let text = std::str::from_utf8(cell).map_or(cell.trim_ascii(), |text| text.trim().as_bytes());
    (!text.is_empty() && text != b"NA" && !is_nan(text)).then_some(cell)
}

/// Whether a text is NaN in any accepted spelling. Some programs write `-nan`.
fn is_nan(text: &[u8]) -> bool {
    let unsigned = match text {
        [b'+' | b'-', rest @ ..] => rest,
        _ => text,
    };
    unsigned.eq_ignore_ascii_case(b"nan")
}

/// Blanks around it do not count, as around a missing cell.
pub(super) fn number(cell: &[u8]) -> Option<f64> {
    std::str::from_utf8(cell).ok()?.trim().parse().ok()
}

/// Which columns hold something that is not a number.
fn text_columns(text: &[u8], header: &Header) -> Result<Vec<bool>, DatasetError> {
    let mut is_text = vec![false; header.names.len()];
    rows_of(text, header.names.len(), |_, record| {
        for (is_text, cell) in is_text.iter_mut().zip(record) {
            if !*is_text && present(cell).is_some_and(|cell| number(cell).is_none()) {
                *is_text = true;
            }
        }
        Ok(())
    })?;
    Ok(is_text)
}

/// What one column holds before it is coded.
enum Draft {
    Dropped,
    Numbers(Vec<f64>),
    Texts(Interned),
}

/// Cells of a text column as indices of its levels, in order of appearance.
#[derive(Default)]
struct Interned {
    cells: Vec<u32>,
    levels: Vec<String>,
    /// The position of the first row with each level.
    bytes: Vec<u64>,
    places: HashMap<Vec<u8>, u32>,
}

impl Interned {
    fn push(&mut self, cell: &[u8], byte: u64) {
        let place = if let Some(&place) = self.places.get(cell) {
            place
        } else {
            let place = self.levels.len() as u32;
            self.places.insert(cell.to_vec(), place);
            self.levels.push(String::from_utf8_lossy(cell).into_owned());
            self.bytes.push(byte);
            place
        };
        self.cells.push(place);
    }
}

struct Cells(Vec<Draft>);

impl Cells {
    fn read(text: &[u8], header: &Header, is_text: &[bool]) -> Result<Self, DatasetError> {
        let mut drafts: Vec<Draft> = (0..header.names.len())
            .map(|column| match (header.dropped[column], is_text[column]) {
                (true, _) => Draft::Dropped,
                (false, true) => Draft::Texts(Interned::default()),
                (false, false) => Draft::Numbers(Vec::new()),
            })
            .collect();
        rows_of(text, header.names.len(), |byte, record| {
            for (column, (draft, cell)) in drafts.iter_mut().zip(record).enumerate() {
                let at = || At::cell(line_at(text, byte), column as u64 + 1);
                let cell = present(cell);
                if cell.is_none() && column == header.target {
                    let name = header.names[column].clone();
                    return Err(DatasetError::TargetMissing { at: at(), name });
                }
                match draft {
                    Draft::Dropped => {}
                    Draft::Texts(texts) => {
                        texts.push(cell.unwrap_or(MISSING_LEVEL.as_bytes()), byte);
                    }
                    Draft::Numbers(numbers) => {
                        let value = cell.and_then(number).unwrap_or(f64::NAN);
                        if value.is_infinite() {
                            return Err(DatasetError::Infinite {
                                at: at(),
                                column: header.names[column].clone(),
                                text: String::from_utf8_lossy(cell.unwrap_or_default())
                                    .into_owned(),
                            });
                        }
                        numbers.push(value);
                    }
                }
            }
            Ok(())
        })?;
        Ok(Self(drafts))
    }

    fn into_dataset(
        self,
        text: &[u8],
        header: &Header,
        options: &ReadOptions,
    ) -> Result<Dataset, DatasetError> {
        let mut target = None;
        let mut columns = Vec::new();
        let orders = options.levels.iter();
        let orders: HashMap<&str, &Vec<String>> =
            orders.map(|(name, order)| (name.trim(), order)).collect();
        for (place, draft) in self.0.into_iter().enumerate() {
            let name = header.names[place].clone();
            let order = orders.get(name.as_str()).copied();
            let not_a_factor = |what| DatasetError::NotAFactor {
                at: header.at(place),
                column: header.names[place].clone(),
                what,
            };
            let at = |byte| At::cell(line_at(text, byte), place as u64 + 1);
            if place == header.target {
                if order.is_some() {
                    return Err(not_a_factor("the target"));
                }
                target = Some(target_of(name, draft, options.task, at)?);
                continue;
            }
            match draft {
                Draft::Dropped => {}
                Draft::Numbers(_) if order.is_some() => {
                    return Err(not_a_factor("a column of numbers"));
                }
                Draft::Numbers(numbers) => columns.push(Column::of_numbers(name, &numbers)),
                Draft::Texts(texts) => columns.push(factor(name, texts, order, at)?),
            }
        }
        let target = target.unwrap_or(Target {
            name: options.predict.clone(),
            y: Vec::new(),
            classes: Vec::new(),
        });
        if columns.is_empty() {
            let dropped = header.dropped.iter().filter(|&&dropped| dropped).count();
            return Err(DatasetError::NoPredictors { dropped });
        }
        let at = header.at(header.target);
        Dataset::checked(columns, target, options.order, Some(at))
    }
}

/// Codes a text column: alphabetically with missing cells last, or in the given order.
fn factor(
    name: String,
    texts: Interned,
    order: Option<&Vec<String>>,
    at: impl Fn(u64) -> At,
) -> Result<Column, DatasetError> {
    let (ranks, levels) = if let Some(order) = order {
        let known: HashMap<&str, u32> = order
            .iter()
            .enumerate()
            .map(|(rank, level)| (level.as_str(), rank as u32))
            .collect();
        let mut levels = order.clone();
        let mut ranks = Vec::with_capacity(texts.levels.len());
        for (level, &byte) in texts.levels.iter().zip(&texts.bytes) {
            let rank = known
                .get(level.as_str())
                .or_else(|| known.get(level.trim()));
            ranks.push(match rank {
                Some(&rank) => rank,
                None if level == MISSING_LEVEL => {
                    levels.push(level.clone());
                    levels.len() as u32 - 1
                }
                None => {
                    return Err(DatasetError::UnknownLevel {
                        at: at(byte),
                        nearest: nearest(level, order.iter().map(String::as_str))
                            .map(str::to_owned),
                        column: name,
                        level: level.clone(),
                    });
                }
            });
        }
        (ranks, levels)
    } else {
        alphabetical(&texts.levels)
    };
    let codes = texts.cells.iter().map(|&cell| ranks[cell as usize]);
    Ok(Column {
        has_given_order: order.is_some(),
        ..Column::of_levels(name, codes.collect(), levels)
    })
}

/// The rank of each level by name, missing last, and the levels in that order.
fn alphabetical(levels: &[String]) -> (Vec<u32>, Vec<String>) {
    let mut order: Vec<usize> = (0..levels.len()).collect();
    order.sort_by_key(|&level| (levels[level] == MISSING_LEVEL, &levels[level]));
    let mut ranks = vec![0; levels.len()];
    for (rank, &level) in order.iter().enumerate() {
        ranks[level] = rank as u32;
    }
    let sorted = order.into_iter().map(|level| levels[level].clone());
    (ranks, sorted.collect())
}

/// The target as numbers or classes, as requested or inferred.
fn target_of(
    name: String,
    draft: Draft,
    task: Option<Task>,
    at: impl Fn(u64) -> At,
) -> Result<Target, DatasetError> {
    match draft {
        Draft::Texts(texts) => {
            if task == Some(Task::Regression) {
                let first = texts
                    .levels
                    .iter()
                    .position(|level| number(level.as_bytes()).is_none())
                    .unwrap_or(0);
                return Err(DatasetError::TargetNotANumber {
                    at: at(texts.bytes[first]),
                    name,
                    text: texts.levels[first].clone(),
                });
            }
            let (ranks, classes) = alphabetical(&texts.levels);
            let y = texts
                .cells
                .iter()
                .map(|&cell| f64::from(ranks[cell as usize]));
            Ok(Target {
                name,
                y: y.collect(),
                classes,
            })
        }
        Draft::Numbers(y) => {
            let column = Column::of_numbers(String::new(), &y);
            let values = column.values();
            let looks_like_classes = values.len() <= FEW_CLASSES
                && values.len() * ROWS_PER_CLASS <= y.len()
                && values.iter().all(|value| value.fract() == 0.0);
            let is_classes = task.map_or(looks_like_classes, |task| task == Task::Classification);
            if !is_classes {
                return Ok(Target {
                    name,
                    y,
                    classes: Vec::new(),
                });
            }
            Ok(Target {
                name,
                y: (0..y.len())
                    .map(|row| f64::from(column.codes().get(row)))
                    .collect(),
                classes: values.iter().map(f64::to_string).collect(),
            })
        }
        Draft::Dropped => Ok(Target {
            name,
            y: Vec::new(),
            classes: Vec::new(),
        }),
    }
}

/// The position of the quote that is never closed, which the CSV reader takes for a field up to the end of the text, in the record that starts at `start`: its byte,
/// and its field from 0.
///
/// Only the last record can have one, because it swallows all that follows. The rules are those of the reader: a quote
/// opens only at the beginning of a field, and two quotes inside are one literal quote.
fn unclosed(text: &[u8], start: u64) -> Option<(u64, u64)> {
    let is_end = |byte: u8| matches!(byte, b'\r' | b'\n');
    let start = usize::try_from(start).ok()?;
    let record = text.get(start..)?;
    let blank = record.iter().take_while(|&&byte| is_end(byte)).count();
    let mut bytes = (start + blank..).zip(&record[blank..]).peekable();
    let mut field = 0;
    let mut is_first = true;
    while let Some((place, &byte)) = bytes.next() {
        match byte {
            b'"' if is_first => {
                loop {
                    // The end of the text, and still inside.
                    let Some((_, &inside)) = bytes.next() else {
                        return Some((place as u64, field));
                    };
                    if inside == b'"' && bytes.next_if(|&(_, &next)| next == b'"').is_none() {
                        break;
                    }
                }
                is_first = false;
            }
            b',' => {
                field += 1;
                is_first = true;
            }
            byte if is_end(byte) => return None,
            _ => is_first = false,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quote_that_is_open_at_the_end_is_found_with_its_field() {
        for (text, expected) in [
            ("a,b", None),
            ("a,\"b\"", None),
            ("a,\"b\"\"\"", None),
            ("a,5\",c", None),
            ("a,\"b\"c\"", None),
            ("a,\"b\nc", Some((2, 1))),
            ("a,\"b\"\"", Some((2, 1))),
            ("\n\n\"", Some((2, 0))),
            ("a,b\n\"", None),
        ] {
            assert_eq!(unclosed(text.as_bytes(), 0), expected, "{text:?}");
        }
        assert_eq!(unclosed(b"a,b\n\"", 4), Some((4, 0)));
    }
}
