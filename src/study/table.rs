//! Standings as text for people and as CSV for programs.

use std::io::{self, Write};

use super::result::{Estimate, Standing};

/// Widest bar, in characters.
const BAR: usize = 16;

/// Writes a table per problem and grid, the policy with the least regret first.
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

/// Standings of the same problem and grid, which stand together.
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
    writeln!(
        to,
        "best pair: arm {} up to {}, gain {:.4}, censored {:.2} %\n",
        first.best.arm,
        rounded(first.best.limit.get()),
        first.best.gain,
        100.0 * first.best.censored,
    )?;
    let mut ranked: Vec<&Standing> = group.iter().collect();
    ranked.sort_by(|a, b| regret(a).total_cmp(&regret(b)));
    let worst = ranked
        .iter()
        .map(|standing| regret(standing))
        .fold(0.0, f64::max);
    let rows: Vec<[String; 5]> = ranked
        .iter()
        .map(|standing| {
            [
                standing.label.clone(),
                bar(regret(standing), worst),
                estimate(standing.regret, decimals(standing.regret)),
                with_error(
                    &format!("{:.2}", 100.0 * standing.censored.mean),
                    standing.censored.sd.map(|sd| format!("{:.2}", 100.0 * sd)),
                ) + " %",
                estimate(standing.simple_regret, 5),
            ]
        })
        .collect();
    let heads = ["policy", "", "regret", "censored", "simple regret"];
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.chain([heads[column].len()]).max().unwrap_or(0)
    };
    let widths: [usize; 5] = std::array::from_fn(width);
    let mut line = |cells: [&str; 5]| {
        let [policy, bar, regret, censored, simple] = cells;
        let text = format!(
            "  {policy:<0$}  {regret:>2$}  {bar:<1$}  {censored:>3$}  {simple:>4$}",
            widths[0], widths[1], widths[2], widths[3], widths[4]
        );
        writeln!(to, "{}", text.trim_end())
    };
    line(heads)?;
    for row in &rows {
        line(std::array::from_fn(|column| row[column].as_str()))?;
    }
    Ok(())
}

fn regret(standing: &Standing) -> f64 {
    standing.regret.mean.unwrap_or(f64::NAN)
}

/// A bar as long as the value's part of the largest, to an eighth of a character.
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

/// As many decimals as make four digits or so of the larger number.
pub(super) fn decimals(estimate: Estimate) -> usize {
    let mean = estimate.mean.unwrap_or(0.0).abs();
    match mean.max(estimate.se.unwrap_or(0.0)) {
        size if size >= 1000.0 => 0,
        size if size >= 10.0 => 1,
        _ => 3,
    }
}

/// Four digits after the point at most, no zeros at the end.
pub(super) fn rounded(value: f64) -> String {
    let text = format!("{value:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

pub(super) fn counted(count: u64, what: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{} {what}{plural}", grouped(count as f64, 0))
}

/// `12,345.6`.
pub(super) fn grouped(value: f64, decimals: usize) -> String {
    let text = format!("{:.decimals$}", value.abs());
    let (whole, fraction) = text.split_at(text.find('.').unwrap_or(text.len()));
    let is_zero = text.bytes().all(|byte| matches!(byte, b'0' | b'.'));
    let mut result = String::from(if value < 0.0 && !is_zero { "-" } else { "" });
    for (place, digit) in whole.chars().enumerate() {
        if place > 0 && (whole.len() - place) % 3 == 0 {
            result.push(',');
        }
        result.push(digit);
    }
    result + fraction
}

/// Writes one row per problem, grid and policy; what is unknown is empty.
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
    ])?;
    for standing in standings {
        csv.write_record([
            standing.problem.clone(),
            standing.grid.clone(),
            standing.policy.to_owned(),
            parameters(standing),
            standing.arms.to_string(),
            standing.limits.to_string(),
            standing.rounds.to_string(),
            standing.repetitions.to_string(),
            standing.best.arm.to_string(),
            standing.best.limit.to_string(),
            standing.best.gain.to_string(),
            standing.best.censored.to_string(),
            or_empty(standing.regret.mean),
            or_empty(standing.regret.se),
            standing.censored.mean.to_string(),
            or_empty(standing.censored.sd),
            or_empty(standing.simple_regret.mean),
            or_empty(standing.simple_regret.se),
        ])?;
    }
    csv.flush()
}

/// Writes one row per point of every curve.
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
    ])?;
    for standing in standings {
        let parameters = parameters(standing);
        for (round, mean, se) in &standing.curve {
            csv.write_record([
                standing.problem.as_str(),
                &standing.grid,
                standing.policy,
                &parameters,
                &round.to_string(),
                &mean.to_string(),
                &or_empty(*se),
            ])?;
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
    fn numbers_are_grouped_for_reading() {
        assert_eq!(grouped(1_234_567.891, 1), "1,234,567.9");
        assert_eq!(grouped(999.0, 0), "999");
        assert_eq!(grouped(-1000.0, 0), "-1,000");
        assert_eq!(grouped(-0.0001, 2), "0.00");
        assert_eq!(counted(1, "round"), "1 round");
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
