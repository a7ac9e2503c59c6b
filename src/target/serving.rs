//! Runs pulls that another program chose: a pool of slots, and what runs in each of them.
//!
//! `captime pull` and `captime agent` use it. Captime's own decisions go through the driver of a run instead.

use std::collections::BTreeMap;

use super::{Ended, SlotPool, Start};

/// A pool of slots, with a note of the caller's for every pull that runs.
pub struct Serving<T> {
    pool: SlotPool,
    running: BTreeMap<usize, T>,
}

impl<T> Serving<T> {
    /// All slots are free.
    pub fn new(pool: SlotPool) -> Self {
        Self {
            pool,
            running: BTreeMap::new(),
        }
    }

    /// The first slot that is free.
    pub fn free(&self) -> Option<usize> {
        (0..self.pool.slots.max(1)).find(|slot| !self.running.contains_key(slot))
    }

    /// Whether every slot is free.
    pub fn is_idle(&self) -> bool {
        self.running.is_empty()
    }

    /// Starts a pull in its slot. False if there is no such slot, or if it is not free.
    pub fn start(&mut self, start: Start, note: T) -> bool {
        let slot = start.slot;
        if slot >= self.pool.slots.max(1) || self.running.contains_key(&slot) {
            return false;
        }
        self.running.insert(slot, note);
        self.pool.target.start(start);
        true
    }

    /// Stops the pull in this slot, if one is running. Its end arrives as usual.
    pub fn stop(&mut self, slot: usize) {
        if self.running.contains_key(&slot) {
            self.pool.target.stop(slot);
        }
    }

    /// Stops every pull that runs.
    pub fn stop_all(&mut self) {
        for slot in self.running.keys() {
            self.pool.target.stop(*slot);
        }
    }

    /// The next pull that has ended. Its slot is free once it is [released](Self::release). Safe to cancel.
    pub async fn ended(&mut self) -> Option<Ended> {
        self.pool.ends.recv().await
    }

    /// Makes a slot free, and returns the note about its pull.
    pub fn release(&mut self, slot: usize) -> Option<T> {
        self.running.remove(&slot)
    }

    /// Ends everything, and waits until nothing of it is left.
    pub async fn close(self) {
        self.pool.close().await;
    }

    /// Waits until everything that was stopped has ended. Safe to cancel.
    pub async fn until_idle(&mut self) {
        while !self.running.is_empty() {
            match self.pool.ends.recv().await {
                Some(ended) => drop(self.running.remove(&ended.slot)),
                None => return,
            }
        }
    }
}
