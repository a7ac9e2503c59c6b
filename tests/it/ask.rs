//! `captime ask` from outside: requests in, answers out.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use crate::test_run::piped;

const SCENARIO: &str = "
name: asked
target: external
arms: {grid: {trees: [100, 200, 300], depth: [2, 4]}}
limits: {of: wall, grid: [1s, 5s, 12.5s]}
price: {cost: x, penalty: 10 * x}
policy: rcucb
seed: 3
";

struct Asked {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Asked {
    fn start(folder: &Path, args: &[&str]) -> Self {
        let file = folder.join("asked.yaml");
        if !file.exists() {
            std::fs::write(&file, SCENARIO).unwrap();
        }
        let mut command = Command::new(env!("CARGO_BIN_EXE_captime"));
        let (child, input, output) = piped(command.arg("ask").arg(&file).args(args));
        Self {
            child,
            input,
            output,
        }
    }

    fn raw(&mut self, line: &[u8]) -> Value {
        let input = self.input.as_mut().unwrap();
        input.write_all(line).unwrap();
        input.write_all(b"\n").unwrap();
        input.flush().unwrap();
        let mut answer = String::new();
        self.output.read_line(&mut answer).unwrap();
        serde_json::from_str(&answer).unwrap_or_else(|error| panic!("{answer:?}: {error}"))
    }

    fn say(&mut self, request: &Value) -> Value {
        self.raw(request.to_string().as_bytes())
    }

    /// Plays rounds with a reward that favours deep trees.
    fn play(&mut self, rounds: usize) -> Vec<Value> {
        (0..rounds)
            .map(|_| {
                let pull = self.say(&json!({"ask": {}}))["pull"].clone();
                let trees = pull["configuration"]["trees"].as_f64().unwrap();
                let used = trees / 50.0;
                let told = if used <= pull["limit"].as_f64().unwrap() {
                    let reward = pull["configuration"]["depth"].as_f64().unwrap() / 4.0;
                    json!({"tell": {"id": pull["id"], "reward": reward, "consumption": used}})
                } else {
                    json!({"tell": {"id": pull["id"], "censored": pull["limit"]}})
                };
                assert_eq!(self.say(&told), json!({"told": {"id": pull["id"]}}));
                pull
            })
            .collect()
    }

    fn end(mut self) -> String {
        drop(self.input.take());
        let output = self.child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0));
        String::from_utf8(output.stderr).unwrap()
    }

    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

#[test]
fn asks_tells_and_recommends() {
    let folder = tempfile::tempdir().unwrap();
    let mut asked = Asked::start(folder.path(), &[]);
    assert_eq!(asked.say(&json!({"best": {}})), json!({"best": null}));
    assert_eq!(
        asked.say(&json!({"explain": {}}))["explain"]["why"],
        "nothing"
    );
    let first = asked.say(&json!({"ask": {}}));
    assert_eq!(first["pull"]["id"], 1);
    assert_eq!(
        first["pull"]["limit"], 12.5,
        "the opening plays the largest limit"
    );
    assert_eq!(
        first["pull"]["configuration"],
        json!({"trees": 100, "depth": 2})
    );
    // Several may be open at once, and be told in any order.
    let second = asked.say(&json!({"ask": {}}));
    assert_eq!(
        (&second["pull"]["id"], &second["pull"]["arm"]),
        (&json!(2), &json!(2))
    );
    let third = asked.say(&json!({"ask": {}}));
    assert_eq!(third["pull"]["id"], 3);
    assert_eq!(
        asked.say(&json!({"tell": {"id": 3, "failed": true}})),
        json!({"told": {"id": 3}})
    );
    assert_eq!(
        asked.say(&json!({"best": {}})),
        json!({"best": null}),
        "nothing was rewarded yet"
    );
    assert_eq!(
        asked.say(&json!({"tell": {"id": 2, "reward": 1.0, "consumption": 2}})),
        json!({"told": {"id": 2}})
    );
    assert_eq!(
        asked.say(&json!({"tell": {"id": 1, "failed": true}})),
        json!({"told": {"id": 1}})
    );
    asked.play(60);
    let best = asked.say(&json!({"best": {}}))["best"].clone();
    assert_eq!(
        best["configuration"],
        json!({"trees": 100, "depth": 4}),
        "{best}"
    );
    let interval = best["interval"].as_array().unwrap();
    let gain = best["gain"].as_f64().unwrap();
    assert!(interval[0].as_f64().unwrap() <= gain && gain <= interval[1].as_f64().unwrap());
    assert!(best["pulls"].as_u64().unwrap() > 3);
    let explain = asked.say(&json!({"explain": {}}))["explain"].clone();
    assert_eq!(explain["why"], "index");
    for side in ["chosen", "runner_up"] {
        let (index, mean, width) = (
            &explain[side]["index"],
            &explain[side]["mean"],
            &explain[side]["width"],
        );
        let sum = mean.as_f64().unwrap() + width.as_f64().unwrap();
        assert!((index.as_f64().unwrap() - sum).abs() < 1e-9, "{explain}");
    }
    assert_eq!(asked.end(), "");
    assert_eq!(
        std::fs::read_dir(folder.path()).unwrap().count(),
        1,
        "nothing was written"
    );
}

#[test]
fn bad_lines_get_an_error_and_change_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mut asked = Asked::start(folder.path(), &[]);
    asked.say(&json!({"ask": {}}));
    asked.say(&json!({"ask": {}}));
    assert_eq!(
        asked.say(&json!({"tell": {"id": 2, "failed": true}})),
        json!({"told": {"id": 2}})
    );
    let mut line = 3;
    let mut answers = String::new();
    let huge = format!("{{\"ask\":{{\"{}\":1}}}}", "x".repeat(2 << 20));
    let deep = "[".repeat(100_000);
    for bad in [
        "",
        "nonsense",
        "[]",
        "{}",
        "7",
        "{\"ask\":{},\"best\":{}}",
        "{\"aks\":{}}",
        "{\"frobnicate\":{}}",
        "{\"ask\":7}",
        "{\"ask\":{\"arm\":1}}",
        "{\"tell\":{}}",
        "{\"tell\":{\"id\":\"one\",\"failed\":true}}",
        "{\"tell\":{\"id\":1}}",
        "{\"tell\":{\"id\":1,\"reward\":0.5}}",
        "{\"tell\":{\"id\":1,\"consumption\":0.5}}",
        "{\"tell\":{\"id\":1,\"reward\":1.5,\"consumption\":1}}",
        "{\"tell\":{\"id\":1,\"reward\":-0.1,\"consumption\":1}}",
        "{\"tell\":{\"id\":1,\"reward\":0.5,\"consumption\":-1}}",
        "{\"tell\":{\"id\":1,\"reward\":NaN,\"consumption\":1}}",
        "{\"tell\":{\"id\":1,\"reward\":1e999,\"consumption\":1}}",
        "{\"tell\":{\"id\":1,\"reward\":\"high\",\"consumption\":1}}",
        "{\"tell\":{\"id\":1,\"censored\":0}}",
        "{\"tell\":{\"id\":1,\"censored\":-3}}",
        "{\"tell\":{\"id\":1,\"failed\":false}}",
        "{\"tell\":{\"id\":1,\"failed\":true,\"reward\":1,\"consumption\":1}}",
        "{\"tell\":{\"id\":1,\"rewrad\":1,\"consumption\":1}}",
        "{\"tell\":{\"id\":2,\"failed\":true}}",
        "{\"tell\":{\"id\":3,\"failed\":true}}",
        "{\"tell\":{\"id\":-1,\"failed\":true}}",
        "{\"tell\":{\"id\":0,\"failed\":true}}",
        huge.as_str(),
        deep.as_str(),
    ] {
        line += 1;
        let answer = asked.raw(bad.as_bytes());
        let error = &answer["error"];
        assert_eq!(error["line"], line, "{answer}");
        let (what, fix) = (
            error["what"].as_str().unwrap(),
            error["fix"].as_str().unwrap(),
        );
        assert!(!what.is_empty() && !fix.is_empty());
        let shown: String = bad.chars().take(70).collect();
        answers.extend([&shown, "\n    ", what, "\n    fix: ", fix, "\n"]);
    }
    let answer = asked.raw(b"{\"ask\":{}\xff}");
    assert_eq!(answer["error"]["what"], "the line is not UTF-8");
    insta::assert_snapshot!(answers);
    // As if nothing had been sent: pull 1 is still open, and the next is the third.
    assert_eq!(
        asked.say(&json!({"tell": {"id": 1, "reward": 1, "consumption": 1}})),
        json!({"told": {"id": 1}})
    );
    assert_eq!(asked.say(&json!({"ask": {}}))["pull"]["id"], 3);
    asked.end();
}

#[test]
fn a_recorded_conversation_goes_on_where_it_was_killed() {
    let folder = tempfile::tempdir().unwrap();
    let journal = folder.path().join("journal");
    let args = ["--journal", journal.to_str().unwrap()];
    let mut whole = Asked::start(folder.path(), &[]);
    let expected = whole.play(50);
    whole.end();
    let mut pulls = vec![];
    for _ in 0..5 {
        let mut part = Asked::start(folder.path(), &args);
        pulls.extend(part.play(10));
        part.kill();
    }
    assert_eq!(pulls, expected);
    // Open when captime was killed, still open afterwards.
    let mut last = Asked::start(folder.path(), &args);
    assert_eq!(last.say(&json!({"ask": {}}))["pull"]["id"], 51);
    last.kill();
    let mut again = Asked::start(folder.path(), &args);
    assert_eq!(again.say(&json!({"ask": {}}))["pull"]["id"], 52);
    assert_eq!(
        again.say(&json!({"tell": {"id": 51, "failed": true}})),
        json!({"told": {"id": 51}})
    );
    // Only one at a time.
    let refused = Command::new(env!("CARGO_BIN_EXE_captime"))
        .arg("ask")
        .arg(folder.path().join("asked.yaml"))
        .args(args)
        .output()
        .unwrap();
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("another captime"));
    assert!(
        again
            .end()
            .contains("resuming after 51 pulls; still open: 51")
    );
}

#[test]
fn a_changed_scenario_is_refused_with_what_changed() {
    let folder = tempfile::tempdir().unwrap();
    let journal = folder.path().join("journal");
    let args = ["--journal", journal.to_str().unwrap()];
    let mut asked = Asked::start(folder.path(), &args);
    asked.play(3);
    asked.end();
    let changed = SCENARIO.replace("seed: 3", "seed: 4");
    std::fs::write(folder.path().join("asked.yaml"), changed).unwrap();
    let refused = Command::new(env!("CARGO_BIN_EXE_captime"))
        .arg("ask")
        .arg(folder.path().join("asked.yaml"))
        .args(args)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert_eq!(refused.status.code(), Some(2));
    let message = String::from_utf8_lossy(&refused.stderr);
    assert!(message.contains("seed: 3 -> 4"), "{message}");
}

#[test]
fn listed_instances_come_by_number_and_name_whoever_chose_them() {
    let names = ["easy.cnf", "middle one.cnf", "hard.cnf"];
    let listed = format!("target: {{external: {{instances: {names:?}}}}}");
    let listed = SCENARIO.replace("target: external", &listed);
    // rcucb leaves the instance to chance. The default policy may choose it.
    for scenario in [listed.clone(), listed.replace("policy: rcucb\n", "")] {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("asked.yaml"), &scenario).unwrap();
        let journal = folder.path().join("journal");
        let args = ["--journal", journal.to_str().unwrap()];
        let mut asked = Asked::start(folder.path(), &args);
        let pulls = asked.play(40);
        asked.end();
        let text = std::fs::read_to_string(journal.join("journal.jsonl")).unwrap();
        let recorded: Vec<Value> = text
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .filter(|line: &Value| line.get("pull").is_some())
            .collect();
        assert_eq!(recorded.len(), pulls.len());
        let mut met = [false; 3];
        for (pull, recorded) in pulls.iter().zip(&recorded) {
            let number = pull["instance"].as_u64().expect("a number");
            assert!((1..=3).contains(&number), "{pull}");
            assert_eq!(recorded["instance"], number, "as in the journal");
            assert_eq!(pull["instance_name"], names[number as usize - 1]);
            met[number as usize - 1] = true;
        }
        assert_eq!(met, [true; 3], "{scenario}");
    }
    // If none are listed, none is given.
    for scenario in [SCENARIO.into(), SCENARIO.replace("policy: rcucb\n", "")] {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("asked.yaml"), scenario).unwrap();
        let mut asked = Asked::start(folder.path(), &[]);
        for pull in asked.play(10) {
            assert!(pull.get("instance").is_none() && pull.get("instance_name").is_none());
        }
        asked.end();
    }
}

/// Arms without end: their configurations come with the pulls.
const OPEN: &str = "
name: asked
target: external
arms:
  space:
    trees: {integer: [10, 800], scale: log, default: 400}
    depth: {integer: [1, 4]}
    split: {choice: [gini, entropy], default: entropy}
    margin: {real: [0.0, 1.0], when: split == entropy}
  forbid: [trees > 500 and depth == 1]
limits: {of: wall, grid: [1s, 5s, 12.5s]}
seed: 3
";

#[test]
fn on_an_open_space_a_killed_session_goes_on_with_the_same_configurations() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("asked.yaml"), OPEN).unwrap();
    let journal = |name: &str| folder.path().join(name).display().to_string();
    let start = |name: &str| Asked::start(folder.path(), &["--journal", &journal(name)]);
    let mut undisturbed = start("whole");
    let whole = undisturbed.play(300);
    undisturbed.end();
    let default = json!({"trees": 400, "depth": 3, "split": "entropy", "margin": 0.5});
    assert_eq!(
        (&whole[0]["arm"], &whole[0]["configuration"]),
        (&json!(1), &default)
    );
    let mut disturbed = vec![];
    for rounds in [1, 3, 40, 120, 50, 86] {
        let mut asked = start("cut");
        disturbed.extend(asked.play(rounds));
        asked.kill();
    }
    assert_eq!(disturbed, whole);
    let records = |name: &str| -> Vec<Value> {
        let text = std::fs::read_to_string(folder.path().join(name).join("journal.jsonl")).unwrap();
        let lines = text
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap());
        lines.filter(|line| line.get("origin").is_some()).collect()
    };
    let arms = |name: &str| -> Vec<Value> {
        let parts = |line: Value| json!([line["arm"], line["configuration"], line["origin"]]);
        records(name).into_iter().map(parts).collect()
    };
    assert_eq!(arms("cut"), arms("whole"));
    let last = whole.iter().map(|pull| pull["arm"].as_u64().unwrap()).max();
    assert_eq!(arms("whole").len() as u64, last.unwrap());
    // What is asked about the answer is answered with its configuration.
    let mut again = start("whole");
    let best = again.say(&json!({"best": {}}))["best"].clone();
    assert!(best["configuration"]["trees"].is_u64(), "{best}");
    again.say(&json!({"ask": {}}));
    let why = again.say(&json!({"explain": {}}));
    assert!(
        why["explain"]["chosen"]["configuration"].is_object(),
        "{why}"
    );
    again.kill();
}
