//! `captime test`: the answer and the default, side by side, on held-out instances.

use std::fmt::Write as _;
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;
use std::time::{Duration, Instant};

use captime::round::ArmId;
use captime::target::recorded::{Recorded, Spec};
use serde_json::Value;

use crate::test_run::{TestRun, expect, story};

/// Recorded runs of 4 arms on 60 instances, a third of them held out for the test.
fn recorded() -> TestRun {
    let kept: Vec<String> = (40..60).map(|instance| format!("i{instance}")).collect();
    let scene = TestRun::new(&format!(
        "name: replayed
target: {{recorded: {{consumption: seconds.csv, cutoff: 10s, unsolved: 100, test: [{}]}}}}
arms: {{list: [{{name: default}}, {{name: slow}}, {{name: fast}}, {{name: never}}]}}
limits: {{of: cpu, grid: [1s, 3s, 10s]}}
price: {{cost: x, penalty: 10 * x}}
policy: joint-ts
budget: {{rounds: 400}}
",
        kept.join(", ")
    ));
    let mut table = String::from("instance,default,slow,fast,never\n");
    for instance in 0..60 {
        let level = 0.5 + f64::from(instance * 7 % 60) / 4.0;
        let seconds = |factor: f64| {
            let seconds = level * factor;
            if seconds <= 10.0 { seconds } else { 100.0 }
        };
        let row = [seconds(1.0), seconds(2.5), seconds(0.5), 100.0];
        let row: Vec<String> = row.iter().map(ToString::to_string).collect();
        writeln!(table, "i{instance},{}", row.join(",")).unwrap();
    }
    scene.write("seconds.csv", &table);
    scene
}

fn json(scene: &TestRun, args: &[&str]) -> Value {
    let (text, _) = expect(&scene.captime(&[args, &["--format", "json"]].concat()), 0);
    serde_json::from_str(&text).unwrap()
}

#[test]
fn a_test_of_recorded_runs_agrees_with_exact_par10() {
    let scene = recorded();
    scene.run(0, &["--quiet"]);
    let tested = json(
        &scene,
        &["test", "replayed", "--arms", "best,default,top:4,1,2,3,4"],
    );
    let spec = Spec {
        consumption: scene.path().join("seconds.csv"),
        reward: None,
        cutoff: Some(10.0),
        unsolved: Some(100.0),
    };
    let all = Recorded::open(&spec).unwrap();
    let is_kept = |name: &str| name[1..].parse::<u32>().unwrap() >= 40;
    let kept = all.with_instances_where(is_kept).unwrap();
    assert_eq!(
        (&tested["instances"], &tested["limit"]),
        (&20.into(), &10.0.into())
    );
    let arms = tested["arms"].as_array().unwrap();
    assert_eq!(arms.len(), 4, "every arm once: {tested}");
    for of in arms {
        let arm = ArmId::from_number(of["arm"].as_u64().unwrap() as u32).unwrap();
        let exact = kept.par10(arm);
        let found = of["values"]["par10"].as_f64().unwrap();
        assert!(
            (found - exact).abs() < 1e-9,
            "arm {arm}: {found}, exactly {exact}"
        );
        let difference = of["against_default"]["par10"]["mean"].as_f64();
        let exact = exact - kept.par10(ArmId::from_index(0));
        assert!(
            difference.is_none_or(|found| (found - exact).abs() < 1e-9),
            "{of}"
        );
    }
    let answer = arms.iter().find(|of| of["is_answer"] == true).unwrap();
    assert_eq!(answer["configuration"]["name"], "fast", "{answer}");
    // On what it was tuned on the figures are others, and people are told that they flatter.
    let (text, _) = expect(&scene.captime(&["test", "--on", "training"]), 0);
    assert!(
        text.contains("(40 instances) with a limit of 10 s"),
        "{text}"
    );
    assert!(text.contains("figures are too good"), "{text}");
    assert!(text.contains("against the default: PAR10 -"), "{text}");
    // A limit between two of the grid is judged by the runs that reach it.
    let best = json(&scene, &["best", "replayed", "--limit", "2s"]);
    assert_eq!(
        (&best["limit"], &best["configuration"]["name"]),
        (&2.0.into(), &"fast".into())
    );
    // Both tests are in the report.
    let page = json(&scene, &["report", "replayed", "--out", "-"]);
    let on: Vec<&Value> = page["tests"]
        .as_array()
        .unwrap()
        .iter()
        .map(|test| &test["on"])
        .collect();
    assert_eq!(on, ["the training instances", "the test instances"]);
    assert_eq!(page["tests"][1]["arms"][0]["values"], arms[0]["values"]);
}

/// A command that notes on which instance and with which seed it runs, and takes a moment.
const NOTED: &str = "
name: noted
target:
  command: [sh, -c, 'echo {instance} {seed} {a} >> noted.txt; sleep 0.05; echo score=0.{a}']
  instances: [one, two]
  test: [x, y, z]
  reward: {stdout: 'score=(\\S+)', worst: 0, best: 1}
arms: {list: [{a: 3}, {a: 5}]}
limits: {of: wall, grid: [5s, 20s]}
policy: uniform
budget: {rounds: 6}
slots: 1
";

/// Starts this test and kills it as soon as so many of its runs have ended.
fn kill_after(scene: &TestRun, args: &[&str], test: &std::path::Path, outcomes: usize) {
    let mut child = scene
        .command(args)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let since = Instant::now();
    loop {
        let text = std::fs::read_to_string(test.join("journal.jsonl")).unwrap_or_default();
        if text.matches("{\"outcome\"").count() >= outcomes {
            break;
        }
        assert!(
            since.elapsed() < Duration::from_mins(1),
            "no outcome in a minute"
        );
        std::thread::sleep(Duration::from_millis(2));
    }
    child.kill().unwrap();
    assert_eq!(child.wait().unwrap().signal(), Some(9));
}

#[test]
fn a_killed_test_goes_on_where_it_was() {
    let scene = TestRun::new(NOTED);
    scene.run(0, &["--quiet"]);
    std::fs::remove_file(scene.path().join("noted.txt")).unwrap();
    let args = ["test", "noted", "--seeds", "4"];
    let test = scene.run_folder("noted").join("tests/1");
    kill_after(&scene, &args, &test, 3);
    let (text, said) = expect(&scene.captime(&args), 0);
    assert!(said.contains("24 runs in all; resuming after "), "{said}");
    assert!(
        text.contains("(3 instances, 4 seeds each) with a limit of 20 s"),
        "{text}"
    );
    assert!(
        text.contains("answer    arm 2 (a=5)\n          mean score 0.5000"),
        "{text}"
    );
    assert!(
        text.contains("against the default: score +0.2000"),
        "{text}"
    );
    assert!(text.contains("better on 3, worse on 0 of 3"), "{text}");
    let (pulls, outcomes) = story(&test);
    assert_eq!((pulls.len(), outcomes.len()), (24, 24));
    // Every row of two arms has one instance and one seed of its own.
    let rows: Vec<_> = pulls
        .chunks(2)
        .map(|row| (row[0].instance, row[0].seed))
        .collect();
    assert!(
        pulls
            .chunks(2)
            .all(|row| (row[0].instance, row[0].seed) == (row[1].instance, row[1].seed))
    );
    let seeds: std::collections::HashSet<_> = rows.iter().map(|(_, seed)| *seed).collect();
    assert_eq!(seeds.len(), 12);
    // A finished test runs nothing again.
    let noted = std::fs::read_to_string(scene.path().join("noted.txt")).unwrap();
    assert!(
        noted.lines().all(|line| "xyz".contains(&line[..1])),
        "{noted}"
    );
    let (again, _) = expect(&scene.captime(&args), 0);
    assert_eq!(again, text);
    assert_eq!(
        std::fs::read_to_string(scene.path().join("noted.txt")).unwrap(),
        noted
    );
}

#[test]
fn a_run_may_end_with_its_test() {
    let scene = TestRun::new(NOTED);
    let (text, _) = scene.run(0, &["--quiet", "--then-test"]);
    let (summary, tested) = text
        .split_once("noted: tested on the test instances")
        .unwrap();
    assert!(summary.contains("best      arm 2"), "{summary}");
    assert!(
        tested.contains("(3 instances) with a limit of 20 s"),
        "{tested}"
    );
    let (lines, _) = scene.run(0, &["--format", "json", "--then-test"]);
    let last: Value = serde_json::from_str(lines.lines().last().unwrap()).unwrap();
    assert_eq!((&last["event"], &last["runs"]), (&"test".into(), &6.into()));
}

#[test]
fn what_cannot_be_tested_is_explained() {
    let scene =
        TestRun::new("name: drawn\ntarget: {synthetic: {problem: indep}}\nbudget: {rounds: 300}\n");
    scene.run(0, &["--quiet"]);
    // Without instances there are fresh seeds: other numbers than those the run saw.
    let tested = json(&scene, &["test", "drawn", "--arms", "1,2", "--seeds", "50"]);
    assert_eq!(
        (&tested["runs"], &tested["instances"]),
        (&100.into(), &0.into())
    );
    for (args, message) in [
        (
            &["--on", "test"][..],
            "the pulls of this run have no instances",
        ),
        (&["--arms", "best,bets"], "`bets` is not an arm"),
        (&["--arms", "9999"], "there is no arm 9999, only 1 to "),
        (&["--on", "nowhere.txt"], "nowhere.txt"),
        (&["--limit", "0"], "--limit"),
    ] {
        let (_, said) = expect(&scene.captime(&[&["test", "drawn"], args].concat()), 2);
        assert!(said.contains(message), "{args:?}: {said}");
    }
    let untested = TestRun::new(&NOTED.replace("  test: [x, y, z]\n", ""));
    untested.run(0, &["--quiet"]);
    let (_, said) = expect(&untested.captime(&["test", "--on", "test"]), 2);
    assert!(
        said.contains("holds out no instances") && said.contains("--on FILE"),
        "{said}"
    );
    untested.write("others.txt", "p\nq\n");
    let tested = json(&untested, &["test", "--on", "others.txt", "--quiet"]);
    assert_eq!(tested["on"], "the instances of others.txt");
    assert_eq!(tested["runs"], 4);
}

/// Arms that were opened on the way are tested under their own numbers.
#[test]
fn arms_of_an_open_space_are_tested() {
    let test_run = TestRun::new(
        "name: opened
target:
  command: [sh, -c, 'echo score=0.{a}']
  reward: {stdout: 'score=(\\S+)', worst: 0, best: 1}
arms: {space: {a: {integer: [10, 99], default: 10}}}
limits: {of: wall, grid: [20s]}
budget: {rounds: 12}
slots: 1
",
    );
    test_run.run(0, &["--quiet"]);
    let tested = json(&test_run, &["test", "--seeds", "2", "--quiet"]);
    let arms = tested["arms"].as_array().unwrap();
    assert_eq!(arms.len(), 2, "{tested}");
    for of in arms {
        let a = of["configuration"]["a"].as_f64().unwrap();
        let score = of["values"]["score"].as_f64().unwrap();
        assert!((score - a / 100.0).abs() < 1e-9, "{of}");
    }
    assert_eq!(arms[1]["configuration"]["a"], 10);
}

/// Without instances the seeds of a test are other splits than those of the run.
#[test]
fn a_forest_is_tested_on_fresh_splits() {
    let test_run = TestRun::new(
        "name: houses
target: {forest: {data: houses.csv, predict: price}}
arms: {list: [{trees: 2, mtry: 1}, {trees: 40, mtry: 2}]}
limits: {of: work, grid: [1e9]}
policy: uniform
budget: {rounds: 20}
",
    );
    test_run.write("houses.csv", &crate::test_run::houses(120));
    test_run.run(0, &["--quiet"]);
    let tested = json(&test_run, &["test", "--arms", "2,default", "--quiet"]);
    assert_eq!(
        (&tested["seeds"], &tested["runs"]),
        (&10.into(), &20.into())
    );
    let difference = &tested["arms"][0]["against_default"]["reward"];
    assert!(
        difference["interval"][0].as_f64().unwrap() > 0.0,
        "{tested}"
    );
    let values = &tested["arms"][0]["values"];
    assert_eq!(values["score_name"], "RMSE");
    let error = values["score"].as_f64().unwrap();
    let reward = values["reward"].as_f64().unwrap();
    // Prices from 0 to 54: the reward is 1 - error / range.
    assert!((reward - (1.0 - error / 54.0)).abs() < 1e-6, "{values}");
    let seeds = |folder: std::path::PathBuf| -> std::collections::HashSet<Option<u64>> {
        let (pulls, _) = story(&folder);
        pulls.iter().map(|pull| pull.seed).collect()
    };
    let run = test_run.run_folder("houses");
    let (of_run, of_test) = (seeds(run.clone()), seeds(run.join("tests/1")));
    assert_eq!(of_test.len(), 10);
    assert!(of_run.is_disjoint(&of_test), "{of_run:?} {of_test:?}");
}

/// Recorded runs of every arm of a grid: `b` is worth most, then `a`; `c` makes no difference.
fn grid() -> TestRun {
    let test_run = TestRun::new(
        "name: grid
target: {recorded: {consumption: seconds.csv, cutoff: 10s, test: [i30, i31, i32, i33, i34, i35, i36, i37, i38, i39]}}
arms: {grid: {a: [0, 1], b: [0, 1], c: [0, 1]}}
limits: {of: cpu, grid: [10s]}
policy: joint-ts
budget: {rounds: 600}
",
    );
    let mut table = String::from("instance,a,b,c,d,e,f,g,h\n");
    for instance in 0..40 {
        let level = 4.0 + f64::from(instance % 7) / 4.0;
        write!(table, "i{instance}").unwrap();
        for arm in 0..8 {
            let (a, b) = (arm / 4, arm / 2 % 2);
            let seconds = level - 0.5 * f64::from(a) - 3.0 * f64::from(b);
            // Arm 8 is the answer by a little.
            let seconds = seconds - if arm == 7 { 0.01 } else { 0.0 };
            write!(table, ",{seconds}").unwrap();
        }
        table.push('\n');
    }
    test_run.write("seconds.csv", &table);
    test_run.run(0, &["--quiet"]);
    test_run
}

#[test]
fn an_ablation_runs_what_lies_between_the_default_and_the_answer() {
    let test_run = grid();
    let (text, _) = expect(&test_run.captime(&["best"]), 0);
    assert!(text.contains("\nchanged   b 0 to 1 (+"), "{text}");
    let best = json(&test_run, &["best"]);
    let path = best["path"].as_array().unwrap();
    assert_eq!(path[0]["changes"][0]["parameter"], "b", "{best}");
    let tested = json(&test_run, &["test", "--ablation", "--quiet"]);
    let arms = tested["arms"].as_array().unwrap();
    assert_eq!(arms.len(), path.len() + 1, "{tested}");
    assert_eq!(arms[0]["arm"], 1);
    assert!(arms[0]["change"].is_null());
    assert_eq!(arms.last().unwrap()["is_answer"], true);
    for step in &arms[1..] {
        let change = step["change"].as_str().unwrap();
        let found = step["against_step_before"]["par10"]["mean"]
            .as_f64()
            .unwrap();
        let wanted = match &change[..1] {
            "b" => -3.0,
            "a" => -0.5,
            _ => 0.0,
        };
        assert!((found - wanted).abs() < 0.011, "{step}");
    }
    let (text, said) = expect(&test_run.captime(&["test", "--ablation"]), 0);
    assert!(
        text.contains("step 1    b 0 to 1\n") && text.contains("against the step before: PAR10 -3"),
        "{text}"
    );
    assert_eq!(said, "", "nothing is run again");
    let page = json(&test_run, &["report", "grid", "--out", "-"]);
    assert_eq!(page["tests"][0]["is_path"], true);
    assert_eq!(page["tests"][0]["arms"][1]["label"], "b 0 to 1");
    assert_eq!(page["answer"]["path"][0][0], "b 0 to 1");
}

/// A list has nothing between two arms, so an ablation adds what it needs; recorded runs cannot.
#[test]
fn an_ablation_adds_arms_that_a_list_lacks() {
    let listed = |target: &str| {
        format!(
            "name: listed
target: {target}
arms: {{list: [{{a: 1, b: 1}}, {{a: 3, b: 4}}]}}
limits: {{of: wall, grid: [20s]}}
policy: uniform
budget: {{rounds: 24}}
slots: 1
"
        )
    };
    let command = "{command: [sh, -c, 'echo score=0.{b}{a}'], reward: {stdout: 'score=(\\S+)', worst: 0, best: 1}}";
    let test_run = TestRun::new(&listed(command));
    test_run.run(0, &["--quiet"]);
    let tested = json(
        &test_run,
        &["test", "--ablation", "--seeds", "2", "--quiet"],
    );
    let arms = tested["arms"].as_array().unwrap();
    assert_eq!(arms.len(), 3, "{tested}");
    assert_eq!(arms[1]["arm"], 3, "a new one between them: {tested}");
    for of in arms {
        let (a, b) = (&of["configuration"]["a"], &of["configuration"]["b"]);
        let score = a.as_f64().unwrap() / 100.0 + b.as_f64().unwrap() / 10.0;
        let found = of["values"]["score"].as_f64().unwrap();
        assert!((found - score).abs() < 1e-9, "{of}");
    }
    let page = json(&test_run, &["report", "listed", "--out", "-"]);
    assert_eq!(page["tests"][0]["arms"].as_array().unwrap().len(), 3);
    let recorded = "{recorded: {consumption: seconds.csv, cutoff: 20s}}";
    let recorded = TestRun::new(&listed(recorded));
    recorded.write("seconds.csv", "instance,one,two\ni,9,3\nj,8,2\n");
    recorded.run(0, &["--quiet"]);
    let (_, said) = expect(&recorded.captime(&["test", "--ablation"]), 2);
    assert!(
        said.contains("not all configurations between the default and the answer were recorded"),
        "{said}"
    );
}

/// The arms that an ablation adds are the same after a kill, and no run that ended is repeated.
#[test]
fn a_killed_ablation_resumes_with_the_arms_it_added() {
    let test_run = TestRun::new(
        "name: listed
target:
  command: [sh, -c, 'echo {a}{b}{c} >> noted.txt; sleep 0.05; echo score=0.{b}{a}']
  reward: {stdout: 'score=(\\S+)', worst: 0, best: 1}
arms: {list: [{a: 1, b: 1, c: 1}, {a: 3, b: 4, c: 2}]}
limits: {of: wall, grid: [20s]}
policy: uniform
budget: {rounds: 24}
slots: 1
",
    );
    test_run.run(0, &["--quiet"]);
    std::fs::remove_file(test_run.path().join("noted.txt")).unwrap();
    let args = ["test", "--ablation", "--seeds", "3"];
    let folder = test_run.run_folder("listed").join("tests/1");
    kill_after(&test_run, &args, &folder, 5);
    // The report of the run names the test that has not ended.
    expect(&test_run.captime(&["report", "listed"]), 0);
    let (text, said) = expect(&test_run.captime(&args), 0);
    assert!(said.contains("12 runs in all; resuming after "), "{said}");
    assert!(text.contains("step 3    "), "{text}");
    let (pulls, outcomes) = story(&folder);
    assert_eq!((pulls.len(), outcomes.len()), (12, 12));
    let arms: std::collections::BTreeSet<usize> =
        pulls.iter().map(|pull| pull.arm.index()).collect();
    assert_eq!(arms.len(), 4, "{pulls:?}");
    assert!(outcomes.iter().all(|outcome| outcome.reward.is_some()));
    let noted = || std::fs::read_to_string(test_run.path().join("noted.txt")).unwrap();
    // The run that was killed may have been noted twice.
    let count = noted().lines().count();
    assert!((12..=13).contains(&count), "{}", noted());
    let tested = json(&test_run, &args);
    let steps = tested["arms"].as_array().unwrap();
    let worth = |step: &Value| step["against_step_before"]["score"]["mean"].as_f64();
    let all: f64 = steps[1..].iter().filter_map(worth).sum();
    assert!((all - 0.32).abs() < 1e-9, "{tested}");
    assert_eq!(noted().lines().count(), count, "nothing is run again");
    assert!(!test_run.run_folder("listed").join("tests/2").exists());
}
