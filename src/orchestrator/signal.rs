//! Signals that end a session in good order.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// SIGINT, SIGTERM and SIGHUP, those of them that were not ignored when we were started (`nohup`, background jobs).
#[derive(Debug)]
pub(crate) struct Signals {
    all: Vec<Signal>,
}

impl Signals {
    pub(crate) fn listen() -> io::Result<Self> {
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
        Ok(Self { all })
    }

    /// Waits for the next one.
    pub(crate) async fn next(&mut self) {
        std::future::poll_fn(|context| {
            let is_here = self
                .all
                .iter_mut()
                .any(|signal| signal.poll_recv(context).is_ready());
            if is_here {
                std::task::Poll::Ready(())
            } else {
                std::task::Poll::Pending
            }
        })
        .await;
    }
}

/// The mask of ignored signals; none known where /proc does not tell.
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
