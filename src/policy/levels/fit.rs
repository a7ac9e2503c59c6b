//! Fits what all arms share: what is usual, the effects of instances, and how effects vary.

use super::belief::{
    ARMS, Belief, INSTANCES, MOST, Matrix, Trials, USUAL, Vector, autoregressive, updated,
};

/// Rounds of the fit: each takes the others' last values as given.
const SWEEPS: usize = 3;
/// Arms or instances that a prior covariance counts for.
pub(super) const COVARIANCE_WEIGHT: f64 = 4.0;

impl Belief {
    /// Fits everything that arms share, then all arms.
    pub(super) fn fit(&mut self) {
        let has_data = |belief: &Self, arm: &usize| belief.arms[*arm].has_data();
        let seen: Vec<usize> = (0..self.arms.len())
            .filter(|arm| has_data(self, arm))
            .collect();
        for _ in 0..SWEEPS {
            self.fit_instances(&seen);
            let mut scatter = Scatter::new(ARMS);
            for arm in &seen {
                self.fit_arm(*arm);
                let of_arm = &self.arms[*arm];
                let own = |level: usize| of_arm.effects[level] - of_arm.expected[level];
                scatter.add(&std::array::from_fn(own), &self.posterior(of_arm).1);
            }
            self.covariance = scatter.mean();
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

    /// What is usual in each level and the effects of instances, given those of arms: a step of Newton's method.
    fn fit_instances(&mut self, seen: &[usize]) {
        let mut trials = vec![[Trials::default(); MOST]; self.instances];
        for arm in seen.iter().map(|arm| &self.arms[*arm]) {
            let factors = arm.effects.map(f64::exp);
            for (place, cell) in arm.first_pass(self.instances).iter().enumerate() {
                for (level, has_ended) in cell.reached() {
                    let odds = self.odds[place][level] * factors[level];
                    trials[place][level].count(odds, has_ended);
                }
            }
        }
        let step = |level: usize| {
            let score: f64 = trials.iter().map(|of| of[level].score).sum();
            let information: f64 = trials.iter().map(|of| of[level].information).sum();
            // With one unit of information about what is usual a priori.
            ((score + USUAL - self.usual[level]) / (information + 1.0)).clamp(-1.0, 1.0)
        };
        let steps: Vector = std::array::from_fn(step);
        self.usual = std::array::from_fn(|level| self.usual[level] + steps[level]);
        let (mut scatter, mut met) = (Scatter::new(INSTANCES), vec![]);
        for (place, trials) in trials.iter().enumerate() {
            let before = self.effects[place];
            // What is usual is no effect of the instance.
            let seen = |level: usize| {
                let (seen, variance) = trials[level].seen(before[level])?;
                Some((seen - steps[level], variance))
            };
            let (effects, covariance, _) =
                updated([0.0; MOST], self.instance_covariance, self.levels, seen);
            if trials[0].information > 0.0 {
                scatter.add(&effects, &covariance);
                met.push(place);
            }
            self.effects[place] = effects;
            self.odds[place] =
                std::array::from_fn(|level| (self.usual[level] + effects[level]).exp());
        }
        self.instance_covariance = scatter.mean();
        // An instance that was never met is not a usual one: it is as easy or as hard as any other.
        let is_unmet = |place: &usize| trials[*place][0].information == 0.0;
        let unmet = (0..self.instances).filter(is_unmet);
        for (place, like) in unmet.zip(met.iter().cycle()) {
            self.odds[place] = self.odds[*like];
        }
    }
}

/// Sums up effects to learn their covariance from.
pub(super) struct Scatter {
    sum: Matrix,
    count: f64,
}

impl Scatter {
    /// What is assumed before, a standard deviation and a correlation of neighbouring levels, counts for some.
    pub(super) fn new(prior: (f64, f64)) -> Self {
        Self {
            sum: scaled(&autoregressive(prior), COVARIANCE_WEIGHT),
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
