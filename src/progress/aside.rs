//! Telling people things without waiting for them.
//!
//! A terminal that was stopped with Ctrl-S, or a pager that nobody scrolls, takes nothing for as long as it likes. The night's
//! work is not to wait for that, so what is shown is written by a thread of its own, and left out while that one is stuck.

use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How many lines may wait to be shown; what comes on top is dropped.
const WAITING: usize = 64;
/// How long the end of a run waits for the last of it.
const PATIENCE: Duration = Duration::from_millis(500);

/// Somebody who shows things, in his own time.
pub(super) struct Aside<T> {
    to: Option<SyncSender<Item<T>>>,
    /// How things stand: only the newest matters.
    standing: Arc<Mutex<Option<T>>>,
    /// Closed when everything has been shown.
    over: Receiver<()>,
}

enum Item<T> {
    Line(T),
    /// Look at how things stand.
    Standing,
}

impl<T: Send + 'static> Aside<T> {
    /// Lets `show` be told things on a thread of its own; nothing is shown where there can be no more threads.
    pub fn new(mut show: impl FnMut(T) + Send + 'static) -> Self {
        let (to, told) = sync_channel(WAITING);
        let (is_over, over) = sync_channel(0);
        let standing = Arc::new(Mutex::new(None));
        let newest = Arc::clone(&standing);
        let showing = move || {
            for item in told {
                let thing = match item {
                    Item::Line(line) => Some(line),
                    Item::Standing => take(&newest),
                };
                if let Some(thing) = thing {
                    show(thing);
                }
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
            standing,
            over,
        }
    }

    /// Has this shown, unless too much waits already.
    pub fn tell(&self, line: T) {
        if let Some(to) = &self.to {
            // Nobody waits for one who is stuck.
            let _ = to.try_send(Item::Line(line));
        }
    }

    /// Has this shown in place of what was to be shown so before.
    pub fn show(&self, standing: T) {
        let Some(to) = &self.to else { return };
        let waiting = self
            .standing
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .replace(standing);
        if waiting.is_none()
            && let Err(TrySendError::Full(_)) = to.try_send(Item::Standing)
        {
            // Announced again next time.
            take(&self.standing);
        }
    }
}

fn take<T>(standing: &Mutex<Option<T>>) -> Option<T> {
    standing
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .take()
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
    fn nobody_waits_for_one_who_is_stuck_and_then_the_newest_is_shown() {
        let (release, stuck) = channel::<()>();
        let (shown, all) = channel();
        let aside = Aside::new(move |number: usize| {
            let _ = stuck.recv();
            shown.send(number).unwrap();
        });
        let since = Instant::now();
        (0..1000).for_each(|number| aside.show(number));
        aside.tell(5000);
        (1000..2000).for_each(|number| aside.show(number));
        assert!(since.elapsed() < Duration::from_secs(20));
        drop(release);
        drop(aside);
        // Until the thread has ended.
        let shown: Vec<usize> = all.iter().collect();
        assert!(shown.contains(&1999), "{shown:?}");
        assert!(shown.contains(&5000) && shown.len() <= 4, "{shown:?}");
    }
}
