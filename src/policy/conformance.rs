//! The suite every policy passes.

use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::*;
use crate::round::{ArmId, Limit, LimitGrid, Price, Purpose, Seen, randomness};

/// A policy that goes through the suite.
#[derive(Debug, Clone)]
enum Candidate {
    /// One of the list.
    Listed(PolicyKind),
    /// The example of CONTRIBUTING.md, which has a list of its own.
    WalkThrough(walk_through::PolicyKind),
}

impl Candidate {
    fn name(&self) -> &'static str {
        match self {
            Self::Listed(kind) => kind.name(),
            Self::WalkThrough(kind) => kind.name(),
        }
    }

    fn finds_limits(&self) -> bool {
        match self {
            Self::Listed(kind) => kind.finds_limits(),
            Self::WalkThrough(kind) => kind.finds_limits(),
        }
    }

    fn build(&self, problem: &Problem) -> Box<dyn Policy> {
        match self {
            Self::Listed(kind) => kind.build(problem),
            Self::WalkThrough(kind) => kind.build(problem),
        }
    }
}

/// Every policy, in every variant that changes how it decides.
fn every_policy() -> Vec<Candidate> {
    let mut specs: Vec<String> = PolicyKind::NAMES
        .iter()
        .map(|&name| name.to_owned())
        .collect();
    for name in ["rcucb", "z-rcucb"] {
        for width in ["gain-only", "printed"] {
            specs.push(format!(
                "{name}:width={width},survival=kaplan-meier,alpha=0.5"
            ));
        }
        specs.push(format!("{name}:width=printed,recommend=best"));
    }
    let others = [
        "levels:recommend=best",
        "z-rcucb:m=4,horizon=500,recommend=finest",
        "halving:common=true",
        "race:slack=2",
    ];
    specs.extend(others.map(str::to_owned));
    let listed = specs
        .iter()
        .map(|spec| PolicyKind::parse(spec).unwrap_or_else(|errors| panic!("{spec}: {errors:?}")));
    let examples = walk_through::PolicyKind::NAMES.iter().map(|name| {
        let kind = walk_through::PolicyKind::from_options(name, vec![]);
        Candidate::WalkThrough(kind.unwrap())
    });
    listed.map(Candidate::Listed).chain(examples).collect()
}

#[test]
fn the_policy_of_contributing_is_made_from_its_file_and_its_line() {
    use walk_through::PolicyKind;
    assert_eq!(PolicyKind::NAMES, ["epsilon-greedy"]);
    let epsilon = ("epsilon".to_owned(), OptionValue::Number(0.2));
    let kind = PolicyKind::from_options("epsilon-greedy", vec![epsilon]).unwrap();
    assert_eq!(kind.parameters()["epsilon"], 0.2);
    assert_eq!(kind.parameters()["recommend"], "safe");
    assert_eq!(
        (kind.warning(), kind.survival()),
        (None, Survival::Restricted)
    );
    assert!(!kind.chooses_instances() && !kind.takes_more_arms());
    let wrong = ("epsilno".to_owned(), OptionValue::Number(0.2));
    assert!(PolicyKind::from_options("epsilon-greedy", vec![wrong]).is_err());
    assert!(PolicyKind::from_options("epsilon", vec![]).is_err());
    // What `captime explain` shows of it.
    let mut policy = kind.build(&problem(2, 2));
    choose(&mut policy, 1, 1);
    let explanation = policy.explain();
    assert_eq!(explanation.reason(), "it was chosen at random");
    assert!(explanation.otherwise().is_some());
}

/// Arms with parameters, and instances to choose from.
fn rich_problem(arms: usize, limits: usize) -> Problem {
    let values = (0..arms).map(|value| crate::space::Value::Number(value as f64));
    let parameter = crate::space::Parameter::new("p", values.collect());
    let space = crate::space::Space::grid(vec![parameter], &[], &[]).unwrap();
    problem(arms, limits)
        .with_space(std::sync::Arc::new(space))
        .unwrap()
        .with_instances(6)
}

fn problem(arms: usize, limits: usize) -> Problem {
    Problem::new(
        arms,
        LimitGrid::fractions(2.0, limits).unwrap(),
        Price::new("x / 10", "x / 10 if x <= 0.5 else 10 * x", 2.0).unwrap(),
    )
    .unwrap()
}

/// A world in which low arms are better and everything that can happen happens.
fn outcome(pull: Pull, rng: &mut Pcg64Mcg) -> Observation {
    let consumption = rng.random::<f64>() * (1.0 + pull.arm.index() as f64);
    match rng.random_range(0..20) {
        0 => Observation::failed(pull),
        1 => Observation::censored(pull, pull.limit.get() * (0.1 + rng.random::<f64>())).unwrap(),
        _ => Observation::ended(pull, rng.random(), consumption).unwrap(),
    }
}

/// Something a policy learned.
enum Event {
    Launched(Round, Pull),
    Observed(Round, Observation),
}

/// A run: the policy after it, all pulls it chose, and all it learned.
struct Played {
    policy: Box<dyn Policy>,
    chosen: Vec<Pull>,
    events: Vec<Event>,
}

/// Plays with up to `slots` pulls under way, outcomes arriving in any order.
fn play(kind: &Candidate, problem: &Problem, seed: u64, rounds: u64, slots: usize) -> Played {
    play_in(outcome, kind, problem, seed, rounds, slots)
}

/// The same in another world.
fn play_in(
    outcome: fn(Pull, &mut Pcg64Mcg) -> Observation,
    kind: &Candidate,
    problem: &Problem,
    seed: u64,
    rounds: u64,
    slots: usize,
) -> Played {
    let mut policy = kind.build(problem);
    let mut world = Pcg64Mcg::seed_from_u64(seed);
    let mut under_way: Vec<(Round, Pull)> = vec![];
    let (mut chosen, mut events) = (vec![], vec![]);
    for number in 1..=rounds {
        let round = Round(number);
        let pull = choose(&mut policy, seed, number);
        chosen.push(pull);
        policy.launched(round, pull);
        events.push(Event::Launched(round, pull));
        under_way.push((round, pull));
        while under_way.len() >= slots {
            let (round, pull) = under_way.swap_remove(world.random_range(0..under_way.len()));
            let seen = outcome(pull, &mut world);
            policy.observe(round, seen, &mut randomness(seed, round, Purpose::Observe));
            events.push(Event::Observed(round, seen));
        }
    }
    Played {
        policy,
        chosen,
        events,
    }
}

fn choose(policy: &mut Box<dyn Policy>, seed: u64, number: u64) -> Pull {
    policy.choose(
        Round(number),
        &mut randomness(seed, Round(number), Purpose::Choose),
    )
}

#[test]
fn pulls_name_known_arms_and_limits_on_the_grid() {
    for kind in every_policy() {
        for (arms, limits) in [(1, 1), (1, 5), (7, 1), (5, 4)] {
            let problem = problem(arms, limits);
            for slots in [1, 3] {
                let run = play(&kind, &problem, 7, 400, slots);
                for pull in run.chosen {
                    assert!(pull.arm.index() < arms, "{kind:?}");
                    let is_on_grid = problem.limits.as_slice().contains(&pull.limit);
                    assert!(
                        is_on_grid || kind.finds_limits() && pull.limit <= problem.limits.max(),
                        "{kind:?}"
                    );
                }
                let answer = run.policy.recommend().unwrap();
                assert!(
                    answer.interval.0 <= answer.gain && answer.gain <= answer.interval.1,
                    "{kind:?} {answer:?}"
                );
                assert!(
                    answer.pulls > 0 && (0.0..=1.0).contains(&answer.censored),
                    "{kind:?} {answer:?}"
                );
            }
        }
    }
}

#[test]
fn instances_are_chosen_among_those_there_are() {
    for kind in every_policy() {
        for (arms, slots) in [(1, 1), (12, 1), (12, 4)] {
            let run = play(&kind, &rich_problem(arms, 4), 3, 400, slots);
            for pull in run.chosen {
                assert!(pull.arm.index() < arms, "{kind:?}");
                assert!(pull.instance.is_none_or(|chosen| chosen < 6), "{kind:?}");
            }
            assert!(run.policy.recommend().is_some(), "{kind:?}");
        }
        assert!(
            play(&kind, &problem(3, 2), 3, 50, 1)
                .chosen
                .iter()
                .all(|pull| pull.instance.is_none()),
            "{kind:?} chose an instance where there is none"
        );
    }
}

#[test]
fn one_seed_gives_one_run() {
    for kind in every_policy() {
        let run = || play(&kind, &problem(6, 4), 3, 300, 2);
        let (first, second) = (run(), run());
        assert_eq!(first.chosen, second.chosen, "{kind:?}");
        assert_eq!(
            first.policy.recommend(),
            second.policy.recommend(),
            "{kind:?}"
        );
    }
}

#[test]
fn choosing_and_explaining_change_nothing() {
    for kind in every_policy() {
        let mut policy = play(&kind, &problem(6, 4), 5, 200, 2).policy;
        let first = choose(&mut policy, 5, 201);
        let _ = (policy.explain(), policy.recommend());
        assert_eq!(choose(&mut policy, 5, 201), first, "{kind:?}");
    }
}

#[test]
fn nothing_but_censored_or_failed_pulls_is_survived() {
    for kind in every_policy() {
        for is_failing in [false, true] {
            let problem = problem(4, 3);
            let mut policy = kind.build(&problem);
            let mut rng = Pcg64Mcg::seed_from_u64(1);
            for number in 1..=300 {
                let pull = policy.choose(Round(number), &mut rng);
                let seen = if is_failing {
                    Observation::failed(pull)
                } else {
                    Observation::censored(pull, pull.limit.get()).unwrap()
                };
                policy.observe(Round(number), seen, &mut rng);
            }
            // A pair that never earned a reward is no answer.
            assert_eq!(policy.recommend(), None, "{kind:?}");
        }
    }
}

#[test]
fn pulls_always_cut_off_early_do_not_draw_every_round_to_one_pair() {
    for kind in every_policy() {
        let problem = problem(4, 3);
        let mut policy = kind.build(&problem);
        let mut rng = Pcg64Mcg::seed_from_u64(1);
        let mut arms = std::collections::BTreeSet::new();
        for number in 1..=300 {
            let pull = policy.choose(Round(number), &mut rng);
            arms.insert(pull.arm);
            policy.observe(
                Round(number),
                Observation::censored(pull, pull.limit.get() / 3.0).unwrap(),
                &mut rng,
            );
        }
        assert_eq!(arms.len(), 4, "{kind:?}");
    }
}

#[test]
fn slots_are_spread_over_unobserved_pairs() {
    for kind in every_policy()
        .into_iter()
        .filter(|kind| kind.name() != "uniform")
    {
        let problem = problem(8, 2);
        let mut policy = kind.build(&problem);
        let mut rng = Pcg64Mcg::seed_from_u64(1);
        let mut pairs = std::collections::BTreeSet::new();
        for number in 1..=8 {
            let pull = policy.choose(Round(number), &mut rng);
            assert!(
                pairs.insert((pull.arm, pull.limit.get().to_bits())),
                "{kind:?} repeated {pull:?}"
            );
            policy.launched(Round(number), pull);
        }
        // More slots than pairs is fine too.
        for number in 9..=60 {
            let pull = policy.choose(Round(number), &mut rng);
            policy.launched(Round(number), pull);
        }
        assert_eq!(
            policy.recommend(),
            None,
            "{kind:?}: nothing was observed yet"
        );
    }
}

#[test]
fn calibration_replaces_the_opening() {
    let problem = problem(5, 3);
    for kind in every_policy() {
        let mut policy = kind.build(&problem);
        let mut rng = Pcg64Mcg::seed_from_u64(1);
        for number in 1..=5 {
            let pull = Pull::new(
                ArmId::from_index(number as usize - 1),
                Limit::new(6.0).unwrap(),
            );
            policy.observe(
                Round(number),
                Observation::ended(pull, 0.5, 0.1).unwrap(),
                &mut rng,
            );
        }
        policy.choose(Round(6), &mut rng);
        let why = policy.explain().why;
        // UCB learns only from the pairs it played.
        assert!(why != Why::Opening || kind.name() == "ucb", "{kind:?}");
    }
}

#[test]
fn explanations_add_up() {
    for kind in every_policy() {
        let problem = problem(6, 4);
        let mut policy = play(&kind, &problem, 5, 300, 1).policy;
        assert_eq!(kind.build(&problem).explain().why, Why::Nothing);
        let pull = choose(&mut policy, 5, 301);
        let explanation = policy.explain();
        let chosen = explanation.chosen.unwrap();
        assert_eq!(chosen.pull, pull, "{kind:?}");
        if explanation.why == Why::Index {
            let sum = chosen.mean + chosen.width + chosen.refinement;
            assert!(
                (chosen.index - sum).abs() < 1e-9 || chosen.index.is_infinite(),
                "{kind:?} {chosen:?}"
            );
        }
        if let Some(runner_up) = explanation.runner_up {
            let is_turn = explanation.why == Why::Turn;
            assert!(is_turn || chosen.index >= runner_up.index, "{kind:?}");
            assert!(!is_turn || explanation.turn.is_some(), "{kind:?}");
            assert_ne!(chosen.pull, runner_up.pull, "{kind:?}");
        }
    }
}

/// A world in which arm 3 is both better and faster.
fn easy(pull: Pull, rng: &mut Pcg64Mcg) -> Observation {
    let (reward, consumption) = if pull.arm.number() == 3 {
        (0.9, 0.1 + 0.05 * rng.random::<f64>())
    } else {
        (0.4, 0.7 + 0.2 * rng.random::<f64>())
    };
    Observation::ended(pull, reward, consumption).unwrap()
}

#[test]
fn the_best_pair_of_an_easy_problem_is_found() {
    for kind in every_policy()
        .into_iter()
        .filter(|kind| kind.name() != "uniform")
    {
        let problem = Problem::new(
            5,
            LimitGrid::fractions(1.0, 5).unwrap(),
            Price::new("x", "par10", 1.0).unwrap(),
        )
        .unwrap();
        for slots in [1, 3] {
            let run = play_in(easy, &kind, &problem, 2, 20_000, slots);
            let answer = run.policy.recommend().unwrap();
            assert_eq!(answer.pull.arm.number(), 3, "{kind:?}, {slots} slots");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    /// What was launched and observed, repeated in the same order for a fresh policy, restores it exactly: this is
    /// how a run resumes after a crash.
    #[test]
    fn telling_the_same_history_again_restores_a_policy(seed: u64, slots in 1usize..5) {
        for (kind, problem) in every_policy().into_iter().flat_map(|kind| {
            [(kind.clone(), problem(5, 3)), (kind, rich_problem(9, 3))]
        }) {
            let mut live = play(&kind, &problem, seed, 120, slots);
            let mut again = kind.build(&problem);
            for event in &live.events {
                match *event {
                    Event::Launched(round, pull) => again.launched(round, pull),
                    Event::Observed(round, seen) => {
                        again.observe(round, seen, &mut randomness(seed, round, Purpose::Observe));
                    }
                }
            }
            prop_assert_eq!(choose(&mut live.policy, seed, 121), choose(&mut again, seed, 121), "{:?}", kind);
            prop_assert_eq!(live.policy.recommend(), again.recommend());
        }
    }
}

#[test]
fn more_arms_than_are_thought_about_at_once_are_played_and_restored() {
    let problem = rich_problem(5000, 3);
    for kind in every_policy() {
        // These draw for every pair in every round, which takes a while with 15,000 pairs.
        let draws_for_all = ["ts", "joint-ts"].contains(&kind.name());
        let rounds = if draws_for_all { 10 } else { 150 };
        let mut live = play(&kind, &problem, 3, rounds, 3);
        let mut again = kind.build(&problem);
        for event in &live.events {
            match *event {
                Event::Launched(round, pull) => again.launched(round, pull),
                Event::Observed(round, seen) => {
                    again.observe(round, seen, &mut randomness(3, round, Purpose::Observe));
                }
            }
        }
        let next = choose(&mut live.policy, 3, rounds + 1);
        assert_eq!(next, choose(&mut again, 3, rounds + 1), "{kind:?}");
        assert!(next.arm.index() < 5000, "{kind:?}");
        let is_rewarded = |event: &Event| matches!(event, Event::Observed(_, seen) if matches!(seen.seen(), Seen::Rewarded { .. }));
        let has_reward = live.events.iter().any(is_rewarded);
        assert_eq!(live.policy.recommend().is_some(), has_reward, "{kind:?}");
    }
}

#[test]
fn a_million_pairs_fit() {
    let problem = problem(100_000, 10);
    for spec in PolicyKind::NAMES {
        // These draw for every pair in every round.
        let draws_for_all = ["ts", "joint-ts"].contains(spec);
        let rounds = if draws_for_all { 5 } else { 1000 };
        let mut policy = PolicyKind::parse(spec).unwrap().build(&problem);
        let mut rng = Pcg64Mcg::seed_from_u64(1);
        for number in 1..=rounds {
            let pull = policy.choose(Round(number), &mut rng);
            assert!(pull.arm.index() < 100_000, "{spec}: {pull:?}");
            assert!(pull.limit <= problem.limits.max(), "{spec}: {pull:?}");
            policy.observe(
                Round(number),
                Observation::ended(pull, 0.5, 0.1).unwrap(),
                &mut rng,
            );
        }
        assert!(policy.recommend().is_some(), "{spec}");
    }
}
