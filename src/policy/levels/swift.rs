//! Arms whose runs all ended: which of two is better shows before they have met all instances.
//!
//! To the model, an instance that an arm has not met may remain unsolved, which counts far more than how long runs take. So where
//! every run ends, the answer would go to an early arm that happens to have met the most instances. Such arms are compared
//! by the differences of their runs on the instances that both have met instead.

use super::arm::Cell;
use super::belief::Belief;

/// An arm with fewer runs is not compared.
const LEAST: usize = 8;

impl Belief {
    /// The best of these arms, if it is better than this one by more than a standard error, and if all runs of both ended by this
    /// level.
    pub(super) fn swifter(
        &self,
        than: usize,
        level: usize,
        arms: impl Iterator<Item = usize>,
    ) -> Option<usize> {
        let others = self.all_ended(than, level)?;
        let ahead = arms.filter(|arm| *arm != than).filter_map(|arm| {
            let runs = self.all_ended(arm, level)?.iter().zip(others);
            let gain = |run: &Cell| run.gain(self.levels);
            let differences = runs.filter_map(|(run, other)| Some(gain(run)? - gain(other)?));
            Some((arm, lower_bound(differences)?))
        });
        let best = ahead.max_by(|(_, a), (_, b)| a.total_cmp(b));
        best.filter(|(_, ahead)| *ahead > 0.0).map(|(arm, _)| arm)
    }

    /// What is known of an arm by position, if it has enough runs and all ended by this level.
    fn all_ended(&self, arm: usize, level: usize) -> Option<&[Cell]> {
        let cells = self.arms[arm].first_pass(self.instances);
        let mut runs = cells.iter().filter(|cell| cell.is_known(0));
        let are_enough = runs.clone().count() >= LEAST;
        (are_enough && runs.all(|run| run.has_ended_by(level))).then_some(cells)
    }
}

/// The mean of some differences less its standard error, if there are enough.
fn lower_bound(differences: impl Iterator<Item = f64>) -> Option<f64> {
    let add = |(count, sum, squares): (f64, f64, f64), difference: f64| {
        let square = difference * difference;
        (count + 1.0, sum + difference, squares + square)
    };
    let (count, sum, squares) = differences.fold((0.0, 0.0, 0.0), add);
    let variance = (squares - sum * sum / count).max(0.0) / (count - 1.0);
    (count >= LEAST as f64).then(|| sum / count - (variance / count).sqrt())
}

#[cfg(test)]
mod tests {
    use super::super::arm::Shown;
    use super::*;

    /// The first arm has met all twenty instances, and the second one twelve of them.
    fn belief(second: impl Fn(usize) -> Shown) -> Belief {
        let mut belief = Belief::new(2, 2, 20);
        for position in 0..20 {
            belief.learn(0, position, ended(0.98 + 0.0001 * position as f64));
            if position < 12 {
                belief.learn(1, position, second(position));
            }
        }
        belief.fit();
        belief
    }

    fn ended(gain: f64) -> Shown {
        Shown::Ended { level: 0, gain }
    }

    #[test]
    fn an_arm_that_is_faster_wherever_both_ran_is_preferred() {
        let faster = belief(|position| ended(0.983 + 0.0001 * position as f64));
        let lower = |arm: usize| {
            let brings = faster.arms[arm].brings;
            brings.mean - 2.0 * brings.variance.sqrt()
        };
        assert!(lower(0) > lower(1), "the model alone prefers the first arm");
        assert_eq!(faster.swifter(0, 1, 0..2), Some(1));
        assert_eq!(faster.swifter(1, 1, 0..2), None);
    }

    #[test]
    fn an_arm_with_a_run_that_did_not_end_or_with_few_runs_is_not() {
        let outlived = Shown::Outlived {
            levels: 1,
            assumed: 1,
        };
        let cut_off = belief(|position| {
            if position == 5 {
                outlived
            } else {
                ended(0.999)
            }
        });
        assert_eq!(cut_off.swifter(0, 1, 0..2), None);
        let mut few = Belief::new(2, 2, 20);
        for position in 0..LEAST {
            few.learn(0, position, ended(0.98));
            if position > 0 {
                few.learn(1, position, ended(0.99));
            }
        }
        few.fit();
        assert_eq!(few.swifter(0, 1, 0..2), None);
    }

    #[test]
    fn differences_within_their_error_do_not_count() {
        let sign = |position: usize| {
            if position.is_multiple_of(2) {
                1.0
            } else {
                -1.0
            }
        };
        let as_fast = |position| ended(0.9802 + 0.0001 * position as f64 + 0.003 * sign(position));
        assert_eq!(belief(as_fast).swifter(0, 1, 0..2), None);
    }
}
