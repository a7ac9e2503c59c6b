//! Arms that are listed one by one: rows of a table, with every distinct value stored once.

use std::collections::HashMap;
use std::sync::Arc;

use super::arms::{ABSENT, Space, SpaceError};
use super::{MOST_ARMS, Parameter, Value};

/// Collects arms row by row: a million of them, with a million different values, in about a second.
#[derive(Debug)]
pub struct Table {
    names: Vec<Arc<str>>,
    columns: Vec<Column>,
    /// Row by row, for each column the number of its value in the order of appearance, or [`ABSENT`].
    codes: Vec<u32>,
    rows: usize,
    arms: Option<Vec<Arc<str>>>,
}

impl Table {
    /// A table with these parameters and no arm yet.
    pub fn new(names: Vec<Arc<str>>) -> Self {
        Self {
            columns: names.iter().map(|_| Column::default()).collect(),
            names,
            codes: vec![],
            rows: 0,
            arms: Some(vec![]),
        }
    }

    /// Begins the next arm, which has no parameter yet. An error if there are too many arms.
    pub fn begin(&mut self, name: Option<Arc<str>>) -> Result<(), SpaceError> {
        if self.rows == MOST_ARMS {
            return Err(SpaceError::TooMany {
                count: MOST_ARMS as u128 + 1,
            });
        }
        self.rows += 1;
        self.codes.resize(self.rows * self.columns.len(), ABSENT);
        match (&mut self.arms, name) {
            (Some(arms), Some(name)) => arms.push(name),
            // Names are kept if every arm has one.
            (arms, _) => *arms = None,
        }
        Ok(())
    }

    /// Sets a parameter of the arm begun last.
    pub fn set(&mut self, place: usize, value: &Value) {
        let code = self.columns[place].code(value);
        self.put(place, code);
    }

    /// The same from a cell of a file.
    pub fn read(&mut self, place: usize, cell: &str) {
        let code = self.columns[place].read(cell);
        self.put(place, code);
    }

    fn put(&mut self, place: usize, code: u32) {
        let row = self.codes.len() - self.columns.len();
        self.codes[row + place] = code;
    }

    /// The arms. Values are sorted in ascending order, so that the index of a value is informative.
    pub fn finish(mut self) -> Result<Space, SpaceError> {
        if self.rows == 0 {
            return Err(SpaceError::Empty);
        }
        let width = self.columns.len();
        let mut parameters = vec![];
        for (place, (name, column)) in self.names.into_iter().zip(self.columns).enumerate() {
            let (values, rank) = column.sorted();
            parameters.push(Parameter::new(name, values));
            let codes = self.codes.iter_mut().skip(place).step_by(width);
            for code in codes.filter(|code| **code != ABSENT) {
                *code = rank[*code as usize];
            }
        }
        Ok(Space::listed(
            parameters,
            self.rows,
            self.codes,
            self.arms.unwrap_or_default(),
        ))
    }
}

/// How many cells are remembered as they were written. For a column with more different ones it does not pay.
const MOST_CELLS: usize = 4096;

/// The distinct values of a column while its rows are read. Values that mean the same count once, however they are
/// written.
#[derive(Debug)]
struct Column {
    values: Vec<Value>,
    numbers: HashMap<u64, u32>,
    words: HashMap<Arc<str>, u32>,
    cells: Option<HashMap<Box<str>, u32>>,
}

impl Default for Column {
    fn default() -> Self {
        Self {
            values: vec![],
            numbers: HashMap::new(),
            words: HashMap::new(),
            cells: Some(HashMap::new()),
        }
    }
}

impl Column {
    fn code(&mut self, value: &Value) -> u32 {
        let next = self.values.len() as u32;
        let code = if let Some(number) = value.number() {
            // Adding zero makes -0 and 0 the same.
            *self.numbers.entry((number + 0.0).to_bits()).or_insert(next)
        } else {
            let word: Arc<str> = match value {
                Value::Text(text) => Arc::clone(text),
                other => other.to_string().into(),
            };
            *self.words.entry(word).or_insert(next)
        };
        if code == next {
            self.values.push(value.clone());
        }
        code
    }

    fn read(&mut self, cell: &str) -> u32 {
        if let Some(code) = self.cells.as_ref().and_then(|cells| cells.get(cell)) {
            return *code;
        }
        let code = self.code(&Value::read(cell));
        match &mut self.cells {
            Some(cells) if cells.len() < MOST_CELLS => {
                cells.insert(cell.into(), code);
            }
            cells => *cells = None,
        }
        code
    }

    /// The values in ascending order, numbers before words, and for each code its index among them.
    fn sorted(self) -> (Vec<Value>, Vec<u32>) {
        let mut numbers = vec![];
        let mut words = vec![];
        for (code, value) in (0_u32..).zip(&self.values) {
            match value.number() {
                Some(number) => numbers.push((number, code)),
                None => words.push((value.to_string(), code)),
            }
        }
        numbers.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        words.sort_unstable();
        let numbers = numbers.into_iter().map(|(_, code)| code);
        let order = numbers.chain(words.into_iter().map(|(_, code)| code));
        let mut rank = vec![0; self.values.len()];
        let mut values = Vec::with_capacity(self.values.len());
        for (place, code) in (0..).zip(order) {
            rank[code as usize] = place;
            values.push(self.values[code as usize].clone());
        }
        (values, rank)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::round::ArmId;

    #[test]
    fn cells_that_mean_the_same_are_one_value() {
        let mut table = Table::new(vec!["a".into(), "b".into()]);
        for cells in [["1", "x"], ["1.0", "true"], ["-0.0", "10"], ["0", ""]] {
            table.begin(None).unwrap();
            for (place, cell) in cells
                .into_iter()
                .enumerate()
                .filter(|(_, cell)| !cell.is_empty())
            {
                table.read(place, cell);
            }
        }
        let space = table.finish().unwrap();
        let codes: Vec<Vec<u32>> = space.arms().map(|arm| space.codes(arm)).collect();
        assert_eq!(codes, [[1, 2], [1, 1], [0, 0], [0, ABSENT]]);
    }

    #[test]
    fn columns_with_very_many_values_are_in_order_too() {
        let mut table = Table::new(vec!["a".into()]);
        let many = 3 * MOST_CELLS as u32;
        for number in 0..many {
            table.begin(Some(format!("arm {number}").into())).unwrap();
            table.read(0, &format!("{}.5", (number * 7919) % many));
        }
        let space = table.finish().unwrap();
        assert_eq!(space.parameters()[0].values().len(), many as usize);
        for number in [0, 1, MOST_CELLS as u32, many - 1] {
            let arm = ArmId::from_index(number as usize);
            assert_eq!(space.codes(arm), [(number * 7919) % many]);
            assert_eq!(space.name(arm), Some(format!("arm {number}").as_str()));
        }
    }
}
