//! The CPU times at which answers are judged.

/// Points per factor of ten.
const PER_DECADE: f64 = 12.0;

/// The curve begins at this part of the smallest budget.
const FIRST: f64 = 0.01;

/// The most points to keep, however far apart the budgets are.
const MOST: f64 = 200.0;

/// Every budget, and points with a constant ratio between them, ascending.
pub(super) fn points(budgets: &[f64]) -> Vec<f64> {
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
    fn every_budget_is_a_point_and_the_last_is_the_largest() {
        for budgets in [
            vec![3600.0],
            vec![3600.0, 360_000.0, 36_000.0],
            vec![1.0, 7.0, 1e12, 7.0],
        ] {
            let points = points(&budgets);
            assert!(points.windows(2).all(|pair| pair[0] < pair[1]));
            assert!(budgets.iter().all(|budget| points.contains(budget)));
            let most = budgets.iter().copied().fold(0.0, f64::max);
            assert_eq!(points.last(), Some(&most));
            assert!((25..=210).contains(&points.len()), "{}", points.len());
        }
    }
}
