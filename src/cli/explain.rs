//! `captime explain`: why a pull was chosen.

use std::fmt::Write as _;
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use super::run_folder::{self, failure};
use super::{Exit, Failure, exit_code};
use crate::journal::{By, PullRecord, Reader, Replay, Step};
use crate::orchestrator::{Next, RunError, State, settled};
use crate::policy::{Candidate, Explanation, Why};
use crate::progress::Words;

const EXAMPLES: &str = "\
Examples:
  captime explain ames-forest         the last round
  captime explain ames-forest 120     round 120";

/// Why a pull was chosen: its index, the runner-up, counts and widths.
///
/// Replays the journal up to that round, so what is shown is what the policy knew when it chose.
#[derive(Debug, Args)]
#[command(after_help = format!("{EXAMPLES}\n\n{}", exit_code::HELP))]
pub struct ExplainArgs {
    /// A run's folder, or its name in runs/
    run: PathBuf,
    /// The round; the last one if not given
    round: Option<u64>,
    /// How to write it
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Text,
    Json,
}

/// Runs the command.
pub fn run(args: ExplainArgs) -> Result<Exit, Failure> {
    let folder = run_folder::find(&args.run)?;
    let round = match args.round {
        Some(round) => round,
        None => last_round(&folder).map_err(|error| failure(&error))?,
    };
    let found = choice(&folder, round).map_err(|error| failure(&error))?;
    let Some(Choice {
        pull,
        explanation,
        words,
        is_same,
    }) = found
    else {
        return Err(
            Failure::usage(format!("{} has no round {round}", folder.display())).hint(Some(
                "rounds are numbered from 1; `captime export` lists them",
            )),
        );
    };
    let mut to = std::io::stdout().lock();
    match args.format {
        Format::Json => writeln!(to, "{}", as_json(&pull, &explanation, &words))?,
        Format::Text => to.write_all(as_text(&pull, &explanation, &words).as_bytes())?,
    }
    if !is_same {
        writeln!(
            std::io::stderr().lock(),
            "captime: warning: this captime would have chosen otherwise; the run was made by another version"
        )?;
    }
    Ok(Exit::Done)
}

/// Why this round was played, in words; none if there is no such round.
pub(super) fn text(folder: &Path, round: u64) -> Result<Option<String>, RunError> {
    let found = choice(folder, round)?;
    Ok(found.map(|choice| as_text(&choice.pull, &choice.explanation, &choice.words)))
}

struct Choice {
    pull: PullRecord,
    explanation: Explanation,
    words: Words,
    is_same: bool,
}

fn last_round(folder: &Path) -> Result<u64, RunError> {
    let mut reader = Reader::open(folder)?;
    let mut last = 0;
    while let Some(record) = reader.next()? {
        if let crate::journal::Record::Pull(pull) = record {
            last = pull.round.0;
        }
    }
    Ok(last)
}

/// Replays up to the decision of this round, and has it made again.
fn choice(folder: &Path, round: u64) -> Result<Option<Choice>, RunError> {
    let reader = Reader::open(folder)?;
    let (brief, plan, space) = settled(reader.header(), folder)?;
    let words = Words {
        space,
        resource: brief.resource(),
    };
    let mut state = State::new(plan);
    let mut replay = Replay::new(reader);
    while let Some(step) = replay.next()? {
        if let Step::Launched(pull) = &step
            && pull.round.0 == round
        {
            let again = state.choose();
            // What is recorded was never a policy's choice.
            let is_same = pull.by == Some(By::Record)
                || matches!(again, Next::Pull(again) if again.pull() == pull.pull());
            let nothing = Explanation {
                why: Why::Nothing,
                chosen: None,
                runner_up: None,
            };
            let explanation = state
                .explain()
                .filter(|_| pull.by.is_none())
                .unwrap_or(nothing);
            return Ok(Some(Choice {
                pull: *pull,
                explanation,
                words,
                is_same,
            }));
        }
        if !state.replay(&step) {
            return Err(RunError::Foreign {
                line: replay.reader().lines(),
            });
        }
    }
    Ok(None)
}

fn as_json(pull: &PullRecord, explanation: &Explanation, words: &Words) -> Value {
    json!({
        "round": pull.round,
        "arm": pull.arm,
        "configuration": words.space.configuration(pull.arm),
        "limit": pull.limit,
        "by": pull.by,
        "outcomes_seen": pull.seen,
        "why": explanation.why,
        "chosen": explanation.chosen,
        "runner_up": explanation.runner_up,
    })
}

fn as_text(pull: &PullRecord, explanation: &Explanation, words: &Words) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(
        out,
        "round {}: {} up to {}, chosen after {} outcomes",
        pull.round,
        words.arm(pull.arm),
        words.limit(pull.limit),
        pull.seen
    );
    let why = match (pull.by, explanation.why) {
        (Some(By::Calibration), _) => "calibration: run once under the guard, to find the limits",
        (Some(By::Probe), _) => "a look at other arms, since the first pulls all failed",
        (Some(By::Record), _) => "`captime record` runs every arm in its turn; no policy chose it",
        (None, Why::Opening) => "the opening: something that had to be played first",
        (None, Why::Index) => "it had the largest index",
        (None, Why::Sample) => "it had the largest of random draws from what is believed",
        (None, Why::Chance) => "plain chance",
        (None, Why::Turn) => "it was its turn in the schedule",
        (None, Why::Nothing) => "nothing is known about why",
    };
    let _ = writeln!(out, "why: {why}");
    if let Some(chosen) = &explanation.chosen {
        describe("chosen", explanation.why, chosen, words, &mut out);
    }
    if let Some(runner_up) = &explanation.runner_up {
        describe("runner-up", explanation.why, runner_up, words, &mut out);
    }
    if let Some(text) = otherwise(explanation) {
        let _ = writeln!(out, "otherwise: {text}");
    }
    out
}

/// What would have to happen for another choice.
fn otherwise(explanation: &Explanation) -> Option<String> {
    let (chosen, runner_up) = (explanation.chosen?, explanation.runner_up?);
    let gap = chosen.index - runner_up.index;
    match explanation.why {
        Why::Opening => Some("nothing: it had to be played before anything else is compared".into()),
        Why::Sample if gap.is_finite() => Some(format!(
            "the runner-up's draw was {gap:.6} lower; draws are random, so another seed may choose it"
        )),
        Why::Index if chosen.index == f64::INFINITY => Some(
            "it has to be tried before others: nothing is known about it; then the largest index decides".into(),
        ),
        Why::Index if gap.is_finite() => {
            let mut text = format!(
                "the runner-up comes first if the mean of the chosen pair falls by more than {gap:.6}, or its own rises by as much"
            );
            // A width shrinks with the root of the pulls behind it, or a little slower.
            let left = chosen.width - gap;
            if chosen.width.is_finite() && left > 0.0 && chosen.count > 0 {
                let pulls = chosen.count as f64 * ((chosen.width / left).powi(2) - 1.0);
                let pulls = pulls.ceil().max(1.0);
                let plural = if pulls == 1.0 { "" } else { "s" };
                let _ = write!(
                    text,
                    "; with both means as they are, the width alone brings that about after some {pulls} more pull{plural} of it"
                );
            }
            Some(text)
        }
        _ => None,
    }
}

fn describe(what: &str, why: Why, candidate: &Candidate, words: &Words, out: &mut String) {
    let _ = writeln!(
        out,
        "{what}: {} up to {}",
        words.arm(candidate.pull.arm),
        words.limit(candidate.pull.limit)
    );
    let (count, of_arm) = (candidate.count, candidate.arm_count);
    let pending = candidate.pending;
    if count == 0 || !candidate.mean.is_finite() {
        let _ = writeln!(
            out,
            "  no index yet: no pull tells about it; {of_arm} of the arm in all, {pending} under way"
        );
        return;
    }
    let number = |value: f64| {
        if value.is_finite() {
            format!("{value:.6}")
        } else {
            "infinite".into()
        }
    };
    let (index, mean, width) = (
        number(candidate.index),
        number(candidate.mean),
        number(candidate.width),
    );
    let _ = match why {
        // What a draw is above its mean is chance; the width is half of the interval.
        Why::Sample => writeln!(
            out,
            "  draw {index}; the mean is {mean}, give or take {width}"
        ),
        _ if candidate.refinement == 0.0 => {
            writeln!(out, "  index {index} = mean {mean} + width {width}")
        }
        _ => writeln!(
            out,
            "  index {index} = mean {mean} + width {width} + refinement {:.6}",
            candidate.refinement
        ),
    };
    let verb = if count == 1 {
        "pull tells"
    } else {
        "pulls tell"
    };
    let _ = writeln!(
        out,
        "  {count} {verb} about it, {of_arm} of the arm in all, {pending} under way; {:.1} % still running at the limit",
        100.0 * candidate.survival
    );
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand_pcg::Pcg64Mcg;

    use super::*;
    use crate::policy::{Policy, PolicyKind, Problem};
    use crate::round::{LimitGrid, Observation, Price, Pull, Round};

    /// Two arms that always bring the same, and what is needed to play them.
    struct Play {
        policy: Box<dyn Policy>,
        rng: Pcg64Mcg,
        round: u64,
    }

    impl Play {
        fn new(spec: &str) -> Self {
            let limits = LimitGrid::new([1.0]).unwrap();
            let price = Price::new("none", "par10", 1.0).unwrap();
            let problem = Problem::new(2, limits, price).unwrap();
            Self {
                policy: PolicyKind::parse(spec).unwrap().build(&problem),
                rng: Pcg64Mcg::seed_from_u64(1),
                round: 0,
            }
        }

        fn choose(&mut self) -> Pull {
            self.round += 1;
            self.policy.choose(Round(self.round), &mut self.rng)
        }

        fn observe(&mut self, pull: Pull, reward: f64) {
            let seen = Observation::ended(pull, reward, 0.5).unwrap();
            self.policy.observe(Round(self.round), seen, &mut self.rng);
        }

        fn constant(&mut self, rounds: u64) {
            for _ in 0..rounds {
                let pull = self.choose();
                self.observe(pull, if pull.arm.index() == 0 { 0.6 } else { 0.5 });
            }
        }
    }

    /// The number that stands after these words.
    fn number_after(text: &str, words: &str) -> f64 {
        let rest = text.split_once(words).unwrap_or_else(|| panic!("{text}")).1;
        let end = rest.find([',', ' ']).unwrap_or(rest.len());
        rest[..end].parse().unwrap_or_else(|_| panic!("{text}"))
    }

    #[test]
    fn as_many_more_pulls_as_foretold_bring_the_runner_up_forward() {
        for rounds in [30, 300, 3000] {
            let mut play = Play::new("rcucb");
            play.constant(rounds);
            let chosen = play.choose();
            let text = otherwise(&play.policy.explain()).unwrap();
            let foretold = number_after(&text, "after some ");
            let reward = if chosen.arm.index() == 0 { 0.6 } else { 0.5 };
            let mut pulls = 0.0;
            loop {
                play.observe(chosen, reward);
                pulls += 1.0;
                if play.choose() != chosen {
                    break;
                }
            }
            // The logarithm grows meanwhile and widens the rarer arm more, so it comes rather sooner.
            assert!(
                pulls <= foretold && pulls >= (0.3 * foretold).floor(),
                "{pulls}: {text}"
            );
        }
    }

    #[test]
    fn a_mean_that_falls_by_more_than_said_lets_the_runner_up_pass() {
        for (factor, passes) in [(0.98, false), (1.02, true)] {
            let mut play = Play::new("rcucb");
            play.constant(400);
            let before = {
                play.choose();
                play.policy.explain()
            };
            let gap = number_after(&otherwise(&before).unwrap(), "falls by more than ");
            let (chosen, runner_up) = (before.chosen.unwrap(), before.runner_up.unwrap());
            let fallen = chosen.mean - factor * gap + chosen.width;
            assert_eq!(fallen < runner_up.index, passes, "{before:?}");
        }
    }

    #[test]
    fn what_had_to_be_played_first_and_what_was_drawn_say_so() {
        let mut play = Play::new("rcucb");
        play.choose();
        assert!(otherwise(&play.policy.explain()).is_none_or(|text| text.starts_with("nothing")));
        let mut play = Play::new("joint-ts");
        play.constant(20);
        play.choose();
        let text = otherwise(&play.policy.explain()).unwrap();
        assert!(text.contains("another seed may choose it"), "{text}");
    }
}
