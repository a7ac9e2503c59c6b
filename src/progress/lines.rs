//! Progress without a terminal: a line at growing intervals.

use std::io::Write;
use std::time::{Duration, Instant};

use super::nonblocking_writer::NonblockingWriter;
use super::words::{self, LiveNodes, Words};
use crate::journal::{Calibrated, EndReason, PullRecord};
use crate::markup::visible;
use crate::orchestrator::{Now, Watch};
use crate::scenario::Resource;

/// Writes a line at growing intervals.
pub struct Lines {
    resource: Resource,
    to: NonblockingWriter<String>,
    started: Option<(Instant, u64)>,
    next: Duration,
    nodes: LiveNodes,
    next_nodes: Duration,
}

impl Lines {
    /// Writes to `to` about a run that limits this.
    pub fn new(resource: Resource, mut to: Box<dyn Write + Send>) -> Self {
        // If stderr is closed, the run continues without it.
        let show = move |line: String| drop(writeln!(to, "captime: {line}"));
        Self {
            resource,
            to: NonblockingWriter::new(show),
            started: None,
            next: Duration::from_secs(5),
            nodes: LiveNodes::default(),
            next_nodes: Duration::ZERO,
        }
    }

    fn say(&self, text: &str) {
        self.to.tell(visible(text).into_owned());
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
        let words = Words::of(now.state, self.resource);
        let doing =
            words::calibration(now.state).unwrap_or_else(|| words.best(now.state.recommend()));
        let tally = Words::tally(now.state.tally());
        let text = match &*words::budget(now, rate) {
            "" => format!("{tally}; {rate:.1} rounds/s; {doing}"),
            budget => format!("{tally}; {budget}; {rate:.1} rounds/s; {doing}"),
        };
        self.say(&text);
        // There may be many nodes: 5, 10, 20 seconds and so on, then every hour.
        if elapsed >= self.next_nodes {
            self.next_nodes = (2 * elapsed).min(elapsed + Duration::from_hours(1));
            for line in self.nodes.lines(now.state, usize::MAX) {
                self.say(&line);
            }
        }
    }

    fn calibrated(&mut self, found: &Calibrated, now: &Now<'_>) {
        let words = Words::of(now.state, self.resource);
        let limits: Vec<String> = found
            .limits
            .iter()
            .map(|limit| words.limit(*limit))
            .collect();
        self.say(&format!("calibrated: limits are {}", limits.join(", ")));
    }

    fn lost(&mut self, pull: &PullRecord, why: &str) {
        self.say(&words::lost(pull, why));
    }

    fn node(&mut self, node: &str, slots: usize) {
        self.nodes.change(node, slots);
    }

    fn noticed(&mut self, text: &str) {
        self.say(text);
    }

    fn stopping(&mut self, reason: EndReason, now: &Now<'_>) {
        if let Some(words) = words::stopping(reason, now) {
            self.say(words);
        }
    }
}
