//! One run for a program that is nothing but a limiter, as `captime exec` is.
//!
//! This process is the guardian of the supervisor that it forks: it passes on requests to stop, continues the supervisor if that is
//! stopped, and inherits and ends what is left if it is killed. The supervisor ends everything if this process is killed. So
//! either can be killed and nothing stays alive.

use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use super::clock::Instant;
use super::connection::{Connection, Event, completed};
use super::contain::Contain;
use super::error::LimitError;
use super::launch::{Launch, Limits};
use super::level::Level;
use super::report::Report;
use super::slot::Options;
use super::{server, sys};

/// How long the end of a run may take after a second request to stop.
const LAST_PATIENCE: Duration = Duration::from_secs(1);
/// Requests this soon after the first are the same one: `timeout`, for one, signals its child and then the group it is in.
const ONE_REQUEST: Duration = Duration::from_millis(200);

/// One command to run in the foreground.
#[derive(Debug)]
pub struct Foreground {
    /// What to run.
    pub launch: Launch,
    /// What it may use.
    pub limits: Limits,
    /// The level wanted; the best there is if `None`.
    pub level: Option<Level>,
    /// What the command is kept from; other processes, where that is possible, if `None`.
    pub contain: Option<Contain>,
    /// Whether the end of stdin is a request to stop.
    pub stop_on_stdin_eof: bool,
}

/// How it went.
#[derive(Debug)]
#[non_exhaustive]
pub struct Finished {
    /// The account, or why there is none.
    pub result: Result<Report, LimitError>,
    /// The signal that asked this process to stop, if one did.
    pub asked_by: Option<i32>,
}

impl Foreground {
    /// Runs the command. SIGINT, SIGTERM, SIGHUP and SIGQUIT to this process end the run; asked twice, it is given up.
    ///
    /// For programs that do nothing else: it takes over the signals of this process and all orphans below it, and fails where the
    /// process has other threads. Other programs use [`blocking`](super::blocking).
    pub fn run(&self) -> Finished {
        let result = self.run_to_end();
        Finished {
            result: result.map(|report| completed(report, &self.launch)),
            asked_by: sys::stop_signal(),
        }
    }

    fn run_to_end(&self) -> Result<Report, LimitError> {
        server::settle(true);
        match self.contain {
            Some(contain) => self.run_contained(contain),
            None => match self.run_contained(Contain::DEFAULT) {
                Err(LimitError::Contain { .. }) => self.run_contained(Contain::Off),
                result => result,
            },
        }
    }

    fn run_contained(&self, contain: Contain) -> Result<Report, LimitError> {
        let failed = |error| LimitError::system("start a supervisor process", error);
        let options = Options {
            level: self.level,
            memory: self.limits.memory.is_some(),
            owner: std::process::id(),
            contain,
            is_single: true,
        };
        let (ours, theirs) = UnixStream::pair().map_err(failed)?;
        ours.set_nonblocking(true).map_err(failed)?;
        let Some(pid) = server::fork(&options)? else {
            drop(ours);
            let served = server::serve(&options, theirs, None, None, |_| Ok(()));
            sys::leave(u8::from(served.is_err()));
        };
        drop(theirs);
        let mut connection = Connection::to_child(ours, pid)?;
        let result = self.follow(&mut connection);
        match &result {
            Err(
                LimitError::SupervisorLost
                | LimitError::SupervisorStuck { .. }
                | LimitError::Unkillable { .. },
            ) => connection.bury(),
            _ => connection.close(),
        }
        result
    }

    fn follow(&self, connection: &mut Connection) -> Result<Report, LimitError> {
        let mut stdin = self.stop_on_stdin_eof.then(std::io::stdin);
        // Requests that were passed on, the first of them, and when to give up.
        let mut signals = 0;
        let mut first: Option<Instant> = None;
        let mut give_up: Option<Instant> = None;
        // It need not wait for this process to hear that it is ready.
        connection.request(1, &self.launch, &self.limits);
        loop {
            match connection.step()? {
                Some(Event::Ready(ready)) => {
                    ready?;
                    continue;
                }
                Some(Event::Ended(_, result)) => return result,
                None => {}
            }
            connection.look_at_child();
            let now = Instant::now();
            let asked = sys::stop_signals();
            if asked != signals {
                signals = asked;
                connection.cancel();
                match first {
                    None => first = Some(now),
                    Some(first) if now.since(first) > ONE_REQUEST && give_up.is_none() => {
                        give_up = Some(now.after(LAST_PATIENCE));
                    }
                    Some(_) => {}
                }
            }
            if give_up.is_some_and(|give_up| give_up <= now) {
                return Err(LimitError::SupervisorLost);
            }
            let next = [connection.next_look(), give_up]
                .into_iter()
                .flatten()
                .min();
            let timeout = next.map(|next| next.since(now));
            let (socket, wants_to_send) = connection.descriptor();
            let mut watched = vec![if wants_to_send {
                sys::readable_or_writable(socket)
            } else {
                sys::readable(socket)
            }];
            watched.extend(stdin.as_ref().map(|stdin| sys::readable(stdin.as_fd())));
            sys::wait(&mut watched, timeout)
                .map_err(|error| LimitError::system("wait for the command", error))?;
            let has_input = watched.get(1).is_some_and(|_| sys::is_ready(&watched[1..]));
            drop(watched);
            // What arrives does not matter, only whether the other end is still open.
            if has_input
                && let Some(input) = &stdin
                && matches!(rustix::io::read(input, &mut [0; 4096]), Ok(0) | Err(_))
            {
                stdin = None;
                connection.cancel();
            }
        }
    }
}
