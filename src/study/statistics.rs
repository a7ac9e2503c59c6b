//! Mean and spread of values that come one by one.

/// Welford's running mean and sum of squares: one pass, no values kept, no digits lost.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct RunningMean {
    count: u64,
    mean: f64,
    squares: f64,
}

impl RunningMean {
    /// Adds a value.
    pub(super) fn add(&mut self, value: f64) {
        self.count += 1;
        let before = value - self.mean;
        self.mean += before / self.count as f64;
        self.squares += before * (value - self.mean);
    }

    /// How many values there were.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// Their mean, or 0 without values.
    pub(super) fn mean(&self) -> f64 {
        self.mean
    }

    /// The sample standard deviation. `None` with fewer than two values.
    pub(super) fn deviation(&self) -> Option<f64> {
        (self.count > 1).then(|| (self.squares / (self.count - 1) as f64).sqrt())
    }

    /// The standard error of the mean. `None` with fewer than two values.
    pub(super) fn error(&self) -> Option<f64> {
        self.deviation()
            .map(|deviation| deviation / (self.count as f64).sqrt())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mean_deviation_and_error_are_those_of_the_textbook() {
        let mut running = RunningMean::default();
        assert_eq!(running.deviation(), None);
        for value in [2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0] {
            running.add(value);
        }
        assert_eq!(running.mean(), 5.0);
        let deviation = (32.0f64 / 7.0).sqrt();
        assert!((running.deviation().unwrap() - deviation).abs() < 1e-12);
        assert!((running.error().unwrap() - deviation / 8f64.sqrt()).abs() < 1e-12);
    }
}
