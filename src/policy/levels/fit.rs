//! Fits what all arms share: effects of instances, noise, and the covariance of an arm's effects.

use super::belief::{Belief, INSTANCE, MOST, NOISE, Vector, prior_covariance};

/// Rounds of the fit: each takes the others' last values as given.
const SWEEPS: usize = 3;
/// Arms that the prior covariance counts for.
pub(super) const COVARIANCE_WEIGHT: f64 = 4.0;

impl Belief {
    /// Fits everything that arms share: effects of instances, noise, covariance.
    pub(super) fn fit(&mut self) {
        let levels = self.levels;
        let seen: Vec<usize> = (0..self.arms.len())
            .filter(|arm| self.arms[*arm].has_data())
            .collect();
        let mut longest = [0; MOST];
        for arm in &seen {
            for (longest, met) in longest.iter_mut().zip(self.arms[*arm].met) {
                *longest = met.max(*longest);
            }
        }
        for _ in 0..SWEEPS {
            self.fit_instances(&seen, &longest);
            let mut scatter = [[0.0; MOST]; MOST];
            let mut freedom = [0.0; MOST];
            for arm in &seen {
                let (effects, covariance) = self.posterior(&self.arms[*arm]);
                self.arms[*arm].effects = effects;
                for level in 0..levels {
                    if self.arms[*arm].met[level] > 0 {
                        let kept = covariance[level][level] / self.covariance[level][level];
                        freedom[level] += (1.0 - kept).clamp(0.0, 1.0);
                    }
                    let expected = &self.arms[*arm].expected;
                    for other in 0..levels {
                        scatter[level][other] += (effects[level] - expected[level])
                            * (effects[other] - expected[other])
                            + covariance[level][other];
                    }
                }
            }
            self.fit_noise(&seen, &longest, &freedom);
            let (prior, count) = (prior_covariance(), seen.len() as f64);
            for level in 0..levels {
                for other in 0..levels {
                    let summed = scatter[level][other] + COVARIANCE_WEIGHT * prior[level][other];
                    self.covariance[level][other] = summed / (count + COVARIANCE_WEIGHT);
                }
            }
        }
        for arm in seen {
            self.update(arm);
        }
        let variance = self.prior_variance();
        for arm in self.arms.iter_mut().filter(|arm| !arm.has_data()) {
            arm.effects = arm.expected;
            arm.mean = arm.expected[..levels].iter().sum();
            arm.variance = variance;
        }
    }

    /// Effects of instances, given those of arms.
    fn fit_instances(&mut self, seen: &[usize], longest: &[u32; MOST]) {
        // Arms that have met an instance, and the sum of their effects: what changes from one to the next in the sequence.
        let mut count = vec![[0.0; MOST]; self.instances + 1];
        let mut effects = vec![[0.0; MOST]; self.instances + 1];
        let mut gains = vec![[0.0; MOST]; self.instances];
        for arm in seen.iter().map(|arm| &self.arms[*arm]) {
            for level in 0..self.levels {
                let met = (arm.met[level] as usize).min(self.instances);
                count[0][level] += 1.0;
                count[met][level] -= 1.0;
                effects[0][level] += arm.effects[level];
                effects[met][level] -= arm.effects[level];
            }
            for (position, level, gain) in arm.booked(self.instances) {
                gains[position][level] += gain;
            }
        }
        for level in 0..self.levels {
            let longest = (longest[level] as usize).min(self.instances);
            let sum: f64 = self.effects[..longest].iter().map(|all| all[level]).sum();
            let centre = (sum + INSTANCE.0) / (longest as f64 + 1.0);
            self.centre[level] = centre;
            let (noise, spread) = (self.noise[level], self.spread[level]);
            let (mut arms, mut of_arms) = (0.0, 0.0);
            for position in 0..self.instances {
                arms += count[position][level];
                of_arms += effects[position][level];
                let precision = 1.0 / spread + arms / noise;
                let seen = centre / spread + (gains[position][level] - of_arms) / noise;
                let is_met = position < longest;
                self.effects[position][level] = if is_met { seen / precision } else { centre };
                self.doubts[position][level] = if is_met { 1.0 / precision } else { spread };
            }
        }
        self.add_up();
    }

    /// Noise and spread of instance effects, given all effects.
    fn fit_noise(&mut self, seen: &[usize], longest: &[u32; MOST], freedom: &Vector) {
        let mut squares = [0.0; MOST];
        let mut count = [0.0; MOST];
        let mut square_sums = vec![[0.0; MOST]; self.effects.len() + 1];
        for (position, effects) in self.effects.iter().enumerate() {
            for level in 0..self.levels {
                square_sums[position + 1][level] =
                    square_sums[position][level] + effects[level] * effects[level];
            }
        }
        for arm in seen.iter().map(|arm| &self.arms[*arm]) {
            // The squared residual of a level that brought nothing, then what gains change about it.
            for level in 0..self.levels {
                let met = (arm.met[level] as usize).min(self.instances);
                let effect = arm.effects[level];
                count[level] += met as f64;
                squares[level] += square_sums[met][level]
                    + 2.0 * effect * self.effect_sums[met][level]
                    + met as f64 * effect * effect;
            }
            for (position, level, gain) in arm.booked(self.instances) {
                let expected = self.effects[position][level] + arm.effects[level];
                squares[level] += gain * (gain - 2.0 * expected);
            }
        }
        for level in 0..self.levels {
            let positions = (longest[level] as usize).min(self.instances);
            let kept: f64 = self.doubts[..positions]
                .iter()
                .map(|doubts| 1.0 - doubts[level] / self.spread[level])
                .sum();
            let free = (count[level] - kept - freedom[level]).max(0.2 * count[level]);
            self.noise[level] = (squares[level].max(0.0) + NOISE.1 * NOISE.0) / (free + NOISE.1);
            let centre = self.centre[level];
            let spread: f64 = (self.effects.iter().zip(&self.doubts))
                .take(positions)
                .map(|(effects, doubts)| (effects[level] - centre).powi(2) + doubts[level])
                .sum();
            let prior = INSTANCE.2 * INSTANCE.1;
            self.spread[level] = ((spread + prior) / (positions as f64 + INSTANCE.2)).max(1e-4);
        }
    }
}
