//! On a terminal: a bar, what came of the rounds, the best pair so far, and what runs in each slot.

use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::words::{self, Words};
use crate::journal::{Calibrated, EndReason, PullRecord};
use crate::orchestrator::{Now, State, Watch};
use crate::quantity;

/// More slots than this are not shown one by one.
const MOST_SLOTS: usize = 16;

/// Draws on stderr, five times a second.
pub struct Terminal {
    words: Words,
    all: MultiProgress,
    bar: ProgressBar,
    tally: ProgressBar,
    best: ProgressBar,
    configuration: ProgressBar,
    slots: Vec<ProgressBar>,
    hint: ProgressBar,
    /// Empty and above all others: the terminal writes `^C` below the last line, so that one line too few is cleared then.
    space: ProgressBar,
    started: Option<(Instant, u64)>,
}

impl Terminal {
    /// Draws for a run with so many slots.
    pub fn new(words: Words, slots: usize) -> Self {
        let all = MultiProgress::with_draw_target(ProgressDrawTarget::stderr());
        // Cut at the terminal's width: a line that wraps is not cleared as a whole.
        let style = |template| {
            ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
        };
        let line = || all.add(ProgressBar::no_length().with_style(style("{wide_msg}")));
        let space = line();
        let bar = all.add(ProgressBar::new(1000).with_style(style("{bar:30} {wide_msg}")));
        Self {
            words,
            bar,
            tally: line(),
            best: line(),
            configuration: line(),
            slots: (0..slots.min(MOST_SLOTS)).map(|_| line()).collect(),
            hint: line(),
            space,
            all: all.clone(),
            started: None,
        }
    }

    /// What the run is at, in two lines.
    fn doing(&self, state: &State) -> (String, String) {
        // An answer during calibration would take a policy of its own, told everything from the start.
        if let Some(calibration) = words::calibration(state) {
            let why = "  limits are chosen by what these take".to_owned();
            return (calibration, why);
        }
        match state.recommend() {
            None => (self.words.best(None), String::new()),
            Some(best) => (
                format!("best so far: {}", words::standing(&best)),
                format!(
                    "  up to {}: {}",
                    self.words.limit(best.pull.limit),
                    self.words.arm(best.pull.arm)
                ),
            ),
        }
    }

    fn say(&self, text: &str) {
        // Nobody reads it: the run itself matters, and goes on.
        let _ = self.all.println(format!("captime: {text}"));
    }
}

impl Watch for Terminal {
    fn period(&self) -> Option<Duration> {
        Some(Duration::from_millis(200))
    }

    fn tick(&mut self, now: &Now<'_>) {
        let tally = now.state.tally();
        let (started, before) = *self.started.get_or_insert((Instant::now(), tally.learned));
        let rate = (tally.learned - before) as f64 / started.elapsed().as_secs_f64().max(0.001);
        let share = now
            .budget
            .share(tally.learned, now.seconds, tally.consumption)
            .unwrap_or(0.0);
        self.bar.set_position((1000.0 * share) as u64);
        self.bar.set_message(words::budget(now, rate));
        // What matters comes first, as the end of a line may be cut.
        self.tally.set_message(match tally.learned {
            0 => "no round is over yet".to_owned(),
            _ => format!("{}, {rate:.1} rounds/s", self.words.tally(tally)),
        });
        let (doing, configuration) = self.doing(now.state);
        self.best.set_message(doing);
        self.configuration.set_message(configuration);
        self.space.set_message("");
        self.hint
            .set_message("Ctrl-C stops, the same command goes on");
        for (number, (line, slot)) in self.slots.iter().zip(now.slots).enumerate() {
            line.set_message(match slot {
                None => format!("  slot {}  idle", number + 1),
                Some(running) => format!(
                    "  slot {}  round {}, up to {}, for {}: {}",
                    number + 1,
                    running.pull.round,
                    self.words.limit(running.pull.limit),
                    quantity::seconds(running.since.elapsed().as_secs_f64()),
                    self.words.arm(running.pull.arm)
                ),
            });
        }
    }

    fn calibrated(&mut self, found: &Calibrated, _: &Now<'_>) {
        if let (Some(first), Some(last)) = (found.limits.first(), found.limits.last()) {
            let (first, last) = (self.words.limit(*first), self.words.limit(*last));
            let count = quantity::counted(found.limits.len() as u64, "limit");
            self.say(&format!("calibrated: {count}, {first} to {last}"));
        }
    }

    fn lost(&mut self, pull: &PullRecord, why: &str) {
        self.say(&format!(
            "round {} was lost and runs again: {why}",
            pull.round
        ));
    }

    fn stopping(&mut self, reason: EndReason, now: &Now<'_>) {
        if reason == EndReason::Interrupted && now.slots.iter().any(Option::is_some) {
            self.say("stopping what runs; once more leaves at once");
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let above = [
            &self.configuration,
            &self.best,
            &self.tally,
            &self.bar,
            &self.space,
        ];
        let below = [&self.hint].into_iter().chain(self.slots.iter().rev());
        for line in below.chain(above) {
            line.finish_and_clear();
        }
    }
}
