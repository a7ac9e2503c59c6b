//! Signals that end a session in an orderly way.

use std::io;
use std::task::Poll;

use tokio::signal::unix::{Signal, SignalKind, signal};

use super::event::Event;

/// SIGINT, SIGTERM and SIGHUP, except those that were ignored when captime was started (`nohup`, background jobs).
#[derive(Debug)]
pub struct Signals {
    all: Vec<Signal>,
    /// SIGTSTP, once a session wants to know of it.
    suspend: Option<Signal>,
}

impl Signals {
    /// From now on these signals no longer end the process. Call it inside a tokio runtime.
    pub fn listen() -> io::Result<Self> {
        let ignored = ignored();
        let kinds = [
            SignalKind::interrupt(),
            SignalKind::terminate(),
            SignalKind::hangup(),
        ];
        let all = kinds
            .into_iter()
            .filter(|kind| ignored & (1 << (kind.as_raw_value() - 1)) == 0)
            .map(signal)
            .collect::<io::Result<_>>()?;
        Ok(Self { all, suspend: None })
    }

    /// Waits for the next one.
    pub async fn next(&mut self) {
        std::future::poll_fn(|context| {
            let is_here = self
                .all
                .iter_mut()
                .any(|signal| signal.poll_recv(context).is_ready());
            if is_here {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
        .await;
    }
}

impl Signals {
    /// Waits for the next one, or for Ctrl-Z, which from then on only does what [`suspend`] does.
    pub(super) async fn next_or_suspended(&mut self) -> Event {
        let is_ignored = || ignored() & (1 << (SUSPEND - 1)) != 0;
        if self.suspend.is_none() && !is_ignored() {
            self.suspend = signal(SignalKind::from_raw(SUSPEND)).ok();
        }
        std::future::poll_fn(|context| {
            let mut is_here = |signal: &mut Signal| signal.poll_recv(context).is_ready();
            if self.all.iter_mut().any(&mut is_here) {
                Poll::Ready(Event::Signal)
            } else if self.suspend.as_mut().is_some_and(is_here) {
                Poll::Ready(Event::Suspend)
            } else {
                Poll::Pending
            }
        })
        .await
    }
}

const SUSPEND: i32 = libc::SIGTSTP;

/// Stops this process until it is continued, as Ctrl-Z does to any other.
pub(super) fn suspend() {
    let _ = nix::sys::signal::raise(nix::sys::signal::Signal::SIGSTOP);
}

/// The mask of ignored signals, or 0 if /proc does not say.
fn ignored() -> u64 {
    std::fs::read_to_string("/proc/self/status")
        .ok()
        .and_then(|status| {
            let line = status
                .lines()
                .find_map(|line| line.strip_prefix("SigIgn:"))?;
            u64::from_str_radix(line.trim(), 16).ok()
        })
        .unwrap_or(0)
}
