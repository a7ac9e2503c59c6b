//! Limits from measurement: every arm, or some of them, once under the guard; then a grid between two quantiles.

use std::collections::VecDeque;

use super::plan::Calibrate;
use crate::round::{ArmId, LimitGrid, Observation, Purpose, Round, Seen, randomness};

/// A calibration under way.
#[derive(Debug)]
pub(super) struct Calibration {
    how: Calibrate,
    /// Arms not yet launched.
    to_launch: VecDeque<ArmId>,
    /// How many outcomes are awaited in all.
    wanted: usize,
    /// What came, in the order in which it came: the policy gets it all when it starts.
    pub(super) outcomes: Vec<(Round, Observation)>,
}

impl Calibration {
    pub(super) fn new(how: Calibrate, arms: usize, seed: u64) -> Self {
        let wanted = how.arms.unwrap_or(arms).clamp(1, arms);
        let to_launch: VecDeque<ArmId> = if wanted == arms {
            (0..arms).map(ArmId::from_index).collect()
        } else {
            let mut rng = randomness(seed, Round(0), Purpose::Calibrate);
            rand::seq::index::sample(&mut rng, arms, wanted)
                .into_iter()
                .map(ArmId::from_index)
                .collect()
        };
        Self {
            how,
            to_launch,
            wanted,
            outcomes: vec![],
        }
    }

    pub(super) fn how(&self) -> Calibrate {
        self.how
    }

    /// The next arm to measure; none while the last ones run.
    pub(super) fn next(&self) -> Option<ArmId> {
        self.to_launch.front().copied()
    }

    pub(super) fn launched(&mut self, arm: ArmId) {
        if self.to_launch.front() == Some(&arm) {
            self.to_launch.pop_front();
        }
    }

    pub(super) fn learned(&mut self, round: Round, seen: Observation) {
        self.outcomes.push((round, seen));
    }

    /// How many of the calibration's pulls have come in, of how many.
    pub(super) fn progress(&self) -> (usize, usize) {
        (self.outcomes.len().min(self.wanted), self.wanted)
    }

    /// Whether every pull has come in: probes of other arms count as well as any.
    pub(super) fn is_done(&self) -> bool {
        self.to_launch.is_empty() && self.outcomes.len() >= self.wanted
    }

    /// The limits between the quantiles. What hit the guard, or failed, counts as the guard's value.
    pub(super) fn limits(&self) -> LimitGrid {
        let guard = self.how.guard.get();
        let mut values: Vec<f64> = self
            .outcomes
            .iter()
            .map(|(_, seen)| match seen.seen() {
                Seen::Rewarded { consumption, .. } => consumption,
                Seen::Censored { .. } | Seen::Failed => guard,
            })
            .collect();
        values.sort_by(f64::total_cmp);
        let low = quantile(&values, self.how.quantiles.0);
        let high = quantile(&values, self.how.quantiles.1);
        // Consumptions of zero, or all alike, leave fewer limits; there is always the upper one.
        let high = if high > 0.0 { high } else { guard };
        let points = self.how.points.max(1);
        let grid = if low > 0.0 && low < high {
            LimitGrid::equidistant(low, high, points)
        } else if low <= 0.0 {
            LimitGrid::fractions(high, points)
        } else {
            LimitGrid::new([high])
        };
        grid.or_else(|_| LimitGrid::new([high]))
            .unwrap_or_else(|_| LimitGrid::new([guard]).expect("a guard is a limit"))
    }
}

/// The quantile of ascending values by R's type 7, as the paper's own experiments take it.
fn quantile(values: &[f64], share: f64) -> f64 {
    let Some(last) = values.len().checked_sub(1) else {
        return 0.0;
    };
    let place = share.clamp(0.0, 1.0) * last as f64;
    let below = place.floor() as usize;
    let above = (below + 1).min(last);
    values[below] + (place - below as f64) * (values[above] - values[below])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::round::{Limit, Pull};

    fn how(points: usize, arms: Option<usize>) -> Calibrate {
        Calibrate {
            guard: Limit::new(60.0).unwrap(),
            points,
            quantiles: (0.25, 0.75),
            arms,
        }
    }

    fn run(mut calibration: Calibration, consumption: impl Fn(usize) -> Option<f64>) -> LimitGrid {
        let guard = calibration.how().guard;
        let mut round = 0;
        while let Some(arm) = calibration.next() {
            calibration.launched(arm);
            round += 1;
            let pull = Pull::new(arm, guard);
            let seen = match consumption(arm.index()) {
                Some(value) => Observation::ended(pull, 0.5, value).unwrap(),
                None => Observation::censored(pull, guard.get()).unwrap(),
            };
            assert!(!calibration.is_done());
            calibration.learned(Round(round), seen);
        }
        assert!(calibration.is_done());
        calibration.limits()
    }

    #[test]
    fn type_7_quantiles_are_those_of_r() {
        let values = [1.0, 2.0, 4.0, 8.0, 16.0];
        assert_eq!(quantile(&values, 0.25), 2.0);
        assert_eq!(quantile(&values, 0.9), 12.8);
        assert_eq!(quantile(&[1.0, 2.0], 0.75), 1.75);
        assert_eq!(quantile(&[3.0], 0.3), 3.0);
    }

    #[test]
    fn the_grid_lies_between_the_quantiles() {
        let grid = run(Calibration::new(how(3, None), 5, 1), |arm| {
            Some(2_f64.powf(arm as f64))
        });
        let values: Vec<f64> = grid.as_slice().iter().map(|limit| limit.get()).collect();
        assert_eq!(values, [2.0, 5.0, 8.0]);
    }

    #[test]
    fn what_hit_the_guard_counts_as_the_guard() {
        let grid = run(Calibration::new(how(2, None), 4, 1), |arm| {
            (arm < 1).then_some(20.0)
        });
        assert_eq!(grid.as_slice()[0].get(), 50.0);
        assert_eq!(grid.max().get(), 60.0);
        let nothing = run(Calibration::new(how(10, None), 4, 1), |_| None);
        assert_eq!((nothing.len(), nothing.max().get()), (1, 60.0));
    }

    #[test]
    fn consumptions_of_zero_still_leave_limits() {
        let grid = run(Calibration::new(how(10, None), 4, 1), |_| Some(0.0));
        assert_eq!(grid.max().get(), 60.0);
    }

    #[test]
    fn a_sample_is_seeded_and_has_no_arm_twice() {
        let arms = |seed| {
            let calibration = Calibration::new(how(10, Some(60)), 672, seed);
            calibration.to_launch.into_iter().collect::<Vec<_>>()
        };
        assert_eq!(arms(1), arms(1));
        assert_ne!(arms(1), arms(2));
        let mut sample = arms(1);
        sample.sort_unstable();
        sample.dedup();
        assert_eq!(sample.len(), 60);
        assert_eq!(Calibration::new(how(10, Some(60)), 5, 1).wanted, 5);
    }
}
