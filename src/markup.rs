//! Escapes text for HTML, SVG, shells and terminals, so that program output and file names never act as markup.

mod terminal;

#[cfg(feature = "cli")]
pub(crate) use terminal::Visible;
pub(crate) use terminal::{visible, visible_lines};

/// Escapes text for use between tags or in a quoted attribute.
pub(crate) fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            // No XML document may hold the other control characters, not even escaped.
            '\n' | '\t' => safe.push(letter),
            letter if letter.is_control() => safe.push(' '),
            letter => safe.push(letter),
        }
    }
    safe
}

/// Quotes a word so that a shell reads it back unchanged.
pub fn shell_word(word: &str) -> String {
    let is_plain = !word.is_empty()
        && word
            .chars()
            .all(|letter| letter.is_ascii_alphanumeric() || "-_./=:,+@%".contains(letter));
    if is_plain {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_can_leave_its_place() {
        assert_eq!(
            escaped("<b title=\"a\" id='b'>&\u{7}\n"),
            "&lt;b title=&quot;a&quot; id=&#39;b&#39;&gt;&amp; \n"
        );
    }
}
