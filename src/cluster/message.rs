//! The messages between the orchestrator and its agents.
//!
//! The scenario is sent once, in [`Open`]. A pull is then its arm, limit, instance and seed: a frame of about 100
//! bytes. Its end is one of about 300. That matters on Slurm, whose streams are fast up to 1,023 bytes and slow beyond.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::files::FileMark;
use super::node::NodeFacts;
use crate::round::{ArmId, Observation, ObservationError, Pull, Round, Seen};
use crate::target::{Ending, Failing, Measured, Outcome};

/// From the orchestrator.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ToAgent {
    /// The first message.
    Hello {
        /// The orchestrator's version.
        captime: String,
        /// An agent that receives nothing for this many seconds ends everything and exits.
        lost_after: f64,
    },
    /// What pulls run. Sent once, after both sides have said hello.
    Open(Box<Open>),
    /// The configuration of an arm of an open space. Sent once, before its first pull on this agent, and again if it changes.
    Arm {
        /// Its number.
        arm: ArmId,
        /// Parameters with their values, in their order.
        configuration: Vec<(String, Value)>,
    },
    /// Run this pull.
    Pull {
        /// In this slot of the agent.
        slot: usize,
        /// Its round.
        round: Round,
        /// The arm, the limit and the instance.
        pull: Pull,
        /// The seed for the target.
        seed: u64,
        /// Whether the configuration of the arm is the one sent last, not one of the scenario's list.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        is_sent: bool,
    },
    /// End the pull in this slot.
    Stop {
        /// Of the agent.
        slot: usize,
    },
    /// The orchestrator is still there.
    Beat,
    /// End everything and exit.
    Bye,
}

/// The work of an agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Open {
    /// The scenario's file, for messages.
    pub file: PathBuf,
    /// The folder its paths are relative to.
    pub folder: PathBuf,
    /// The checked scenario, as a journal stores it: a node needs none of the files that it was read from.
    pub scenario: Value,
    /// How many pulls at a time. By default, as many as the CPUs allow.
    pub slots: Option<usize>,
    /// The files that must be the same on every node.
    pub files: Vec<FileMark>,
}

/// From an agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FromAgent {
    /// The first message.
    Hello(Box<NodeFacts>),
    /// The agent is ready to run pulls.
    Opened {
        /// How many at a time.
        slots: usize,
        /// Which limits are enforced.
        enforcement: Value,
        /// CPUs to which another captime on this node has pinned its slots.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        shared_cpus: Vec<usize>,
    },
    /// Pulls cannot run on this node.
    Refused {
        /// Why.
        why: String,
    },
    /// A pull ended.
    Ended {
        /// The slot of the agent.
        slot: usize,
        /// The round.
        round: Round,
        /// How.
        end: Box<PullEnd>,
    },
    /// The agent is still there.
    Beat,
    /// The agent exits, and why.
    Leaving {
        /// Why.
        why: String,
    },
}

/// How a pull ended, as it is sent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PullEnd {
    /// It has an outcome.
    Brought(Brought),
    /// It was stopped.
    Stopped,
    /// Something on the node kept it from running, or from running to its end.
    Lost {
        /// What.
        why: String,
    },
    /// It could not be started, whatever its arm.
    NotStarted(Brought),
}

/// An [`Outcome`] as it is sent: without its pull, which the orchestrator knows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Brought {
    seen: Seen,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    failure: Option<Failing>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    consumption: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    score: Option<f64>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    clamped: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    read: Option<String>,
    measured: Measured,
}

impl From<Outcome> for Brought {
    fn from(outcome: Outcome) -> Self {
        Self {
            seen: outcome.observation.seen(),
            failure: outcome.failure,
            consumption: outcome.consumption,
            score: outcome.score,
            clamped: outcome.is_clamped,
            read: outcome.read,
            measured: outcome.measured,
        }
    }
}

impl Brought {
    /// The outcome of this pull, if it is one that a policy can learn from.
    fn of(self, pull: Pull) -> Result<Outcome, ObservationError> {
        let observation = match self.seen {
            Seen::Rewarded {
                reward,
                consumption,
            } => Observation::ended(pull, reward, consumption)?,
            Seen::Censored { at } => Observation::censored(pull, at.get())?,
            Seen::Failed => Observation::failed(pull),
        };
        Ok(Outcome {
            failure: self.failure,
            score: self.score,
            is_clamped: self.clamped,
            read: self.read,
            ..Outcome::of(observation, self.consumption, self.measured)
        })
    }
}

impl From<Ending> for PullEnd {
    fn from(ending: Ending) -> Self {
        match ending {
            Ending::Brought(outcome) => Self::Brought((*outcome).into()),
            Ending::Stopped => Self::Stopped,
            Ending::Lost { why } | Ending::NodeLost { why, .. } => Self::Lost { why },
            Ending::NotStarted(outcome) => Self::NotStarted((*outcome).into()),
        }
    }
}

impl PullEnd {
    /// How this pull ended.
    pub fn of(self, pull: Pull) -> Result<Ending, ObservationError> {
        Ok(match self {
            Self::Brought(brought) => Ending::Brought(Box::new(brought.of(pull)?)),
            Self::Stopped => Ending::Stopped,
            Self::Lost { why } => Ending::Lost { why },
            Self::NotStarted(brought) => Ending::NotStarted(Box::new(brought.of(pull)?)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::frames::encode;
    use super::*;
    use crate::round::{ArmId, Limit};
    use crate::target::Inexact;

    fn pull() -> Pull {
        Pull {
            instance: Some(4_000_000_000),
            ..Pull::new(
                ArmId::from_index(9_999_999),
                Limit::new(1.0 / 3.0 * 1e5).unwrap(),
            )
        }
    }

    fn outcome() -> Outcome {
        Outcome {
            observation: Observation::ended(pull(), 1.0 / 3.0, 2.0 / 3.0 * 1e4).unwrap(),
            failure: None,
            consumption: Some(2.0 / 3.0 * 1e4),
            score: Some(0.1 + 0.2),
            is_clamped: false,
            read: Some("rmse=0.3000000004".into()),
            node: None,
            measured: Measured {
                wall: Some(1e4 / 3.0),
                cpu: Some(2e4 / 3.0),
                memory: Some(u64::MAX >> 11),
                exit: Some(255),
                signal: None,
                inexact: Inexact {
                    cpu: true,
                    memory: true,
                },
            },
        }
    }

    #[test]
    fn endings_travel_unchanged() {
        for ending in [
            Ending::Brought(Box::new(outcome())),
            Ending::NotStarted(Box::new(Outcome {
                observation: Observation::failed(pull()),
                failure: Some(Failing {
                    reason: "no such program".into(),
                    guard: None,
                    stderr: String::new(),
                }),
                ..outcome()
            })),
            Ending::Stopped,
            Ending::Lost {
                why: "disk full".into(),
            },
        ] {
            let text = serde_json::to_string(&PullEnd::from(ending.clone())).unwrap();
            let arrived: PullEnd = serde_json::from_str(&text).unwrap();
            assert_eq!(arrived.of(pull()), Ok(ending));
        }
    }

    #[test]
    fn a_pull_and_its_end_stay_below_the_size_that_slurm_delays() {
        let start = ToAgent::Pull {
            slot: 4095,
            round: Round(u64::MAX),
            pull: pull(),
            seed: u64::MAX,
            is_sent: true,
        };
        let end = FromAgent::Ended {
            slot: 4095,
            round: Round(u64::MAX),
            end: Box::new(Ending::Brought(Box::new(outcome())).into()),
        };
        assert!(encode(&start).unwrap().len() < 200);
        assert!(encode(&end).unwrap().len() < 600);
    }

    #[test]
    fn what_no_policy_could_learn_from_is_refused() {
        let text =
            r#"{"brought":{"seen":{"rewarded":{"reward":7.0,"consumption":1.0}},"measured":{}}}"#;
        let end: PullEnd = serde_json::from_str(text).unwrap();
        assert!(end.of(pull()).is_err());
    }
}
