//! Running commands under limits from a thread that may wait.
//!
//! ```
//! use captime_limit::{Cause, Launch, Limits, blocking};
//! use std::time::Duration;
//!
//! let limits = Limits { wall: Some(Duration::from_millis(200)), ..Limits::default() };
//! let report = blocking::run(&Launch::new(["sleep", "10"]), &limits)?;
//! assert_eq!(report.cause, Cause::Wall);
//! # Ok::<(), captime_limit::LimitError>(())
//! ```

use std::sync::Arc;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::cancel::{Canceller, Requests};
use super::clock::Instant;
use super::connection::{Connection, Event, Setup, completed};
use super::contain::Contain;
use super::error::LimitError;
use super::launch::{Launch, Limits};
use super::level::{Level, MemoryControl};
use super::report::Report;

/// Runs one command under limits, at the best level this machine offers. To run several, keep a [`Supervisor`].
pub fn run(launch: &Launch, limits: &Limits) -> Result<Report, LimitError> {
    let mut supervisor = Supervisor::start(&Setup::default())?;
    let report = supervisor.run(launch, limits);
    supervisor.close();
    report
}

/// One slot: runs one command at a time, in a process of its own that is reused from run to run.
///
/// Dropping it ends the process; nothing stays alive.
#[derive(Debug)]
pub struct Supervisor {
    setup: Setup,
    connection: Option<Connection>,
    enforcement: Enforcement,
    runs: u64,
    requests: Arc<Requests>,
}

impl Supervisor {
    /// Starts the supervisor process of one slot.
    pub fn start(setup: &Setup) -> Result<Self, LimitError> {
        let connection = open(setup)?;
        Ok(Self {
            setup: setup.clone(),
            enforcement: Enforcement::of(&connection),
            connection: Some(connection),
            runs: 0,
            requests: Requests::new()?,
        })
    }

    /// How limits are enforced in this slot.
    pub fn level(&self) -> Level {
        self.enforcement.level
    }

    /// How memory limits are enforced in this slot.
    pub fn memory_control(&self) -> MemoryControl {
        self.enforcement.memory
    }

    /// What commands in this slot are kept from.
    pub fn contain(&self) -> Contain {
        self.enforcement.contain
    }

    /// Process id of the supervisor, if it is running.
    pub fn id(&self) -> Option<u32> {
        let connection = self.connection.as_ref()?;
        u32::try_from(connection.pid()).ok()
    }

    /// A handle that ends the run in flight, from another thread.
    pub fn canceller(&self) -> Canceller {
        self.requests.canceller()
    }

    /// Runs one command under limits.
    ///
    /// After [`LimitError::SupervisorLost`] or [`LimitError::SupervisorStuck`] the next call starts a new supervisor, at the same
    /// level. If that is impossible, or memory limits are enforced in another way, the call fails: results of one slot are comparable.
    pub fn run(&mut self, launch: &Launch, limits: &Limits) -> Result<Report, LimitError> {
        limits.check()?;
        self.runs += 1;
        let number = self.runs;
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => self.reopen()?,
        };
        let in_flight = self.requests.fly(number);
        connection.request(number, launch, limits);
        let result = loop {
            match wait(&mut connection, Some((&self.requests, number))) {
                Ok(Event::Ended(ended, result)) if ended == number => break result,
                Ok(_) => {}
                Err(error) => {
                    connection.bury();
                    return Err(error);
                }
            }
        };
        drop(in_flight);
        if connection.is_spent() {
            connection.bury();
        } else {
            self.connection = Some(connection);
        }
        result.map(|report| completed(report, launch))
    }

    /// Replaces a lost supervisor by one that enforces limits in the same way.
    fn reopen(&self) -> Result<Connection, LimitError> {
        let connection = open(&self.enforcement.again(&self.setup))?;
        if let Err(error) = self.enforcement.check(&connection) {
            connection.close();
            return Err(error);
        }
        Ok(connection)
    }

    /// Ends the supervisor and waits until it has cleaned up.
    pub fn close(mut self) {
        if let Some(connection) = self.connection.take() {
            connection.close();
        }
    }
}

/// How the supervisors of one slot enforce limits, all of them alike.
#[derive(Debug, Clone, Copy)]
pub(super) struct Enforcement {
    pub level: Level,
    pub memory: MemoryControl,
    pub contain: Contain,
}

impl Enforcement {
    pub(super) fn of(connection: &Connection) -> Self {
        Self {
            level: connection.hello.level,
            memory: connection.hello.memory,
            contain: connection.hello.contain,
        }
    }

    /// How to start the next supervisor of the slot.
    pub(super) fn again(self, setup: &Setup) -> Setup {
        Setup {
            level: Some(self.level),
            contain: Some(self.contain),
            ..setup.clone()
        }
    }

    /// Refuses a supervisor that enforces limits in another way than the one before.
    pub(super) fn check(self, connection: &Connection) -> Result<(), LimitError> {
        let had = (self.level, self.memory);
        let has = (connection.hello.level, connection.hello.memory);
        if has == had {
            Ok(())
        } else {
            Err(LimitError::Changed { had, has })
        }
    }
}

fn open(setup: &Setup) -> Result<Connection, LimitError> {
    open_as_asked(setup).or_else(|error| match setup.without_containment(&error) {
        Some(weaker) => open_as_asked(&weaker),
        None => Err(error),
    })
}

fn open_as_asked(setup: &Setup) -> Result<Connection, LimitError> {
    let mut connection = Connection::open(setup)?;
    let result = loop {
        match wait(&mut connection, None) {
            Ok(Event::Ready(result)) => break result,
            Ok(Event::Ended(..)) => {}
            Err(error) => break Err(error),
        }
    };
    match result {
        Ok(()) => Ok(connection),
        Err(error) => {
            connection.bury();
            Err(error)
        }
    }
}

/// Waits for the next event, passing on requests to cancel meanwhile.
fn wait(
    connection: &mut Connection,
    cancel: Option<(&Requests, u64)>,
) -> Result<Event, LimitError> {
    loop {
        if let Some(event) = connection.step()? {
            return Ok(event);
        }
        if cancel.is_some_and(|(requests, number)| requests.take(number)) {
            connection.cancel();
        }
        let timeout = connection
            .next_look()
            .map(|look| timespec(look.since(Instant::now())));
        let (descriptor, wants_to_send) = connection.descriptor();
        let mut flags = PollFlags::IN;
        flags.set(PollFlags::OUT, wants_to_send);
        let mut watched = vec![PollFd::from_borrowed_fd(descriptor, flags)];
        watched.extend(
            cancel.map(|(requests, _)| {
                PollFd::from_borrowed_fd(requests.descriptor(), PollFlags::IN)
            }),
        );
        match poll(&mut watched, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(LimitError::system("wait for the command", error)),
        }
    }
}

fn timespec(duration: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(duration.subsec_nanos()) as _,
    }
}
