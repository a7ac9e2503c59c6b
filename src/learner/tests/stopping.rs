//! Fits that are stopped.

use std::time::{Duration, Instant};

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::whole::friedman;
use crate::learner::{Allowance, Dataset, FitOutcome, Params, Resource, Stop, fit_until};

fn params(threads: usize) -> Params {
    Params {
        trees: 200,
        mtry: Some(5),
        threads,
        ..Params::default()
    }
}

fn rows(data: &Dataset) -> Vec<u32> {
    (0..data.rows() as u32).collect()
}

fn limited(data: &Dataset, params: &Params, resource: Resource, amount: f64) -> FitOutcome {
    let allowance = Allowance { resource, amount };
    fit_until(data, &rows(data), params, &Stop::new(), Some(allowance)).unwrap()
}

#[test]
fn work_is_counted_alike_for_any_number_of_threads_and_decides_exactly() {
    let data = friedman(300, 1);
    let FitOutcome::Done { consumed, .. } = limited(&data, &params(1), Resource::Work, 1e15) else {
        panic!("plenty of work");
    };
    let work = consumed.work as f64;
    for threads in [1, 2, 3] {
        match limited(&data, &params(threads), Resource::Work, work) {
            FitOutcome::Done { consumed, .. } => assert_eq!(consumed.work as f64, work),
            FitOutcome::Stopped { .. } => panic!("what it takes is enough"),
        }
        let less = limited(&data, &params(threads), Resource::Work, work - 1.0);
        assert!(matches!(less, FitOutcome::Stopped { .. }));
    }
}

#[test]
fn fits_stopped_at_any_amount_of_work_give_no_forest_and_say_what_they_used() {
    let data = friedman(200, 2);
    let FitOutcome::Done { consumed, .. } = limited(&data, &params(1), Resource::Work, 1e15) else {
        panic!("plenty of work");
    };
    for step in 0..60_u32 {
        let amount = consumed.work as f64 * f64::from(step) / 60.0;
        for threads in [1, 2] {
            match limited(&data, &params(threads), Resource::Work, amount) {
                FitOutcome::Stopped { consumed } => {
                    assert!(consumed.of(Resource::Work) > amount);
                }
                FitOutcome::Done { .. } => panic!("{amount} is too little"),
            }
        }
    }
}

#[test]
fn limits_on_time_stop_a_long_fit_soon() {
    let data = friedman(2000, 3);
    let long = Params {
        trees: 100_000,
        ..params(2)
    };
    for resource in [Resource::Wall, Resource::Cpu] {
        let started = Instant::now();
        match limited(&data, &long, resource, 0.05) {
            FitOutcome::Stopped { consumed } => {
                let used = consumed.of(resource);
                // A loaded machine may keep us off the processor for long; the CPU clock then stands still.
                let most = if resource == Resource::Cpu { 0.1 } else { 5.0 };
                assert!((0.05..most).contains(&used), "{resource:?}: {used}");
            }
            FitOutcome::Done { .. } => panic!("100,000 trees take longer"),
        }
        assert!(started.elapsed() < Duration::from_secs(30));
    }
}

#[test]
fn fits_stopped_by_the_flag_at_random_moments_give_no_forest() {
    let data = friedman(1000, 4);
    let long = Params {
        trees: 1_000_000,
        ..params(2)
    };
    let mut moment = Pcg64Mcg::seed_from_u64(4);
    for _ in 0..20 {
        let stop = Stop::new();
        let delay = Duration::from_micros(moment.random_range(0..30_000));
        let outcome = std::thread::scope(|scope| {
            let fit = scope.spawn(|| fit_until(&data, &rows(&data), &long, &stop, None).unwrap());
            std::thread::sleep(delay);
            stop.raise();
            fit.join().unwrap()
        });
        assert!(matches!(outcome, FitOutcome::Stopped { .. }));
    }
}

#[test]
fn fits_stopped_at_random_amounts_of_work_leave_nothing_behind() {
    const FITS: u32 = 30;
    let data = friedman(1000, 4);
    let few = Params {
        trees: 20,
        min_node_size: Some(1),
        ..params(2)
    };
    let FitOutcome::Done { forest, consumed } = limited(&data, &few, Resource::Work, 1e15) else {
        panic!("plenty of work");
    };
    let nodes: usize = forest.trees.iter().map(|tree| tree.nodes.len()).sum();
    let bytes_per_work = (20 * nodes) as f64 / consumed.work as f64;
    let work_per_tree = consumed.work as f64 / 20.0;
    let long = Params {
        trees: 1_000_000,
        ..few.clone()
    };
    let mut moment = Pcg64Mcg::seed_from_u64(5);
    let mut stop_one = || {
        let amount = moment.random_range(0.0..400.0 * work_per_tree);
        match limited(&data, &long, Resource::Work, amount) {
            FitOutcome::Stopped { consumed } => consumed.work as f64 * bytes_per_work,
            FitOutcome::Done { .. } => panic!("a million trees take more"),
        }
    };
    // The allocator keeps some of what is freed, so the first fits do not count.
    for _ in 0..4 {
        stop_one();
    }
    let before = resident_bytes();
    let grown: f64 = (0..FITS).map(|_| stop_one()).sum();
    let kept = resident_bytes() - before;
    // Other tests of this process come and go meanwhile.
    let noise = 32e6;
    assert!(
        grown > 2.0 * noise,
        "only {grown} bytes of trees were grown"
    );
    assert!(kept < 0.2 * grown + noise, "{kept} of {grown} bytes");
}

fn resident_bytes() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS:"))
        .unwrap();
    let kib: f64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    1024.0 * kib
}
