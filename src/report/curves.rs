//! Why this limit: survival and gain of an arm as functions of the limit.

use serde::Serialize;

use super::pairs::Pairs;
use super::{History, Kind, Num, Played};
use crate::round::{ArmId, Limit};

/// The curves of one arm.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Curves {
    /// Kaplan-Meier steps: consumption, share still running after it, 95 % band.
    pub survival: Vec<(Num, Num, Num, Num)>,
    /// Where pulls were cut off (or failed), and the share running there.
    pub marks: Vec<(Num, Num)>,
    /// Limit, gain, 95 % interval, number of pulls.
    pub gain: Vec<(Num, Num, Num, Num, u64)>,
}

/// What the gain of a pair is made of, per pull.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Parts {
    /// Rewards of those that ended.
    pub reward: Num,
    /// Cost of their consumption.
    pub cost: Num,
    /// Penalty of those that did not end.
    pub penalty: Num,
}

/// One of the best arms, in full.
#[derive(Debug, Clone, Serialize)]
pub struct BestArm {
    /// The arm, counted from 1.
    pub arm: u32,
    /// Its configuration on one line.
    pub label: String,
    /// The limit it is used with.
    pub limit: Num,
    /// What its gain is made of there.
    pub parts: Option<Parts>,
    /// Its curves.
    #[serde(flatten)]
    pub curves: Curves,
}

/// Prices over the limits: what consumption costs, and what being cut off costs.
#[derive(Debug, Clone, Serialize)]
pub struct PriceCurves {
    /// As the scenario has it.
    pub cost: String,
    /// As the scenario has it.
    pub penalty: String,
    /// Consumption per x.
    pub unit: Num,
    /// Consumption or limit, cost, penalty.
    pub points: Vec<(Num, Num, Num)>,
}

/// Samples the price curves up to the largest limit.
pub fn prices(history: &History) -> Option<PriceCurves> {
    let price = history.price()?;
    let largest = *history.limits()?.last()?;
    let jumps = price.penalty_jumps(largest);
    let mut places: Vec<f64> = (1..=120)
        .map(|k| largest.get() * f64::from(k) / 120.0)
        .collect();
    for jump in jumps {
        places.extend([jump.get(), jump.get() * (1.0 + 1e-9)]);
    }
    places.retain(|place| *place <= largest.get());
    places.sort_by(f64::total_cmp);
    let points = places.into_iter().filter_map(|place| {
        let penalty = price.penalty(Limit::new(place).ok()?);
        Some((Num(place), Num(price.cost(place)), Num(penalty)))
    });
    Some(PriceCurves {
        cost: history.scenario().price.cost.to_string(),
        penalty: history.scenario().price.penalty.to_string(),
        unit: Num(price.unit()),
        points: points.collect(),
    })
}

/// The curves of an arm from its rounds, with at most this many survival steps and marks.
pub fn curves(pairs: &Pairs<'_>, arm: ArmId, rounds: &[&Played], steps: usize) -> Curves {
    let (survival, marks) = kaplan_meier(rounds, steps);
    Curves {
        survival,
        marks,
        gain: gain_curve(pairs, arm),
    }
}

/// The gain of an arm at every limit that a pull reached.
fn gain_curve(pairs: &Pairs<'_>, arm: ArmId) -> Vec<(Num, Num, Num, Num, u64)> {
    let reached = pairs.reached(arm).into_iter();
    let points = reached.map(|there| {
        (
            Num(there.pull.limit.get()),
            Num(there.gain),
            Num(there.interval.0),
            Num(there.interval.1),
            there.pulls,
        )
    });
    points.collect()
}

type Step = (Num, Num, Num, Num);

/// The product-limit estimate with Greenwood's variance on the log-log scale. Failures count as cut off at their limit.
fn kaplan_meier(rounds: &[&Played], steps: usize) -> (Vec<Step>, Vec<(Num, Num)>) {
    let mut times: Vec<(f64, bool)> = rounds
        .iter()
        .map(|played| match played.kind {
            Kind::Rewarded => (played.consumption, true),
            Kind::Censored | Kind::Failed => (played.reach, false),
        })
        .filter(|(time, _)| time.is_finite())
        .collect();
    // At equal times, those that ended come first: a pull cut off at a limit had not ended there.
    times.sort_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1)));
    let mut curve: Vec<Step> = vec![(Num(0.0), Num(1.0), Num(1.0), Num(1.0))];
    let mut marks = vec![];
    let (mut share, mut greenwood) = (1.0_f64, 0.0_f64);
    let mut place = 0;
    while place < times.len() {
        let (time, _) = times[place];
        let at_risk = (times.len() - place) as f64;
        let same = times[place..]
            .iter()
            .take_while(|(other, _)| *other == time);
        let (mut ended, mut cut) = (0_u32, 0_u32);
        for (_, is_end) in same {
            if *is_end {
                ended += 1;
            } else {
                cut += 1;
            }
        }
        if ended > 0 {
            let died = f64::from(ended);
            share *= 1.0 - died / at_risk;
            greenwood += died / (at_risk * (at_risk - died));
            let (low, high) = band(share, greenwood);
            curve.push((Num(time), Num(share), Num(low), Num(high)));
        }
        if cut > 0 {
            marks.push((Num(time), Num(share)));
        }
        place += (ended + cut) as usize;
    }
    if let (Some(last), Some((time, _))) = (curve.last().copied(), times.last()) {
        curve.push((Num(*time), last.1, last.2, last.3));
    }
    (thinned(curve, steps), thinned(marks, steps / 2))
}

fn band(share: f64, greenwood: f64) -> (f64, f64) {
    if share <= 0.0 {
        return (0.0, 0.0);
    }
    if share >= 1.0 {
        return (1.0, 1.0);
    }
    let width = 1.96 * greenwood.sqrt() / share.ln().abs();
    (share.powf(width.exp()), share.powf((-width).exp()))
}

/// At most this many of the items, evenly spaced, including the first and the last.
pub fn thinned<T: Copy>(items: Vec<T>, most: usize) -> Vec<T> {
    let most = most.max(2);
    if items.len() <= most {
        return items;
    }
    let last = items.len() - 1;
    (0..most).map(|k| items[k * last / (most - 1)]).collect()
}

/// What the gain of a pair is made of, over the rounds that are informative about it.
pub fn parts(history: &History, rounds: &[&Played], limit: f64) -> Option<Parts> {
    let price = history.price()?;
    let penalty = price.penalty(Limit::new(limit).ok()?);
    let telling: Vec<_> = rounds
        .iter()
        .filter(|played| played.reach >= limit)
        .collect();
    let count = telling.len() as f64;
    if telling.is_empty() {
        return None;
    }
    let (mut reward, mut cost, mut lost) = (0.0, 0.0, 0.0);
    for played in telling {
        if played.kind == Kind::Rewarded && played.consumption <= limit {
            reward += played.reward;
            cost += price.cost(played.consumption);
        } else {
            lost += penalty;
        }
    }
    Some(Parts {
        reward: Num(reward / count),
        cost: Num(cost / count),
        penalty: Num(lost / count),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn played(kind: Kind, time: f64) -> Played {
        Played {
            round: 1,
            arm: ArmId::from_index(0),
            limit: 10.0,
            reach: if kind == Kind::Rewarded { 10.0 } else { time },
            instance: 0,
            is_chosen: true,
            kind,
            failure: 0,
            reward: 1.0,
            consumption: time,
            gain: 0.0,
            at: 0.0,
            wall: 0.0,
            slot: 0,
        }
    }

    /// The remission times of the 6-MP arm in Freireich's trial, the standard textbook example.
    #[test]
    fn survival_is_that_of_the_textbooks() {
        let ends = [6.0, 6.0, 6.0, 7.0, 10.0, 13.0, 16.0, 22.0, 23.0];
        let cuts = [
            6.0, 9.0, 10.0, 11.0, 17.0, 19.0, 20.0, 25.0, 32.0, 32.0, 34.0, 35.0,
        ];
        let rounds: Vec<Played> = ends
            .iter()
            .map(|time| played(Kind::Rewarded, *time))
            .chain(cuts.iter().map(|time| played(Kind::Censored, *time)))
            .collect();
        let rounds: Vec<&Played> = rounds.iter().collect();
        let (curve, marks) = kaplan_meier(&rounds, 100);
        let at = |time: f64| curve.iter().find(|step| step.0.0 == time).unwrap();
        assert!((at(6.0).1.0 - 0.857).abs() < 0.001);
        assert!((at(10.0).1.0 - 0.753).abs() < 0.001);
        assert!((at(23.0).1.0 - 0.448).abs() < 0.001);
        // R: survfit(..., conf.type = "log-log") at 23.
        assert!((at(23.0).2.0 - 0.188).abs() < 0.001, "{:?}", at(23.0));
        assert!((at(23.0).3.0 - 0.680).abs() < 0.001, "{:?}", at(23.0));
        assert_eq!(curve.last().unwrap().0, Num(35.0));
        assert_eq!(marks.len(), 11);
    }

    #[test]
    fn nothing_ended_and_nothing_at_all_are_curves_too() {
        let (curve, marks) = kaplan_meier(&[], 10);
        assert_eq!((curve.len(), marks.len()), (1, 0));
        let cut = played(Kind::Failed, 3.0);
        let (curve, marks) = kaplan_meier(&[&cut, &cut], 10);
        assert_eq!(curve.last().unwrap().1, Num(1.0));
        assert_eq!(marks.len(), 1);
    }

    #[test]
    fn thinning_keeps_both_ends() {
        let thin = thinned((0..1000).collect(), 7);
        assert_eq!((thin.len(), thin[0], thin[6]), (7, 0, 999));
        assert_eq!(thinned(vec![1, 2], 7), [1, 2]);
    }
}
