//! The async interface, for programs that use tokio: each slot is a separate process.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::unix::AsyncFd;

use super::blocking::Enforcement;
use super::cancel::{Canceller, Requests};
use super::clock::Instant;
use super::connection::{Connection, Event, Setup, completed};
use super::contain::Contain;
use super::error::LimitError;
use super::launch::{Launch, Limits};
use super::level::{Level, MemoryControl};
use super::report::Report;
use super::sys;

/// How soon a request that is too large for the socket is continued.
const FULL_SOCKET: Duration = Duration::from_millis(1);

/// One slot: runs one command at a time, in a process of its own that is reused from run to run.
///
/// Dropping it ends the run in flight, if any, and the process; nothing stays alive.
#[derive(Debug)]
pub struct Supervisor {
    setup: Setup,
    link: Option<Link>,
    enforcement: Enforcement,
    runs: u64,
    requests: Arc<Requests>,
    cancelled: AsyncFd<OwnedFd>,
}

impl Supervisor {
    /// Starts the supervisor process of one slot.
    pub async fn start(setup: &Setup) -> Result<Self, LimitError> {
        let link = Link::open(setup).await?;
        let requests = Requests::new()?;
        Ok(Self {
            setup: setup.clone(),
            enforcement: Enforcement::of(&link.connection),
            link: Some(link),
            runs: 0,
            cancelled: watch(requests.descriptor())?,
            requests,
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
        let link = self.link.as_ref()?;
        u32::try_from(link.connection.pid()).ok()
    }

    /// A handle that ends the run in flight.
    pub fn canceller(&self) -> Canceller {
        self.requests.canceller()
    }

    /// Runs one command under limits. If the future is dropped, the run is ended.
    ///
    /// After [`LimitError::SupervisorLost`] or [`LimitError::SupervisorStuck`] the next call starts a new supervisor, at the same
    /// level. If that is impossible, or memory limits are enforced in another way, the call fails: results of one slot are comparable.
    pub async fn run(&mut self, launch: &Launch, limits: &Limits) -> Result<Report, LimitError> {
        limits.check()?;
        self.runs += 1;
        let number = self.runs;
        if let Some(link) = self.link.take() {
            self.link = link.recover().await;
        }
        let link = match self.link.take() {
            Some(link) => link,
            None => self.reopen().await?,
        };
        let link = self.link.insert(link);
        let in_flight = self.requests.fly(number);
        link.connection.request(number, launch, limits);
        let result = {
            let flight = Flight(link);
            loop {
                match flight
                    .0
                    .wait(Some((&self.requests, &self.cancelled, number)))
                    .await
                {
                    Ok(Event::Ended(ended, result)) if ended == number => break Ok(result),
                    Ok(_) => {}
                    Err(error) => break Err(error),
                }
            }
        };
        drop(in_flight);
        if (result.is_err() || link.connection.is_spent())
            && let Some(link) = self.link.take()
        {
            in_background(Connection::bury, link).await;
        }
        let result = result.and_then(|ended| ended);
        result.map(|report| completed(report, launch))
    }

    /// Replaces a lost supervisor by one that enforces limits in the same way.
    async fn reopen(&self) -> Result<Link, LimitError> {
        let link = Link::open(&self.enforcement.again(&self.setup)).await?;
        if let Err(error) = self.enforcement.check(&link.connection) {
            in_background(Connection::close, link).await;
            return Err(error);
        }
        Ok(link)
    }

    /// Ends the supervisor and waits until it has cleaned up.
    pub async fn close(mut self) {
        if let Some(link) = self.link.take() {
            in_background(Connection::close, link).await;
        }
    }
}

/// A connection, and how to wait for it.
#[derive(Debug)]
struct Link {
    connection: Connection,
    ready: AsyncFd<OwnedFd>,
}

fn watch(descriptor: std::os::fd::BorrowedFd<'_>) -> Result<AsyncFd<OwnedFd>, LimitError> {
    descriptor
        .try_clone_to_owned()
        .and_then(sys::register)
        .map_err(|error| LimitError::system("watch the supervisor", error))
}

/// Does what has to wait for processes without holding up other tasks.
async fn in_background(work: fn(Connection), link: Link) {
    let Link { connection, ready } = link;
    drop(ready);
    let _ = tokio::task::spawn_blocking(move || work(connection)).await;
}

impl Link {
    async fn open(setup: &Setup) -> Result<Self, LimitError> {
        match Self::open_as_asked(setup).await {
            Ok(link) => Ok(link),
            Err(error) => match setup.without_containment(&error) {
                Some(weaker) => Self::open_as_asked(&weaker).await,
                None => Err(error),
            },
        }
    }

    async fn open_as_asked(setup: &Setup) -> Result<Self, LimitError> {
        let connection = Connection::open(setup)?;
        let ready = watch(connection.descriptor().0)?;
        let mut link = Self { connection, ready };
        let result = loop {
            match link.wait(None).await {
                Ok(Event::Ready(result)) => break result,
                Ok(Event::Ended(..)) => {}
                Err(error) => break Err(error),
            }
        };
        match result {
            Ok(()) => Ok(link),
            Err(error) => {
                in_background(Connection::bury, link).await;
                Err(error)
            }
        }
    }

    /// Waits for the next event, passing on requests to cancel meanwhile. Dropping the future loses nothing.
    async fn wait(
        &mut self,
        cancel: Option<(&Requests, &AsyncFd<OwnedFd>, u64)>,
    ) -> Result<Event, LimitError> {
        let failed = |error| LimitError::system("wait for the supervisor", error);
        loop {
            if let Some(event) = self.connection.step()? {
                return Ok(event);
            }
            let mut pause = self
                .connection
                .next_look()
                .map_or(Duration::from_hours(1), |look| look.since(Instant::now()));
            if self.connection.descriptor().1 {
                // A request that the socket has no room for. To wait for room would mean to be woken after every request.
                pause = pause.min(FULL_SOCKET);
            }
            tokio::select! {
                biased;
                ready = self.ready.readable() => {
                    let mut ready = ready.map_err(failed)?;
                    // Takes all there is: what comes later makes it ready again.
                    let event = self.connection.step()?;
                    ready.clear_ready();
                    if let Some(event) = event {
                        return Ok(event);
                    }
                }
                number = is_cancelled(cancel), if cancel.is_some() => {
                    number?;
                    self.connection.cancel();
                }
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    /// Makes the link usable after a dropped future; `None` if that is impossible.
    async fn recover(mut self) -> Option<Self> {
        let mut is_lost = false;
        while self.connection.is_running() && !is_lost {
            is_lost = self.wait(None).await.is_err();
        }
        if is_lost || self.connection.is_spent() {
            in_background(Connection::bury, self).await;
            return None;
        }
        Some(self)
    }
}

/// Returns once the run is to be cancelled.
async fn is_cancelled(
    cancel: Option<(&Requests, &AsyncFd<OwnedFd>, u64)>,
) -> Result<(), LimitError> {
    let Some((requests, event, number)) = cancel else {
        return std::future::pending().await;
    };
    loop {
        let mut ready = event
            .readable()
            .await
            .map_err(|error| LimitError::system("wait for the supervisor", error))?;
        let is_asked = requests.take(number);
        ready.clear_ready();
        if is_asked {
            return Ok(());
        }
    }
}

/// A run in flight, which ends if its future is dropped.
struct Flight<'a>(&'a mut Link);

impl Drop for Flight<'_> {
    fn drop(&mut self) {
        // Nothing is in flight any more if it has ended.
        self.0.connection.cancel();
    }
}
