//! The rounds at which a curve is kept.

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
}
