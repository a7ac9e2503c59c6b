//! Arbitrary bytes, and valid files that were damaged.

use proptest::prelude::*;

use super::super::{Dataset, LevelOrder, ReadOptions, Task};

const GOOD: &[u8] = b"\xef\xbb\xbfx,q,y\r\n1.5,low,1\r\n\"2\",\"hi,gh\",2\r\nNA,mid,3.5\r\n-nan,\"a\"\"b\",4\r\n,,5\r\n";

/// A way to damage a file.
#[derive(Debug, Clone)]
enum Change {
    Replace(prop::sample::Index, u8),
    Insert(prop::sample::Index, u8),
    Delete(prop::sample::Index),
    Cut(prop::sample::Index),
}

impl Change {
    fn apply(&self, text: &mut Vec<u8>) {
        if text.is_empty() {
            return;
        }
        match *self {
            Self::Replace(place, byte) => {
                let place = place.index(text.len());
                text[place] = byte;
            }
            Self::Insert(place, byte) => text.insert(place.index(text.len() + 1), byte),
            Self::Delete(place) => {
                text.remove(place.index(text.len()));
            }
            Self::Cut(place) => text.truncate(place.index(text.len())),
        }
    }
}

/// Any byte, but most often one with a meaning in CSV.
fn any_csv_byte() -> impl Strategy<Value = u8> {
    prop_oneof![
        3 => prop::sample::select(&b"\"\",;\t\r\n -+.0123456789eEnaNA"[..]),
        1 => any::<u8>(),
    ]
}

fn any_change() -> impl Strategy<Value = Change> {
    let place = any::<prop::sample::Index>;
    prop_oneof![
        4 => (place(), any_csv_byte()).prop_map(|(place, byte)| Change::Replace(place, byte)),
        4 => (place(), any_csv_byte()).prop_map(|(place, byte)| Change::Insert(place, byte)),
        4 => place().prop_map(Change::Delete),
        1 => place().prop_map(Change::Cut),
    ]
}

/// Three fields of bytes, so that rows are often whole.
fn any_row() -> impl Strategy<Value = Vec<u8>> {
    let field = || proptest::collection::vec(any_csv_byte(), 0..4);
    (field(), field(), field())
        .prop_map(|(x, q, y)| [x, q, y].join(&b','))
        .prop_map(|row| [&row[..], b"\n"].concat())
}

fn any_options() -> impl Strategy<Value = ReadOptions> {
    let name = || prop::sample::select(vec!["x", "q", "y", " q ", "z"]).prop_map(str::to_owned);
    let level = prop::sample::select(vec!["low", "mid", "hi,gh", "a\"b", "NA", "1", ""]);
    let order = proptest::collection::vec(level.prop_map(str::to_owned), 0..7);
    let tasks = vec![None, Some(Task::Regression), Some(Task::Classification)];
    (
        prop_oneof![9 => Just("y".to_owned()), 1 => name()],
        prop_oneof![2 => Just(vec![]), 1 => proptest::collection::vec(name(), 0..3)],
        prop_oneof![2 => Just([].into()), 1 => proptest::collection::btree_map(name(), order, 0..3)],
        prop::sample::select(vec![LevelOrder::Alphabetical, LevelOrder::ByResponse]),
        prop::sample::select(tasks),
    )
        .prop_map(|(predict, drop, levels, order, task)| ReadOptions {
            predict,
            drop,
            levels,
            order,
            task,
        })
}

/// A table that was read can be learned from, and a refusal is explained. Neither panics.
fn read_or_refused(text: &[u8], options: &ReadOptions) -> Result<(), TestCaseError> {
    match Dataset::parse(text, options) {
        Ok(data) => {
            prop_assert!(data.rows() >= 2 && data.predictors() >= 1);
            prop_assert!(data.target().y().iter().all(|y| y.is_finite()));
            for column in data.columns() {
                for row in 0..data.rows() {
                    prop_assert!(!column.value(row).is_infinite());
                }
            }
        }
        Err(error) => {
            prop_assert!(!error.to_string().is_empty());
            let _ = error.hint();
        }
    }
    Ok(())
}

/// Otherwise the tests of changed bytes would see nothing but refusals.
#[test]
fn the_good_file_is_good() {
    let data = Dataset::parse(GOOD, &ReadOptions::predict("y")).unwrap();
    assert_eq!((data.rows(), data.predictors()), (5, 2));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn any_bytes_are_read_or_refused_but_never_panic(
        bytes in proptest::collection::vec(any::<u8>(), 0..300),
        options in any_options(),
    ) {
        read_or_refused(&bytes, &options)?;
    }

    #[test]
    fn any_bytes_below_a_header_are_read_or_refused_but_never_panic(
        rows in proptest::collection::vec(any_row(), 0..12),
        options in any_options(),
    ) {
        let text = [&b"x,q,y\n"[..], &rows.concat()].concat();
        read_or_refused(&text, &options)?;
    }

    #[test]
    fn a_good_file_with_some_bytes_changed_is_read_or_refused_but_never_panics(
        changes in proptest::collection::vec(any_change(), 0..6),
        options in any_options(),
    ) {
        let mut text = GOOD.to_vec();
        for change in changes {
            change.apply(&mut text);
        }
        read_or_refused(&text, &options)?;
    }
}
