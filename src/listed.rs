//! Names in one word, `a,b,c`, with quotes around those that hold a comma, as CSV has them: `"a, with comma",b`.

/// The names in one word.
pub(crate) fn write(names: &[String]) -> String {
    // A byte order mark at the very beginning would be taken for one.
    let is_marked = names
        .first()
        .is_some_and(|name| name.starts_with('\u{feff}'));
    let quotes = if is_marked {
        csv::QuoteStyle::Always
    } else {
        csv::QuoteStyle::Necessary
    };
    let mut out = csv::WriterBuilder::new()
        .quote_style(quotes)
        .from_writer(vec![]);
    // Writing to memory cannot fail, and text stays text.
    let _ = out.write_record(names);
    let line = out.into_inner().unwrap_or_default();
    let mut line = String::from_utf8(line).unwrap_or_default();
    line.pop();
    line
}

/// The names in a word.
pub(crate) fn read(word: &str) -> Vec<String> {
    let mut lines = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .from_reader(word.as_bytes());
    let names = lines.records().flatten();
    names
        .flat_map(|line| line.iter().map(str::to_owned).collect::<Vec<_>>())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn plain_names_are_written_plainly() {
        assert_eq!(write(&["a".to_owned(), "b c".to_owned()]), "a,b c");
        assert_eq!(write(&["a,b".to_owned(), "c".to_owned()]), "\"a,b\",c");
        assert_eq!(read("a,b c,d"), ["a", "b c", "d"]);
    }

    proptest! {
        #[test]
        fn any_names_come_back(names in proptest::collection::vec(".*", 1..5)) {
            prop_assert_eq!(read(&write(&names)), names);
        }
    }
}
