//! What each parameter does to the error of a forest, over the 16 corners of the paper's grid:
//! `cargo run --release --example main_effects -- DATA COLUMN [SPLITS [FIRST]]` prints a Markdown table. If you tuned something on
//! the first splits, judge it on others: `400 400`, for example.
//!
//! Fitting 100 and 700 trees and comparing leaves an effect of 1 % unknown to a third of its size after 20 splits. But the error
//! of a forest of n trees is that of endless ones plus their variance / n, so that small forests of one split, taken
//! together, tell both numbers, and with them the error at 100 and at 700 trees: 200 trees do the work of 800.

use std::collections::BTreeMap;
use std::error::Error;
use std::io::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use captime_forest::{Dataset, FitOutcome, Params, ReadOptions, Split, Stop, Task, fit_until};

/// Trees of one small forest, and how many of them are grown for each corner of each split.
const SMALL: usize = 10;
const FORESTS: usize = 20;

const TREES: [usize; 2] = [100, 700];
const MTRY: [usize; 2] = [20, 30];
const NODE_SIZE: [usize; 2] = [3, 9];
const FRACTION: [f64; 2] = [0.55, 0.8];

/// The parameters behind the bits of a corner's number.
const NAMES: [&str; 4] = [
    "mtry 20 to 30",
    "min node size 3 to 9",
    "sample fraction 0.55 to 0.8",
    "trees 100 to 700",
];
const CORNERS: usize = 1 << NAMES.len();

type Failure = Box<dyn Error + Send + Sync>;

/// The mean squared error of a forest of any size.
struct Errors {
    /// Of endless trees.
    endless: f64,
    /// Variance between trees.
    between: f64,
}

impl Errors {
    /// From the predictions of small forests of `trees` each. Both figures are unbiased.
    fn of(forests: &[Vec<f64>], truth: &[f64], trees: usize) -> Self {
        let count = forests.len() as f64;
        let (mut endless, mut between) = (0.0, 0.0);
        for (row, y) in truth.iter().enumerate() {
            let mean = forests.iter().map(|seen| seen[row]).sum::<f64>() / count;
            let squares: f64 = forests.iter().map(|seen| (seen[row] - mean).powi(2)).sum();
            let variance = squares / (count - 1.0);
            endless += (y - mean).powi(2) - variance / count;
            between += variance * trees as f64;
        }
        let rows = truth.len() as f64;
        Self {
            endless: endless / rows,
            between: between / rows,
        }
    }

    fn log_rmse(&self, trees: usize) -> f64 {
        0.5 * (self.endless + self.between / trees as f64).ln()
    }
}

/// The results of one split.
struct Seen {
    /// The logarithm of the error in every corner.
    errors: [f64; CORNERS],
    /// The rows that were tested, and how far all trees of all corners together are off there, squared.
    missed: Vec<(u32, f64)>,
}

fn look(data: &Dataset, number: u64) -> Result<Seen, Failure> {
    let split = Split::random(data.rows(), 0.7, 5000 + number)?;
    let truth: Vec<f64> = split
        .test
        .iter()
        .map(|&row| data.target().y()[row as usize])
        .collect();
    let mut errors = [0.0; CORNERS];
    let mut sums = vec![0.0; truth.len()];
    for corner in 0..CORNERS / 2 {
        let side = |bit: usize| corner >> bit & 1;
        let mut seen = Vec::new();
        for forest in 0..FORESTS {
            let params = Params {
                trees: SMALL,
                mtry: Some(MTRY[side(0)]),
                min_node_size: Some(NODE_SIZE[side(1)]),
                sample_fraction: FRACTION[side(2)],
                seed: 1 + 1000 * number + forest as u64,
                threads: 1,
                ..Params::default()
            };
            match fit_until(data, &split.train, &params, &Stop::new(), None)? {
                FitOutcome::Done { forest, .. } => seen.push(forest.predict(data, &split.test)),
                FitOutcome::Stopped { .. } => return Err("the fit was stopped".into()),
            }
        }
        for (row, sum) in sums.iter_mut().enumerate() {
            *sum += seen.iter().map(|forest| forest[row]).sum::<f64>();
        }
        let seen = Errors::of(&seen, &truth, SMALL);
        errors[corner] = seen.log_rmse(TREES[0]);
        errors[corner + CORNERS / 2] = seen.log_rmse(TREES[1]);
    }
    let forests = (FORESTS * CORNERS / 2) as f64;
    let squares = sums
        .iter()
        .zip(&truth)
        .map(|(s, y)| (s / forests - y).powi(2));
    let missed = split.test.iter().copied().zip(squares).collect();
    Ok(Seen { errors, missed })
}

/// The percentage of the squared error that lies in the `worst` rows, each taken at its mean over the splits that tested it.
fn concentration<'a>(missed: impl Iterator<Item = &'a (u32, f64)>, worst: usize) -> f64 {
    let mut rows: BTreeMap<u32, (f64, f64)> = BTreeMap::new();
    for (row, square) in missed {
        let (sum, count) = rows.entry(*row).or_default();
        *sum += square;
        *count += 1.0;
    }
    let mut means: Vec<f64> = rows.values().map(|(sum, count)| sum / count).collect();
    means.sort_by(|a, b| b.total_cmp(a));
    100.0 * means.iter().take(worst).sum::<f64>() / means.iter().sum::<f64>()
}

/// Percent by which the error changes from one end of the parameter to the other, the others at both.
fn effect(errors: &[f64; CORNERS], bit: usize) -> f64 {
    let signed = |(corner, error): (usize, &f64)| {
        if corner >> bit & 1 == 1 {
            *error
        } else {
            -error
        }
    };
    let change: f64 = errors.iter().enumerate().map(signed).sum();
    100.0 * (change / (CORNERS / 2) as f64).exp_m1()
}

/// Mean and 95 % interval.
fn summary(values: impl Iterator<Item = f64> + Clone) -> String {
    let count = values.clone().count() as f64;
    let mean = values.clone().sum::<f64>() / count;
    let squares: f64 = values.map(|value| (value - mean).powi(2)).sum();
    let doubt = 1.96 * (squares / (count - 1.0) / count).sqrt();
    format!("{mean:+.2} ± {doubt:.2} %")
}

fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let (Some(path), Some(column)) = (arguments.next(), arguments.next()) else {
        return Err("usage: main_effects DATA COLUMN [SPLITS [FIRST]]".into());
    };
    let splits: usize = arguments.next().map_or(Ok(400), |text| text.parse())?;
    let first: u64 = arguments.next().map_or(Ok(0), |text| text.parse())?;
    if splits < 2 {
        return Err("an interval takes two splits at least".into());
    }
    let data = Dataset::read(&path, &ReadOptions::predict(&column))?;
    if data.task() != Task::Regression {
        return Err(format!("{column} is a class: only errors of numbers are computed").into());
    }
    let next = AtomicUsize::new(0);
    let seen = Mutex::new(Vec::new());
    let work = || -> Result<(), Failure> {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= splits {
                return Ok(());
            }
            let one = look(&data, first + number as u64)?;
            seen.lock()
                .expect("no thread panics with it")
                .push((number, one));
        }
    };
    thread::scope(|scope| {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let workers: Vec<_> = (0..cores).map(|_| scope.spawn(work)).collect();
        workers
            .into_iter()
            .try_for_each(|worker| worker.join().expect("a fit does not panic"))
    })?;
    let mut seen = seen.into_inner()?;
    seen.sort_by_key(|(number, _)| *number); // sums of floats depend on the order, and the table must not

    let of = |bit: usize| seen.iter().map(move |(_, one)| effect(&one.errors, bit));
    let mut out = std::io::stdout().lock();
    writeln!(
        out,
        "{path}: {splits} splits from number {first} on, mean and 95 % interval\n"
    )?;
    writeln!(out, "| | RMSE |\n|---|---|")?;
    for (bit, name) in NAMES.iter().enumerate() {
        writeln!(out, "| {name} | {} |", summary(of(bit)))?;
    }
    // By the signs of the means: the size of each split's own effect would count its noise as effect.
    let sign = |bit: usize| of(bit).sum::<f64>().signum();
    let (node, trees) = (sign(1), sign(3));
    let lead = of(1).zip(of(3)).map(|(n, t)| node * n - trees * t);
    writeln!(out, "| lead of node size over trees | {} |", summary(lead))?;
    let missed = || seen.iter().flat_map(|(_, one)| &one.missed);
    let (three, thirty) = (concentration(missed(), 3), concentration(missed(), 30));
    writeln!(
        out,
        "\nOf the squared error {three:.0} % lies in 3 rows and {thirty:.0} % in 30."
    )?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_of_the_small_forests_themselves_comes_out_as_it_is() {
        let truth = [3.0, -1.0, 4.0];
        let forests = vec![
            vec![2.0, 0.0, 5.0],
            vec![2.5, -1.0, 3.0],
            vec![4.0, 1.0, 4.5],
        ];
        let squares = |seen: &Vec<f64>| {
            let each = seen.iter().zip(&truth).map(|(p, y)| (p - y).powi(2));
            each.sum::<f64>() / 3.0
        };
        let mean = forests.iter().map(squares).sum::<f64>() / 3.0;
        let seen = Errors::of(&forests, &truth, 10);
        assert!((seen.log_rmse(10) - 0.5 * mean.ln()).abs() < 1e-12);
        assert!(seen.log_rmse(100) < seen.log_rmse(10));
    }

    #[test]
    fn rows_that_were_tested_more_often_do_not_count_more() {
        // 3 on the average in row 7, and 1 in row 8.
        let missed = [(7, 2.0), (8, 1.0), (7, 4.0)];
        assert!((concentration(missed.iter(), 1) - 75.0).abs() < 1e-12);
        assert!((concentration(missed.iter(), 5) - 100.0).abs() < 1e-12);
    }

    #[test]
    fn an_effect_is_the_change_from_one_end_to_the_other() {
        let errors = std::array::from_fn(|corner| if corner >> 2 & 1 == 1 { 0.02 } else { 0.01 });
        assert!((effect(&errors, 2) - 1.005).abs() < 1e-3);
        assert_eq!(effect(&errors, 0), 0.0);
    }
}
