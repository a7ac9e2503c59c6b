//! The smallest limit that is enough.

use serde::Serialize;
use statrs::distribution::{ContinuousCDF, StudentsT};

use super::Evidence;
use super::shown::Failed;
use crate::policy::Recommendation;
use crate::round::{Limit, Price};

/// A smaller limit is as good if it costs at most this many standard errors of the difference.
///
/// Cutting off a single run that ended costs one standard error, whatever the price: so no run that paid is given up.
const NOISE: f64 = 0.5;
/// The limit lies at least this far above the longest run,
const LEAST_MARGIN: f64 = 1.1;
/// and at most this far if there are many runs.
const MOST_MARGIN: f64 = 1.3;
/// A single run gets this margin; from `MANY` runs on, `MOST_MARGIN` is the most.
const SINGLE_MARGIN: f64 = 3.0;
const MANY: f64 = 100.0;

/// Why the answer has its limit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct LimitReason {
    /// How many runs show it.
    pub runs: usize,
    /// How many of them the limit cuts off, or would if they had been granted it.
    pub cut_off: usize,
    /// The longest run that ended within the limit.
    pub longest: f64,
    /// The share of future runs expected to take longer than the longest seen: one in (runs + 1).
    pub expected_above: f64,
}

impl Evidence {
    /// The pair with the smallest limit that is enough; none if it never earned a reward.
    ///
    /// First the smallest limit at which some run was cut off or could have been, and whose gain is not worse by more than
    /// noise. The estimated gain becomes that of this limit, by what the same runs would have lost under it. If nothing is
    /// cut off there, the limit comes down to just above the longest run seen, where no run ends differently.
    ///
    /// A limit that was found by a model of the runs of all arms is not judged again by the few runs of one.
    pub fn settle(&self, best: Recommendation, price: &Price) -> Option<Recommendation> {
        let arm = best.pull.arm;
        let granted = best.pull.limit.get();
        if !self.of(arm).iter().any(|run| run.is_solved_within(granted)) {
            return None;
        }
        let (limit, lost) = if best.is_predicted {
            (granted, 0.0)
        } else {
            self.smallest_sufficient(&best, price)
        };
        let limit = self.just_above_longest(&best, limit).unwrap_or(limit);
        let mut settled = best;
        settled.gain -= lost;
        settled.interval = (best.interval.0 - lost, best.interval.1 - lost);
        // Not rounded: a limit just above the one that was granted would be one that no run reached.
        settled.pull.limit = Limit::new(limit).unwrap_or(best.pull.limit);
        Some(settled)
    }

    /// Why the answer has this limit; none if no run of the arm shows that.
    pub fn limit_reason(&self, best: &Recommendation) -> Option<LimitReason> {
        let shown = self.shown(best.pull.arm, best.pull.limit.get(), Failed::LeftOut)?;
        let lengths = shown.ended.iter().filter_map(|(run, _)| run.consumption());
        Some(LimitReason {
            runs: shown.runs,
            cut_off: (shown.unsolved * shown.runs as f64).round() as usize,
            longest: lengths.fold(0.0, f64::max),
            expected_above: 1.0 / (shown.runs + 1) as f64,
        })
    }

    /// The smallest limit that was granted to the arm and whose gain is as good, up to noise, on the same runs; and how much
    /// less that gain is.
    fn smallest_sufficient(&self, best: &Recommendation, price: &Price) -> (f64, f64) {
        let (arm, granted) = (best.pull.arm, best.pull.limit);
        let mut limits: Vec<f64> = self.of(arm).iter().map(|run| run.reach).collect();
        limits.retain(|limit| *limit < granted.get());
        limits.sort_by(f64::total_cmp);
        limits.dedup();
        for limit in limits
            .into_iter()
            .filter_map(|limit| Limit::new(limit).ok())
        {
            let runs = self.reaching(arm, granted.get());
            let (mut count, mut sum, mut squares, mut solved) = (0.0, 0.0, 0.0, 0_u64);
            for run in runs {
                let lost = run.gain(granted, price) - run.gain(limit, price);
                count += 1.0;
                sum += lost;
                squares += lost * lost;
                solved += u64::from(run.is_solved_within(limit.get()));
            }
            let mean = sum / count;
            let variance = (squares - count * mean * mean).max(0.0) / (count - 1.0_f64).max(1.0);
            if solved > 0 && mean <= NOISE * (variance / count).sqrt() {
                return (limit.get(), mean);
            }
        }
        (granted.get(), 0.0)
    }

    /// A limit just above the longest run of the arm, if none of its runs was still going there.
    fn just_above_longest(&self, best: &Recommendation, limit: f64) -> Option<f64> {
        let runs = || self.of(best.pull.arm).iter().filter(|run| !run.is_failed);
        if runs().any(|run| run.reach >= limit && !run.is_solved_within(limit)) {
            return None;
        }
        // A run that was cut off under a smaller limit took at least that long.
        let lengths = runs().map(|run| run.consumption().unwrap_or(run.reach));
        let lengths: Vec<f64> = lengths
            .filter(|used| *used <= limit && *used > 0.0)
            .collect();
        let longest = lengths.iter().copied().reduce(f64::max)?;
        let missing = ((MANY - lengths.len() as f64) / (MANY - 1.0)).max(0.0);
        let most = MOST_MARGIN + (SINGLE_MARGIN - MOST_MARGIN) * missing;
        let above = predicted(&lengths).unwrap_or(f64::INFINITY);
        let most = rounded(most * longest, f64::floor).max(LEAST_MARGIN * longest);
        let above = rounded(above.clamp(LEAST_MARGIN * longest, most), f64::ceil);
        (above < limit).then_some(above)
    }
}

/// What 99 of 100 further runs should stay below: Student's prediction on the logarithms; none for fewer than three runs.
fn predicted(lengths: &[f64]) -> Option<f64> {
    let count = lengths.len() as f64;
    if count < 3.0 {
        return None;
    }
    let mean = lengths.iter().map(|length| length.ln()).sum::<f64>() / count;
    let squares = lengths.iter().map(|length| (length.ln() - mean).powi(2));
    let spread = (squares.sum::<f64>() / (count - 1.0)).sqrt();
    let quantile = StudentsT::new(0.0, 1.0, count - 1.0)
        .ok()?
        .inverse_cdf(0.99);
    Some((mean + quantile * spread * (1.0 + 1.0 / count).sqrt()).exp())
}

/// To three significant digits, up or down.
fn rounded(value: f64, to: fn(f64) -> f64) -> f64 {
    let scale = 10f64.powi(2 - value.log10().floor() as i32);
    // A number of three digits stays as it is.
    let near = (value * scale).round();
    let is_short = (near - value * scale).abs() < 1e-9 * near;
    let rounded = if is_short { near } else { to(value * scale) } / scale;
    if rounded.is_finite() { rounded } else { value }
}

#[cfg(test)]
mod tests {
    use super::super::FinishedRun;
    use super::*;
    use crate::round::{ArmId, Observation, Pull};

    fn pair(limit: f64) -> Recommendation {
        Recommendation {
            pull: Pull::new(ArmId::from_index(0), Limit::new(limit).unwrap()),
            gain: 0.5,
            interval: (0.4, 0.6),
            pulls: 1,
            censored: 0.0,
            is_predicted: false,
        }
    }

    fn par10() -> Price {
        Price::new("x", "10 * x", 10.0).unwrap()
    }

    fn evidence(runs: impl IntoIterator<Item = (f64, f64)>) -> Evidence {
        let mut evidence = Evidence::default();
        for (limit, seconds) in runs {
            let pull = pair(limit).pull;
            let seen = if seconds > limit {
                Observation::censored(pull, limit)
            } else {
                Observation::ended(pull, 1.0, seconds)
            };
            evidence.add(&seen.unwrap(), None);
        }
        evidence
    }

    fn limit(evidence: &Evidence, granted: f64) -> f64 {
        let settled = evidence.settle(pair(granted), &par10()).unwrap();
        settled.pull.limit.get()
    }

    #[test]
    fn where_nothing_is_cut_off_the_limit_is_just_above_the_longest_run() {
        let runs = (0..1105).map(|k| (0.412, 0.02 + 0.036 * f64::from(k) / 1104.0));
        let evidence = evidence(runs);
        let found = limit(&evidence, 0.412);
        assert!((0.0616..=0.0728).contains(&found), "{found}");
        let settled = evidence.settle(pair(0.412), &par10()).unwrap();
        let reason = evidence.limit_reason(&settled).unwrap();
        assert_eq!((reason.runs, reason.cut_off), (1105, 0));
        assert!((reason.longest - 0.056).abs() < 1e-12);
        assert!(reason.expected_above < 0.001);
    }

    /// Limits of a grid are computed: 0.018016482 is 0.0180165 to a person, and no run reaches that.
    #[test]
    fn the_runs_under_a_computed_limit_count_as_runs_under_it() {
        let granted = 0.018_016_482_306_544_11;
        let evidence = evidence((0..10).map(|k| (granted, if k == 0 { 1.0 } else { 0.01 })));
        let settled = evidence.settle(pair(granted), &par10()).unwrap();
        let reason = evidence.limit_reason(&settled).unwrap();
        assert_eq!((reason.runs, reason.cut_off), (10, 1));
        let values = evidence.values(settled.pull.arm, settled.pull.limit.get());
        assert_eq!(values.unwrap().solved, 0.9);
    }

    #[test]
    fn many_runs_never_get_more_than_the_largest_margin() {
        // Evenly spread: a log-normal distribution would expect much longer ones.
        for longest in [1.0, 0.0777, 3.333, 123.4] {
            let runs = (1..=400).map(|k| (1e4, longest * f64::from(k) / 400.0));
            let found = limit(&evidence(runs), 1e4);
            assert!(
                (1.28..=1.3).contains(&(found / longest)),
                "{longest} {found}"
            );
        }
    }

    #[test]
    fn few_runs_get_the_larger_margin_and_a_limit_is_never_raised() {
        assert_eq!(limit(&evidence([(8.0, 1.0)]), 8.0), 3.0);
        assert_eq!(limit(&evidence([(1.2, 1.0)]), 1.2), 1.2);
        // All alike: the smaller margin.
        assert_eq!(limit(&evidence([(8.0, 1.0); 50]), 8.0), 1.1);
    }

    #[test]
    fn a_limit_that_cuts_off_what_would_not_pay_stays() {
        // Half end at 1 s, half never: a limit just above 1 s is on the grid, and is the best.
        let runs = (0..100).map(|k| (2.0, if k % 2 == 0 { 1.0 } else { 99.0 }));
        assert_eq!(limit(&evidence(runs), 2.0), 2.0);
    }

    #[test]
    fn a_smaller_limit_on_the_grid_is_taken_if_it_is_as_good() {
        // Pulls at 5 s and at 8 s, all over after 1 s but for one that never ends.
        let runs = (0..60).map(|k| {
            (
                if k % 2 == 0 { 5.0 } else { 8.0 },
                if k == 1 { 99.0 } else { 1.0 },
            )
        });
        assert_eq!(limit(&evidence(runs), 8.0), 5.0);
        // But not if it would cut off runs that earn their reward.
        let runs = (0..60).map(|k| {
            (
                if k % 2 == 0 { 5.0 } else { 8.0 },
                if k % 10 == 1 { 7.0 } else { 1.0 },
            )
        });
        assert!(limit(&evidence(runs), 8.0) > 7.0);
    }

    #[test]
    fn a_pair_without_a_reward_is_no_answer() {
        let cut = evidence([(1.0, 9.0), (2.0, 9.0)]);
        assert_eq!(cut.settle(pair(2.0), &par10()), None);
        assert_eq!(Evidence::default().settle(pair(2.0), &par10()), None);
        // Rewarded, but only under a larger limit than the pair's.
        assert_eq!(evidence([(9.0, 5.0)]).settle(pair(2.0), &par10()), None);
    }

    #[test]
    fn failures_do_not_hold_the_limit_up() {
        let mut evidence = evidence([(8.0, 1.0); 20]);
        evidence.add(&Observation::failed(pair(8.0).pull), None);
        assert_eq!(limit(&evidence, 8.0), 1.1);
    }

    /// Between the 99 % quantile and 1.3 times the longest run, whichever policy ran and wherever the grid lies.
    #[test]
    fn limits_of_two_hundred_problems_without_censoring_are_just_above_the_longest_run() {
        use crate::policy::{PolicyKind, Problem};
        use crate::round::{LimitGrid, Purpose, Round, randomness};
        use rand::{RngExt, SeedableRng};
        use statrs::distribution::Normal;
        let quantile = |share: f64| Normal::standard().inverse_cdf(share);
        let mut within = 0;
        for problem in 0..200_u64 {
            let mut rng = rand_pcg::Pcg64Mcg::seed_from_u64(problem);
            let arms = rng.random_range(2..8);
            let spread = rng.random_range(0.02..0.5);
            let medians: Vec<f64> = (0..arms).map(|_| rng.random_range(0.5..1.5)).collect();
            let limits = LimitGrid::logarithmic(10.0, 100.0, rng.random_range(2..8)).unwrap();
            let price = Price::new("x", "10 * x", 100.0).unwrap();
            let spec = ["rcucb", "joint-ts", "ucb", "halving"][(problem % 4) as usize];
            let setting = Problem::new(arms, limits, price.clone()).unwrap();
            let mut policy = PolicyKind::parse(spec).unwrap().build(&setting);
            let mut evidence = Evidence::default();
            for number in 1..=(400 * arms as u64) {
                let round = Round(number);
                let pull = policy.choose(round, &mut randomness(problem, round, Purpose::Choose));
                policy.launched(round, pull);
                let normal = quantile(rng.random_range(1e-9..1.0 - 1e-9));
                let used = medians[pull.arm.index()] * (spread * normal).exp();
                let seen = Observation::ended(pull, 1.0, used).unwrap();
                policy.observe(
                    round,
                    seen,
                    &mut randomness(problem, round, Purpose::Observe),
                );
                evidence.add(&seen, None);
            }
            let best = policy.recommend().unwrap();
            let arm = best.pull.arm;
            let limit = evidence.settle(best, &price).unwrap().pull.limit.get();
            let longest = evidence.of(arm).iter().filter_map(FinishedRun::consumption);
            let longest = longest.fold(0.0, f64::max);
            let least = medians[arm.index()] * (spread * quantile(0.99)).exp();
            within += u32::from(least <= limit && limit <= 1.3 * longest);
        }
        assert!(within >= 190, "{within} of 200");
    }

    proptest::proptest! {
        #[test]
        fn the_limit_never_grows_and_cuts_off_no_run_that_paid(
            runs in proptest::collection::vec((0usize..4, 0.01..12.0f64), 1..80),
        ) {
            let grid = [1.0, 2.0, 4.0, 8.0];
            let evidence = evidence(runs.iter().map(|&(k, seconds)| (grid[k], seconds)));
            for granted in grid {
                if let Some(settled) = evidence.settle(pair(granted), &par10()) {
                    let limit = settled.pull.limit.get();
                    proptest::prop_assert!(limit <= granted);
                    proptest::prop_assert!(evidence.of(settled.pull.arm).iter().any(|run| run.is_solved_within(limit)));
                }
            }
        }

        #[test]
        fn rounding_moves_by_less_than_a_hundredth(value in 1e-6..1e9f64) {
            let (up, down) = (rounded(value, f64::ceil), rounded(value, f64::floor));
            proptest::prop_assert!(up >= value * (1.0 - 1e-9) && up <= value * 1.01, "{value} {up}");
            proptest::prop_assert!(down <= value * (1.0 + 1e-9) && down >= value * 0.99, "{value} {down}");
        }
    }
}
