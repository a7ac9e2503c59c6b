//! Where a run stood when it was last left.

use std::collections::VecDeque;

use super::{RunError, State};
use crate::journal::{EndReason, Learned, PullRecord, Reader, Replay, Step};

/// What the sessions so far have come to, besides what the policy knows.
#[derive(Debug, Default)]
pub struct Progress {
    /// Pulls that were launched but brought nothing: they run again, under the same round, seed and instance.
    pub in_flight: VecDeque<PullRecord>,
    /// Outcomes that are on disk but were not learned from.
    pub waiting: VecDeque<Box<Learned>>,
    /// Sessions so far.
    pub sessions: u64,
    /// Seconds they took.
    pub seconds: f64,
    /// Why the last one ended, if it said so.
    pub ended: Option<EndReason>,
    /// Failures of launchers by round.
    pub lost: std::collections::BTreeMap<u64, u32>,
}

/// Replays a journal to its end into `state`, which has not begun; `look` sees every step.
pub fn resume(
    reader: Reader,
    state: &mut State,
    mut look: impl FnMut(&Step),
) -> Result<(Reader, Progress), RunError> {
    let mut replay = Replay::new(reader);
    let mut progress = Progress::default();
    while let Some(step) = replay.next()? {
        look(&step);
        if !state.replay(&step) {
            return Err(RunError::Foreign {
                line: replay.reader().lines(),
            });
        }
        match &step {
            Step::Session(session) => {
                progress.sessions = session.session;
                progress.ended = None;
            }
            Step::Learned(learned) => progress.goes_on(learned.outcome.at),
            Step::Calibrated(found) => progress.goes_on(found.at),
            Step::End(end) => {
                progress.goes_on(end.at);
                progress.ended = Some(end.end);
            }
            Step::Lost(lost) => *progress.lost.entry(lost.lost.0).or_default() += 1,
            Step::Launched(_) => {}
        }
    }
    progress.in_flight = replay.in_flight().copied().collect();
    while let Some(waiting) = replay.take_waiting() {
        progress.goes_on(waiting.outcome.at);
        progress.waiting.push_back(waiting);
    }
    Ok((replay.into_reader(), progress))
}

impl Progress {
    fn goes_on(&mut self, at: Option<f64>) {
        self.seconds = self.seconds.max(at.unwrap_or(0.0));
    }
}
