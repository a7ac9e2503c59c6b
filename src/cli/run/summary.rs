//! What a person can act on when a run ends or is interrupted.

use std::fmt::Write as _;
use std::io::{Result, Write};
use std::path::Path;

use serde_json::json;

use super::super::Failure;
use crate::journal::{EndReason, FILE};
use crate::orchestrator::{State, Tally};
use crate::policy::Recommendation;
use crate::progress::{Account, Words};
use crate::quantity;
use crate::report::REPORT;
use crate::scenario::{Resource, Scenario, shell_word};
use crate::target::paste::{Paster, command_line, use_line};

/// Everything the summary speaks of.
pub(in crate::cli) struct Summary<'a> {
    pub(in crate::cli) scenario: &'a Scenario,
    pub(in crate::cli) state: &'a State,
    pub(in crate::cli) account: &'a Account,
    pub(in crate::cli) words: &'a Words,
    pub(in crate::cli) folder: &'a Path,
    pub(in crate::cli) seconds: f64,
    pub(in crate::cli) reason: EndReason,
    /// The scenario's file as the user named it.
    pub(in crate::cli) file: &'a Path,
}

/// How many reasons for failing are told.
const MOST_REASONS: usize = 3;
/// More lines of a stderr are not shown with a reason.
const MOST_WORDS: usize = 4;

impl Summary<'_> {
    pub(in crate::cli) fn write(&self, to: &mut dyn Write) -> Result<()> {
        let ended = match self.reason {
            EndReason::Rounds => "all rounds of the budget are played",
            EndReason::Wall => "the wall time of the budget is over",
            EndReason::Consumption => "the consumption of the budget is used up",
            EndReason::Interrupted => "interrupted",
            EndReason::FirstFailures => "stopped: the first pulls all failed",
        };
        writeln!(to, "{}: {ended}", self.scenario.name)?;
        writeln!(to)?;
        self.write_best(to)?;
        writeln!(to)?;
        self.write_consumed(to)?;
        self.write_failures(to)?;
        writeln!(to, "journal   {}", self.folder.join(FILE).display())?;
        let report = self.folder.join(REPORT);
        if report.exists() {
            writeln!(to, "report    {}", report.display())?;
        } else {
            writeln!(to, "report    captime report {}", self.folder.display())?;
        }
        if self.reason == EndReason::Interrupted {
            writeln!(
                to,
                "go on     captime run {}",
                shell_word(&self.file.display().to_string())
            )?;
        }
        Ok(())
    }

    fn write_best(&self, to: &mut dyn Write) -> Result<()> {
        match best(self.state) {
            Some(best) => write_best(self.scenario, self.words, best, to),
            None => write_nothing(self.state.tally(), to),
        }
    }

    fn write_consumed(&self, to: &mut dyn Write) -> Result<()> {
        let tally = self.state.tally();
        writeln!(to, "rounds    {}", self.words.tally(tally))?;
        let used = self.words.amount(tally.consumption);
        let cpu = if self.account.cpu > 0.0 && self.words.resource != Resource::Cpu {
            format!(", {} of cpu", quantity::seconds(self.account.cpu))
        } else {
            String::new()
        };
        let of = self.words.resource.name();
        let took = if self.seconds > 0.0 {
            format!(", in {}", quantity::seconds(self.seconds))
        } else {
            String::new()
        };
        writeln!(to, "consumed  {used} of {of}{cpu}{took}")?;
        if self.account.clamped > 0 {
            writeln!(
                to,
                "clamped   {} outside of `worst` and `best`",
                quantity::counted(self.account.clamped, "score")
            )?;
        }
        if self.account.lost > 0 {
            let verb = match self.account.lost {
                1 => "pull was lost and",
                _ => "pulls were lost and",
            };
            writeln!(to, "lost      {} {verb} run again", self.account.lost)?;
        }
        Ok(())
    }

    fn write_failures(&self, to: &mut dyn Write) -> Result<()> {
        let worst = self.account.worst();
        for (reason, failures) in worst.iter().take(MOST_REASONS) {
            writeln!(
                to,
                "failed    {}: {reason}; last in round {}, {}",
                quantity::counted(failures.count, "pull"),
                failures.last.round,
                self.words.arm(failures.last.arm)
            )?;
            let mut ends = "its stderr ends: ";
            for line in last_words(&failures.stderr) {
                writeln!(to, "          {ends}{line}")?;
                ends = "";
            }
        }
        if worst.len() > MOST_REASONS {
            writeln!(
                to,
                "          and {} other reasons; see the journal",
                worst.len() - MOST_REASONS
            )?;
        }
        Ok(())
    }

    pub(in crate::cli) fn write_json(&self, to: &mut dyn Write) -> Result<()> {
        let tally = self.state.tally();
        let best = best(self.state).map(|best| best_json(self.scenario, best));
        let failures: Vec<_> = self
            .account
            .worst()
            .into_iter()
            .map(|(reason, failures)| json!({"reason": reason, "count": failures.count, "last": failures.last.round}))
            .collect();
        let summary = json!({
            "event": "end",
            "reason": self.reason,
            "name": self.scenario.name,
            "best": best,
            "rounds": tally.learned,
            "rewarded": tally.rewarded,
            "censored": tally.censored,
            "failed": tally.failed,
            "consumption": tally.consumption,
            "seconds": self.seconds,
            "failures": failures,
            "clamped": self.account.clamped,
            "lost": self.account.lost,
            "journal": self.folder.join(FILE),
            "report": Some(self.folder.join(REPORT)).filter(|report| report.exists()),
        });
        writeln!(to, "{summary}")
    }

    /// The scenario is wrong: the command line and the stderr of a pull that failed.
    pub(in crate::cli) fn hopeless(&self) -> Failure {
        let failed = quantity::counted(self.state.tally().failed, "pull");
        let mut text = format!("the first {failed} all failed: the scenario is wrong");
        // Writing to a string cannot fail.
        if let Some((reason, failures)) = self.account.worst().first() {
            let pull = failures.last.pull();
            let line = command_line(self.scenario, pull, failures.last.seed.unwrap_or_default());
            let _ = write!(
                text,
                "\n  round     {}, {}",
                failures.last.round,
                self.words.arm(pull.arm)
            );
            let _ = write!(text, "\n  limit     {}", self.words.limit(pull.limit));
            if let Some(line) = line {
                let _ = write!(text, "\n  command   {line}");
            }
            let _ = write!(text, "\n  failed    {reason}");
            for line in failures
                .stderr
                .lines()
                .rev()
                .take(10)
                .collect::<Vec<_>>()
                .into_iter()
                .rev()
            {
                let _ = write!(text, "\n  stderr    {line}");
            }
        }
        Failure::usage(text).hint(Some(
            "`captime check SCENARIO --try 3` shows what is read from a pull; then `captime run --fresh`. \
             `stop_on_first_failures: false` turns this off",
        ))
    }
}

/// The end of a program's stderr: its last line, and where that is indented, as a hint below its reason is, the line it
/// belongs to.
fn last_words(stderr: &str) -> Vec<&str> {
    let lines: Vec<&str> = stderr.trim_end().lines().collect();
    let is_whole = |line: &&str| !line.starts_with(char::is_whitespace);
    let last = lines.len().saturating_sub(1);
    let first = lines.iter().rposition(is_whole).unwrap_or(last);
    if lines.len() - first > MOST_WORDS {
        return lines[last..].to_vec();
    }
    lines[first..].to_vec()
}

/// The pair to use, for people and programs alike: where no pull brought a reward, the least bad pair would be one to avoid.
pub(in crate::cli) fn best(state: &State) -> Option<Recommendation> {
    state.recommend().filter(|_| state.tally().rewarded > 0)
}

/// What stands in place of the pair where there is none.
pub(in crate::cli) fn write_nothing(tally: Tally, to: &mut dyn Write) -> Result<()> {
    if tally.learned == 0 || tally.rewarded > 0 {
        return writeln!(to, "best      nothing can be recommended yet");
    }
    // To those who failed a longer limit is no help.
    let longer = match tally.censored {
        0 => "",
        _ => "; if all are censored, raise the largest limit",
    };
    writeln!(
        to,
        "best      nothing: no pull has brought a reward yet\n          \
         `captime check SCENARIO --try 3` shows what becomes of pulls{longer}"
    )
}

/// The pair to use, how sure that is, and how to use it.
pub(in crate::cli) fn write_best(
    scenario: &Scenario,
    words: &Words,
    best: Recommendation,
    to: &mut dyn Write,
) -> Result<()> {
    let pull = best.pull;
    writeln!(
        to,
        "best      arm {}: {}",
        pull.arm,
        scenario.space.configuration(pull.arm)
    )?;
    writeln!(
        to,
        "limit     {} of {}",
        words.limit(pull.limit),
        words.resource.name()
    )?;
    write_gain(best, to)?;
    match use_line(scenario, pull, Paster::Here) {
        Some(line) => writeln!(to, "use       {line}"),
        None => Ok(()),
    }
}

/// How good the pair is, and how sure that is.
pub(in crate::cli) fn write_gain(best: Recommendation, to: &mut dyn Write) -> Result<()> {
    let Recommendation {
        gain,
        mean,
        interval: (low, high),
        pulls,
        censored,
        ..
    } = best;
    let pulls = quantity::counted(pulls, "pull");
    let unfinished = format!("{:.1} % of them censored or failed", 100.0 * censored);
    // To the digits that are shown.
    if (gain - mean).abs() < 0.5e-4 {
        writeln!(
            to,
            "gain      {gain:.4}, likely between {low:.4} and {high:.4}, from {pulls}, {unfinished}"
        )
    } else {
        writeln!(
            to,
            "gain      {gain:.4} believed, likely between {low:.4} and {high:.4}\n          \
             {mean:.4} in the mean of {pulls}, {unfinished}"
        )
    }
}

/// The same for programs.
pub(in crate::cli) fn best_json(scenario: &Scenario, best: Recommendation) -> serde_json::Value {
    json!({
        "arm": best.pull.arm,
        "configuration": scenario.space.configuration(best.pull.arm),
        "limit": best.pull.limit,
        "resource": scenario.limits.of.name(),
        "gain": best.gain,
        "mean": best.mean,
        "interval": best.interval,
        "pulls": best.pulls,
        "censored": best.censored,
        "command": use_line(scenario, best.pull, Paster::Here),
    })
}

#[cfg(test)]
mod tests {
    use super::last_words;

    #[test]
    fn a_hint_is_shown_with_the_reason_above_it() {
        for (stderr, shown) in [
            ("", &[][..]),
            ("loading\nbroken\n", &["broken"]),
            (
                "loading\ncaptime: mtry 9 is too large\n  hint: give at most 3\n",
                &["captime: mtry 9 is too large", "  hint: give at most 3"],
            ),
            ("head\n 1\n 2\n 3\n 4\n", &[" 4"]),
            (" 1\n 2", &[" 2"]),
        ] {
            assert_eq!(last_words(stderr), shown, "{stderr}");
        }
    }
}
