//! Random 3-SAT near the threshold: small files on which a solver's parameters matter.

use std::fmt::Write as _;

use rand::seq::index::sample;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// Clauses per variable at which half of all formulas are satisfiable and solvers take longest.
const RATIO: f64 = 4.26;

/// One formula in DIMACS form. Depends only on its arguments.
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
