//! The text of a scenario and places in it.

use std::ops::Range;

/// From one byte to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Span {
    start: usize,
    end: usize,
}

impl Span {
    /// From `start` up to `end`, not included.
    pub fn new(start: usize, end: usize) -> Self {
        Self {
            start,
            end: end.max(start),
        }
    }

    /// As a range of bytes.
    pub fn range(self) -> Range<usize> {
        self.start..self.end
    }

    /// Where it begins.
    pub fn start(self) -> usize {
        self.start
    }

    /// The part that lies in this text, on character borders.
    pub(super) fn within(self, text: &str) -> Self {
        let border = |mut at: usize| {
            at = at.min(text.len());
            while !text.is_char_boundary(at) {
                at -= 1;
            }
            at
        };
        Self::new(border(self.start), border(self.end))
    }

    /// The place at this line and column, both counted from 1.
    pub(super) fn of_line_column(text: &str, line: usize, column: usize) -> Self {
        let mut start = 0;
        for (number, content) in text.split_inclusive('\n').enumerate() {
            if number + 1 == line {
                let offset = content
                    .char_indices()
                    .nth(column.saturating_sub(1))
                    .map_or(content.trim_end().len(), |(at, _)| at);
                return Self::new(start + offset, start + offset);
            }
            start += content.len();
        }
        Self::new(text.len(), text.len())
    }

    /// Line and column in characters, both counted from 1.
    pub fn line_column(self, text: &str) -> (usize, usize) {
        let before = &text[..self.within(text).start];
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        (
            before.matches('\n').count() + 1,
            before[line_start..].chars().count() + 1,
        )
    }
}
