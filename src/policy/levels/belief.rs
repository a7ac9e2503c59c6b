//! What is believed of every arm: a linear model of what changes, level by level, in what a run is worth.
//!
//! A run in progress is worth what runs that got this far bring on average ([`ahead`](Common::ahead)). In a level it ends
//! and brings its gain, or it outlives the level and is worth less. The changes of a run add up to what it brings, whatever
//! `ahead` is. With what is usual they are small where nearly every run ends, and those in different levels are uncorrelated.
//!
//! A change is the effect of the instance in the level + the effect of the arm + noise. The effects of one arm have a joint normal
//! prior across levels: what short limits say about long ones is as much as the covariance, which is learned, says. Of each arm
//! and level only the instances that it has met count, a prefix of the one sequence, so nothing depends on which runs happened to
//! end early. Changes on these count as they are, and only the others are predicted. So an arm that has met every instance is
//! known exactly.

use super::arm::{Arm, Left, Shown};

/// More levels than this are not kept apart.
pub(super) const MOST: usize = 9;

/// One number per level.
pub(super) type Vector = [f64; MOST];
pub(super) type Matrix = [Vector; MOST];

/// Repeated runs that differ by a smaller variance are the same.
const EXACT: f64 = 1e-6;
/// Keeps an exact observation from dividing by zero.
const TINY: f64 = 1e-18;
/// The variance of the effects of arms a priori, as a part of that of all changes: in the lowest level, and in the others.
const ARMS: (f64, f64) = (0.03, 0.008);
/// Their correlation in neighbouring levels.
const CORRELATION: f64 = 0.8;
/// Changes under another limit are at most this many times as large as those under the largest one.
const MOST_SCALED: f64 = 10.0;

/// What is believed.
#[derive(Debug, Clone)]
pub(super) struct Belief {
    pub(super) levels: usize,
    /// Instances of one pass through the sequence.
    pub(super) instances: usize,
    pub(super) arms: Vec<Arm>,
    /// What arms share, as it was fitted last.
    pub(super) common: Common,
    /// What a run brings that ends in a level: number of runs and sum.
    brings: [(f64, f64); MOST],
    /// Pairs of runs of the same arm on the same instance, and the sum of their squared differences.
    repeats: (f64, f64),
}

/// What all arms share.
#[derive(Debug, Clone)]
pub(super) struct Common {
    /// What a run is worth that reaches each level; nothing past the last one.
    pub(super) ahead: [f64; MOST + 1],
    /// The chance to end in each level once it is reached, where a level without runs is like the one below, and what a run
    /// brings that does.
    pub(super) hazards: Vector,
    pub(super) brings: Vector,
    /// Variance of changes in each level.
    pub(super) scale: Vector,
    /// The same that effects do not explain.
    pub(super) noise: Vector,
    /// Variance of the effects of instances.
    pub(super) spread: Vector,
    /// Variance of what is usual on instances that no arm has met.
    pub(super) doubt: Vector,
    /// Covariance of the effects of an arm.
    pub(super) covariance: Matrix,
    /// Effects of the first instances of the sequence, summed up: of none, of one, of two, ... And the variance of one
    /// run on each of them around that of the arm, summed up too.
    pub(super) effects: Vec<Vector>,
    pub(super) doubts: Vec<Vector>,
    /// How much runs of different arms differ on each instance, as a multiple of what is usual in the level.
    pub(super) contrasts: Vec<Vector>,
}

impl Belief {
    pub(super) fn new(arms: usize, levels: usize, instances: usize) -> Self {
        let mut belief = Self {
            levels,
            instances,
            arms: vec![],
            common: Common {
                ahead: [0.0; MOST + 1],
                hazards: [0.0; MOST],
                brings: [0.0; MOST],
                scale: [0.0; MOST],
                noise: [0.0; MOST],
                spread: [0.0; MOST],
                doubt: [0.0; MOST],
                covariance: [[0.0; MOST]; MOST],
                effects: vec![[0.0; MOST]; instances + 1],
                doubts: vec![[0.0; MOST]; instances + 1],
                contrasts: vec![[1.0; MOST]; instances],
            },
            brings: [(0.0, 0.0); MOST],
            repeats: (0.0, 0.0),
        };
        belief.add_arms(arms);
        belief.fit();
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

    /// Effects of an arm given its runs.
    pub(super) fn fit_arm(&mut self, arm: usize) {
        let (of_arm, common) = (&self.arms[arm], &self.common);
        let (mut left, mut seen) = ([Left::default(); MOST], [None; MOST]);
        for level in 0..self.levels {
            let met = self.met(of_arm, level);
            if met == 0 {
                continue;
            }
            let count = met as f64;
            left[level] = of_arm.leaves(level, self.instances);
            let changed = left[level].changed(level, &common.ahead);
            let mean = (changed - common.effects[met][level]) / count;
            seen[level] = Some((mean, common.doubts[met][level] / (count * count)));
        }
        let of_arm = &mut self.arms[arm];
        (of_arm.left, of_arm.seen) = (left, seen);
        self.arms[arm].effects = self.posterior(&self.arms[arm]).0;
    }

    /// How many instances of one pass an arm has met at a level.
    fn met(&self, arm: &Arm, level: usize) -> usize {
        (arm.met[level] as usize).min(self.instances)
    }

    /// How many instances of one pass an arm has met at a level, and how many of them it outlived.
    pub(super) fn met_and_outlived(&self, arm: &Arm, level: usize) -> (f64, f64) {
        (self.met(arm, level) as f64, arm.left[level].outlived)
    }

    /// How much the effects of an arm matter for what it brings: the parts of the instances that it has not met in each level.
    fn open(&self, arm: &Arm) -> Vector {
        let open = |level| (self.instances - self.met(arm, level)) as f64 / self.instances as f64;
        std::array::from_fn(open)
    }

    /// Posterior mean and covariance of an arm's effects.
    pub(super) fn posterior(&self, arm: &Arm) -> (Vector, Matrix) {
        let seen = |level: usize| arm.seen[level];
        let covariance = self.common.covariance;
        let (mean, covariance, _) = updated(arm.expected, covariance, self.levels, seen);
        (mean, covariance)
    }

    /// What a run brings that ends in each level, on average.
    pub(super) fn usually_brings(&self) -> Vector {
        let (runs, sum) = (self.brings.iter()).fold((1.0, 1.0), |(runs, sum), of_level| {
            (runs + of_level.0, sum + of_level.1)
        });
        self.brings
            .map(|of_level| (of_level.1 + sum / runs) / (of_level.0 + 1.0))
    }

    /// What an arm brings over all instances, for comparison with others.
    pub(super) fn predict(&self, arm: &Arm) -> Brings {
        self.predict_all(arm, &self.common.ahead)
    }

    /// What an arm brings over all instances under the largest limit, where a run that reaches each level is worth what is `ahead`.
    fn predict_all(&self, arm: &Arm, ahead: &[f64; MOST + 1]) -> Brings {
        let (instances, within) = (self.instances as f64, self.repeat_variance());
        let (mut known, mut runs, mut repeated) = (0.0, 0.0, 0.0);
        for position in 0..arm.first_pass(self.instances).len() {
            if let Some((count, gain)) = arm.brought(position, self.levels) {
                known += gain;
                runs += 1.0;
                repeated += within / count;
            }
        }
        let (total, variance) = self.total(arm, self.levels, ahead);
        // What is not known brings at least nothing, and at most what a run brings that ends at once.
        let between = (known, known + (instances - runs) * self.most());
        Brings {
            mean: total.clamp(between.0 / instances, between.1 / instances),
            variance: variance + repeated / (instances * instances),
        }
    }

    /// What an arm brings at most on an instance that it has not met: what a run does that ends at once.
    fn most(&self) -> f64 {
        self.usually_brings()[0].max(self.common.ahead[0])
    }

    /// What an arm brings over all instances under the limit of this level, where a run that outlives it is worth `given_up`.
    pub(super) fn predict_under(&self, arm: &Arm, level: usize, given_up: f64) -> Brings {
        let (levels, common) = (level + 1, &self.common);
        let ahead = common.ahead_under(&common.hazards, levels, given_up);
        let mut brings = if levels == self.levels {
            self.predict_all(arm, &ahead)
        } else {
            let (total, variance) = self.total(arm, levels, &ahead);
            // A run that ends is worth no less than one that is given up.
            let most = self.most().max(given_up);
            let mean = total.clamp(given_up, most);
            Brings { mean, variance }
        };
        // What is usual on the instances that were not met is not known exactly either.
        for (level, open) in self.open(arm).iter().enumerate().take(levels) {
            let open = common.scaled(level, &ahead) * open;
            brings.variance += common.doubt[level] * open * open;
        }
        brings
    }

    /// What an arm brings on average over all instances within so many levels, where a run that reaches each is worth what is
    /// `ahead`, and the variance of that: what a run is worth at its start, and all changes.
    fn total(&self, arm: &Arm, levels: usize, ahead: &[f64; MOST + 1]) -> (f64, f64) {
        let (common, instances) = (&self.common, self.instances as f64);
        let (effects, covariance) = self.posterior(arm);
        let (mut total, mut variance, mut open) = (ahead[0], 0.0, [0.0; MOST]);
        for level in 0..levels {
            let met = self.met(arm, level);
            let not_met = |sums: &[Vector]| sums[self.instances][level] - sums[met][level];
            let scaled = common.scaled(level, ahead);
            let unmet = instances - met as f64;
            open[level] = scaled * unmet / instances;
            let changed = arm.left[level].changed(level, ahead);
            total += (changed + scaled * not_met(&common.effects)) / instances;
            variance += not_met(&common.doubts) * (scaled / instances).powi(2);
        }
        total += dot(&effects, &open);
        variance += dot(&covariance.map(|row| dot(&row, &open)), &open);
        (total, variance.max(0.0))
    }

    /// The level at which one more instance says most about what an arm brings, per unit of cost.
    pub(super) fn most_informative(
        &self,
        arm: usize,
        levels: impl Iterator<Item = usize>,
        cost: impl Fn(usize, usize) -> f64,
    ) -> Option<usize> {
        let (of_arm, common) = (&self.arms[arm], &self.common);
        let (_, covariance) = self.posterior(of_arm);
        let open = self.open(of_arm);
        let mut best: Option<(f64, usize)> = None;
        for level in levels {
            let position = of_arm.met[level] as usize;
            let from = of_arm.outlived(position).min(level);
            let (mut covariance, mut reduction) = (covariance, 0.0);
            for below in from..=level {
                let met = self.met(of_arm, below);
                if met == self.instances {
                    continue;
                }
                let noise = common.noise[below];
                // Little can be learned where all arms end, or none.
                let variance = common.doubts[met + 1][below] - common.doubts[met][below] - noise
                    + noise / common.contrasts[met][below];
                let column = covariance.map(|row| row[below]);
                let total = column[below] + variance + TINY;
                reduction += dot(&column, &open).powi(2) / total;
                condition(&mut covariance, self.levels, &column, total);
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

impl Common {
    /// What a run is worth that reaches each level, if one that outlives so many is worth `given_up`.
    pub(super) fn ahead_under(
        &self,
        hazards: &Vector,
        levels: usize,
        given_up: f64,
    ) -> [f64; MOST + 1] {
        let mut ahead = [0.0; MOST + 1];
        ahead[levels] = given_up;
        for level in (0..levels).rev() {
            let (hazard, brings) = (hazards[level], self.brings[level]);
            ahead[level] = hazard * brings + (1.0 - hazard) * ahead[level + 1];
        }
        ahead
    }

    /// How many times as large as under the largest limit all changes in a level are, if runs are worth this. Either way a run that
    /// ends is ahead of one that does not by what it brings less what is ahead.
    fn scaled(&self, level: usize, ahead: &[f64; MOST + 1]) -> f64 {
        let now = self.brings[level] - ahead[level + 1];
        let usual = self.brings[level] - self.ahead[level + 1];
        if now == usual {
            1.0
        } else if usual == 0.0 {
            0.0
        } else {
            (now / usual).clamp(-MOST_SCALED, MOST_SCALED)
        }
    }
}

/// What an arm brings over all instances, on the scale from 0 to 1.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Brings {
    pub(super) mean: f64,
    pub(super) variance: f64,
}

/// Covariance of the effects of an arm a priori, where changes have these variances. Past the last level it is 0.
pub(super) fn prior(scale: &Vector) -> Matrix {
    let deviation = |level: usize| {
        let part = if level == 0 { ARMS.0 } else { ARMS.1 };
        (part * scale[level]).sqrt()
    };
    let of = |a: usize, b: usize| {
        let distance = (a.abs_diff(b) as u32).cast_signed();
        deviation(a) * deviation(b) * CORRELATION.powi(distance)
    };
    std::array::from_fn(|a| std::array::from_fn(|b| of(a, b)))
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

fn dot(a: &Vector, b: &Vector) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
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

    fn ended(level: usize, gain: f64) -> Shown {
        Shown::Ended { level, gain }
    }

    fn outlived(levels: usize) -> Shown {
        Shown::Outlived {
            levels,
            assumed: levels,
        }
    }

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
                    ended(level, 1.0)
                } else {
                    outlived(known)
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
                belief.learn(arm, position, ended(level, gain));
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

    /// All arms are alike, but only two of them were run to the end. Many instances are hopeless, so those that are left at long
    /// limits are harder than most.
    #[test]
    fn arms_known_at_short_limits_only_are_not_taken_for_hopeless_at_long_ones() {
        let (arms, instances) = (12, 60);
        let mut belief = Belief::new(arms, 3, instances);
        for arm in 0..arms {
            for instance in 0..instances {
                let level = match instance % 5 {
                    0 => 0,
                    1 => (arm + instance) % 2 + 1,
                    2 => 2,
                    _ => 3,
                };
                let known = if arm < 2 { 3 } else { 1 };
                let shown = if level < known {
                    ended(level, 1.0)
                } else {
                    outlived(known)
                };
                belief.learn(arm, instance, shown);
            }
        }
        belief.fit();
        for arm in &belief.arms {
            let mean = arm.brings.mean;
            assert!((mean - 0.6).abs() < 0.05, "{mean}");
        }
    }

    /// Forty arms met the same six instances, and none ended in the second level. That one arm does on the seventh may be luck: forty
    /// runs of one instance say little about other instances.
    #[test]
    fn one_run_that_ends_where_no_other_did_is_not_believed_at_once() {
        let mut belief = Belief::new(40, 3, 100);
        for arm in 0..40 {
            for position in 0..7 {
                let shown = if position % 2 == 0 && position < 6 {
                    ended(0, 1.0)
                } else if (arm, position) == (5, 6) {
                    ended(1, 1.0)
                } else {
                    outlived(2)
                };
                belief.learn(arm, position, shown);
            }
        }
        belief.fit();
        let ahead = belief.arms[5].brings.mean - belief.arms[6].brings.mean;
        assert!(0.0 < ahead && ahead < 0.07, "{ahead}");
    }

    /// On the instance that is next for the last arm, the others end either all in the first level, or half of them there.
    #[test]
    fn an_instance_on_which_arms_differ_says_more_at_its_level() {
        let contrast = |differ: bool| {
            let mut belief = Belief::new(21, 2, 60);
            for arm in 0..21 {
                for position in 0..21 {
                    if (arm, position) == (20, 20) {
                        continue;
                    }
                    let ends = match position {
                        20 => !differ || arm % 2 == 0,
                        _ => (arm * 7 + position * 3) % 5 < 2,
                    };
                    let shown = if ends {
                        ended(0, 1.0)
                    } else if (arm + position) % 3 == 0 {
                        ended(1, 0.9)
                    } else {
                        outlived(2)
                    };
                    belief.learn(arm, position, shown);
                }
            }
            belief.fit();
            belief.common.contrasts[20][0]
        };
        let (differ, alike) = (contrast(true), contrast(false));
        assert!(differ > 0.8 && alike < 0.3, "{differ} {alike}");
    }

    /// Runs are worth something other than usual, and yet an arm that has met every instance is known.
    #[test]
    fn changes_of_an_arm_that_met_everything_add_up_to_what_it_brings() {
        let mut belief = Belief::new(3, 3, 30);
        let mut sums = [0.0; 3];
        for (arm, sum) in sums.iter_mut().enumerate() {
            for position in 0..30 {
                let level = (position * (arm + 3)) % 4;
                let gain = 0.9 - 0.1 * level as f64;
                if level < 3 {
                    *sum += gain / 30.0;
                    belief.learn(arm, position, ended(level, gain));
                } else {
                    belief.learn(arm, position, outlived(3));
                }
            }
        }
        belief.fit();
        for (arm, sum) in belief.arms.iter().zip(sums) {
            let changed = |level: usize| arm.left[level].changed(level, &belief.common.ahead);
            let total = (0..3).map(changed).sum::<f64>() / 30.0 + belief.common.ahead[0];
            assert!((total - sum).abs() < 1e-6, "{total} instead of {sum}");
            assert!(arm.brings.variance < 1e-9);
        }
    }

    /// All instances were met at the shortest limit, and ten easy ones at the next. Few runs outlived that, but on the others most will.
    #[test]
    fn under_a_short_limit_runs_on_other_instances_end_as_often_as_shorter_ones_say() {
        let (arms, instances, given_up) = (12, 60, 0.9);
        let level_of = |arm: usize, position: usize| {
            let is_easy = position < 10;
            match (position * 7 + arm * 5) % 12 {
                place if place < if is_easy { 10 } else { 2 } => 0,
                place if place % 3 == 0 => 1,
                _ => 3,
            }
        };
        let mut belief = Belief::new(arms, 3, instances);
        for arm in 0..arms {
            for position in 0..instances {
                let known = if position < 10 { 2 } else { 1 };
                let level = level_of(arm, position);
                let shown = if level < known {
                    ended(level, 1.0)
                } else {
                    outlived(known)
                };
                belief.learn(arm, position, shown);
            }
        }
        belief.fit();
        for (arm, of_arm) in belief.arms.iter().enumerate() {
            let ends = (0..instances).filter(|position| level_of(arm, *position) < 2);
            let share = ends.count() as f64 / instances as f64;
            let truth = share + (1.0 - share) * given_up;
            let mean = belief.predict_under(of_arm, 1, given_up).mean;
            assert!((mean - truth).abs() < 0.03, "{mean} instead of {truth}");
        }
    }

    /// Of the runs that reach a level one in ten ends there. No run was longer than three of four levels.
    #[test]
    fn a_level_that_no_run_reached_is_expected_to_be_like_those_below() {
        let (arms, instances, known) = (20, 50, 3);
        let mut belief = Belief::new(arms, 4, instances);
        for arm in 0..arms {
            for position in 0..instances {
                let place = (arm * instances + position) * 37 % 1000;
                let shown = match place {
                    0..100 => ended(0, 1.0),
                    100..190 => ended(1, 1.0),
                    190..271 => ended(2, 1.0),
                    _ => outlived(known),
                };
                belief.learn(arm, position, shown);
            }
        }
        belief.fit();
        let means = belief
            .arms
            .iter()
            .map(|arm| belief.predict_under(arm, 3, 0.0).mean);
        let (mean, truth) = (means.sum::<f64>() / arms as f64, 1.0 - 0.9_f64.powi(4));
        assert!((mean - truth).abs() < 0.02, "{mean} instead of {truth}");
    }

    /// All arms met the same six instances of a hundred, and every one solves four of them. That is little to know the others by.
    #[test]
    fn many_runs_of_few_instances_leave_the_others_in_doubt() {
        let mut belief = Belief::new(40, 2, 100);
        for arm in 0..40 {
            for position in 0..6 {
                let shown = if position % 3 < 2 {
                    ended(0, 1.0)
                } else {
                    outlived(2)
                };
                belief.learn(arm, position, shown);
            }
        }
        belief.fit();
        let brings = belief.predict_under(&belief.arms[0], 1, 0.0);
        let deviation = brings.variance.sqrt();
        assert!((0.1..0.3).contains(&deviation), "{deviation}");
    }

    /// Of the instances that were met, half are hopeless and half are easy. So are probably those that were not.
    #[test]
    fn instances_that_were_never_met_are_as_different_as_those_that_were() {
        let mut belief = Belief::new(20, 3, 100);
        for arm in 0..20 {
            for position in 0..20 {
                let shown = if position % 2 == 0 {
                    ended(0, 1.0)
                } else {
                    outlived(3)
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
        belief.learn(0, 0, ended(1, 0.98));
        belief.learn(0, 1, outlived(1));
        belief.learn(0, 1, ended(0, 0.99));
        assert!(
            belief.repeat_variance() < 1e-3,
            "{}",
            belief.repeat_variance()
        );
    }
}
