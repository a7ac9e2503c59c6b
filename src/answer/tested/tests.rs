use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use statrs::distribution::{ContinuousCDF, Normal};

use super::*;
use crate::round::{Observation, Pull};

const LIMIT: f64 = 10.0;

/// What one pair is like: seconds of the arm and of the default, and their scores.
struct Family {
    name: &'static str,
    pairs: &'static [u32],
    draw: fn(&mut Pcg64Mcg, &[f64; 4]) -> [f64; 4],
    of: fn(&Differences) -> Difference,
    /// What a run counts, by its seconds and its reward.
    value: fn(f64, f64) -> f64,
    /// Arms that left runs unsolved before the test.
    unsolved: &'static [usize],
}

fn normal(rng: &mut Pcg64Mcg) -> f64 {
    Normal::standard().inverse_cdf(rng.random_range(1e-12..1.0))
}

fn solver(rng: &mut Pcg64Mcg, [hard, spread, shift, noise]: &[f64; 4]) -> [f64; 4] {
    let level = hard + spread * normal(rng);
    let (a, b) = (noise * normal(rng), noise * normal(rng));
    [(level + shift + a).exp(), (level + b).exp(), 1.0, 1.0]
}

fn script(rng: &mut Pcg64Mcg, [_, spread, shift, noise]: &[f64; 4]) -> [f64; 4] {
    let level = 0.5 + 0.1 * spread * normal(rng);
    let (a, b) = (normal(rng), normal(rng));
    let reward = |value: f64| (level + value).clamp(0.0, 1.0);
    [
        1.0,
        1.0,
        reward(0.1 * shift + 0.1 * noise * a),
        reward(0.1 * noise * b),
    ]
}

/// All runs are short, and some crash.
fn crashing(rng: &mut Pcg64Mcg, setting: &[f64; 4]) -> [f64; 4] {
    let [hard, spread, shift, noise] = setting;
    let [a, b, ..] = solver(rng, &[hard - 4.0, *spread, *shift, *noise]);
    // From 1 to 5 % of them.
    let mut run = |seconds: f64, share: f64| {
        let crashes = rng.random_bool(0.01 + 0.04 * share);
        if crashes { 1e6 } else { seconds }
    };
    [run(a, spread - 0.5), run(b, 2.0 * (noise - 0.1)), 1.0, 1.0]
}

const FAMILIES: [Family; 5] = [
    Family {
        name: "PAR10",
        pairs: &[30, 60, 120],
        draw: solver,
        of: |all| all.par10,
        value: |seconds, _| {
            if seconds <= LIMIT {
                seconds
            } else {
                10.0 * LIMIT
            }
        },
        unsolved: &[],
    },
    Family {
        name: "solved",
        pairs: &[30, 60, 120],
        draw: solver,
        of: |all| all.solved,
        value: |seconds, _| f64::from(u8::from(seconds <= LIMIT)),
        unsolved: &[],
    },
    Family {
        name: "gain",
        pairs: &[30, 60, 120],
        draw: solver,
        of: |all| all.gain,
        value: |seconds, _| {
            if seconds <= LIMIT {
                1.0 - seconds / LIMIT
            } else {
                -10.0
            }
        },
        unsolved: &[],
    },
    Family {
        name: "reward",
        pairs: &[10, 20, 40],
        draw: script,
        of: |all| all.reward,
        value: |_, reward| reward,
        unsolved: &[],
    },
    Family {
        name: "crashes",
        pairs: &[60, 90, 120],
        draw: crashing,
        of: |all| all.par10,
        value: |seconds, _| {
            if seconds <= LIMIT {
                seconds
            } else {
                10.0 * LIMIT
            }
        },
        unsolved: &[0, 1],
    },
];

fn price() -> Price {
    Price::new("x", "10 * x", LIMIT).unwrap()
}

fn test(rng: &mut Pcg64Mcg, family: &Family, setting: &[f64; 4], pairs: u32) -> Difference {
    let limit = Limit::new(LIMIT).unwrap();
    let arms = [ArmId::from_index(1), ArmId::from_index(0)];
    let mut evidence = Evidence::default();
    for instance in 0..pairs {
        let [a, b, of_a, of_b] = (family.draw)(rng, setting);
        for (arm, seconds, reward) in [(arms[0], a, of_a), (arms[1], b, of_b)] {
            let mut pull = Pull::new(arm, limit);
            pull.instance = Some(instance);
            let seen = Observation::ended(pull, reward, seconds).unwrap();
            evidence.add(&seen, None);
        }
    }
    let unsolved: Vec<ArmId> = family
        .unsolved
        .iter()
        .map(|arm| ArmId::from_index(*arm))
        .collect();
    let tested = evidence.tested(&arms, &unsolved, limit, &price());
    (family.of)(&tested[0].against_default.unwrap())
}

/// The interval of a paired difference covers the true one in 93 to 97 % of a thousand simulated tests of every size.
#[test]
fn paired_intervals_cover_the_true_difference() {
    for family in &FAMILIES {
        let mut covered = [0_u32; 3];
        for run in 0..1000_u64 {
            let mut rng = Pcg64Mcg::seed_from_u64(run);
            let setting = [
                rng.random_range(-1.0..2.0),
                rng.random_range(0.5..1.5),
                0.5 * normal(&mut rng),
                rng.random_range(0.1..0.6),
            ];
            let many = (0..10_000).map(|_| {
                let [a, b, of_a, of_b] = (family.draw)(&mut rng, &setting);
                (family.value)(a, of_a) - (family.value)(b, of_b)
            });
            let truth = many.sum::<f64>() / 10_000.0;
            for (place, pairs) in family.pairs.iter().enumerate() {
                let found = test(&mut rng, family, &setting, *pairs);
                let (low, high) = found.interval.unwrap();
                covered[place] += u32::from(low <= truth && truth <= high);
            }
        }
        eprintln!("{:8} {:?}: {covered:?} of 1000", family.name, family.pairs);
        for count in covered {
            assert!((930..=970).contains(&count), "{}: {covered:?}", family.name);
        }
    }
}

#[test]
fn a_test_says_what_every_arm_did_and_how_it_differs_from_the_default() {
    let limit = Limit::new(LIMIT).unwrap();
    let arms = [ArmId::from_index(2), ArmId::from_index(0)];
    let mut evidence = Evidence::default();
    // The arm is a second faster, and solves what the default does not.
    for instance in 0..4_u32 {
        let mut add = |arm, seconds: f64| {
            let mut pull = Pull::new(arm, limit);
            pull.instance = Some(instance);
            evidence.add(&Observation::ended(pull, 1.0, seconds).unwrap(), None);
        };
        add(arms[0], 2.0);
        add(arms[1], if instance == 0 { 99.0 } else { 3.0 });
    }
    let [arm, default] = &evidence.tested(&arms, &[], limit, &price())[..] else {
        panic!("two arms");
    };
    assert_eq!(
        (arm.values.par10, default.values.par10),
        (2.0, (100.0 + 9.0) / 4.0)
    );
    assert_eq!(default.against_default, None);
    let all = arm.against_default.unwrap();
    assert_eq!(
        (all.solved.mean, all.solved.more, all.solved.less),
        (0.25, 1, 0)
    );
    assert_eq!((all.par10.mean, all.par10.pairs), (-25.25, 4));
    let (low, high) = all.par10.interval.unwrap();
    assert!(
        low < -25.25 && high > 0.0,
        "four pairs say little: {low} {high}"
    );
    let text = all.in_words(&arm.values, crate::quantity::seconds);
    assert!(text.starts_with("PAR10 -25.2 s (95 % interval -"), "{text}");
    assert!(text.ends_with("; better on 4, worse on 0 of 4"), "{text}");
}

/// All runs far below the limit: the interval is that of the times, not of what might be cut off.
#[test]
fn a_far_limit_does_not_widen_the_interval() {
    let limit = Limit::new(1e4).unwrap();
    let arms = [ArmId::from_index(1), ArmId::from_index(0)];
    let mut evidence = Evidence::default();
    for instance in 0..20_u32 {
        for (arm, seconds) in [(arms[0], 1.0), (arms[1], 1.5)] {
            let mut pull = Pull::new(arm, limit);
            pull.instance = Some(instance);
            let seconds = seconds + 0.01 * f64::from(instance % 5);
            evidence.add(&Observation::ended(pull, 1.0, seconds).unwrap(), None);
        }
    }
    let tested = evidence.tested(&arms, &[], limit, &price());
    let (low, high) = tested[0].against_default.unwrap().par10.interval.unwrap();
    assert!(-0.51 < low && high < -0.49, "{low} {high}");
}
