//! Mistakes and warnings for people: the position, the line itself, and what to write instead.

use std::fmt;
use std::path::{Path, PathBuf};

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};

use super::{Mistake, Notice};
use crate::markup::{visible, visible_lines};
use crate::yaml::Span;

/// Why there is no scenario: every mistake in the file.
#[derive(Debug, Clone)]
pub struct ScenarioError {
    /// The file, as it was named.
    pub file: PathBuf,
    /// Its contents, as far as they could be read.
    pub text: String,
    /// All mistakes, in the order of the file. At least one.
    pub mistakes: Vec<Mistake>,
}

impl ScenarioError {
    /// All mistakes, each with its line, and with colours for a terminal.
    pub fn render(&self, colours: bool) -> String {
        let mut out = String::new();
        for mistake in &self.mistakes {
            out += &render(
                &self.file,
                &self.text,
                mistake.at,
                Level::ERROR.primary_title(visible_lines(&mistake.fault.to_string()).into_owned()),
                mistake.fault.hint(),
                colours,
            );
            out.push_str("\n\n");
        }
        // A file that could not be read has no mistakes to count.
        if self.text.is_empty() {
            return out.trim_end().to_owned();
        }
        let count = self.mistakes.len();
        let mistakes = if count == 1 { "mistake" } else { "mistakes" };
        let file = self.file.display().to_string();
        out + &format!("{}: {count} {mistakes}", visible(&file))
    }
}

impl fmt::Display for ScenarioError {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(&self.render(false))
    }
}

impl std::error::Error for ScenarioError {}

/// One warning with its line.
pub(super) fn render_notice(file: &Path, text: &str, notice: &Notice, colours: bool) -> String {
    render(
        file,
        text,
        notice.at,
        Level::WARNING.primary_title(visible_lines(&notice.caution.to_string()).into_owned()),
        notice.caution.hint().map(str::to_owned),
        colours,
    )
}

/// Only the line in question is passed to the renderer, so that a long file costs nothing.
fn render(
    file: &Path,
    text: &str,
    at: Span,
    title: annotate_snippets::Title<'_>,
    hint: Option<String>,
    colours: bool,
) -> String {
    let at = at.within(text);
    let line_start = text[..at.start()].rfind('\n').map_or(0, |at| at + 1);
    let line_end = text[at.start()..]
        .find('\n')
        .map_or(text.len(), |end| at.start() + end);
    let (line, column) = at.line_column(text);
    let path = visible(&file.display().to_string()).into_owned();
    let content = text[line_start..line_end].trim_end_matches('\r');
    // Characters that a terminal would obey are written out, so the place moves with them.
    let shown = visible(content);
    let group = if text.is_empty() {
        Group::with_title(title).element(annotate_snippets::Origin::path(path))
    } else {
        let from = (at.start() - line_start).min(content.len());
        let to = (at.range().end - line_start).min(content.len()).max(from);
        // A position without width is shown as one character, or at the end of the line.
        let to = if to == from {
            content[from..]
                .chars()
                .next()
                .map_or(from, |letter| from + letter.len_utf8())
        } else {
            to
        };
        let place = |end: usize| visible(&content[..end]).len();
        debug_assert!(column > 0, "columns are counted from 1");
        Group::with_title(title).element(
            Snippet::source(&*shown)
                .line_start(line)
                .path(path)
                .annotation(AnnotationKind::Primary.span(place(from)..place(to))),
        )
    };
    let group = match hint {
        Some(hint) => group.element(Level::HELP.message(visible_lines(&hint).into_owned())),
        None => group,
    };
    let renderer = if colours {
        Renderer::styled()
    } else {
        Renderer::plain()
    };
    renderer.render(&[group])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quoted_line_shows_terminal_escapes_and_is_still_underlined_in_its_place() {
        let text = "# \u{1b}[2J\u{9b}1A\nname: x\nsl\u{1b}]0;owned\u{7}ots: 3\n";
        let error =
            super::super::parse(text, "\u{1b}[31m.yaml".as_ref(), ".".as_ref()).unwrap_err();
        let drawn = error.render(false);
        let is_plain = |letter: char| letter == '\n' || !letter.is_control();
        assert!(drawn.chars().all(is_plain), "{drawn:?}");
        // Between two escapes.
        let text = "\u{1b}a bad\u{7}\n";
        let at = Span::new(3, 6);
        let title = Level::ERROR.primary_title("t");
        let drawn = render("f".as_ref(), text, at, title, None, false);
        let lines: Vec<&str> = drawn.lines().collect();
        let quoted = lines.iter().position(|line| line.contains("bad")).unwrap();
        let place = lines[quoted].find("bad").unwrap();
        assert_eq!(lines[quoted + 1].find("^^^"), Some(place), "{drawn}");
        assert!(!lines[quoted + 1].contains("^^^^"), "{drawn}");
    }
}
