//! How far a study is, on a terminal only.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// A bar on stderr; nothing where nobody looks.
pub struct Progress(Option<ProgressBar>);

impl Progress {
    /// A bar over this many rounds, or seconds of virtual time, if stderr is a terminal.
    pub fn on_terminal(all: u64) -> Self {
        if !std::io::stderr().is_terminal() {
            return Self::silent();
        }
        let bar = ProgressBar::new(all);
        let template = "{bar:32} {percent:>3} %  {msg}  {elapsed} gone, {eta} to go";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(250));
        Self(Some(bar))
    }

    /// Nothing is shown.
    pub fn silent() -> Self {
        Self(None)
    }

    pub(super) fn advance(&self, more: u64) {
        if let Some(bar) = &self.0 {
            bar.inc(more);
        }
    }

    pub(super) fn at(&self, what: impl FnOnce() -> String) {
        if let Some(bar) = &self.0 {
            bar.set_message(what());
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}
