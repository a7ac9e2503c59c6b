//! Wrong answers, consumption in the program's own words, and limits on memory.

use crate::test_run::{TestRun, expect, story};

/// A solver that says of every instance that it is satisfiable.
const SOLVER: &str = "#!/bin/sh\nexit 10\n";

const SOLVING: &str = "
name: s
target:
  command: [./solve, '{a}', '{instance}']
  instances: list.txt
  test: tests.txt
  reward: {exit: [10, 20]}
  expect: EXPECT
arms: {grid: {a: [1, 2]}}
limits: {grid: [5s]}
budget: {rounds: 12}
policy: uniform
stop_on_first_failures: false
slots: 1
pin: never
";

fn solving(rule: &str, list: &str) -> TestRun {
    let test_run = TestRun::new(&SOLVING.replace("EXPECT", rule));
    test_run.write("list.txt", list);
    test_run.write("tests.txt", list);
    test_run.program("solve", SOLVER);
    test_run
}

/// Instances with the failure of each round, as `export` shows them.
fn failures(test_run: &TestRun) -> Vec<(String, String)> {
    let lines = expect(&test_run.captime(&["export", "s", "--format", "jsonl"]), 0);
    let row = |line: &str| {
        let row: serde_json::Value = serde_json::from_str(line).unwrap();
        let text = |key: &str| row[key].as_str().unwrap_or_default().to_owned();
        (text("instance"), text("failure"))
    };
    lines.0.lines().map(row).collect()
}

#[test]
fn a_contradicting_answer_is_a_failure_with_both_values() {
    let column = ("{column: 2}", "x-sat 10\ny 20\nz -\nw\n");
    let name = (
        "{name: {'*unsat*': 20, 'y': [20], '*sat': 10}}",
        "x-sat\ny\nz\nw\n",
    );
    for (rule, list) in [column, name] {
        let test_run = solving(rule, list);
        let (shown, _) = expect(&test_run.captime(&["check", "s.yaml", "--try", "2"]), 0);
        assert!(
            shown.contains("the answer of 4 of 8 instances is known"),
            "{shown}"
        );
        // The answer is not part of the instance.
        assert!(!shown.contains("x-sat 10"), "{shown}");
        let (summary, _) = test_run.run(0, &[]);
        let wrong = "wrong answer: exit code 10, but 20 is expected";
        assert!(summary.contains(wrong), "{summary}");
        let failures = failures(&test_run);
        assert_eq!(failures.len(), 12);
        for (instance, failed) in failures {
            assert_eq!(
                failed,
                if instance == "y" { wrong } else { "" },
                "{instance}"
            );
        }
        let (tested, _) = expect(&test_run.captime(&["test", "s", "--format", "json"]), 0);
        let tested: serde_json::Value = serde_json::from_str(&tested).unwrap();
        assert_eq!(tested["arms"][0]["values"]["solved"], 0.75, "{tested}");
        let pull = ["pull", "s.yaml", "a=1", "--limit", "5s", "--instance", "y"];
        let (pulled, _) = expect(&test_run.captime(&pull), 0);
        assert!(pulled.contains(wrong), "{pulled}");
        // Other instances, at the time of the test.
        test_run.write(
            "more.txt",
            if rule.contains("column") {
                "v 20\nu 10\n"
            } else {
                "v-unsat\nu-sat\n"
            },
        );
        let (tested, _) = expect(
            &test_run.captime(&["test", "s", "--on", "more.txt", "--format", "json"]),
            0,
        );
        let tested: serde_json::Value = serde_json::from_str(&tested).unwrap();
        assert_eq!(tested["arms"][0]["values"]["solved"], 0.5, "{tested}");
    }
}

#[test]
fn wrong_answers_are_noticed_on_other_nodes_and_in_scores() {
    let test_run = solving("{name: {y: 20}}", "x\ny\n");
    let agent = format!(
        "slots: {{launch: [[{}, agent]]}}",
        env!("CARGO_BIN_EXE_captime")
    );
    let scenario = std::fs::read_to_string(test_run.path().join("s.yaml")).unwrap();
    test_run.write("s.yaml", &scenario.replace("slots: 1", &agent));
    let (summary, _) = test_run.run(0, &[]);
    assert!(
        summary.contains("wrong answer: exit code 10, but 20 is expected"),
        "{summary}"
    );
    let scores = scenario
        .replace(
            "{exit: [10, 20]}",
            r"{stdout: 'best (\S+)', worst: 10, best: 0}",
        )
        .replace("{y: 20}", "{y: [3.5, 4]}")
        .replace("name: s", "name: scores");
    test_run.write("s.yaml", &scores);
    test_run.program("solve", "#!/bin/sh\necho best 3.50\n");
    let (summary, _) = test_run.run(0, &[]);
    assert!(!summary.contains("wrong answer"), "{summary}");
    test_run.write(
        "s.yaml",
        &scores
            .replace("[3.5, 4]", "4")
            .replace("name: scores", "name: worse"),
    );
    let (summary, _) = test_run.run(0, &[]);
    assert!(
        summary.contains("wrong answer: 3.50, but 4 is expected"),
        "{summary}"
    );
}

#[test]
fn mistakes_in_what_is_expected_name_the_place() {
    let test_run = solving("{column: 2}", "x\ny\n");
    for (rule, said) in [
        ("{column: 2}", "no instance has an answer in column 2"),
        ("{column: 1}", "`column` must be"),
        (
            "{name: {y: 30}}",
            "the answer `30` expected of `y` earns no reward",
        ),
        ("{name: {y: 20}, column: 2}", "both are given"),
        ("{names: {y: 20}}", "`expect` has no key `names`"),
        ("{}", "none is given"),
    ] {
        test_run.write("s.yaml", &SOLVING.replace("EXPECT", rule));
        let (_, errors) = expect(&test_run.captime(&["check", "s.yaml"]), 2);
        assert!(
            errors.contains(said) && errors.contains("expect"),
            "{errors}"
        );
    }
    test_run.write(
        "s.yaml",
        &SOLVING.replace("EXPECT", "{name: {'*': 10, y: 20}}"),
    );
    let (_, warned) = expect(&test_run.captime(&["check", "s.yaml"]), 0);
    assert!(
        warned.contains("no instance matches this pattern"),
        "{warned}"
    );
}

const COUNTING: &str = "
name: s
target:
  command: [./solve, '{a}', '{limit}']
  reward: {exit: [10]}
  consumption: SOURCE
arms: {grid: {a: [100, 300, 900]}}
limits: {LIMITS}
budget: {rounds: 30}
slots: 1
pin: never
";

fn counting(source: &str, limits: &str, program: &str) -> TestRun {
    let text = COUNTING
        .replace("SOURCE", source)
        .replace("{LIMITS}", &format!("{{{limits}}}"));
    let test_run = TestRun::new(&text);
    test_run.program("solve", program);
    test_run
}

/// It gives up at its limit, with the exit code of a run that solved nothing.
const CONFLICTS: &str = "#!/bin/sh\nif [ $1 -gt $2 ]; then echo conflicts: $2; exit 0; fi\necho conflicts: $1\nexit 10\n";

#[test]
fn counted_work_is_limited_by_the_program_and_repeats_exactly() {
    let source = r"{stdout: 'conflicts: (\S+)'}";
    let limits = "of: work, grid: [100, 200, 400], wall: 60s";
    let journals = [(); 2].map(|()| {
        let test_run = counting(source, limits, CONFLICTS);
        let (shown, _) = expect(&test_run.captime(&["check", "s.yaml", "--try", "3"]), 0);
        assert!(shown.contains("work, as the program reports it"), "{shown}");
        assert!(shown.contains("reported  100 of work"), "{shown}");
        let (summary, _) = test_run.run(0, &[]);
        assert!(summary.contains("arm 1"), "{summary}");
        let (best, _) = expect(&test_run.captime(&["best", "s"]), 0);
        assert!(
            best.contains("captime exec --wall 60s -- ./solve 100 "),
            "{best}"
        );
        let (pulls, outcomes) = story(&test_run.run_folder("s"));
        for (pull, outcome) in pulls.iter().zip(&outcomes) {
            let work: f64 = [100.0, 300.0, 900.0][pull.arm.index()];
            let limit = pull.limit.get();
            assert_eq!(outcome.consumption, Some(work.min(limit)));
            assert_eq!(outcome.reward, (work <= limit).then_some(1.0));
            assert_eq!(outcome.censored, (work > limit).then_some(limit));
        }
        assert!(outcomes.iter().any(|outcome| outcome.censored.is_some()));
        pulls
            .iter()
            .map(|pull| (pull.arm, pull.limit))
            .collect::<Vec<_>>()
    });
    assert_eq!(journals[0], journals[1]);
}

/// Solvers count in whole numbers and refuse others. The limits between are 215.4 and 464.2.
#[test]
fn a_program_that_counts_gets_whole_numbers_as_its_limits() {
    let source = r"{stdout: 'conflicts: (\S+)'}";
    let limits = "of: work, from: 100, to: 1000, points: 4, scale: log, wall: 60s";
    let test_run = counting(source, limits, CONFLICTS);
    test_run.run(0, &["--quiet"]);
    let (pulls, outcomes) = story(&test_run.run_folder("s"));
    assert!(pulls.iter().any(|pull| pull.limit.get().fract() > 0.0));
    for (pull, outcome) in pulls.iter().zip(&outcomes) {
        let work: f64 = [100.0, 300.0, 900.0][pull.arm.index()];
        let limit = pull.limit.get();
        assert_eq!(outcome.consumption, Some(work.min(limit.floor())));
        assert_eq!(outcome.reward, (work <= limit).then_some(1.0));
        assert_eq!(outcome.censored.is_some(), work > limit);
    }
}

#[test]
fn reported_seconds_count_instead_of_measured_ones() {
    // Loading takes longer than the fit, and longer than any limit.
    let program = "#!/bin/sh\nsleep 0.3\necho '{\"fit\": 0.0'$1'}' > \"$3/out.json\"\nexit 10\n";
    let source = "{file: '{scratch}/out.json', json: /fit}";
    let test_run = counting(source, "grid: [0.02s, 0.1s], wall: 60s", program);
    let scenario = std::fs::read_to_string(test_run.path().join("s.yaml")).unwrap();
    let scenario = scenario
        .replace("'{limit}']", "'{limit}', '{scratch}']")
        .replace("rounds: 30", "rounds: 8");
    test_run.write("s.yaml", &scenario);
    test_run.run(0, &["--quiet"]);
    let (pulls, outcomes) = story(&test_run.run_folder("s"));
    for (pull, outcome) in pulls.iter().zip(&outcomes) {
        let seconds = [0.0100, 0.0300, 0.0900][pull.arm.index()];
        assert_eq!(outcome.consumption, Some(seconds));
        assert!(outcome.wall.unwrap() >= 0.3);
        assert_eq!(outcome.reward.is_some(), seconds <= pull.limit.get());
        assert_eq!(outcome.censored.is_some(), seconds > pull.limit.get());
    }
}

#[test]
fn a_missing_report_and_a_guard_are_failures() {
    let silent =
        "#!/bin/sh\n[ $1 = 900 ] && sleep 100\n[ $1 = 300 ] && echo conflicts: many\nexit 10\n";
    let source = r"{stdout: 'conflicts: (\S+)'}";
    let test_run = counting(source, "of: work, grid: [100], wall: 0.5s", silent);
    let (said, _) = test_run.run(3, &[]);
    assert!(said.contains("cannot read the consumption: "), "{said}");
    let (pulls, outcomes) = story(&test_run.run_folder("s"));
    for (pull, outcome) in pulls.iter().zip(&outcomes) {
        let why = outcome.failed.as_deref().unwrap();
        let expected = match pull.arm.index() {
            0 => "nothing in the output matches",
            1 => "`many` is not a number",
            _ => "hit the wall guard",
        };
        assert!(why.contains(expected), "{why}");
    }
    for (from, to, message) in [
        (", wall: 0.5s", "", "`consumption` needs the guard `wall`"),
        ("consumption: ", "consumption: {}\n  # ", "none is given"),
        (source, "{exit: [1]}", "`consumption` has no key `exit`"),
    ] {
        let text = COUNTING.replace("{LIMITS}", "{of: work, grid: [100], wall: 0.5s}");
        let text = text.replace("SOURCE", source);
        assert!(text.contains(from), "{from}");
        test_run.write("s.yaml", &text.replace(from, to));
        let (_, errors) = expect(&test_run.captime(&["check", "s.yaml"]), 2);
        assert!(errors.contains(message), "{errors}");
    }
}

/// `tail` keeps what it is asked for.
const REMEMBERING: &str = "
name: s
target: {command: [sh, -c, 'head -c {mib}M /dev/zero | tail -c {mib}M | cksum']}
arms: {grid: {mib: [5, 80]}}
limits: {of: memory, grid: [20MiB, 200MiB], wall: 60s}
budget: {rounds: 10}
policy: uniform
slots: 1
pin: never
";

#[test]
fn memory_is_limited_and_priced_where_it_is_exact() {
    let test_run = TestRun::new(REMEMBERING);
    if !captime_limit::detect().is_memory_exact() {
        for args in [&["run", "s.yaml"][..], &["check", "s.yaml"]] {
            let (_, said) = expect(&test_run.captime(args), 2);
            assert!(
                said.contains("`of: memory` needs exact memory limits"),
                "{said}"
            );
        }
        return;
    }
    let (shown, _) = expect(&test_run.captime(&["check", "s.yaml", "--try", "2"]), 0);
    assert!(shown.contains("of memory: 20.0 MiB, 200.0 MiB"), "{shown}");
    let (summary, _) = test_run.run(0, &[]);
    assert!(summary.contains("of memory"), "{summary}");
    let (pulls, outcomes) = story(&test_run.run_folder("s"));
    let mut kinds = std::collections::BTreeSet::new();
    for (pull, outcome) in pulls.iter().zip(&outcomes) {
        let is_cut_off = pull.arm.index() == 1 && pull.limit.get() < 80e6;
        kinds.insert(is_cut_off);
        assert_eq!(outcome.censored.is_some(), is_cut_off, "{outcome:?}");
        assert_eq!(outcome.reward.is_some(), !is_cut_off, "{outcome:?}");
        if !is_cut_off {
            let used = outcome.consumption.unwrap();
            assert_eq!(used, outcome.memory.unwrap() as f64);
            assert!(used > [4e6, 80e6][pull.arm.index()], "{outcome:?}");
        }
    }
    assert_eq!(kinds.len(), 2, "{pulls:?}");
    let (best, _) = expect(&test_run.captime(&["best", "s"]), 0);
    assert!(best.contains("captime exec --memory "), "{best}");
    expect(&test_run.captime(&["report", "s"]), 0);
}

/// A forest in its own process, and any command on a node, have their memory limited and priced as a local command has.
#[test]
fn memory_of_forests_and_on_nodes_is_limited_and_priced() {
    let launch = format!(
        "slots: {{launch: [[{}, agent]]}}",
        env!("CARGO_BIN_EXE_captime")
    );
    // A fit needs about 1 MiB.
    let forest = "
name: s
target: {forest: {data: houses.csv, predict: price, isolation: process}}
arms: {grid: {trees: [5, 20]}}
limits: {of: memory, grid: [512KiB, 400MiB], wall: 60s}
budget: {rounds: 10}
policy: uniform
slots: 1
pin: never
";
    for (scenario, least) in [(forest, [6e5; 2]), (REMEMBERING, [4e6, 80e6])] {
        for slots in ["slots: 1", &launch] {
            let test_run = TestRun::new(&scenario.replace("slots: 1", slots));
            test_run.write("houses.csv", &crate::test_run::houses(120));
            if !captime_limit::detect().is_memory_exact() {
                // A node finds out itself.
                if slots != launch {
                    let (_, said) = expect(&test_run.captime(&["run", "s.yaml"]), 2);
                    assert!(said.contains("exact memory limits"), "{said}");
                }
                continue;
            }
            let (summary, _) = test_run.run(0, &[]);
            assert!(summary.contains("of memory"), "{summary}");
            let (pulls, outcomes) = story(&test_run.run_folder("s"));
            let mut kinds = std::collections::BTreeSet::new();
            for outcome in &outcomes {
                let pull = pulls.iter().find(|pull| pull.round.0 == outcome.outcome);
                let pull = pull.unwrap();
                let limit = pull.limit.get();
                let least = least[pull.arm.index()];
                let is_cut_off = least >= limit;
                kinds.insert(is_cut_off);
                assert_eq!(outcome.censored, is_cut_off.then_some(limit), "{outcome:?}");
                assert_eq!(outcome.reward.is_some(), !is_cut_off, "{outcome:?}");
                assert_eq!(outcome.node.is_some(), slots == launch, "{outcome:?}");
                if !is_cut_off {
                    let used = outcome.consumption.unwrap();
                    assert_eq!(used, outcome.memory.unwrap() as f64);
                    assert!(least < used && used <= limit, "{outcome:?}");
                }
            }
            assert_eq!(kinds.len(), 2, "{pulls:?}");
        }
    }
}

#[test]
fn memory_needs_processes() {
    let test_run = TestRun::new(
        "target: {synthetic: {problem: poscorr}}\nlimits: {of: memory, grid: [1GiB]}\n",
    );
    let (_, said) = expect(&test_run.captime(&["check", "s.yaml"]), 2);
    assert!(said.contains("`of: memory` needs a command"), "{said}");
    test_run.write("s.yaml", &REMEMBERING.replace("20MiB, 200MiB", "20s"));
    let (_, said) = expect(&test_run.captime(&["check", "s.yaml"]), 2);
    assert!(said.contains("size"), "{said}");
}
