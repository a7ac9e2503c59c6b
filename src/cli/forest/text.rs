//! The report of a fit for people.

use std::io::Write;

use crate::learner::ForestReport;
use crate::quantity;

/// Writes a report line by line, values below each other.
pub(super) fn print(report: &ForestReport, to: &mut dyn Write) -> std::io::Result<()> {
    let (rows, predictors) = (report.rows, report.predictors);
    let task = report.task.name();
    writeln!(to, "{task} of {rows} rows by {predictors} predictors")?;
    match report.stopped_splits {
        Some(stopped) if stopped > 0 => {
            let splits = report.splits;
            let were = if stopped == 1 { "was" } else { "were" };
            writeln!(
                to,
                "{stopped} of {splits} splits {were} stopped at the limit"
            )?;
        }
        None if report.stopped => writeln!(to, "stopped at the limit")?,
        _ => {}
    }
    if let Some(rmse) = report.rmse {
        writeln!(to, "rmse      {rmse:.6}")?;
    }
    if let Some(accuracy) = report.accuracy {
        writeln!(to, "accuracy  {accuracy:.6}")?;
    }
    if let Some(reward) = report.reward {
        writeln!(to, "reward    {reward:.6}")?;
    }
    if let Some(error) = report.out_of_bag_error {
        writeln!(to, "oob error {error:.6}")?;
    }
    if let Some(leaves) = report.leaves {
        writeln!(to, "leaves    {leaves:.1} per tree")?;
    }
    let wall = quantity::seconds(report.fit_seconds);
    let cpu = quantity::seconds(report.fit_cpu_seconds);
    writeln!(
        to,
        "fit       {wall} ({cpu} of CPU time, {:.0} units of work)",
        report.work
    )?;
    if let Some(importance) = &report.importance {
        let mut sorted: Vec<_> = importance.iter().collect();
        sorted.sort_by(|a, b| b.1.total_cmp(a.1));
        writeln!(to, "\nimportance")?;
        for (name, value) in sorted {
            writeln!(to, "{value:>16.6}  {name}")?;
        }
    }
    Ok(())
}
