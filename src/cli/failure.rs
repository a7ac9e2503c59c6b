//! What went wrong, as the user reads it: the message, then what to do about it.

use std::fmt::Display;
use std::io::{ErrorKind, IsTerminal, Write};
use std::path::Path;

use super::Exit;
use crate::scenario::ScenarioError;

/// An error on its way to stderr, with its hint and exit code.
#[derive(Debug)]
pub struct Failure {
    exit: Exit,
    /// Empty when there is nothing to say, as after a closed pipe.
    message: String,
    hint: Option<String>,
    /// Whether the message stands for itself, without our name in front.
    is_picture: bool,
}

impl Failure {
    /// A failure that is the command line's or the scenario's fault (exit 2).
    pub fn usage(message: impl ToString) -> Self {
        Self {
            exit: Exit::Usage,
            message: message.to_string(),
            hint: None,
            is_picture: false,
        }
    }

    /// A failure that is ours or the machine's (exit 1).
    pub fn ours(message: impl ToString) -> Self {
        Self {
            exit: Exit::Failed,
            message: message.to_string(),
            hint: None,
            is_picture: false,
        }
    }

    /// A file below `--out` that cannot be written (exit 1).
    pub fn cannot_write(path: &Path, error: impl Display) -> Self {
        Self::ours(format!("cannot write `{}`: {error}", path.display()))
            .hint(Some("give `--out` a folder that you may write to"))
    }

    /// Somebody stopped us (exit 130).
    pub fn interrupted() -> Self {
        Self {
            exit: Exit::Interrupted,
            message: "interrupted".to_owned(),
            hint: None,
            is_picture: false,
        }
    }

    /// Adds what the user can change to get past this.
    #[must_use]
    pub fn hint(mut self, hint: Option<impl ToString>) -> Self {
        self.hint = hint.map(|hint| hint.to_string());
        self
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
        // Nowhere left to complain to when stderr itself is gone.
        let name = if self.is_picture { "" } else { "captime: " };
        let _ = writeln!(to, "{name}{}", self.message);
        if let Some(hint) = &self.hint {
            let _ = writeln!(to, "  hint: {hint}");
        }
    }
}

/// Errors of writing results: a reader that went away (`| head`) ends us quietly, as it ends any Unix tool.
impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        if error.kind() == ErrorKind::BrokenPipe {
            return Self {
                exit: Exit::Done,
                message: String::new(),
                hint: None,
                is_picture: false,
            };
        }
        Self::ours(format!("cannot write the result: {error}"))
    }
}

/// A reader that went away, or a terminal that was closed, does not change how the work ended.
pub(super) fn unless_nobody_reads(error: std::io::Error) -> std::io::Result<()> {
    let is_closed_terminal = error.raw_os_error() == Some(libc::EIO);
    if is_closed_terminal || error.kind() == ErrorKind::BrokenPipe {
        Ok(())
    } else {
        Err(error)
    }
}

/// A scenario with mistakes: each is shown with its line, in colours where they are welcome.
impl From<ScenarioError> for Failure {
    fn from(error: ScenarioError) -> Self {
        Self {
            exit: Exit::Usage,
            message: error.render(has_colours(&std::io::stderr())),
            hint: None,
            is_picture: true,
        }
    }
}

/// Whether colours are welcome there: on a terminal, unless `NO_COLOR` is set.
pub(super) fn has_colours(stream: &impl IsTerminal) -> bool {
    stream.is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}
