//! Fits what all arms share: what a run is worth, the effects of instances, and how effects vary.

use super::arm::Arm;
use super::belief::{Belief, MOST, Matrix, Vector, prior};

/// Rounds of the fit: each takes the others' last values as given.
const SWEEPS: usize = 3;
/// The chance to end in a level a priori; it counts for the runs of one instance.
const HAZARD: f64 = 0.2;
/// The parts of the variance of changes that are noise and the effects of instances a priori, and how many instances that counts for.
const NOISE: (f64, f64) = (0.6, 10.0);
const SPREAD: (f64, f64) = (0.4, 3.0);
/// How far the contrast of an instance may be from the usual one.
const CONTRAST: (f64, f64) = (0.01, 20.0);
/// Instances differ at least by this part.
const LEAST_SPREAD: f64 = 1e-3;
/// At least this part of the observations is left to learn the noise from.
const LEAST_FREE: f64 = 0.2;
/// Arms that a prior covariance counts for.
const COVARIANCE_WEIGHT: f64 = 4.0;

impl Belief {
    /// Fits everything that arms share, then all arms.
    pub(super) fn fit(&mut self) {
        let seen: Vec<usize> = (0..self.arms.len())
            .filter(|arm| self.arms[*arm].has_data())
            .collect();
        self.fit_worth(&seen);
        for arm in &seen {
            self.fit_arm(*arm);
        }
        for _ in 0..SWEEPS {
            let mut explained = self.fit_instances(&seen);
            let mut scatter = Scatter::new(&prior(&self.common.scale));
            for arm in &seen {
                self.fit_arm(*arm);
                let of_arm = &self.arms[*arm];
                let left = self.posterior(of_arm).1;
                let own = |level: usize| of_arm.effects[level] - of_arm.expected[level];
                scatter.add(&std::array::from_fn(own), &left);
                for (level, explained) in explained.iter_mut().enumerate().take(self.levels) {
                    let part = left[level][level] / self.common.covariance[level][level];
                    *explained += (1.0 - part).clamp(0.0, 1.0);
                }
            }
            self.fit_noise(&seen, &explained);
            self.common.covariance = scatter.mean();
        }
        for arm in seen {
            self.arms[arm].brings = self.predict(&self.arms[arm]);
        }
        // Most of the others are alike.
        let mut last = None;
        for arm in 0..self.arms.len() {
            if !self.arms[arm].has_data() {
                let expected = self.arms[arm].expected;
                self.arms[arm].effects = expected;
                let alike = last.filter(|(other, _)| *other == expected);
                let brings = alike.map_or_else(|| self.predict(&self.arms[arm]), |(_, same)| same);
                self.arms[arm].brings = brings;
                last = Some((expected, brings));
            }
        }
    }

    fn changes<'a>(&'a self, arm: &'a Arm, level: usize) -> impl Iterator<Item = f64> + 'a {
        arm.changes(level, self.instances, &self.common.ahead)
    }

    /// How many runs there are per instance in a level. What is assumed a priori counts for so many instances, not runs: all arms meet
    /// the same ones first, so many runs may be of a few instances.
    fn runs_per_instance(&self, seen: &[usize], level: usize, runs: f64) -> f64 {
        let met = seen.iter().map(|arm| self.arms[*arm].met[level] as usize);
        let instances = met.max().unwrap_or(0).clamp(1, self.instances.max(1));
        f64::max(runs / instances as f64, 1.0)
    }

    /// Effects of instances in a level, one by one.
    fn effects(&self, level: usize) -> impl Iterator<Item = f64> {
        let pairs = self.common.effects.windows(2);
        pairs.map(move |pair| pair[1][level] - pair[0][level])
    }

    /// What runs are worth, how much that changes in each level, and from there the covariance a priori.
    fn fit_worth(&mut self, seen: &[usize]) {
        let mut hazards = [(0.0, 0.0); MOST];
        for arm in seen {
            for cell in self.arms[*arm].first_pass(self.instances) {
                for (level, has_ended) in cell.reached() {
                    hazards[level].0 += f64::from(u8::from(has_ended));
                    hazards[level].1 += 1.0;
                }
            }
        }
        let chance = |level: usize, before: f64| {
            let (ended, reached): (f64, f64) = hazards[level];
            let prior = self.runs_per_instance(seen, level, reached);
            (before * prior + ended) / (prior + reached)
        };
        let mut below = HAZARD;
        let likely = std::array::from_fn(|level| {
            below = chance(level, below);
            below
        });
        // Arms are ranked as if much could still end in levels that were not reached: so what changes late counts more.
        let hazards: Vector = std::array::from_fn(|level| chance(level, HAZARD));
        let usual = self.usually_brings();
        (self.common.hazards, self.common.brings) = (likely, usual);
        let ahead = self.common.ahead_under(&hazards, self.levels, 0.0);
        self.common.ahead = ahead;
        for level in 0..self.levels {
            let (mut count, mut sum, mut squares) = (0.0, 0.0, 0.0);
            for change in seen
                .iter()
                .flat_map(|arm| self.changes(&self.arms[*arm], level))
            {
                count += 1.0;
                sum += change;
                squares += change * change;
            }
            let among = (squares - sum * sum / f64::max(count, 1.0)).max(0.0);
            let hazard = hazards[level];
            let expected = hazard * (1.0 - hazard) * (usual[level] - ahead[level + 1]).powi(2);
            let prior = NOISE.1 * self.runs_per_instance(seen, level, count);
            let scale = (among + prior * expected) / (count + prior);
            if self.common.scale[level] == 0.0 {
                self.common.noise[level] = NOISE.0 * scale;
                self.common.spread[level] = SPREAD.0 * scale;
            }
            self.common.scale[level] = scale;
        }
        self.common.covariance = prior(&self.common.scale);
    }

    /// Effects of instances, given those of arms. Returns how many observations they explain in each level.
    fn fit_instances(&mut self, seen: &[usize]) -> Vector {
        let mut explained = [0.0; MOST];
        for (level, explained) in explained.iter_mut().enumerate().take(self.levels) {
            let mut sums = vec![(0.0, 0.0, 0.0); self.instances];
            for arm in seen.iter().map(|arm| &self.arms[*arm]) {
                let changes = self.changes(arm, level).zip(self.effects(level));
                for ((sum, squares, count), (change, effect)) in sums.iter_mut().zip(changes) {
                    *sum += change - arm.effects[level];
                    *squares += (change - effect).powi(2);
                    *count += 1.0;
                }
            }
            let common = &mut self.common;
            let met = sums.iter().take_while(|of| of.2 > 0.0).count();
            let runs: f64 = sums.iter().map(|of| of.2).sum();
            let prior = NOISE.1 * NOISE.0 * common.scale[level];
            let among = (sums.iter().map(|of| of.1).sum::<f64>() + prior) / (runs + NOISE.1);
            let usual = common.effects[met][level] / (met as f64 + 1.0);
            let (noise, spread) = (common.noise[level], common.spread[level]);
            let mut differ = SPREAD.1 * SPREAD.0 * common.scale[level];
            for (position, (sum, squares, count)) in sums.into_iter().enumerate() {
                let contrast = (squares + among) / ((count + 1.0) * among).max(f64::MIN_POSITIVE);
                common.contrasts[position][level] = contrast.clamp(CONTRAST.0, CONTRAST.1);
                let precision = 1.0 / spread + count / noise;
                let effect = (usual / spread + sum / noise) / precision;
                common.effects[position + 1][level] = common.effects[position][level] + effect;
                common.doubts[position + 1][level] =
                    common.doubts[position][level] + noise + 1.0 / precision;
                if position < met {
                    differ += (effect - usual).powi(2) + 1.0 / precision;
                    *explained += 1.0 - 1.0 / (precision * spread);
                }
            }
            common.doubt[level] = spread / (met as f64 + 1.0);
            common.spread[level] =
                (differ / (met as f64 + SPREAD.1)).max(LEAST_SPREAD * common.scale[level]);
        }
        explained
    }

    /// The noise: what effects do not explain.
    fn fit_noise(&mut self, seen: &[usize], explained: &Vector) {
        for (level, explained) in explained.iter().enumerate().take(self.levels) {
            let (mut squares, mut count) = (0.0, 0.0);
            for arm in seen.iter().map(|arm| &self.arms[*arm]) {
                for (change, effect) in self.changes(arm, level).zip(self.effects(level)) {
                    squares += (change - arm.effects[level] - effect).powi(2);
                    count += 1.0;
                }
            }
            let free = f64::max(count - explained, LEAST_FREE * count);
            let prior = NOISE.1 * self.runs_per_instance(seen, level, count);
            let expected = NOISE.0 * self.common.scale[level];
            self.common.noise[level] = (squares + prior * expected) / (free + prior);
        }
    }
}

/// Sums up effects to learn their covariance from.
pub(super) struct Scatter {
    sum: Matrix,
    count: f64,
}

impl Scatter {
    /// What is assumed before counts for some.
    pub(super) fn new(prior: &Matrix) -> Self {
        Self {
            sum: scaled(prior, COVARIANCE_WEIGHT),
            count: COVARIANCE_WEIGHT,
        }
    }

    /// Adds effects of which this covariance is left.
    pub(super) fn add(&mut self, effects: &Vector, covariance: &Matrix) {
        for (a, row) in self.sum.iter_mut().enumerate() {
            for (b, sum) in row.iter_mut().enumerate() {
                *sum += effects[a] * effects[b] + covariance[a][b];
            }
        }
        self.count += 1.0;
    }

    pub(super) fn mean(&self) -> Matrix {
        scaled(&self.sum, 1.0 / self.count)
    }
}

pub(super) fn scaled(covariance: &Matrix, by: f64) -> Matrix {
    covariance.map(|row| row.map(|value| by * value))
}
