//! `captime exec`: one run, watched over by two processes so that either can be killed and nothing stays alive.
//!
//! At level `cgroup2` this process supervises, and a keeper behind it ends the group should it be killed. At level
//! `subreaper` this process is only a front: it waits, passes on requests to stop, and inherits what is left if the
//! supervisor, its child, is killed; that one does the work and ends everything if the front is killed.

use std::io::{PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use rustix::process::{Signal, set_child_subreaper};

use super::error::LimitError;
use super::launch::{Launch, Limits};
use super::level::Level;
use super::report::Report;
use super::slot::{self, Options, Slot};
use super::watch::{self, Stop, Urgency};
use super::{cgroup, keeper, memory, sys, tree};

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

/// Runs one command; `finish` turns its end into an exit status. Gives that status.
///
/// Must be called while this process has a single thread. At level `subreaper` the rest happens in a child of this process.
pub fn run_single(single: &Single, finish: impl FnOnce(Ended) -> u8 + Send) -> u8 {
    keeper::settle(true);
    let options = Options {
        level: single.level,
        memory: single.limits.memory.is_some(),
    };
    slot::with(&options, move |slot| {
        let guarded = slot.and_then(|slot| {
            let guard = match slot.level() {
                Level::Cgroup2 => Guard::behind(slot)?,
                Level::Subreaper => Guard::above()?,
            };
            Ok((slot, guard))
        });
        let (slot, guard) = match guarded {
            Ok(guarded) => guarded,
            Err(error) => {
                return finish(Ended {
                    result: Err(error),
                    asked_by: None,
                });
            }
        };
        let (line, _keeper) = match guard {
            Guard::Front(status) => return status,
            Guard::Supervisor(line) => (Some(line), None),
            Guard::Keeper(keeper) => (None, Some(keeper)),
        };
        let is_child = line.is_some();
        let mut stop = Requests {
            line,
            stdin: single.stop_on_stdin_eof.then(std::io::stdin),
            asked_by: None,
            signals: 0,
        };
        let result = slot
            .enter()
            .and_then(|()| watch::run(slot, &single.launch, &single.limits, &mut stop));
        let status = finish(Ended {
            result,
            asked_by: stop.asked_by.or(sys::stop_signal()),
        });
        if is_child {
            sys::leave(status);
        }
        status
    })
}

/// Who ends the run if the process that started it is killed, and which process this is.
enum Guard {
    /// We supervise; a small process behind us ends the group should our end of its pipe close.
    Keeper(Keeper),
    /// We supervise for a front that inherits everything should we be killed; its pipe tells when to stop.
    Supervisor(PipeReader),
    /// We are that front, and the supervisor has ended with this status.
    Front(u8),
}

/// The process behind us. It is dismissed when we are done.
struct Keeper {
    pid: i32,
    _line: PipeWriter,
}

impl Drop for Keeper {
    fn drop(&mut self) {
        // Our own child, which nobody has reaped: the number is still its.
        if let Some(pid) = rustix::process::Pid::from_raw(self.pid) {
            let _ = rustix::process::kill_process(pid, Signal::KILL);
            // Not left to whoever inherits it: in a container that may be somebody who never looks.
            let _ = sys::wait_for(self.pid);
        }
    }
}

impl Guard {
    /// At level `cgroup2` the group says who belongs to the run, so the guard can be a bystander.
    fn behind(slot: &mut Slot) -> Result<Self, LimitError> {
        let (reader, writer) =
            std::io::pipe().map_err(|error| LimitError::system("make a pipe", error))?;
        let forked =
            sys::fork(true).map_err(|error| LimitError::system("start the keeper", error))?;
        if let Some(pid) = forked {
            slot.keeper = Some(pid);
            return Ok(Self::Keeper(Keeper { pid, _line: writer }));
        }
        keeper::leave_process_group();
        let (home, legacy) = (slot.home(), slot.legacy());
        sys::keep_only(reader.as_raw_fd());
        let _ = rustix::io::read(std::io::stdin(), &mut [0; 1]);
        if let Some(home) = home {
            cgroup::end_group(&home);
        }
        if let Some(legacy) = legacy {
            memory::remove(&legacy);
        }
        sys::leave(0)
    }

    /// At level `subreaper` only an ancestor knows who belongs to the run, so the guard must be one.
    fn above() -> Result<Self, LimitError> {
        let (reader, writer) =
            std::io::pipe().map_err(|error| LimitError::system("make a pipe", error))?;
        let forked =
            sys::fork(false).map_err(|error| LimitError::system("start the supervisor", error))?;
        if let Some(supervisor) = forked {
            drop(reader);
            return Ok(Self::Front(wait_for(supervisor, writer)));
        }
        drop(writer);
        keeper::leave_process_group();
        let _ = set_child_subreaper(Some(rustix::process::getpid()));
        Ok(Self::Supervisor(reader))
    }
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
    if let Ok(Some(code)) = status.map(|dead| dead.exit_code) {
        return u8::try_from(code).unwrap_or(125);
    }
    end_what_is_left();
    125
}

/// The supervisor was killed: its descendants are ours now.
fn end_what_is_left() {
    loop {
        match sys::reap() {
            sys::Reap::Dead(_) => {}
            sys::Reap::NoChildren => break,
            sys::Reap::NoneDead => {
                tree::signal(&tree::descendants(None), Signal::KILL);
                std::thread::sleep(std::time::Duration::from_micros(500));
            }
        }
    }
}

/// Where requests to stop come from: the front's pipe (a signal number, or its end), and stdin's end if wanted.
struct Requests {
    line: Option<PipeReader>,
    stdin: Option<std::io::Stdin>,
    asked_by: Option<i32>,
    /// Signals to this very process that have been told of.
    signals: u32,
}

impl Requests {
    /// True once stdin has ended, which is told once.
    fn has_stdin_ended(&mut self) -> bool {
        let mut ignored = [0; 4096];
        match &self.stdin {
            // What is sent is of no interest, only that somebody still holds the other end.
            Some(stdin) if is_readable(stdin.as_fd()) => {
                let ended = matches!(rustix::io::read(stdin, &mut ignored), Ok(0) | Err(_));
                if ended {
                    self.stdin = None;
                }
                ended
            }
            _ => false,
        }
    }
}

impl Stop for Requests {
    fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        let line = self.line.as_ref().map(AsFd::as_fd);
        line.into_iter()
            .chain(self.stdin.as_ref().map(AsFd::as_fd))
            .collect()
    }

    fn is_asked(&mut self) -> bool {
        if let Some(line) = &mut self.line
            && is_readable(line.as_fd())
        {
            let mut signal = [0];
            self.asked_by = match line.read(&mut signal) {
                Ok(1) => Some(i32::from(signal[0])),
                _ => None,
            };
            return true;
        }
        self.has_stdin_ended()
    }

    fn urgency(&mut self) -> Urgency {
        let mut urgency = Urgency::None;
        if let Some(line) = &mut self.line
            && is_readable(line.as_fd())
        {
            match line.read(&mut [0; 64]) {
                Ok(count) if count > 0 => urgency = Urgency::Again,
                _ => return Urgency::Deserted,
            }
        }
        let signals = sys::stop_signals();
        if signals != std::mem::replace(&mut self.signals, signals) {
            urgency = Urgency::Again;
        }
        if self.has_stdin_ended() {
            return Urgency::Deserted;
        }
        urgency
    }
}

fn is_readable(descriptor: BorrowedFd<'_>) -> bool {
    let mut watched = [sys::readable(descriptor)];
    let _ = sys::wait(&mut watched, Some(std::time::Duration::ZERO));
    watched[0].revents != 0
}
