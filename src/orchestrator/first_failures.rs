//! A run whose first pulls all fail is a wrong scenario, not data: found out early, with a look at other arms first.

use std::collections::VecDeque;

use crate::round::ArmId;

/// How many failures at the start raise suspicion, and how many other arms are looked at then.
const FIRST: usize = 5;

/// Watches the first outcomes.
#[derive(Debug)]
pub(super) enum FirstFailures {
    /// Nothing but failures so far, this many.
    Watching(usize),
    /// The first ones all failed: these arms are still to be tried, and so many outcomes of theirs are awaited.
    Probing {
        to_launch: VecDeque<ArmId>,
        awaited: usize,
    },
    /// All of those failed too.
    Tripped,
    /// Something did not fail, or nobody asked.
    Off,
}

impl FirstFailures {
    pub(super) fn new(is_asked_for: bool) -> Self {
        if is_asked_for {
            Self::Watching(0)
        } else {
            Self::Off
        }
    }

    /// The arm to try next, if other arms have to be tried.
    pub(super) fn next(&self) -> Option<ArmId> {
        match self {
            Self::Probing { to_launch, .. } => to_launch.front().copied(),
            _ => None,
        }
    }

    /// Whether decisions wait for what the other arms bring.
    pub(super) fn is_waiting(&self) -> bool {
        matches!(self, Self::Probing { .. })
    }

    pub(super) fn is_tripped(&self) -> bool {
        matches!(self, Self::Tripped)
    }

    pub(super) fn launched_probe(&mut self) {
        if let Self::Probing { to_launch, .. } = self {
            to_launch.pop_front();
        }
    }

    /// Takes note of an outcome; `is_plain_failure` if it failed without hitting a guard.
    pub(super) fn learned(&mut self, is_plain_failure: bool, is_probe: bool, arms: usize) {
        match self {
            Self::Off | Self::Tripped => {}
            _ if !is_plain_failure => *self = Self::Off,
            Self::Watching(failed) => {
                *failed += 1;
                if *failed >= FIRST {
                    let to_launch: VecDeque<ArmId> = spread(arms).collect();
                    let awaited = to_launch.len();
                    *self = Self::Probing { to_launch, awaited };
                }
            }
            Self::Probing { awaited, .. } => {
                // Pulls that were under way when the suspicion arose say nothing of other arms.
                *awaited -= usize::from(is_probe);
                if *awaited == 0 {
                    *self = Self::Tripped;
                }
            }
        }
    }
}

/// At most five arms, evenly spread from the first to the last.
pub(super) fn spread(arms: usize) -> impl Iterator<Item = ArmId> {
    let count = arms.min(FIRST);
    (0..count).map(move |k| ArmId::from_index(k * (arms - 1) / (count - 1).max(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_failures_and_five_failing_arms_trip_it() {
        let mut watch = FirstFailures::new(true);
        for _ in 0..5 {
            assert!(watch.next().is_none());
            watch.learned(true, false, 672);
        }
        let mut tried = vec![];
        while let Some(arm) = watch.next() {
            tried.push(arm.number());
            watch.launched_probe();
        }
        assert_eq!(tried, [1, 168, 336, 504, 672]);
        watch.learned(true, false, 672);
        for _ in 0..5 {
            assert!(watch.is_waiting() && !watch.is_tripped());
            watch.learned(true, true, 672);
        }
        assert!(watch.is_tripped());
    }

    #[test]
    fn anything_else_among_them_ends_the_suspicion() {
        for lucky in 0..10 {
            let mut watch = FirstFailures::new(true);
            for outcome in 0..10 {
                watch.learned(outcome != lucky, outcome >= 5, 100);
            }
            assert!(!watch.is_tripped() && !watch.is_waiting());
        }
        let mut off = FirstFailures::new(false);
        for _ in 0..20 {
            off.learned(true, true, 1);
        }
        assert!(!off.is_tripped());
    }

    #[test]
    fn few_arms_are_tried_once_each() {
        assert_eq!(spread(1).map(ArmId::number).collect::<Vec<_>>(), [1]);
        assert_eq!(spread(2).map(ArmId::number).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(
            spread(6).map(ArmId::number).collect::<Vec<_>>(),
            [1, 2, 3, 4, 6]
        );
    }
}
