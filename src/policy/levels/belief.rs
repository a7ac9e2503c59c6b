//! What is believed of every arm: a mixed model of gains, level by level.
//!
//! The gain of a run at the largest limit is written as the sum over levels of what it brings if it ends in that level, so
//! that a run at a short limit is a complete observation of the lower levels. In each level, what arm i brings on instance j is
//! instance effect + arm effect + noise. The effects of one arm have a joint normal prior across levels: what short limits
//! say about long ones is as much as the covariance, which is learned, says. All arms meet the instances in one
//! sequence, so the mean over a prefix of it has a finite-population factor: an arm that has met every instance is known
//! exactly.

use super::arm::{Arm, Shown};

/// More levels than this are not kept apart.
pub(super) const MOST: usize = 9;

/// One number per level.
pub(super) type Vector = [f64; MOST];
pub(super) type Matrix = [Vector; MOST];

/// Standard deviation of arm effects a priori, in the first level and in the others; gains lie between 0 and 1.
const SPREAD: (f64, f64) = (0.08, 0.04);
/// Correlation of an arm's effects in neighbouring levels a priori.
const CORRELATION: f64 = 0.6;
/// Variance of the noise a priori, and how many runs that counts for.
pub(super) const NOISE: (f64, f64) = (0.06, 10.0);
/// Mean and variance of instance effects a priori, and how many instances the variance counts for.
pub(super) const INSTANCE: (f64, f64, f64) = (0.06, 0.04, 3.0);
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
    pub(super) covariance: Matrix,
    pub(super) noise: Vector,
    /// Mean and variance of instance effects.
    pub(super) centre: Vector,
    pub(super) spread: Vector,
    /// Posterior mean and variance of the effect of every instance, in the order of the sequence.
    pub(super) effects: Vec<Vector>,
    pub(super) doubts: Vec<Vector>,
    /// Sums of these over all instances before.
    pub(super) effect_sums: Vec<Vector>,
    doubt_sums: Vec<Vector>,
    /// Pairs of runs of the same arm on the same instance, and the sum of their squared differences.
    repeats: (f64, f64),
}

impl Belief {
    pub(super) fn new(arms: usize, levels: usize, instances: usize) -> Self {
        let mut belief = Self {
            levels,
            instances,
            arms: vec![],
            covariance: prior_covariance(),
            noise: [NOISE.0; MOST],
            centre: [INSTANCE.0; MOST],
            spread: [INSTANCE.1; MOST],
            effects: vec![[INSTANCE.0; MOST]; instances],
            doubts: vec![[INSTANCE.1; MOST]; instances],
            effect_sums: vec![],
            doubt_sums: vec![],
            repeats: (0.0, 0.0),
        };
        belief.add_arms(arms);
        belief.add_up();
        belief
    }

    /// So many more arms, of which nothing is known.
    pub(super) fn add_arms(&mut self, count: usize) {
        let arm = Arm::unknown(self.prior_variance());
        self.arms.resize(self.arms.len() + count, arm);
    }

    pub(super) fn prior_variance(&self) -> f64 {
        let rows = self.covariance[..self.levels].iter();
        rows.flat_map(|row| &row[..self.levels]).sum()
    }

    /// The sum over a prefix of the sequence; an instance has the same effect in every pass.
    fn over(&self, sums: &[Vector], level: usize, met: usize) -> f64 {
        let (passes, rest) = (met / self.instances, met % self.instances);
        passes as f64 * sums[self.instances][level] + sums[rest][level]
    }

    pub(super) fn add_up(&mut self) {
        let sums = |of: &[Vector]| {
            let mut total = [0.0; MOST];
            let mut sums = Vec::with_capacity(of.len() + 1);
            sums.push(total);
            for values in of {
                for (total, value) in total.iter_mut().zip(values) {
                    *total += value;
                }
                sums.push(total);
            }
            sums
        };
        self.effect_sums = sums(&self.effects);
        self.doubt_sums = sums(&self.doubts);
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
        self.is_whole(&self.arms[arm])
    }

    fn is_whole(&self, arm: &Arm) -> bool {
        arm.met[self.levels - 1] as usize >= self.instances
    }

    /// Posterior mean gain of an arm over all instances, on the scale from 0 to 1.
    pub(super) fn gain(&self, arm: usize) -> f64 {
        let all = &self.effect_sums[self.instances];
        let instance = all[..self.levels].iter().sum::<f64>() / self.instances as f64;
        self.arms[arm].mean + instance
    }

    /// Enters what a run showed at this position.
    pub(super) fn learn(&mut self, arm: usize, position: usize, shown: Shown) {
        let shape = (self.levels, self.instances);
        if let Some(difference) = self.arms[arm].enter(position, shown, shape) {
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

    pub(super) fn update(&mut self, arm: usize) {
        let (effects, covariance) = self.posterior(&self.arms[arm]);
        let rows = covariance[..self.levels].iter();
        let variance: f64 = rows.flat_map(|row| &row[..self.levels]).sum();
        let mean = self.mean(&self.arms[arm], &effects);
        let of_arm = &mut self.arms[arm];
        of_arm.effects = effects;
        of_arm.mean = mean;
        of_arm.variance = variance.max(0.0);
    }

    /// What an arm brings above what is usual on the same instances, on average over all of them.
    ///
    /// On the prefix that it has met at every level, what it brought counts as it is: an arm that has ended almost everywhere is not
    /// expected to bring still more there. Its effects predict the rest. Runs beyond that prefix do not count as they are: only
    /// those that ended early are known there, and by themselves they would mislead.
    fn mean(&self, arm: &Arm, effects: &Vector) -> f64 {
        let all: f64 = effects[..self.levels].iter().sum();
        // Repeated runs that differ are averaged in the effects alone.
        if self.repeat_variance() > EXACT {
            return all;
        }
        let met = (arm.met[self.levels - 1] as usize).min(self.instances);
        let ended = arm.cells[..met].iter().filter(|cell| cell.has_ended());
        let brought: f64 = ended.map(|cell| f64::from(cell.gain)).sum();
        let usual: f64 = self.effect_sums[met][..self.levels].iter().sum();
        all + (brought - usual - met as f64 * all) / self.instances as f64
    }

    /// Variance of the mean over the prefix that an arm has met in a level; infinite if it has met nothing.
    fn sampling_variance(&self, level: usize, met: usize) -> f64 {
        if met == 0 {
            return f64::INFINITY;
        }
        let count = met as f64;
        let left = (1.0 - count / self.instances as f64).max(0.0);
        let between =
            (count * self.noise[level] + self.over(&self.doubt_sums, level, met)) / (count * count);
        // Noise of repeated runs is spread over levels as all noise is.
        let all: f64 = self.noise[..self.levels].iter().sum();
        let within = self.repeat_variance() * self.noise[level] / all / count;
        between * left + within
    }

    /// What an arm's own runs say about its effect in a level, and the variance of that; nothing if it has met no instance.
    pub(super) fn seen(&self, arm: &Arm, level: usize) -> Option<(f64, f64)> {
        let met = arm.met[level] as usize;
        let seen = (arm.sums[level] - self.over(&self.effect_sums, level, met)) / met as f64;
        (met > 0).then(|| (seen, self.sampling_variance(level, met)))
    }

    /// Posterior mean and covariance of an arm's effects.
    pub(super) fn posterior(&self, arm: &Arm) -> (Vector, Matrix) {
        let seen = |level| self.seen(arm, level);
        let (mean, covariance, _) = updated(arm.expected, self.covariance, self.levels, seen);
        (mean, covariance)
    }

    /// The level at which one more instance says most about the sum of an arm's effects per unit of cost.
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
            let met = of_arm.met[level];
            // A run at this level is also one more in the levels below that have met no more.
            let lowest = of_arm.met.iter().position(|other| *other == met);
            let lowest = lowest.unwrap_or(level);
            let mut covariance = covariance;
            let mut reduction = 0.0;
            for below in lowest..=level {
                let now = self.sampling_variance(below, met as usize);
                let then = self.sampling_variance(below, met as usize + 1);
                // Variance of an independent observation that turns `now` into `then`.
                let precision = 1.0 / then.max(1e-12) - 1.0 / now.max(1e-12);
                let total = covariance[below][below] + 1.0 / precision.max(1e-12);
                let with_sum: f64 = covariance[..self.levels].iter().map(|row| row[below]).sum();
                reduction += with_sum * with_sum / total;
                condition(&mut covariance, self.levels, below, total);
            }
            let value = reduction / cost(lowest, level);
            if best.is_none_or(|(most, _)| value > most) {
                best = Some((value, level));
            }
        }
        best.map(|(_, level)| level)
    }

    /// Arms that cannot catch up with one that is known exactly, whatever their remaining runs bring.
    pub(super) fn beaten(&self) -> Vec<bool> {
        let total = |arm: &Arm, unknown: f64| {
            let cells = arm.cells.iter().take(self.instances);
            let known: f64 = cells
                .map(|cell| match cell {
                    cell if cell.has_ended() => f64::from(cell.gain),
                    cell if usize::from(cell.outlived) >= self.levels => 0.0,
                    _ => unknown,
                })
                .sum();
            known + unknown * self.instances.saturating_sub(arm.cells.len()) as f64
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

pub(super) fn prior_covariance() -> Matrix {
    let deviation = |level| if level == 0 { SPREAD.0 } else { SPREAD.1 };
    std::array::from_fn(|a| {
        std::array::from_fn(|b| {
            deviation(a) * deviation(b) * CORRELATION.powi((a.abs_diff(b) as u32).cast_signed())
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
        condition(&mut covariance, levels, level, total);
        likelihood -= 0.5 * (total.ln() + surprise * surprise / total);
    }
    (mean, covariance, likelihood)
}

/// The covariance once a level was observed, where `total` is its variance with that of the observation.
fn condition(covariance: &mut Matrix, levels: usize, level: usize, total: f64) {
    let column: Vector = std::array::from_fn(|other| covariance[other][level]);
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
        let expected = (0..arms).map(|arm| belief.gain(arm)).sum::<f64>() / arms as f64;
        assert!(
            (expected - truth).abs() < 0.04,
            "{expected} instead of {truth}"
        );
    }
}
