//! Text for HTML and SVG.

/// Text as it stands between tags or in a quoted attribute.
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
