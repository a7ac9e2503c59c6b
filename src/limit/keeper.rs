//! The supervisor process: small, one command at a time, and the end of everything when its other side goes away.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::net::UnixStream;

use nix::sys::socket::{MsgFlags, recv};
use rustix::process::{Resource, Rlimit, set_child_subreaper, setrlimit};

use super::error::LimitError;
use super::level::Level;
use super::slot::{self, Options, Slot};
use super::sys;
use super::watch::{self, Stop, Urgency};
use super::wire::{self, CANCEL, Hello, RUN};

/// First argument of captime when it is to be a supervisor.
pub const SUPERVISE: &str = "__supervise";

/// Makes this process fit to supervise: deaf to signals (but, if asked, those that ask to stop), parent of all orphans,
/// no core dumps.
pub(super) fn settle(hears_stop: bool) {
    sys::quiet_signals(hears_stop);
    let _ = set_child_subreaper(Some(rustix::process::getpid()));
    let none = Rlimit {
        current: Some(0),
        maximum: Some(0),
    };
    let _ = setrlimit(Resource::Core, none);
}

/// Gets out of reach of whoever kills the process group of the captime we belong to.
///
/// Not a session of its own: that would also mean a share of the CPU of its own, and a wait for it.
pub(super) fn leave_process_group() {
    let _ = rustix::process::setpgid(None, None);
}

/// Serves runs over the socket on stdin until it closes. Gives the exit status of the process.
pub fn supervise(arguments: &[OsString]) -> u8 {
    settle(false);
    leave_process_group();
    let level = arguments
        .first()
        .and_then(|text| text.to_str())
        .and_then(|text| text.parse::<Level>().ok());
    let Ok(socket) = std::io::stdin().as_fd().try_clone_to_owned() else {
        return 1;
    };
    let mut socket = UnixStream::from(socket);
    let Ok(stdin) = sys::receive_descriptor(socket.as_fd()) else {
        return 1;
    };
    let options = Options {
        level,
        memory: true,
    };
    let served = slot::with(&options, move |slot| {
        match slot.and_then(|slot| slot.enter().map(|()| slot)) {
            Ok(slot) => {
                slot.stdin = Some(stdin);
                let hello = Hello {
                    level: slot.level(),
                    memory: slot.memory_control(),
                    home: slot.home(),
                    legacy: slot.legacy(),
                };
                wire::send_json(&mut socket, &Ok::<_, LimitError>(hello))?;
                serve(slot, &mut socket)
            }
            Err(error) => wire::send_json(&mut socket, &Err::<Hello, _>(error)),
        }
    });
    u8::from(served.is_err())
}

fn serve(slot: &mut Slot, socket: &mut UnixStream) -> std::io::Result<()> {
    loop {
        let mut first = [0];
        if socket.read(&mut first)? == 0 {
            return Ok(());
        }
        if first[0] != RUN {
            // Too late: that run had already ended.
            socket.read_exact(&mut [0; 8])?;
            continue;
        }
        let (number, launch, limits) = wire::read_request(socket)?;
        let mut stop = Line {
            socket: socket.try_clone()?,
            number,
        };
        let result = watch::run(slot, &launch, &limits, &mut stop);
        socket.write_all(&wire::answer(number, result)?)?;
        slot.prepare();
    }
}

/// The socket as the place where a cancellation comes from, or the end of the captime we serve shows.
struct Line {
    socket: UnixStream,
    number: u64,
}

impl Stop for Line {
    fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        vec![self.socket.as_fd()]
    }

    fn is_asked(&mut self) -> bool {
        let mut message = [0; 9];
        match self.socket.read_exact(&mut message) {
            Ok(()) if message[0] == CANCEL => message == wire::cancel(self.number),
            _ => true,
        }
    }

    fn urgency(&mut self) -> Urgency {
        // The end of the stream, or a second request: whoever asked does not wait any more.
        let flags = MsgFlags::MSG_PEEK | MsgFlags::MSG_DONTWAIT;
        match recv(self.socket.as_raw_fd(), &mut [0], flags) {
            Ok(_) => Urgency::Deserted,
            Err(_) => Urgency::None,
        }
    }
}
