//! Fits that are stopped.

use std::time::{Duration, Instant};

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::whole::friedman;
use crate::{
    Allowance, Dataset, FitOutcome, LevelOrder, Params, ReadOptions, Resource, Stop, fit_until,
};

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
                // On a loaded machine this process may not run for a while. The CPU clock stands still then.
                let most = if resource == Resource::Cpu { 0.1 } else { 5.0 };
                assert!((0.05..most).contains(&used), "{resource:?}: {used}");
            }
            FitOutcome::Done { .. } => panic!("100,000 trees take longer"),
        }
        assert!(started.elapsed() < Duration::from_secs(30));
    }
}

#[test]
fn guards_stop_a_fit_whatever_its_limit_is_counted_in() {
    let data = friedman(2000, 3);
    let long = Params {
        trees: 100_000,
        ..params(2)
    };
    for (guard, other) in [
        (Resource::Wall, Resource::Cpu),
        (Resource::Cpu, Resource::Wall),
    ] {
        let far = Allowance {
            resource: other,
            amount: 1e6,
        };
        let near = Allowance {
            resource: guard,
            amount: 0.05,
        };
        let work = Allowance {
            resource: Resource::Work,
            amount: 1e18,
        };
        for allowance in [None, Some(far), Some(work)] {
            let stop = Stop::guarded(vec![far, near]);
            let fit = fit_until(&data, &rows(&data), &long, &stop, allowance);
            let FitOutcome::Stopped { consumed } = fit.unwrap() else {
                panic!("100,000 trees take longer");
            };
            assert_eq!(stop.hit(), Some(guard));
            let used = consumed.of(guard);
            let most = if guard == Resource::Cpu { 0.1 } else { 5.0 };
            assert!((0.05..most).contains(&used), "{guard:?}: {used}");
        }
    }
    // A guard that is not reached changes nothing.
    let stop = Stop::guarded(vec![Allowance {
        resource: Resource::Cpu,
        amount: 1e6,
    }]);
    let fit = fit_until(&data, &rows(&data), &params(2), &stop, None).unwrap();
    assert!(matches!(fit, FitOutcome::Done { .. }));
    assert_eq!((stop.hit(), stop.is_raised()), (None, false));
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

/// 100,000 rows of 10 classes: an id, factors of few and many levels, and numbers of which some are missing.
fn many_rows_and_classes() -> Dataset {
    use std::fmt::Write;
    let mut rng = Pcg64Mcg::seed_from_u64(7);
    let mut text = String::from("id,a,b,c,d,x,z,y\n");
    for row in 0..100_000 {
        let mut level = |most: u32| rng.random_range(0..most);
        let (a, b, c, d) = (level(5), level(40), level(1_000), level(20_000));
        let (x, y) = (level(1 << 30), level(10));
        let z = if level(10) == 0 {
            "NA".into()
        } else {
            level(1 << 30).to_string()
        };
        writeln!(text, "i{row},a{a},b{b},c{c},d{d},{x},{z},y{y}").unwrap();
    }
    let options = ReadOptions {
        order: LevelOrder::ByResponse,
        ..ReadOptions::predict("y")
    };
    Dataset::parse(text.as_bytes(), &options).unwrap()
}

fn cpu_seconds() -> f64 {
    let clock = nix::time::ClockId::CLOCK_THREAD_CPUTIME_ID;
    Duration::from(clock.now().unwrap()).as_secs_f64()
}

#[test]
fn large_tables_of_many_classes_are_let_go_of_within_little_cpu_time() {
    let data = many_rows_and_classes();
    let rows = rows(&data);
    let long = Params {
        mtry: Some(7),
        trees: 1_000,
        ..Params::default()
    };
    // From sorting the first column to the middle of a tree. Measured around the fit, so that nothing is left out.
    let mut late: Vec<f64> = (0..20)
        .map(|fit| {
            let amount = 0.000_5 * 1.4_f64.powi(fit);
            let limit = Some(Allowance {
                resource: Resource::Cpu,
                amount,
            });
            let started = cpu_seconds();
            let outcome = fit_until(&data, &rows, &long, &Stop::new(), limit).unwrap();
            let used = cpu_seconds() - started;
            let FitOutcome::Stopped { consumed } = outcome else {
                panic!("1,000 trees take longer than {amount} s");
            };
            assert!(consumed.of(Resource::Cpu) > amount);
            used - amount
        })
        .collect();
    late.sort_by(f64::total_cmp);
    // Optimised, it is a tenth of this. Other processes share the cache.
    assert!(late[10] < 0.004, "late by {late:?}");

    // A flag that is already raised is seen before anything is sorted.
    let stop = Stop::new();
    stop.raise();
    let mut used: Vec<f64> = (0..9)
        .map(|_| {
            let started = cpu_seconds();
            let outcome = fit_until(&data, &rows, &long, &stop, None).unwrap();
            assert!(matches!(outcome, FitOutcome::Stopped { .. }));
            cpu_seconds() - started
        })
        .collect();
    used.sort_by(f64::total_cmp);
    assert!(used[4] < 0.004, "late by {used:?}");
}
