//! What is believed of every arm: a survival model in discrete time, with effects of arms and of instances.
//!
//! In every level, a run that reaches it ends in it with some chance, the hazard. Its log odds are what is usual in the level +
//! an effect of the instance + an effect of the arm. The effects of one arm have a joint normal prior across levels, and so have those
//! of one instance: what short limits say about long ones is as much as the covariance, which is learned, says. Hazards are
//! conditional on having come so far, so a run that was cut off counts for the levels that it outlived, and biases nothing.
//!
//! What an arm brings is the average over all instances: what its run brought where it has ended or met the largest limit, and
//! what the hazards lead to expect elsewhere. So an arm that has met every instance is known exactly.

use super::arm::{Arm, Shown};

/// More levels than this are not kept apart.
pub(super) const MOST: usize = 9;

/// One number per level.
pub(super) type Vector = [f64; MOST];
pub(super) type Matrix = [Vector; MOST];

/// Standard deviation of effects a priori, in log odds, and their correlation in neighbouring levels: of arms, of instances.
pub(super) const ARMS: (f64, f64) = (0.7, 0.8);
pub(super) const INSTANCES: (f64, f64) = (1.5, 0.8);
/// Log odds of ending in a level a priori.
pub(super) const USUAL: f64 = -2.0;
/// In one step of Newton's method, log odds change by no more than this.
const STEP: f64 = 2.0;
/// Repeated runs that differ by a smaller variance are the same.
const EXACT: f64 = 1e-6;
/// Keeps an exact observation from dividing by zero.
const TINY: f64 = 1e-9;

/// What is believed.
#[derive(Debug, Clone)]
pub(super) struct Belief {
    pub(super) levels: usize,
    /// Instances of one pass through the sequence.
    pub(super) instances: usize,
    pub(super) arms: Vec<Arm>,
    /// Covariance of the effects of an arm, and of an instance.
    pub(super) covariance: Matrix,
    pub(super) instance_covariance: Matrix,
    /// Log odds of ending in a level, for the usual arm and instance.
    pub(super) usual: Vector,
    /// Posterior means of the effects of every instance, in the order of the sequence, and what they make of the odds.
    pub(super) effects: Vec<Vector>,
    pub(super) odds: Vec<Vector>,
    /// What a run brings that ends in a level: number of runs and sum.
    pub(super) brings: [(f64, f64); MOST],
    /// Pairs of runs of the same arm on the same instance, and the sum of their squared differences.
    repeats: (f64, f64),
}

impl Belief {
    pub(super) fn new(arms: usize, levels: usize, instances: usize) -> Self {
        let mut belief = Self {
            levels,
            instances,
            arms: vec![],
            covariance: autoregressive(ARMS),
            instance_covariance: autoregressive(INSTANCES),
            usual: [USUAL; MOST],
            effects: vec![[0.0; MOST]; instances],
            odds: vec![[USUAL.exp(); MOST]; instances],
            brings: [(0.0, 0.0); MOST],
            repeats: (0.0, 0.0),
        };
        belief.add_arms(arms);
        belief
    }

    /// So many more arms, of which nothing is known.
    pub(super) fn add_arms(&mut self, count: usize) {
        let mut arm = Arm::default();
        arm.brings = self.predict(&arm);
        self.arms.resize(self.arms.len() + count, arm);
    }

    /// Variance of repeated runs of an arm on an instance; 0 as long as they never differed.
    pub(super) fn repeat_variance(&self) -> f64 {
        if self.repeats.0 > 0.0 {
            self.repeats.1 / (2.0 * self.repeats.0)
        } else {
            0.0
        }
    }

    /// Whether an arm has been run on every instance at every level.
    pub(super) fn is_complete(&self, arm: usize) -> bool {
        self.arms[arm].met[self.levels - 1] as usize >= self.instances
    }

    /// Enters what a run showed at this position.
    pub(super) fn learn(&mut self, arm: usize, position: usize, shown: Shown) {
        if let Shown::Ended { level, gain } = shown {
            self.brings[level].0 += 1.0;
            self.brings[level].1 += gain;
        }
        let (shape, usual) = ((self.levels, self.instances), self.usually_brings());
        if let Some(difference) = self.arms[arm].enter(position, shown, shape, &usual) {
            self.repeats.0 += 1.0;
            self.repeats.1 += difference * difference;
        }
        self.update(arm);
    }

    /// Takes an arm to outlive this many levels at these positions without running it there.
    pub(super) fn assume(&mut self, arm: usize, positions: &[usize], levels: usize) {
        let shape = (self.levels, self.instances);
        self.arms[arm].assume(positions, levels, shape);
        self.update(arm);
    }

    fn update(&mut self, arm: usize) {
        self.fit_arm(arm);
        self.arms[arm].brings = self.predict(&self.arms[arm]);
    }

    /// Effects of an arm given its runs: a step of Newton's method from those it had.
    pub(super) fn fit_arm(&mut self, arm: usize) {
        let of_arm = &self.arms[arm];
        let factors = of_arm.effects.map(f64::exp);
        let mut trials = [Trials::default(); MOST];
        for (cell, odds) in of_arm.first_pass(self.instances).iter().zip(&self.odds) {
            for (level, has_ended) in cell.reached() {
                trials[level].count(odds[level] * factors[level], has_ended);
            }
        }
        let effects = of_arm.effects;
        self.arms[arm].seen = std::array::from_fn(|level| trials[level].seen(effects[level]));
        self.arms[arm].effects = self.posterior(&self.arms[arm]).0;
    }

    /// Posterior mean and covariance of an arm's effects.
    pub(super) fn posterior(&self, arm: &Arm) -> (Vector, Matrix) {
        let seen = |level: usize| arm.seen[level];
        let (mean, covariance, _) = updated(arm.expected, self.covariance, self.levels, seen);
        (mean, covariance)
    }

    /// What a run brings that ends in each level, on average.
    fn usually_brings(&self) -> Vector {
        let (runs, sum) = (self.brings.iter()).fold((1.0, 1.0), |(runs, sum), of_level| {
            (runs + of_level.0, sum + of_level.1)
        });
        self.brings
            .map(|of_level| (of_level.1 + sum / runs) / (of_level.0 + 1.0))
    }

    /// What an arm brings over all instances.
    pub(super) fn predict(&self, arm: &Arm) -> Brings {
        let factors = arm.effects.map(f64::exp);
        let usual = self.usually_brings();
        let (within, first_pass) = (self.repeat_variance(), arm.first_pass(self.instances));
        let (mut sum, mut variance, mut slope) = (0.0, 0.0, [0.0; MOST]);
        for (position, odds) in self.odds.iter().enumerate() {
            if let Some((count, gain)) = arm.brought(position, self.levels) {
                sum += gain;
                variance += within / count;
                continue;
            }
            let from = first_pass.get(position).map_or(0, |cell| cell.first_open());
            let hazards: Vector = std::array::from_fn(|level| hazard(odds[level] * factors[level]));
            // What a run brings that reaches a level, and the square of that.
            let (mut ahead, mut square) = ([0.0; MOST + 1], 0.0);
            for level in (from..self.levels).rev() {
                let (ends, lives) = (hazards[level], 1.0 - hazards[level]);
                ahead[level] = ends * usual[level] + lives * ahead[level + 1];
                square = ends * usual[level] * usual[level] + lives * square;
            }
            let mut reaches = 1.0;
            for level in from..self.levels {
                let (ends, lives) = (hazards[level], 1.0 - hazards[level]);
                slope[level] += reaches * ends * lives * (usual[level] - ahead[level + 1]);
                reaches *= lives;
            }
            sum += ahead[from];
            variance += square - ahead[from] * ahead[from];
        }
        let count = self.instances as f64;
        let slope = slope.map(|slope| slope / count);
        let (_, covariance) = self.posterior(arm);
        let with_effects = covariance.map(|row| dot(&row, &slope));
        Brings {
            mean: sum / count,
            variance: (variance / (count * count) + dot(&with_effects, &slope)).max(0.0),
            slope,
        }
    }

    /// The level at which one more instance says most about what an arm brings, per unit of cost.
    pub(super) fn most_informative(
        &self,
        arm: usize,
        levels: impl Iterator<Item = usize>,
        cost: impl Fn(usize, usize) -> f64,
    ) -> Option<usize> {
        let of_arm = &self.arms[arm];
        let (_, covariance) = self.posterior(of_arm);
        let mut best: Option<(f64, usize)> = None;
        for level in levels {
            let met = of_arm.met[level] as usize;
            let odds = &self.odds[met % self.instances];
            let from = of_arm.outlived(met).min(level);
            let mut covariance = covariance;
            let (mut reduction, mut reaches) = (0.0, 1.0);
            for below in from..=level {
                let hazard = hazard(odds[below] * of_arm.effects[below].exp());
                let information = reaches * hazard * (1.0 - hazard);
                let column = covariance.map(|row| row[below]);
                let total = column[below] + 1.0 / information.max(TINY);
                reduction += dot(&column, &of_arm.brings.slope).powi(2) / total;
                condition(&mut covariance, self.levels, &column, total);
                reaches *= 1.0 - hazard;
            }
            let value = reduction / cost(from, level);
            if best.is_none_or(|(most, _)| value > most) {
                best = Some((value, level));
            }
        }
        best.map(|(_, level)| level)
    }

    /// Arms that cannot catch up with one that is known exactly, whatever their remaining runs bring.
    pub(super) fn beaten(&self) -> Vec<bool> {
        let total = |arm: &Arm, unknown: f64| {
            let cells = arm.first_pass(self.instances);
            let known = cells
                .iter()
                .map(|cell| cell.gain(self.levels).unwrap_or(unknown));
            known.sum::<f64>() + unknown * (self.instances - cells.len()) as f64
        };
        let complete = (0..self.arms.len()).filter(|arm| self.is_complete(*arm));
        let best = complete
            .map(|arm| total(&self.arms[arm], 0.0))
            .fold(f64::NEG_INFINITY, f64::max);
        // Where repeated runs differ, nothing is known exactly.
        if best == f64::NEG_INFINITY || self.repeat_variance() > EXACT {
            return vec![false; self.arms.len()];
        }
        let arms = self.arms.iter().enumerate();
        arms.map(|(place, arm)| !self.is_complete(place) && total(arm, 1.0) < best)
            .collect()
    }
}

/// What an arm brings over all instances, on the scale from 0 to 1.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Brings {
    pub(super) mean: f64,
    pub(super) variance: f64,
    /// How the mean depends on the effects of the arm.
    slope: Vector,
}

/// Runs that reached a level, as they bear on an effect: score and information of the likelihood.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Trials {
    pub(super) score: f64,
    pub(super) information: f64,
}

impl Trials {
    pub(super) fn count(&mut self, odds: f64, has_ended: bool) {
        let hazard = hazard(odds);
        self.score += f64::from(u8::from(has_ended)) - hazard;
        self.information += hazard * (1.0 - hazard);
    }

    /// What they say about the effect by themselves, as an observation with a variance, if there were any.
    pub(super) fn seen(&self, effect: f64) -> Option<(f64, f64)> {
        let step = (self.score / self.information).clamp(-STEP, STEP);
        (self.information > 0.0).then(|| (effect + step, 1.0 / self.information))
    }
}

fn hazard(odds: f64) -> f64 {
    odds / (1.0 + odds)
}

fn dot(a: &Vector, b: &Vector) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// A standard deviation in every level, and a correlation that falls with their distance.
pub(super) fn autoregressive((deviation, correlation): (f64, f64)) -> Matrix {
    std::array::from_fn(|a| {
        std::array::from_fn(|b| {
            deviation * deviation * correlation.powi((a.abs_diff(b) as u32).cast_signed())
        })
    })
}

/// Posterior mean and covariance of effects, one level after the other, given what was `seen` of each and with what variance;
/// and the log-likelihood of that.
pub(super) fn updated(
    mut mean: Vector,
    mut covariance: Matrix,
    levels: usize,
    seen: impl Fn(usize) -> Option<(f64, f64)>,
) -> (Vector, Matrix, f64) {
    let mut likelihood = 0.0;
    for level in 0..levels {
        let Some((seen, variance)) = seen(level) else {
            continue;
        };
        let surprise = seen - mean[level];
        let total = covariance[level][level] + variance + TINY;
        for (mean, row) in mean.iter_mut().zip(&covariance[..levels]) {
            *mean += row[level] * surprise / total;
        }
        let column = covariance.map(|row| row[level]);
        condition(&mut covariance, levels, &column, total);
        likelihood -= 0.5 * (total.ln() + surprise * surprise / total);
    }
    (mean, covariance, likelihood)
}

/// The covariance once a level was observed: `column` is its covariance with all levels, and `total` its variance with that of the
/// observation.
fn condition(covariance: &mut Matrix, levels: usize, column: &Vector, total: f64) {
    for a in 0..levels {
        for b in 0..levels {
            covariance[a][b] -= column[a] * column[b] / total;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All arms are run on every instance at the short limit, and to the end on the first few only. Each ends in the first level, in
    /// the second, or never. Which instances those are says nothing about the others.
    #[test]
    fn runs_cut_off_at_a_short_limit_are_not_expected_to_fail_at_a_long_one() {
        let (arms, instances, whole) = (60, 40, 8);
        let level_of = |arm: usize, instance: usize| (arm * 7 + instance * 11) % 4;
        let mut belief = Belief::new(arms, 2, instances);
        let mut truth = 0.0;
        for arm in 0..arms {
            for instance in 0..instances {
                let level = level_of(arm, instance);
                truth += f64::from(u8::from(level < 2)) / (arms * instances) as f64;
                let known = if instance < whole { 2 } else { 1 };
                let shown = if level < known {
                    Shown::Ended { level, gain: 1.0 }
                } else {
                    Shown::Outlived {
                        levels: known,
                        assumed: known,
                    }
                };
                belief.learn(arm, instance, shown);
            }
        }
        belief.fit();
        let expected = (0..arms)
            .map(|arm| belief.arms[arm].brings.mean)
            .sum::<f64>()
            / arms as f64;
        assert!(
            (expected - truth).abs() < 0.04,
            "{expected} instead of {truth}"
        );
    }

    /// Every run ends, half of them in the first level and half in the second. One arm is a little faster in each: levels
    /// alone do not show it.
    #[test]
    fn small_differences_count_where_every_run_ends() {
        let mut belief = Belief::new(20, 3, 40);
        for arm in 0..20 {
            for position in 0..10 {
                let level = (arm * 5 + position * 3 + position / 2) % 2;
                let gain = 0.99 - 0.004 * level as f64 + if arm == 7 { 0.002 } else { 0.0 };
                belief.learn(arm, position, Shown::Ended { level, gain });
            }
        }
        belief.fit();
        let means = || belief.arms.iter().map(|arm| arm.brings.mean);
        let best = (0..20).max_by(|a, b| {
            let mean = |arm: &usize| belief.arms[*arm].brings.mean;
            mean(a).total_cmp(&mean(b))
        });
        assert_eq!(best, Some(7), "{:?}", means().collect::<Vec<_>>());
        let largest = means().fold(0.0, f64::max);
        let smallest = means().fold(1.0, f64::min);
        assert!(largest - smallest < 0.01, "{smallest} to {largest}");
    }

    /// Of the instances that were met, half are hopeless and half are easy. So are probably those that were not.
    #[test]
    fn instances_that_were_never_met_are_as_different_as_those_that_were() {
        let mut belief = Belief::new(20, 3, 100);
        for arm in 0..20 {
            for position in 0..20 {
                let shown = if position % 2 == 0 {
                    Shown::Ended {
                        level: 0,
                        gain: 1.0,
                    }
                } else {
                    Shown::Outlived {
                        levels: 3,
                        assumed: 3,
                    }
                };
                belief.learn(arm, position, shown);
            }
            belief.fit();
        }
        let mean = belief.arms[0].brings.mean;
        assert!((mean - 0.5).abs() < 0.1, "{mean}");
    }

    /// Runs of one arm on one instance with other seeds differ by some milliseconds, whether the first was cut off or not.
    #[test]
    fn a_run_that_ends_before_an_earlier_limit_differs_by_little() {
        let mut belief = Belief::new(1, 3, 1);
        let outlived = Shown::Outlived {
            levels: 1,
            assumed: 1,
        };
        belief.learn(
            0,
            0,
            Shown::Ended {
                level: 1,
                gain: 0.98,
            },
        );
        belief.learn(0, 1, outlived);
        belief.learn(
            0,
            1,
            Shown::Ended {
                level: 0,
                gain: 0.99,
            },
        );
        assert!(
            belief.repeat_variance() < 1e-3,
            "{}",
            belief.repeat_variance()
        );
    }
}
