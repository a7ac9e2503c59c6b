//! The supervisor process: small, one command at a time, it ends everything when the main process goes away.

use std::ffi::OsString;
use std::io::{ErrorKind, PipeReader, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::net::RecvFlags;
use rustix::process::{
    DumpableBehavior, Resource, Rlimit, Signal, set_child_subreaper, set_dumpable_behavior,
    setrlimit,
};

use super::cgroup::{Places, base_with_memory, is_shortage};
use super::contain::{self, Contain};
use super::error::LimitError;
use super::guardian;
use super::level::Level;
use super::log::{self, Message};
use super::slot::{self, Options, Slot};
use super::sys;
use super::watch;
use super::wire::{self, CANCEL, Frame, Hello, PING, RUN, Reply};

/// Prepares this process to supervise: it ignores signals (except, if asked, those that ask to stop), inherits all orphans,
/// dumps no core, and cannot be traced by other processes of its user.
pub(super) fn settle(hears_stop: bool) {
    sys::quiet_signals(hears_stop);
    let _ = set_child_subreaper(Some(rustix::process::getpid()));
    let none = Rlimit {
        current: Some(0),
        maximum: Some(0),
    };
    let _ = setrlimit(Resource::Core, none);
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
}

/// Leaves the process group of the program that started it, and so the reach of signals to that group.
///
/// Not a session of its own: that would also mean a share of the CPU of its own, and a wait for it.
fn leave_process_group() {
    let _ = rustix::process::setpgid(None, None);
}

/// A program that was started to supervise: becomes the guardian of the process that does. Gives its exit status.
pub(crate) fn main(arguments: &[OsString]) -> u8 {
    settle(false);
    leave_process_group();
    let word = |at: usize| arguments.get(at).and_then(|text| text.to_str());
    let level = word(0).and_then(|text| text.parse::<Level>().ok());
    let contain = word(1).and_then(|text| text.parse::<Contain>().ok());
    u8::from(start(level, contain.unwrap_or_default()).is_err())
}

fn start(level: Option<Level>, contain: Contain) -> std::io::Result<()> {
    let mut socket = UnixStream::from(std::io::stdin().as_fd().try_clone_to_owned()?);
    let stdin = sys::receive_descriptor(socket.as_fd())?;
    // Open for as long as the guardian lives; and what the supervisor reports to it.
    let (mut life, mut hold_life) = std::io::pipe()?;
    let (facts, mut tell_facts) = std::io::pipe()?;
    let options = Options {
        level,
        memory: true,
        owner: std::process::id(),
        contain,
        is_single: false,
    };
    let forked = match fork(&options) {
        Ok(forked) => forked,
        Err(error) => return send_hello(&mut socket, &Err(error)),
    };
    if let Some(supervisor) = forked {
        drop((life, tell_facts, stdin));
        sys::sleep_through_continuation();
        socket.write_all(&wire::frame(Frame::Process, &supervisor.to_le_bytes()))?;
        // Now it may write to the socket itself.
        hold_life.write_all(&[0])?;
        guardian::watch(supervisor, socket.as_fd(), facts);
        drop(hold_life);
        return Ok(());
    }
    drop((hold_life, facts));
    life.read_exact(&mut [0])?;
    let served = serve(&options, socket, Some(stdin), Some(life), |hello| {
        serde_json::to_writer(&mut tell_facts, hello).map_err(Into::into)
    });
    sys::leave(u8::from(served.is_err()));
}

/// Forks a supervisor with the namespaces it needs; gives its number to the parent and nothing to the supervisor.
pub(super) fn fork(options: &Options) -> Result<Option<i32>, LimitError> {
    let contain = options.contain;
    if options.memory && options.level != Some(Level::Subreaper) && contain != Contain::Off {
        // This empties the group if that is necessary. In its namespace the supervisor would not see who else is in it.
        let _ = Places::locate().and_then(|places| base_with_memory(&places));
    }
    let user = rustix::process::geteuid().as_raw();
    let group = rustix::process::getegid().as_raw();
    let forked = sys::fork_alone(contain::fork_flags(contain)).map_err(|error| {
        if contain == Contain::Off || is_shortage(error.raw_os_error()) {
            LimitError::system("start a supervisor process", error)
        } else {
            LimitError::Contain {
                contain,
                errno: error.into(),
            }
        }
    })?;
    if forked.is_none() {
        // A failure shows when it enters its namespaces, which it then may not.
        let _ = contain::settle(contain, user, group);
    }
    Ok(forked)
}

fn send_hello(socket: &mut UnixStream, hello: &Result<Hello, LimitError>) -> std::io::Result<()> {
    socket.write_all(&wire::frame(Frame::Hello, &serde_json::to_vec(hello)?))
}

/// Serves runs over `socket` until it closes, or `life` does.
///
/// `stdin` is for commands that inherit it, the supervisor's own if absent. `tell` gets what the main process gets first.
pub(super) fn serve(
    options: &Options,
    mut socket: UnixStream,
    stdin: Option<OwnedFd>,
    life: Option<PipeReader>,
    tell: impl FnOnce(&Hello) -> std::io::Result<()> + Send,
) -> std::io::Result<()> {
    // The guardian made it so already; what is forked inherits all but this.
    let _ = set_child_subreaper(Some(rustix::process::getpid()));
    leave_process_group();
    slot::with(options, move |slot| {
        match slot.and_then(|slot| slot.enter().map(|()| slot)) {
            Ok(slot) => {
                slot.stdin = stdin;
                let hello = Hello {
                    level: slot.level(),
                    memory: slot.memory_control(),
                    contain: slot.contain,
                    home: slot.home(),
                    legacy: slot.legacy(),
                };
                tell(&hello)?;
                send_hello(&mut socket, &Ok(hello))?;
                answer_requests(slot, socket, life, options.is_single)
            }
            Err(error) => send_hello(&mut socket, &Err(error)),
        }
    })
}

fn answer_requests(
    slot: &mut Slot,
    socket: UnixStream,
    life: Option<PipeReader>,
    is_single: bool,
) -> std::io::Result<()> {
    // No further descriptor: there may be none left.
    let mut line = Line {
        socket,
        life,
        number: 0,
        inbox: Vec::new(),
        cancels: 0,
        is_deserted: false,
    };
    loop {
        let mut watched = line.watched();
        sys::wait(&mut watched, None)?;
        let (has_request, has_lost_its_guardian) =
            (sys::is_ready(&watched[..1]), sys::is_ready(&watched[1..]));
        drop(watched);
        if has_lost_its_guardian {
            return Ok(());
        }
        if !has_request {
            continue;
        }
        let mut socket = &line.socket;
        let mut head = [0; wire::SHORT];
        match socket.read_exact(&mut head) {
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(()),
            read => read?,
        }
        let (kind, rest) = (head[0], &head[1..]);
        if kind != RUN {
            // Too late: that run had already ended.
            if kind == PING {
                socket.write_all(&wire::frame(Frame::Pong, rest))?;
            }
            continue;
        }
        let (number, launch, limits) = wire::read_request(&mut rest.chain(socket))?;
        line.begin(number);
        let result = watch::run(slot, &launch, &limits, &mut line);
        // What could not be ended would be counted with the next run: then another supervisor takes over.
        let mut is_last = matches!(result, Err(LimitError::Unkillable { .. }));
        if slot.has_changed() {
            is_last = true;
            log::note(Message::Warning(
                "the command changed the priority, CPUs or resource limits of its supervisor process, which will be replaced"
                    .to_owned(),
            ));
        }
        let answer = Reply {
            number,
            result,
            is_last,
            messages: log::take(),
        };
        (&line.socket).write_all(&wire::frame(Frame::Reply, &answer.write()?))?;
        let is_over = is_last || is_single || line.is_deserted;
        if !is_over {
            slot.prepare();
        }
        // The command may have stopped it.
        if let Some(guardian) = rustix::process::getppid() {
            let _ = rustix::process::kill_process(guardian, Signal::CONT);
        }
        if is_over {
            return Ok(());
        }
    }
}

/// The socket, as the place where a cancellation comes from, or where the end of the main process shows.
pub(super) struct Line {
    socket: UnixStream,
    life: Option<PipeReader>,
    number: u64,
    inbox: Vec<u8>,
    /// Requests to end the run that were not looked at yet.
    cancels: u32,
    is_deserted: bool,
}

/// Whether a grace period may continue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Urgency {
    /// Nothing new.
    None,
    /// The run was to be ended (again).
    Again,
    /// No process waits for the run any more.
    Deserted,
}

impl Line {
    fn begin(&mut self, number: u64) {
        self.number = number;
        self.cancels = 0;
        self.inbox.clear();
    }

    /// What to wait for: the socket first.
    pub(super) fn watched(&self) -> Vec<sys::Watched<'_>> {
        let descriptors: [Option<BorrowedFd<'_>>; 2] = [
            Some(self.socket.as_fd()),
            self.life.as_ref().map(AsFd::as_fd),
        ];
        descriptors
            .into_iter()
            .flatten()
            .map(sys::readable)
            .collect()
    }

    fn has_lost_its_guardian(&mut self) -> bool {
        // Nothing is written to it any more.
        let is_lost = self.life.as_ref().is_some_and(|life| {
            let mut watched = [sys::readable(life.as_fd())];
            let _ = sys::wait(&mut watched, Some(std::time::Duration::ZERO));
            sys::is_ready(&watched)
        });
        self.is_deserted |= is_lost;
        is_lost
    }

    /// Takes in what was sent during a run, answers pings, and says whether the run is to end.
    pub(super) fn listen(&mut self) -> Urgency {
        self.has_lost_its_guardian();
        // Messages are never cut: all that come during a run have this length.
        let mut buffer = [0; 32 * wire::SHORT];
        loop {
            match rustix::net::recv(&self.socket, &mut buffer, RecvFlags::DONTWAIT) {
                Ok((0, _)) => {
                    self.is_deserted = true;
                    break;
                }
                Ok((count, _)) => self.inbox.extend_from_slice(&buffer[..count]),
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::AGAIN) => break,
                Err(_) => {
                    self.is_deserted = true;
                    break;
                }
            }
        }
        while let Some((message, _)) = self.inbox.split_first_chunk::<{ wire::SHORT }>() {
            if *message == wire::short(CANCEL, self.number) {
                self.cancels += 1;
            } else if message[0] == PING {
                let pong = wire::frame(Frame::Pong, &message[1..]);
                if self.socket.write_all(&pong).is_err() {
                    self.is_deserted = true;
                }
            }
            self.inbox.drain(..wire::SHORT);
        }
        if self.is_deserted {
            Urgency::Deserted
        } else if self.cancels > 0 {
            self.cancels -= 1;
            Urgency::Again
        } else {
            Urgency::None
        }
    }
}
