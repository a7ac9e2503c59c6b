//! On a terminal: a bar, the best pair so far, and what runs in each slot.

use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::words::{self, Words};
use crate::journal::{Calibrated, EndReason, PullRecord};
use crate::orchestrator::{Now, Watch};
use crate::quantity;

/// More slots than this are not shown one by one.
const MOST_SLOTS: usize = 16;

/// Draws on stderr, five times a second.
pub struct Terminal {
    words: Words,
    all: MultiProgress,
    bar: ProgressBar,
    best: ProgressBar,
    slots: Vec<ProgressBar>,
    started: Option<(Instant, u64)>,
}

impl Terminal {
    /// Draws for a run with so many slots.
    pub fn new(words: Words, slots: usize) -> Self {
        let all = MultiProgress::with_draw_target(ProgressDrawTarget::stderr());
        let text = || {
            ProgressStyle::with_template("{msg}").unwrap_or_else(|_| ProgressStyle::default_bar())
        };
        let bar = all.add(ProgressBar::new(1000));
        if let Ok(style) = ProgressStyle::with_template("{bar:30} {msg}") {
            bar.set_style(style);
        }
        let line = || all.add(ProgressBar::no_length().with_style(text()));
        let best = line();
        let slots = (0..slots.min(MOST_SLOTS)).map(|_| line()).collect();
        Self {
            words,
            bar,
            best,
            slots,
            all: all.clone(),
            started: None,
        }
    }

    fn say(&self, text: &str) {
        // Nobody reads it: the run itself matters, and goes on.
        let _ = self.all.println(format!("captime: {text}"));
    }
}

impl Watch for Terminal {
    fn period(&self) -> Option<Duration> {
        Some(Duration::from_millis(200))
    }

    fn tick(&mut self, now: &Now<'_>) {
        let tally = now.state.tally();
        let (started, before) = *self.started.get_or_insert((Instant::now(), tally.learned));
        let rate = (tally.learned - before) as f64 / started.elapsed().as_secs_f64().max(0.001);
        let share = now
            .budget
            .share(tally.learned, now.seconds, tally.consumption)
            .unwrap_or(0.0);
        self.bar.set_position((1000.0 * share) as u64);
        self.bar.set_message(format!(
            "{}; {}",
            self.words.tally(tally),
            words::budget(now, rate)
        ));
        let doing =
            words::calibration(now.state).unwrap_or_else(|| self.words.best(now.state.recommend()));
        self.best.set_message(doing);
        for (number, (line, slot)) in self.slots.iter().zip(now.slots).enumerate() {
            line.set_message(match slot {
                None => format!("  slot {}  idle", number + 1),
                Some(running) => format!(
                    "  slot {}  round {}, {} up to {}, for {}",
                    number + 1,
                    running.pull.round,
                    self.words.arm(running.pull.arm),
                    self.words.limit(running.pull.limit),
                    quantity::seconds(running.since.elapsed().as_secs_f64())
                ),
            });
        }
    }

    fn calibrated(&mut self, found: &Calibrated, _: &Now<'_>) {
        let limits: Vec<String> = found
            .limits
            .iter()
            .map(|limit| self.words.limit(*limit))
            .collect();
        self.say(&format!("calibrated: limits are {}", limits.join(", ")));
    }

    fn lost(&mut self, pull: &PullRecord, why: &str) {
        self.say(&format!(
            "round {} was lost and runs again: {why}",
            pull.round
        ));
    }

    fn stopping(&mut self, reason: EndReason, now: &Now<'_>) {
        if reason == EndReason::Interrupted && now.slots.iter().any(Option::is_some) {
            self.say("stopping what runs; once more leaves at once");
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        for line in self.slots.iter().chain([&self.best, &self.bar]) {
            line.finish_and_clear();
        }
    }
}
