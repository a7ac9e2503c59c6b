//! Without a terminal: a line now and then, at growing intervals.

use std::io::Write;
use std::time::{Duration, Instant};

use super::aside::Aside;
use super::words::{self, Words};
use crate::journal::{Calibrated, EndReason, PullRecord};
use crate::orchestrator::{Now, Watch};

/// Writes a line now and then.
pub struct Lines {
    words: Words,
    to: Aside<String>,
    started: Option<(Instant, u64)>,
    next: Duration,
}

impl Lines {
    /// Writes to `to`.
    pub fn new(words: Words, mut to: Box<dyn Write + Send>) -> Self {
        // Nobody reads it: the run itself matters, and goes on.
        let show = move |line: String| drop(writeln!(to, "captime: {line}"));
        Self {
            words,
            to: Aside::new(show),
            started: None,
            next: Duration::from_secs(5),
        }
    }

    fn say(&self, text: &str) {
        self.to.tell(text.to_owned());
    }
}

impl Watch for Lines {
    fn period(&self) -> Option<Duration> {
        Some(Duration::from_secs(1))
    }

    fn tick(&mut self, now: &Now<'_>) {
        let learned = now.state.tally().learned;
        let (started, before) = *self.started.get_or_insert((Instant::now(), learned));
        let elapsed = started.elapsed();
        if elapsed < self.next {
            return;
        }
        // 5, 10, 20, 40 seconds, then every minute.
        self.next = (2 * elapsed).min(elapsed + Duration::from_mins(1));
        let rate = (learned - before) as f64 / elapsed.as_secs_f64();
        let doing =
            words::calibration(now.state).unwrap_or_else(|| self.words.best(now.state.recommend()));
        let tally = self.words.tally(now.state.tally());
        let text = match &*words::budget(now, rate) {
            "" => format!("{tally}; {rate:.1} rounds/s; {doing}"),
            budget => format!("{tally}; {budget}; {rate:.1} rounds/s; {doing}"),
        };
        self.say(&text);
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
        self.say(&words::lost(pull, why));
    }

    fn stopping(&mut self, reason: EndReason, now: &Now<'_>) {
        if let Some(words) = words::stopping(reason, now) {
            self.say(words);
        }
    }
}
