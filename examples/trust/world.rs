//! Simulated problems whose true gains are known.

use captime::policy::Problem;
use captime::round::{ArmId, Limit, LimitGrid, Observation, Price, Pull};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use statrs::distribution::{ContinuousCDF, Normal};

use crate::Failed;

pub fn normal(rng: &mut Pcg64Mcg) -> f64 {
    Normal::standard().inverse_cdf(rng.random_range(1e-12..1.0))
}

/// A problem whose true gains are known.
pub struct World {
    pub problem: Problem,
    pub price: Price,
    pub rounds: u64,
    instances: usize,
    /// By arm: what it is worth, and what that means depends on the kind.
    arm: Vec<f64>,
    /// By arm: how often it fails.
    fails: Vec<f64>,
    /// By instance: how hard it is.
    instance: Vec<f64>,
    /// By arm and instance: what the arm is worth on this one alone.
    own: Vec<Vec<f64>>,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    /// Normal rewards, no cost.
    Rewards,
    /// Log-normal times on instances of very different difficulty, cut off by limits, priced as PAR10.
    Solver,
    /// Normal rewards of arms that fail now and then.
    Failing,
    /// Exponential losses.
    Skewed,
    /// As `Solver`, but what helps on some instances hurts on the others.
    Interacting,
    /// Accuracies on folds of different difficulty, of runs that take time and are cut off.
    Accuracy,
    /// As `Rewards`, but the default is the best of five arms, as a default usually is.
    Expert,
    /// As `Solver`, with heavy-tailed times, and every arm has instances that suit it.
    Restarts,
    /// Log-normal errors of runs that cost time; a third of the arms is far worse.
    Errors,
}

impl Kind {
    /// All; the statement was developed on the first six.
    pub const ALL: [Self; 9] = [
        Self::Rewards,
        Self::Solver,
        Self::Failing,
        Self::Skewed,
        Self::Interacting,
        Self::Accuracy,
        Self::Expert,
        Self::Restarts,
        Self::Errors,
    ];

    fn is_limited(self) -> bool {
        self.instances() > 0
    }

    fn instances(self) -> usize {
        match self {
            Self::Solver | Self::Interacting | Self::Accuracy => 40,
            Self::Restarts => 60,
            Self::Rewards | Self::Failing | Self::Skewed | Self::Expert | Self::Errors => 0,
        }
    }

    /// How strongly an arm's own effect acts on an instance.
    fn strength(self, instance: usize) -> f64 {
        match self {
            Self::Interacting if instance.is_multiple_of(3) => -0.7,
            _ => 1.0,
        }
    }
}

impl World {
    pub fn draw(kind: Kind, run: u64) -> Result<(Self, Pcg64Mcg), Failed> {
        let mut rng = Pcg64Mcg::seed_from_u64(run);
        let arms: usize = rng.random_range(3..25);
        let size = [0.0, 1.0, 2.5, 5.0][(run % 4) as usize];
        let (middle, unit) = match kind {
            Kind::Rewards | Kind::Failing | Kind::Expert => (0.5, 0.02),
            Kind::Solver => (0.0, 0.12),
            Kind::Interacting => (0.0, 0.2),
            Kind::Accuracy => (1.5, 0.1),
            Kind::Skewed => (-1.5, 0.08),
            Kind::Restarts => (-0.5, 0.15),
            Kind::Errors => (-1.2, 0.08),
        };
        let mut arm: Vec<f64> = (0..arms)
            .map(|_| middle + unit * size * normal(&mut rng))
            .collect();
        match kind {
            Kind::Rewards | Kind::Failing => {
                for arm in &mut arm {
                    *arm = arm.clamp(0.2, 0.8);
                }
            }
            Kind::Expert => {
                let drawn = (0..4).map(|_| middle + unit * size * normal(&mut rng));
                arm[0] = drawn.fold(arm[0], f64::max);
                for arm in &mut arm {
                    *arm = arm.clamp(0.2, 0.8);
                }
            }
            Kind::Errors => {
                let bad = arm.iter_mut().enumerate().filter(|(k, _)| k % 3 == 2);
                bad.for_each(|(_, arm)| *arm += 0.6);
            }
            Kind::Solver | Kind::Skewed | Kind::Interacting | Kind::Accuracy | Kind::Restarts => {}
        }
        let fails = (0..arms)
            .map(|_| match kind {
                Kind::Failing => rng.random_range(0.0..0.3),
                _ => 0.0,
            })
            .collect();
        let instances = kind.instances();
        let instance = (0..instances).map(|_| normal(&mut rng)).collect();
        let own = match kind {
            Kind::Restarts => (0..arms)
                .map(|_| (0..instances).map(|_| 0.4 * normal(&mut rng)).collect())
                .collect(),
            _ => vec![],
        };
        let limits = match kind {
            Kind::Restarts => LimitGrid::new([0.5, 2.0, 8.0])?,
            _ if kind.is_limited() => LimitGrid::new([1.0, 3.0, 10.0])?,
            _ => LimitGrid::new([1.0])?,
        };
        let price = match kind {
            Kind::Restarts => Price::new("x", "10 * x", 8.0)?,
            Kind::Errors => Price::new("0.1 * x", "1", 1.0)?,
            _ if kind.is_limited() => Price::new("x", "10 * x", 10.0)?,
            _ => Price::new("0", "1", 1.0)?,
        };
        let problem = Problem::new(arms, limits, price.clone())?.with_instances(instances);
        let rounds = rng.random_range(5 * arms as u64..16 * arms as u64);
        let world = Self {
            problem,
            price,
            rounds,
            instances,
            arm,
            fails,
            instance,
            own,
            kind,
        };
        Ok((world, rng))
    }

    /// A run of this pull, on an instance that is drawn if the policy left that open.
    pub fn run(&self, pull: &mut Pull, rng: &mut Pcg64Mcg) -> Result<Observation, Failed> {
        if self.instances > 0 && pull.instance.is_none() {
            pull.instance = Some(rng.random_range(0..self.instances as u32));
        }
        let arm = pull.arm.index();
        if rng.random_bool(self.fails[arm]) {
            return Ok(Observation::failed(*pull));
        }
        let lucks = [rng.random_range(1e-12..1.0), rng.random_range(1e-12..1.0)];
        let instance = pull.instance.unwrap_or(0) as usize;
        let seconds = self.seconds(arm, instance, lucks[0]);
        let reward = self.reward(arm, instance, lucks[1]);
        Ok(Observation::ended(*pull, reward, seconds)?)
    }

    /// How long a run takes, at this quantile.
    fn seconds(&self, arm: usize, instance: usize, luck: f64) -> f64 {
        let bell = || Normal::standard().inverse_cdf(luck);
        let value = self.arm[arm];
        match self.kind {
            Kind::Rewards | Kind::Failing | Kind::Skewed | Kind::Expert => 0.5,
            Kind::Solver | Kind::Interacting => {
                let effect = self.kind.strength(instance) * value;
                (effect + self.instance[instance] + 0.5 * bell()).exp()
            }
            Kind::Accuracy => (0.5 * bell()).exp(),
            Kind::Restarts => {
                let level = value + self.instance[instance] + self.own[arm][instance];
                level.exp() * (-(1.0 - luck).ln()).powf(1.0 / 0.8)
            }
            Kind::Errors => 0.2 + 0.6 * luck,
        }
    }

    /// What a run brings, at this quantile.
    fn reward(&self, arm: usize, instance: usize, luck: f64) -> f64 {
        let bell = || Normal::standard().inverse_cdf(luck);
        let value = self.arm[arm];
        let reward = match self.kind {
            Kind::Solver | Kind::Interacting | Kind::Restarts => 1.0,
            Kind::Rewards | Kind::Failing | Kind::Expert => value + 0.07 * bell(),
            Kind::Skewed => 1.0 + luck.ln() * value.exp(),
            Kind::Accuracy => {
                let logit = value + 0.5 * self.instance[instance] + 0.3 * bell();
                1.0 / (1.0 + (-logit).exp())
            }
            Kind::Errors => 1.0 - (value + 0.25 * bell()).exp(),
        };
        reward.clamp(0.0, 1.0)
    }

    /// The true gain of a pair.
    pub fn gain(&self, arm: ArmId, limit: f64) -> Result<f64, Failed> {
        const STEPS: u32 = 60;
        let arm = arm.index();
        let penalty = self.price.penalty(Limit::new(limit)?);
        let lucks = || (0..STEPS).map(|k| (f64::from(k) + 0.5) / f64::from(STEPS));
        let mean = |all: f64| all / f64::from(STEPS);
        let instances = self.instances.max(1);
        let mut sum = 0.0;
        for instance in 0..instances {
            let reward = mean(lucks().map(|luck| self.reward(arm, instance, luck)).sum());
            let gains = lucks().map(|luck| {
                let seconds = self.seconds(arm, instance, luck);
                if seconds <= limit {
                    reward - self.price.cost(seconds)
                } else {
                    -penalty
                }
            });
            sum += mean(gains.sum());
        }
        let fails = self.fails[arm];
        Ok((1.0 - fails) * sum / instances as f64 - fails * penalty)
    }
}
