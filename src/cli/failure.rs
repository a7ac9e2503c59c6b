//! An error as the user sees it: the message, then what to do about it.

use std::fmt::Display;
use std::io::{ErrorKind, IsTerminal, Write};
use std::path::Path;

use super::Exit;
use crate::cluster::StartError;
use crate::markup::visible_lines;
use crate::scenario::ScenarioError;
use crate::target::PrepareError;

/// An error on its way to stderr, with its hint and exit code.
#[derive(Debug)]
pub struct Failure {
    exit: Exit,
    /// Empty if there is nothing to say, such as after a closed pipe.
    message: String,
    hint: Option<String>,
    /// Whether the message is already formatted, with colours, and needs no `captime:` in front.
    is_rendered: bool,
}

impl Failure {
    /// The command line or the scenario is wrong (exit 2).
    pub fn usage(message: impl ToString) -> Self {
        Self {
            exit: Exit::Usage,
            message: message.to_string(),
            hint: None,
            is_rendered: false,
        }
    }

    /// captime itself or the machine failed (exit 1).
    pub fn internal(message: impl ToString) -> Self {
        Self {
            exit: Exit::Failed,
            message: message.to_string(),
            hint: None,
            is_rendered: false,
        }
    }

    /// A file below `--out` that cannot be written (exit 1).
    pub fn cannot_write(path: &Path, error: impl Display) -> Self {
        Self::internal(format!("cannot write `{}`: {error}", path.display()))
            .hint(Some("use `--out` with a folder that you may write to"))
    }

    /// Interrupted (exit 130).
    pub fn interrupted() -> Self {
        Self {
            exit: Exit::Interrupted,
            message: "interrupted".to_owned(),
            hint: None,
            is_rendered: false,
        }
    }

    /// Adds what the user can change to get past this.
    #[must_use]
    pub fn hint(mut self, hint: Option<impl ToString>) -> Self {
        self.hint = hint.map(|hint| hint.to_string());
        self
    }

    /// What the user can change to get past this.
    pub(super) fn into_hint(self) -> Option<String> {
        self.hint
    }

    /// The exit code this failure asks for.
    pub fn exit(&self) -> Exit {
        self.exit
    }

    /// Writes `captime: message` and the hint below it.
    pub fn print(&self, to: &mut dyn Write) {
        if self.message.is_empty() {
            return;
        }
        // If stderr itself is gone, the error cannot be reported.
        if self.is_rendered {
            let _ = writeln!(to, "{}", self.message);
        } else {
            let _ = writeln!(to, "captime: {}", visible_lines(&self.message));
        }
        if let Some(hint) = &self.hint {
            let _ = writeln!(to, "  hint: {}", visible_lines(hint));
        }
    }
}

/// Errors when writing results. If the reader went away (`| head`), captime ends quietly, like any Unix tool.
impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        if error.kind() == ErrorKind::BrokenPipe {
            return Self {
                exit: Exit::Done,
                message: String::new(),
                hint: None,
                is_rendered: false,
            };
        }
        Self::internal(format!("cannot write the result: {error}"))
    }
}

/// If the reader went away, or the terminal was closed, that does not change the exit code.
pub(super) fn unless_pipe_closed(error: std::io::Error) -> std::io::Result<()> {
    let is_closed_terminal = error.raw_os_error() == Some(libc::EIO);
    if is_closed_terminal || error.kind() == ErrorKind::BrokenPipe {
        Ok(())
    } else {
        Err(error)
    }
}

/// A target that cannot run.
impl From<PrepareError> for Failure {
    fn from(error: PrepareError) -> Self {
        let failure = if error.is_usage() {
            Self::usage(&error)
        } else {
            Self::internal(&error)
        };
        failure.hint(error.hint())
    }
}

/// No slots, on this machine or on others.
impl From<StartError> for Failure {
    fn from(error: StartError) -> Self {
        match error {
            StartError::Prepare(error) => error.into(),
            StartError::Cluster(error) => Self::internal(&error).hint(error.hint()),
        }
    }
}

/// A scenario with mistakes. Each is shown with its line, in colours if they are wanted.
impl From<ScenarioError> for Failure {
    fn from(error: ScenarioError) -> Self {
        Self {
            exit: Exit::Usage,
            message: error.render(has_colours(&std::io::stderr())),
            hint: None,
            is_rendered: true,
        }
    }
}

/// Whether to use colours: on a terminal, unless `NO_COLOR` is set.
pub(super) fn has_colours(stream: &impl IsTerminal) -> bool {
    stream.is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}
