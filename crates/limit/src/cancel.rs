//! Ending a run from another thread.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::event::{EventfdFlags, eventfd};

use super::error::LimitError;

/// Ends the run in flight of one supervisor, from anywhere.
#[derive(Debug, Clone)]
pub struct Canceller(Arc<Requests>);

impl Canceller {
    /// Ends the run in flight with cause `cancelled`; false if there is none.
    ///
    /// Asking again ends the run's grace period.
    pub fn cancel(&self) -> bool {
        let current = self.0.current.load(Ordering::SeqCst);
        if current != 0 {
            self.0.asked.store(current, Ordering::SeqCst);
            let _ = rustix::io::write(&self.0.event, &1_u64.to_ne_bytes());
        }
        current != 0
    }
}

/// Which run is in flight and which is to be cancelled; runs count from 1, 0 is none.
#[derive(Debug)]
pub(super) struct Requests {
    current: AtomicU64,
    asked: AtomicU64,
    /// Readable once something was asked.
    event: OwnedFd,
}

impl Requests {
    pub(super) fn new() -> Result<Arc<Self>, LimitError> {
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(|error| LimitError::system("make an event", error))?;
        Ok(Arc::new(Self {
            current: AtomicU64::new(0),
            asked: AtomicU64::new(0),
            event,
        }))
    }

    pub(super) fn canceller(self: &Arc<Self>) -> Canceller {
        Canceller(Arc::clone(self))
    }

    /// From now on, until this is gone, run `number` is the one that can be cancelled.
    pub(super) fn fly(&self, number: u64) -> InFlight<'_> {
        self.current.store(number, Ordering::SeqCst);
        InFlight(self)
    }

    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }

    /// Whether run `number` is to be cancelled; true once for each time it was asked.
    pub(super) fn take(&self, number: u64) -> bool {
        let is_new = rustix::io::read(&self.event, &mut [0; 8]).is_ok();
        is_new && self.asked.load(Ordering::SeqCst) == number
    }
}

/// A run that can be cancelled.
pub(super) struct InFlight<'a>(&'a Requests);

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.0.current.store(0, Ordering::SeqCst);
    }
}
