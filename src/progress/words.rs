//! Numbers of a run as people read them.

use crate::journal::{EndReason, PullRecord};
use crate::orchestrator::{Now, State, Tally};
use crate::policy::Recommendation;
use crate::quantity::{self, counted};
use crate::round::{ArmId, Limit};
use crate::scenario::Resource;
use crate::space::Space;

/// What is needed to put a run into words.
#[derive(Debug, Clone)]
pub struct Words {
    /// The arms.
    pub space: Space,
    /// What is limited.
    pub resource: Resource,
}

impl Words {
    /// An arm by number and configuration.
    pub fn arm(&self, arm: ArmId) -> String {
        if arm.index() >= self.space.len() {
            return format!("arm {arm}");
        }
        let configuration = self.space.configuration(arm);
        if configuration.name().is_none() && configuration.is_empty() {
            format!("arm {arm}")
        } else {
            format!("arm {arm} ({configuration})")
        }
    }

    /// A limit with its unit.
    pub fn limit(&self, limit: Limit) -> String {
        self.amount(limit.get())
    }

    /// An amount of the limited resource.
    pub fn amount(&self, value: f64) -> String {
        self.resource.amount(value)
    }

    /// The best pair in one line.
    pub fn best(&self, best: Option<Recommendation>) -> String {
        match best {
            None => "best so far: nothing yet".into(),
            Some(best) => format!(
                "best so far: {} up to {}, {}",
                self.arm(best.pull.arm),
                self.limit(best.pull.limit),
                standing(&best)
            ),
        }
    }

    /// `1234 rounds, 12.3 % censored, 0.4 % failed`.
    pub fn tally(&self, tally: Tally) -> String {
        let share = |count: u64| 100.0 * count as f64 / tally.learned.max(1) as f64;
        format!(
            "{}, {:.1} % censored, {:.1} % failed",
            counted(tally.learned, "round"),
            share(tally.censored),
            share(tally.failed)
        )
    }
}

/// A pull that its launcher lost.
pub(super) fn lost(pull: &PullRecord, why: &str) -> String {
    format!("round {} was lost and runs again: {why}", pull.round)
}

/// What there is to say when a run begins to stop.
pub(super) fn stopping(reason: EndReason, now: &Now<'_>) -> Option<&'static str> {
    let is_running = now.slots.iter().any(Option::is_some);
    (reason == EndReason::Interrupted && is_running)
        .then_some("stopping what runs; once more leaves at once")
}

/// What is known of the best pair's gain.
pub(super) fn standing(best: &Recommendation) -> String {
    format!(
        "gain {:.4} [{:.4}, {:.4}] from {}",
        best.gain,
        best.interval.0,
        best.interval.1,
        counted(best.pulls, "pull")
    )
}

/// Seconds until the budget ends at the rate so far; none if nothing can be said.
pub(super) fn left(now: &Now<'_>, rounds_per_second: f64) -> Option<f64> {
    let tally = now.state.tally();
    let by_rounds = now
        .budget
        .rounds
        .filter(|_| rounds_per_second > 0.0)
        .map(|budget| budget.saturating_sub(tally.learned) as f64 / rounds_per_second);
    let by_wall = now
        .budget
        .wall
        .map(|budget| (budget - now.seconds).max(0.0));
    let by_consumption = now
        .budget
        .consumption
        .filter(|_| tally.consumption > 0.0)
        .map(|budget| (budget / tally.consumption - 1.0).max(0.0) * now.seconds);
    [by_rounds, by_wall, by_consumption]
        .into_iter()
        .flatten()
        .reduce(f64::min)
}

/// `41 %, about 12 s left`: how much of the budget is used; empty without a budget.
pub(super) fn budget(now: &Now<'_>, rounds_per_second: f64) -> String {
    let tally = now.state.tally();
    let share = now
        .budget
        .share(tally.learned, now.seconds, tally.consumption)
        .map(|share| format!("{:.0} %", 100.0 * share));
    // Nobody needs fractions of a guess.
    let left = left(now, rounds_per_second)
        .map(|left| format!("about {} left", quantity::seconds(left.ceil())));
    share.into_iter().chain(left).collect::<Vec<_>>().join(", ")
}

/// `calibrating: 12 of 60`, while it goes on.
pub(super) fn calibration(state: &State) -> Option<String> {
    state
        .calibration()
        .map(|(done, of)| format!("calibrating: {done} of {of} pulls"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_arm_without_parameters_is_its_number() {
        let words = Words {
            space: Space::numbered(3).unwrap(),
            resource: Resource::Wall,
        };
        assert_eq!(words.arm(ArmId::from_index(1)), "arm 2");
        assert_eq!(words.arm(ArmId::from_index(9)), "arm 10");
    }
}
