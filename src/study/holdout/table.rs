//! Marks as text for people and as CSV for programs.

use std::io::{self, Write};

use super::super::result::Estimate;
use super::super::table::{bar, decimals, estimate, or_empty, rounded};
use super::mark::{Mark, Marks};
use crate::quantity::{self, counted, grouped};

/// Heads of the columns of a budget's table.
const HEADS: [&str; 10] = [
    "policy",
    "test PAR10",
    "",
    "train PAR10",
    "gap closed",
    "pair gains",
    "CPU",
    "runs",
    "censored",
    "gain",
];

/// Columns of text, which are left-aligned.
const LEFT: [usize; 2] = [0, 2];

/// Writes what answers can be compared with, then a table per budget, the policy with the best answer first.
pub fn text(marks: &[Marks], to: &mut dyn Write) -> io::Result<()> {
    let Some(first) = marks.first() else {
        return Ok(());
    };
    writeln!(
        to,
        "{}: {} x {}, {}, {}, {}",
        first.problem,
        arms(first),
        counted(first.limits as u64, "limit"),
        counted(first.training as u64, "training instance"),
        counted(first.test as u64, "test instance"),
        match first.halves {
            1 => counted(first.repetitions, "repetition"),
            halves => format!(
                "{} of {}",
                counted(first.repetitions, "repetition"),
                counted(halves as u64, "random half").replace("halfs", "halves")
            ),
        },
    )?;
    let known = &first.baselines;
    let par10 = |value: f64| {
        let mean = Some(value);
        grouped(value, decimals(Estimate { mean, se: None }))
    };
    writeln!(
        to,
        "test PAR10 at {}{}: best possible {}{}, best training arm {} ({}{} in training), median arm {}",
        rounded(first.cutoff),
        if first.is_open {
            ", of the recorded arms"
        } else {
            ""
        },
        par10(known.best_test.test),
        known
            .best_test
            .arm
            .map(|arm| format!(" (arm {arm})"))
            .unwrap_or_default(),
        par10(known.best_training.test),
        known
            .best_training
            .arm
            .map(|arm| format!("arm {arm}, "))
            .unwrap_or_default(),
        par10(known.best_training.train),
        par10(known.median_training.test),
    )?;
    for place in 0..first.budgets.len() {
        let of_budget: Vec<(&str, &Mark)> = marks
            .iter()
            .map(|marks| (marks.label.as_str(), &marks.budgets[place]))
            .collect();
        writeln!(to, "\nafter {} of cpu\n", budget(&first.budgets[place]))?;
        budget_text(of_budget, to)?;
    }
    writeln!(
        to,
        "\nPAR10: mean time over instances, ten times the cutoff where nothing was solved. The answer is the arm recommended for the\nlargest limit. Gap closed: how far it has come from the median arm to the best, by training PAR10. `pair gains`: what a run of the\npair answered without a limit gains on the training instances."
    )?;
    if first.repetitions > 1 || first.halves > 1 {
        writeln!(to, "Means over repetitions; ± is the standard error.")?;
    }
    Ok(())
}

/// Writes the share of the gap closed for each scenario, then mean and worst over scenarios. Every scenario has the
/// marks of the same policies and the same number of budgets.
pub fn text_of_several(scenarios: &[Vec<Marks>], to: &mut dyn Write) -> io::Result<()> {
    let Some(first) = scenarios.first().and_then(|marks| marks.first()) else {
        return Ok(());
    };
    let policies = || 0..scenarios[0].len();
    let label = |policy: usize| scenarios[0][policy].label.clone();
    let budgets = first.budgets.iter().map(budget);
    let heads: Vec<String> = [String::new()].into_iter().chain(budgets).collect();
    let share = |marks: &Marks, place: usize| marks.budgets[place].share;
    let text = |share: Estimate| match share.mean {
        Some(_) => estimate(share, 2),
        None => "none".into(),
    };
    writeln!(
        to,
        "Share of the gap closed from the median arm to the best arm, by training PAR10.\n"
    )?;
    for marks in scenarios {
        let (name, arms) = (&marks[0].problem, arms(&marks[0]));
        let instances = counted(marks[0].training as u64, "training instance");
        writeln!(to, "{name}: {arms}, {instances}")?;
        let rows = marks.iter().map(|marks| {
            let shares = (0..first.budgets.len()).map(|place| text(share(marks, place)));
            [marks.label.clone()].into_iter().chain(shares).collect()
        });
        aligned(&heads, &rows.collect::<Vec<Vec<String>>>(), &[0], to)?;
        writeln!(to)?;
    }
    writeln!(
        to,
        "Mean ± standard error (worst) over {}, {}:",
        counted(scenarios.len() as u64, "scenario"),
        counted(first.halves as u64 * first.repetitions, "run of each")
            .replace("run of eachs", "runs of each"),
    )?;
    let rows = policies().map(|policy| {
        let cells = (0..first.budgets.len()).map(|place| {
            let shares = scenarios.iter().map(|marks| share(&marks[policy], place));
            let known: Vec<Estimate> = shares.filter(|share| share.mean.is_some()).collect();
            let means: Vec<f64> = known.iter().filter_map(|share| share.mean).collect();
            if means.is_empty() {
                return "none".to_owned();
            }
            let count = means.len() as f64;
            // Of the mean of these scenarios, not of all that there might be.
            let squares: Option<f64> = known.iter().map(|share| Some(share.se?.powi(2))).sum();
            let mean = Estimate {
                mean: Some(means.iter().sum::<f64>() / count),
                se: squares.map(|sum| sum.sqrt() / count),
            };
            let worst = means.iter().copied().fold(f64::INFINITY, f64::min);
            format!("{} ({worst:.2})", estimate(mean, 2))
        });
        [label(policy)].into_iter().chain(cells).collect()
    });
    aligned(&heads, &rows.collect::<Vec<Vec<String>>>(), &[0], to)
}

/// How many arms there are, if it is known.
fn arms(marks: &Marks) -> String {
    if marks.is_open {
        "an open space".into()
    } else {
        counted(marks.arms as u64, "arm")
    }
}

/// A budget as it was given.
fn budget(mark: &Mark) -> String {
    match mark.sweeps {
        Some(sweeps) => format!("{} B", rounded(sweeps)),
        None => quantity::seconds(mark.cpu),
    }
}

fn budget_text(mut marks: Vec<(&str, &Mark)>, to: &mut dyn Write) -> io::Result<()> {
    let test = |mark: &Mark| mark.test.mean.unwrap_or(f64::NAN);
    marks.sort_by(|(_, a), (_, b)| test(a).total_cmp(&test(b)));
    let worst = marks.iter().map(|(_, mark)| test(mark)).fold(0.0, f64::max);
    let plain = |value: Estimate| match value.mean {
        Some(mean) => grouped(mean, 0),
        None => "unknown".into(),
    };
    let rows: Vec<Vec<String>> = marks
        .iter()
        .map(|(label, mark)| {
            vec![
                (*label).to_owned(),
                estimate(mark.test, decimals(mark.test)),
                bar(test(mark), worst),
                estimate(mark.train, decimals(mark.train)),
                match mark.share.mean {
                    Some(_) => estimate(mark.share, 2),
                    None => "none".into(),
                },
                estimate(mark.pair, 4),
                quantity::seconds(mark.spent.mean.unwrap_or(0.0)),
                plain(mark.runs),
                match mark.censored.mean {
                    Some(share) => format!("{:.1} %", 100.0 * share),
                    None => "unknown".into(),
                },
                plain(mark.gain),
            ]
        })
        .collect();
    aligned(&HEADS.map(str::to_owned), &rows, &LEFT, to)
}

/// Writes a table with columns of even width. Those in `left` are left-aligned.
fn aligned(
    heads: &[String],
    rows: &[Vec<String>],
    left: &[usize],
    to: &mut dyn Write,
) -> io::Result<()> {
    let length = |cell: &String| cell.chars().count();
    let width = |column: usize| {
        let cells = rows.iter().map(|row| length(&row[column]));
        cells.chain([length(&heads[column])]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..heads.len()).map(width).collect();
    for row in [heads].into_iter().chain(rows.iter().map(Vec::as_slice)) {
        let mut text = String::new();
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let blanks = " ".repeat(width.saturating_sub(length(cell)));
            text += "  ";
            if left.contains(&column) {
                text = text + cell + &blanks;
            } else {
                text = text + &blanks + cell;
            }
        }
        writeln!(to, "{}", text.trim_end())?;
    }
    Ok(())
}

/// Writes one row per policy and budget. Unknown values are empty.
pub fn summary_csv(marks: &[Marks], to: impl Write) -> io::Result<()> {
    csv(marks, to, |marks| &marks.budgets)
}

/// Writes one row per point of every curve.
pub fn curves_csv(marks: &[Marks], to: impl Write) -> io::Result<()> {
    csv(marks, to, |marks| &marks.curve)
}

fn csv(marks: &[Marks], to: impl Write, which: impl Fn(&Marks) -> &[Mark]) -> io::Result<()> {
    let mut csv = csv::Writer::from_writer(to);
    let known = ["problem", "policy", "parameters", "slots", "arms", "limits"];
    let known = known
        .into_iter()
        .chain(["training", "test", "cutoff", "halves", "repetitions"])
        .chain(["cpu", "sweeps"]);
    let of_mark = [
        "share",
        "test_share",
        "test_par10",
        "train_par10",
        "pair_gain",
        "spent",
        "runs",
        "censored",
        "gain",
    ];
    let measured = of_mark
        .iter()
        .flat_map(|name| [format!("{name}_mean"), format!("{name}_se")]);
    let heads = known.map(str::to_owned).chain(measured);
    csv.write_record(heads.chain(["answered".into()]))?;
    for marks in marks {
        let parameters = serde_json::Value::Object(marks.parameters.clone()).to_string();
        for mark in which(marks) {
            let known = [
                marks.problem.clone(),
                marks.policy.to_owned(),
                parameters.clone(),
                marks.slots.to_string(),
                marks.arms.to_string(),
                marks.limits.to_string(),
                marks.training.to_string(),
                marks.test.to_string(),
                marks.cutoff.to_string(),
                marks.halves.to_string(),
                marks.repetitions.to_string(),
                mark.cpu.to_string(),
                or_empty(mark.sweeps),
            ];
            let estimates = [
                mark.share,
                mark.test_share,
                mark.test,
                mark.train,
                mark.pair,
                mark.spent,
                mark.runs,
                mark.censored,
                mark.gain,
            ];
            let measured = estimates
                .into_iter()
                .flat_map(|estimate| [or_empty(estimate.mean), or_empty(estimate.se)]);
            let row = known.into_iter().chain(measured);
            csv.write_record(row.chain([mark.answered.to_string()]))?;
        }
    }
    csv.flush()
}
