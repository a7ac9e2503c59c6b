//! The contents of a line.
//!
//! The first key of a line says what it is (`journal`, `session`, `pull`, `outcome`, ...), `n` is its number in the
//! file and `crc` the CRC-32 of all bytes before `,"crc"`. Numbers are written so that they read back to the last bit.

use std::borrow::Cow;
use std::num::NonZeroU32;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::Damage;
use crate::round::{ArmId, Guard, Inexact, Limit, Observation, ObservationError, Pull, Round};
use crate::space::open::Origin;

/// The newest format, which is written and read.
pub const VERSION: u64 = 2;

/// The first line: everything about the run that is fixed before its first round.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// The version of this format.
    pub journal: u64,
    /// The version of the captime that started the run.
    pub captime: String,
    /// The run's name.
    pub name: String,
    /// When it was started, in UTC.
    pub started: String,
    /// The scenario's file, as it was given.
    pub file: String,
    /// The folder its paths are relative to.
    pub folder: String,
    /// BLAKE3 of the checked scenario, however it is written.
    pub hash: String,
    /// The seed all randomness comes from.
    pub seed: u64,
    /// Whether the target runs in virtual time. Then no times are recorded, and nothing is synced before the end.
    #[serde(default, rename = "virtual")]
    pub is_virtual: bool,
    /// Where it was started.
    pub machine: Machine,
    /// Which limits can be enforced here. Null if nothing is run.
    pub enforcement: Value,
    /// The checked scenario, with what was read from the files it refers to: everything needed for resuming and
    /// reading.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub resolved: Value,
    /// The scenario's text, so that a reader needs no other file.
    pub scenario: String,
}

/// Where a run, or a part of it, ran.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// Its name.
    pub host: String,
    /// Kernel name and release.
    pub kernel: String,
    /// CPUs that captime may use.
    pub cpus: usize,
    /// The model of the CPUs.
    pub cpu: String,
    /// Bytes of memory.
    pub memory: u64,
}

/// captime was started on this run, for the first time or again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Session {
    /// Counted from 1.
    pub session: u64,
    /// When, in UTC; none in virtual time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<String>,
    /// Pulls at a time.
    pub slots: usize,
    /// The budget in force, which may be raised from session to session.
    pub budget: Value,
    /// Which limits can be enforced in this session.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub enforcement: Value,
}

/// What chose a pull, if not the policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum By {
    /// `limits.calibrate`, under the guard.
    Calibration,
    /// The default configuration, which is pulled first whatever the policy prefers.
    Default,
    /// Probing other arms after the first pulls all failed.
    Probe,
    /// `captime record`, which runs every arm in its turn.
    Record,
    /// `captime test`, which runs some arms side by side.
    Test,
    /// An earlier run, whose round was taken over with its outcome.
    Earlier,
}

/// An arm of an open space is about to be pulled for the first time: it gets its number.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ArmRecord {
    /// Its number.
    pub arm: ArmId,
    /// What it runs with.
    pub configuration: serde_json::Map<String, Value>,
    /// Where it came from.
    pub origin: Origin,
}

/// A pull is about to be started.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct PullRecord {
    /// Its round.
    #[serde(rename = "pull")]
    pub round: Round,
    /// The configuration.
    pub arm: ArmId,
    /// How far it may run.
    pub limit: Limit,
    /// The instance it runs on, counted from 1.
    #[serde(
        default,
        deserialize_with = "counted_from_one",
        skip_serializing_if = "Option::is_none"
    )]
    pub instance: Option<u32>,
    /// The seed for the target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// How many outcomes the policy had learned from when it chose.
    pub seen: u64,
    /// What chose it, if not the policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<By>,
}

impl PullRecord {
    /// The pull as policies know it: instances counted from 0.
    pub fn pull(&self) -> Pull {
        Pull {
            arm: self.arm,
            limit: self.limit,
            instance: self.instance.and_then(|number| number.checked_sub(1)),
        }
    }
}

/// Refuses an instance 0, which would otherwise read as none.
fn counted_from_one<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u32>, D::Error> {
    let number = Option::<NonZeroU32>::deserialize(from)?;
    Ok(number.map(NonZeroU32::get))
}

/// A pull ended. Has exactly one of `reward`, `censored` and `failed`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct OutcomeRecord<'a> {
    /// Its round.
    pub outcome: u64,
    /// The reward, if it ended within its limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reward: Option<f64>,
    /// How far it had run when it was stopped, or its limit if it ended by itself past it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub censored: Option<f64>,
    /// Why it gave no reward although it was not censored.
    #[serde(default, borrow, skip_serializing_if = "Option::is_none")]
    pub failed: Option<Cow<'a, str>>,
    /// What it used of the limited resource, however it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consumption: Option<f64>,
    /// The guard it hit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guard: Option<Guard>,
    /// The score as read, if `worst` and `best` map it to the reward.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
    /// Whether the score was outside `worst` and `best`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub clamped: bool,
    /// Wall time in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wall: Option<f64>,
    /// CPU time in seconds, all processes and threads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<f64>,
    /// Peak memory in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<u64>,
    /// Exit code of a command that exited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<i32>,
    /// Signal that ended a command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// The end of what a failed command wrote to stderr.
    #[serde(default, borrow, skip_serializing_if = "Option::is_none")]
    pub stderr: Option<Cow<'a, str>>,
    /// Which of `cpu` and `memory` is a lower bound although the session's enforcement is exact: `cpu`, `memory` or
    /// `cpu,memory`.
    #[serde(default, skip_serializing_if = "Inexact::is_exact")]
    pub inexact: Inexact,
    /// The slot it ran in, counted from 1, if there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slot: Option<u32>,
    /// The node it ran on, if captime runs pulls on several.
    #[serde(default, borrow, skip_serializing_if = "Option::is_none")]
    pub node: Option<Cow<'a, str>>,
    /// Seconds since the run began, over all its sessions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<f64>,
}

/// Why an outcome line cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum BadOutcome {
    /// None or several of `reward`, `censored` and `failed`.
    #[error("an outcome is one of `reward`, `censored` and `failed`")]
    NotOneOf,
    /// A value that is not possible.
    #[error(transparent)]
    Value(#[from] ObservationError),
}

impl OutcomeRecord<'_> {
    /// What the policy sees of it.
    pub fn observation(&self, pull: Pull) -> Result<Observation, BadOutcome> {
        match (self.reward, self.censored, &self.failed) {
            (Some(reward), None, None) => {
                let consumption = self.consumption.unwrap_or(f64::NAN);
                Ok(Observation::ended(pull, reward, consumption)?)
            }
            (None, Some(at), None) => Ok(Observation::censored(pull, at)?),
            (None, None, Some(_)) => Ok(Observation::failed(pull)),
            _ => Err(BadOutcome::NotOneOf),
        }
    }

    /// The same with owned texts.
    pub fn into_owned(self) -> OutcomeRecord<'static> {
        let own = |text: Option<Cow<'_, str>>| text.map(|text| Cow::Owned(text.into_owned()));
        OutcomeRecord {
            failed: own(self.failed),
            stderr: own(self.stderr),
            node: own(self.node),
            ..self
        }
    }
}

/// The grid that calibration found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Calibrated {
    /// Ascending.
    pub limits: Vec<Limit>,
    /// Seconds since the run began, over all its sessions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<f64>,
}

/// A pull whose runner was lost. It has no outcome, and its round runs again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Lost {
    /// Its round.
    pub lost: Round,
    /// What happened.
    pub why: String,
    /// The node that was lost with it, if captime runs pulls on several. Then the loss does not count against the
    /// round.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
}

/// Why a session ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum EndReason {
    /// All rounds of the budget are done.
    Rounds,
    /// The time budget is used up.
    Wall,
    /// The consumption budget is used up.
    Consumption,
    /// A signal.
    Interrupted,
    /// The first pulls all failed, so the scenario is probably wrong.
    FirstFailures,
}

/// A session ended in an orderly way.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct End {
    /// Why.
    pub end: EndReason,
    /// Seconds since the run began, over all its sessions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<f64>,
}

/// One line.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Record<'a> {
    /// The first line.
    Header(Box<Header>),
    /// captime started on this run.
    Session(Session),
    /// An arm gets its number.
    Arm(Box<ArmRecord>),
    /// A pull is about to start.
    Pull(PullRecord),
    /// A pull ended.
    Outcome(OutcomeRecord<'a>),
    /// Calibration ended.
    Calibrated(Calibrated),
    /// A pull was lost.
    Lost(Lost),
    /// A session ended.
    End(End),
}

/// Reads a line that was verified.
pub(super) fn read_line(line: &[u8]) -> Result<Record<'_>, Damage> {
    parse(line).map_err(|_| Damage::Unreadable)
}

fn parse(line: &[u8]) -> serde_json::Result<Record<'_>> {
    let text = std::str::from_utf8(line).map_err(serde::de::Error::custom)?;
    let first_key = text
        .strip_prefix("{\"")
        .and_then(|rest| rest.split('"').next());
    Ok(match first_key {
        Some("outcome") => Record::Outcome(serde_json::from_str(text)?),
        Some("arm") => Record::Arm(serde_json::from_str(text)?),
        Some("pull") => Record::Pull(serde_json::from_str(text)?),
        Some("journal") => Record::Header(serde_json::from_str(text)?),
        Some("session") => Record::Session(serde_json::from_str(text)?),
        Some("limits") => Record::Calibrated(serde_json::from_str(text)?),
        Some("lost") => Record::Lost(serde_json::from_str(text)?),
        Some("end") => Record::End(serde_json::from_str(text)?),
        _ => return Err(serde::de::Error::custom("unknown record")),
    })
}

#[cfg(test)]
mod tests {
    use super::super::seal::{verify, write_line};
    use super::*;

    fn line(record: &impl Serialize, n: u64) -> Vec<u8> {
        let mut lines = vec![];
        write_line(record, n, &mut lines);
        assert_eq!(lines.pop(), Some(b'\n'));
        lines
    }

    fn read_line(line: &[u8], n: u64) -> Result<Record<'_>, Damage> {
        verify(line, n)?;
        super::read_line(line)
    }

    fn pull() -> PullRecord {
        PullRecord {
            round: Round(7),
            arm: ArmId::from_index(16),
            limit: Limit::new(12.5).unwrap(),
            instance: Some(3),
            seed: Some(99),
            seen: 6,
            by: None,
        }
    }

    #[test]
    fn a_line_is_lean_json_that_reads_back() {
        let written = line(&pull(), 14);
        let text = String::from_utf8(written.clone()).unwrap();
        assert!(
            text.starts_with(
                r#"{"pull":7,"arm":17,"limit":12.5,"instance":3,"seed":99,"seen":6,"n":14,"crc":""#
            ),
            "{text}"
        );
        assert!(serde_json::from_str::<Value>(&text).is_ok());
        assert_eq!(read_line(&written, 14), Ok(Record::Pull(pull())));
    }

    #[test]
    fn numbers_read_back_to_the_last_bit() {
        for value in [0.1 + 0.2, 1e-300, f64::MAX, 5e-324, 1.0 / 3.0] {
            let record = OutcomeRecord {
                outcome: 1,
                reward: Some(0.5),
                consumption: Some(value),
                ..OutcomeRecord::default()
            };
            let written = line(&record, 1);
            assert_eq!(read_line(&written, 1), Ok(Record::Outcome(record)));
        }
    }

    #[test]
    fn an_outcome_is_one_thing() {
        let pull = pull().pull();
        assert_eq!(pull.instance, Some(2));
        let mut record = OutcomeRecord {
            outcome: 7,
            ..OutcomeRecord::default()
        };
        assert_eq!(record.observation(pull), Err(BadOutcome::NotOneOf));
        record.failed = Some("exit code 3".into());
        assert_eq!(record.observation(pull), Ok(Observation::failed(pull)));
        record.reward = Some(1.0);
        assert_eq!(record.observation(pull), Err(BadOutcome::NotOneOf));
        record.failed = None;
        assert!(
            record.observation(pull).is_err(),
            "a reward needs its consumption"
        );
        record.consumption = Some(1.0);
        assert_eq!(
            record.observation(pull),
            Ok(Observation::ended(pull, 1.0, 1.0).unwrap())
        );
    }

    #[test]
    fn an_unknown_word_and_an_instance_0_are_damage() {
        let outcome = OutcomeRecord {
            outcome: 7,
            failed: Some("hit the memory guard".into()),
            guard: Some(Guard::Memory),
            inexact: Inexact {
                cpu: true,
                memory: false,
            },
            ..OutcomeRecord::default()
        };
        let written = line(&outcome, 3);
        assert_eq!(read_line(&written, 3), Ok(Record::Outcome(outcome.clone())));
        // Another text, sealed as if captime had written it.
        let changed = |record: String, from: &str, to: &str| {
            assert!(record.contains(from), "{record}");
            let mut line = record.replace(from, to).into_bytes();
            super::super::seal::seal(3, 0, &mut line);
            read_line(&line, 3).map(|_| ())
        };
        let text = serde_json::to_string(&outcome).unwrap();
        assert_eq!(changed(text.clone(), r#""memory""#, r#""cpu""#), Ok(()));
        for (from, to) in [
            (r#""guard":"memory""#, r#""guard":"disk""#),
            (r#""inexact":"cpu""#, r#""inexact":"wall""#),
        ] {
            assert_eq!(
                changed(text.clone(), from, to),
                Err(Damage::Unreadable),
                "{to}"
            );
        }
        let text = serde_json::to_string(&pull()).unwrap();
        assert_eq!(
            changed(text, r#""instance":3"#, r#""instance":0"#),
            Err(Damage::Unreadable)
        );
    }
}
