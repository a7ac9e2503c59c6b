//! The weight of the prior against an arm's own runs: the most likely one, given all observations.

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
const TRUSTS: [f64; 5] = [0.0, 0.25, 0.5, 0.75, 1.0];

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

/// How far to trust ratios of hazards that were suggested without knowledge of the arm's own runs: the power to which they
/// explain these best. Pairs are an arm's ends, expected ones as usual, and what was suggested, cell by cell.
pub(super) fn trust_in_ratios<'a, I>(pairs: impl Fn() -> I, strength: f64) -> f64
where
    I: Iterator<Item = (&'a [Ends], &'a Vec<f64>)>,
{
    let mut best = (f64::NEG_INFINITY, 0.0);
    for trust in TRUSTS {
        // As in `ratio`: how many ends there are is negative binomial, and in which cells multinomial.
        let of_arm = |(ends, suggested): (&[Ends], &Vec<f64>)| {
            let (mut seen, mut expected, mut likely) = (0.0, 0.0, 0.0);
            for (ends, suggested) in ends.iter().zip(suggested) {
                seen += ends.seen;
                expected += ends.expected * suggested.powf(trust);
                likely += ends.seen * trust * suggested.ln();
            }
            likely - (strength + seen) * (strength + expected).ln()
        };
        let likely: f64 = pairs().map(of_arm).sum();
        if likely > best.0 {
            best = (likely, trust);
        }
    }
    best.1
}

/// How far to trust excesses of rewards that were suggested without knowledge of the arm's own: least squares. Pairs are
/// the sum of an arm's own excesses with their number, and what was suggested.
pub(super) fn trust_in_rewards<'a>(pairs: impl Iterator<Item = (Ends, &'a f64)>) -> f64 {
    let (mut both, mut squares) = (0.0, 0.0);
    for (own, suggested) in pairs {
        both += own.seen * suggested;
        squares += own.expected * suggested * suggested;
    }
    if squares > 0.0 {
        (both / squares).clamp(0.0, 1.0)
    } else {
        0.0
    }
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
    fn what_explains_others_is_trusted_and_what_does_not_is_not() {
        let arms = |seen: fn(f64) -> f64| -> Vec<(Vec<Ends>, Vec<f64>)> {
            (0..100)
                .map(|arm| {
                    let suggested = if arm % 2 == 0 { 0.5 } else { 2.0 };
                    let ends = Ends {
                        seen: seen(suggested),
                        expected: 4.0,
                    };
                    (vec![ends; 2], vec![suggested; 2])
                })
                .collect()
        };
        let trust = |arms: &[(Vec<Ends>, Vec<f64>)]| {
            let pairs = || arms.iter().map(|(ends, said)| (ends.as_slice(), said));
            trust_in_ratios(pairs, 8.0)
        };
        assert_eq!(trust(&arms(|suggested| 4.0 * suggested)), 1.0);
        assert_eq!(trust(&arms(|suggested| 4.0 * suggested.sqrt())), 0.5);
        assert_eq!(trust(&arms(|_| 4.0)), 0.0);
        assert_eq!(trust(&arms(|suggested| 4.0 / suggested)), 0.0);
        let own = |excess: f64| Ends {
            seen: 10.0 * excess,
            expected: 10.0,
        };
        let said = [0.1, -0.1, 0.2];
        let half = said.iter().map(|said| (own(said / 2.0), said));
        assert!((trust_in_rewards(half) - 0.5).abs() < 1e-12);
        let against = said.iter().map(|said| (own(-said), said));
        assert_eq!(trust_in_rewards(against), 0.0);
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
