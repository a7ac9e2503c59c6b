use std::fs;
use std::path::Path;

use super::*;
use crate::round::Seen;

/// Two arms on three instances; `slow` is unsolved once, `sure` fails once.
const MATRIX: &str = "instance, sure, slow\neasy, 1, 4\nhard, 2.5, 3000\nodd, failed, 8";

fn recorded(matrix: &str, change: impl Fn(&mut Spec, &Path)) -> Result<Recorded, TargetError> {
    let folder = tempfile::tempdir().unwrap();
    let consumption = folder.path().join("runs.csv");
    fs::write(&consumption, matrix).unwrap();
    let mut spec = Spec {
        consumption,
        reward: None,
        cutoff: Some(10.0),
        unsolved: Some(3000.0),
    };
    change(&mut spec, folder.path());
    Recorded::open(&spec)
}

fn aslib(data: &str, description: Option<&str>) -> Result<Recorded, TargetError> {
    let head = "% runs\n@RELATION 'some runs'\n\n@attribute instance_id STRING\n@ATTRIBUTE repetition NUMERIC\n\
        @ATTRIBUTE 'algorithm' STRING\n@ATTRIBUTE runtime NUMERIC\n\
        @ATTRIBUTE runstatus {ok, timeout, memout, not_applicable, crash, other}\n\n@DATA\n";
    let folder = tempfile::tempdir().unwrap();
    let consumption = folder.path().join("algorithm_runs.arff");
    fs::write(&consumption, format!("{head}{data}")).unwrap();
    if let Some(text) = description {
        fs::write(folder.path().join("description.txt"), text).unwrap();
    }
    Recorded::open(&Spec {
        consumption,
        reward: None,
        cutoff: description.is_none().then_some(600.0),
        unsolved: None,
    })
}

fn arm(number: u32) -> ArmId {
    ArmId::from_number(number).unwrap()
}

fn limit(value: f64) -> Limit {
    Limit::new(value).unwrap()
}

fn seen(target: &Recorded, number: u32, tau: f64, instance: u32) -> Seen {
    let pull = Pull {
        instance: Some(instance),
        ..Pull::new(arm(number), limit(tau))
    };
    target.run(1, Round(1), pull).observation.seen()
}

#[test]
fn a_pull_brings_what_was_recorded_up_to_its_limit() {
    let target = recorded(MATRIX, |_, _| {}).unwrap();
    assert_eq!(target.arm_names(), ["sure", "slow"]);
    assert_eq!(target.instance_names(), ["easy", "hard", "odd"]);
    let rewarded = |consumption| Seen::Rewarded {
        reward: 1.0,
        consumption,
    };
    assert_eq!(seen(&target, 1, 2.5, 1), rewarded(2.5));
    assert_eq!(seen(&target, 1, 2.0, 1), Seen::Censored { at: limit(2.0) });
    assert_eq!(seen(&target, 1, 10.0, 2), Seen::Failed);
    assert_eq!(
        seen(&target, 2, 10.0, 1),
        Seen::Censored { at: limit(10.0) }
    );
    assert_eq!(seen(&target, 2, 10.0, 2), rewarded(8.0));
    assert_eq!(
        seen(&target, 2, 10.0, 5),
        rewarded(8.0),
        "instances are counted round"
    );
}

#[test]
fn gains_are_averages_over_the_matrix() {
    let target = recorded(MATRIX, |_, _| {}).unwrap();
    let price = Price::new("x", "10 * x", 10.0).unwrap();
    let close = |value: f64, expected: f64| assert!((value - expected).abs() < 1e-12, "{value}");
    close(
        target.gain(arm(1), limit(5.0), &price),
        (0.9 + 0.75 - 5.0) / 3.0,
    );
    close(
        target.gain(arm(2), limit(5.0), &price),
        (0.6 - 5.0 - 5.0) / 3.0,
    );
    close(
        target.gain(arm(2), limit(10.0), &price),
        (0.6 - 10.0 + 0.2) / 3.0,
    );
    close(target.censored(arm(1), limit(2.0)), 2.0 / 3.0);
    close(target.censored(arm(2), limit(10.0)), 1.0 / 3.0);
}

#[test]
fn instances_can_be_kept_back() {
    let target = recorded(MATRIX, |_, _| {}).unwrap();
    let rest = target.with_instances_where(|name| name != "hard").unwrap();
    assert_eq!(rest.instance_names(), ["easy", "odd"]);
    assert_eq!(rest.censored(arm(1), limit(10.0)), 0.5);
    assert_eq!(rest.censored(arm(2), limit(10.0)), 0.0);
    assert!(target.with_instances_where(|_| false).is_none());
}

#[test]
fn each_round_draws_an_instance_and_the_average_is_the_gain() {
    let target = recorded(MATRIX, |_, _| {}).unwrap();
    let price = Price::new("x", "10 * x", 10.0).unwrap();
    let pull = Pull::new(arm(2), limit(10.0));
    let rounds = 60_000;
    let mut drawn = [0; 3];
    let mut sum = 0.0;
    for round in (1..=rounds).map(Round) {
        let ran = target.run(3, round, pull);
        let instance = ran.observation.pull().instance.unwrap();
        assert_eq!(
            target.with_instance(3, round, pull).instance,
            Some(instance)
        );
        drawn[instance as usize] += 1;
        sum += ran.observation.gain(&price);
    }
    for count in drawn {
        assert!((19_400..20_600).contains(&count), "{drawn:?}");
    }
    let (mean, gain) = (
        sum / rounds as f64,
        target.gain(pull.arm, pull.limit, &price),
    );
    assert!((mean - gain).abs() < 0.1, "{mean} is not {gain}");
}

#[test]
fn matrices_come_without_header_with_blanks_and_without_a_last_newline() {
    let target = recorded(
        "/a/b.tsp@27, 0.3, 3000, 0.1\n/a/c.tsp@9,  5,1e9, inf",
        |_, _| {},
    )
    .unwrap();
    assert_eq!(target.arm_names(), ["1", "2", "3"]);
    assert_eq!(target.instance_names(), ["/a/b.tsp@27", "/a/c.tsp@9"]);
    assert_eq!(target.censored(arm(2), limit(10.0)), 1.0);
    assert_eq!(target.censored(arm(3), limit(10.0)), 0.5);
    let numbered = recorded("instance,1,2\na,3,4\n", |_, _| {}).unwrap();
    assert_eq!(numbered.instances(), 1);
}

#[test]
fn rewards_are_taken_from_their_matrix_where_a_run_ended() {
    let with_rewards = |rewards: &str| {
        recorded(MATRIX, |spec, folder| {
            let path = folder.join("rewards.csv");
            fs::write(&path, rewards).unwrap();
            spec.reward = Some(path);
        })
    };
    let target = with_rewards("instance,sure,slow\neasy,0.5,0.25\nhard,1,\nodd,,0\n").unwrap();
    let free = Price::new("none", "none", 1.0).unwrap();
    assert_eq!(target.gain(arm(1), limit(10.0), &free), 0.5);
    let error = with_rewards("instance,sure,slow\neasy,0.5,0.25\nhard,1.5,\nodd,,0\n").unwrap_err();
    assert!(
        matches!(
            error,
            TargetError::BadCell {
                line: 3,
                column: 2,
                ..
            }
        ),
        "{error}"
    );
    let error = with_rewards("instance,sure,slow\nhard,1,1\neasy,1,1\nodd,1,1\n").unwrap_err();
    assert!(
        matches!(error, TargetError::RewardRow { line: 2, .. }),
        "{error}"
    );
    let error = with_rewards("instance,sure,slow\neasy,1,1\n").unwrap_err();
    assert!(matches!(error, TargetError::RewardShape { .. }), "{error}");
}

#[test]
fn mistakes_in_a_matrix_have_a_place_and_a_hint() {
    let refused = |matrix: &str| recorded(matrix, |_, _| {}).unwrap_err();
    for (matrix, at) in [
        ("i,a,b\nx,1,2\ny,3,fast\n", "3: column 3 is `fast`"),
        ("i,a,b\nx,1,-2\n", "2: column 3 is `-2`"),
        ("i,a,b\nx,,2\n", "2: column 2 is ``"),
        ("i,a,b\nx,nan,2\n", "2: column 2 is `nan`"),
        ("i,a,b\nx,1\n", "2: this row has 2 columns, not 3"),
        ("i,a,b\n", "holds no runs"),
        ("", "holds no runs"),
        ("x\ny\n", "holds no runs"),
    ] {
        let error = refused(matrix);
        assert!(error.to_string().contains(at), "{error}");
        assert!(error.hint().is_some(), "{error}");
    }
    let absent = recorded(MATRIX, |spec, folder| {
        spec.consumption = folder.join("none.csv");
    });
    assert!(matches!(absent, Err(TargetError::Unreadable { .. })));
    let endless = recorded(MATRIX, |spec, _| spec.cutoff = None);
    assert!(matches!(endless, Err(TargetError::NoCutoff { .. })));
    let nonsense = recorded(MATRIX, |spec, _| spec.cutoff = Some(f64::NAN));
    assert!(matches!(nonsense, Err(TargetError::BadCutoff { .. })));
}

#[test]
fn text_that_is_not_utf8_is_refused() {
    let error = recorded("", |spec, _| {
        fs::write(&spec.consumption, b"i,a\nx,\xff\n").unwrap();
    });
    assert!(
        matches!(error, Err(TargetError::BadLine { line: 2, .. })),
        "{error:?}"
    );
}

#[test]
fn limits_beyond_the_cutoff_are_refused() {
    let target = recorded(MATRIX, |_, _| {}).unwrap();
    assert!(
        target
            .check_limits(&LimitGrid::new([1.0, 10.0]).unwrap())
            .is_ok()
    );
    let error = target
        .check_limits(&LimitGrid::new([10.5]).unwrap())
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "the largest limit 10.5 is beyond the cutoff 10 of the recorded runs"
    );
}

#[test]
fn aslib_statuses_repetitions_and_quotes_are_understood() {
    let data = "'an, instance',1,fast,3.5,ok\n'an, instance',2,fast,600,memout\n\"an, instance\",1,\"slow\",600.02,timeout\n\
        \n% a remark\nb,1,fast,?,crash\nb,1,slow,601,ok\nc,1,fast,2,not_applicable\nc,1,slow,599.5,OK\n";
    let target = aslib(data, None).unwrap();
    assert_eq!(target.arm_names(), ["fast", "slow"]);
    assert_eq!(target.instance_names(), ["an, instance", "b", "c"]);
    // One of two repetitions on the first instance, none on the others.
    let close = |value: f64, expected: f64| assert!((value - expected).abs() < 1e-12, "{value}");
    close(target.censored(arm(1), limit(600.0)), 2.5 / 3.0);
    close(target.censored(arm(2), limit(600.0)), 2.0 / 3.0);
    assert_eq!(seen(&target, 1, 600.0, 1), Seen::Failed);
    assert_eq!(seen(&target, 1, 600.0, 2), Seen::Failed);
    assert_eq!(
        seen(&target, 2, 600.0, 0),
        Seen::Censored { at: limit(600.0) }
    );
    assert_eq!(
        seen(&target, 2, 600.0, 1),
        Seen::Censored { at: limit(600.0) }
    );
    let pull = Pull {
        instance: Some(0),
        ..Pull::new(arm(1), limit(600.0))
    };
    let failures = (1..=2000)
        .filter(|round| target.run(5, Round(*round), pull).observation.seen() == Seen::Failed)
        .count();
    assert!((880..1120).contains(&failures), "{failures} of 2000");
}

#[test]
fn the_cutoff_of_an_aslib_file_stands_in_its_description() {
    let target = aslib(
        "a,1,x,3,ok\n",
        Some("algorithm_cutoff_memory: '?'\nalgorithm_cutoff_time: 3600\n"),
    );
    assert_eq!(target.unwrap().cutoff(), 3600.0);
    let error = aslib("a,1,x,3,ok\n", Some("algorithm_cutoff_time: '?'\n")).unwrap_err();
    assert!(matches!(error, TargetError::NoCutoff { .. }));
}

#[test]
fn mistakes_in_an_aslib_file_have_a_place_and_a_hint() {
    for (data, at) in [
        ("a,1,x,3,fine\n", "arff:11: column 5 is `fine`"),
        ("a,1,x,?,ok\n", "arff:11: column 4 is `?`"),
        ("a,1,x,quick,ok\n", "arff:11: column 4 is `quick`"),
        ("a,1,x,3\n", "arff:11: this row has 4 columns, not 5"),
        (
            "a,1,x,3,ok\n'a,1,x,3,ok\n",
            "arff:12: a quote is not closed",
        ),
        (
            "a,1,x,3,ok\na,1,x,4,ok\n",
            "arff:12: duplicate run of `x` on `a`",
        ),
        ("a,1,x,3,ok\nb,1,y,4,ok\n", "has no run of `y` on `a`"),
        ("", "holds no runs"),
    ] {
        let error = aslib(data, None).unwrap_err();
        assert!(error.to_string().contains(at), "{error}");
        assert!(error.hint().is_some(), "{error}");
    }
}
