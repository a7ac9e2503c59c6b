//! How the run went, over rounds and over time.

use serde::Serialize;

use super::curves::thinned;
use super::pairs::Pairs;
use super::{History, Kind, Num, Played};

/// The course of a run.
#[derive(Debug, Clone, Serialize)]
pub struct Course {
    /// Outcomes so far, seconds, cumulative gain.
    pub gain: Vec<(u64, Num, Num)>,
    /// The answers during the run.
    pub incumbents: Vec<Answered>,
    /// Outcomes so far, share censored and share failed among the last `window`.
    pub shares: Vec<(u64, Num, Num)>,
    /// How many rounds a share is taken over.
    pub window: usize,
    /// Middle of a span of seconds, rounds that ended per second in it.
    pub rate: Vec<(Num, Num)>,
    /// What ran when, as far as it was recorded.
    pub timeline: Option<Timeline>,
    /// When captime was started on the run: number, seconds, outcomes so far, slots.
    pub sessions: Vec<(u64, Num, u64, usize)>,
}

/// The answer at some point.
#[derive(Debug, Clone, Serialize)]
pub struct Answered {
    /// Outcomes so far.
    pub learned: u64,
    /// Seconds of the run.
    pub at: Num,
    /// The arm, counted from 1.
    pub arm: u32,
    /// The limit.
    pub limit: Num,
    /// Its gain as estimated then.
    pub gain: Num,
    /// 95 % interval then.
    pub low: Num,
    /// Its other end.
    pub high: Num,
    /// The gain of the same pair as it is known now.
    pub now: Num,
}

/// What ran when.
#[derive(Debug, Clone, Serialize)]
pub struct Timeline {
    /// The latest pulls: lane, from, to, number of the round, arm, how it ended.
    pub bars: Vec<(usize, Num, Num, u64, u32, Kind)>,
    /// Whether lanes are recorded slots, not inferred from when pulls began and ended.
    pub is_told: bool,
    /// Whether there were more pulls than `bars` holds.
    pub is_cut: bool,
    /// Seconds, mean number of pulls running at that time.
    pub busy: Vec<(Num, Num)>,
}

/// Points of a line on a chart. More are not visible.
const POINTS: usize = 400;
/// Bars of a timeline that can still be distinguished.
const BARS: usize = 300;
/// Time spans that rates are averaged over.
const SPANS: usize = 80;

/// The course of the run.
pub fn course(history: &History, pairs: &Pairs<'_>) -> Course {
    let rounds = &history.rounds;
    let window = (rounds.len() / 50).clamp(10, 1000);
    Course {
        gain: cumulative(rounds),
        incumbents: incumbents(history, pairs),
        shares: shares(rounds, window),
        window,
        rate: rate(rounds),
        timeline: timeline(rounds),
        sessions: history
            .sessions
            .iter()
            .map(|start| {
                (
                    start.session.session,
                    Num(start.at),
                    start.learned,
                    start.session.slots,
                )
            })
            .collect(),
    }
}

fn cumulative(rounds: &[Played]) -> Vec<(u64, Num, Num)> {
    let mut sum = 0.0;
    let points = rounds.iter().enumerate().map(|(place, played)| {
        if played.gain.is_finite() {
            sum += played.gain;
        }
        (place as u64 + 1, Num(played.at), Num(sum))
    });
    thinned(points.collect(), POINTS)
}

fn incumbents(history: &History, pairs: &Pairs<'_>) -> Vec<Answered> {
    let now = |answer: &crate::policy::Recommendation| {
        let now = pairs.at(answer.pull.arm, answer.pull.limit.get())?;
        Some(now.gain)
    };
    let all = history.incumbents.iter().map(|incumbent| {
        let answer = &incumbent.answer;
        (incumbent, now(answer))
    });
    let mut kept: Vec<_> = thinned(all.collect(), POINTS);
    // It ends with the answer itself. The last checkpoint may be a little earlier.
    let last = super::Incumbent {
        learned: history.rounds.len() as u64,
        at: if history.header.is_virtual {
            f64::NAN
        } else {
            history.seconds
        },
        answer: match history.answer() {
            Some(answer) => answer,
            None => return vec![],
        },
    };
    kept.pop_if(|(incumbent, _)| incumbent.learned >= last.learned);
    kept.push((&last, Some(last.answer.gain)));
    let answers = kept.iter().map(|(incumbent, now)| Answered {
        learned: incumbent.learned,
        at: Num(incumbent.at),
        arm: incumbent.answer.pull.arm.number(),
        limit: Num(incumbent.answer.pull.limit.get()),
        gain: Num(incumbent.answer.gain),
        low: Num(incumbent.answer.interval.0),
        high: Num(incumbent.answer.interval.1),
        now: Num::of(*now),
    });
    answers.collect()
}

fn shares(rounds: &[Played], window: usize) -> Vec<(u64, Num, Num)> {
    let (mut censored, mut failed) = (0_i32, 0_i32);
    let points = rounds.iter().enumerate().map(|(place, played)| {
        censored += i32::from(played.kind == Kind::Censored);
        failed += i32::from(played.kind == Kind::Failed);
        if let Some(left) = place.checked_sub(window).map(|place| &rounds[place]) {
            censored -= i32::from(left.kind == Kind::Censored);
            failed -= i32::from(left.kind == Kind::Failed);
        }
        let of = (place + 1).min(window) as f64;
        (
            place as u64 + 1,
            Num(f64::from(censored) / of),
            Num(f64::from(failed) / of),
        )
    });
    thinned(points.collect(), POINTS)
}

fn rate(rounds: &[Played]) -> Vec<(Num, Num)> {
    let ends: Vec<f64> = rounds
        .iter()
        .map(|played| played.at)
        .filter(|at| at.is_finite())
        .collect();
    let last = ends.iter().copied().fold(0.0, f64::max);
    if ends.len() < 2 || last <= 0.0 {
        return vec![];
    }
    let spans = SPANS.min(ends.len().div_ceil(2)).max(1);
    let width = last / spans as f64;
    let mut counts = vec![0_u32; spans];
    for end in ends {
        counts[((end / width) as usize).min(spans - 1)] += 1;
    }
    counts
        .iter()
        .enumerate()
        .map(|(span, count)| {
            (
                Num((span as f64 + 0.5) * width),
                Num(f64::from(*count) / width),
            )
        })
        .collect()
}

/// A pull's lane is its slot. If the slot was not recorded (one slot, older journals), it is the first lane that is
/// free when the pull starts, as in a run.
fn timeline(rounds: &[Played]) -> Option<Timeline> {
    let mut spans: Vec<(f64, f64, &Played)> = rounds
        .iter()
        .filter(|played| played.at.is_finite() && played.wall.is_finite())
        .map(|played| ((played.at - played.wall).max(0.0), played.at, played))
        .collect();
    if spans.is_empty() {
        return None;
    }
    spans.sort_by(|a, b| a.0.total_cmp(&b.0));
    let last = spans.iter().map(|span| span.1).fold(0.0, f64::max);
    let busy = busy(&spans, last);
    let is_cut = spans.len() > BARS;
    let latest = &spans[spans.len().saturating_sub(BARS)..];
    let mut free_from: Vec<f64> = vec![];
    let mut bars = vec![];
    for &(from, to, played) in latest {
        // Times in journals are too coarse to order two events within a millisecond.
        let slack = 1e-3;
        let lane = match played.slot.checked_sub(1) {
            Some(slot) => slot as usize,
            None => (free_from.iter())
                .position(|free| *free <= from + slack)
                .unwrap_or(free_from.len()),
        };
        if lane >= free_from.len() {
            free_from.resize(lane + 1, 0.0);
        }
        free_from[lane] = to;
        bars.push((
            lane + 1,
            Num(from),
            Num(to),
            played.round,
            played.arm.number(),
            played.kind,
        ));
    }
    Some(Timeline {
        bars,
        is_told: latest.iter().all(|(.., played)| played.slot > 0),
        is_cut,
        busy,
    })
}

fn busy(spans: &[(f64, f64, &Played)], last: f64) -> Vec<(Num, Num)> {
    if last <= 0.0 {
        return vec![];
    }
    let width = last / SPANS as f64;
    let mut seconds = vec![0.0; SPANS];
    for &(from, to, _) in spans {
        let (first, end) = ((from / width) as usize, (to / width) as usize);
        for (span, sum) in seconds
            .iter_mut()
            .enumerate()
            .take(end.min(SPANS - 1) + 1)
            .skip(first)
        {
            let begin = span as f64 * width;
            *sum += (to.min(begin + width) - from.max(begin)).max(0.0);
        }
    }
    let spans = seconds.iter().enumerate();
    spans
        .map(|(span, sum)| (Num((span as f64 + 0.5) * width), Num(sum / width)))
        .collect()
}
