//! Mistakes and notices as people read them: the place, the line itself, what to write instead.

use std::fmt;
use std::path::{Path, PathBuf};

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};

use super::source::Span;
use super::{Mistake, Notice};

/// Why there is no scenario: every mistake in the file.
#[derive(Debug, Clone)]
pub struct ScenarioError {
    /// The file as it was named.
    pub file: PathBuf,
    /// What it holds, as far as it could be read.
    pub text: String,
    /// All that is wrong, in the order of the file; at least one.
    pub mistakes: Vec<Mistake>,
}

impl ScenarioError {
    /// All mistakes, each with its line; with colours for a terminal.
    pub fn render(&self, colours: bool) -> String {
        let mut out = String::new();
        for mistake in &self.mistakes {
            out += &render(
                &self.file,
                &self.text,
                mistake.at,
                Level::ERROR.primary_title(mistake.fault.to_string()),
                mistake.fault.hint(),
                colours,
            );
            out.push_str("\n\n");
        }
        let count = self.mistakes.len();
        let mistakes = if count == 1 { "mistake" } else { "mistakes" };
        out + &format!("{}: {count} {mistakes}", self.file.display())
    }
}

impl fmt::Display for ScenarioError {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(&self.render(false))
    }
}

impl std::error::Error for ScenarioError {}

/// One notice with its line.
pub(super) fn render_notice(file: &Path, text: &str, notice: &Notice, colours: bool) -> String {
    render(
        file,
        text,
        notice.at,
        Level::WARNING.primary_title(notice.caution.to_string()),
        notice.caution.hint().map(str::to_owned),
        colours,
    )
}

/// Only the line in question is handed to the renderer, so that a long file costs nothing.
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
    let path = file.display().to_string();
    let group = if text.is_empty() {
        Group::with_title(title).element(annotate_snippets::Origin::path(path))
    } else {
        let content = text[line_start..line_end].trim_end_matches('\r');
        let from = (at.start() - line_start).min(content.len());
        let to = (at.range().end - line_start).min(content.len()).max(from);
        // A place without width is shown as one character, or at the end of the line.
        let to = if to == from {
            content[from..]
                .chars()
                .next()
                .map_or(from, |letter| from + letter.len_utf8())
        } else {
            to
        };
        debug_assert!(column > 0, "columns are counted from 1");
        Group::with_title(title).element(
            Snippet::source(content)
                .line_start(line)
                .path(path)
                .annotation(AnnotationKind::Primary.span(from..to)),
        )
    };
    let group = match hint {
        Some(hint) => group.element(Level::HELP.message(hint)),
        None => group,
    };
    let renderer = if colours {
        Renderer::styled()
    } else {
        Renderer::plain()
    };
    renderer.render(&[group])
}
