//! Reads a run back from its journal: the one replay behind resuming, reports, `best` and `export`.

use std::collections::{BTreeMap, VecDeque};
use std::path::Path;

use super::{ResolvedScenario, RunError, State};
use crate::journal::{EndReason, Header, Learned, PullRecord, Reader, Replay, Step};

/// What earlier sessions left, besides the policy's knowledge.
#[derive(Debug, Default)]
pub struct Progress {
    /// Pulls that were launched but have no outcome: they run again, under the same round, seed and instance.
    pub in_flight: VecDeque<PullRecord>,
    /// Outcomes that are on disk but not learned from yet.
    pub waiting: VecDeque<Box<Learned>>,
    /// Sessions so far.
    pub sessions: u64,
    /// Seconds they took.
    pub seconds: f64,
    /// Why the last one ended, if the journal says so.
    pub ended: Option<EndReason>,
    /// How often each round was lost.
    pub lost: BTreeMap<u64, u32>,
}

/// Replays a journal to its end into a fresh `state`. `look` sees every step before it is replayed.
pub fn resume(
    reader: Reader,
    state: &mut State,
    mut look: impl FnMut(&Step),
) -> Result<(Reader, Progress), RunError> {
    let mut replay = Replay::new(reader);
    let mut progress = Progress::default();
    while let Some(step) = replay.next()? {
        look(&step);
        apply(&replay, state, &mut progress, &step)?;
    }
    progress.in_flight = replay.in_flight().copied().collect();
    while let Some(waiting) = replay.take_waiting() {
        progress.note(waiting.outcome.at);
        progress.waiting.push_back(waiting);
    }
    Ok((replay.into_reader(), progress))
}

/// Applies one step of a journal.
fn apply(
    replay: &Replay,
    state: &mut State,
    progress: &mut Progress,
    step: &Step,
) -> Result<(), RunError> {
    if !state.replay(step) {
        return Err(RunError::Foreign {
            line: replay.reader().lines(),
        });
    }
    match step {
        Step::Session(session) => {
            progress.sessions = session.session;
            progress.ended = None;
        }
        Step::Learned(learned) => progress.note(learned.outcome.at),
        Step::Calibrated(found) => progress.note(found.at),
        Step::End(end) => {
            progress.note(end.at);
            progress.ended = Some(end.end);
        }
        // A lost node says nothing about the round.
        Step::Lost(lost) if lost.node.is_some() => {}
        Step::Lost(lost) => *progress.lost.entry(lost.lost.0).or_default() += 1,
        Step::Opened(_) | Step::Launched(_) => {}
    }
    Ok(())
}

impl Progress {
    fn note(&mut self, at: Option<f64>) {
        self.seconds = self.seconds.max(at.unwrap_or(0.0));
    }
}

/// Reads the journal of a run, finished or still growing.
#[derive(Debug)]
pub struct RunReader {
    /// The first line.
    pub header: Header,
    /// The scenario, as it was when the run was started.
    pub resolved: ResolvedScenario,
    /// What the run knew at the last step that was applied.
    pub state: State,
    /// How far the run had come by then.
    pub progress: Progress,
    replay: Replay,
}

impl RunReader {
    /// Opens the run in `folder`. Reads only the first line.
    pub fn open(folder: &Path) -> Result<Self, RunError> {
        let reader = Reader::open(folder)?;
        let header = reader.header().clone();
        let resolved = ResolvedScenario::read(&header, folder)?;
        let state = State::new(resolved.plan());
        Ok(Self {
            header,
            resolved,
            state,
            progress: Progress::default(),
            replay: Replay::new(reader),
        })
    }

    /// Reads the run in `folder` to the end of its journal. `look` sees every step.
    pub fn read(folder: &Path, mut look: impl FnMut(&Step)) -> Result<Self, RunError> {
        let mut run = Self::open(folder)?;
        while let Some(step) = run.next()? {
            look(&step);
            run.apply(&step)?;
        }
        Ok(run)
    }

    /// The next step, to be passed to `apply`, or `None` at the end of what is written so far.
    #[expect(
        clippy::should_implement_trait,
        reason = "it may fail, and may be asked again later"
    )]
    pub fn next(&mut self) -> Result<Option<Step>, RunError> {
        let step = self.replay.next()?;
        // A written outcome counts as learned: readers need not wait for the decision that proves it.
        Ok(step.or_else(|| self.replay.take_waiting().map(Step::Learned)))
    }

    /// Applies a step.
    pub fn apply(&mut self, step: &Step) -> Result<(), RunError> {
        apply(&self.replay, &mut self.state, &mut self.progress, step)
    }

    /// The journal, as far as it has been read.
    pub fn journal(&self) -> &Reader {
        self.replay.reader()
    }

    /// Pulls without an outcome.
    pub fn in_flight(&self) -> impl Iterator<Item = &PullRecord> {
        self.replay.in_flight()
    }
}
