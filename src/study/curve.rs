//! Where curves have their points: at rounds, or at CPU times.

use std::collections::BTreeSet;

/// Points of each kind.
const POINTS: u64 = 100;

/// About 200 rounds up to the last: half of them evenly spaced, half with a constant ratio, so that both the opening and the
/// long run are drawn smoothly.
pub(super) fn checkpoints(rounds: u64) -> Vec<u64> {
    let even =
        (1..=POINTS).map(|k| (u128::from(rounds) * u128::from(k) / u128::from(POINTS)) as u64);
    let ratio = (0..=POINTS).map(|k| (rounds as f64).powf(k as f64 / POINTS as f64).round() as u64);
    even.chain(ratio)
        .chain([rounds])
        .filter(|round| (1..=rounds).contains(round))
        .collect::<BTreeSet<_>>()
        .into_iter()
        .collect()
}

/// Points per factor of ten.
const PER_DECADE: f64 = 12.0;

/// The curve begins at this part of the smallest budget.
const FIRST: f64 = 0.01;

/// The most points to keep, however far apart the budgets are.
const MOST: f64 = 200.0;

/// The CPU times at which answers are judged: every budget, and points with a constant ratio between them, ascending.
pub(super) fn cpu_times(budgets: &[f64]) -> Vec<f64> {
    let least = FIRST * budgets.iter().copied().fold(f64::INFINITY, f64::min);
    let most = budgets.iter().copied().fold(0.0, f64::max);
    let decades = (most / least).log10();
    let count = (PER_DECADE * decades).round().clamp(1.0, MOST) as u32;
    let ratio = (0..count).map(|k| least * 10f64.powf(decades * f64::from(k) / f64::from(count)));
    let is_between = |point: &f64| {
        let is_budget = |budget: &f64| (point / budget - 1.0).abs() < 1e-9;
        *point < most && !budgets.iter().any(is_budget)
    };
    let mut points: Vec<f64> = ratio
        .filter(is_between)
        .chain(budgets.iter().copied())
        .collect();
    points.sort_by(f64::total_cmp);
    points.dedup();
    points
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn curves_have_both_ends_and_about_two_hundred_points() {
        for rounds in [1, 2, 10, 150, 1000, 100_000, 10_000_000_000] {
            let points = checkpoints(rounds);
            assert_eq!((points[0], points[points.len() - 1]), (1, rounds));
            assert!(points.windows(2).all(|pair| pair[0] < pair[1]));
            assert!(points.len() <= 201);
            assert!(rounds < 1000 || points.len() > 150, "{}", points.len());
        }
    }

    #[test]
    fn every_budget_is_a_point_and_the_last_is_the_largest() {
        for budgets in [
            vec![3600.0],
            vec![3600.0, 360_000.0, 36_000.0],
            vec![1.0, 7.0, 1e12, 7.0],
        ] {
            let points = cpu_times(&budgets);
            assert!(points.windows(2).all(|pair| pair[0] < pair[1]));
            assert!(budgets.iter().all(|budget| points.contains(budget)));
            let most = budgets.iter().copied().fold(0.0, f64::max);
            assert_eq!(points.last(), Some(&most));
            assert!((25..=210).contains(&points.len()), "{}", points.len());
        }
    }
}
