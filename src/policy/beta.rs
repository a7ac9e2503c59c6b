//! Draws from Beta distributions whose parameters are at least 1, fast enough to draw one per pair and round.

use rand::{Rng, RngExt, SeedableRng};
use rand_distr::{Distribution, StandardNormal};
use rand_pcg::Pcg64Mcg;

/// A Beta(a, b) ready to be drawn from, as the ratio of two Gamma draws.
#[derive(Debug, Clone, Copy)]
pub(super) struct Beta {
    successes: Gamma,
    failures: Gamma,
}

impl Beta {
    /// Beta(a, b); parameters below 1, which no count gives but rounding might, are taken as 1.
    pub fn new(a: f64, b: f64) -> Self {
        Self {
            successes: Gamma::new(a),
            failures: Gamma::new(b),
        }
    }

    /// The same mean, `by` times the strength: how pending pulls narrow a belief without moving it.
    pub fn narrowed(a: f64, b: f64, by: f64) -> Self {
        Self::new(a * by, b * by)
    }

    pub fn draw(&self, rng: &mut Pcg64Mcg) -> f64 {
        let x = self.successes.draw(rng);
        let y = self.failures.draw(rng);
        x / (x + y)
    }
}

/// Marsaglia and Tsang's Gamma(shape, 1) for shapes from 1 up, its constants worked out once.
#[derive(Debug, Clone, Copy)]
struct Gamma {
    d: f64,
    c: f64,
}

impl Gamma {
    fn new(shape: f64) -> Self {
        let d = shape.max(1.0) - 1.0 / 3.0;
        Self {
            d,
            c: 1.0 / (9.0 * d).sqrt(),
        }
    }

    #[inline]
    fn draw(&self, rng: &mut Pcg64Mcg) -> f64 {
        loop {
            let x: f64 = StandardNormal.sample(rng);
            let root = 1.0 + self.c * x;
            if root <= 0.0 {
                continue;
            }
            let v = root * root * root;
            let u: f64 = rng.random();
            let x2 = x * x;
            if u < 1.0 - 0.0331 * x2 * x2 || u.ln() < 0.5 * x2 + self.d * (1.0 - v + v.ln()) {
                return self.d * v;
            }
        }
    }
}

/// Gamma(shape, 1) for any shape above 0: below 1 by the boost U^(1/shape) of a draw one shape up.
fn draw_gamma(shape: f64, rng: &mut Pcg64Mcg) -> f64 {
    if shape >= 1.0 {
        return Gamma::new(shape).draw(rng);
    }
    let boost: f64 = rng.random::<f64>().powf(1.0 / shape.max(1e-6));
    Gamma::new(shape + 1.0).draw(rng) * boost
}

/// Beta(a, b) for any parameters above 0.
pub(super) fn draw_beta(a: f64, b: f64, rng: &mut Pcg64Mcg) -> f64 {
    let (x, y) = (draw_gamma(a, rng), draw_gamma(b, rng));
    if x + y > 0.0 {
        x / (x + y)
    } else {
        // Both are so small that they cannot be distinguished from 0.
        a / (a + b)
    }
}

/// A generator of a known type seeded from the one we are lent, so that drawing needs no virtual calls.
pub(super) fn own_rng(rng: &mut dyn Rng) -> Pcg64Mcg {
    let mut seed = [0; 16];
    rng.fill_bytes(&mut seed);
    Pcg64Mcg::from_seed(seed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use statrs::distribution::{Beta as Exact, ContinuousCDF};

    #[test]
    fn draws_follow_the_distribution() {
        let mut rng = Pcg64Mcg::seed_from_u64(1);
        for (a, b) in [
            (1.0, 1.0),
            (1.0, 30.0),
            (2.5, 1.0),
            (40.0, 7.3),
            (900.0, 1100.0),
        ] {
            let beta = Beta::new(a, b);
            let mut draws: Vec<f64> = (0..20_000).map(|_| beta.draw(&mut rng)).collect();
            draws.sort_by(f64::total_cmp);
            let exact = Exact::new(a, b).unwrap();
            let count = draws.len() as f64;
            let distance = (draws.iter().enumerate())
                .map(|(k, &x)| (exact.cdf(x) - (k as f64 + 0.5) / count).abs())
                .fold(0.0, f64::max);
            // Kolmogorov-Smirnov at the 1e-6 level: 2.7 / sqrt(n).
            assert!(distance < 2.7 / count.sqrt(), "Beta({a}, {b}): {distance}");
        }
    }
}
