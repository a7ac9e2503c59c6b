//! Progress on a terminal: a bar, the outcomes so far, the best pair so far, and what runs in each slot or on each node.

use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::nonblocking_writer::NonblockingWriter;
use super::words::{self, LiveNodes, Words};
use crate::journal::{Calibrated, EndReason, PullRecord};
use crate::markup::visible;
use crate::orchestrator::{Now, Running, State, Watch};
use crate::quantity;
use crate::scenario::Resource;

/// More slots or nodes than this are not shown one by one.
const MOST_LINES: usize = 16;

/// Draws on stderr, five times a second.
pub struct Terminal {
    resource: Resource,
    slots: usize,
    nodes: LiveNodes,
    screen: NonblockingWriter<Shown>,
    started: Option<(Instant, u64)>,
}

/// What the screen shows.
enum Shown {
    /// The current state: the used share of the budget, and the lines, beginning with the bar's own.
    Standing(f64, Vec<String>),
    /// A line that stays.
    Line(String),
}

impl Terminal {
    /// Draws for a run that limits this resource, with this many slots.
    pub fn new(resource: Resource, slots: usize) -> Self {
        let mut screen: Option<Screen> = None;
        Self {
            resource,
            slots: slots.min(MOST_LINES),
            nodes: LiveNodes::default(),
            screen: NonblockingWriter::new(move |shown| {
                screen.get_or_insert_with(Screen::new).show(shown);
            }),
            started: None,
        }
    }

    /// What the run is doing, in two lines.
    fn doing(&self, state: &State) -> [String; 2] {
        // An answer during calibration would need another policy that learns everything from the start.
        if let Some(calibration) = words::calibration(state) {
            return [calibration, "  their run times set the limits".into()];
        }
        let words = Words::of(state, self.resource);
        match state.recommend() {
            None => [words.best(None), String::new()],
            Some(best) => [
                format!("best so far: {}", words::standing(&best)),
                format!(
                    "  up to {}: {}",
                    words.limit(best.pull.limit),
                    words.arm(best.pull.arm)
                ),
            ],
        }
    }

    fn slot(number: usize, running: Option<&Running>, words: Words<'_>) -> String {
        match running {
            None => format!("  slot {number}  idle"),
            Some(running) => format!(
                "  slot {number}  round {}, up to {}, started {} ago: {}",
                running.pull.round,
                // The clock may be past a limit of CPU time.
                words.whole_limit(running.pull.limit),
                quantity::seconds(running.since.elapsed().as_secs_f64()),
                words.arm(running.pull.arm)
            ),
        }
    }

    fn say(&self, text: &str) {
        self.screen
            .tell(Shown::Line(format!("captime: {}", visible(text))));
    }
}

impl Watch for Terminal {
    fn period(&self) -> Option<Duration> {
        Some(Duration::from_millis(200))
    }

    fn tick(&mut self, now: &Now<'_>) {
        let (tally, words) = (now.state.tally(), Words::of(now.state, self.resource));
        let (started, before) = *self.started.get_or_insert((Instant::now(), tally.learned));
        let rate = (tally.learned - before) as f64 / started.elapsed().as_secs_f64().max(0.001);
        let share = now
            .budget
            .share(tally.own_learned(), now.seconds, tally.consumption)
            .unwrap_or(0.0);
        // The important part comes first, because the end of a line may be cut.
        let came = match tally.learned {
            0 => "no round finished yet".to_owned(),
            _ => format!("{}, {rate:.1} rounds/s", Words::tally(tally)),
        };
        let mut lines = vec![words::budget(now, rate), came];
        lines.extend(self.doing(now.state));
        let nodes = self.nodes.lines(now.state, MOST_LINES);
        if nodes.is_empty() {
            let slots = now.slots.iter().take(self.slots).enumerate();
            lines.extend(slots.map(|(place, slot)| Self::slot(place + 1, slot.as_ref(), words)));
        }
        lines.extend(nodes.into_iter().map(|line| format!("  {line}")));
        lines.push("Ctrl-C to stop; run the same command to resume".into());
        self.screen.show(Shown::Standing(share, lines));
    }

    fn calibrated(&mut self, found: &Calibrated, now: &Now<'_>) {
        let words = Words::of(now.state, self.resource);
        if let (Some(first), Some(last)) = (found.limits.first(), found.limits.last()) {
            let (first, last) = (words.limit(*first), words.limit(*last));
            let count = quantity::counted(found.limits.len() as u64, "limit");
            self.say(&format!("calibrated: {count}, {first} to {last}"));
        }
    }

    fn lost(&mut self, pull: &PullRecord, why: &str) {
        self.say(&words::lost(pull, why));
    }

    fn node(&mut self, node: &str, slots: usize) {
        self.nodes.change(node, slots);
    }

    fn noticed(&mut self, text: &str) {
        self.say(text);
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
    /// The first is empty: the terminal writes `^C` below the last line, and then one line too few is cleared. The
    /// second is the bar.
    lines: Vec<ProgressBar>,
}

impl Screen {
    fn new() -> Self {
        Self {
            lines: vec![],
            all: MultiProgress::with_draw_target(ProgressDrawTarget::stderr()),
        }
    }

    /// Adds lines until there are this many. Nodes may come late.
    fn grow(&mut self, count: usize) {
        // Cut at the terminal's width: a line that wraps is not cleared completely.
        let style = |template| {
            ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
        };
        for place in self.lines.len()..count {
            self.lines.push(self.all.add(match place {
                1 => ProgressBar::new(1000).with_style(
                    style("{bar:30} {wide_msg}").progress_chars(bar_characters(&locale())),
                ),
                _ => ProgressBar::no_length().with_style(style("{wide_msg}")),
            }));
        }
    }

    fn show(&mut self, shown: Shown) {
        match shown {
            // If stderr is closed, the run continues without it.
            Shown::Line(text) => drop(self.all.println(text)),
            Shown::Standing(share, texts) => {
                self.grow(texts.len() + 1);
                self.lines[0].set_message("");
                self.lines[1].set_position((1000.0 * share) as u64);
                let texts = texts.iter().map(String::as_str);
                let texts = texts.chain(std::iter::repeat(""));
                for (line, text) in self.lines[1..].iter().zip(texts) {
                    line.set_message(visible(text).into_owned());
                }
            }
        }
    }
}

/// The locale of text output, by the usual order of variables.
fn locale() -> String {
    let set = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    let locale = set("LC_ALL")
        .or_else(|| set("LC_CTYPE"))
        .or_else(|| set("LANG"));
    locale.unwrap_or_default()
}

/// The characters of the bar: plain ASCII unless the locale has more.
fn bar_characters(locale: &str) -> &'static str {
    let is_unicode = locale.to_lowercase().replace('-', "").contains("utf8");
    if is_unicode { "█░" } else { "#-" }
}

impl Drop for Screen {
    fn drop(&mut self) {
        for line in self.lines.iter().rev() {
            line.finish_and_clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::bar_characters;

    #[test]
    fn a_locale_without_unicode_gets_an_ascii_bar() {
        for (locale, bar) in [
            ("C", "#-"),
            ("POSIX", "#-"),
            ("", "#-"),
            ("C.UTF-8", "█░"),
            ("de_DE.utf8", "█░"),
        ] {
            assert_eq!(bar_characters(locale), bar, "{locale}");
        }
    }
}
