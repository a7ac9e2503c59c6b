//! Telling people things without waiting for them.
//!
//! A terminal that was stopped with Ctrl-S, or a pager that nobody scrolls, takes nothing for as long as it likes. The night's
//! work is not to wait for that, so what is shown is written by a thread of its own, and left out while that one is stuck.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

/// What may wait to be shown; what comes on top is dropped.
const WAITING: usize = 64;
/// How long the end of a run waits for the last of it.
const PATIENCE: Duration = Duration::from_millis(500);

/// Somebody who shows things, in his own time.
pub(super) struct Aside<T> {
    to: Option<SyncSender<T>>,
    /// Closed when everything has been shown.
    over: Receiver<()>,
}

impl<T: Send + 'static> Aside<T> {
    /// Lets `show` be told things on a thread of its own; nothing is shown where there can be no more threads.
    pub fn new(mut show: impl FnMut(T) + Send + 'static) -> Self {
        let (to, told) = sync_channel(WAITING);
        let (is_over, over) = sync_channel(0);
        let showing = move || {
            for thing in told {
                show(thing);
            }
            // Before whoever waits goes on, as it may write to the same place.
            drop(show);
            drop(is_over);
        };
        let thread = std::thread::Builder::new()
            .name("progress".into())
            .spawn(showing);
        Self {
            to: thread.is_ok().then_some(to),
            over,
        }
    }

    /// Has this shown, if whoever shows it has time.
    pub fn tell(&self, thing: T) {
        if let Some(to) = &self.to {
            let _ = to.try_send(thing);
        }
    }
}

impl<T> Drop for Aside<T> {
    fn drop(&mut self) {
        self.to = None;
        // It ends by being closed; nothing is ever sent.
        let _ = self.over.recv_timeout(PATIENCE);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::time::Instant;

    use super::*;

    #[test]
    fn everything_is_shown_before_the_end() {
        let (shown, all) = channel();
        let aside = Aside::new(move |number: u32| shown.send(number).unwrap());
        (0..10).for_each(|number| aside.tell(number));
        drop(aside);
        assert_eq!(
            all.try_iter().collect::<Vec<_>>(),
            (0..10).collect::<Vec<_>>()
        );
    }

    #[test]
    fn nobody_waits_for_one_who_is_stuck() {
        let (release, stuck) = channel::<()>();
        let aside = Aside::new(move |_: usize| stuck.recv().unwrap_or(()));
        let since = Instant::now();
        (0..10 * WAITING).for_each(|number| aside.tell(number));
        drop(aside);
        assert!(since.elapsed() < Duration::from_secs(20));
        drop(release);
    }
}
