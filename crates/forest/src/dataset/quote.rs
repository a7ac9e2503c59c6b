//! A quote that is never closed, which the CSV reader takes for a field up to the end of the file.

/// The position of the quote that is still open at the end of the text, in the record that starts at `start`: its byte,
/// and its field from 0.
///
/// Only the last record can have one, because it swallows all that follows. The rules are those of the reader: a quote
/// opens only at the beginning of a field, and two quotes inside are one literal quote.
pub(super) fn unclosed(text: &[u8], start: u64) -> Option<(u64, u64)> {
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
