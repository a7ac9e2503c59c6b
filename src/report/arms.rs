//! All arms as a table, the rounds behind them, and the failures.

use serde::Serialize;

use super::answer::label;
use super::curves::{BestArm, Curves, curves, parts};
use super::pairs::Pairs;
use super::{History, Kind, Num, Played};
use crate::policy::Recommendation;
use crate::round::ArmId;

/// The table of arms, column by column.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Arms {
    /// How many arms the run has.
    pub count: usize,
    /// How many were pulled.
    pub pulled: usize,
    /// Names of the parameters.
    pub parameters: Vec<String>,
    /// For every parameter its values as text; `codes` refers to them.
    pub values: Vec<Vec<String>>,
    /// The arms' own names, in the order of `arm`. Empty if they have none.
    pub names: Vec<String>,
    /// The arm, counted from 1.
    pub arm: Vec<u32>,
    /// For every parameter the index of each arm's value, -1 for none.
    pub codes: Vec<Vec<i64>>,
    /// Rounds with an outcome.
    pub pulls: Vec<u64>,
    /// How many of them were censored.
    pub censored: Vec<u64>,
    /// How many of them failed.
    pub failed: Vec<u64>,
    /// What they used in total.
    pub used: Vec<Num>,
    /// The best limit of the arm.
    pub limit: Vec<Num>,
    /// Its gain there.
    pub gain: Vec<Num>,
    /// 95 % interval.
    pub low: Vec<Num>,
    /// Its other end.
    pub high: Vec<Num>,
    /// Curves by arm, if they are kept.
    pub curves: Vec<Option<Curves>>,
}

/// Rounds, column by column.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Rounds {
    /// How many rounds there are in total.
    pub total: usize,
    /// The round.
    pub round: Vec<u64>,
    /// The arm, counted from 1.
    pub arm: Vec<u32>,
    /// The distinct limits that were granted.
    pub limits: Vec<Num>,
    /// The index of the limit among these.
    pub limit: Vec<u32>,
    /// How it ended.
    pub kind: Vec<Kind>,
    /// Reward.
    pub reward: Vec<Num>,
    /// Consumption.
    pub used: Vec<Num>,
    /// Gain.
    pub gain: Vec<Num>,
    /// Seconds of the run at its end. Empty in virtual time.
    pub at: Vec<Num>,
    /// The instance, counted from 1. Empty if there are none.
    pub instance: Vec<u32>,
    /// For the rounds that failed: the index of the round and of its group in `failures`.
    pub failure: Vec<(usize, u32)>,
    /// Rounds not chosen by the policy: calibration and probes.
    pub unchosen: Vec<usize>,
}

/// Failures with one reason.
#[derive(Debug, Clone, Serialize)]
pub struct FailureGroup {
    /// The reason, as the journal has it.
    pub reason: String,
    /// How many.
    pub count: u64,
    /// First round.
    pub first: u64,
    /// Last round.
    pub last: u64,
    /// Ends of stderr: round, arm, text.
    pub tails: Vec<(u64, u32, String)>,
}

/// Rows of the table. With more arms, only those that were pulled are listed, the most often pulled first.
const ROWS: usize = 10_000;
/// Values of parameters in the table: with many parameters there are fewer rows, but not fewer than `LEAST_ROWS`.
const CELLS: usize = 100_000;
const LEAST_ROWS: usize = 500;
/// Numbers spent on curves of arms.
const CURVE_NUMBERS: usize = 90_000;
/// Survival steps kept per arm in the table.
const STEPS: usize = 24;
/// Rounds that the page holds one by one.
const KEPT: usize = 20_000;
/// How many of the best arms are shown in full.
const BEST: usize = 5;

/// The rounds of every arm, in order.
pub fn by_arm(history: &History) -> Vec<Vec<&Played>> {
    let mut rounds: Vec<Vec<&Played>> = vec![vec![]; history.space.len()];
    for played in &history.rounds {
        rounds[played.arm.index()].push(played);
    }
    rounds
}

/// The best pair of each arm.
pub fn standings(history: &History, pairs: &Pairs<'_>) -> Vec<Option<Recommendation>> {
    let arms = history.space.arms();
    arms.map(|arm| pairs.best_of(arm)).collect()
}

/// The table.
pub fn arms(
    history: &History,
    pairs: &Pairs<'_>,
    rounds: &[Vec<&Played>],
    standings: &[Option<Recommendation>],
) -> Arms {
    let space = &history.space;
    let mut listed: Vec<ArmId> = space.arms().collect();
    let parameters = space.parameters();
    let most = (CELLS / parameters.len().max(1)).clamp(LEAST_ROWS, ROWS);
    if listed.len() > most {
        listed.retain(|arm| !rounds[arm.index()].is_empty());
        let answer = history.answer().map(|best| best.pull.arm);
        let is_wanted = |arm: &ArmId| arm.index() == 0 || Some(*arm) == answer;
        listed.sort_by_key(|arm| {
            let pulls = rounds[arm.index()].len();
            (!is_wanted(arm), std::cmp::Reverse(pulls))
        });
        listed.truncate(most);
    }
    let mut table = Arms {
        count: space.len(),
        pulled: rounds.iter().filter(|rounds| !rounds.is_empty()).count(),
        parameters: parameters.iter().map(|of| of.name().to_owned()).collect(),
        values: vec![vec![]; parameters.len()],
        codes: vec![vec![]; parameters.len()],
        ..Arms::default()
    };
    // Only values that a listed arm has: those of an open space may all differ.
    let mut used: Vec<Vec<u32>> = vec![vec![]; parameters.len()];
    for &arm in &listed {
        for (column, code) in used.iter_mut().zip(space.codes(arm)) {
            column.extend(Some(code).filter(|code| *code != crate::space::ABSENT));
        }
    }
    for ((column, values), of) in used.iter_mut().zip(&mut table.values).zip(parameters) {
        column.sort_unstable();
        column.dedup();
        let text = |code: &u32| of.values()[*code as usize].to_string();
        *values = column.iter().map(text).collect();
    }
    for &arm in &listed {
        let rounds = &rounds[arm.index()];
        table.arm.push(arm.number());
        if let Some(name) = space.name(arm) {
            table.names.push(name.to_owned());
        }
        for (place, code) in space.codes(arm).into_iter().enumerate() {
            let at = used[place].binary_search(&code).ok();
            let at = at.and_then(|at| i64::try_from(at).ok());
            table.codes[place].push(at.unwrap_or(-1));
        }
        let count = |kind| rounds.iter().filter(|played| played.kind == kind).count() as u64;
        table.pulls.push(rounds.len() as u64);
        table.censored.push(count(Kind::Censored));
        table.failed.push(count(Kind::Failed));
        table
            .used
            .push(Num(rounds.iter().map(|played| played.used()).sum()));
        let known = standings[arm.index()];
        let number = |of: fn(&Recommendation) -> f64| Num::of(known.as_ref().map(of));
        table.limit.push(number(|known| known.pull.limit.get()));
        table.gain.push(number(|known| known.gain));
        table.low.push(number(|known| known.interval.0));
        table.high.push(number(|known| known.interval.1));
    }
    table.curves = kept_curves(pairs, rounds, &listed);
    table
}

/// Curves of the arms that were pulled most, as many as fit on the page.
fn kept_curves(
    pairs: &Pairs<'_>,
    rounds: &[Vec<&Played>],
    listed: &[ArmId],
) -> Vec<Option<Curves>> {
    let mut order: Vec<usize> = (0..listed.len()).collect();
    order.sort_by_key(|&place| std::cmp::Reverse(rounds[listed[place].index()].len()));
    let mut kept = vec![None; listed.len()];
    let mut numbers = 0;
    for place in order {
        let arm = listed[place];
        if rounds[arm.index()].is_empty() || numbers > CURVE_NUMBERS {
            break;
        }
        let of = curves(pairs, arm, &rounds[arm.index()], STEPS);
        numbers += of.survival.len() * 4 + of.marks.len() * 2 + of.gain.len() * 5;
        kept[place] = Some(of);
    }
    kept
}

/// The best arms in full: the answer first, then by their worth, then the first arm.
pub fn best_arms(
    history: &History,
    pairs: &Pairs<'_>,
    rounds: &[Vec<&Played>],
    standings: &[Option<Recommendation>],
) -> Vec<BestArm> {
    let answer = history.answer();
    let mut order: Vec<&Recommendation> = standings.iter().flatten().collect();
    order.sort_by(|a, b| pairs.worth(b).total_cmp(&pairs.worth(a)));
    let mut shown: Vec<Recommendation> = answer.into_iter().collect();
    let is_shown =
        |shown: &[Recommendation], arm: ArmId| shown.iter().any(|known| known.pull.arm == arm);
    for known in order {
        if shown.len() < BEST && !is_shown(&shown, known.pull.arm) {
            shown.push(*known);
        }
    }
    if let Some(first) = standings.first().copied().flatten()
        && !is_shown(&shown, first.pull.arm)
    {
        shown.push(first);
    }
    shown
        .iter()
        .map(|known| {
            let arm = known.pull.arm;
            let limit = known.pull.limit.get();
            let rounds = &rounds[arm.index()];
            BestArm {
                arm: arm.number(),
                label: label(history, arm),
                limit: Num(limit),
                parts: parts(history, rounds, limit),
                curves: curves(pairs, arm, rounds, 200),
            }
        })
        .collect()
}

/// The rounds that the page holds: all, or some of every arm and an even sample of the whole run.
pub fn rounds(history: &History) -> Rounds {
    let kept = kept_rounds(history);
    let mut limits: Vec<f64> = kept
        .iter()
        .map(|&place| history.rounds[place].limit)
        .collect();
    limits.sort_by(f64::total_cmp);
    limits.dedup();
    let has_times = !history.header.is_virtual;
    let has_instances = !history.resolved.instances.is_empty();
    let mut shown = Rounds {
        total: history.rounds.len(),
        limits: limits.iter().copied().map(Num).collect(),
        ..Rounds::default()
    };
    for (row, &place) in kept.iter().enumerate() {
        let played = &history.rounds[place];
        let limit = limits.binary_search_by(|other| other.total_cmp(&played.limit));
        shown.round.push(played.round);
        shown.arm.push(played.arm.number());
        shown.limit.push(limit.unwrap_or(0) as u32);
        shown.kind.push(played.kind);
        shown.reward.push(Num(played.reward));
        shown.used.push(Num(played.used()));
        shown.gain.push(Num(played.gain));
        if has_times {
            shown.at.push(Num(played.at));
        }
        if has_instances {
            shown.instance.push(played.instance);
        }
        if played.kind == Kind::Failed {
            shown.failure.push((row, played.failure));
        }
        if !played.is_chosen {
            shown.unchosen.push(row);
        }
    }
    shown
}

fn kept_rounds(history: &History) -> Vec<usize> {
    let total = history.rounds.len();
    if total <= KEPT {
        return (0..total).collect();
    }
    // Half for the latest rounds of every arm, so that none is empty, and half spread over the run.
    let mut is_kept = vec![false; total];
    let quota = (KEPT / 2).div_ceil(history.space.len()).max(1);
    let mut left = vec![quota; history.space.len()];
    let mut room = KEPT / 2;
    for (place, played) in history.rounds.iter().enumerate().rev() {
        let left = &mut left[played.arm.index()];
        if *left > 0 && room > 0 {
            *left -= 1;
            room -= 1;
            is_kept[place] = true;
        }
    }
    let step = total as f64 / (KEPT / 2) as f64;
    for k in 0..KEPT / 2 {
        is_kept[(k as f64 * step) as usize] = true;
    }
    (0..total).filter(|&place| is_kept[place]).collect()
}

/// Failures by reason, the most frequent first.
pub fn failures(history: &History) -> Vec<FailureGroup> {
    // In their original order: rounds refer to them by index.
    history
        .failures()
        .iter()
        .map(|group| FailureGroup {
            reason: group.reason.clone(),
            count: group.count,
            first: group.rounds.0,
            last: group.rounds.1,
            tails: group
                .tails
                .iter()
                .map(|(round, arm, text)| (*round, arm.number(), text.clone()))
                .collect(),
        })
        .collect()
}
