//! What `captime init` writes.

use super::{File, houses, sat};

/// A forest on a small table.
pub(super) fn forest() -> Vec<File> {
    vec![
        File::text("forest.yaml", include_str!("forest.yaml")),
        File::text("houses.csv", houses::table(1500, 1)),
    ]
}

/// Minisat on random formulas.
pub(super) fn solver() -> Vec<File> {
    let mut files = vec![File::text("solver.yaml", include_str!("solver.yaml"))];
    files.extend((1..=12).map(|k| {
        File::text(
            format!("instances/r{k:02}.cnf"),
            sat::formula(170 + 5 * k as usize, k),
        )
    }));
    files
}

/// A script that prints a score.
pub(super) fn script() -> Vec<File> {
    vec![
        File::text("script.yaml", include_str!("script.yaml")),
        File::program("score.sh", include_str!("score.sh")),
    ]
}
