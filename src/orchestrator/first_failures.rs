//! Stops a run whose first pulls all fail, because its scenario is probably wrong. Other arms are tried first.

use std::collections::VecDeque;

use super::schedule::{Choice, Planned, Schedule};
use crate::journal::{By, EndReason, Learned, PullRecord};
use crate::round::{ArmId, Limit, Pull, Round};

/// How many failures at the start raise suspicion, and how many other arms are then tried.
const FIRST: usize = 5;

/// Watches the first outcomes, and tries other arms if all of them fail.
#[derive(Debug)]
pub(super) struct FirstFailures {
    suspicion: Suspicion,
    arms: usize,
    /// The limit that other arms are tried at.
    pub(super) limit: Limit,
}

#[derive(Debug)]
enum Suspicion {
    /// Nothing but failures so far, this many.
    Watching(usize),
    /// The first ones all failed. `to_launch` are the other arms still to try, `awaited` the outcomes still missing.
    Probing {
        to_launch: VecDeque<ArmId>,
        awaited: usize,
    },
    /// All of those failed too.
    Confirmed,
    /// Something did not fail, or the scenario turns this off.
    Off,
}

impl FirstFailures {
    pub(super) fn new(is_on: bool, arms: usize, limit: Limit) -> Self {
        Self {
            suspicion: if is_on {
                Suspicion::Watching(0)
            } else {
                Suspicion::Off
            },
            arms,
            limit,
        }
    }

    pub(super) fn is_confirmed(&self) -> bool {
        matches!(self.suspicion, Suspicion::Confirmed)
    }

    /// Records an outcome. `is_plain_failure` if it failed without hitting a guard.
    fn note(&mut self, is_plain_failure: bool, is_probe: bool) {
        match &mut self.suspicion {
            Suspicion::Off | Suspicion::Confirmed => {}
            _ if !is_plain_failure => self.suspicion = Suspicion::Off,
            Suspicion::Watching(failed) => {
                *failed += 1;
                if *failed >= FIRST {
                    let to_launch: VecDeque<ArmId> = spread(self.arms, FIRST).collect();
                    let awaited = to_launch.len();
                    self.suspicion = Suspicion::Probing { to_launch, awaited };
                }
            }
            Suspicion::Probing { awaited, .. } => {
                // Pulls that were already running when the probing began do not count as probes.
                *awaited -= usize::from(is_probe);
                if *awaited == 0 {
                    self.suspicion = Suspicion::Confirmed;
                }
            }
        }
    }
}

impl Schedule for FirstFailures {
    fn next(&mut self, _: Round) -> Choice {
        match &self.suspicion {
            Suspicion::Watching(_) | Suspicion::Off => Choice::Pass,
            Suspicion::Confirmed => Choice::Over(EndReason::FirstFailures),
            Suspicion::Probing { to_launch, .. } => match to_launch.front() {
                Some(arm) => Choice::Pull(Planned::by(By::Probe, Pull::new(*arm, self.limit))),
                None => Choice::Wait,
            },
        }
    }

    fn launched(&mut self, pull: &PullRecord) {
        if let Suspicion::Probing { to_launch, .. } = &mut self.suspicion
            && pull.by == Some(By::Probe)
        {
            to_launch.pop_front();
        }
    }

    fn learned(&mut self, learned: &Learned) {
        let outcome = &learned.outcome;
        let is_plain_failure = outcome.failed.is_some() && outcome.guard.is_none();
        self.note(is_plain_failure, learned.pull.by == Some(By::Probe));
    }
}

/// At most `most` arms, evenly spread from the first to the last.
pub fn spread(arms: usize, most: usize) -> impl Iterator<Item = ArmId> {
    let count = arms.min(most);
    (0..count).map(move |k| ArmId::from_index(k * (arms - 1) / (count - 1).max(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watch(arms: usize) -> FirstFailures {
        FirstFailures::new(true, arms, Limit::new(1.0).unwrap())
    }

    fn is_probing(watch: &mut FirstFailures) -> bool {
        matches!(watch.next(Round(1)), Choice::Pull(_) | Choice::Wait)
    }

    #[test]
    fn five_failures_and_five_failing_arms_confirm_it() {
        let mut watch = watch(672);
        for _ in 0..5 {
            assert_eq!(watch.next(Round(1)), Choice::Pass);
            watch.note(true, false);
        }
        let mut tried = vec![];
        while let Choice::Pull(Planned { pull, by, .. }) = watch.next(Round(6)) {
            tried.push(pull.arm.number());
            watch.launched(&PullRecord {
                round: Round(6),
                arm: pull.arm,
                limit: pull.limit,
                instance: None,
                seed: None,
                seen: 5,
                by,
            });
        }
        assert_eq!(tried, [1, 168, 336, 504, 672]);
        watch.note(true, false);
        for _ in 0..5 {
            assert_eq!(watch.next(Round(11)), Choice::Wait);
            watch.note(true, true);
        }
        let over = Choice::Over(EndReason::FirstFailures);
        assert_eq!(watch.next(Round(11)), over);
        assert!(watch.is_confirmed());
    }

    #[test]
    fn anything_else_among_them_ends_the_suspicion() {
        for lucky in 0..10 {
            let mut watch = watch(100);
            for outcome in 0..10 {
                watch.note(outcome != lucky, outcome >= 5);
            }
            assert!(!watch.is_confirmed() && !is_probing(&mut watch));
        }
        let mut off = FirstFailures::new(false, 1, Limit::new(1.0).unwrap());
        for _ in 0..20 {
            off.note(true, true);
        }
        assert!(!off.is_confirmed());
    }

    #[test]
    fn few_arms_are_tried_once_each() {
        let numbers = |arms, most| -> Vec<u32> { spread(arms, most).map(ArmId::number).collect() };
        assert_eq!(numbers(1, 5), [1]);
        assert_eq!(numbers(2, 5), [1, 2]);
        assert_eq!(numbers(6, 5), [1, 2, 3, 4, 6]);
    }
}
