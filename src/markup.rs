//! Escapes text for HTML, SVG, shells and terminals, so that program output and file names never act as markup.

use std::borrow::Cow;

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

/// Text for a terminal, on one line: control characters, which could move the cursor, set the title or hide text, are
/// written out (`\u{1b}`); so are characters that turn the direction of writing. Tabs stay.
pub(crate) fn visible(text: &str) -> Cow<'_, str> {
    if !text.contains(is_hidden) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for letter in text.chars() {
        if is_hidden(letter) {
            shown.extend(letter.escape_default());
        } else {
            shown.push(letter);
        }
    }
    Cow::Owned(shown)
}

/// The same for text of several lines.
pub(crate) fn visible_lines(text: &str) -> Cow<'_, str> {
    if text.lines().all(|line| !line.contains(is_hidden)) && !text.contains('\r') {
        return Cow::Borrowed(text);
    }
    let lines: Vec<_> = text.split('\n').map(visible).collect();
    Cow::Owned(lines.join("\n"))
}

fn is_hidden(letter: char) -> bool {
    let turns = matches!(letter, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    turns || letter.is_control() && letter != '\t'
}

/// Writes text to a terminal with all but line breaks and tabs visible.
#[cfg(feature = "cli")]
pub(crate) struct Visible<W>(pub W);

#[cfg(feature = "cli")]
impl<W: std::io::Write> std::io::Write for Visible<W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let text = String::from_utf8_lossy(bytes);
        self.0.write_all(visible_lines(&text).as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.0.flush()
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

    #[test]
    fn nothing_that_is_written_can_act_on_a_terminal() {
        use std::io::Write;
        assert_eq!(visible("plain ä\t1"), "plain ä\t1");
        assert_eq!(
            visible("\u{1b}]0;title\u{7}\r\n"),
            "\\u{1b}]0;title\\u{7}\\r\\n"
        );
        assert_eq!(visible("a\u{9b}31m\u{202e}b"), "a\\u{9b}31m\\u{202e}b");
        let mut bytes = vec![];
        write!(Visible(&mut bytes), "one\n\u{1b}[2J\r\ntwo\n").unwrap();
        assert_eq!(
            String::from_utf8(bytes).unwrap(),
            "one\n\\u{1b}[2J\\r\ntwo\n"
        );
    }
}
