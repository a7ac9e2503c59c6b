//! Whether it is worth going on: how much better the answer is expected to get with more pulls.

use serde::Serialize;
use statrs::distribution::{ContinuousCDF, Normal};

use crate::policy::Recommendation;

/// In seconds.
const HOUR: f64 = 3600.0;

/// What more pulls are expected to bring.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Outlook {
    /// How many more pulls.
    pub pulls: u64,
    /// In how many seconds; none where pulls take no time.
    pub seconds: Option<f64>,
    /// By how much the gain of the answer is expected to grow.
    pub gain: f64,
}

/// Steps of the integral over gains.
const STEPS: u32 = 400;
/// How many pulls the usual variance counts for in that of an arm.
const BORROWED: f64 = 3.0;
/// More arms than this are not looked at one by one: the best are.
const MOST_ARMS: usize = 200;

/// One arm: its gain is about `mean`, give or take `spread`, after so many pulls.
#[derive(Debug, Clone, Copy)]
struct Belief {
    mean: f64,
    spread: f64,
    pulls: f64,
}

impl Outlook {
    /// By what is believed of every arm that was pulled, each at its best limit, and of `unpulled` arms like them.
    ///
    /// Half of the pulls go to the arms that may still be the best, half to arms that were never pulled. After them every mean will
    /// have moved by some part of its spread; the answer then is the arm with the largest. None where nothing can be said.
    /// Estimates are shrunk to their median first, because the best of many is partly luck.
    pub fn of(
        arms: &[Recommendation],
        unpulled: usize,
        pulls: u64,
        seconds: Option<f64>,
    ) -> Option<Self> {
        let known: Vec<Belief> = arms
            .iter()
            .map(|arm| Belief {
                mean: arm.gain,
                spread: ((arm.interval.1 - arm.interval.0) / 3.92).max(1e-9),
                pulls: arm.pulls.max(1) as f64,
            })
            .collect();
        // Single pulls do not say how much of their differences is luck.
        let is_unclear = known.iter().all(|arm| arm.pulls < 2.0);
        if known.is_empty() || pulls == 0 || is_unclear {
            return None;
        }
        let known = pooled(known);
        let common = Common::of(&known);
        let mut beliefs: Vec<Belief> = known.iter().map(|arm| common.drawn(arm)).collect();
        beliefs.sort_by(|a, b| b.mean.total_cmp(&a.mean));
        beliefs.truncate(MOST_ARMS);
        let best = beliefs[0].mean;
        beliefs.retain(|arm| arm.mean + 2.0 * arm.spread >= best);
        let tried = unpulled.min((pulls / 2) as usize);
        let rest = pulls as f64 - tried as f64;
        let each = rest / beliefs.len() as f64;
        let moves = beliefs.iter().map(|arm| {
            (
                arm.mean,
                arm.spread * (each / (arm.pulls + each)).sqrt(),
                1.0,
            )
        });
        let of_new = common.between / (common.between + common.single).max(1e-300);
        let new = (common.mean, (common.between * of_new).sqrt(), tried as f64);
        let gain = expected_largest(&moves.chain([new]).collect::<Vec<_>>()) - best;
        // No gain is above 1.
        gain.is_finite().then_some(Self {
            pulls,
            seconds,
            gain: gain.min(1.0 - best).max(0.0),
        })
    }

    /// `another hour (about 340 pulls) is expected to add 0.0012 to the gain`.
    pub fn in_words(&self) -> String {
        let pulls = crate::quantity::counted(self.pulls, "pull");
        let more = match self.seconds {
            Some(HOUR) => format!("another hour (about {pulls}) is"),
            Some(seconds) => format!(
                "another {} (about {pulls}) is",
                crate::quantity::seconds(seconds)
            ),
            None => format!("another {pulls} are"),
        };
        if self.gain < 5e-5 {
            format!("{more} not expected to improve the gain")
        } else {
            format!("{more} expected to add {:.4} to the gain", self.gain)
        }
    }
}

/// With a part of what is usual in the variance of each arm: a few pulls say little about their own. The usual variance is
/// a median, because arms that fail now and then vary far more than those that may be the best.
fn pooled(mut arms: Vec<Belief>) -> Vec<Belief> {
    let single = |arm: &Belief| arm.pulls * arm.spread.powi(2);
    let several = arms.iter().filter(|arm| arm.pulls > 1.0);
    let Some(usual) = median(several.map(single).collect()) else {
        return arms;
    };
    for arm in &mut arms {
        let free = arm.pulls - 1.0;
        let own = free * single(arm) + BORROWED * usual;
        arm.spread = (own / (free + BORROWED) / arm.pulls).sqrt();
    }
    arms
}

/// None of no values.
fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

/// How arms lie around the median one, upwards: bad arms may be worse by any amount, which promises nothing.
struct Common {
    mean: f64,
    /// Variance of arms.
    between: f64,
    /// Variance of single pulls.
    single: f64,
}

impl Common {
    /// The better half's squared distance from the median, less what chance explains of it.
    fn of(arms: &[Belief]) -> Self {
        let mean = median(arms.iter().map(|arm| arm.mean).collect()).unwrap_or(0.0);
        let better: Vec<&Belief> = arms.iter().filter(|arm| arm.mean >= mean).collect();
        let of_better = |of: &dyn Fn(&Belief) -> f64| {
            better.iter().map(|arm| of(arm)).sum::<f64>() / better.len() as f64
        };
        let off = of_better(&|arm| (arm.mean - mean).powi(2));
        let chance = of_better(&|arm| arm.spread.powi(2));
        Self {
            mean,
            between: (off - chance).max(0.0),
            single: of_better(&|arm| arm.pulls * arm.spread.powi(2)),
        }
    }

    fn drawn(&self, arm: &Belief) -> Belief {
        let own = self.between / (self.between + arm.spread.powi(2));
        Belief {
            mean: own * arm.mean + (1.0 - own) * self.mean,
            spread: own.sqrt() * arm.spread,
            ..*arm
        }
    }
}

/// The expected largest of independent normal numbers: mean, spread, how many.
fn expected_largest(numbers: &[(f64, f64, f64)]) -> f64 {
    let real = || numbers.iter().filter(|(_, _, count)| *count > 0.0);
    let low = real()
        .map(|(mean, ..)| *mean)
        .fold(f64::NEG_INFINITY, f64::max);
    let high = real()
        .map(|(mean, spread, _)| mean + 6.0 * spread)
        .fold(low, f64::max);
    // The largest is at least about the largest mean, less what that may lose.
    let lowest = real().map(|(mean, spread, _)| mean - 6.0 * spread);
    let lowest = lowest.fold(f64::NEG_INFINITY, f64::max);
    let step = (high - lowest) / f64::from(STEPS);
    if step <= 0.0 {
        return low;
    }
    let above = (0..STEPS).map(|k| {
        let at = lowest + (f64::from(k) + 0.5) * step;
        let below: f64 = real()
            .map(|(mean, spread, count)| {
                let of = Normal::standard().cdf((at - mean) / spread.max(1e-12));
                of.powf(*count)
            })
            .product();
        1.0 - below
    });
    lowest + step * above.sum::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::round::{ArmId, Limit, Pull};

    fn arm(arm: usize, gain: f64, half: f64, pulls: u64) -> Recommendation {
        Recommendation {
            pull: Pull::new(ArmId::from_index(arm), Limit::new(1.0).unwrap()),
            gain,
            interval: (gain - half, gain + half),
            pulls,
            censored: 0.0,
            is_predicted: false,
        }
    }

    fn gain(arms: &[Recommendation], unpulled: usize, pulls: u64) -> f64 {
        Outlook::of(arms, unpulled, pulls, None).unwrap().gain
    }

    #[test]
    fn the_largest_of_two_equal_numbers_is_half_a_spread_above_them() {
        let exact = 1.0 / std::f64::consts::PI.sqrt();
        let found = expected_largest(&[(0.0, 1.0, 2.0)]);
        assert!((found - exact).abs() < 1e-3, "{found}");
        assert!((expected_largest(&[(3.0, 0.0, 1.0), (1.0, 0.1, 5.0)]) - 3.0).abs() < 1e-6);
    }

    #[test]
    fn a_clear_winner_promises_nothing_and_an_open_race_does() {
        let clear = [arm(0, 0.9, 0.01, 500), arm(1, 0.5, 0.01, 500)];
        assert!(gain(&clear, 0, 100) < 1e-4);
        let mut open: Vec<_> = (1..7).map(|k| arm(k, 0.1 * k as f64, 0.1, 8)).collect();
        open.push(arm(0, 0.62, 0.1, 8));
        let (some, more) = (gain(&open, 0, 4), gain(&open, 0, 400));
        assert!(0.001 < some && some < more && more < 0.1, "{some} {more}");
        assert_eq!(Outlook::of(&[], 5, 100, None), None);
    }

    #[test]
    fn arms_that_were_never_pulled_are_a_reason_to_go_on() {
        let arms: Vec<_> = (0..8).map(|k| arm(k, 0.1 * k as f64, 0.02, 20)).collect();
        let outlook = |unpulled| Outlook::of(&arms, unpulled, 400, None).unwrap().gain;
        assert!(
            outlook(200) > outlook(0) + 0.1,
            "{} {}",
            outlook(200),
            outlook(0)
        );
    }

    #[test]
    fn bad_arms_are_no_reason_to_hope_and_no_gain_exceeds_1() {
        // One arm is nearly perfect, others fail now and then.
        let mut arms: Vec<_> = (0..40)
            .map(|k| arm(k, -2.0 + 0.05 * k as f64, 1.5, 20))
            .collect();
        arms.push(arm(40, 0.96, 0.01, 25));
        let promised = Outlook::of(&arms, 0, 4000, None).unwrap().gain;
        assert!(promised < 0.04, "{promised}");
    }

    #[test]
    fn arms_that_were_pulled_once_promise_neither_much_nor_nothing() {
        let once = [arm(0, 0.6, 0.5, 1), arm(1, 0.4, 0.5, 1)];
        assert_eq!(Outlook::of(&once, 46, 700, None), None);
        let again = [arm(0, 0.6, 0.05, 2), arm(1, 0.4, 0.05, 1)];
        assert!(Outlook::of(&again, 46, 700, None).is_some());
    }

    #[test]
    fn a_pull_or_two_of_most_arms_are_too_few() {
        let mut evidence = crate::answer::Evidence::default();
        let mut pull = |arm, times: usize| {
            let pull = Pull::new(ArmId::from_index(arm), Limit::new(1.0).unwrap());
            let seen = crate::round::Observation::failed(pull);
            (0..times).for_each(|_| evidence.add(&seen, None));
            evidence.is_thin()
        };
        assert!(pull(0, 2));
        assert!(!pull(0, 1));
        assert!(!pull(1, 2));
        assert!(pull(2, 2));
        assert!(!pull(2, 1));
    }

    #[test]
    fn equal_arms_that_look_different_by_luck_promise_little() {
        // Spread as far as their own intervals say.
        let arms: Vec<_> = (0..40)
            .map(|k| arm(k, 0.5 + 0.05 * (k as f64 / 20.0 - 1.0), 0.1, 4))
            .collect();
        let shrunk = Outlook::of(&arms, 0, 100, None).unwrap().gain;
        assert!(shrunk < 0.01, "{shrunk}");
        let words = Outlook::of(&arms, 0, 100, Some(3600.0)).unwrap().in_words();
        assert!(
            words.starts_with("another hour (about 100 pulls) is"),
            "{words}"
        );
    }
}
