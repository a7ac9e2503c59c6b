use rand::{Rng, RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use statrs::distribution::{ContinuousCDF, Normal};

use super::*;
use crate::policy::{PolicyKind, Problem};
use crate::round::{LimitGrid, Observation, Pull, Purpose, Round, randomness};

fn normal(rng: &mut dyn Rng) -> f64 {
    Normal::standard().inverse_cdf(rng.random_range(1e-12..1.0))
}

fn pair(arm: usize, limit: f64) -> Recommendation {
    Recommendation {
        pull: Pull::new(ArmId::from_index(arm), Limit::new(limit).unwrap()),
        gain: 0.5,
        interval: (0.4, 0.6),
        pulls: 1,
        censored: 0.0,
        is_predicted: false,
    }
}

fn free() -> Price {
    Price::new("0", "1", 1.0).unwrap()
}

fn add(evidence: &mut Evidence, arm: usize, instance: Option<u32>, reward: f64) {
    let mut pull = pair(arm, 1.0).pull;
    pull.instance = instance;
    evidence.add(&Observation::ended(pull, reward, 0.5).unwrap(), None);
}

/// Also where it is too small to be stated.
fn probability(evidence: &Evidence, arm: usize, limit: f64, price: &Price) -> f64 {
    let (comparison, probability) = evidence.weigh(&pair(arm, limit), price, false);
    probability.unwrap_or_else(|| panic!("{comparison:?}"))
}

#[test]
fn there_is_no_verdict_without_runs_of_both() {
    let mut evidence = Evidence::default();
    for k in 0..50 {
        add(&mut evidence, 3, None, 0.9 + 0.001 * f64::from(k));
    }
    let verdict = evidence.against_default(&pair(3, 1.0), &free(), false);
    assert_eq!(verdict, Comparison::Unknown { runs: 0 });
    assert_eq!(
        verdict.in_words(crate::quantity::seconds),
        "not compared with the default (arm 1): it has not been pulled"
    );
    let itself = evidence.against_default(&pair(0, 1.0), &free(), false);
    assert_eq!(itself, Comparison::IsDefault);
}

#[test]
fn clear_differences_are_clear_and_shared_instances_sharpen_them() {
    // Instances differ by far more than the arms do.
    let mut apart = Evidence::default();
    let mut paired = Evidence::default();
    for k in 0..40_u32 {
        let level = 0.3 + 0.5 * f64::from(k % 10) / 10.0;
        let noise = 0.002 * f64::from(k % 3);
        for (evidence, instance) in [(&mut apart, None), (&mut paired, Some(k))] {
            add(evidence, 0, instance, level);
            add(evidence, 1, instance, level + 0.02 + noise);
            add(evidence, 2, instance, level - 0.2);
        }
    }
    let of_apart = probability(&apart, 1, 1.0, &free());
    let verdict = paired.against_default(&pair(1, 1.0), &free(), false);
    assert!((0.3..0.9).contains(&of_apart), "{of_apart}");
    // Three arms say little about how much arms differ, so some doubt stays.
    let of_paired = probability(&paired, 1, 1.0, &free());
    assert!(
        of_paired > 0.85 && of_paired > of_apart + 0.1,
        "{of_apart} {verdict:?}"
    );
    let text = verdict.in_words(crate::quantity::seconds);
    assert!(text.contains("on 40 shared instances"), "{text}");
    let worse = probability(&paired, 2, 1.0, &free());
    assert!(worse < 0.05, "{worse}");
    // Too little to tell, and no number is given.
    let open = apart.against_default(&pair(1, 1.0), &free(), false);
    assert!(
        matches!(
            open,
            Comparison::Compared {
                probability: None,
                ..
            }
        ),
        "{open:?}"
    );
    let text = open.in_words(crate::quantity::seconds);
    assert!(
        text.starts_with(
            "too early to tell whether it is better than the default (arm 1): gain +0.0"
        ),
        "{text}"
    );
}

/// A default that needs longer than the answer is judged by what it does when it gets that.
#[test]
fn a_slow_default_is_compared_at_a_limit_that_suits_it() {
    let price = Price::new("x / 4", "10 * x / 4", 1.0).unwrap();
    let mut evidence = Evidence::default();
    let mut add = |arm, limit: f64, reward, used| {
        let pull = pair(arm, limit).pull;
        evidence.add(&Observation::ended(pull, reward, used).unwrap(), None);
    };
    add(0, 1.0, 0.69, 0.35);
    for k in 0..8 {
        add(1, 1.0, 0.68 + 0.002 * f64::from(k), 0.03);
    }
    let Comparison::Compared { limit, gain, .. } =
        evidence.against_default(&pair(1, 0.0344), &price, false)
    else {
        panic!("both were run");
    };
    assert_eq!(limit, 1.0);
    assert!((gain - 0.6025).abs() < 1e-9, "{gain}");
}

/// The difference is that of the two gains, even where most arms are cut off under the limit of the answer.
#[test]
fn the_difference_is_that_of_the_gains_where_the_default_needs_another_limit() {
    let price = Price::new("x / 4", "10 * x / 4", 1.0).unwrap();
    let mut rng = Pcg64Mcg::seed_from_u64(1);
    let mut evidence = Evidence::default();
    for run in 0..30 * 48 {
        let arm = run % 48;
        let used = 0.35 * 0.9_f64.powi(arm);
        let limit = match arm {
            0 => 1.0,
            _ => [0.061, 1.0, 1.0, 1.0][rng.random_range(0..4)],
        };
        let reward = 0.74 + 0.1 * (used - 0.35) + 0.01 * normal(&mut rng);
        let pull = pair(arm as usize, limit).pull;
        evidence.add(&Observation::ended(pull, reward, used).unwrap(), None);
    }
    let answer = pair(30, 0.061);
    let Comparison::Compared {
        difference,
        interval: (low, high),
        answer_limit,
        limit,
        gain,
        ..
    } = evidence.against_default(&answer, &price, false)
    else {
        panic!("both were run");
    };
    // The answer always ends early, so nothing is lost by granting it as much.
    assert_eq!((answer_limit, limit), (1.0, 1.0));
    let own = evidence.estimate(answer.pull.arm, answer.pull.limit, &price);
    let between = own.unwrap().gain - gain;
    assert!(between > 0.03, "{between}");
    // Rewards of 30 runs each, with a standard deviation of 0.01.
    let width = high - low;
    assert!(
        (difference - between).abs() < 0.01 && low > 0.0 && (0.006..0.03).contains(&width),
        "{between}: {difference} [{low}, {high}]"
    );
}

/// Where arms fail, a unit of the stabilised scale is worth more gain in the middle than at its ends.
#[test]
fn the_difference_from_a_default_that_often_fails_is_no_larger_than_that_of_the_gains() {
    let mut rng = Pcg64Mcg::seed_from_u64(2);
    let mut evidence = Evidence::default();
    for run in 0..40 * 12 {
        let arm = run % 12;
        let pull = pair(arm, 1.0).pull;
        let seen = if rng.random_bool(if arm == 0 { 0.9 } else { 0.1 }) {
            Observation::failed(pull)
        } else {
            Observation::ended(pull, 0.5 + 0.02 * normal(&mut rng), 0.5).unwrap()
        };
        evidence.add(&seen, None);
    }
    let answer = pair(1, 1.0);
    let Comparison::Compared {
        difference, gain, ..
    } = evidence.against_default(&answer, &free(), false)
    else {
        panic!("both were run");
    };
    let own = evidence.estimate(answer.pull.arm, answer.pull.limit, &free());
    let between = own.unwrap().gain - gain;
    assert!(
        (0.8 * between..=1.02 * between).contains(&difference),
        "{between}: {difference}"
    );
}

/// A policy may cut the default off early and never try it again. What it would do with more is not known, so nothing is said about
/// that.
#[test]
fn a_default_that_got_little_is_compared_at_what_it_got() {
    let price = Price::new("x", "10 * x", 10.0).unwrap();
    let mut evidence = Evidence::default();
    for k in 0..30 {
        let seconds = 0.5 + 0.1 * f64::from(k % 10);
        let mut run = |arm, limit: f64, seconds: f64| {
            let pull = pair(arm, limit).pull;
            let seen = if seconds > limit {
                Observation::censored(pull, limit)
            } else {
                Observation::ended(pull, 1.0, seconds)
            };
            evidence.add(&seen.unwrap(), None);
        };
        // Only a little slower, but cut off at 1 s each time it takes longer.
        run(0, 1.0, seconds + 0.05);
        run(1, 5.0, seconds);
    }
    let verdict = evidence.against_default(&pair(1, 5.0), &price, false);
    let Comparison::Compared {
        limit,
        is_short,
        difference,
        ..
    } = verdict
    else {
        panic!("both were run");
    };
    assert_eq!((limit, is_short), (1.0, true));
    assert!(
        difference.abs() < 0.3,
        "not the 1 that is between 1 s and 5 s: {difference}"
    );
    let text = verdict.in_words(crate::quantity::seconds);
    assert!(
        text.starts_with("too early to tell")
            && text.contains(" at 1 s, the largest limit the default was granted (95 % "),
        "{text}"
    );
    // Nor is the default recommended because of what it does early.
    assert_eq!(evidence.better_default(&pair(1, 5.0), &price, false), None);
}

#[test]
fn the_luckiest_of_many_equal_arms_is_not_called_better() {
    let mut rng = Pcg64Mcg::seed_from_u64(3);
    let mut evidence = Evidence::default();
    let mut means = vec![];
    for arm in 0..100 {
        let gains: Vec<f64> = (0..10)
            .map(|_| (0.5 + 0.1 * normal(&mut rng)).clamp(0.0, 1.0))
            .collect();
        means.push(gains.iter().sum::<f64>());
        for gain in gains {
            add(&mut evidence, arm, None, gain);
        }
    }
    let best = (1..100)
        .max_by(|a, b| means[*a].total_cmp(&means[*b]))
        .unwrap();
    let luckiest = probability(&evidence, best, 1.0, &free());
    assert!(luckiest < 0.85, "{luckiest}");
}

#[test]
fn the_default_takes_the_place_of_an_answer_that_is_probably_worse() {
    let mut evidence = Evidence::default();
    for k in 0..20_u32 {
        let noise = 0.01 * f64::from(k % 5);
        add(&mut evidence, 0, None, 0.8 + noise);
        add(&mut evidence, 1, None, 0.9 + noise);
        add(&mut evidence, 2, None, 0.6 + noise);
    }
    let of = |arm| evidence.better_default(&pair(arm, 1.0), &free(), false);
    let default = of(2).unwrap();
    assert_eq!(default.pull.arm.index(), 0);
    assert!((default.gain - 0.82).abs() < 1e-9, "{default:?}");
    assert_eq!((of(1), of(0)), (None, None));
    // A model of all runs has compared them already. If these runs say otherwise, it is too early to tell.
    let predicted = Recommendation {
        is_predicted: true,
        ..pair(2, 1.0)
    };
    assert_eq!(evidence.better_default(&predicted, &free(), false), None);
    let chance = |best| match evidence.against_default(&best, &free(), false) {
        Comparison::Compared { probability, .. } => probability,
        other => panic!("{other:?}"),
    };
    assert_eq!(chance(predicted), None);
    assert!(chance(pair(2, 1.0)).unwrap() < 0.25);
    // A default that never earned a reward is no answer either.
    let mut failing = Evidence::default();
    for k in 0..20_u32 {
        failing.add(&Observation::failed(pair(0, 1.0).pull), None);
        add(&mut failing, 1, None, 0.1 + 0.01 * f64::from(k % 5));
    }
    let dear = Price::new("5", "1", 1.0).unwrap();
    let worse = probability(&failing, 1, 1.0, &dear);
    assert!(worse < 0.5, "{worse}");
    assert_eq!(failing.better_default(&pair(1, 1.0), &dear, false), None);
}

#[test]
fn a_few_runs_that_agree_are_no_proof() {
    let mut evidence = Evidence::default();
    add(&mut evidence, 0, None, 0.1);
    add(&mut evidence, 1, None, 0.3);
    add(&mut evidence, 1, None, 0.3);
    let few = probability(&evidence, 1, 1.0, &free());
    assert!((0.5..0.95).contains(&few), "{few}");
    for _ in 0..20 {
        add(&mut evidence, 0, None, 0.1);
        add(&mut evidence, 1, None, 0.3);
    }
    let many = probability(&evidence, 1, 1.0, &free());
    assert!(many > 0.95, "{many}");
    // Arms that never differ at all are as good as each other.
    let mut same = Evidence::default();
    for arm in [0, 1, 0, 1, 2] {
        add(&mut same, arm, None, 0.4);
    }
    let same = probability(&same, 1, 1.0, &free());
    assert!((same - 0.5).abs() < 1e-6, "{same}");
}

/// A policy gives an arm up because it is often cut off under a small limit. That counts, also where arms are compared under
/// a larger one.
#[test]
fn runs_that_were_cut_off_early_count_too() {
    let price = Price::new("x", "10 * x", 10.0).unwrap();
    let verdict = |is_cut_off: bool| {
        let mut evidence = Evidence::default();
        let mut run = |arm, limit: f64, seconds: f64| {
            let pull = pair(arm, limit).pull;
            let seen = if seconds > limit {
                Observation::censored(pull, limit)
            } else {
                Observation::ended(pull, 1.0, seconds)
            };
            evidence.add(&seen.unwrap(), None);
        };
        for k in 0..12 {
            let seconds = 0.4 + 0.3 * f64::from(k);
            run(1, 5.0, 0.5 * seconds);
            run(2, 5.0, seconds);
            run(3, 5.0, 1.5 * seconds);
            run(0, 1.0, if is_cut_off { 4.0 } else { 0.5 });
        }
        run(0, 5.0, 1.0);
        run(0, 5.0, 1.2);
        probability(&evidence, 1, 5.0, &price)
    };
    let (slow, fast) = (verdict(true), verdict(false));
    assert!(slow > 0.7 && slow > fast + 0.2, "{slow} {fast}");
}

/// A policy may run an arm on one instance again and again. That says as much about the others as a single run.
#[test]
fn many_runs_on_one_instance_count_as_one() {
    let price = Price::new("x", "10 * x", 10.0).unwrap();
    let verdict = |again: u32| {
        let mut evidence = Evidence::default();
        let mut run = |arm, instance, seconds: f64| {
            let mut pull = pair(arm, 10.0).pull;
            pull.instance = Some(instance);
            evidence.add(&Observation::ended(pull, 1.0, seconds).unwrap(), None);
        };
        for instance in 0..20 {
            for arm in 1..5 {
                let seconds = 1.0 + 0.1 * f64::from((7 * instance + arm as u32) % 11);
                run(arm, instance, seconds);
            }
        }
        (0..again).for_each(|_| run(0, 3, 20.0));
        probability(&evidence, 1, 10.0, &price)
    };
    let (once, often) = (verdict(1), verdict(12));
    assert!((once - often).abs() < 0.02, "{once} {often}");
}

/// The answer's arm is better than arm 1 as often as it is said to be, whichever policy chose the runs, also where gains are far
/// from normal.
#[test]
fn the_probability_is_calibrated_over_a_thousand_simulated_runs() {
    const RUNS: u64 = 1000;
    let limits = LimitGrid::new([1.0]).unwrap();
    let of_rewards = [
        "rcucb", "joint-ts", "ts", "ucb", "uniform", "halving", "race",
    ];
    let others = [
        ("fixed", "failing"),
        ("halving", "failing"),
        ("fixed", "skewed"),
        ("joint-ts", "skewed"),
    ];
    for (spec, worth) in of_rewards
        .map(|spec| (spec, "rewards"))
        .into_iter()
        .chain(others)
    {
        let kind = PolicyKind::parse(spec).unwrap();
        let (mut said, mut was, mut count) = (0.0, 0.0, 0.0);
        for run in 0..RUNS {
            let mut rng = Pcg64Mcg::seed_from_u64(run);
            let arms = rng.random_range(3..25);
            let size = [0.0, 1.0, 2.5, 5.0][(run % 4) as usize];
            let (middle, unit) = match worth {
                "skewed" => (-1.5, 0.08),
                _ => (0.5, 0.02),
            };
            let values: Vec<f64> = (0..arms)
                .map(|_| middle + unit * size * normal(&mut rng))
                .collect();
            let fails: Vec<f64> = (0..arms)
                .map(|_| match worth {
                    "failing" => rng.random_range(0.0..0.3),
                    _ => 0.0,
                })
                .collect();
            let truth = |arm: usize| match worth {
                "skewed" => 1.0 - values[arm].exp() * (1.0 - (-(-values[arm]).exp()).exp()),
                _ => (1.0 - fails[arm]) * values[arm].clamp(0.2, 0.8) - fails[arm],
            };
            let problem = Problem::new(arms, limits.clone(), free()).unwrap();
            let mut policy = kind.build(&problem);
            let mut evidence = Evidence::default();
            for number in 1..=rng.random_range(4 * arms as u64..15 * arms as u64) {
                let round = Round(number);
                let pull = policy.choose(round, &mut randomness(run, round, Purpose::Choose));
                policy.launched(round, pull);
                let arm = pull.arm.index();
                let reward = match worth {
                    "skewed" => 1.0 + rng.random_range(1e-12..1.0_f64).ln() * values[arm].exp(),
                    _ => values[arm].clamp(0.2, 0.8) + 0.07 * normal(&mut rng),
                };
                let seen = if rng.random_bool(fails[arm]) {
                    Observation::failed(pull)
                } else {
                    Observation::ended(pull, reward.clamp(0.0, 1.0), 0.5).unwrap()
                };
                policy.observe(round, seen, &mut randomness(run, round, Purpose::Observe));
                evidence.add(&seen, None);
            }
            let Some(best) = policy.recommend() else {
                continue;
            };
            let Comparison::Compared {
                probability: Some(probability),
                ..
            } = evidence.against_default(&best, &free(), false)
            else {
                continue;
            };
            // The default takes the place of such an answer.
            if probability < 0.5 {
                continue;
            }
            let difference = truth(best.pull.arm.index()) - truth(0);
            said += probability;
            // Of two equal arms neither is better.
            was += if difference == 0.0 {
                0.5
            } else {
                f64::from(u8::from(difference > 0.0))
            };
            count += 1.0;
        }
        let (said, was) = (said / count, was / count);
        eprintln!("{spec:10} {worth}: {count:5} statements, said {said:.3}, was {was:.3}");
        assert!(count > 200.0, "{spec} {worth}: {count} statements");
        assert!(
            (said - was).abs() < 0.05,
            "{spec} {worth}: said {said}, was {was}"
        );
    }
}

proptest::proptest! {
    /// The probability, the difference and its interval are read off one distribution.
    #[test]
    fn the_interval_leaves_0_out_exactly_where_the_probability_says_so(
        seed: u64,
        arms in 2_usize..8,
        runs in 2_usize..60,
        better in -0.3_f64..0.3,
        has_instances: bool,
        is_cut_off: bool,
    ) {
        let mut rng = Pcg64Mcg::seed_from_u64(seed);
        let price = Price::new("x", "10 * x", 10.0).unwrap();
        let noise = rng.random_range(0.0..0.2);
        let mut evidence = Evidence::default();
        for run in 0..runs * arms {
            let arm = run % arms;
            let limit = if rng.random_bool(0.3) { 3.0 } else { 10.0 };
            let mut pull = pair(arm, limit).pull;
            pull.instance = has_instances.then(|| rng.random_range(0..20));
            let reward = 0.5 + if arm == 1 { better } else { 0.0 } + noise * normal(&mut rng);
            let seconds = if is_cut_off { normal(&mut rng).exp() } else { 0.5 };
            let seen = Observation::ended(pull, reward.clamp(0.0, 1.0), seconds).unwrap();
            evidence.add(&seen, None);
        }
        let limit = if rng.random_bool(0.5) { 3.0 } else { 10.0 };
        let (comparison, probability) = evidence.weigh(&pair(1, limit), &price, false);
        if let (Comparison::Compared { difference, interval: (low, high), .. }, Some(likely)) = (comparison, probability) {
            proptest::prop_assert!(low <= difference && difference <= high, "{:?}", comparison);
            proptest::prop_assert_eq!(likely > 0.975, low > 0.0, "{} {:?}", likely, comparison);
            proptest::prop_assert_eq!(likely < 0.025, high < 0.0, "{} {:?}", likely, comparison);
            proptest::prop_assert_eq!(likely > 0.5, difference > 0.0, "{} {:?}", likely, comparison);
        }
    }
}

/// A run that was cut off early counts with what is expected of it. That is less sure than what a run shows.
#[test]
fn expected_gains_carry_the_variance_of_the_runs_they_are_from() {
    let price = Price::new("x", "10 * x", 10.0).unwrap();
    let mut evidence = Evidence::default();
    let mut run = |arm, limit: f64, seconds: f64| {
        let seen = Observation::ended(pair(arm, limit).pull, 1.0, seconds).unwrap();
        evidence.add(&seen, None);
    };
    // A run longer than 1 s gains 0.8 or loses 5.
    run(0, 5.0, 0.5);
    run(0, 5.0, 2.0);
    run(0, 5.0, 9.0);
    run(1, 5.0, 0.5);
    run(1, 1.0, 9.0);
    let arms = gains::under(&evidence, Limit::new(5.0).unwrap(), &price);
    assert_eq!(arms[0].imputed, 0.0);
    assert!(
        (arms[1].gains[1].1 + 2.1).abs() < 1e-9,
        "{:?}",
        arms[1].gains
    );
    assert!(
        (arms[1].imputed - 2.9 * 2.9).abs() < 1e-9,
        "{}",
        arms[1].imputed
    );
}
