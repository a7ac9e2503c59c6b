//! Stopped fits leave nothing behind. Alone in its process, since it measures what the process holds.

#![expect(clippy::unwrap_used, reason = "tests may")]

use captime_forest::{Allowance, Dataset, FitOutcome, Params, Resource, Stop, fit_until};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

const ROWS: u32 = 1000;
const FITS: u32 = 40;
/// Bytes of a node and its value; a lower bound will do.
const NODE_BYTES: f64 = 20.0;

fn data() -> Dataset {
    let mut rng = Pcg64Mcg::seed_from_u64(4);
    let mut column = |name: &str| {
        let values = (0..ROWS).map(|_| rng.random::<f64>()).collect();
        (name.to_owned(), values)
    };
    let columns: Vec<(String, Vec<f64>)> = ["a", "b", "c", "d", "e"].map(&mut column).to_vec();
    let y = (0..ROWS as usize).map(|row| columns.iter().map(|(_, values)| values[row]).sum());
    let y = y.collect();
    Dataset::from_columns(columns, "y", y, vec![]).unwrap()
}

fn fit(data: &Dataset, trees: usize, work: f64) -> FitOutcome {
    let params = Params {
        trees,
        threads: 2,
        ..Params::default()
    };
    let rows: Vec<u32> = (0..ROWS).collect();
    let allowance = Allowance {
        resource: Resource::Work,
        amount: work,
    };
    fit_until(data, &rows, &params, &Stop::new(), Some(allowance)).unwrap()
}

fn resident_bytes() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let kib: f64 = line
        .unwrap()
        .split_whitespace()
        .nth(1)
        .unwrap()
        .parse()
        .unwrap();
    1024.0 * kib
}

#[test]
fn fits_stopped_at_random_amounts_of_work_leave_nothing_behind() {
    let data = data();
    let FitOutcome::Done { forest, consumed } = fit(&data, 20, 1e15) else {
        panic!("plenty of work");
    };
    let work_per_tree = consumed.work as f64 / 20.0;
    let bytes_per_tree = NODE_BYTES * (2.0 * forest.mean_leaves() - 1.0);
    let mut moment = Pcg64Mcg::seed_from_u64(5);
    // Gives how many bytes of trees were grown before it stopped.
    let mut stop_one = || {
        let work = moment.random_range(0.0..400.0 * work_per_tree);
        match fit(&data, 1_000_000, work) {
            FitOutcome::Stopped { consumed } => {
                consumed.work as f64 / work_per_tree * bytes_per_tree
            }
            FitOutcome::Done { .. } => panic!("a million trees take more"),
        }
    };
    // The allocator keeps some of what is freed, so the first fits do not count.
    for _ in 0..8 {
        stop_one();
    }
    let before = resident_bytes();
    let grown: f64 = (0..FITS).map(|_| stop_one()).sum();
    let kept = resident_bytes() - before;
    assert!(grown > 60e6, "only {grown} bytes of trees were grown");
    assert!(kept < 0.3 * grown, "{kept} of {grown} bytes");
}
