use std::collections::BTreeMap;

use super::belief::Mean;
use super::*;
use crate::round::{ArmId, LimitGrid, Price, Purpose, randomness};
use crate::space::{ABSENT, Parameter, Value};

const LIMITS: [f64; 6] = [0.1, 0.3, 1.0, 3.0, 10.0, 30.0];

fn parameters(text: &str) -> Parameters {
    match crate::policy::PolicyKind::parse(text).unwrap().0 {
        crate::policy::Listed::SimilarTs(parameters) => parameters,
        other => panic!("{other:?}"),
    }
}

/// 20 x 20 arms; a fifth parameter is there for every second one only, and says nothing.
fn space() -> Space {
    let numbers = |name: &str| Parameter::new(name, (0..20).map(Value::Integer).collect());
    let words = ["a", "b", "c"]
        .map(|word| Value::Text(word.into()))
        .to_vec();
    let codes = (0..400_u32).flat_map(|arm| {
        let sometimes = if arm % 2 == 0 { arm % 3 } else { ABSENT };
        [arm / 20, arm % 20, sometimes]
    });
    let parameters = vec![numbers("x"), numbers("y"), Parameter::new("z", words)];
    Space::coded(parameters, 400, codes.collect(), vec![]).unwrap()
}

fn problem() -> Problem {
    let price = Price::new("x", "par10", 30.0).unwrap();
    let problem = Problem::new(400, LimitGrid::new(LIMITS).unwrap(), price).unwrap();
    problem
        .with_space(Arc::new(space()))
        .unwrap()
        .with_instances(12)
}

/// What an arm takes on an instance: exponential, the faster the nearer its parameters are to (14, 5), always the same
/// if `is_echo`.
fn takes(arm: usize, instance: u32, round: u64, is_echo: bool) -> f64 {
    let (x, y) = (arm / 20, arm % 20);
    let far = (x.abs_diff(14).pow(2) + y.abs_diff(5).pow(2)) as f64;
    let mean = 0.3 * (far / 40.0).exp() * f64::from(1 + instance);
    let purpose = Purpose::Target;
    let seed = (arm * 100 + instance as usize) as u64;
    let round = if is_echo { 0 } else { round };
    let share: f64 = randomness(seed, Round(round), purpose).random();
    -(1.0 - share).ln() * mean
}

/// Plays this many rounds; returns the policy and its pulls.
fn play(text: &str, rounds: u64, is_echo: bool, seed: u64) -> (SimilarTs, Vec<Pull>) {
    play_on(text, rounds, seed, |pull, instance, number| {
        takes(pull.arm.index(), instance, number, is_echo)
    })
}

/// Plays this many rounds on runs that take what `takes` says of pull, instance and round.
fn play_on(
    text: &str,
    rounds: u64,
    seed: u64,
    takes: impl Fn(Pull, u32, u64) -> f64,
) -> (SimilarTs, Vec<Pull>) {
    let mut policy = new(&parameters(text), &problem());
    let mut pulls = vec![];
    for number in 1..=rounds {
        let round = Round(number);
        let pull = policy.choose(round, &mut randomness(seed, round, Purpose::Choose));
        let instance = pull.instance.unwrap_or((number * 7 % 12) as u32);
        let pull = Pull {
            instance: Some(instance),
            ..pull
        };
        policy.launched(round, pull);
        let seen = Observation::ended(pull, 1.0, takes(pull, instance, number)).unwrap();
        policy.observe(round, seen, &mut randomness(seed, round, Purpose::Observe));
        pulls.push(pull);
    }
    (policy, pulls)
}

/// How far the answer's parameters are from the best ones, over seeds.
fn distance(text: &str, rounds: u64) -> f64 {
    let of_seed = |seed| {
        let (policy, _) = play(text, rounds, true, seed);
        let arm = policy.recommend().unwrap().pull.arm.index();
        ((arm / 20).abs_diff(14).pow(2) + (arm % 20).abs_diff(5).pow(2)) as f64
    };
    (1..=6).map(of_seed).sum::<f64>() / 6.0
}

#[test]
fn similar_arms_lead_to_the_best_ones_before_they_have_run() {
    // Half as many rounds as there are arms.
    let (with, without) = (
        distance("similar-ts", 200),
        distance("similar-ts:similar=false", 200),
    );
    // An arm picked blindly is about 120 away.
    assert!(with < 40.0, "{with}");
    assert!(with < 0.7 * without, "{with} against {without}");
}

#[test]
fn an_arm_that_never_ran_is_believed_to_be_like_its_neighbours() {
    let (policy, _) = play("similar-ts", 600, false, 3);
    let new = policy.pool.members.iter().enumerate();
    let new = new.filter(|(_, member)| member.evidence.is_none());
    let mut gains = vec![];
    let (mut near, mut far) = (vec![], vec![]);
    for (place, member) in new {
        policy.curve(place, &mut Mean, &mut gains);
        let away = (member.arm as usize / 20).abs_diff(14) + (member.arm as usize % 20).abs_diff(5);
        match away {
            0..=5 => near.push(gains[3]),
            14.. => far.push(gains[3]),
            _ => {}
        }
    }
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    assert!(!far.is_empty());
    assert!(
        near.is_empty() || mean(&near) > mean(&far) + 0.03,
        "{near:?} {far:?}"
    );
}

#[test]
fn who_only_looks_on_hears_the_same_answer() {
    let (policy, pulls) = play("similar-ts", 150, false, 4);
    let mut retired = new(&parameters("similar-ts"), &problem());
    retired.retire();
    for (number, pull) in (1..).zip(pulls) {
        let (arm, instance) = (pull.arm.index(), pull.instance.unwrap());
        let seen = Observation::ended(pull, 1.0, takes(arm, instance, number, false)).unwrap();
        let round = Round(number);
        retired.launched(round, pull);
        retired.observe(round, seen, &mut randomness(4, round, Purpose::Observe));
    }
    assert_eq!(retired.recommend(), policy.recommend());
}

#[test]
fn luck_is_not_taken_for_likeness() {
    // Parameters say nothing of how fast an arm is.
    let (policy, _) = play_on("similar-ts", 500, 5, |_, _, number| {
        let share: f64 = randomness(9, Round(number), Purpose::Target).random();
        -(1.0 - share).ln()
    });
    let members = &policy.pool.members;
    let off = members.iter().flat_map(|member| &member.ratios);
    let off: f64 = off.map(|ratio| ratio.ln().abs()).sum();
    let mean = off / (members.len() * LIMITS.len()) as f64;
    assert!(mean < 0.1, "{mean}");
}

#[test]
fn half_of_the_time_goes_to_the_largest_limit_once_it_can_be_afforded() {
    let share = |text: &str| {
        // Most instances end before 3 s, the others hardly ever: that is the best limit.
        let (policy, _) = play_on(text, 2000, 2, |_, instance, number| {
            let share: f64 = randomness(9, Round(number), Purpose::Target).random();
            if instance < 9 { 2.5 } else { 1000.0 * share }
        });
        policy.spent_in_full / (policy.spent - policy.full_from).max(1.0)
    };
    let (half, none) = (share("similar-ts"), share("similar-ts:full=0"));
    assert!((half - 0.5).abs() < 0.1, "{half}");
    assert!(none < 0.3, "{none}");
}

#[test]
fn limits_climb_with_what_was_spent() {
    let (_, pulls) = play("similar-ts", 800, false, 1);
    let mut spent = 0.0;
    let mut runs: BTreeMap<ArmId, usize> = BTreeMap::new();
    for (number, pull) in pulls.iter().enumerate() {
        let limit = pull.limit.get();
        assert!(limit <= f64::max(0.1, PART * spent), "round {}", number + 1);
        let runs = runs.entry(pull.arm).or_default();
        assert!(limit <= LIMITS[(*runs).min(5)], "round {}", number + 1);
        *runs += 1;
        let seconds = takes(
            pull.arm.index(),
            pull.instance.unwrap(),
            number as u64 + 1,
            false,
        );
        spent += seconds.min(limit);
    }
    assert!(pulls.iter().any(|pull| pull.limit.get() >= 3.0));
    let (_, pulls) = play("similar-ts:climb=false", 50, false, 1);
    assert!(pulls[..20].iter().any(|pull| pull.limit.get() > 1.0));
}

#[test]
fn runs_that_repeat_themselves_are_noticed_and_not_repeated() {
    let (policy, pulls) = play("similar-ts", 3000, true, 2);
    assert!(policy.baseline.again < ECHO, "{}", policy.baseline.again);
    let mut known: BTreeMap<(ArmId, u32), f64> = BTreeMap::new();
    let mut wasted = 0;
    for pull in &pulls {
        let instance = pull.instance.unwrap();
        let seconds = takes(pull.arm.index(), instance, 0, true);
        let reached = known.entry((pull.arm, instance)).or_insert(0.0);
        wasted += u32::from(pull.limit.get() <= *reached);
        let now = if seconds <= pull.limit.get() {
            f64::INFINITY
        } else {
            pull.limit.get()
        };
        *reached = reached.max(now);
    }
    assert!(wasted < 60, "{wasted} of 3000 runs showed nothing new");
    let (policy, _) = play("similar-ts", 3000, false, 2);
    assert!(policy.baseline.again > ECHO, "{}", policy.baseline.again);
}

#[test]
fn without_a_choice_of_instances_it_learns_all_the_same() {
    assert!(distance("similar-ts:instances=false", 1500) < 25.0);
}

#[test]
fn the_answer_for_a_limit_says_what_it_rests_on() {
    let (policy, _) = play("similar-ts", 300, true, 4);
    let answer = policy.answer(Some(Limit::new(30.0).unwrap())).unwrap();
    assert!(answer.pulls > 0);
    assert!(answer.interval.0 <= answer.gain && answer.gain <= answer.interval.1);
    assert!(answer.interval.0 < answer.interval.1);
}

#[test]
fn no_pair_that_was_reached_is_believed_to_be_better_than_the_answer() {
    for (seed, rounds) in [(1, 40), (2, 90), (3, 150), (4, 260), (5, 400)] {
        let (policy, pulls) = play("similar-ts", rounds, false, seed);
        // Without a reward there is no answer.
        let Some(answer) = policy.recommend() else {
            continue;
        };
        for pull in pulls {
            let believed = policy.believed(pull.arm).unwrap();
            let has_reward = |other: &&Recommendation| other.pulls > 0 && other.censored < 1.0;
            for other in believed.iter().filter(has_reward) {
                assert!(other.gain <= answer.gain, "{other:?} against {answer:?}");
            }
        }
    }
}

#[test]
fn very_many_arms_are_thought_about_in_parts() {
    let space = Space::grid(
        ["x", "y"]
            .map(|name| Parameter::new(name, (0..300).map(Value::Integer).collect()))
            .to_vec(),
        &[],
        &[],
    );
    let price = Price::new("x", "par10", 30.0).unwrap();
    let problem = Problem::new(90_000, LimitGrid::new(LIMITS).unwrap(), price).unwrap();
    let problem = problem.with_space(Arc::new(space.unwrap())).unwrap();
    let mut policy = new(&parameters("similar-ts"), &problem);
    for number in 1..=1500 {
        let round = Round(number);
        let pull = policy.choose(round, &mut randomness(1, round, Purpose::Choose));
        let (x, y) = (pull.arm.index() / 300, pull.arm.index() % 300);
        let far = (x.abs_diff(200).pow(2) + y.abs_diff(90).pow(2)) as f64;
        let seen = Observation::ended(pull, 1.0, 0.2 * (far / 8000.0).exp()).unwrap();
        policy.observe(round, seen, &mut randomness(1, round, Purpose::Observe));
    }
    let arm = policy.recommend().unwrap().pull.arm.index();
    let far = (arm / 300).abs_diff(200).pow(2) + (arm % 300).abs_diff(90).pow(2);
    assert!(far < 4000, "{far}");
    assert!(policy.pool.members.len() < 9000);
}

#[test]
fn an_arm_only_cut_off_before_the_smallest_limit_does_not_stand_in_the_way_of_an_answer() {
    let mut policy = new(&parameters("similar-ts"), &problem());
    let mut observe = |number, seen| {
        let round = Round(number);
        policy.observe(round, seen, &mut randomness(1, round, Purpose::Observe));
    };
    let pull = |arm| Pull::new(ArmId::from_index(arm), Limit::new(30.0).unwrap());
    // Nothing is known of arm 300 but that it is not arm 7, which loses every run but one.
    observe(12, Observation::ended(pull(7), 1.0, 0.05).unwrap());
    observe(1, Observation::censored(pull(300), 0.05).unwrap());
    for number in 2..12 {
        observe(number, Observation::censored(pull(7), 30.0).unwrap());
    }
    let largest = Limit::new(30.0).unwrap();
    for at in [None, Some(largest), Some(Limit::new(0.1).unwrap())] {
        let answer = policy.answer(at).unwrap();
        assert_eq!(answer.pull.arm.index(), 7, "{at:?}");
        assert!(answer.pulls > 0);
    }
}
