//! A fit that must not take longer than you can wait: give it an allowance, or stop it from another thread.
//!
//! `cargo run --release -p captime-forest --example fit_until`

use std::io::Write;
use std::time::Duration;

use captime_forest::{
    Allowance, Dataset, FitOutcome, Params, Resource, Scoring, Split, Stop, fit_until,
};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut out = std::io::stdout().lock();

    // A table from code: a wave over the first column, and a second column that is irrelevant.
    let rows = 2_000;
    let wave: Vec<f64> = (0..rows).map(|row| f64::from(row) * 0.618 % 1.0).collect();
    let noise = (0..rows).map(|row| f64::from(row) * 0.377 % 1.0).collect();
    let y = wave.iter().map(|x| (x * 6.0).sin()).collect();
    let columns = vec![("wave".to_owned(), wave), ("noise".to_owned(), noise)];
    let data = Dataset::from_columns(columns, "y", y, vec![])?;
    let split = Split::random(data.rows(), 0.7, 1)?;

    // Enough work for 100 trees. Work is a count, so this fit ends the same way on every machine.
    let params = Params {
        trees: 100,
        threads: 2,
        ..Params::default()
    };
    let allowance = Allowance {
        resource: Resource::Work,
        amount: 1e8,
    };
    let fit = fit_until(&data, &split.train, &params, &Stop::new(), Some(allowance))?;
    let FitOutcome::Done { forest, consumed } = fit else {
        return Err("this is more than enough work".into());
    };
    let predicted = forest.predict(&data, &split.test);
    let seen = data.evaluate(&split.test, &predicted, None, Scoring::default());
    let rmse = seen.rmse.ok_or("numbers have an error")?;
    writeln!(
        out,
        "done with {} units of work, rmse {rmse:.4}",
        consumed.work
    )?;

    // A million trees take minutes. 20 ms of CPU time end the fit, and so does raising the flag.
    let endless = Params {
        trees: 1_000_000,
        ..params
    };
    let allowance = Allowance {
        resource: Resource::Cpu,
        amount: 0.02,
    };
    let fit = fit_until(&data, &split.train, &endless, &Stop::new(), Some(allowance))?;
    let FitOutcome::Stopped { consumed } = fit else {
        return Err("a million trees in 20 ms".into());
    };
    writeln!(
        out,
        "stopped by its allowance after {:?} of CPU time",
        consumed.cpu
    )?;

    let stop = Stop::new();
    let fit = std::thread::scope(|scope| {
        let fit = scope.spawn(|| fit_until(&data, &split.train, &endless, &stop, None));
        std::thread::sleep(Duration::from_millis(20));
        stop.raise();
        fit.join()
    });
    let FitOutcome::Stopped { consumed } = fit.map_err(|_| "the fit panicked")?? else {
        return Err("a million trees in 20 ms".into());
    };
    writeln!(out, "stopped by the flag after {:?}", consumed.wall)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    #[test]
    fn fits_are_done_or_stopped_as_the_example_says() {
        super::main().unwrap();
    }
}
