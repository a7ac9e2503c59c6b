//! What must hold for every open space.

use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::domain::LARGEST;
use super::*;
use crate::round::ArmId;

fn words(values: &[&str]) -> Domain {
    Domain::choice(
        values
            .iter()
            .map(|word| Value::Text((*word).into()))
            .collect(),
    )
    .unwrap()
}

fn integers(low: i64, high: i64) -> Domain {
    Domain::integer(low, high, Spacing::Linear).unwrap()
}

/// Builds a space from `(name, domain, when)` and forbidden combinations.
pub(in crate::space) fn space(
    parameters: &[(&str, Domain, &str)],
    forbid: &[&str],
) -> Result<OpenSpace, Vec<Flaw>> {
    let mut built: Vec<OpenParameter> = parameters
        .iter()
        .map(|(name, domain, _)| OpenParameter::new(*name, domain.clone()))
        .collect();
    let rule = |text: &str, built: &[OpenParameter]| {
        parse_rule(text, built).unwrap_or_else(|misread| panic!("{text}: {misread:?}"))
    };
    for place in 0..built.len() {
        let when = parameters[place].2;
        built[place].when = (!when.is_empty()).then(|| rule(when, &built));
    }
    let forbid = forbid.iter().map(|text| rule(text, &built)).collect();
    OpenSpace::new(built, forbid)
}

/// Names that are hard on readers: keywords, other alphabets, signs.
const NAMES: &[&str] = &[
    "decay",
    "in",
    "not",
    "größe",
    "学习率",
    "p-1",
    "a b",
    "min",
    "-@1:F:x",
    "true",
    "x'y",
    "b`c",
    "and",
    "_",
    "e1",
    "p.q:r",
];

fn any_rule(of: &[OpenParameter], rng: &mut Pcg64Mcg, depth: u32) -> Rule {
    let place = rng.random_range(0..of.len());
    if depth > 0 && rng.random_bool(0.5) {
        let some = |rng: &mut Pcg64Mcg| {
            (0..rng.random_range(2..4))
                .map(|_| any_rule(of, rng, depth - 1))
                .collect()
        };
        return match rng.random_range(0..7) {
            0 => Rule::Active(place),
            1 | 2 => Rule::all(some(rng)),
            3 | 4 => Rule::any(some(rng)),
            _ => any_rule(of, rng, depth - 1).negated(),
        };
    }
    match &of[place].domain {
        Domain::Choice(categories) | Domain::Ordered(categories) => {
            let count = categories.values().len() as u32;
            let mut codes: Vec<u32> = (0..count).filter(|_| rng.random_bool(0.5)).collect();
            if codes.is_empty() {
                codes.push(0);
            }
            Rule::Among {
                parameter: place,
                codes,
                is_negated: rng.random_bool(0.3),
            }
        }
        domain => {
            let limit = domain.number(domain.draw(rng)).unwrap();
            let parameter = Term::Parameter(place);
            let term = match rng.random_range(0..6) {
                0 => Term::Arithmetic(
                    Operator::Multiply,
                    Box::new(Term::Number(2.5)),
                    Box::new(parameter),
                ),
                1 => Term::Negative(Box::new(parameter)),
                2 => Term::Call(Function::MAX, vec![parameter, Term::Number(-0.25)]),
                3 => Term::Arithmetic(
                    Operator::Power,
                    Box::new(Term::Negative(Box::new(parameter))),
                    Box::new(Term::Number(if rng.random_bool(0.5) { 2.0 } else { -0.5 })),
                ),
                _ => parameter,
            };
            let comparison = [Relation::Less, Relation::AtLeast, Relation::NotEqual];
            Rule::Compare(
                comparison[rng.random_range(0..3)],
                term,
                Term::Number(limit),
            )
        }
    }
}

/// A space of up to a dozen parameters, with conditions on earlier ones and some forbidden combinations.
pub(in crate::space) fn any_space() -> impl Strategy<Value = OpenSpace> {
    (any::<u64>(), 1..12_usize).prop_map(|(seed, count)| {
        let mut rng = Pcg64Mcg::seed_from_u64(seed);
        let mut parameters: Vec<OpenParameter> = vec![];
        for (place, name) in NAMES[..count].iter().enumerate() {
            let spacing = if rng.random_bool(0.5) {
                Spacing::Log
            } else {
                Spacing::Linear
            };
            let low = rng.random_range(1..1000);
            let domain = match rng.random_range(0..5) {
                0 => Domain::real(f64::from(low) / 8.0, f64::from(low), spacing).unwrap(),
                1 => Domain::real(-2.5, 1e-3, Spacing::Linear).unwrap(),
                2 => Domain::integer(i64::from(low), LARGEST, spacing).unwrap(),
                3 => Domain::ordered((0..low.min(9)).map(|k| Value::Integer(k.into())).collect())
                    .unwrap(),
                _ => {
                    words(&["vsids", "in", "x y", "1.00", "'", "größe"][..rng.random_range(1..=6)])
                }
            };
            let mut parameter = OpenParameter::new(*name, domain);
            if rng.random_bool(0.5) {
                parameter.default = Some(parameter.domain.decode(parameter.domain.draw(&mut rng)));
            }
            if place > 0 && rng.random_bool(0.5) {
                parameter.when = Some(any_rule(&parameters, &mut rng, 2));
            }
            parameters.push(parameter);
        }
        let forbid = (0..rng.random_range(0..3))
            .map(|_| {
                let parts = (0..3).map(|_| any_rule(&parameters, &mut rng, 1)).collect();
                Rule::all(parts)
            })
            .collect();
        OpenSpace::new(parameters.clone(), forbid)
            .unwrap_or_else(|_| OpenSpace::new(parameters, vec![]).unwrap())
    })
}

proptest! {
    #[test]
    fn whatever_is_drawn_sampled_changed_or_crossed_is_allowed(space in any_space(), seed: u64) {
        let mut rng = Pcg64Mcg::seed_from_u64(seed);
        prop_assert!(space.contains(space.default_point()));
        let mut known = vec![space.default_point().clone()];
        for _ in 0..10 {
            if let Ok(point) = space.draw(&mut rng) {
                prop_assert!(space.contains(&point));
                known.push(point);
            }
        }
        for point in space.sample(&[], 20, seed).unwrap_or_default() {
            prop_assert!(space.contains(&point));
        }
        for point in &known {
            for newly in [NewlyActive::Default, NewlyActive::Drawn] {
                for changes in [1, 2, 5] {
                    if let Some(next) = space.neighbour(point, changes, newly, &mut rng) {
                        prop_assert!(space.contains(&next));
                        prop_assert!(&next != point);
                    }
                }
            }
            if let Some(child) = space.crossover(point, &known[0], &mut rng) {
                prop_assert!(space.contains(&child));
            }
        }
    }

    #[test]
    fn a_configuration_has_one_canonical_form(space in any_space(), seed: u64) {
        let mut rng = Pcg64Mcg::seed_from_u64(seed);
        let point = space.draw(&mut rng).unwrap_or_else(|_| space.default_point().clone());
        let configuration = space.configuration(&point);
        prop_assert_eq!(space.point(configuration.iter()), Ok(point.clone()));
        // Values for inactive parameters change nothing.
        let full: Vec<(String, Value)> = space
            .parameters()
            .iter()
            .map(|known| {
                let drawn = known.domain.decode(known.domain.draw(&mut rng));
                let value = configuration.get(&known.name).cloned().unwrap_or(drawn);
                (known.name.to_string(), value)
            })
            .collect();
        let full = full.iter().map(|(name, value)| (name.as_str(), value));
        prop_assert_eq!(space.point(full), Ok(point));
    }

    #[test]
    fn rules_read_back_as_they_are_printed(space in any_space()) {
        let whens = space.parameters().iter().filter_map(|known| known.when.as_ref());
        for rule in whens.chain(space.forbid()) {
            let text = space.rule_text(rule);
            prop_assert_eq!(&parse_rule(&text, space.parameters()), &Ok(rule.clone()), "{}", text);
        }
    }

    #[test]
    fn no_expression_makes_the_reader_panic(text in "[a-e<>=!()\\[\\], '`\"&|+*/%.0-9 innotrdé-]{0,40}") {
        let space = space(&[("a", integers(0, 9), ""), ("b", words(&["c", "d"]), "")], &[]).unwrap();
        if let Err(misread) = parse_rule(&text, space.parameters()) {
            prop_assert!(text.get(misread.at.clone()).is_some(), "{:?}", misread);
            prop_assert!(!misread.error.to_string().is_empty());
        }
    }

    #[test]
    fn features_say_what_is_missing(space in any_space(), seed: u64) {
        let mut rng = Pcg64Mcg::seed_from_u64(seed);
        let Ok(point) = space.draw(&mut rng) else { return Ok(()) };
        for (place, (known, feature)) in space.parameters().iter().zip(space.features(&point)).enumerate() {
            match (&known.domain, feature) {
                (_, Feature::Missing) => prop_assert!(!point.is_active(place)),
                (Domain::Real { .. } | Domain::Integer { .. }, Feature::Number(unit)) => prop_assert!((0.0..=1.0).contains(&unit)),
                (Domain::Choice(categories), Feature::Category(code)) => prop_assert!((code as usize) < categories.values().len()),
                (Domain::Ordered(_), Feature::Rank(_)) => {}
                (domain, feature) => prop_assert!(false, "{domain:?} and {feature:?}"),
            }
        }
    }

    #[test]
    fn the_same_ranking_brings_the_same_proposals(space in any_space(), seed: u64) {
        let play = || {
            let mut opened = Opened::new(Arc::new(space.clone()), []);
            let mut made = vec![];
            for _ in 0..40 {
                let ranked: Vec<ArmId> = (0..opened.len().min(12)).rev().map(ArmId::from_index).collect();
                let proposal = opened.propose(seed, &ranked);
                assert!(opened.space().contains(&proposal.point));
                made.push(proposal.clone());
                opened.open(proposal.point, proposal.origin);
            }
            made
        };
        prop_assert_eq!(play(), play());
    }
}

#[test]
fn conditions_may_be_deep_and_meet_again() {
    let flag = || Domain::choice(vec![Value::Flag(true), Value::Flag(false)]).unwrap();
    let diamond = space(
        &[
            ("top", flag(), ""),
            ("left", flag(), "top"),
            ("right", flag(), "top"),
            ("bottom", integers(1, 9), "left and not right"),
        ],
        &[],
    )
    .unwrap();
    let mut rng = Pcg64Mcg::seed_from_u64(1);
    let mut seen = [0; 2];
    for _ in 0..1000 {
        let configuration = diamond.configuration(&diamond.draw(&mut rng).unwrap());
        let is = |name: &str| configuration.get(name) == Some(&Value::Flag(true));
        let has_bottom = configuration.get("bottom").is_some();
        assert_eq!(
            has_bottom,
            is("left") && configuration.get("right") == Some(&Value::Flag(false))
        );
        seen[usize::from(has_bottom)] += 1;
    }
    assert!(seen[0] > 500 && seen[1] > 50, "{seen:?}");

    // A chain as long as the space, children listed before their parents.
    let count = 1000;
    let mut chain: Vec<OpenParameter> = (0..count)
        .map(|place| OpenParameter::new(format!("p{place}"), integers(1, 2)))
        .collect();
    for (place, parameter) in chain.iter_mut().enumerate().take(count - 1) {
        let parent = Rule::Compare(
            Relation::AtLeast,
            Term::Parameter(place + 1),
            Term::Number(1.0),
        );
        parameter.when = Some(parent);
    }
    let deep = OpenSpace::new(chain.clone(), vec![]).unwrap();
    assert_eq!(
        deep.configuration(&deep.draw(&mut rng).unwrap()).len(),
        count
    );
    chain[count - 1].when = Some(Rule::Compare(
        Relation::More,
        Term::Parameter(0),
        Term::Number(1.0),
    ));
    let flaws = OpenSpace::new(chain, vec![]).unwrap_err();
    assert!(
        matches!(flaws[0].error, OpenError::Cycle { .. }),
        "{flaws:?}"
    );
}

#[test]
fn a_space_with_one_point_is_a_space() {
    let only = space(&[("a", integers(3, 3), ""), ("b", words(&["x"]), "")], &[]).unwrap();
    let mut rng = Pcg64Mcg::seed_from_u64(1);
    assert_eq!(
        only.configuration(&only.draw(&mut rng).unwrap())
            .to_string(),
        "a=3 b=x"
    );
    assert_eq!(only.sample(&[], 500, 1).unwrap().len(), 1);
    assert_eq!(
        only.neighbour(only.default_point(), 1, NewlyActive::Drawn, &mut rng),
        None
    );
    assert_eq!(only.all(1), Some(vec![only.default_point().clone()]));
    let opened = Opened::new(only.clone().into(), []);
    assert_eq!(opened.propose(1, &[]).point, *only.default_point());
}

#[test]
fn contradictions_name_the_constraint_that_forbids_most() {
    let parameters = [("a", integers(0, 99), ""), ("b", integers(0, 99), "")];
    let flaws = space(&parameters, &["a == 50 and b == 50", "a + b >= 0"]).unwrap_err();
    assert_eq!(flaws[0].part, Part::Forbid(1));
    let text = flaws[0].error.to_string();
    assert!(text.contains("`a + b >= 0` forbids most"), "{text}");

    // Also if another one is asked first and forbids much.
    let flaws = space(&parameters, &["a < 60", "a + b >= 0"]).unwrap_err();
    assert_eq!(flaws[0].part, Part::Forbid(1));

    let mut with_default = OpenParameter::new("a", integers(0, 99));
    with_default.default = Some(Value::Integer(7));
    let rule = parse_rule("a == 7", std::slice::from_ref(&with_default)).unwrap();
    let flaws = OpenSpace::new(vec![with_default], vec![rule]).unwrap_err();
    assert_eq!(
        flaws[0].error.to_string(),
        "the default configuration is forbidden by `a == 7`"
    );

    // A default that the file does not give is moved.
    let moved = space(&parameters, &["a > 10"]).unwrap();
    assert!(moved.contains(moved.default_point()));
}

#[test]
fn rare_configurations_are_found_or_refused_clearly() {
    let parameters = [("a", integers(0, 999), ""), ("b", integers(0, 999), "")];
    let rare = space(&parameters, &["a != b"]).unwrap();
    let mut rng = Pcg64Mcg::seed_from_u64(1);
    assert!(rare.contains(&rare.draw(&mut rng).unwrap()));
    let mut rarest = OpenParameter::new("a", integers(0, LARGEST));
    rarest.default = Some(Value::Integer(5));
    let rule = parse_rule("a != 5", std::slice::from_ref(&rarest)).unwrap();
    let rarest = OpenSpace::new(vec![rarest], vec![rule]).unwrap();
    let error = rarest.draw(&mut rng).unwrap_err();
    insta::assert_snapshot!(error, @"none of 10000 drawn configurations is allowed; `a != 5` forbids most (10000 of them)");
}

#[test]
fn huge_integers_and_many_values_keep_their_digits() {
    let values = (0..10_000)
        .map(|k| Value::Text(format!("value {k}").into()))
        .collect();
    let large = space(
        &[
            ("n", Domain::integer(1, LARGEST, Spacing::Log).unwrap(), ""),
            ("c", Domain::choice(values).unwrap(), "n >= 1"),
        ],
        &["n == 9007199254740991"],
    )
    .unwrap();
    let top = Value::Integer(LARGEST);
    let word = Value::Text("value 9999".into());
    let point = large.point([("n", &top), ("c", &word)]).unwrap();
    assert_eq!(
        large.configuration(&point).to_string(),
        "n=9007199254740992 c=value 9999"
    );
    let below = Value::Integer(LARGEST - 1);
    assert!(matches!(
        large.point([("n", &below)]),
        Err(PointError::Forbidden { .. })
    ));
    assert!(large.point([("n", &Value::Integer(LARGEST + 1))]).is_err());
}

#[test]
fn inactive_parameters_neither_hold_nor_fail() {
    let parts = [
        ("kind", words(&["a", "b"]), ""),
        ("size", integers(1, 9), "kind == a"),
        ("more", integers(1, 9), "size > 3 or kind == b"),
        ("less", integers(1, 9), "not (size > 3)"),
    ];
    let space = space(&parts, &["size != 5 and kind == b"]).unwrap();
    let b = Value::Text("b".into());
    let point = space.point([("kind", &b)]).unwrap();
    assert_eq!(space.configuration(&point).to_string(), "kind=b more=5");
}

#[test]
fn mistakes_in_expressions_say_where_and_what() {
    let parts = [
        ("heuristic", words(&["vsids", "vmtf"]), ""),
        ("restarts", integers(1, 100), ""),
        (
            "effort",
            Domain::ordered(vec![Value::Text("low".into()), Value::Text("high".into())]).unwrap(),
            "",
        ),
    ];
    let space = space(&parts, &[]).unwrap();
    let mistakes: Vec<String> = [
        "heuristic == vsid",
        "restart < 10",
        "restarts < 10 and",
        "restarts = 3",
        "restarts < 3 && heuristic == vmtf",
        "heuristic < vmtf",
        "heuristic * 2 > 1",
        "effort > mid",
        "restarts",
        "(restarts > 1",
        "restarts in [1, two]",
        "heuristic in []",
        "restarts > 3x",
        "heuristic == 'vmtf",
        "restarts > 1 2",
        "restarts ~ 2",
    ]
    .into_iter()
    .map(|text| {
        let misread = parse_rule(text, space.parameters()).unwrap_err();
        let hint = misread
            .error
            .hint()
            .map_or(String::new(), |hint| format!(" ({hint})"));
        format!("{text} @{}: {}{hint}", misread.at.start, misread.error)
    })
    .collect();
    insta::assert_snapshot!(mistakes.join("\n"));
    let deep = format!("{}restarts > 1{}", "(".repeat(500), ")".repeat(500));
    assert_eq!(
        parse_rule(&deep, space.parameters()).unwrap_err().error,
        ExpressionError::TooDeep
    );
}

#[test]
fn orders_words_and_arithmetic_mean_what_they_say() {
    let parts = [
        (
            "effort",
            Domain::ordered(
                ["low", "medium", "high"]
                    .map(|word| Value::Text(word.into()))
                    .into(),
            )
            .unwrap(),
            "",
        ),
        ("k", integers(-9, 9), ""),
        (
            "level",
            Domain::choice([1, 2, 4].map(Value::Integer).into()).unwrap(),
            "",
        ),
        (
            "moms",
            Domain::choice(vec![Value::Flag(true), Value::Flag(false)]).unwrap(),
            "",
        ),
    ];
    let space = space(&parts, &[]).unwrap();
    let value = |text: &str| Value::read(text);
    let holds = |rule: &str, effort: &str, k: i64, level: i64, moms: bool| {
        let (effort, k) = (value(effort), Value::Integer(k));
        let (level, moms) = (Value::Integer(level), Value::Flag(moms));
        let point = space
            .point([
                ("effort", &effort),
                ("k", &k),
                ("level", &level),
                ("moms", &moms),
            ])
            .unwrap();
        let rule = parse_rule(rule, space.parameters()).unwrap();
        rule.holds(&point.0, space.parameters()).unwrap()
    };
    assert!(holds(
        "effort > low and effort <= medium",
        "medium",
        0,
        1,
        false
    ));
    assert!(!holds("low < effort", "low", 0, 1, false));
    assert!(holds("k % 4 == 3", "low", -9, 1, false) && holds("-k > 8", "low", -9, 1, false));
    assert!(
        holds("level * 2 - k == 8", "low", 0, 4, false) && holds("level < 3", "low", 0, 2, true)
    );
    assert!(holds("moms", "low", 0, 1, true) && !holds("moms == true", "low", 0, 1, false));
    assert!(holds(
        "effort not in [low, high] or k in [-3, 3]",
        "low",
        -3,
        1,
        false
    ));
    assert!(holds(
        "max(k, 2 * level, 3) == round(7.9)",
        "low",
        1,
        4,
        false
    ));
}

#[test]
fn drawn_values_are_uniform_on_their_scale() {
    let space = space(
        &[
            (
                "log",
                Domain::integer(1, 1_000_000, Spacing::Log).unwrap(),
                "",
            ),
            ("real", Domain::real(0.0, 1.0, Spacing::Linear).unwrap(), ""),
        ],
        &["real < 0.5 and log < 1000"],
    )
    .unwrap();
    let mut rng = Pcg64Mcg::seed_from_u64(5);
    let (mut small, count) = (0, 4000);
    for _ in 0..count {
        let point = space.draw(&mut rng).unwrap();
        let value = |place| {
            space
                .value(&point, place)
                .and_then(|value| value.number())
                .unwrap()
        };
        small += u32::from(value(0) < 1000.0);
        assert!(value(0) >= 1000.0 || value(1) >= 0.5);
    }
    // A third of what is allowed: half of the lower half.
    assert!(
        (f64::from(small) / f64::from(count) - 1.0 / 3.0).abs() < 0.04,
        "{small}"
    );
}

#[test]
fn the_proposer_keeps_its_shares() {
    let parts: Vec<(String, Domain)> = (0..20)
        .map(|k| (format!("p{k}"), integers(0, 1000)))
        .collect();
    let parts: Vec<(&str, Domain, &str)> = parts
        .iter()
        .map(|(name, domain)| (name.as_str(), domain.clone(), ""))
        .collect();
    let mut opened = Opened::new(space(&parts, &[]).unwrap().into(), []);
    let (mut drawn, mut changed, mut crossed) = (0, 0, 0);
    while opened.len() < 1200 {
        let ranked: Vec<ArmId> = (0..opened.len()).map(ArmId::from_index).collect();
        let proposal = opened.propose(9, &ranked);
        if opened.drawn() >= 50 {
            match &proposal.origin {
                Origin::Proposed {
                    from,
                    changed: some,
                } => {
                    assert!(from.iter().all(|arm| arm.index() < 10));
                    crossed += 1;
                    changed += u32::from(!some.is_empty());
                }
                _ => drawn += 1,
            }
        } else {
            assert_eq!(proposal.origin, Origin::Sampled);
        }
        opened.open(proposal.point, proposal.origin);
    }
    assert!((240..340).contains(&drawn), "{drawn} drawn");
    assert!(
        (changed * 2).abs_diff(crossed) < 100,
        "{changed} of {crossed} changed"
    );
    assert!(confident_share(299) <= 0.01003 && confident_share(1) == 1.0);
}
