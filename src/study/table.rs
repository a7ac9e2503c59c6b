//! Standings as text for people and as CSV for programs.

use std::io::{self, Write};

use super::result::{Estimate, MeanCurve, Standing};
use super::setting::Best;
use crate::quantity::{counted, grouped};

/// Widest bar, in characters.
const BAR: usize = 16;

/// Writes a table per problem and grid, the policy with the least regret first. If regret is unknown, the one with the
/// largest gain.
pub fn text(standings: &[Standing], to: &mut dyn Write) -> io::Result<()> {
    for group in by_setting(standings) {
        setting_text(group, to)?;
        writeln!(to)?;
    }
    if standings.iter().any(|standing| standing.repetitions > 1) {
        writeln!(
            to,
            "Means over repetitions; ± is the standard error, for the share of censored rounds the standard deviation."
        )?;
    }
    Ok(())
}

/// Groups standings by problem and grid. Those of a group are adjacent.
pub(super) fn by_setting(standings: &[Standing]) -> impl Iterator<Item = &[Standing]> {
    standings.chunk_by(|a, b| (&a.problem, &a.grid) == (&b.problem, &b.grid))
}

fn setting_text(group: &[Standing], to: &mut dyn Write) -> io::Result<()> {
    let Some(first) = group.first() else {
        return Ok(());
    };
    writeln!(
        to,
        "{}: {} x {}, {}, {}",
        first.played_on(),
        counted(first.arms as u64, "arm"),
        counted(first.limits as u64, "limit"),
        counted(first.rounds, "round"),
        counted(first.repetitions, "repetition"),
    )?;
    let is_known = first.best.is_some();
    if let Some(best) = first.best {
        writeln!(
            to,
            "best pair: arm {} up to {}, gain {:.4}, censored {:.2} %",
            best.arm,
            rounded(best.limit.get()),
            best.gain,
            100.0 * best.censored,
        )?;
    }
    writeln!(to)?;
    let mut ranked: Vec<&Standing> = group.iter().collect();
    // Ascending: regret, or negated gain.
    let loss = |of: &Standing| match (of.regret.mean, of.gain.mean) {
        (Some(regret), _) => regret,
        (None, Some(gain)) => -gain,
        (None, None) => f64::NAN,
    };
    ranked.sort_by(|a, b| loss(a).total_cmp(&loss(b)));
    let worst = ranked.iter().map(|of| loss(of)).fold(0.0, f64::max);
    let own = |sum: Estimate| estimate(sum, decimals(sum));
    let mut columns = vec![Column::new("policy", Side::Left, &ranked, |of| {
        of.label.clone()
    })];
    if is_known {
        columns.push(Column::new("regret", Side::Right, &ranked, |of| {
            own(of.regret)
        }));
        columns.push(Column::new("", Side::Left, &ranked, |of| {
            bar(loss(of), worst)
        }));
    }
    columns.push(Column::new("reward", Side::Right, &ranked, |of| {
        own(of.reward)
    }));
    columns.push(Column::new("gain", Side::Right, &ranked, |of| own(of.gain)));
    columns.push(Column::new("censored", Side::Right, &ranked, |of| {
        let sd = of.censored.sd.map(|sd| format!("{:.2}", 100.0 * sd));
        with_error(&format!("{:.2}", 100.0 * of.censored.mean), sd) + " %"
    }));
    if is_known {
        columns.push(Column::new("simple regret", Side::Right, &ranked, |of| {
            estimate(of.simple_regret, 5)
        }));
    }
    for line in 0..=ranked.len() {
        let cells = columns.iter().map(|column| column.padded(line));
        let text = cells.collect::<Vec<_>>().join("  ");
        writeln!(to, "  {}", text.trim_end())?;
    }
    Ok(())
}

/// The alignment of a column.
#[derive(Clone, Copy, PartialEq)]
enum Side {
    Left,
    Right,
}

/// A column with its heading.
struct Column {
    cells: Vec<String>,
    side: Side,
    width: usize,
}

impl Column {
    fn new(head: &str, side: Side, of: &[&Standing], cell: impl Fn(&Standing) -> String) -> Self {
        let cells: Vec<String> = std::iter::once(head.to_owned())
            .chain(of.iter().map(|standing| cell(standing)))
            .collect();
        let width = cells.iter().map(|cell| cell.chars().count()).max();
        Self {
            width: width.unwrap_or(0),
            cells,
            side,
        }
    }

    fn padded(&self, line: usize) -> String {
        let (cell, width) = (&self.cells[line], self.width);
        match self.side {
            Side::Left => format!("{cell:<width$}"),
            Side::Right => format!("{cell:>width$}"),
        }
    }
}

/// A bar for the value's share of the largest, to an eighth of a character.
pub(super) fn bar(value: f64, largest: f64) -> String {
    if largest.is_nan() || largest <= 0.0 || value.is_nan() || value <= 0.0 {
        return String::new();
    }
    let eighths = ((value / largest * (8 * BAR) as f64).round() as usize).max(1);
    let part = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"][eighths % 8];
    "█".repeat(eighths / 8) + part
}

pub(super) fn estimate(estimate: Estimate, decimals: usize) -> String {
    match estimate.mean {
        Some(mean) => with_error(
            &grouped(mean, decimals),
            estimate.se.map(|se| grouped(se, decimals)),
        ),
        None => "unknown".into(),
    }
}

pub(super) fn with_error(value: &str, error: Option<String>) -> String {
    match error {
        Some(error) => format!("{value} ± {error}"),
        None => value.to_owned(),
    }
}

/// As many decimals as give the larger number about four digits.
pub(super) fn decimals(estimate: Estimate) -> usize {
    let mean = estimate.mean.unwrap_or(0.0).abs();
    match mean.max(estimate.se.unwrap_or(0.0)) {
        size if size >= 1000.0 => 0,
        size if size >= 10.0 => 1,
        _ => 3,
    }
}

/// At most four digits after the point, without trailing zeros.
pub(super) fn rounded(value: f64) -> String {
    let text = format!("{value:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Writes one row per problem, grid and policy. Unknown values are empty.
pub fn summary_csv(standings: &[Standing], to: impl Write) -> io::Result<()> {
    let mut csv = csv::Writer::from_writer(to);
    csv.write_record([
        "problem",
        "grid",
        "policy",
        "parameters",
        "arms",
        "limits",
        "rounds",
        "repetitions",
        "best_arm",
        "best_limit",
        "best_gain",
        "best_censored",
        "regret_mean",
        "regret_se",
        "censored_mean",
        "censored_sd",
        "simple_regret_mean",
        "simple_regret_se",
        "reward_mean",
        "reward_se",
        "gain_mean",
        "gain_se",
    ])?;
    for standing in standings {
        let best =
            |of: &dyn Fn(&Best) -> String| standing.best.as_ref().map(of).unwrap_or_default();
        csv.write_record([
            standing.problem.clone(),
            standing.grid.clone(),
            standing.policy.to_owned(),
            parameters(standing),
            standing.arms.to_string(),
            standing.limits.to_string(),
            standing.rounds.to_string(),
            standing.repetitions.to_string(),
            best(&|best| best.arm.to_string()),
            best(&|best| best.limit.to_string()),
            best(&|best| best.gain.to_string()),
            best(&|best| best.censored.to_string()),
            or_empty(standing.regret.mean),
            or_empty(standing.regret.se),
            standing.censored.mean.to_string(),
            or_empty(standing.censored.sd),
            or_empty(standing.simple_regret.mean),
            or_empty(standing.simple_regret.se),
            or_empty(standing.reward.mean),
            or_empty(standing.reward.se),
            or_empty(standing.gain.mean),
            or_empty(standing.gain.se),
        ])?;
    }
    csv.flush()
}

/// Writes one row per point of every curve. Unknown values are empty.
pub fn curves_csv(standings: &[Standing], to: impl Write) -> io::Result<()> {
    let mut csv = csv::Writer::from_writer(to);
    csv.write_record([
        "problem",
        "grid",
        "policy",
        "parameters",
        "round",
        "regret_mean",
        "regret_se",
        "reward_mean",
        "reward_se",
        "gain_mean",
        "gain_se",
    ])?;
    for standing in standings {
        let parameters = parameters(standing);
        // All of them have the same rounds, but the regret of real runs is unknown.
        for (place, (round, ..)) in standing.gain_curve.iter().enumerate() {
            let point = |curve: &MeanCurve| match curve.get(place) {
                Some((_, mean, se)) => [mean.to_string(), or_empty(*se)],
                None => [String::new(), String::new()],
            };
            let sums = [
                &standing.curve,
                &standing.reward_curve,
                &standing.gain_curve,
            ];
            let mut row = vec![
                standing.problem.clone(),
                standing.grid.clone(),
                standing.policy.to_owned(),
                parameters.clone(),
                round.to_string(),
            ];
            row.extend(sums.into_iter().flat_map(point));
            csv.write_record(row)?;
        }
    }
    csv.flush()
}

fn parameters(standing: &Standing) -> String {
    serde_json::Value::Object(standing.parameters.clone()).to_string()
}

pub(super) fn or_empty(value: Option<f64>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_no_more_digits_than_needed() {
        assert_eq!(rounded(0.455_555), "0.4556");
        assert_eq!(rounded(0.5), "0.5");
    }

    #[test]
    fn the_worst_has_the_full_bar_and_nothing_has_none() {
        assert_eq!(bar(3.0, 3.0).chars().count(), BAR);
        assert_eq!(bar(0.0001, 3.0), "▏");
        assert_eq!(bar(0.0, 3.0), "");
        assert_eq!(bar(-1.0, 0.0), "");
        assert_eq!(bar(f64::NAN, f64::NAN), "");
    }
}
