//! On a terminal: a bar, what came of the rounds, the best pair so far, and what runs in each slot.

use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::aside::Aside;
use super::words::{self, Words};
use crate::journal::{Calibrated, EndReason, PullRecord};
use crate::orchestrator::{Now, Running, State, Watch};
use crate::quantity;

/// More slots than this are not shown one by one.
const MOST_SLOTS: usize = 16;

/// Draws on stderr, five times a second.
pub struct Terminal {
    words: Words,
    slots: usize,
    screen: Aside<Shown>,
    started: Option<(Instant, u64)>,
}

/// What is told to the screen.
enum Shown {
    /// How things stand: the share of the budget that is spent, and lines from the bar's own downwards.
    Standing(f64, Vec<String>),
    /// Something that stays.
    Line(String),
}

impl Terminal {
    /// Draws for a run with so many slots.
    pub fn new(words: Words, slots: usize) -> Self {
        let slots = slots.min(MOST_SLOTS);
        let mut screen: Option<Screen> = None;
        // What the bar, the tally, the answer's two lines, the slots and the hint need.
        let lines = slots + 5;
        Self {
            words,
            slots,
            screen: Aside::new(move |shown| {
                screen.get_or_insert_with(|| Screen::new(lines)).show(shown);
            }),
            started: None,
        }
    }

    /// What the run is at, in two lines.
    fn doing(&self, state: &State) -> [String; 2] {
        // An answer during calibration would take a policy of its own, told everything from the start.
        if let Some(calibration) = words::calibration(state) {
            return [calibration, "  limits are chosen by what these take".into()];
        }
        match state.recommend() {
            None => [self.words.best(None), String::new()],
            Some(best) => [
                format!("best so far: {}", words::standing(&best)),
                format!(
                    "  up to {}: {}",
                    self.words.limit(best.pull.limit),
                    self.words.arm(best.pull.arm)
                ),
            ],
        }
    }

    fn slot(&self, number: usize, running: Option<&Running>) -> String {
        match running {
            None => format!("  slot {number}  idle"),
            Some(running) => format!(
                "  slot {number}  round {}, up to {}, for {}: {}",
                running.pull.round,
                self.words.limit(running.pull.limit),
                quantity::seconds(running.since.elapsed().as_secs_f64()),
                self.words.arm(running.pull.arm)
            ),
        }
    }

    fn say(&self, text: &str) {
        self.screen.tell(Shown::Line(format!("captime: {text}")));
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
        // What matters comes first, as the end of a line may be cut.
        let came = match tally.learned {
            0 => "no round is over yet".to_owned(),
            _ => format!("{}, {rate:.1} rounds/s", self.words.tally(tally)),
        };
        let mut lines = vec![words::budget(now, rate), came];
        lines.extend(self.doing(now.state));
        let slots = now.slots.iter().take(self.slots).enumerate();
        lines.extend(slots.map(|(place, slot)| self.slot(place + 1, slot.as_ref())));
        lines.push("Ctrl-C stops, the same command goes on".into());
        self.screen.show(Shown::Standing(share, lines));
    }

    fn calibrated(&mut self, found: &Calibrated, _: &Now<'_>) {
        if let (Some(first), Some(last)) = (found.limits.first(), found.limits.last()) {
            let (first, last) = (self.words.limit(*first), self.words.limit(*last));
            let count = quantity::counted(found.limits.len() as u64, "limit");
            self.say(&format!("calibrated: {count}, {first} to {last}"));
        }
    }

    fn lost(&mut self, pull: &PullRecord, why: &str) {
        self.say(&words::lost(pull, why));
    }

    fn stopping(&mut self, reason: EndReason, now: &Now<'_>) {
        if let Some(words) = words::stopping(reason, now) {
            self.say(words);
        }
    }
}

/// The lines on the terminal, on the thread that draws them.
struct Screen {
    all: MultiProgress,
    /// The first is empty: the terminal writes `^C` below the last line, so that one line too few is cleared then.
    /// The second is the bar.
    lines: Vec<ProgressBar>,
}

impl Screen {
    fn new(lines: usize) -> Self {
        let all = MultiProgress::with_draw_target(ProgressDrawTarget::stderr());
        // Cut at the terminal's width: a line that wraps is not cleared as a whole.
        let style = |template| {
            ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
        };
        let line = |place| {
            all.add(match place {
                1 => ProgressBar::new(1000).with_style(style("{bar:30} {wide_msg}")),
                _ => ProgressBar::no_length().with_style(style("{wide_msg}")),
            })
        };
        Self {
            lines: (0..=lines).map(line).collect(),
            all: all.clone(),
        }
    }

    fn show(&self, shown: Shown) {
        match shown {
            // Nobody reads it: the run itself matters, and goes on.
            Shown::Line(text) => drop(self.all.println(text)),
            Shown::Standing(share, texts) => {
                self.lines[0].set_message("");
                self.lines[1].set_position((1000.0 * share) as u64);
                for (line, text) in self.lines[1..].iter().zip(texts) {
                    line.set_message(text);
                }
            }
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        for line in self.lines.iter().rev() {
            line.finish_and_clear();
        }
    }
}
