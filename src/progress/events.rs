//! For programs: one JSON object per event on stdout, flushed at once.

use std::io::Write;

use serde_json::{Value, json};

use crate::journal::{Calibrated, EndReason, Learned, PullRecord};
use crate::orchestrator::{Now, Watch};
use crate::round::Seen;

/// Writes events.
pub struct Events {
    to: Box<dyn Write>,
    is_gone: bool,
}

impl Events {
    /// Writes to `to`.
    pub fn new(to: Box<dyn Write>) -> Self {
        Self { to, is_gone: false }
    }

    fn tell(&mut self, event: &Value) {
        let written = writeln!(self.to, "{event}").and_then(|()| self.to.flush());
        self.is_gone |= written.is_err();
    }
}

impl Watch for Events {
    fn launched(&mut self, slot: usize, pull: &PullRecord, now: &Now<'_>) {
        self.tell(&json!({
            "event": "launched",
            "round": pull.round,
            "slot": slot + 1,
            "arm": pull.arm,
            "configuration": now.state.space().configuration(pull.arm),
            "limit": pull.limit,
            "instance": pull.instance,
            "seed": pull.seed,
        }));
    }

    fn learned(&mut self, learned: &Learned, now: &Now<'_>) {
        let outcome = &learned.outcome;
        self.tell(&json!({
            "event": "outcome",
            "round": learned.pull.round,
            "arm": learned.pull.arm,
            "limit": learned.pull.limit,
            "outcome": match learned.observation.seen() {
                Seen::Rewarded { .. } => "rewarded",
                Seen::Censored { .. } => "censored",
                Seen::Failed => "failed",
            },
            "reward": outcome.reward,
            "consumption": outcome.consumption,
            "gain": now.state.price().map(|price| learned.observation.gain(price)),
            "failed": outcome.failed,
            "wall_seconds": outcome.wall,
            "cpu_seconds": outcome.cpu,
            "exit_code": outcome.exit,
            "signal": outcome.signal,
        }));
    }

    fn calibrated(&mut self, found: &Calibrated, _: &Now<'_>) {
        self.tell(&json!({"event": "calibrated", "limits": found.limits}));
    }

    fn lost(&mut self, pull: &PullRecord, why: &str) {
        self.tell(&json!({"event": "lost", "round": pull.round, "why": why}));
    }

    fn noticed(&mut self, text: &str) {
        self.tell(&json!({"event": "notice", "what": text}));
    }

    fn stopping(&mut self, reason: EndReason, _: &Now<'_>) {
        self.tell(&json!({"event": "stopping", "reason": reason}));
    }

    fn is_gone(&self) -> bool {
        self.is_gone
    }
}
