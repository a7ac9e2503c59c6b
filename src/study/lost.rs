//! Pulls that say nothing because their launcher went away or the program was not there: they run again after a pause, but
//! not for ever.

use std::collections::BTreeMap;

use crate::journal::{Appender, Lost, PullRecord};
use crate::orchestrator::{PAUSES, RunError, Signals};
use crate::target::{Ending, Failing, Measured, Outcome};

/// How often the pulls of one journal were lost.
#[derive(Debug)]
pub(crate) struct LostPulls {
    times: BTreeMap<u64, u32>,
    retries: u32,
}

/// What is to be done about the end of a pull.
#[derive(Debug)]
pub(crate) enum Settled {
    /// It brought this.
    Brought(Box<Outcome>),
    /// It is to run again.
    Again,
    /// Somebody wants everything to stop; it runs again when the work goes on.
    Interrupted,
}

impl LostPulls {
    /// Those of earlier sessions; each pull may run again so many times, the scenario's `retries`.
    pub(crate) fn new(retries: u32, times: BTreeMap<u64, u32>) -> Self {
        Self { times, retries }
    }

    /// Settles how a pull ended that was not stopped by us.
    ///
    /// A pull that is lost again and again has failed, since nobody else can be at fault for ever; but a program that is
    /// not there any more (`has_run`: it once was) ends the work, which goes on when it is back.
    pub(crate) async fn settle(
        &mut self,
        journal: &mut Appender,
        pull: &PullRecord,
        ending: Ending,
        has_run: bool,
        signals: &mut Signals,
    ) -> Result<Settled, RunError> {
        let is_absent = matches!(ending, Ending::NotStarted(_));
        let why = match ending.settled(has_run) {
            Ending::Brought(outcome) | Ending::NotStarted(outcome) => {
                return Ok(Settled::Brought(outcome));
            }
            Ending::Stopped => return Ok(Settled::Interrupted),
            Ending::Lost { why } => why,
        };
        let times = self.times.entry(pull.round.0).or_default();
        *times += 1;
        journal.append(&Lost {
            lost: pull.round,
            why: why.clone(),
        })?;
        if *times > self.retries {
            if is_absent {
                // It may be tried as often when the work goes on.
                *times = 0;
                return Err(RunError::Lost { rounds: 1, why });
            }
            let failing = Failing {
                reason: format!("lost {times} times: {why}"),
                guard: None,
                stderr: String::new(),
            };
            let outcome = Outcome::failed(pull.pull(), failing, None, Measured::default());
            return Ok(Settled::Brought(Box::new(outcome)));
        }
        let pause = PAUSES[(*times as usize - 1).min(PAUSES.len() - 1)];
        Ok(tokio::select! {
            () = tokio::time::sleep(pause) => Settled::Again,
            () = signals.next() => Settled::Interrupted,
        })
    }
}
