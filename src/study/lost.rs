//! Pulls whose launcher went away: they say nothing about the pull, so it runs again, but not for ever.

use std::collections::BTreeMap;

use crate::journal::{Appender, JournalError, Lost, PullRecord};
use crate::target::{Failing, Measured, Outcome};

/// How often the pulls of one journal were lost.
#[derive(Debug)]
pub(crate) struct LostPulls {
    times: BTreeMap<u64, u32>,
    retries: u32,
}

impl LostPulls {
    /// None yet; each may run again so many times, the scenario's `retries`.
    pub(crate) fn new(retries: u32) -> Self {
        Self {
            times: BTreeMap::new(),
            retries,
        }
    }

    /// Writes down that a pull was lost. It is to run again, unless that happened too often: then this is what it brought.
    pub(crate) fn note(
        &mut self,
        journal: &mut Appender,
        pull: &PullRecord,
        why: String,
    ) -> Result<Option<Outcome>, JournalError> {
        let times = self.times.entry(pull.round.0).or_default();
        *times += 1;
        if *times > self.retries {
            let failing = Failing {
                reason: format!("lost {times} times: {why}"),
                guard: None,
                stderr: String::new(),
            };
            return Ok(Some(Outcome::failed(
                pull.pull(),
                failing,
                None,
                Measured::default(),
            )));
        }
        let lost = pull.round;
        journal.append(&Lost { lost, why })?;
        Ok(None)
    }
}
