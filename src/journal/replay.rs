//! A journal as a sequence of steps: what was launched and what was learned, in the order in which it happened.
//!
//! An outcome is written before it is learned from. So with several slots, its line may precede a launch that was
//! decided without it. Each pull records how many outcomes had been learned from when it was chosen, and that restores
//! the order exactly.

use std::collections::{BTreeMap, VecDeque};

use super::{
    ArmRecord, Calibrated, End, JournalError, Lost, OutcomeRecord, PullRecord, Reader, Record,
    Session,
};
use crate::round::{Observation, Round};

/// One thing that happened.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// captime was started on the run.
    Session(Session),
    /// An arm of an open space got its number: the pull that follows is its first.
    Opened(Box<ArmRecord>),
    /// A pull was started.
    Launched(PullRecord),
    /// The policy learned from an outcome.
    Learned(Box<Learned>),
    /// Calibration ended.
    Calibrated(Calibrated),
    /// A pull was lost, and will run again.
    Lost(Lost),
    /// A session ended.
    End(End),
}

/// A pull with its outcome.
#[derive(Debug, Clone, PartialEq)]
pub struct Learned {
    /// The pull.
    pub pull: PullRecord,
    /// What the policy sees of its outcome.
    pub observation: Observation,
    /// Everything that is known about its outcome.
    pub outcome: OutcomeRecord<'static>,
}

/// Gives the steps of a run.
#[derive(Debug)]
pub struct Replay {
    reader: Reader,
    in_flight: BTreeMap<Round, PullRecord>,
    /// Outcomes that are written, but perhaps not learned from yet.
    waiting: VecDeque<Box<Learned>>,
    /// Steps that have to wait until some of them are learned from, and until how many are.
    next: VecDeque<(u64, Step)>,
    /// The arm of the pull that is written next. Without that pull it was never opened.
    arm: Option<Box<ArmRecord>>,
    launched: u64,
    learned: u64,
}

impl Replay {
    /// Replays from the first record after the header.
    pub fn new(reader: Reader) -> Self {
        Self {
            reader,
            in_flight: BTreeMap::new(),
            waiting: VecDeque::new(),
            next: VecDeque::new(),
            arm: None,
            launched: 0,
            learned: 0,
        }
    }

    /// The journal behind it, as far as it has been read.
    pub fn into_reader(self) -> Reader {
        self.reader
    }

    /// The journal behind it.
    pub fn reader(&self) -> &Reader {
        &self.reader
    }

    /// Pulls without an outcome, by round.
    pub fn in_flight(&self) -> impl Iterator<Item = &PullRecord> {
        self.in_flight.values()
    }

    /// Outcomes that are on disk, but that no later decision is known to be based on. They are learned from next.
    ///
    /// A reader of a growing journal may take them early. Later steps stay the same.
    pub fn take_waiting(&mut self) -> Option<Box<Learned>> {
        let taken = self.waiting.pop_front();
        self.learned += u64::from(taken.is_some());
        taken
    }

    /// The next step, or `None` if the journal has no further whole line yet.
    #[expect(
        clippy::should_implement_trait,
        reason = "it may fail, and may be asked again later"
    )]
    pub fn next(&mut self) -> Result<Option<Step>, JournalError> {
        loop {
            if let Some((learned, _)) = self.next.front() {
                if self.learned >= *learned {
                    return Ok(self.next.pop_front().map(|(_, step)| step));
                }
                let Some(outcome) = self.waiting.pop_front() else {
                    return Err(self.senseless("a pull that rests on outcomes that are not there"));
                };
                self.learned += 1;
                return Ok(Some(Step::Learned(outcome)));
            }
            let written = self.learned + self.waiting.len() as u64;
            let Some(record) = self.reader.next()? else {
                return Ok(None);
            };
            match record {
                Record::Outcome(outcome) => {
                    let outcome = outcome.into_owned();
                    let Some(pull) = self.in_flight.remove(&Round(outcome.outcome)) else {
                        return Err(self.senseless("an outcome of a round that is not under way"));
                    };
                    let Ok(observation) = outcome.observation(pull.pull()) else {
                        return Err(self.senseless("an outcome that is not possible"));
                    };
                    self.waiting.push_back(Box::new(Learned {
                        pull,
                        observation,
                        outcome,
                    }));
                }
                Record::Pull(pull) => {
                    if pull.round.0 != self.launched + 1 {
                        return Err(self.senseless("a pull out of turn"));
                    }
                    self.launched += 1;
                    self.in_flight.insert(pull.round, pull);
                    if let Some(arm) = self.arm.take().filter(|arm| arm.arm == pull.arm) {
                        self.next.push_back((pull.seen, Step::Opened(arm)));
                    }
                    self.next.push_back((pull.seen, Step::Launched(pull)));
                }
                Record::Arm(arm) => self.arm = Some(arm),
                Record::Calibrated(limits) => {
                    self.next.push_back((written, Step::Calibrated(limits)));
                }
                Record::Session(session) => return Ok(Some(Step::Session(session))),
                Record::Lost(lost) => return Ok(Some(Step::Lost(lost))),
                Record::End(end) => return Ok(Some(Step::End(end))),
                Record::Header(_) => return Err(self.senseless("a second header")),
            }
        }
    }

    fn senseless(&self, what: &'static str) -> JournalError {
        JournalError::Senseless {
            path: self.reader.path().to_owned(),
            line: self.reader.lines(),
            what,
        }
    }
}
