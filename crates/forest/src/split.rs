//! Which rows to learn from and which to test on.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// Training and test rows, counted from 0. No row is in both.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Split {
    /// Rows to learn from, ascending.
    pub train: Vec<u32>,
    /// Rows to test on, ascending.
    pub test: Vec<u32>,
}

/// Why rows cannot be split.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SplitError {
    /// Not a fraction.
    #[error("train fraction {fraction} is not between 0 and 1")]
    Fraction {
        /// As given.
        fraction: f64,
    },
    /// One side would be empty.
    #[error("a split of {rows} rows with {train} for training leaves one side empty")]
    Empty {
        /// Rows of the table.
        rows: usize,
        /// Rows for training.
        train: usize,
    },
    /// Not in the table.
    #[error("test row {row} is not in the table of {rows} rows")]
    NoSuchRow {
        /// Counted from 1, as in the file.
        row: u64,
        /// Rows of the table.
        rows: usize,
    },
    /// Given twice.
    #[error("duplicate test row {row}")]
    Twice {
        /// Counted from 1.
        row: u64,
    },
}

impl SplitError {
    /// What the user can change to get past this.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Fraction { .. } => Some("write it like 0.7".into()),
            Self::Empty { .. } => Some("a split needs a row on each side".into()),
            Self::NoSuchRow { .. } => {
                Some("rows are numbered from 1, the header not counted".into())
            }
            Self::Twice { .. } => Some("name every row once".into()),
        }
    }
}

impl Split {
    /// A random split: round(rows * fraction) rows for training.
    pub fn random(rows: usize, fraction: f64, seed: u64) -> Result<Self, SplitError> {
        if !(fraction > 0.0 && fraction < 1.0) {
            return Err(SplitError::Fraction { fraction });
        }
        let train = (rows as f64 * fraction).round() as usize;
        if train == 0 || train >= rows {
            return Err(SplitError::Empty { rows, train });
        }
        let mut rng = Pcg64Mcg::seed_from_u64(seed ^ 0x5eed_0f5b_117e_d202);
        let mut order: Vec<u32> = (0..rows as u32).collect();
        for place in 0..train {
            let other = rng.random_range(place..rows);
            order.swap(place, other);
        }
        let mut test = order.split_off(train);
        order.sort_unstable();
        test.sort_unstable();
        Ok(Self { train: order, test })
    }

    /// A split by given test rows, counted from 1 like the rows of a file.
    pub fn by_test_rows(rows: usize, test_rows: &[u64]) -> Result<Self, SplitError> {
        let mut is_test = vec![false; rows];
        for &row in test_rows {
            let place = usize::try_from(row).ok().and_then(|row| row.checked_sub(1));
            let Some(is_test) = place.and_then(|place| is_test.get_mut(place)) else {
                return Err(SplitError::NoSuchRow { row, rows });
            };
            if std::mem::replace(is_test, true) {
                return Err(SplitError::Twice { row });
            }
        }
        let (test, train): (Vec<u32>, Vec<u32>) =
            (0..rows as u32).partition(|&row| is_test[row as usize]);
        if test.is_empty() || train.is_empty() {
            return Err(SplitError::Empty {
                rows,
                train: train.len(),
            });
        }
        Ok(Self { train, test })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_row_is_on_one_side(rows in 2_usize..300, fraction in 0.01..0.99_f64, seed: u64) {
            if let Ok(split) = Split::random(rows, fraction, seed) {
                let mut all = [split.train.clone(), split.test.clone()].concat();
                all.sort_unstable();
                prop_assert_eq!(all, (0..rows as u32).collect::<Vec<_>>());
                prop_assert_eq!(split.train.len(), (rows as f64 * fraction).round() as usize);
                prop_assert_eq!(Split::random(rows, fraction, seed), Ok(split));
            }
        }
    }

    #[test]
    fn given_rows_are_counted_from_one_and_checked() {
        let split = Split::by_test_rows(4, &[4, 1]).unwrap();
        assert_eq!((split.train, split.test), (vec![1, 2], vec![0, 3]));
        for bad in [&[0][..], &[5], &[1, 1], &[], &[1, 2, 3, 4]] {
            assert!(Split::by_test_rows(4, bad).is_err(), "{bad:?}");
        }
        for fraction in [0.0, 1.0, -1.0, f64::NAN, 0.01] {
            assert!(Split::random(4, fraction, 1).is_err(), "{fraction}");
        }
    }
}
