//! A run as its journal tells it, finished or not, still going or killed: for `best`, `explain`, `export` and reports.

use std::path::Path;

use super::{Brief, Plan, Progress, RunError, State, resume};
use crate::journal::{Header, JournalError, Reader, Step};
use crate::space::Space;

/// What a journal says of its run.
#[derive(Debug)]
pub struct Past {
    /// The first line.
    pub header: Header,
    /// What is needed of the scenario.
    pub brief: Brief,
    /// The arms.
    pub space: Space,
    /// What the run knew at the end of its journal, with all outcomes in it.
    pub state: State,
    /// Where it stands.
    pub progress: Progress,
}

impl Past {
    /// Reads the run in `folder`; `look` sees every step, and then every outcome that no decision rests on yet.
    pub fn read(folder: &Path, mut look: impl FnMut(&Step)) -> Result<Self, RunError> {
        let reader = Reader::open(folder)?;
        let header = reader.header().clone();
        let (brief, plan, space) = settled(&header, folder)?;
        let mut state = State::new(plan);
        let (_, mut progress) = resume(reader, &mut state, &mut look)?;
        while let Some(waiting) = progress.waiting.pop_front() {
            state.learned(&waiting);
            look(&Step::Learned(waiting));
        }
        Ok(Self {
            header,
            brief,
            space,
            state,
            progress,
        })
    }
}

/// What the header says of the scenario.
pub fn settled(header: &Header, folder: &Path) -> Result<(Brief, Plan, Space), RunError> {
    let read = || -> Option<(Brief, Plan, Space)> {
        let brief: Brief = serde_json::from_value(header.resolved.clone()).ok()?;
        let plan = brief.plan(header.seed)?;
        let space = brief.space()?;
        Some((brief, plan, space))
    };
    read().ok_or_else(|| {
        RunError::Journal(JournalError::Senseless {
            path: folder.join(crate::journal::FILE),
            line: 1,
            what: "a header that names no arms, limits or policy this captime knows",
        })
    })
}
