//! What a pull returned, as the policy sees it. This module alone decides whether a pull counts as censored.

use serde::{Deserialize, Serialize};

use super::{Limit, Price, Pull};

/// What was observed about a pull: the feedback of the paper's eq. `def_feedback`, or a failure.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Seen {
    /// It ended within its limit and gave a reward.
    Rewarded {
        /// In [0, 1].
        reward: f64,
        /// What it used, at most its limit.
        consumption: f64,
    },
    /// It was still running at `at`, which may be below the requested limit and off any grid.
    Censored {
        /// How far it had run.
        at: Limit,
    },
    /// It crashed, or returned nothing that can be read as a reward. Counts as censored at its limit.
    Failed,
}

/// A pull and what was observed about it. Can only be built from values that a policy can learn from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Observation {
    pull: Pull,
    seen: Seen,
}

/// Why a policy cannot learn from a reported outcome.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ObservationError {
    /// Not a number, or outside [0, 1].
    #[error("reward {0} is not a number from 0 to 1")]
    Reward(f64),
    /// Not a number, infinite or negative.
    #[error("consumption {0} is not a number from 0 up")]
    Consumption(f64),
    /// Not a number, infinite, zero or negative.
    #[error("censored at {0}, which is not a positive number")]
    CensoredAt(f64),
}

impl ObservationError {
    /// What the user can change to get past this.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Reward(_) => {
                "map the score to [0, 1] first (`worst`/`best` in a scenario), or tell `failed`"
            }
            Self::Consumption(_) => {
                "give what the pull used, in the unit of the limits, or tell `failed`"
            }
            Self::CensoredAt(_) => "give how far the pull had run, in the unit of the limits",
        }
    }
}

impl Limit {
    /// Whether what used this much counts as cut off here, however it ended.
    pub fn is_passed_by(self, consumption: f64) -> bool {
        consumption > self.get()
    }
}

impl Observation {
    /// The pull ended with this reward after this consumption. Past its limit, it counts as censored.
    pub fn ended(pull: Pull, reward: f64, consumption: f64) -> Result<Self, ObservationError> {
        if !(0.0..=1.0).contains(&reward) {
            return Err(ObservationError::Reward(reward));
        }
        if !(consumption.is_finite() && consumption >= 0.0) {
            return Err(ObservationError::Consumption(consumption));
        }
        let seen = if pull.limit.is_passed_by(consumption) {
            Seen::Censored { at: pull.limit }
        } else {
            Seen::Rewarded {
                reward,
                consumption,
            }
        };
        Ok(Self { pull, seen })
    }

    /// The pull was cut off at `at`.
    pub fn censored(pull: Pull, at: f64) -> Result<Self, ObservationError> {
        let at = Limit::new(at).map_err(|_| ObservationError::CensoredAt(at))?;
        Ok(Self {
            pull,
            seen: Seen::Censored { at },
        })
    }

    /// The pull failed.
    pub fn failed(pull: Pull) -> Self {
        Self {
            pull,
            seen: Seen::Failed,
        }
    }

    /// The pull this is about.
    pub fn pull(&self) -> Pull {
        self.pull
    }

    /// What was observed about it.
    pub fn seen(&self) -> Seen {
        self.seen
    }

    /// The largest limit for which this pull shows whether it would have ended: the paper's tau_s.
    pub fn reach(&self) -> Limit {
        match self.seen {
            Seen::Rewarded { .. } | Seen::Failed => self.pull.limit,
            Seen::Censored { at } => at,
        }
    }

    /// Whether no reward was seen.
    pub fn is_censored(&self) -> bool {
        !matches!(self.seen, Seen::Rewarded { .. })
    }

    /// The gain of the round: reward minus cost, or minus the penalty of the limit it ran to.
    pub fn gain(&self, price: &Price) -> f64 {
        match self.seen {
            Seen::Rewarded {
                reward,
                consumption,
            } => reward - price.cost(consumption),
            Seen::Censored { .. } | Seen::Failed => -price.penalty(self.reach()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::ArmId;
    use super::*;

    fn pull(limit: f64) -> Pull {
        Pull::new(ArmId::from_index(0), Limit::new(limit).unwrap())
    }

    #[test]
    fn what_no_policy_could_digest_is_refused() {
        for reward in [f64::NAN, f64::INFINITY, -0.1, 1.1] {
            assert!(matches!(
                Observation::ended(pull(1.0), reward, 0.5),
                Err(ObservationError::Reward(_))
            ));
        }
        for consumption in [f64::NAN, f64::INFINITY, -0.1] {
            assert!(matches!(
                Observation::ended(pull(1.0), 0.5, consumption),
                Err(ObservationError::Consumption(_))
            ));
        }
        for at in [f64::NAN, f64::INFINITY, 0.0, -1.0] {
            assert!(matches!(
                Observation::censored(pull(1.0), at),
                Err(ObservationError::CensoredAt(_))
            ));
        }
    }

    #[test]
    fn ending_past_the_limit_is_censored_at_the_limit() {
        let seen = Observation::ended(pull(1.0), 0.5, 1.0 + 1e-9).unwrap();
        assert!(seen.is_censored());
        assert_eq!(seen.reach().get(), 1.0);
        assert!(
            !Observation::ended(pull(1.0), 0.5, 1.0)
                .unwrap()
                .is_censored()
        );
    }

    #[test]
    fn gain_is_reward_minus_cost_or_minus_penalty() {
        let price = Price::new("x", "10 * x", 2.0).unwrap();
        assert_eq!(
            Observation::ended(pull(2.0), 0.9, 1.0)
                .unwrap()
                .gain(&price),
            0.9 - 0.5
        );
        assert_eq!(
            Observation::censored(pull(2.0), 1.0).unwrap().gain(&price),
            -5.0
        );
        assert_eq!(Observation::failed(pull(2.0)).gain(&price), -10.0);
    }
}
