//! The report of a fit for people.

use std::io::Write;

use crate::quantity;
use captime_forest::{ForestReport, Task};

/// Writes a report line by line, values below each other.
pub(super) fn print(report: &ForestReport, to: &mut dyn Write) -> std::io::Result<()> {
    let (rows, task) = (report.rows, report.task.name());
    let predictors = quantity::counted(report.predictors as u64, "predictor");
    writeln!(to, "{task} of {rows} rows by {predictors}")?;
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
    let sd = report.sd.unwrap_or_default();
    for (name, mean, sd) in [
        ("rmse", report.rmse, sd.rmse),
        ("accuracy", report.accuracy, sd.accuracy),
        ("auc", report.auc, sd.auc),
        ("log loss", report.log_loss, sd.log_loss),
        ("reward", report.reward, sd.reward),
    ] {
        if let Some(mean) = mean {
            let sd = sd.map(|sd| format!(" (sd {} over {} splits)", figure(sd), report.splits));
            writeln!(to, "{name:<9} {}{}", figure(mean), sd.unwrap_or_default())?;
        }
    }
    if let Some(error) = report.out_of_bag_error {
        match report.task {
            // In the unit of the target, like the error above it.
            Task::Regression => writeln!(to, "oob rmse  {}", figure(error.sqrt()))?,
            Task::Classification => writeln!(to, "oob error {error:.6}")?,
        }
    }
    if let Some(leaves) = report.leaves {
        writeln!(to, "leaves    {leaves:.1} per tree")?;
    }
    let wall = quantity::seconds(report.fit_seconds);
    let cpu = quantity::seconds(report.fit_cpu_seconds);
    let work = report
        .work
        .map(|work| format!(", {} units of work", quantity::whole(work)));
    let work = work.unwrap_or_default();
    writeln!(to, "fit       {wall} ({cpu} of cpu{work})")?;
    if let Some(importance) = &report.importance {
        let mut sorted: Vec<_> = importance.iter().collect();
        sorted.sort_by(|a, b| b.1.total_cmp(a.1));
        let figures: Vec<String> = sorted.iter().map(|&(_, &value)| figure(value)).collect();
        let width = figures.iter().map(String::len).max().unwrap_or(0);
        writeln!(to, "\nimportance")?;
        for (figure, (name, _)) in figures.iter().zip(sorted) {
            writeln!(to, "{figure:>width$}  {name}")?;
        }
    }
    Ok(())
}

/// Six digits after the point, or six significant digits if the number is too small for that.
fn figure(value: f64) -> String {
    if value == 0.0 || value.abs() >= 0.01 {
        format!("{value:.6}")
    } else {
        format!("{value:.5e}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use captime_forest::Dataset;
    use captime_forest::engine::EngineKind;

    /// A report with these changes.
    fn report(task: Task, change: impl FnOnce(&mut ForestReport)) -> ForestReport {
        let columns = vec![("x".into(), vec![1.0, 2.0])];
        let data = Dataset::from_columns(columns, "y", vec![1.0, 2.0], vec![]).unwrap();
        let mut report = ForestReport::stopped(&data, EngineKind::Builtin, 0.2, 0.1);
        (report.task, report.reward, report.stopped) = (task, Some(0.5), false);
        change(&mut report);
        report
    }

    fn printed(report: &ForestReport) -> String {
        let mut text = Vec::new();
        print(report, &mut text).unwrap();
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn numbers_are_told_in_the_unit_of_the_target_however_small() {
        let report = report(Task::Regression, |report| {
            report.rmse = Some(1.25e-12);
            report.out_of_bag_error = Some(4e-24);
            report.work = Some(1_234_567);
        });
        assert_eq!(
            printed(&report),
            "regression of 2 rows by 1 predictor\n\
             rmse      1.25000e-12\n\
             reward    0.500000\n\
             oob rmse  2.00000e-12\n\
             fit       200 ms (100 ms of cpu, 1,234,567 units of work)\n"
        );
    }

    #[test]
    fn work_that_was_not_counted_is_left_out() {
        let report = report(Task::Classification, |report| {
            report.out_of_bag_error = Some(0.25);
        });
        let text = printed(&report);
        assert!(text.contains("\noob error 0.250000\n"), "{text}");
        assert!(
            text.ends_with("fit       200 ms (100 ms of cpu)\n"),
            "{text}"
        );
    }

    #[test]
    fn importances_stand_below_each_other_whatever_their_size() {
        let table = [("big", 123_456_789_012.5), ("small", 0.5), ("none", 0.0)];
        let table = table.map(|(name, value)| (name.to_owned(), value));
        let report = report(Task::Regression, |report| {
            report.importance = Some(table.into());
        });
        let text = printed(&report);
        assert!(
            text.ends_with(
                "importance\n123456789012.500000  big\n           0.500000  small\n           0.000000  none\n"
            ),
            "{text}"
        );
    }
}
