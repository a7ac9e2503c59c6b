//! Formats the numbers of a run for people.

use std::collections::BTreeMap;

use crate::answer::{self, NodeRow};
use crate::journal::{EndReason, PullRecord};
use crate::markup::visible;
use crate::orchestrator::{Now, State, Tally};
use crate::policy::Recommendation;
use crate::quantity::{self, counted};
use crate::round::{ArmId, Limit};
use crate::scenario::Resource;
use crate::space::Space;
use crate::space::open::Origin;

/// What is needed to put a run into words.
#[derive(Debug, Clone, Copy)]
pub struct Words<'a> {
    /// The arms.
    pub space: &'a Space,
    /// What is limited.
    pub resource: Resource,
}

impl<'a> Words<'a> {
    /// About a run that limits this.
    pub fn of(state: &'a State, resource: Resource) -> Self {
        let space = state.space();
        Self { space, resource }
    }

    /// An arm by number and configuration.
    pub fn arm(&self, arm: ArmId) -> String {
        if arm.index() >= self.space.len() {
            // An arm of an open space gets its number and its configuration when it is pulled for the first time.
            return match self.space.opened() {
                Some(_) => "a new arm".into(),
                None => format!("arm {arm}"),
            };
        }
        let configuration = self.space.configuration(arm);
        if configuration.name().is_none() && configuration.is_empty() {
            format!("arm {arm}")
        } else {
            format!("arm {arm} ({})", visible(&configuration.in_short()))
        }
    }

    /// Where an arm of an open space came from.
    pub fn origin(&self, arm: ArmId) -> Option<&'a Origin> {
        let opened = self.space.opened()?;
        (arm.index() < opened.len()).then(|| opened.origin(arm))
    }

    /// A limit with its unit.
    pub fn limit(&self, limit: Limit) -> String {
        self.amount(limit.get())
    }

    /// A limit with what it is of: `62 ms of CPU time`.
    pub fn whole_limit(&self, limit: Limit) -> String {
        answer::quantity(self.resource, limit.get())
    }

    /// An amount of the limited resource.
    pub fn amount(&self, value: f64) -> String {
        self.resource.amount(value)
    }

    /// The best pair in one line.
    pub fn best(&self, best: Option<Recommendation>) -> String {
        match best {
            None => "best so far: no answer yet".into(),
            Some(best) => format!(
                "best so far: {} up to {}, {}",
                self.arm(best.pull.arm),
                self.limit(best.pull.limit),
                standing(&best)
            ),
        }
    }

    /// `1234 rounds, 12.3 % censored, 0.4 % failed`.
    pub fn tally(tally: Tally) -> String {
        let share = |count: u64| 100.0 * count as f64 / tally.learned.max(1) as f64;
        format!(
            "{}, {:.1} % censored, {:.1} % failed",
            counted(tally.learned, "round"),
            share(tally.censored),
            share(tally.failed)
        )
    }
}

/// `n1: 2 slots, 412 rounds, 3 lost with it (0.7 %), consumption 0.91 ± 0.02 of the mean node's`.
pub fn node_in_words(row: &NodeRow) -> String {
    let lost = match row.lost {
        0 => String::new(),
        lost => {
            let share = 100.0 * lost as f64 / (lost + row.rounds) as f64;
            format!(", {lost} lost with it ({share:.1} %)")
        }
    };
    let pace = row.pace.map_or_else(String::new, |pace| {
        let (factor, error) = (pace.factor, 2.0 * pace.error);
        format!(", consumption {factor:.2} ± {error:.2} of the mean node's")
    });
    let (slots, rounds) = (counted(row.slots, "slot"), counted(row.rounds, "round"));
    format!("{}: {slots}, {rounds}{lost}{pace}", visible(&row.node))
}

/// The nodes of a run during a session, with what a terminal can show of them.
#[derive(Debug, Default)]
pub(super) struct LiveNodes {
    /// How many pulls may run at a time on nodes that came or went.
    slots: BTreeMap<String, usize>,
}

impl LiveNodes {
    /// A node came or went.
    pub(super) fn change(&mut self, node: &str, slots: usize) {
        self.slots.insert(node.to_owned(), slots);
    }

    /// A line for every node, but for `most` at the most. None if pulls run on this machine only.
    pub(super) fn lines(&self, state: &State, most: usize) -> Vec<String> {
        let mut rows = state.nodes().recent_rows();
        for row in &mut rows {
            if let Some(slots) = self.slots.get(&row.node) {
                row.slots = *slots as u64;
            }
        }
        let mut lines: Vec<String> = (rows.iter().take(most))
            .map(|row| match row.slots {
                0 => format!("node {} (away)", node_in_words(row)),
                _ => format!("node {}", node_in_words(row)),
            })
            .collect();
        if let Some(rest) = rows.get(most..).filter(|rest| !rest.is_empty()) {
            let sum = |of: fn(&NodeRow) -> u64| rest.iter().map(of).sum();
            let slots = counted(sum(|row| row.slots), "slot");
            let rounds = counted(sum(|row| row.rounds), "round");
            let others = counted(rest.len() as u64, "other node");
            lines.push(format!("{others}: {slots}, {rounds}"));
        }
        lines
    }
}

/// A pull that was lost with its runner.
pub(super) fn lost(pull: &PullRecord, why: &str) -> String {
    format!(
        "round {} was lost and will run again: {}",
        pull.round,
        visible(why)
    )
}

/// The message when a run begins to stop.
pub(super) fn stopping(reason: EndReason, now: &Now<'_>) -> Option<&'static str> {
    let is_running = now.slots.iter().any(Option::is_some);
    (reason == EndReason::Interrupted && is_running)
        .then_some("stopping; press Ctrl-C again to quit now")
}

/// The gain of a pair with its interval and its number of pulls.
pub fn gain_in_words(best: &Recommendation) -> String {
    let (low, high) = best.interval;
    let unfinished = match (best.censored, best.pulls) {
        (0.0, _) => "none censored or failed".to_owned(),
        (1.0, _) => "all censored or failed".to_owned(),
        (share, _) => format!("{:.1} % censored or failed", 100.0 * share),
    };
    let pulls = rests_on(best);
    format!(
        "{:.4} (95 % interval {low:.4} to {high:.4}), {pulls}, {unfinished}",
        best.gain
    )
}

/// How much the gain of a pair rests on: pulls, or instances where a model counts what each showed.
fn rests_on(best: &Recommendation) -> String {
    let what = if best.is_predicted {
        "instance"
    } else {
        "pull"
    };
    counted(best.pulls, what)
}

/// The same in short, for a line that may be cut.
pub(super) fn standing(best: &Recommendation) -> String {
    let (low, high) = best.interval;
    let pulls = rests_on(best);
    format!("gain {:.4} ({low:.4} to {high:.4}), {pulls}", best.gain)
}

/// Seconds until the budget ends at the rate so far. `None` if that cannot be estimated.
pub(super) fn left(now: &Now<'_>, rounds_per_second: f64) -> Option<f64> {
    let tally = now.state.tally();
    let by_rounds = now
        .budget
        .rounds
        .filter(|_| rounds_per_second > 0.0)
        .map(|budget| budget.saturating_sub(tally.own_learned()) as f64 / rounds_per_second);
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

/// `41 %, about 12 s left`: the used share of the budget. Empty without a budget.
pub(super) fn budget(now: &Now<'_>, rounds_per_second: f64) -> String {
    let tally = now.state.tally();
    let share = now
        .budget
        .share(tally.own_learned(), now.seconds, tally.consumption)
        .map(|share| format!("{:.0} %", 100.0 * share));
    // Fractions of a rough estimate are useless.
    let left = left(now, rounds_per_second)
        .map(|left| format!("about {} left", quantity::seconds(left.ceil())));
    share.into_iter().chain(left).collect::<Vec<_>>().join(", ")
}

/// `calibrating: 12 of 60`, during calibration.
pub(super) fn calibration(state: &State) -> Option<String> {
    state
        .calibration()
        .map(|(done, of)| format!("calibrating: {done} of {of} pulls"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_arm_is_its_number_and_its_values() {
        let text = "target: external\narms: {grid: {decay: [0.8, 0.95]}}\nlimits: {of: cpu, grid: [1s, 10s]}\n";
        let checked = crate::scenario::parse(text, "mine.yaml".as_ref(), ".".as_ref()).unwrap();
        let words = Words {
            space: &checked.scenario.space,
            resource: Resource::Cpu,
        };
        assert_eq!(words.arm(ArmId::from_index(1)), "arm 2 (decay=0.95)");
        assert_eq!(words.limit(Limit::new(0.25).unwrap()), "250 ms");
    }

    #[test]
    fn an_arm_without_parameters_is_its_number() {
        let words = Words {
            space: &Space::numbered(3).unwrap(),
            resource: Resource::Wall,
        };
        assert_eq!(words.arm(ArmId::from_index(1)), "arm 2");
        assert_eq!(words.arm(ArmId::from_index(9)), "arm 10");
    }
}
