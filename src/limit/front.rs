//! `captime exec`: one run, watched over by two processes so that either can be killed and nothing stays alive.
//!
//! The front waits, passes on requests to stop, and inherits what is left if the supervisor is killed; the supervisor,
//! its child, does the work and ends everything if the front is killed.

use std::io::{PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};

use rustix::process::{Signal, set_child_subreaper};

use super::cgroup::{self, Places};
use super::error::LimitError;
use super::launch::{Launch, Limits};
use super::level::Level;
use super::report::Report;
use super::slot::{self, Options};
use super::watch::{self, Stop};
use super::{keeper, sys, tree};

/// One command to run from the command line.
#[derive(Debug)]
pub struct Single {
    /// What to run.
    pub launch: Launch,
    /// What it may use.
    pub limits: Limits,
    /// The level wanted; the best there is if `None`.
    pub level: Option<Level>,
    /// Whether the end of our own stdin is a request to stop.
    pub stop_on_stdin_eof: bool,
}

/// How it went.
#[derive(Debug)]
pub struct Ended {
    /// The account, or why there is none.
    pub result: Result<Report, LimitError>,
    /// The signal that asked us to stop, if one did.
    pub asked_by: Option<i32>,
}

/// Runs one command; `finish` turns its end into an exit status, in the supervisor process. Gives that status.
///
/// Must be called while this process has a single thread.
pub fn run_single(
    single: &Single,
    finish: impl FnOnce(Ended) -> u8 + Send,
) -> Result<u8, LimitError> {
    sys::hold_signals();
    let _ = set_child_subreaper(Some(rustix::process::getpid()));
    let (reader, writer) =
        std::io::pipe().map_err(|error| LimitError::system("make a pipe", error))?;
    match sys::fork().map_err(|error| LimitError::system("start the supervisor", error))? {
        None => {
            drop(writer);
            keeper::settle();
            sys::leave(supervise(single, reader, finish))
        }
        Some(supervisor) => {
            drop(reader);
            Ok(wait_for(supervisor, writer))
        }
    }
}

fn supervise(single: &Single, line: PipeReader, finish: impl FnOnce(Ended) -> u8 + Send) -> u8 {
    let options = Options {
        level: single.level,
        memory: single.limits.memory.is_some(),
    };
    slot::with(&options, move |slot| {
        let mut stop = Requests {
            line,
            stdin: single.stop_on_stdin_eof.then(std::io::stdin),
            asked_by: None,
        };
        let result =
            slot.and_then(|slot| watch::run(slot, &single.launch, &single.limits, &mut stop));
        finish(Ended {
            result,
            asked_by: stop.asked_by,
        })
    })
}

/// The front's part: passes signals on until the supervisor has ended.
fn wait_for(supervisor: i32, mut line: PipeWriter) -> u8 {
    loop {
        let signal = sys::next_signal();
        if signal != libc::SIGCHLD {
            let _ = line.write_all(&[signal as u8]);
        } else if sys::is_dead(supervisor) {
            break;
        }
    }
    let status = sys::wait_for(supervisor);
    match status.map(|dead| dead.exit_code) {
        Ok(Some(code)) => u8::try_from(code).unwrap_or(125),
        _ => {
            end_what_is_left();
            125
        }
    }
}

/// The supervisor was killed: its descendants are ours now, and its groups stale.
fn end_what_is_left() {
    loop {
        match sys::reap() {
            sys::Reap::Dead(_) => {}
            sys::Reap::NoChildren => break,
            sys::Reap::NoneDead => {
                tree::signal(&tree::descendants(), Signal::KILL);
                std::thread::sleep(std::time::Duration::from_micros(500));
            }
        }
    }
    let places = Places::locate();
    if let Some(own) = &places.unified {
        cgroup::sweep_unified(own);
    }
    if let Some(own) = &places.memory {
        cgroup::sweep_legacy(own);
    }
}

/// Where requests to stop come from: the front's pipe (a signal number, or its end), and stdin's end if wanted.
struct Requests {
    line: PipeReader,
    stdin: Option<std::io::Stdin>,
    asked_by: Option<i32>,
}

impl Stop for Requests {
    fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        let mut all = vec![self.line.as_fd()];
        all.extend(self.stdin.as_ref().map(AsFd::as_fd));
        all
    }

    fn is_asked(&mut self) -> bool {
        if is_readable(self.line.as_fd()) {
            let mut signal = [0];
            self.asked_by = match self.line.read(&mut signal) {
                Ok(1) => Some(i32::from(signal[0])),
                _ => None,
            };
            return true;
        }
        let mut ignored = [0; 4096];
        match &self.stdin {
            // What is sent is of no interest, only that somebody still holds the other end.
            Some(stdin) if is_readable(stdin.as_fd()) => {
                matches!(rustix::io::read(stdin, &mut ignored), Ok(0) | Err(_))
            }
            _ => false,
        }
    }
}

fn is_readable(descriptor: BorrowedFd<'_>) -> bool {
    let mut watched = [sys::readable(descriptor)];
    let _ = sys::wait(&mut watched, Some(std::time::Duration::ZERO));
    watched[0].revents != 0
}
