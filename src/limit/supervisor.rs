//! The async face: a slot of one's own in a separate process.

use std::os::fd::AsFd;
use std::os::unix::net::UnixStream as Pair;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::process::{Child, Command};
use tokio::sync::Notify;

use super::error::LimitError;
use super::keeper::SUPERVISE;
use super::launch::{Input, Launch, Limits};
use super::level::{Level, MemoryControl};
use super::report::Report;
use super::wire::{self, Hello};
use super::{cgroup, memory, sys};

/// How supervisors are started.
#[derive(Debug, Clone, Default)]
pub struct Setup {
    /// The level wanted; the best there is if `None`.
    pub level: Option<Level>,
    /// The captime program; the running program if `None`, which is right only within captime itself.
    pub binary: Option<PathBuf>,
}

/// One slot: runs one command at a time, in a process of its own that is reused from run to run.
///
/// Dropping it ends the run in flight, if any, and the process; nothing stays alive.
#[derive(Debug)]
pub struct Supervisor {
    setup: Setup,
    link: Option<Link>,
    runs: u64,
    requests: Arc<Requests>,
    level: Level,
    memory: MemoryControl,
}

/// Ends the run in flight of one [`Supervisor`], from anywhere.
#[derive(Debug, Clone)]
pub struct Canceller(Arc<Requests>);

impl Canceller {
    /// Ends the run in flight with cause `cancelled`; does nothing if there is none.
    pub fn cancel(&self) {
        let current = self.0.current.load(Ordering::SeqCst);
        self.0.asked.store(current, Ordering::SeqCst);
        self.0.notify.notify_waiters();
    }
}

/// Which run is in flight and which is to be cancelled; runs count from 1, 0 is none.
#[derive(Debug, Default)]
struct Requests {
    current: AtomicU64,
    asked: AtomicU64,
    notify: Notify,
}

impl Requests {
    async fn cancelled(&self, number: u64) {
        loop {
            let notified = self.notify.notified();
            tokio::pin!(notified);
            notified.as_mut().enable();
            if self.asked.load(Ordering::SeqCst) == number {
                return;
            }
            notified.await;
        }
    }
}

impl Supervisor {
    /// Starts the supervisor process of one slot.
    pub async fn start(setup: &Setup) -> Result<Self, LimitError> {
        let link = Link::open(setup).await?;
        Ok(Self {
            setup: setup.clone(),
            level: link.hello.level,
            memory: link.hello.memory,
            link: Some(link),
            runs: 0,
            requests: Arc::default(),
        })
    }

    /// How limits are enforced in this slot.
    pub fn level(&self) -> Level {
        self.level
    }

    /// Who keeps memory limits in this slot.
    pub fn memory_control(&self) -> MemoryControl {
        self.memory
    }

    /// Process id of the supervisor, if it is running.
    pub fn id(&self) -> Option<u32> {
        self.link.as_ref().and_then(|link| link.child.id())
    }

    /// A handle that ends the run in flight.
    pub fn canceller(&self) -> Canceller {
        Canceller(Arc::clone(&self.requests))
    }

    /// Runs one command under limits. If the future is dropped, the run is ended.
    ///
    /// After [`LimitError::SupervisorLost`] the next call starts a new supervisor, at the same level as the lost one. If that
    /// cannot be had any more, or memory limits are kept in another way, the call fails: results of one slot are comparable.
    pub async fn run(&mut self, launch: &Launch, limits: &Limits) -> Result<Report, LimitError> {
        limits.check()?;
        self.runs += 1;
        let number = self.runs;
        let mut link = match self.link.take() {
            Some(link) => link.recover().await,
            None => None,
        };
        if link.is_none() {
            link = Some(self.reopen().await?);
        }
        let link = self.link.insert(link.ok_or(LimitError::SupervisorLost)?);
        self.requests.current.store(number, Ordering::SeqCst);
        let requests = Arc::clone(&self.requests);
        let result = link.run(number, &absolute(launch), limits, &requests).await;
        self.requests.current.store(0, Ordering::SeqCst);
        match result {
            Ok(Ok(mut report)) => {
                report.command = launch
                    .command
                    .iter()
                    .map(|argument| argument.to_string_lossy().into_owned())
                    .collect();
                Ok(report)
            }
            Ok(Err(error)) => Err(error),
            Err(_) => {
                if let Some(link) = self.link.take() {
                    link.bury().await;
                }
                Err(LimitError::SupervisorLost)
            }
        }
    }

    /// Replaces a lost supervisor by one that enforces limits in the same way.
    async fn reopen(&self) -> Result<Link, LimitError> {
        let same = Setup {
            level: Some(self.level),
            ..self.setup.clone()
        };
        let link = Link::open(&same).await?;
        let had = (self.level, self.memory);
        let has = (link.hello.level, link.hello.memory);
        if has != had {
            link.close().await;
            return Err(LimitError::Changed { had, has });
        }
        Ok(link)
    }

    /// Ends the supervisor and waits until it has cleaned up.
    pub async fn close(mut self) {
        if let Some(link) = self.link.take() {
            link.close().await;
        }
    }
}

/// Paths are resolved here: the supervisor's own directory is the one we had when it was started.
fn absolute(launch: &Launch) -> Launch {
    let resolve = |path: &PathBuf| std::path::absolute(path).unwrap_or_else(|_| path.clone());
    Launch {
        directory: Some(launch.directory.as_ref().map_or_else(
            || std::env::current_dir().unwrap_or_else(|_| ".".into()),
            resolve,
        )),
        input: match &launch.input {
            Input::File(path) => Input::File(resolve(path)),
            other => other.clone(),
        },
        ..launch.clone()
    }
}

/// The connection to one supervisor process.
#[derive(Debug)]
struct Link {
    stream: UnixStream,
    child: Child,
    hello: Hello,
    /// What has arrived of the next message; kept here so that a dropped future loses nothing.
    inbox: Vec<u8>,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Idle,
    /// A request may be half written.
    Asking,
    /// This run is in flight.
    Running(u64),
}

impl Link {
    async fn open(setup: &Setup) -> Result<Self, LimitError> {
        let binary = match &setup.binary {
            Some(binary) => binary.clone(),
            // Not `current_exe`: that names a file which may have been replaced while we run.
            None => PathBuf::from("/proc/self/exe"),
        };
        let failed = |errno: super::Errno| LimitError::Supervisor {
            binary: binary.display().to_string(),
            errno,
        };
        let (ours, theirs) = Pair::pair().map_err(|error| failed(error.into()))?;
        sys::send_descriptor(ours.as_fd(), std::io::stdin().as_fd())
            .map_err(|error| failed(error.into()))?;
        ours.set_nonblocking(true)
            .map_err(|error| failed(error.into()))?;
        let child = Command::new(&binary)
            .arg(SUPERVISE)
            .arg(setup.level.map_or("auto", Level::name))
            .stdin(Stdio::from(std::os::fd::OwnedFd::from(theirs)))
            .spawn()
            .map_err(|error| failed(error.into()))?;
        let stream = UnixStream::from_std(ours).map_err(|error| failed(error.into()))?;
        let mut link = Self {
            stream,
            child,
            hello: Hello {
                level: Level::Subreaper,
                memory: MemoryControl::Sampled,
                home: None,
                legacy: None,
            },
            inbox: Vec::new(),
            state: State::Idle,
        };
        let message = link
            .receive()
            .await
            .map_err(|_| LimitError::SupervisorLost)?;
        let hello: Result<Hello, LimitError> =
            serde_json::from_slice(&message).map_err(|_| LimitError::SupervisorLost)?;
        link.hello = hello?;
        Ok(link)
    }

    /// The body of the next message. Dropping the future loses nothing.
    async fn receive(&mut self) -> std::io::Result<Vec<u8>> {
        loop {
            if let Some((length, rest)) = self.inbox.split_first_chunk::<8>() {
                let length = usize::try_from(u64::from_le_bytes(*length)).unwrap_or(usize::MAX);
                if rest.len() >= length {
                    let message = rest[..length].to_vec();
                    self.inbox.drain(..8 + length);
                    return Ok(message);
                }
            }
            if self.stream.read_buf(&mut self.inbox).await? == 0 {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
        }
    }

    async fn run(
        &mut self,
        number: u64,
        launch: &Launch,
        limits: &Limits,
        requests: &Requests,
    ) -> std::io::Result<Result<Report, LimitError>> {
        self.state = State::Asking;
        self.stream
            .write_all(&wire::request(number, launch, limits))
            .await?;
        self.state = State::Running(number);
        let flight = Flight(self);
        let mut is_cancelled = false;
        loop {
            tokio::select! {
                biased;
                message = flight.0.receive() => {
                    let (answered, result) = wire::read_answer(&message?)?;
                    if answered == number {
                        flight.0.state = State::Idle;
                        return Ok(result);
                    }
                }
                () = requests.cancelled(number), if !is_cancelled => {
                    is_cancelled = true;
                    flight.0.stream.write_all(&wire::cancel(number)).await?;
                }
            }
        }
    }

    /// Makes the link usable after a dropped future; `None` if that cannot be done.
    async fn recover(mut self) -> Option<Self> {
        match self.state {
            State::Idle => Some(self),
            State::Asking => None,
            State::Running(number) => loop {
                let message = self.receive().await.ok()?;
                if wire::read_answer(&message).ok()?.0 == number {
                    self.state = State::Idle;
                    return Some(self);
                }
            },
        }
    }

    /// Ends the supervisor and waits until it has cleaned up.
    async fn close(self) {
        let Self {
            stream, mut child, ..
        } = self;
        drop(stream);
        let _ = child.wait().await;
    }

    /// Cleans up after a supervisor that is gone.
    async fn bury(mut self) {
        let _ = self.child.start_kill();
        let _ = self.child.wait().await;
        let Hello { home, legacy, .. } = self.hello;
        let _ = tokio::task::spawn_blocking(move || {
            if let Some(home) = home {
                cgroup::end_group(&home);
            }
            if let Some(legacy) = legacy {
                memory::remove(&legacy);
            }
        })
        .await;
    }
}

/// A run in flight, which ends if nobody waits for it any more.
struct Flight<'a>(&'a mut Link);

impl Drop for Flight<'_> {
    fn drop(&mut self) {
        if let State::Running(number) = self.0.state {
            // Nine bytes always fit, unless the supervisor is gone, and then there is nothing to end.
            let _ = self.0.stream.try_write(&wire::cancel(number));
        }
    }
}
