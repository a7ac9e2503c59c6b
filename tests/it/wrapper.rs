//! Wrappers of other tools as targets: how they are called, and what their result lines mean.

use serde_json::Value;

use crate::test_run::{TestRun, expect};

/// The last argument is the status to report.
const OLD: &str = "#!/bin/sh
echo \"$@\" > called
mode=
for word in \"$@\"; do mode=$word; done
echo 'c some log'
case $mode in
    silent) exit 0;;
    memory) echo 'Result for SMAC: TIMEOUT, 1, 0, 0, 1, memory limit was exceeded';;
    nonsense) echo 'Result for ParamILS: SAT, soon, 0, 0, 1';;
    late) echo \"Result for SMAC: SAT, 999, 0, 3.5, $5\";;
    CRASHED) echo 'it broke' >&2; echo \"Result for SMAC: CRASHED, 0.1, 0, 0, $5, no such file\"; exit 1;;
    *) echo 'Result for SMAC: TIMEOUT, 1, 0, 0, 1'; echo \"Result for SMAC: $mode, 0.01, 0, 3.5, $5\"; exit 7;;
esac
";

const NEW: &str = "#!/bin/sh
echo \"$@\" > called
for word in \"$@\"; do mode=$word; done
echo \"Result for ParamILS: CRASHED, 0, 0, 0, 1\"
echo \"Result of this algorithm run: {\\\"status\\\": \\\"$mode\\\", \\\"cost\\\": \\\"7.5\\\", \\\"runtime\\\": 0.2, \\\"misc\\\": \\\"\\\"}\"
";

fn scenario(target: &str) -> String {
    format!(
        "target:\n  wrapper: [sh, wrapper.sh, 'own {{x}}']\n{target}\
         arms:\n  space:\n    alpha: {{real: [0, 2], default: 1.3}}\n    level: {{integer: [1, 9], default: 2, when: alpha > 1, argument: '--l={{value}}'}}\n\
         \x20   mode: {{choice: [SAT, UNSAT, SUCCESS, TIMEOUT, CRASHED, ABORT, MEMOUT, silent, nonsense, late, memory]}}\n  sample: 3\n\
         limits: {{of: wall, grid: [10s, 60s]}}\nbudget: {{rounds: 1}}\n"
    )
}

fn pull(run: &TestRun, args: &[&str]) -> Value {
    let (stdout, _) = expect(&run.captime(&[&["pull", "s.yaml"], args].concat()), 0);
    serde_json::from_str(&stdout).unwrap()
}

fn called(run: &TestRun) -> String {
    std::fs::read_to_string(run.path().join("called")).unwrap()
}

#[test]
fn an_old_wrapper_is_called_as_paramils_calls_it() {
    let run = TestRun::new(&scenario("  instances: list.txt\n"));
    run.write("wrapper.sh", OLD);
    run.write("list.txt", "# training\na.cnf\nb.cnf  best 17\n");
    let solved = pull(
        &run,
        &[
            "alpha=1.5",
            "--instance",
            "1",
            "--seed",
            "12345",
            "--limit",
            "20s",
        ],
    );
    assert_eq!(
        called(&run),
        "own {x} a.cnf 0 20 2147483647 12345 -alpha 1.5 -level 2 -mode SAT\n"
    );
    assert_eq!(
        (solved["outcome"].as_str(), solved["reward"].as_f64()),
        (Some("rewarded"), Some(1.0))
    );
    assert!(solved["consumption"].as_f64().unwrap() > 0.0);
    pull(&run, &["alpha=0.5", "--instance", "2", "--seed", "7"]);
    assert_eq!(
        called(&run),
        "own {x} b.cnf best 17 60 2147483647 7 -alpha 0.5 -mode SAT\n"
    );
    for (mode, outcome, why) in [
        ("UNSAT", "rewarded", ""),
        ("SUCCESS", "rewarded", ""),
        ("TIMEOUT", "censored", ""),
        ("late", "censored", ""),
        (
            "CRASHED",
            "failed",
            "the wrapper reports a crash: no such file",
        ),
        (
            "ABORT",
            "failed",
            "the wrapper asks to stop this configuration",
        ),
        (
            "MEMOUT",
            "failed",
            "the wrapper reports that memory ran out",
        ),
        (
            "memory",
            "failed",
            "the wrapper reports that memory ran out: memory limit was exceeded",
        ),
        ("silent", "failed", "the wrapper printed no result line"),
        (
            "nonsense",
            "failed",
            "the wrapper reports a crash: a field of `SAT, soon, 0, 0, 1` is not a number",
        ),
    ] {
        let brought = pull(&run, &[&format!("mode={mode}")]);
        assert_eq!(brought["outcome"], outcome, "{mode}: {brought}");
        assert_eq!(brought["failure"].as_str().unwrap_or_default(), why);
    }
}

#[test]
fn a_new_wrapper_is_called_as_aclib_calls_it_and_its_cost_is_a_reward() {
    let target = "  call: new\n  quality: {worst: 10, best: 0}\n  instances: [a.cnf]\n";
    let run = TestRun::new(&scenario(target));
    run.write("wrapper.sh", NEW);
    let brought = pull(&run, &["mode=SUCCESS", "alpha=0.25", "--seed", "3"]);
    assert_eq!(
        called(&run),
        "own {x} --instance a.cnf --cutoff 60 --seed 3 --config -alpha 0.25 -mode SUCCESS\n"
    );
    assert_eq!(
        (brought["score"].as_f64(), brought["reward"].as_f64()),
        (Some(7.5), Some(0.25))
    );
    let failed = pull(&run, &["mode=CRASHED"]);
    assert_eq!(failed["outcome"], "failed");
}

#[test]
fn a_wrapper_runs_like_any_target_and_mistakes_have_their_place() {
    let run = TestRun::new(&scenario(""));
    run.write("wrapper.sh", OLD);
    let (shown, _) = expect(&run.captime(&["check", "s.yaml"]), 0);
    assert!(
        shown.contains("sh wrapper.sh 'own {x}' 0 0 10 2147483647"),
        "{shown}"
    );
    assert!(
        shown.contains("1 if the wrapper's result line reports success"),
        "{shown}"
    );
    run.run(0, &["--quiet"]);
    let bad = TestRun::new(&scenario(
        "  call: newer\n  quality: {worst: 1}\n  param: x\n",
    ));
    let (_, stderr) = expect(&bad.captime(&["check", "s.yaml"]), 2);
    for part in ["`call`", "`best`", "`param`"] {
        assert!(stderr.contains(part), "{part}: {stderr}");
    }
}

#[test]
fn a_wrapper_with_a_wrong_answer_has_failed() {
    let listed = "  instances: list.txt\n  expect: {column: 2}\n";
    let run = TestRun::new(&scenario(listed));
    run.write("wrapper.sh", OLD);
    run.write("list.txt", "a.cnf SAT\nb.cnf UNSAT 17\nc.cnf -\n");
    let wrong = "wrong answer: SAT, but UNSAT is expected";
    for (mode, instance, failure) in [
        ("SAT", "1", ""),
        ("SAT", "2", wrong),
        ("SAT", "3", ""),
        ("UNSAT", "2", ""),
        ("SUCCESS", "2", ""),
    ] {
        let brought = pull(&run, &[&format!("mode={mode}"), "--instance", instance]);
        let said = brought["failure"].as_str().unwrap_or_default();
        assert_eq!(said, failure, "{mode} {instance}: {brought}");
    }
    // The answer is not passed on; what follows it is.
    assert!(
        called(&run).starts_with("own {x} b.cnf 17 60 "),
        "{}",
        called(&run)
    );
    let costs = "  call: new\n  quality: {worst: 10, best: 0}\n  instances: [a.cnf, b.cnf]\n  \
                 expect: {name: {a.cnf: 7.50, b.cnf: 7}}\n";
    let run = TestRun::new(&scenario(costs));
    run.write("wrapper.sh", NEW);
    let right = pull(&run, &["mode=SUCCESS", "--instance", "a.cnf"]);
    assert_eq!(right["outcome"], "rewarded", "{right}");
    let other = pull(&run, &["mode=SUCCESS", "--instance", "b.cnf"]);
    assert_eq!(other["failure"], "wrong answer: 7.5, but 7 is expected");
    let bad = TestRun::new(&scenario(
        "  instances: [a.cnf]\n  expect: {name: {a.cnf: 10}}\n",
    ));
    let (_, stderr) = expect(&bad.captime(&["check", "s.yaml"]), 2);
    assert!(
        stderr.contains("or `SAT` or `UNSAT` of a wrapper"),
        "{stderr}"
    );
}
