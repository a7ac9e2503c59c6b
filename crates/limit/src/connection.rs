//! The main process's end of one supervisor process: what is sent, what has arrived, and whether it is still alive.
//!
//! No waiting happens here. The blocking and the async face ([`super::blocking`], [`super::supervisor`]) and `captime exec`
//! ([`super::foreground`]) wait, each in its way, until [`Connection::descriptor`] is ready or [`Connection::next_look`]
//! has come, and then call [`Connection::step`].

use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::clock::Instant;
use super::contain::Contain;
use super::error::{Errno, LimitError};
use super::guardian::{self, Guardian};
use super::launch::{Input, Launch, Limits, Output};
use super::level::Level;
use super::report::Report;
use super::wire::{self, CANCEL, Frame, Hello, PING, Reply};
use super::{cgroup, log, sys, tree};

/// How supervisors are started.
///
/// New options may be added: write `..Setup::default()` when you make one.
#[derive(Debug, Clone, Default)]
pub struct Setup {
    /// The level wanted; the best there is if `None`.
    pub level: Option<Level>,
    /// What commands are kept from; other processes, where that is possible, if `None`.
    pub contain: Option<Contain>,
    /// The program to start as supervisor, which must use this crate; the running program if `None`.
    pub binary: Option<PathBuf>,
}

impl Setup {
    /// What to do without, after a supervisor could not be started with this: containment, if that was only a wish.
    pub(super) fn without_containment(&self, error: &LimitError) -> Option<Self> {
        let is_wish = self.contain.is_none() && matches!(error, LimitError::Contain { .. });
        is_wish.then(|| Self {
            contain: Some(Contain::Off),
            ..self.clone()
        })
    }
}

/// How often a supervisor is asked during a run whether it is alive.
const PING_PERIOD: Duration = Duration::from_secs(2);
/// How long it may take to answer before it is continued, in case it was stopped.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long it may take after that before it is killed.
const LAST_PATIENCE: Duration = Duration::from_secs(1);
/// How long after its limit and its grace period a run may take to end before the supervisor is looked at, and how often from then on.
const OVERDUE: Duration = Duration::from_millis(150);
/// How long a supervisor may take to start.
const START_PATIENCE: Duration = Duration::from_secs(20);
/// How long a guardian may take to end what its supervisor left.
const GUARDIAN_PATIENCE: Duration = Duration::from_secs(2);

/// The connection to one supervisor process.
#[derive(Debug)]
pub(super) struct Connection {
    stream: UnixStream,
    parent: Parent,
    /// The supervisor itself; 0 until it is known.
    pid: i32,
    /// The same beyond the reuse of its number.
    supervisor: Option<OwnedFd>,
    /// How it was started. A command may change that.
    share: sys::Share,
    pub(super) hello: Hello,
    /// What has arrived of the next frame.
    inbox: Vec<u8>,
    /// What is still to be sent.
    outbox: Vec<u8>,
    state: State,
    health: Health,
    /// The run that was asked for before the supervisor was ready.
    early: Option<u64>,
    /// How long the run in flight may take: its limit and its grace period.
    longest: Option<Duration>,
    /// When it should have ended, and the supervisor is looked at.
    overdue: Option<Instant>,
    /// Whether it was stopped when it was looked at last.
    was_halted: bool,
    /// Whether the supervisor has said that it is not fit for another run.
    is_last: bool,
}

/// Which process is the parent of the supervisor, and so watches over it.
#[derive(Debug)]
enum Parent {
    /// A guardian process, a child of this one.
    Guardian(GuardianProcess),
    /// This process.
    Ourselves(Guardian),
}

/// A guardian process. When dropped it is waited for in the background, so that it does not stay as a zombie.
#[derive(Debug)]
struct GuardianProcess(Option<Child>);

impl GuardianProcess {
    fn id(&self) -> i32 {
        let id = self.0.as_ref().map_or(0, Child::id);
        i32::try_from(id).unwrap_or(0)
    }

    fn has_ended(&mut self) -> bool {
        let is_alive = |child: &mut Child| matches!(child.try_wait(), Ok(None));
        if self.0.as_mut().is_none_or(|child| !is_alive(child)) {
            self.0 = None;
        }
        self.0.is_none()
    }
}

impl Drop for GuardianProcess {
    fn drop(&mut self) {
        if !self.has_ended()
            && let Some(mut child) = self.0.take()
        {
            let _ = std::thread::Builder::new().spawn(move || child.wait());
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// It has not said yet how it enforces limits.
    Starting(Instant),
    Idle,
    /// This run is in flight.
    Running(u64),
}

/// Whether a supervisor answers.
#[derive(Debug, Clone, Copy)]
enum Health {
    /// It has answered; ask again then.
    Good(Instant),
    /// It was asked and has not answered; act then.
    Asked(Instant),
    /// It did not answer in time and was continued; give up then.
    Continued(Instant),
}

/// What has come from a supervisor.
#[derive(Debug)]
pub(super) enum Event {
    /// It is ready to run commands, or cannot be.
    Ready(Result<(), LimitError>),
    /// The run with this number has ended.
    Ended(u64, Result<Report, LimitError>),
}

impl Connection {
    /// Starts a supervisor process: this program once more, or the one in `setup`.
    pub(super) fn open(setup: &Setup) -> Result<Self, LimitError> {
        // Refers to the hook that makes a program a supervisor, so that the linker keeps it.
        debug_assert!(sys::is_linked());
        let binary = match &setup.binary {
            Some(binary) => binary.clone(),
            // Not `current_exe`: that names a file which may have been replaced since this program was started.
            None => PathBuf::from("/proc/self/exe"),
        };
        let failed = |errno: Errno| LimitError::Supervisor {
            binary: binary.display().to_string(),
            errno,
        };
        let spawn = || -> std::io::Result<_> {
            let (ours, theirs) = UnixStream::pair()?;
            sys::send_descriptor(ours.as_fd(), std::io::stdin().as_fd())?;
            ours.set_nonblocking(true)?;
            let child = Command::new(&binary)
                .arg(sys::SUPERVISE)
                .arg(setup.level.map_or("auto", Level::name))
                .arg(setup.contain.unwrap_or(Contain::DEFAULT).name())
                .stdin(Stdio::from(OwnedFd::from(theirs)))
                .spawn()?;
            Ok((ours, child))
        };
        let (stream, child) = spawn().map_err(|error| failed(error.into()))?;
        let guardian = GuardianProcess(Some(child));
        Ok(Self::new(stream, Parent::Guardian(guardian), 0))
    }

    /// To a supervisor that was forked from this process. The socket must not block.
    pub(super) fn to_child(stream: UnixStream, pid: i32) -> Result<Self, LimitError> {
        let guardian = Guardian::of(pid).ok_or(LimitError::SupervisorLost)?;
        Ok(Self::new(stream, Parent::Ourselves(guardian), pid))
    }

    fn new(stream: UnixStream, parent: Parent, pid: i32) -> Self {
        let now = Instant::now();
        Self {
            stream,
            parent,
            pid,
            supervisor: open_pidfd(pid),
            share: sys::Share::now(),
            hello: Hello::default(),
            inbox: Vec::new(),
            outbox: Vec::new(),
            state: State::Starting(now.after(START_PATIENCE)),
            health: Health::Good(now.after(PING_PERIOD)),
            early: None,
            longest: None,
            overdue: None,
            was_halted: false,
            is_last: false,
        }
    }

    /// The process that supervises.
    pub(super) fn pid(&self) -> i32 {
        self.pid
    }

    /// What to wait for, and whether also until something can be sent.
    pub(super) fn descriptor(&self) -> (BorrowedFd<'_>, bool) {
        (self.stream.as_fd(), !self.outbox.is_empty())
    }

    /// When to call [`step`](Self::step) although nothing has come.
    pub(super) fn next_look(&self) -> Option<Instant> {
        match (self.state, self.health) {
            (State::Idle, _) => None,
            (State::Starting(look), _) => Some(look),
            (
                State::Running(_),
                Health::Good(look) | Health::Asked(look) | Health::Continued(look),
            ) => Some(self.overdue.map_or(look, |overdue| overdue.min(look))),
        }
    }

    /// Whether a run is in flight.
    #[cfg(feature = "tokio")]
    pub(super) fn is_running(&self) -> bool {
        matches!(self.state, State::Running(_))
    }

    /// Whether the supervisor is to be replaced before another run: [`bury`](Self::bury) it.
    pub(super) fn is_spent(&self) -> bool {
        self.is_last
    }

    /// Asks for a run; its end comes out of [`step`](Self::step). A supervisor that is still starting begins as soon as it is ready.
    pub(super) fn request(&mut self, number: u64, launch: &Launch, limits: &Limits) {
        self.outbox
            .extend(wire::request(number, &absolute(launch), limits));
        self.longest = limits.wall.map(|wall| wall.saturating_add(limits.grace));
        if matches!(self.state, State::Starting(_)) {
            self.early = Some(number);
        } else {
            self.begin(number);
        }
    }

    /// A run begins, as far as this end knows.
    fn begin(&mut self, number: u64) {
        self.state = State::Running(number);
        let now = Instant::now();
        self.health = Health::Good(now.after(PING_PERIOD));
        self.overdue = (self.longest).map(|longest| now.after(longest.saturating_add(OVERDUE)));
        self.was_halted = false;
    }

    /// Asks for the end of the run in flight, and sends that if it can be sent at once.
    pub(super) fn cancel(&mut self) {
        let running = match self.state {
            State::Running(number) => Some(number),
            State::Starting(_) => self.early,
            State::Idle => None,
        };
        if let Some(number) = running {
            self.outbox.extend(wire::short(CANCEL, number));
            let _ = self.send();
        }
    }

    fn send(&mut self) -> std::io::Result<()> {
        while !self.outbox.is_empty() {
            match self.stream.write(&self.outbox) {
                Ok(count) => drop(self.outbox.drain(..count)),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Sends and receives what can be without waiting, and looks after the supervisor. After an error nothing comes any more:
    /// call [`bury`](Self::bury).
    pub(super) fn step(&mut self) -> Result<Option<Event>, LimitError> {
        let lost = |_| LimitError::SupervisorLost;
        // What has arrived counts even if nothing can be sent any more.
        let sent = self.send();
        let mut has_ended = false;
        let mut buffer = [0; 1 << 14];
        loop {
            match self.stream.read(&mut buffer) {
                Ok(0) => {
                    has_ended = true;
                    break;
                }
                Ok(count) => {
                    self.inbox.extend_from_slice(&buffer[..count]);
                    // There was no more.
                    if count < buffer.len() {
                        break;
                    }
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(_) => {
                    has_ended = true;
                    break;
                }
            }
        }
        while let Some((kind, body)) = wire::take_frame(&mut self.inbox).map_err(lost)? {
            if let Some(event) = self.take(kind, &body).map_err(lost)? {
                return Ok(Some(event));
            }
        }
        if has_ended {
            return Err(LimitError::SupervisorLost);
        }
        sent.map_err(lost)?;
        self.look_after()?;
        Ok(None)
    }

    fn take(&mut self, kind: Frame, body: &[u8]) -> std::io::Result<Option<Event>> {
        let now = Instant::now();
        match kind {
            Frame::Process => {
                self.pid = i32::from_le_bytes(body.try_into().map_err(std::io::Error::other)?);
                self.supervisor = open_pidfd(self.pid);
            }
            Frame::Hello => {
                let hello: Result<Hello, LimitError> = serde_json::from_slice(body)?;
                self.state = State::Idle;
                if let Some(number) = self.early.take() {
                    self.begin(number);
                }
                return Ok(Some(Event::Ready(hello.map(|hello| self.hello = hello))));
            }
            Frame::Reply => {
                let answer = Reply::read(body)?;
                log::write(self.pid, answer.messages);
                self.is_last = answer.is_last;
                if self.state == State::Running(answer.number) {
                    self.state = State::Idle;
                }
                return Ok(Some(Event::Ended(answer.number, answer.result)));
            }
            Frame::Pong => self.health = Health::Good(now.after(PING_PERIOD)),
        }
        Ok(None)
    }

    /// Asks whether the supervisor is alive, continues it, or gives it up.
    fn look_after(&mut self) -> Result<(), LimitError> {
        let now = Instant::now();
        match self.state {
            State::Idle => return Ok(()),
            State::Starting(end) if now < end => return Ok(()),
            State::Starting(_) => return Err(self.stuck()),
            State::Running(_) => {}
        }
        if self.overdue.is_some_and(|overdue| overdue <= now) {
            // If it was stopped it is continued once: it may be stopped again and again.
            let is_halted = tree::is_halted(self.pid);
            if is_halted && self.was_halted {
                return Err(self.stuck());
            }
            self.wake();
            // It may have been given the last place in every queue, behind the processes that it should have ended by now.
            self.share.give_to(self.pid);
            tree::stop_all(self.pid);
            self.was_halted = is_halted;
            self.overdue = Some(now.after(OVERDUE));
        }
        match self.health {
            Health::Good(look) if look <= now => {
                self.share.give_to(self.pid);
                if let State::Running(number) = self.state {
                    self.outbox.extend(wire::short(PING, number));
                    let _ = self.send();
                }
                self.health = Health::Asked(now.after(PATIENCE));
            }
            Health::Asked(look) if look <= now => {
                tracing::warn!(
                    supervisor = self.pid,
                    "the supervisor process {}; continuing it",
                    tree::state_in_words(self.pid)
                );
                self.wake();
                self.health = Health::Continued(now.after(LAST_PATIENCE));
            }
            Health::Continued(look) if look <= now => return Err(self.stuck()),
            Health::Good(_) | Health::Asked(_) | Health::Continued(_) => {}
        }
        Ok(())
    }

    fn stuck(&self) -> LimitError {
        LimitError::SupervisorStuck {
            state: tree::state_in_words(self.pid),
        }
    }

    /// Continues the supervisor and its guardian, however they were stopped.
    fn wake(&self) {
        for pid in [self.guardian_pid(), self.pid] {
            cgroup::thaw(pid);
        }
        self.signal_guardian(Signal::CONT);
        self.signal_supervisor(Signal::CONT);
    }

    fn signal_supervisor(&self, signal: Signal) {
        if let Some(supervisor) = &self.supervisor {
            let _ = pidfd_send_signal(supervisor, signal);
        }
    }

    fn signal_guardian(&self, signal: Signal) {
        // A child that was not waited for yet keeps its number.
        if let Parent::Guardian(guardian) = &self.parent
            && let Some(pid) = Pid::from_raw(guardian.id())
        {
            let _ = rustix::process::kill_process(pid, signal);
        }
    }

    fn guardian_pid(&self) -> i32 {
        match &self.parent {
            Parent::Guardian(guardian) => guardian.id(),
            Parent::Ourselves(_) => 0,
        }
    }

    /// For a parent: looks whether the supervisor was stopped, and continues it.
    pub(super) fn look_at_child(&self) {
        if let Parent::Ourselves(guardian) = &self.parent {
            let _ = guardian.look();
        }
    }

    /// Ends the supervisor, which ends its run if it has one, and waits until it has cleaned up; if it does not, it is killed.
    pub(super) fn close(mut self) {
        let patience = match self.state {
            State::Running(_) => GUARDIAN_PATIENCE + PATIENCE,
            State::Starting(_) | State::Idle => PATIENCE,
        };
        let _ = self.stream.shutdown(std::net::Shutdown::Both);
        let deadline = Instant::now().after(patience);
        if !self.wait_for_end(deadline) {
            self.bury();
        }
    }

    /// Cleans up after a supervisor that is gone, or does not respond. Takes some seconds at most.
    pub(super) fn bury(mut self) {
        let _ = self.stream.shutdown(std::net::Shutdown::Both);
        match &self.parent {
            Parent::Ourselves(guardian) => {
                cgroup::thaw(self.pid);
                guardian.kill();
                guardian::sweep(&self.hello);
            }
            Parent::Guardian(_) => {
                let guardian = self.guardian_pid();
                self.wake();
                self.signal_supervisor(Signal::KILL);
                let deadline = Instant::now().after(GUARDIAN_PATIENCE);
                let mut has_ended = self.wait_for_end(Instant::now().after(OVERDUE));
                while !has_ended && Instant::now() < deadline {
                    // The command may have stopped the guardian too, or taken its descriptors away: what is below it is ended from here.
                    tree::kill_all(guardian, None);
                    self.wake();
                    has_ended = self.wait_for_end(Instant::now().after(OVERDUE));
                }
                if !has_ended {
                    self.signal_guardian(Signal::KILL);
                    let deadline = Instant::now().after(PATIENCE);
                    self.wait_for_end(deadline);
                }
                guardian::clean_groups(&self.hello);
                guardian::sweep_adopted(self.pid);
            }
        }
    }

    /// Waits until the guardian has ended; false if it has not by then.
    fn wait_for_end(&mut self, deadline: Instant) -> bool {
        let mut pause = Duration::from_micros(200);
        loop {
            let has_ended = match &mut self.parent {
                Parent::Guardian(guardian) => guardian.has_ended(),
                Parent::Ourselves(guardian) => match guardian.look() {
                    None => false,
                    Some(guardian::Death::Exited) => true,
                    Some(guardian::Death::Killed) => {
                        guardian::sweep(&self.hello);
                        true
                    }
                },
            };
            if has_ended {
                return true;
            }
            if Instant::now() >= deadline {
                return false;
            }
            self.wait_for_supervisor(pause, deadline);
            pause = (pause * 2).min(Duration::from_millis(5));
        }
    }

    /// Waits until the supervisor has ended or was stopped, if this process is its parent; for this long if not.
    fn wait_for_supervisor(&self, pause: Duration, deadline: Instant) {
        match (&self.parent, &self.supervisor) {
            (Parent::Ourselves(_), Some(supervisor)) => {
                let left = deadline.since(Instant::now());
                let _ = sys::wait(&mut [sys::readable(supervisor.as_fd())], Some(left));
            }
            _ => std::thread::sleep(pause),
        }
    }
}

fn open_pidfd(pid: i32) -> Option<OwnedFd> {
    pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty()).ok()
}

/// Paths are resolved here: the supervisor's own directory is the one that this process had when it started it.
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
        output: match &launch.output {
            Output::File(path) => Output::File(resolve(path)),
            other => other.clone(),
        },
        ..launch.clone()
    }
}

/// The report as the caller gets it: with the command, which does not travel.
pub(super) fn completed(mut report: Report, launch: &Launch) -> Report {
    report.command = launch
        .command
        .iter()
        .map(|argument| argument.to_string_lossy().into_owned())
        .collect();
    report
}
