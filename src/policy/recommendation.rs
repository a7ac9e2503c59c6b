//! The recommendation of a policy: which pair to use, and how sure that is.

use std::ops::Range;

use serde::Serialize;
use statrs::distribution::{ContinuousCDF, StudentsT};

use super::estimate::{Estimates, Stat};
use super::{Options, PolicyParameters};
use crate::round::{Limit, Pull};

/// The pair to use, and how sure that is.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Recommendation {
    /// Configuration and limit.
    pub pull: Pull,
    /// Estimated gain: nu-hat, or the posterior mean of a policy that has a posterior.
    pub gain: f64,
    /// 95 % interval around the gain; `interval` in this file says how it is made.
    pub interval: (f64, f64),
    /// How many pulls the estimate rests on: those of the arm that reached this limit. Where it is predicted, how many instances the
    /// arm has met in turn at the largest level that it was granted.
    pub pulls: u64,
    /// Share of them that had not ended there.
    pub censored: f64,
    /// Whether the gain is predicted by a model of the runs of all arms. If not, it rests on the runs of this arm alone.
    #[serde(skip)]
    pub is_predicted: bool,
}

/// The parameters of a policy that has no others.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OnlyRecommend {
    /// How the answer is picked.
    pub recommend: Recommend,
}

impl PolicyParameters for OnlyRecommend {
    fn read(options: &mut Options) -> Self {
        Self {
            recommend: options.word("recommend", &Recommend::WORDS),
        }
    }
}

/// How the answer is picked from the estimates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Recommend {
    /// The largest (N nu-hat - lambda(tau)) / (N + 1), as if one more run had earned the penalty: no one-run flukes.
    Safe,
    /// The largest nu-hat.
    Best,
}

impl Recommend {
    /// As options spell it; the first is the default.
    pub(super) const WORDS: [(&'static str, Self); 2] =
        [("safe", Self::Safe), ("best", Self::Best)];

    /// What is compared.
    pub(super) fn value(self, count: u32, gain: f64, penalty: f64) -> f64 {
        match self {
            Self::Safe => (f64::from(count) * gain - penalty) / (f64::from(count) + 1.0),
            Self::Best => gain,
        }
    }
}

impl Estimates {
    /// The pair this rule picks, or the arm it picks at one limit (or at the nearest at which a reward was earned, smaller
    /// ones first); ties go to the lowest arm, then the lowest limit. None before the first reward.
    pub(super) fn answer(&self, at: Option<Limit>, rule: Recommend) -> Option<Recommendation> {
        let points = self.limits().len();
        let best = if let Some(limit) = at {
            let above = self.limits().partition_point(|&own| own <= limit.get());
            let mut by_nearness = (0..above).rev().chain(above..points);
            by_nearness.find_map(|k| {
                let arms = 0..self.arms();
                first_best(arms.map(|arm| self.best_of(arm, k..k + 1, rule)))
            })
        } else {
            self.best_pair(rule)
        };
        best.map(|(arm, k)| self.recommendation(arm, k))
    }

    /// Arm and limit of the pair this rule picks among all.
    fn best_pair(&self, rule: Recommend) -> Option<(usize, usize)> {
        let mut kept = self.leaders.borrow_mut();
        let points = self.limits().len();
        let best_of = |arm| self.best_of(arm, 0..points, rule);
        let leaders = match kept.take() {
            Some(mut leaders) if leaders.rule == rule => {
                leaders.of_arms.resize(self.arms(), None);
                for arm in leaders.changed.drain(..) {
                    leaders.of_arms[arm] = best_of(arm);
                }
                leaders
            }
            _ => Leaders {
                rule,
                of_arms: (0..self.arms()).map(best_of).collect(),
                changed: vec![],
            },
        };
        let best = first_best(leaders.of_arms.iter().copied());
        *kept = Some(leaders);
        best
    }

    /// What this rule compares of the pair it picks among these of one arm, and its limit; a pair that never earned a reward is
    /// none to use.
    pub(super) fn best_of(
        &self,
        arm: usize,
        limits: Range<usize>,
        rule: Recommend,
    ) -> Option<(f64, usize)> {
        let (stats, penalties) = (self.of_arm(arm), self.penalties());
        let curve = self.curve(arm);
        let mut best: Option<(f64, usize)> = None;
        for k in limits.filter(|&k| stats[k].has_reward()) {
            let survival = curve.as_ref().map(|curve| curve[k]);
            let gain = stats[k].gain_by(penalties[k], survival);
            let value = rule.value(stats[k].count, gain, penalties[k]);
            if best.is_none_or(|(highest, _)| value > highest) {
                best = Some((value, k));
            }
        }
        best
    }

    /// What is known of one pair, as an answer.
    pub(super) fn recommendation(&self, arm: usize, k: usize) -> Recommendation {
        let stat = &self.of_arm(arm)[k];
        let gain = self.gain(arm, k);
        Recommendation {
            pull: self.pull(arm, k),
            gain,
            interval: interval(stat, gain, self.penalties()[k]),
            pulls: u64::from(stat.count),
            censored: self.survival(arm, k),
            is_predicted: false,
        }
    }
}

/// The first arm with the highest value, and its limit.
fn first_best(arms: impl Iterator<Item = Option<(f64, usize)>>) -> Option<(usize, usize)> {
    let mut best: Option<(f64, usize, usize)> = None;
    for (arm, of) in arms.enumerate() {
        if let Some((value, k)) = of
            && best.is_none_or(|(highest, ..)| value > highest)
        {
            best = Some((value, arm, k));
        }
    }
    best.map(|(_, arm, k)| (arm, k))
}

/// The pair of every arm that a rule picked last time: asking again after a few pulls looks at their arms only.
#[derive(Debug, Clone)]
pub(super) struct Leaders {
    rule: Recommend,
    /// What was compared, and the limit.
    of_arms: Vec<Option<(f64, usize)>>,
    /// Arms that were observed since.
    changed: Vec<usize>,
}

impl Leaders {
    /// An arm was observed. Returns false once looking at all arms again is no more work.
    pub(super) fn observed(&mut self, arm: usize) -> bool {
        self.changed.push(arm);
        self.changed.len() < self.of_arms.len()
    }
}

impl Stat {
    /// Whether a pull ended with a reward within the limit.
    pub(super) fn has_reward(&self) -> bool {
        self.count > self.exceeded
    }
}

/// A 95 % interval around the gain of a pair.
///
/// Student's interval over the gains of its pulls after adding one censored run and one perfect one (Agresti and Coull's
/// idea, with the two ends of the gain's range): never empty, however few runs there were or however alike, and
/// soon the usual one. Cut to the range a gain can have.
pub(super) fn interval(stat: &Stat, gain: f64, penalty: f64) -> (f64, f64) {
    let (worst, best) = (-penalty, 1.0);
    if stat.count == 0 {
        return (worst, best);
    }
    let censored = f64::from(stat.exceeded);
    let count = f64::from(stat.count) + 2.0;
    let sum = stat.net - penalty * censored + worst + best;
    let squares = stat.net_squared + penalty * penalty * censored + worst * worst + best * best;
    let mean = sum / count;
    let variance = ((squares - count * mean * mean) / (count - 1.0)).max(0.0);
    let quantile =
        StudentsT::new(0.0, 1.0, count - 1.0).map_or(1.96, |student| student.inverse_cdf(0.975));
    let half = quantile * (variance / count).sqrt();
    // Not `clamp`: rounding may put the gain itself a hair outside of its range.
    let low = (mean - half).max(worst).min(gain);
    let high = (mean + half).min(best).max(gain);
    (low, high)
}

/// Between which 95 % of these draws lie.
pub(super) fn interval_of(mut draws: Vec<f64>) -> (f64, f64) {
    draws.sort_by(f64::total_cmp);
    let cut = draws.len() / 40;
    (draws[cut], draws[draws.len() - 1 - cut])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stat(count: u32, exceeded: u32, net: f64) -> Stat {
        let ended = f64::from(count - exceeded);
        Stat {
            count,
            exceeded,
            net: net * ended,
            net_squared: net * net * ended,
            ..Stat::default()
        }
    }

    proptest::proptest! {
        #[test]
        fn any_mix_of_lost_and_won_runs_has_an_interval_around_its_gain(
            won in 0u32..50, lost in 0u32..50, net in -2.0..1.0f64, penalty in 0.0..20.0f64,
        ) {
            let stat = stat(won + lost, lost, net);
            if stat.count > 0 {
                let gain = stat.gain(penalty);
                let (low, high) = interval(&stat, gain, penalty);
                proptest::prop_assert!(low <= gain && gain <= high, "{low} {gain} {high}");
            }
        }
    }

    #[test]
    fn the_interval_holds_the_gain_and_narrows() {
        let width = |count| {
            let stat = stat(count, 0, 0.9);
            let (low, high) = interval(&stat, stat.gain(10.0), 10.0);
            assert!(low <= 0.9 && 0.9 <= high, "{low} {high}");
            high - low
        };
        assert!(width(1) > 5.0, "one lucky run is no certainty");
        assert!(width(10_000) < 0.05);
        assert!(width(1) > width(100) && width(100) > width(10_000));
    }

    #[test]
    fn the_interval_covers_the_mean_of_bernoulli_gains() {
        use rand::{RngExt, SeedableRng};
        let mut rng = rand_pcg::Pcg64Mcg::seed_from_u64(5);
        for (p, penalty) in [(0.05, 10.0), (0.3, 10.0), (0.5, 1.0)] {
            let truth = (1.0 - p) * 0.8 - penalty * p;
            let covered = (0..2000)
                .filter(|_| {
                    let lost = (0..60).filter(|_| rng.random_bool(p)).count() as u32;
                    let stat = stat(60, lost, 0.8);
                    let (low, high) = interval(&stat, stat.gain(penalty), penalty);
                    (low..=high).contains(&truth)
                })
                .count();
            assert!(covered > 1840, "{covered} of 2000 at p = {p}");
        }
    }

    #[test]
    fn the_safe_rule_prefers_evidence_to_a_fluke() {
        assert!(Recommend::Safe.value(50, 0.85, 10.0) > Recommend::Safe.value(1, 0.95, 10.0));
        assert!(Recommend::Best.value(50, 0.85, 10.0) < Recommend::Best.value(1, 0.95, 10.0));
    }
}
