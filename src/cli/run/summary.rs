//! The summary when a run ends or is interrupted.

use std::fmt::Write as _;
use std::io::{Result, Write};
use std::path::Path;

use captime_limit::Level;
use serde_json::json;

use super::super::Failure;
use crate::answer::{self, NodeRow, Verdict};
use crate::journal::{EndReason, FILE};
use crate::markup::visible;
use crate::orchestrator::Tally;
use crate::policy::Recommendation;
use crate::progress::{Account, Words, gain_in_words, node_in_words};
use crate::quantity;
use crate::report::REPORT;
use crate::scenario::{Compare, Resource, Scenario, shell_word};
use crate::target::Enforcement;
use crate::target::paste::{Paster, command_line, use_line};

/// Everything the summary shows.
pub(in crate::cli) struct RunSummary<'a> {
    pub(in crate::cli) scenario: &'a Scenario,
    pub(in crate::cli) tally: Tally,
    pub(in crate::cli) nodes: &'a [NodeRow],
    pub(in crate::cli) enforcement: Option<Enforcement>,
    pub(in crate::cli) account: &'a Account,
    pub(in crate::cli) words: &'a Words<'a>,
    pub(in crate::cli) folder: &'a Path,
    pub(in crate::cli) seconds: f64,
    pub(in crate::cli) reason: EndReason,
    /// The scenario's file, as the user named it.
    pub(in crate::cli) file: &'a Path,
    pub(in crate::cli) verdict: &'a Verdict,
}

/// How many reasons for failing are shown.
const MOST_REASONS: usize = 3;
/// How many lines of stderr are shown with a reason.
const MOST_WORDS: usize = 4;

impl RunSummary<'_> {
    pub(in crate::cli) fn write(&self, to: &mut dyn Write) -> Result<()> {
        writeln!(to, "{}: {}", self.scenario.name, self.ended())?;
        writeln!(to)?;
        let answer = AnswerText {
            verdict: self.verdict,
            words: self.words,
            scenario: Some(self.scenario),
        };
        answer.write(to)?;
        writeln!(to)?;
        self.write_consumed(to)?;
        self.write_failures(to)?;
        self.write_nodes(to)?;
        writeln!(to, "journal   {}", shown(self.folder.join(FILE)))?;
        let report = self.folder.join(REPORT);
        if report.exists() {
            writeln!(to, "report    {}", shown(report))?;
        } else {
            writeln!(to, "report    captime report {}", shown(self.folder))?;
        }
        if self.reason == EndReason::Interrupted {
            let file = shell_word(&self.file.display().to_string());
            writeln!(to, "resume    captime run {}", visible(&file))?;
        }
        Ok(())
    }

    /// Why it ended.
    fn ended(&self) -> String {
        let budget = &self.scenario.budget;
        match self.reason {
            EndReason::Rounds => match budget.rounds {
                Some(rounds) => format!("all {} done", quantity::counted(rounds, "round")),
                None => "all rounds done".into(),
            },
            EndReason::Wall => match budget.wall {
                Some(wall) => format!("time budget ({}) used up", quantity::seconds(wall)),
                None => "time budget used up".into(),
            },
            EndReason::Consumption => match budget.consumption {
                Some(most) => format!("consumption budget ({}) used up", self.words.amount(most)),
                None => "consumption budget used up".into(),
            },
            EndReason::Interrupted => "interrupted".into(),
            EndReason::FirstFailures => "stopped because the first pulls all failed".into(),
        }
    }

    /// A line for every node, and what to do if they differ.
    fn write_nodes(&self, to: &mut dyn Write) -> Result<()> {
        for row in self.nodes {
            writeln!(to, "node      {}", node_in_words(row))?;
        }
        let is_notable = |row: &NodeRow| row.pace.is_some_and(|pace| pace.is_notable);
        if self.nodes.iter().any(is_notable) && self.scenario.compare == Compare::AsMeasured {
            let advice = "nodes differ in speed; `compare: by-node` corrects for it";
            writeln!(to, "warning   {advice}")?;
        }
        Ok(())
    }

    fn write_consumed(&self, to: &mut dyn Write) -> Result<()> {
        let tally = self.tally;
        writeln!(to, "rounds    {}", Words::tally(tally))?;
        if let (1.., Some(start)) = (tally.earlier, &self.scenario.start_run) {
            let (rounds, run) = (tally.earlier, visible(&start.path));
            writeln!(
                to,
                "earlier   {rounds} of these rounds were taken over from {run}"
            )?;
        }
        let used = answer::quantity(self.words.resource, tally.consumption);
        let cpu = if self.account.cpu > 0.0 && self.words.resource != Resource::Cpu {
            format!(", {} of CPU time", quantity::seconds(self.account.cpu))
        } else {
            String::new()
        };
        let took = if self.seconds > 0.0 {
            format!(", in {}", quantity::seconds(self.seconds))
        } else {
            String::new()
        };
        writeln!(to, "consumed  {used}{cpu}{took}")?;
        if let Some(enforcement) = self.enforcement {
            if enforcement.level == Level::Subreaper {
                let level = enforcement.level;
                writeln!(
                    to,
                    "limits    enforced at level `{level}`; `captime check` shows what that means"
                )?;
            }
            if let Some(escape) = enforcement.escape() {
                writeln!(to, "contain   off: {escape}")?;
            }
        }
        if self.account.clamped > 0 {
            let scores = quantity::counted(self.account.clamped, "score");
            writeln!(to, "clamped   {scores} outside of `worst` and `best`")?;
        }
        if self.account.lost > 0 {
            let lost = quantity::counted(self.account.lost, "pull");
            writeln!(to, "lost      {lost}, each run again")?;
        }
        Ok(())
    }

    fn write_failures(&self, to: &mut dyn Write) -> Result<()> {
        let worst = self.account.worst();
        for (reason, failures) in worst.iter().take(MOST_REASONS) {
            writeln!(
                to,
                "failed    {}: {}; last in round {}, {}",
                quantity::counted(failures.count, "pull"),
                visible(reason),
                failures.last.round,
                self.words.arm(failures.last.arm)
            )?;
            let mut ends = "its stderr ends: ";
            for line in last_words(&failures.stderr) {
                writeln!(to, "          {ends}{}", visible(line))?;
                ends = "";
            }
        }
        if worst.len() > MOST_REASONS {
            writeln!(
                to,
                "          and {} other reasons; see the report",
                worst.len() - MOST_REASONS
            )?;
        }
        Ok(())
    }

    pub(in crate::cli) fn write_json(&self, to: &mut dyn Write) -> Result<()> {
        let tally = self.tally;
        let best = self.verdict.best.map(|best| best_json(self.scenario, best));
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
            "verdict": self.verdict,
            "rounds": tally.learned,
            "earlier": tally.earlier,
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
        let failed = quantity::counted(self.tally.failed, "pull");
        let mut text = format!("the first {failed} all failed, so the scenario is probably wrong");
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
                let _ = write!(text, "\n  command   {}", visible(&line));
            }
            let _ = write!(text, "\n  failed    {}", visible(reason));
            for line in failures
                .stderr
                .lines()
                .rev()
                .take(10)
                .collect::<Vec<_>>()
                .into_iter()
                .rev()
            {
                let _ = write!(text, "\n  stderr    {}", visible(line));
            }
        }
        Failure::usage(text).hint(Some(
            "run `captime check SCENARIO --try 3` to see what a pull prints and how it ends, fix the scenario, then \
             `captime run --fresh`; `stop_on_first_failures: false` turns this check off",
        ))
    }
}

/// A path for people.
fn shown(path: impl AsRef<Path>) -> String {
    visible(&path.as_ref().display().to_string()).into_owned()
}

/// The end of a program's stderr: its last line and, if that is indented like a hint, the line it belongs to.
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

/// The answer as `run` and `best` print it.
pub(in crate::cli) struct AnswerText<'a> {
    pub(in crate::cli) verdict: &'a Verdict,
    pub(in crate::cli) words: &'a Words<'a>,
    /// For a command line to paste, if the scenario's files are still there.
    pub(in crate::cli) scenario: Option<&'a Scenario>,
}

impl AnswerText<'_> {
    /// The result in three sentences, then the figures.
    pub(in crate::cli) fn write(&self, to: &mut dyn Write) -> Result<()> {
        let (verdict, words) = (self.verdict, self.words);
        let label = verdict
            .best
            .map_or(String::new(), |best| words.arm(best.pull.arm));
        for sentence in verdict.sentences(&label, words.resource) {
            writeln!(to, "{sentence}")?;
        }
        writeln!(to)?;
        let Some(best) = verdict.best else {
            return writeln!(to, "best      no answer yet");
        };
        let pull = best.pull;
        let configuration = visible(&words.space.configuration(pull.arm).to_string()).into_owned();
        writeln!(to, "best      arm {}: {configuration}", pull.arm)?;
        if let Some(origin) = words.origin(pull.arm) {
            writeln!(to, "from      {}", visible(&origin.to_string()))?;
        }
        writeln!(
            to,
            "limit     {}",
            answer::quantity(words.resource, pull.limit.get())
        )?;
        writeln!(to, "gain      {}", gain_in_words(&best))?;
        if let Some(values) = verdict.values {
            writeln!(to, "values    {}", values.in_words(words.resource))?;
        }
        if let Some(comparison) = verdict.comparison {
            writeln!(
                to,
                "default   {}",
                comparison.in_words(|value| words.amount(value))
            )?;
        }
        if !verdict.path.is_empty() {
            let path = answer::path_in_words(&verdict.path);
            writeln!(to, "changed   {}", visible(&path))?;
        }
        writeln!(to, "afforded  {}", verdict.afforded.in_words())?;
        match self
            .scenario
            .and_then(|scenario| use_line(scenario, pull, Paster::Here))
        {
            Some(line) => writeln!(to, "use       {}", visible(&line)),
            None => Ok(()),
        }
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
