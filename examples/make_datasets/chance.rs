//! Random numbers that are the same on every machine and with every version of every crate.
//!
//! Only additions, multiplications, divisions and square roots are used, which IEEE 754 defines to the last bit;
//! the normal distribution is a table of its quantiles, since logarithms differ between C libraries.

/// A SplitMix64 stream.
pub struct Chance(u64);

impl Chance {
    /// A stream of its own for each seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Between 0 (included) and 1 (excluded).
    pub fn uniform(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Below `bound`.
    pub fn below(&mut self, bound: usize) -> usize {
        ((self.uniform() * bound as f64) as usize).min(bound - 1)
    }

    /// Standard normal, cut off at 3.5 standard deviations.
    pub fn normal(&mut self) -> f64 {
        normal_quantile(self.uniform())
    }

    /// Puts the items into random order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }
}

/// Upper half of the standard normal distribution: probability, quantile.
const NORMAL: [(f64, f64); 17] = [
    (0.5, 0.0),
    (0.55, 0.1257),
    (0.6, 0.2533),
    (0.65, 0.3853),
    (0.7, 0.5244),
    (0.75, 0.6745),
    (0.8, 0.8416),
    (0.85, 1.0364),
    (0.9, 1.2816),
    (0.93, 1.4758),
    (0.95, 1.6449),
    (0.97, 1.8808),
    (0.985, 2.1701),
    (0.995, 2.5758),
    (0.998, 2.8782),
    (0.9995, 3.2905),
    (1.0, 3.5),
];

/// The value that a standard normal stays below with this probability, to about 0.01.
pub fn normal_quantile(probability: f64) -> f64 {
    if probability < 0.5 {
        -between(&NORMAL, 1.0 - probability)
    } else {
        between(&NORMAL, probability)
    }
}

/// Straight lines through points that ascend in their first part; flat outside.
pub fn between(points: &[(f64, f64)], at: f64) -> f64 {
    let after = points.partition_point(|point| point.0 <= at);
    if after == 0 {
        return points[0].1;
    }
    if after == points.len() {
        return points[after - 1].1;
    }
    let ((x0, y0), (x1, y1)) = (points[after - 1], points[after]);
    y0 + (y1 - y0) * (at - x0) / (x1 - x0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn normal_numbers_have_mean_0_and_variance_1() {
        let mut chance = Chance::new(3);
        let drawn: Vec<f64> = (0..100_000).map(|_| chance.normal()).collect();
        let mean = drawn.iter().sum::<f64>() / 1e5;
        let variance = drawn.iter().map(|z| (z - mean) * (z - mean)).sum::<f64>() / 1e5;
        assert!(mean.abs() < 0.02, "{mean}");
        assert!((variance - 1.0).abs() < 0.03, "{variance}");
    }
}
