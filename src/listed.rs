//! A list of names as one string, `a,b,c`. Names with a comma are quoted, as in CSV: `"a, with comma",b`.

/// Joins the names into one string.
pub(crate) fn write(names: &[String]) -> String {
    // The reader would drop a byte order mark at the very beginning.
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

/// Splits a string into its names.
#[cfg(any(feature = "cli", test))]
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
