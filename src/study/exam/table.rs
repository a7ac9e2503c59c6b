//! Marks as text for people and as CSV for programs.

use std::io::{self, Write};

use super::super::result::Estimate;
use super::super::table::{bar, counted, decimals, estimate, grouped, or_empty, rounded};
use super::mark::{Mark, Marks};
use crate::quantity;

/// Heads of the columns of a budget's table.
const HEADS: [&str; 9] = [
    "policy",
    "test PAR10",
    "",
    "train PAR10",
    "pair",
    "CPU",
    "runs",
    "censored",
    "gain",
];

/// Columns of text, which stand on the left.
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
        counted(first.arms as u64, "arm"),
        counted(first.limits as u64, "limit"),
        counted(first.training as u64, "training instance"),
        counted(first.test as u64, "test instance"),
        counted(first.repetitions, "repetition"),
    )?;
    let known = &first.baselines;
    writeln!(
        to,
        "test PAR10 at {}: best possible {} (arm {}), best training arm {} (arm {}, {} in training), median arm {}",
        rounded(first.cutoff),
        grouped(known.best_test.test, 1),
        known.best_test.arm,
        grouped(known.best_training.test, 1),
        known.best_training.arm,
        grouped(known.best_training.train, 1),
        grouped(known.median_training.test, 1),
    )?;
    for place in 0..first.budgets.len() {
        let of_budget: Vec<(&str, &Mark)> = marks
            .iter()
            .map(|marks| (marks.label.as_str(), &marks.budgets[place]))
            .collect();
        writeln!(
            to,
            "\nafter {} of cpu\n",
            quantity::seconds(first.budgets[place].cpu)
        )?;
        budget_text(of_budget, to)?;
    }
    writeln!(
        to,
        "\nPAR10: mean time over instances, ten times the cutoff where nothing was solved. The answer is the arm recommended for the\nlargest limit; `pair` is the arm of the best pair."
    )?;
    if first.repetitions > 1 {
        writeln!(to, "Means over repetitions; ± is the standard error.")?;
    }
    Ok(())
}

fn budget_text(mut marks: Vec<(&str, &Mark)>, to: &mut dyn Write) -> io::Result<()> {
    let test = |mark: &Mark| mark.test.mean.unwrap_or(f64::NAN);
    marks.sort_by(|(_, a), (_, b)| test(a).total_cmp(&test(b)));
    let worst = marks.iter().map(|(_, mark)| test(mark)).fold(0.0, f64::max);
    let plain = |value: Estimate| match value.mean {
        Some(mean) => grouped(mean, 0),
        None => "unknown".into(),
    };
    let rows: Vec<[String; 9]> = marks
        .iter()
        .map(|(label, mark)| {
            [
                (*label).to_owned(),
                estimate(mark.test, decimals(mark.test)),
                bar(test(mark), worst),
                estimate(mark.train, decimals(mark.train)),
                estimate(mark.pair, decimals(mark.pair)),
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
    let widths: [usize; 9] = std::array::from_fn(|column| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.chain([HEADS[column].len()]).max().unwrap_or(0)
    });
    let mut line = |cells: [&str; 9]| {
        let mut text = String::new();
        for (column, (cell, width)) in cells.iter().zip(widths).enumerate() {
            let blanks = " ".repeat(width.saturating_sub(cell.chars().count()));
            text += "  ";
            if LEFT.contains(&column) {
                text = text + cell + &blanks;
            } else {
                text = text + &blanks + cell;
            }
        }
        writeln!(to, "{}", text.trim_end())
    };
    line(HEADS)?;
    for row in &rows {
        line(std::array::from_fn(|column| row[column].as_str()))?;
    }
    Ok(())
}

/// Writes one row per policy and budget; what is unknown is empty.
pub fn summary_csv(marks: &[Marks], to: impl Write) -> io::Result<()> {
    csv(marks, to, |marks| &marks.budgets)
}

/// Writes one row per point of every curve.
pub fn curves_csv(marks: &[Marks], to: impl Write) -> io::Result<()> {
    csv(marks, to, |marks| &marks.curve)
}

fn csv(marks: &[Marks], to: impl Write, which: impl Fn(&Marks) -> &[Mark]) -> io::Result<()> {
    let mut csv = csv::Writer::from_writer(to);
    let known = ["problem", "policy", "parameters", "arms", "limits"];
    let known = known
        .into_iter()
        .chain(["training", "test", "cutoff", "repetitions", "cpu"]);
    let of_mark = [
        "test_par10",
        "train_par10",
        "pair_par10",
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
                marks.arms.to_string(),
                marks.limits.to_string(),
                marks.training.to_string(),
                marks.test.to_string(),
                marks.cutoff.to_string(),
                marks.repetitions.to_string(),
                mark.cpu.to_string(),
            ];
            let estimates = [
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
