//! The joint distribution of an arm's reward and consumption: to draw from, and to integrate over.

use std::f64::consts::{PI, SQRT_2};

use rand::{Rng, RngExt};
use rand_distr::{Beta, Distribution as _, Exp1, StandardNormal};
use statrs::function::erf::erfc;

use super::quadrature::integral;
use crate::round::{Limit, Price};

/// P_i^(r,c), the distribution of one arm.
#[derive(Debug, Clone, Copy)]
pub(super) enum Distribution {
    /// A bivariate Gaussian, truncated to [0, 1]^2.
    Gaussian(Gaussian),
    /// A Beta reward and, independent of it, an exponential consumption.
    Independent(Independent),
}

impl Distribution {
    /// One consumption and, if that is within the limit, its reward.
    pub(super) fn draw(&self, limit: f64, rng: &mut impl Rng) -> (f64, Option<f64>) {
        match self {
            Self::Gaussian(gaussian) => {
                let (reward, consumption) = gaussian.draw(rng);
                (consumption, (consumption <= limit).then_some(reward))
            }
            Self::Independent(independent) => independent.draw(limit, rng),
        }
    }

    /// The expected gain nu(i, tau) = E[(R - c(C)) 1{C <= tau}] - lambda(tau) P(C > tau).
    pub(super) fn gain(&self, limit: Limit, price: &Price) -> f64 {
        let penalty = price.penalty(limit);
        let bought = |consumption: f64| {
            let (density, reward) = self.slice(consumption);
            reward + (penalty - price.cost(consumption)) * density
        };
        integral(bought, 0.0, limit.get().min(self.end())) - penalty
    }

    /// P(C > tau).
    pub(super) fn survival(&self, limit: Limit) -> f64 {
        match self {
            Self::Gaussian(_) => {
                let end = self.end();
                integral(
                    |consumption| self.slice(consumption).0,
                    limit.get().min(end),
                    end,
                )
            }
            Self::Independent(independent) => (-independent.rate * limit.get()).exp(),
        }
    }

    /// The density of a consumption, and that times the mean reward given this consumption.
    fn slice(&self, consumption: f64) -> (f64, f64) {
        match self {
            Self::Gaussian(gaussian) => {
                let (density, reward) = gaussian.slice(consumption);
                (density / gaussian.mass, reward / gaussian.mass)
            }
            Self::Independent(independent) => independent.slice(consumption),
        }
    }

    /// The largest possible consumption.
    fn end(&self) -> f64 {
        match self {
            Self::Gaussian(_) => 1.0,
            Self::Independent(_) => f64::INFINITY,
        }
    }
}

/// A bivariate Gaussian with equal variances, truncated to [0, 1]^2.
#[derive(Debug, Clone, Copy)]
pub(super) struct Gaussian {
    mean_reward: f64,
    mean_consumption: f64,
    deviation: f64,
    correlation: f64,
    /// Standard deviation of the reward once the consumption is known.
    residual: f64,
    /// How much of the untruncated distribution lies in [0, 1]^2.
    mass: f64,
}

impl Gaussian {
    /// With mean (reward, consumption) and the covariance of the paper's eq. `cov_matrix`: `variance` is its sigma and `x`
    /// its x_i.
    pub(super) fn new(mean: (f64, f64), variance: f64, x: f64) -> Self {
        let correlation = 2.0 * x * (1.0 - x * x).sqrt();
        let deviation = variance.sqrt();
        let untruncated = Self {
            mean_reward: mean.0,
            mean_consumption: mean.1,
            deviation,
            correlation,
            residual: deviation * (1.0 - correlation * correlation).sqrt(),
            mass: 1.0,
        };
        Self {
            mass: integral(|consumption| untruncated.slice(consumption).0, 0.0, 1.0),
            ..untruncated
        }
    }

    /// A pair (reward, consumption), by rejection: the reward is drawn only once the consumption is inside.
    fn draw(&self, rng: &mut impl Rng) -> (f64, f64) {
        let tilt = self.deviation * self.correlation;
        loop {
            let first: f64 = rng.sample(StandardNormal);
            let consumption = self.mean_consumption + self.deviation * first;
            if !(0.0..=1.0).contains(&consumption) {
                continue;
            }
            let second: f64 = rng.sample(StandardNormal);
            let reward = self.mean_reward + tilt * first + self.residual * second;
            if (0.0..=1.0).contains(&reward) {
                return (reward, consumption);
            }
        }
    }

    /// The untruncated density of a consumption times the probability that the reward is in [0, 1], and that times its
    /// mean there.
    fn slice(&self, consumption: f64) -> (f64, f64) {
        let away = (consumption - self.mean_consumption) / self.deviation;
        let density = normal_density(away) / self.deviation;
        let mean = self.mean_reward + self.correlation * (consumption - self.mean_consumption);
        let (low, high) = (-mean / self.residual, (1.0 - mean) / self.residual);
        let inside = normal_between(low, high);
        let reward = mean * inside + self.residual * (normal_density(low) - normal_density(high));
        (density * inside, density * reward)
    }
}

/// Independent reward and consumption.
#[derive(Debug, Clone, Copy)]
pub(super) struct Independent {
    reward: Beta<f64>,
    mean_reward: f64,
    rate: f64,
}

impl Independent {
    /// Rewards from Beta(a, b), consumptions from Exp(a / (a + b) + 1), a rate.
    pub(super) fn new(a: f64, b: f64) -> Self {
        let mean_reward = a / (a + b);
        Self {
            reward: Beta::new(a, b).expect("the paper's a and b are positive"),
            mean_reward,
            rate: mean_reward + 1.0,
        }
    }

    fn draw(&self, limit: f64, rng: &mut impl Rng) -> (f64, Option<f64>) {
        let exponential: f64 = rng.sample(Exp1);
        let consumption = exponential / self.rate;
        let reward = (consumption <= limit).then(|| self.reward.sample(rng));
        (consumption, reward)
    }

    fn slice(&self, consumption: f64) -> (f64, f64) {
        let density = self.rate * (-self.rate * consumption).exp();
        (density, density * self.mean_reward)
    }
}

fn normal_density(z: f64) -> f64 {
    (-z * z / 2.0).exp() / (2.0 * PI).sqrt()
}

/// P(low < Z <= high), computed from the tail that keeps its digits.
fn normal_between(low: f64, high: f64) -> f64 {
    let upper_tail = |z: f64| erfc(z / SQRT_2) / 2.0;
    if low > 0.0 {
        upper_tail(low) - upper_tail(high)
    } else {
        upper_tail(-high) - upper_tail(-low)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::round::{Purpose, Round, randomness};

    const DRAWS: u32 = 400_000;

    /// Draws of both kinds agree with the integrals, at every limit, for gain and for survival.
    #[test]
    fn draws_and_quadrature_agree() {
        let price = Price::new("x / 10", "x / 10 if x <= 0.5 else 10 * x", 1.0).unwrap();
        let distributions = [
            Distribution::Gaussian(Gaussian::new((0.6, 0.45), 0.2, 0.2)),
            Distribution::Gaussian(Gaussian::new((0.5, 0.5), 0.2, 0.6)),
            Distribution::Gaussian(Gaussian::new((0.9, 0.8), 0.2, -0.2)),
            Distribution::Gaussian(Gaussian::new((0.18, 0.0), 0.1, 0.2)),
            Distribution::Independent(Independent::new(0.8, 0.2)),
            Distribution::Independent(Independent::new(0.8, 0.3)),
        ];
        for (seed, distribution) in distributions.iter().enumerate() {
            let mut rng = randomness(seed as u64, Round(1), Purpose::Target);
            let draws: Vec<(f64, f64)> = (0..DRAWS)
                .map(|_| {
                    let (consumption, reward) = distribution.draw(f64::INFINITY, &mut rng);
                    (reward.unwrap(), consumption)
                })
                .collect();
            for limit in [0.05, 0.3, 0.5, 0.75, 0.9] {
                let limit = Limit::new(limit).unwrap();
                let penalty = price.penalty(limit);
                let gains = draws.iter().map(|&(reward, consumption)| {
                    if consumption <= limit.get() {
                        reward - price.cost(consumption)
                    } else {
                        -penalty
                    }
                });
                let (mean, error) = mean_and_error(gains);
                let gain = distribution.gain(limit, &price);
                assert!(
                    (mean - gain).abs() < 4.5 * error,
                    "{distribution:?} at {limit}: drawn {mean} +- {error}, integrated {gain}"
                );
                let ends = draws.iter().map(|draw| f64::from(draw.1 > limit.get()));
                let (share, error) = mean_and_error(ends);
                let survival = distribution.survival(limit);
                assert!(
                    (share - survival).abs() < 4.5 * error,
                    "{distribution:?} at {limit}"
                );
            }
        }
    }

    fn mean_and_error(values: impl Iterator<Item = f64> + Clone) -> (f64, f64) {
        let count = f64::from(DRAWS);
        let mean = values.clone().sum::<f64>() / count;
        let variance = values.map(|value| (value - mean).powi(2)).sum::<f64>() / count;
        (mean, (variance / count).sqrt())
    }

    #[test]
    fn a_censored_draw_costs_no_reward() {
        let mut rng = randomness(1, Round(1), Purpose::Target);
        for distribution in [
            Distribution::Gaussian(Gaussian::new((0.6, 0.45), 0.2, 0.2)),
            Distribution::Independent(Independent::new(0.8, 0.2)),
        ] {
            for _ in 0..1000 {
                let (consumption, reward) = distribution.draw(0.5, &mut rng);
                assert_eq!(consumption <= 0.5, reward.is_some());
            }
        }
    }

    #[test]
    fn extreme_tails_keep_their_digits() {
        let tail = normal_between(8.0, 9.0);
        assert!(
            (tail / 6.220_960_574_271_785e-16 - 1.0).abs() < 1e-3,
            "{tail}"
        );
        assert!((normal_between(-9.0, 9.0) - 1.0).abs() < 1e-12);
    }
}
