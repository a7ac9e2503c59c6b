//! Writing to a terminal without waiting for it.
//!
//! A terminal stopped with Ctrl-S, or a pager that is not scrolled, blocks its writer for as long as it likes. A run must not
//! wait for that, so a separate thread does the writing, and output is dropped while that thread is stuck.

use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How many lines may wait. More are dropped.
const WAITING: usize = 64;
/// How long the end of a run waits for the last line.
const PATIENCE: Duration = Duration::from_millis(500);

/// Writes on its own thread.
pub(super) struct NonblockingWriter<T> {
    to: Option<SyncSender<Item<T>>>,
    /// The current screen: only the newest is written.
    standing: Arc<Mutex<Option<T>>>,
    /// Closed when everything has been written.
    over: Receiver<()>,
}

enum Item<T> {
    Line(T),
    /// The current screen has changed.
    Standing,
}

impl<T: Send + 'static> NonblockingWriter<T> {
    /// Calls `show` on a new thread. Writes nothing if no thread can be started.
    pub fn new(mut show: impl FnMut(T) + Send + 'static) -> Self {
        let (to, items) = sync_channel(WAITING);
        let (is_over, over) = sync_channel(0);
        let standing = Arc::new(Mutex::new(None));
        let newest = Arc::clone(&standing);
        let showing = move || {
            for item in items {
                let thing = match item {
                    Item::Line(line) => Some(line),
                    Item::Standing => take(&newest),
                };
                if let Some(thing) = thing {
                    show(thing);
                }
            }
            // Before `drop` returns, because the caller may write to the same place.
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

    /// Writes a line, unless too many wait already.
    pub fn tell(&self, line: T) {
        if let Some(to) = &self.to {
            // Dropped while the thread is stuck.
            let _ = to.try_send(Item::Line(line));
        }
    }

    /// Replaces the current screen.
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

impl<T> Drop for NonblockingWriter<T> {
    fn drop(&mut self) {
        self.to = None;
        // The thread signals its end by closing the channel. Nothing is ever sent.
        let _ = self.over.recv_timeout(PATIENCE);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::time::Instant;

    use super::*;

    #[test]
    fn everything_is_written_before_the_end() {
        let (shown, all) = channel();
        let writer = NonblockingWriter::new(move |number: u32| shown.send(number).unwrap());
        (0..10).for_each(|number| writer.tell(number));
        drop(writer);
        assert_eq!(
            all.try_iter().collect::<Vec<_>>(),
            (0..10).collect::<Vec<_>>()
        );
    }

    #[test]
    fn a_stuck_terminal_blocks_nothing_and_then_gets_the_newest_screen() {
        let (release, stuck) = channel::<()>();
        let (shown, all) = channel();
        let writer = NonblockingWriter::new(move |number: usize| {
            let _ = stuck.recv();
            shown.send(number).unwrap();
        });
        let since = Instant::now();
        (0..1000).for_each(|number| writer.show(number));
        writer.tell(5000);
        (1000..2000).for_each(|number| writer.show(number));
        assert!(since.elapsed() < Duration::from_secs(20));
        drop(release);
        drop(writer);
        // Until the thread has ended.
        let shown: Vec<usize> = all.iter().collect();
        assert!(shown.contains(&1999), "{shown:?}");
        assert!(shown.contains(&5000) && shown.len() <= 4, "{shown:?}");
    }
}
