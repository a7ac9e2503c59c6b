//! What the runs of an arm show under a limit, each instance once.
//!
//! A policy may run an arm on an instance under a small limit first, and again under a larger one only if that was not enough. Then the
//! runs that were granted a large limit are those on hard instances, and the runs that ended are those on easy ones. So an instance
//! counts by the run that shows most, one that was never granted the limit counts as far as it got, and the share that ends within
//! the limit is the product-limit estimate.

use std::collections::{BTreeMap, BTreeSet};

use super::{Evidence, FinishedRun};
use crate::round::ArmId;

/// With fewer instances than this, every run counts: their seeds are what differs.
pub(super) const LEAST_INSTANCES: usize = 8;

/// What the runs of an arm show under a limit.
#[derive(Debug)]
pub(super) struct Shown<'a> {
    /// How many runs that rests on, where an instance has one, or several that show as much.
    pub(super) runs: usize,
    /// The runs that ended within it, each with the share of all that it stands for.
    pub(super) ended: Vec<(&'a FinishedRun, f64)>,
    /// The share that does not end within it.
    pub(super) unsolved: f64,
}

/// Runs that failed, which say nothing about how long they would have taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Failed {
    /// They do not end within any limit.
    Unsolved,
    /// They do not count.
    LeftOut,
}

/// A run, how long it was watched, and how much it counts.
struct Watched<'a> {
    run: &'a FinishedRun,
    until: f64,
    has_ended: bool,
    weight: f64,
}

impl Evidence {
    /// What the runs of an arm show under this limit, none if they do not show what happens so late.
    pub(super) fn shown(&self, arm: ArmId, limit: f64, failed: Failed) -> Option<Shown<'_>> {
        let runs = self.of(arm);
        let instances: BTreeSet<u32> = runs.iter().filter_map(FinishedRun::instance).collect();
        let has_instances = instances.len() >= LEAST_INSTANCES;
        let mut by_instance: BTreeMap<(u32, usize), Vec<Watched<'_>>> = BTreeMap::new();
        for (place, run) in runs.iter().enumerate() {
            if run.is_failed && failed == Failed::LeftOut {
                continue;
            }
            let has_ended = run.is_solved_within(limit);
            let watched = Watched {
                run,
                has_ended,
                until: match run.consumption() {
                    Some(used) if has_ended => used,
                    _ if run.is_failed || run.reach >= limit => f64::INFINITY,
                    _ => run.reach,
                },
                weight: 1.0,
            };
            let instance = run.instance().filter(|_| has_instances);
            let key = instance.map_or((0, place + 1), |at| (at, 0));
            by_instance.entry(key).or_default().push(watched);
        }
        let is_known = |of: &Watched<'_>| of.has_ended || of.until.is_infinite();
        let mut all: Vec<Watched<'_>> = vec![];
        for (_, mut runs) in by_instance {
            if runs.iter().any(is_known) {
                runs.retain(is_known);
            } else {
                runs.sort_by(|a, b| b.until.total_cmp(&a.until));
                runs.truncate(1);
            }
            let weight = 1.0 / runs.len() as f64;
            for run in &mut runs {
                run.weight = weight;
            }
            all.extend(runs);
        }
        // Runs that ended come before those that were cut off then.
        all.sort_by(|a, b| {
            a.until
                .total_cmp(&b.until)
                .then(b.has_ended.cmp(&a.has_ended))
        });
        let (mut unsolved, mut ended) = (1.0, vec![]);
        let mut at_risk: f64 = all.iter().map(|of| of.weight).sum();
        for of in &all {
            if of.has_ended {
                let share = unsolved * of.weight / at_risk;
                ended.push((of.run, share));
                unsolved -= share;
            }
            at_risk -= of.weight;
        }
        let shows_the_end = all.last().is_some_and(is_known);
        shows_the_end.then_some(Shown {
            runs: all.len(),
            ended,
            unsolved: if unsolved < 1e-9 { 0.0 } else { unsolved },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::round::{Limit, Observation, Pull};

    fn run(evidence: &mut Evidence, instance: u32, limit: f64, seconds: f64) {
        let pull = Pull {
            instance: Some(instance),
            ..Pull::new(ArmId::from_index(0), Limit::new(limit).unwrap())
        };
        let seen = if seconds <= limit {
            Observation::ended(pull, 1.0, seconds)
        } else {
            Observation::censored(pull, limit)
        };
        evidence.add(&seen.unwrap(), None);
    }

    /// Of 30 instances, 20 end in 0.5 s, 5 in 5 s and 5 never. All run up to 1 s; of the ten that were cut off, six ran again up to 10 s.
    #[test]
    fn runs_that_were_repeated_because_they_were_cut_off_are_not_all_there_is() {
        let mut evidence = Evidence::default();
        let seconds = |instance: u32| match instance % 6 {
            0 => 5.0,
            1 => f64::INFINITY,
            _ => 0.5,
        };
        for instance in 0..30 {
            run(&mut evidence, instance, 1.0, seconds(instance));
        }
        for instance in (0..18).filter(|instance| seconds(*instance) > 1.0) {
            run(&mut evidence, instance, 10.0, seconds(instance));
        }
        let shown = evidence
            .shown(ArmId::from_index(0), 10.0, Failed::Unsolved)
            .unwrap();
        assert!((shown.unsolved - 1.0 / 6.0).abs() < 1e-12, "{shown:?}");
        assert_eq!(shown.runs, 30);
        let late = shown.ended.iter().filter(|(run, _)| run.reach > 1.0);
        let share: f64 = late.map(|(_, share)| share).sum();
        assert!((share - 1.0 / 6.0).abs() < 1e-12, "{shown:?}");
    }

    #[test]
    fn nothing_is_said_of_a_limit_that_no_run_was_granted() {
        let mut evidence = Evidence::default();
        run(&mut evidence, 0, 1.0, 0.5);
        run(&mut evidence, 1, 1.0, 3.0);
        assert!(
            evidence
                .shown(ArmId::from_index(0), 10.0, Failed::Unsolved)
                .is_none()
        );
        // Unless all have ended before.
        run(&mut evidence, 1, 4.0, 3.0);
        let shown = evidence
            .shown(ArmId::from_index(0), 10.0, Failed::Unsolved)
            .unwrap();
        assert_eq!((shown.runs, shown.unsolved), (3, 0.0));
    }

    #[test]
    fn instances_count_not_runs() {
        let mut evidence = Evidence::default();
        for instance in 0..8 {
            run(&mut evidence, instance, 1.0, 3.0);
        }
        for _ in 0..9 {
            run(&mut evidence, 8, 1.0, 0.5);
        }
        let shown = evidence
            .shown(ArmId::from_index(0), 1.0, Failed::Unsolved)
            .unwrap();
        assert!((shown.unsolved - 8.0 / 9.0).abs() < 1e-12);
        assert_eq!(shown.runs, 17);
    }
}
