//! Finds limits by measuring: runs every arm, or a sample, once under the guard, then makes a grid between two
//! quantiles.

use std::collections::VecDeque;

use super::plan::Calibrate;
use super::schedule::{Choice, Planned, Schedule};
use crate::journal::{By, Calibrated, Learned, PullRecord};
use crate::round::{ArmId, Limit, LimitGrid, Observation, Pull, Purpose, Round, Seen, randomness};

/// A calibration under way.
#[derive(Debug)]
pub(super) struct Calibration {
    how: Calibrate,
    /// Arms not yet launched.
    to_launch: VecDeque<ArmId>,
    /// How many outcomes calibration needs.
    wanted: usize,
    /// The outcomes in order of arrival. The policy gets them all when it starts.
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

    /// The limit of every calibration pull.
    pub(super) fn guard(&self) -> Limit {
        self.how.guard
    }

    /// How many of the calibration's pulls have an outcome, and how many there are.
    pub(super) fn progress(&self) -> (usize, usize) {
        (self.outcomes.len().min(self.wanted), self.wanted)
    }

    /// The limits, once every pull has an outcome. Probes of other arms count too.
    pub(super) fn found(&self) -> Option<Calibrated> {
        let is_done = self.to_launch.is_empty() && self.outcomes.len() >= self.wanted;
        is_done.then(|| Calibrated {
            limits: self.limits().as_slice().to_vec(),
            at: None,
        })
    }

    /// The limits between the quantiles. Pulls that hit the guard or failed count as the guard's value.
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
        // If all consumptions are zero or equal, there are fewer limits, but always the upper one.
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

impl Schedule for Calibration {
    fn next(&mut self, _: Round) -> Choice {
        match self.to_launch.front() {
            Some(arm) => {
                let pull = Pull::new(*arm, self.how.guard);
                Choice::Pull(Planned::by(By::Calibration, pull))
            }
            None => Choice::Wait,
        }
    }

    fn launched(&mut self, pull: &PullRecord) {
        if self.to_launch.front() == Some(&pull.arm) {
            self.to_launch.pop_front();
        }
    }

    fn learned(&mut self, learned: &Learned) {
        self.outcomes
            .push((learned.pull.round, learned.observation));
    }
}

/// The quantile of ascending values by R's type 7, as in the paper's experiments.
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
    use crate::journal::OutcomeRecord;

    fn how(points: usize, arms: Option<usize>) -> Calibrate {
        Calibrate {
            guard: Limit::new(60.0).unwrap(),
            points,
            quantiles: (0.25, 0.75),
            arms,
        }
    }

    fn run(mut calibration: Calibration, consumption: impl Fn(usize) -> Option<f64>) -> LimitGrid {
        let guard = calibration.guard();
        for round in (1..).map(Round) {
            let Choice::Pull(planned) = calibration.next(round) else {
                break;
            };
            let pull = PullRecord {
                round,
                arm: planned.pull.arm,
                limit: planned.pull.limit,
                instance: None,
                seed: None,
                seen: 0,
                by: planned.by,
            };
            calibration.launched(&pull);
            let observation = match consumption(pull.arm.index()) {
                Some(value) => Observation::ended(planned.pull, 0.5, value).unwrap(),
                None => Observation::censored(planned.pull, guard.get()).unwrap(),
            };
            assert_eq!(calibration.found(), None);
            let outcome = OutcomeRecord::default();
            calibration.learned(&Learned {
                pull,
                observation,
                outcome,
            });
        }
        let limits = calibration.limits();
        assert_eq!(calibration.found().unwrap().limits, limits.as_slice());
        limits
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
