//! The paper's synthetic problems: known distributions, so that every gain is known too.
//!
//! ```
//! use captime::round::{ArmId, Pull, Round};
//! use captime::target::VirtualTarget;
//! use captime::target::synthetic::{Grid, Synthetic, SyntheticProblem};
//!
//! let problem = SyntheticProblem::parse("negcorr")?;
//! let limit = Grid::parse("recovered")?.limits(problem).max();
//! let pull = Pull::new(ArmId::from_index(0), limit);
//! let ran = Synthetic::new(problem).run(1, Round(1), pull);
//! assert!(ran.consumption <= limit.get());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod distribution;
mod problem;
mod quadrature;

pub use problem::{Grid, SyntheticProblem};

use serde::{Deserialize, Serialize};

use super::{Ran, VirtualTarget};
use crate::round::{ArmId, Limit, Observation, Price, Pull, Purpose, Round, randomness};
use distribution::Distribution;

/// A synthetic target as a scenario or the command line describes it: plain data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spec {
    /// Which of the paper's problems.
    pub problem: SyntheticProblem,
    /// Its limits, unless the scenario gives others.
    pub grid: Grid,
}

/// A synthetic problem, ready to play.
#[derive(Debug, Clone)]
pub struct Synthetic {
    arms: Vec<Distribution>,
}

impl Synthetic {
    /// The distributions of this problem.
    pub fn new(problem: SyntheticProblem) -> Self {
        Self {
            arms: problem.distributions(),
        }
    }

    /// The paper's prices, c(x) = x/10 and lambda(x) = x/10 up to 0.5 and 10 x beyond, the same in all its synthetic
    /// experiments. x is consumption itself, whatever the largest limit.
    pub fn price() -> Price {
        Price::new("x / 10", "x / 10 if x <= 0.5 else 10 * x", 1.0)
            .expect("the paper's prices are prices")
    }
}

impl VirtualTarget for Synthetic {
    fn arms(&self) -> usize {
        self.arms.len()
    }

    fn run(&self, seed: u64, round: Round, pull: Pull) -> Ran {
        let mut rng = randomness(seed, round, Purpose::Target);
        let (consumption, reward) = self.arms[pull.arm.index()].draw(pull.limit.get(), &mut rng);
        let limit = pull.limit.get();
        match reward {
            Some(reward) => Ran {
                observation: Observation::ended(pull, reward, consumption)
                    .expect("rewards are drawn from [0, 1] and consumptions from [0, limit]"),
                consumption,
            },
            None => Ran {
                observation: Observation::censored(pull, limit)
                    .expect("a limit is a positive number"),
                consumption: limit,
            },
        }
    }

    fn gain(&self, arm: ArmId, limit: Limit, price: &Price) -> f64 {
        self.arms[arm.index()].gain(limit, price)
    }

    fn censored(&self, arm: ArmId, limit: Limit) -> f64 {
        self.arms[arm.index()].survival(limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The best pair of a problem on a grid: (arm, limit, nu*, P(C > tau*)).
    fn best(problem: &str, grid: &str) -> (u32, f64, f64, f64) {
        let problem = SyntheticProblem::parse(problem).unwrap();
        let (target, price) = (Synthetic::new(problem), Synthetic::price());
        let mut best = (0, 0.0, f64::NEG_INFINITY, 0.0);
        for arm in (0..target.arms()).map(ArmId::from_index) {
            for limit in Grid::parse(grid).unwrap().limits(problem).as_slice() {
                let gain = target.gain(arm, *limit, &price);
                if gain > best.2 + 1e-12 {
                    best = (
                        arm.number(),
                        limit.get(),
                        gain,
                        target.censored(arm, *limit),
                    );
                }
            }
        }
        best
    }

    /// Values of an independent implementation with its own quadrature: nu* to 6 digits, P(C > tau*) to 4.
    #[test]
    fn the_best_pairs_are_those_known_from_elsewhere() {
        for (problem, grid, arm, limit, gain, censored) in [
            ("poscorr", "recovered", 1, 0.4556, 0.214_343, 0.5087),
            ("poscorr", "printed", 1, 1.0, 0.495_764, 0.0),
            ("negcorr", "recovered", 2, 0.4556, 0.120_125, 0.7637),
            ("indep", "recovered", 1, 0.4556, 0.416_568, 0.4404),
            ("indep", "m1", 1, 0.5, 0.441_776, 0.4066),
            ("indep", "m2", 1, 0.4789, 0.430_086, 0.4223),
            ("large20", "recovered", 1, 0.5, 0.405_644, 0.3195),
            ("large50", "recovered", 1, 0.5, 0.405_644, 0.3195),
            ("large80", "recovered", 1, 0.5, 0.405_644, 0.3195),
            ("lowcens", "recovered", 1, 0.4889, 0.679_399, 0.0753),
        ] {
            let found = best(problem, grid);
            let at = format!("{problem} on {grid}: {found:?}");
            assert_eq!(found.0, arm, "{at}");
            assert!((found.1 - limit).abs() < 5.1e-5, "{at}");
            assert!((found.2 - gain).abs() < 5.1e-7, "{at}");
            assert!((found.3 - censored).abs() < 5.1e-5, "{at}");
        }
    }

    #[test]
    fn negcorrs_first_arm_is_not_the_best_as_printed() {
        let target = Synthetic::new(SyntheticProblem::NegCorr);
        let limit = Limit::new(0.1 + 4.0 * 0.8 / 9.0).unwrap();
        let first = target.gain(ArmId::from_index(0), limit, &Synthetic::price());
        assert!((first - 0.1175).abs() < 5e-5, "{first}");
    }

    #[test]
    fn a_run_is_a_function_of_seed_round_and_pull() {
        let target = Synthetic::new(SyntheticProblem::Indep);
        let pull = Pull::new(ArmId::from_index(0), Limit::new(0.5).unwrap());
        let run = |seed, round| target.run(seed, Round(round), pull);
        assert_eq!(run(1, 1), run(1, 1));
        assert_ne!(
            (1..9).map(|round| run(1, round)).collect::<Vec<_>>(),
            (1..9).map(|round| run(2, round)).collect::<Vec<_>>()
        );
    }

    /// Checks more than the distributions: the observations of a policy also average to the gain that regret is
    /// computed with.
    #[test]
    fn what_a_policy_sees_averages_to_the_gain() {
        let price = Synthetic::price();
        for problem in [SyntheticProblem::NegCorr, SyntheticProblem::LowCens] {
            let target = Synthetic::new(problem);
            let pull = Pull::new(ArmId::from_index(1), Limit::new(0.5).unwrap());
            let rounds = 200_000;
            let gains: Vec<f64> = (1..=rounds)
                .map(|round| target.run(7, Round(round), pull).observation.gain(&price))
                .collect();
            let mean = gains.iter().sum::<f64>() / rounds as f64;
            let spread = gains.iter().map(|gain| (gain - mean).powi(2)).sum::<f64>();
            let error = spread.sqrt() / rounds as f64;
            let gain = target.gain(pull.arm, pull.limit, &price);
            assert!(
                (mean - gain).abs() < 4.5 * error,
                "{mean} +- {error}, not {gain}"
            );
        }
    }

    #[test]
    fn names_read_back_and_unknown_ones_come_with_the_nearest() {
        for name in SyntheticProblem::NAMES {
            assert_eq!(SyntheticProblem::parse(name).unwrap().to_string(), name);
        }
        for name in Grid::NAMES {
            assert_eq!(Grid::parse(name).unwrap().name(), name);
        }
        let error = SyntheticProblem::parse("poscor").unwrap_err();
        assert_eq!(error.to_string(), "unknown problem `poscor`");
        assert_eq!(error.hint().unwrap(), "did you mean `poscorr`?");
        assert!(SyntheticProblem::parse("large0").is_err());
        assert!(SyntheticProblem::parse("large99999999999").is_err());
        assert_eq!(SyntheticProblem::parse("large7").unwrap().arms(), 7);
        assert_eq!(
            Grid::parse("m3").unwrap_err().hint().unwrap(),
            "grids are recovered, printed, m1, m2"
        );
    }
}
