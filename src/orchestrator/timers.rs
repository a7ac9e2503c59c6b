//! What wakes the loop by itself: the end of the wall budget, and the ticks of whoever looks on.

use std::pin::Pin;
use std::time::{Duration, Instant};

use tokio::time::{Interval, MissedTickBehavior, Sleep};

pub(super) struct Timers {
    pub(super) wall: Option<Pin<Box<Sleep>>>,
    pub(super) tick: Option<Interval>,
}

impl Timers {
    pub(super) fn new(end: Option<Instant>, period: Option<Duration>) -> Self {
        Self {
            wall: end.map(|end| Box::pin(tokio::time::sleep_until(end.into()))),
            tick: period.map(|period| {
                let mut tick = tokio::time::interval(period);
                tick.set_missed_tick_behavior(MissedTickBehavior::Skip);
                tick
            }),
        }
    }
}

pub(super) async fn elapsed(timer: &mut Option<Pin<Box<Sleep>>>) {
    match timer {
        Some(timer) => timer.as_mut().await,
        None => std::future::pending().await,
    }
}

pub(super) async fn ticked(timer: &mut Option<Interval>) {
    match timer {
        Some(timer) => {
            timer.tick().await;
        }
        None => std::future::pending().await,
    }
}
