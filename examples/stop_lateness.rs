//! How late a fit stops: many fits of the shipped houses, each with a limit of its own.
//!
//! `cargo run --release --example stop_lateness [FITS]`; quiet machines only, since on a busy one the scheduler is measured.

use std::io::Write;
use std::time::{Duration, Instant};

use captime::learner::{
    Allowance, Dataset, FitOutcome, Params, ReadOptions, Resource, Split, Stop, fit_until,
};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let fits = std::env::args()
        .nth(1)
        .map_or(Ok(300), |text| text.parse())?;
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/datasets/ames_like.csv");
    let data = Dataset::read(path, &ReadOptions::predict("Sale_Price"))?;
    let split = Split::random(data.rows(), 0.7, 1)?;
    let mut out = std::io::stdout().lock();
    writeln!(out, "lateness in ms     p50     p90     p99     max")?;
    for threads in [1, 2] {
        let params = Params {
            trees: 100_000,
            mtry: Some(30),
            min_node_size: Some(3),
            sample_fraction: 0.8,
            threads,
            ..Params::default()
        };
        for resource in [Resource::Wall, Resource::Cpu] {
            let mut late = Vec::with_capacity(fits);
            for fit in 0..fits {
                // 10 to 40 ms, never the same twice.
                let amount = 0.010 + 0.030 * (fit as f64 * 0.618_034).fract();
                let limit = Some(Allowance { resource, amount });
                match fit_until(&data, &split.train, &params, &Stop::new(), limit)? {
                    FitOutcome::Stopped { consumed } => {
                        late.push((consumed.of(resource) - amount) * 1e3);
                    }
                    FitOutcome::Done { .. } => return Err("100,000 trees took no time".into()),
                }
            }
            row(
                &mut out,
                &format!("{} x{threads}", resource.name()),
                &mut late,
            )?;
        }
        let mut late = Vec::with_capacity(fits);
        for fit in 0..fits {
            let stop = Stop::new();
            let raised = std::thread::scope(|scope| {
                let fitting = scope.spawn(|| {
                    let outcome = fit_until(&data, &split.train, &params, &stop, None);
                    (outcome.is_ok(), Instant::now())
                });
                std::thread::sleep(Duration::from_micros(5_000 + 37 * fit as u64));
                let raised = Instant::now();
                stop.raise();
                fitting
                    .join()
                    .map(|(_, ended)| ended.saturating_duration_since(raised))
            });
            let raised = raised.map_err(|_| "a fit panicked")?;
            late.push(raised.as_secs_f64() * 1e3);
        }
        row(&mut out, &format!("flag x{threads}"), &mut late)?;
    }
    Ok(())
}

fn row(out: &mut dyn Write, name: &str, late: &mut [f64]) -> std::io::Result<()> {
    late.sort_by(f64::total_cmp);
    let at = |share: f64| late[((late.len() - 1) as f64 * share).round() as usize];
    writeln!(
        out,
        "{name:<16} {:>7.3} {:>7.3} {:>7.3} {:>7.3}",
        at(0.5),
        at(0.9),
        at(0.99),
        at(1.0)
    )
}
