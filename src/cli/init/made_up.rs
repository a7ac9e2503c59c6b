//! Data that the examples run on, made up when they are written: a table of houses and random formulas.

use std::fmt::Write as _;

use rand::seq::index::sample;
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, Normal};
use rand_pcg::Pcg64Mcg;

const ZONES: [(&str, f64); 4] = [
    ("centre", 1.25),
    ("harbour", 1.1),
    ("north", 0.95),
    ("outskirts", 0.8),
];

const CONDITIONS: [(&str, f64); 4] = [("poor", 0.8), ("fair", 0.92), ("good", 1.05), ("new", 1.2)];

/// A table of synthetic houses, enough for a forest to learn from: a CSV with this many rows. Depends only on its arguments.
pub(super) fn houses(rows: usize, seed: u64) -> String {
    let mut rng = Pcg64Mcg::seed_from_u64(seed);
    let noise = Normal::new(0.0, 0.08).expect("a positive deviation");
    let mut text =
        String::from("area,rooms,year,garden,distance,zone,condition,garage,floor,noise,price\n");
    for _ in 0..rows {
        let area: f64 = rng.random_range(30.0..220.0);
        let rooms = (area / 28.0 + rng.random_range(0.0..2.0)).floor().max(1.0);
        let year = rng.random_range(1900..2025);
        let garden: f64 = if rng.random_bool(0.4) {
            rng.random_range(10.0..600.0)
        } else {
            0.0
        };
        let distance: f64 = rng.random_range(0.2..25.0);
        let (zone, zone_factor) = ZONES[rng.random_range(0..ZONES.len())];
        let (condition, condition_factor) = CONDITIONS[rng.random_range(0..CONDITIONS.len())];
        let garage = rng.random_range(0..3);
        let floor = rng.random_range(0..6);
        let loudness = rng.random_range(30..80);
        let age = f64::from(2025 - year);
        let price = 1800.0
            * area
            * zone_factor
            * condition_factor
            * (1.0 - 0.002 * age)
            * (1.0 - 0.01 * distance)
            * (1.0 - 0.003 * f64::from(loudness - 30))
            + 60.0 * garden
            + 9000.0 * f64::from(garage);
        let price = price * (1.0 + noise.sample(&mut rng));
        let _ = writeln!(
            text,
            "{area:.1},{rooms},{year},{garden:.0},{distance:.1},{zone},{condition},{garage},{floor},{loudness},{price:.0}"
        );
    }
    text
}

/// Clauses per variable at which half of all formulas are satisfiable and solvers take longest.
const RATIO: f64 = 4.26;

/// One formula of random 3-SAT near the threshold, on which a solver's parameters matter, in DIMACS form. Depends only on its arguments.
pub(super) fn formula(variables: usize, seed: u64) -> String {
    let mut rng = Pcg64Mcg::seed_from_u64(seed);
    let clauses = (RATIO * variables as f64).round() as usize;
    let mut text = format!(
        "c random 3-SAT, {variables} variables, seed {seed}\np cnf {variables} {clauses}\n"
    );
    for _ in 0..clauses {
        for variable in sample(&mut rng, variables, 3) {
            let sign = if rng.random_bool(0.5) { "" } else { "-" };
            let _ = write!(text, "{sign}{} ", variable + 1);
        }
        text.push_str("0\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_has_every_column() {
        let text = houses(100, 1);
        assert_eq!(text, houses(100, 1));
        assert_eq!(text.lines().count(), 101);
        for line in text.lines() {
            assert_eq!(line.split(',').count(), 11, "{line}");
        }
        assert!(!text.contains("NaN"));
    }

    #[test]
    fn formulas_are_well_formed_and_repeatable() {
        let text = formula(50, 3);
        assert_eq!(text, formula(50, 3));
        assert_ne!(text, formula(50, 4));
        let clauses: Vec<Vec<i32>> = text
            .lines()
            .skip(2)
            .map(|line| line.split(' ').map(|word| word.parse().unwrap()).collect())
            .collect();
        assert_eq!(clauses.len(), 213);
        for clause in clauses {
            assert_eq!((clause.len(), clause[3]), (4, 0));
            let mut variables: Vec<i32> = clause[..3].iter().map(|literal| literal.abs()).collect();
            variables.sort_unstable();
            variables.dedup();
            assert!(variables.len() == 3 && variables[0] >= 1 && variables[2] <= 50);
        }
    }
}
