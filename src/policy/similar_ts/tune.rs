//! How much what is believed before an arm's own runs shall count for: as much as all that was seen makes likely.

use statrs::function::gamma::ln_gamma;

use super::belief::{Cell, Weights};
use super::evidence::{Ends, Evidence};

/// Before anything was seen.
pub(super) const UNKNOWN: Weights = Weights {
    hazard: 8.0,
    ratio: 4.0,
    reward: 4.0,
};

/// Flat priors, as joint-ts has them: Beta(1, 1) in every cell and no ratio.
pub(super) const FLAT: Weights = Weights {
    hazard: 2.0,
    ratio: 1e6,
    reward: 2.0,
};

/// The weights tried.
const HAZARDS: [f64; 5] = [2.0, 4.0, 8.0, 16.0, 32.0];
const RATIOS: [f64; 6] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0];

/// The weight of the ratio: ends of each arm given those expected follow a negative binomial distribution.
pub(super) fn ratio(arms: &[Ends]) -> f64 {
    most_likely(&RATIOS, UNKNOWN.ratio, |s| {
        let of_arm = |ends: &Ends| {
            let all = s + ends.expected;
            ln_gamma(s + ends.seen) - ln_gamma(s)
                + s * (s / all).ln()
                + ends.seen * (ends.expected.max(1e-9) / all).ln()
        };
        arms.iter().map(of_arm).sum()
    })
}

/// The weight of a cell's hazard: ends among the runs at risk follow a beta-binomial distribution.
pub(super) fn hazard(cells: &[Cell]) -> f64 {
    most_likely(&HAZARDS, UNKNOWN.hazard, |s| {
        let of_cell = |cell: &Cell| {
            let (a, b) = (s * cell.usual, s * (1.0 - cell.usual));
            ln_gamma(a + cell.ended) - ln_gamma(a) + ln_gamma(b + cell.runs - cell.ended)
                - ln_gamma(b)
                + ln_gamma(s)
                - ln_gamma(s + cell.runs)
        };
        cells.iter().map(of_cell).sum()
    })
}

/// The first of the likeliest weights; around `usual` they are held for likelier from the start.
fn most_likely(weights: &[f64], usual: f64, likelihood: impl Fn(f64) -> f64) -> f64 {
    let mut best = (f64::NEG_INFINITY, usual);
    for &weight in weights {
        let likely = likelihood(weight) - 0.5 * (weight / usual).ln().powi(2);
        if likely > best.0 {
            best = (likely, weight);
        }
    }
    best.1
}

/// The weight of rewards: their variance within arms over that between arms, by the method of moments.
pub(super) fn reward<'a>(arms: impl Iterator<Item = &'a Evidence>) -> f64 {
    let (mut groups, mut runs, mut within, mut sum, mut between) = (0.0, 0.0, 0.0, 0.0, 0.0);
    let mut squares_of_counts = 0.0;
    for evidence in arms {
        let of_cell =
            |of: fn(&super::evidence::Brought) -> f64| evidence.brought.iter().map(of).sum::<f64>();
        let (count, rewards) = (of_cell(|cell| cell.count), of_cell(|cell| cell.rewards));
        if count > 0.0 {
            groups += 1.0;
            runs += count;
            sum += rewards;
            squares_of_counts += count * count;
            within += of_cell(|cell| cell.squares) - rewards * rewards / count;
            between += rewards * rewards / count;
        }
    }
    let free = runs - groups;
    if groups < 2.0 || free < 2.0 {
        return UNKNOWN.reward;
    }
    let within = (within / free).max(0.0);
    let typical = (runs - squares_of_counts / runs) / (groups - 1.0);
    let between = ((between - sum * sum / runs) / (groups - 1.0) - within) / typical.max(1e-9);
    if between <= 0.0 {
        return 32.0;
    }
    (within / between).clamp(0.25, 32.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::similar_ts::evidence::Brought;

    #[test]
    fn arms_that_differ_get_little_weight_from_others_and_those_alike_much() {
        let alike: Vec<Ends> = (0..200)
            .map(|number| Ends {
                seen: f64::from(8 + number % 5),
                expected: 10.0,
            })
            .collect();
        let apart: Vec<Ends> = (0..200)
            .map(|number| Ends {
                seen: f64::from(number % 2) * 20.0,
                expected: 10.0,
            })
            .collect();
        assert_eq!(ratio(&alike), 32.0);
        assert!(ratio(&apart) <= 2.0);
        let cells = |low: f64, high: f64| -> Vec<Cell> {
            (0..200)
                .map(|number| Cell {
                    usual: 0.5,
                    runs: 20.0,
                    ended: if number % 2 == 0 { low } else { high },
                })
                .collect()
        };
        assert_eq!(hazard(&cells(9.0, 11.0)), 32.0);
        assert_eq!(hazard(&cells(2.0, 18.0)), 2.0);
        assert_eq!((ratio(&[]), hazard(&[])), (UNKNOWN.ratio, UNKNOWN.hazard));
    }

    #[test]
    fn rewards_of_arms_that_differ_are_their_own() {
        let arms = |apart: f64| -> Vec<Evidence> {
            (0..20)
                .map(|arm| {
                    let mut evidence = Evidence::new(1, 1, 0);
                    evidence.brought[0] = Brought::default();
                    for run in 0..10 {
                        let noise = 0.02 * f64::from(run % 3 - 1);
                        evidence.brought[0].add(0.5 + apart * f64::from(arm % 5) + noise, 0.0);
                    }
                    evidence
                })
                .collect()
        };
        assert_eq!(reward(arms(0.1).iter()), 0.25);
        assert_eq!(reward(arms(0.0).iter()), 32.0);
        assert_eq!(reward([].into_iter()), UNKNOWN.reward);
    }
}
