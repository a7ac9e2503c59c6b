//! What the page says, by its data.

use std::fmt::Write as _;

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use super::browser::browser;
use super::simulated::Simulated;
use super::{data, report};
use crate::test_run::{TestRun, expect, send};

fn number(value: &Value) -> f64 {
    value
        .as_f64()
        .unwrap_or_else(|| panic!("{value} is no number"))
}

/// The answer, its rivals, the table and the curves must all come from the same source.
#[test]
fn a_well_known_best_arm_is_not_called_worse_than_a_lucky_pull() {
    let root = tempfile::tempdir().unwrap();
    for (name, rounds) in [("r20", 20), ("r60", 60), ("r200", 200), ("r600", 600)] {
        let run = Simulated {
            name,
            rounds,
            policy: "levels",
            ..Simulated::default()
        };
        let data = data(&run.write(root.path()));
        let answer = &data["answer"];
        let rivals = answer["against"].as_array().unwrap();
        for rival in rivals {
            let difference = number(&answer["gain"]) - number(&rival["gain"]);
            // The difference from the default allows for luck; the one from the median arm is plain.
            assert!(
                rival["arm"] == 1 || (difference - number(&rival["difference"])).abs() < 1e-3,
                "{rival}"
            );
            // The estimate of an arm that was never pulled may be high.
            let pulls = number(&rival["pulls"]);
            let is_known_less = pulls > 0.0 && pulls <= number(&answer["pulls"]);
            assert!(
                difference > -0.01 || !is_known_less,
                "{name}: {rival} {answer}"
            );
            assert!(
                rival["probability"].as_f64().is_none_or(|sure| sure > 0.4) || !is_known_less,
                "{name}: {rival}"
            );
        }
        // The table and the curve have the same pair with the same gain.
        let arm = answer["arm"].as_u64().unwrap() as usize;
        let curve = data["best"][0]["gain"].as_array().unwrap();
        let same = |at: &Value| (number(&at[0]) - number(&answer["limit"])).abs() < 1e-6;
        if let Some(there) = curve.iter().find(|point| same(point)) {
            for (place, field) in [(1, "gain"), (2, "low"), (3, "high")] {
                assert_eq!(there[place], answer[field], "{name}: {field}");
            }
        }
        if data["arms"]["limit"][arm - 1] == answer["limit"] {
            assert_eq!(data["arms"]["gain"][arm - 1], answer["gain"], "{name}");
            assert_eq!(data["arms"]["low"][arm - 1], answer["low"], "{name}");
        }
        // The current estimate of the answer is that of the answer itself.
        let last = data["course"]["incumbents"]
            .as_array()
            .unwrap()
            .last()
            .unwrap();
        assert_eq!(last["gain"], last["now"], "{name}");
        assert_eq!(last["gain"], answer["gain"], "{name}");
    }
}

#[test]
fn commands_on_the_page_mean_this_run_and_no_newer_one() {
    let root = tempfile::Builder::new()
        .prefix("it's here ")
        .tempdir()
        .unwrap();
    let older = Simulated::default().write(root.path());
    let newer = Simulated {
        rounds: 7,
        ..Simulated::default()
    };
    let newer = newer.write(&root.path().join("elsewhere"));
    fs::rename(newer, root.path().join("runs/made-up-2")).unwrap();
    let data = data(&older);
    // As a shell reads it, and from anywhere.
    let line = format!(
        "{} explain {} 300",
        env!("CARGO_BIN_EXE_captime"),
        data["run"].as_str().unwrap()
    );
    let output = Command::new("sh")
        .args(["-c", &line])
        .current_dir("/")
        .output()
        .unwrap();
    let (text, _) = expect(&output, 0);
    assert!(text.starts_with("round 300: "), "{text}");
    let again: Vec<&str> = data["facts"]["reproduce"]
        .as_array()
        .unwrap()
        .iter()
        .map(|line| line.as_str().unwrap())
        .collect();
    let export = again[2].replace("captime ", &format!("{} ", env!("CARGO_BIN_EXE_captime")));
    let output = Command::new("sh")
        .args(["-c", &export])
        .current_dir("/")
        .output()
        .unwrap();
    let (table, _) = expect(&output, 0);
    assert_eq!(table.lines().count(), 601, "{again:?}");
    assert!(again[1].starts_with("captime best '/"), "{again:?}");
}

/// Lane and round of the bars of the timeline.
fn lanes(data: &Value) -> Vec<(u64, u64)> {
    let bars = data["course"]["timeline"]["bars"].as_array().unwrap();
    bars.iter()
        .map(|bar| (bar[0].as_u64().unwrap(), bar[3].as_u64().unwrap()))
        .collect()
}

#[test]
fn slots_are_those_of_the_journal_or_told_from_times_in_an_old_one() {
    let root = tempfile::tempdir().unwrap();
    let run = Simulated {
        rounds: 200,
        slots: 3,
        ..Simulated::default()
    };
    let folder = run.write(root.path());
    let told = data(&folder);
    assert_eq!(told["course"]["timeline"]["is_told"], true);
    let journal = fs::read_to_string(folder.join("journal.jsonl")).unwrap();
    for (lane, round) in lanes(&told) {
        let start = format!("{{\"outcome\":{round},");
        let line = journal
            .lines()
            .find(|line| line.starts_with(&start))
            .unwrap();
        assert!(line.contains(&format!("\"slot\":{lane}")), "{lane} {line}");
    }
    let old = Simulated {
        name: "old",
        tells_slots: false,
        ..run
    };
    let old = data(&old.write(root.path()));
    assert_eq!(old["course"]["timeline"]["is_told"], false);
    let guessed = lanes(&old);
    assert_eq!(guessed.len(), 200);
    assert_eq!(guessed.iter().map(|(lane, _)| *lane).max(), Some(3));
    assert_ne!(guessed, lanes(&told), "the journal knows better");
}

/// Pulls that take some milliseconds, as many as are wanted.
fn slow(rounds: u64) -> String {
    format!(
        "name: slow\ntarget:\n  command: [sh, -c, 'sleep 0.0{{a}}; echo score=0.{{a}}']\n  reward: {{stdout: 'score=([0-9.]+)'}}\n\
         arms: {{grid: {{a: [1, 2, 3]}}}}\nlimits: {{of: wall, grid: [5s, 20s]}}\nprice: {{cost: x, penalty: 10 * x}}\n\
         budget: {{rounds: {rounds}}}\nslots: 2\nseed: 5\n"
    )
}

fn sessions(data: &Value) -> &[Value] {
    data["course"]["sessions"].as_array().unwrap()
}

#[test]
fn a_resumed_run_has_a_report_with_both_sessions() {
    let test_run = TestRun::new(&slow(100_000));
    let folder = test_run.run_folder("slow");
    // Interrupted, then killed, then done.
    let child = test_run.start(&["--quiet"]);
    test_run.wait_for_outcomes("slow", 5);
    send(&child, Signal::SIGINT);
    expect(&child.wait_with_output().unwrap(), 130);
    let first = data(&folder);
    assert_eq!(first["status"]["state"], "interrupted");
    let mut child = test_run.start(&["--quiet"]);
    let learned = first["status"]["learned"].as_u64().unwrap();
    test_run.wait_for_outcomes("slow", learned as usize + 5);
    child.kill().unwrap();
    child.wait().unwrap();
    let second = data(&folder);
    assert_eq!(second["status"]["state"], "killed");
    let all = second["status"]["learned"].as_u64().unwrap() + 20;
    test_run.write("s.yaml", &slow(100_001));
    let child = test_run.start(&["--quiet"]);
    test_run.wait_for_outcomes("slow", all as usize);
    send(&child, Signal::SIGINT);
    expect(&child.wait_with_output().unwrap(), 130);
    let third = data(&folder);
    assert_eq!(sessions(&third).len(), 3);
    assert_eq!(third["facts"]["sessions"].as_array().unwrap().len(), 3);
    // Time and rounds go on where they were: no session begins before the last one ended.
    // What the last pulls of a session brought may be learned only in the next.
    let before = sessions(&third)[1][2].as_u64().unwrap();
    assert!(
        (learned - 2..=learned).contains(&before),
        "{before} of {learned}"
    );
    for pair in sessions(&third).windows(2) {
        assert!(number(&pair[0][1]) < number(&pair[1][1]), "{pair:?}");
        assert!(number(&pair[0][2]) < number(&pair[1][2]), "{pair:?}");
    }
    let ends: Vec<f64> = third["rounds"]["at"]
        .as_array()
        .unwrap()
        .iter()
        .map(number)
        .collect();
    assert!(ends.is_sorted(), "{ends:?}");
    assert!(third["status"]["learned"].as_u64().unwrap() >= all);
    let Some(mut browser) = browser() else { return };
    browser.open_file(&report(&folder));
    browser.draw_all();
    browser.assert_quiet();
    let starts = browser.evaluate(
        "document.querySelectorAll('#chart-cumulative-time g[aria-label=rule][stroke-dasharray] line').length",
    );
    assert_eq!(starts, json!(2), "two sessions began later");
}

#[test]
fn a_run_writes_its_report_on_the_way() {
    let test_run = TestRun::new(&slow(100_000));
    let child = test_run.start(&["--quiet", "--report-every", "100ms"]);
    let page = test_run.run_folder("slow").join("report.html");
    let began = std::time::Instant::now();
    let rounds = |page: &Path| -> Option<usize> {
        let text = fs::read_to_string(page).ok()?;
        let rest = text.split_once("\"learned\":")?.1;
        rest[..rest.find(',')?].parse().ok()
    };
    // It exists, and later it has more rounds.
    let mut seen: Vec<usize> = vec![];
    while seen.len() < 2 {
        assert!(began.elapsed() < Duration::from_mins(1), "{seen:?}");
        if let Some(learned) = rounds(&page)
            && seen.last().is_none_or(|last| learned > *last)
        {
            seen.push(learned);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    send(&child, Signal::SIGINT);
    expect(&child.wait_with_output().unwrap(), 130);
    let learned = data(&test_run.run_folder("slow"))["status"]["learned"].as_u64();
    assert_eq!(
        rounds(&page).map(|rounds| rounds as u64),
        learned,
        "the last one is of all"
    );
}

/// Half of the values always fail: they stay in the charts, as what they are.
#[test]
fn arms_that_only_failed_are_counted_value_by_value() {
    let test_run = TestRun::new(
        "name: brittle
target:
  command: [sh, -c, 'test {a} -lt 4 && echo score=0.{a}{b}']
  reward: {stdout: 'score=(\\S+)'}
arms: {grid: {a: [1, 2, 3, 4, 5, 6], b: [1, 2]}}
limits: {of: wall, grid: [20s]}
policy: uniform
budget: {rounds: 24}
stop_on_first_failures: false
slots: 1
",
    );
    test_run.run(0, &["--quiet"]);
    let (text, _) = expect(
        &test_run.captime(&["report", "brittle", "--format", "json", "--out", "-"]),
        0,
    );
    let page: Value = serde_json::from_str(&text).unwrap();
    let parameters = page["importance"]["parameters"].as_array().unwrap();
    let of = parameters.iter().find(|of| of["name"] == "a").unwrap();
    for value in of["values"].as_array().unwrap() {
        let is_failing = value["value"].as_str().unwrap().parse::<u32>().unwrap() > 3;
        let unrewarded = if is_failing { 2 } else { 0 };
        assert_eq!(
            (&value["arms"], &value["unrewarded"]),
            (&2.into(), &unrewarded.into()),
            "{value}"
        );
        assert_eq!(value["gain"].is_null(), is_failing, "{value}");
    }
}

/// Features of instances are checked, and the report says which go with a bad answer.
#[test]
fn features_are_set_against_the_gain() {
    let scenario = "name: featured
target:
  command: [sh, -c, 'echo score=0.$((95 - 5 * {instance}))']
  instances: [\"1\", \"2\", \"3\", \"4\", \"5\", \"6\", \"7\", \"8\", \"9\", \"10\", \"11\", \"12\"]
  reward: {stdout: 'score=(\\S+)'}
arms: {list: [{a: 1}, {a: 2}]}
limits: {of: wall, grid: [20s]}
price: {cost: x, penalty: 10 * x}
policy: uniform
budget: {rounds: 48}
features: features.csv
slots: 2
";
    let test_run = TestRun::new(scenario);
    let table = |last: &str| {
        let mut table = String::from("instance,size,luck\n");
        for instance in 1..12 {
            let luck = instance * 5 % 12;
            let _ = writeln!(table, "{instance},{},{luck}", 100 * instance);
        }
        table + last
    };
    test_run.write("features.csv", &table("12,big,1\n"));
    let (_, said) = test_run.run(2, &["--quiet"]);
    assert!(
        said.contains("line 13: `big` in column `size` is not a number"),
        "{said}"
    );
    test_run.write("features.csv", &table("12,1200,0\n"));
    test_run.run(0, &["--quiet"]);
    let (text, _) = expect(
        &test_run.captime(&["report", "featured", "--format", "json", "--out", "-"]),
        0,
    );
    let page: Value = serde_json::from_str(&text).unwrap();
    let instances = &page["instances"];
    let first = &instances["features"][0];
    assert_eq!(first["name"], "size", "{instances}");
    assert!(first["correlation"].as_f64().unwrap() < -0.9, "{first}");
    assert!(
        first["at_worst"].as_f64() > first["elsewhere"].as_f64(),
        "{first}"
    );
    assert_eq!(instances["worst"][0]["name"], "12", "{instances}");
    // The model of the gain finds that the size decides, and that the parameter does not.
    let importance = &page["importance"];
    assert_eq!(importance["features"][0][0], "size", "{importance}");
    let of_size = importance["features"][0][1].as_f64();
    assert!(of_size > Some(0.5), "{importance}");
    assert!(
        importance["parameters"][0]["importance"].as_f64() < of_size,
        "{importance}"
    );
}

/// What a command can do in spite of its limits is said where people look: in the summary, in the page, and after a later session that
/// contained its commands too.
#[test]
fn a_run_without_containment_says_what_may_escape() {
    let scenario = |contain: &str, rounds: u32| {
        format!(
            "name: open\ntarget: {{command: [sh, -c, 'echo 0.5'], reward: {{stdout: '([0-9.]+)'}}{contain}}}\n\
             arms: {{list: [{{name: a}}, {{name: b}}]}}\nlimits: {{of: wall, grid: [10s]}}\nprice: {{cost: x, penalty: 10 * x}}\n\
             policy: uniform\nbudget: {{rounds: {rounds}}}\n"
        )
    };
    let escape = "a hostile command can stop or kill captime's own processes, run past its limit and leave processes behind";
    let off = TestRun::new(&scenario(", contain: off", 4));
    // The second time there is nothing left to run.
    for _ in 0..2 {
        let (said, _) = off.run(0, &[]);
        assert!(said.contains(&format!("contain   off: {escape}")), "{said}");
    }
    let words = |test_run: &TestRun| {
        let data = data(&test_run.run_folder("open"));
        data["facts"]["enforcement"].as_str().unwrap().to_owned()
    };
    let said = words(&off);
    assert!(
        said.contains(&format!(". Without containment, {escape}")),
        "{said}"
    );
    if captime_limit::detect().contain == captime_limit::Contain::Off {
        return crate::test_run::skipped("containment is not possible here");
    }
    let contained = TestRun::new(&scenario("", 4));
    let (said, _) = contained.run(0, &[]);
    assert!(!said.contains("hostile"), "{said}");
    assert!(!words(&contained).contains("hostile"));
}
