//! The progress of a study, as a bar on stderr.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use crate::study::{Show, StudyProgress};

struct Bar(ProgressBar);

/// A bar over this many rounds, or seconds of virtual time. Nothing if stderr is not a terminal.
pub(super) fn on_terminal(all: u64) -> StudyProgress {
    if !std::io::stderr().is_terminal() {
        return StudyProgress::silent();
    }
    let bar = ProgressBar::new(all);
    let template = "{bar:32} {percent:>3} %  {msg}  {elapsed} elapsed, {eta} left";
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(250));
    StudyProgress::shown_by(Bar(bar))
}

impl Show for Bar {
    fn advance(&self, more: u64) {
        self.0.inc(more);
    }

    fn at(&self, what: String) {
        self.0.set_message(what);
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
