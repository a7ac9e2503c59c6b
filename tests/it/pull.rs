//! `captime pull` from outside: pulls in, outcomes out.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout};

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::test_run::{TestRun, alive, expect, houses, nothing_is_left, piped, send, until};

/// A command that shows its arguments in its score, fails where it is told to, or sleeps.
const COMMAND: &str = r#"
name: pulled
target:
  command: [sh, -c, 'case $3 in crash) echo broken >&2; exit 3;; sleep) sleep 1000 & wait;; esac; echo "score=$1 $2 $4"', sh, "{x}[,{y}]", "{instance}", "{mode}", "{seed}"]
  instances: [one, two]
  test: [three]
  reward: {stdout: '^score=([0-9.]+)', worst: 0, best: 10}
arms:
  space:
    x: {real: [0, 10], default: 5}
    mode: {choice: [plain, crash, sleep], default: plain}
    y: {integer: [1, 9], default: 3, when: x > 6}
  forbid: [x == 7 and mode == crash]
  sample: 4
limits: {of: wall, grid: [1s, 100s], memory: 1GiB}
price: {cost: x, penalty: 10 * x}
budget: {rounds: 1}
"#;

/// captime waiting for lines.
struct Pulled {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Pulled {
    fn start(run: &TestRun, args: &[&str]) -> Self {
        let mut command = run.command(&[&["pull", "s.yaml", "--lines"], args].concat());
        let (child, input, output) = piped(&mut command);
        Self {
            child,
            input,
            output,
        }
    }

    fn write(&mut self, line: &str) {
        let input = self.input.as_mut().unwrap();
        input.write_all(format!("{line}\n").as_bytes()).unwrap();
        input.flush().unwrap();
    }

    fn read(&mut self) -> Value {
        let mut answer = String::new();
        self.output.read_line(&mut answer).unwrap();
        serde_json::from_str(&answer).unwrap_or_else(|error| panic!("{answer:?}: {error}"))
    }

    fn say(&mut self, request: &Value) -> Value {
        self.write(&request.to_string());
        self.read()
    }

    fn end(mut self) -> i32 {
        drop(self.input.take());
        self.child.wait().unwrap().code().unwrap()
    }
}

/// The answers to these lines.
fn answers(run: &TestRun, lines: &str) -> Vec<Value> {
    let mut pulled = Pulled::start(run, &[]);
    let mut input = pulled.input.take().unwrap();
    let lines = lines.to_owned();
    let writer = std::thread::spawn(move || input.write_all(lines.as_bytes()).unwrap());
    let output = pulled.child.wait_with_output();
    let mut text = String::new();
    std::io::Read::read_to_string(&mut pulled.output, &mut text).unwrap();
    writer.join().unwrap();
    assert_eq!(output.unwrap().status.code(), Some(0));
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn any_configuration_of_a_space_runs_on_any_instance_with_any_seed() {
    let run = TestRun::new(COMMAND);
    let mut pulled = Pulled::start(&run, &[]);
    let first = pulled.say(&json!({"configuration": {"x": 2.5}, "instance": "two", "seed": 77, "limit": 50, "id": "a"}));
    assert_eq!(first["id"], "a");
    assert_eq!(first["outcome"], "rewarded");
    assert_eq!(first["reward"], 0.25);
    assert_eq!(first["score"], 2.5);
    assert_eq!(first["instance"], "two");
    assert_eq!(first["limit"], 50.0);
    assert_eq!(first["seed"], 77);
    assert_eq!(first["exit_code"], 0);
    assert!(first["wall_seconds"].as_f64().unwrap() > 0.0, "{first}");
    assert!(first["gain"].as_f64().unwrap() <= 0.25);
    // What is missing has its default, what is inactive is left out, and null is the same as nothing.
    assert_eq!(first["configuration"], json!({"x": 2.5, "mode": "plain"}));
    let active = pulled.say(&json!({"configuration": {"x": 8, "y": null}, "instance": 3}));
    assert_eq!(
        active["configuration"],
        json!({"x": 8.0, "mode": "plain", "y": 3})
    );
    assert_eq!(active["instance"], "three", "held out for the test");
    assert_eq!(active["id"], 2);
    let inactive = pulled.say(&json!({"configuration": {"x": "1.0", "y": 4}, "limit": "2s"}));
    assert_eq!(
        inactive["configuration"],
        json!({"x": 1.0, "mode": "plain"})
    );
    assert_eq!(inactive["limit"], 2.0);
    let plain = pulled.say(&json!({}));
    assert_eq!(plain["configuration"]["x"], 5.0);
    assert!(["one", "two"].contains(&plain["instance"].as_str().unwrap()));
    let crashed = pulled.say(&json!({"configuration": {"mode": "crash"}}));
    assert_eq!(crashed["outcome"], "failed");
    assert_eq!(crashed["exit_code"], 3);
    assert_eq!(crashed["stderr"], "broken");
    assert!(
        crashed["failure"].as_str().unwrap().contains('3'),
        "{crashed}"
    );
    let listed = pulled.say(&json!({"arm": 1}));
    assert_eq!(
        (&listed["arm"], &listed["outcome"]),
        (&json!(1), &json!("rewarded"))
    );
    assert_eq!(pulled.end(), 0);
}

#[test]
fn bad_lines_get_an_error_each_and_nothing_runs() {
    let run = TestRun::new(COMMAND);
    let long = format!("{{\"id\": \"{}\"}}", "x".repeat(2 << 20));
    let lines = [
        "",
        "nonsense",
        "[1]",
        r#"{"configuration": {"x": 11}, "id": 5}"#,
        r#"{"configuration": {"z": 1}}"#,
        r#"{"configuration": {"x": 7, "mode": "crash"}}"#,
        r#"{"configuration": {"x": [1]}}"#,
        r#"{"configuration": 3}"#,
        r#"{"configuration": {}, "arm": 1}"#,
        r#"{"arm": 9}"#,
        r#"{"limit": 101}"#,
        r#"{"limit": -1}"#,
        r#"{"limit": "soon"}"#,
        r#"{"instance": "tow"}"#,
        r#"{"instance": 4}"#,
        r#"{"instance": 0}"#,
        r#"{"seed": -1}"#,
        r#"{"seeed": 1}"#,
        &long,
        r#"{"configuration": {"x": 1}}"#,
    ];
    let all = answers(&run, &lines.join("\n"));
    assert_eq!(all.len(), lines.len());
    let (last, bad) = all.split_last().unwrap();
    assert_eq!(last["outcome"], "rewarded", "{last}");
    let mut shown = String::new();
    for (number, answer) in (1..).zip(bad) {
        let error = &answer["error"];
        assert_eq!(error["line"], json!(number), "{answer}");
        writeln!(
            shown,
            "{}: {}",
            error["what"].as_str().unwrap(),
            error["fix"].as_str().unwrap()
        )
        .unwrap();
    }
    assert_eq!(all[3]["id"], 5);
    insta::assert_snapshot!(shown);
}

#[test]
fn one_pull_is_described_by_options() {
    let run = TestRun::new(COMMAND);
    let args = [
        "pull",
        "s.yaml",
        "x=8",
        "y=2",
        "--instance",
        "one",
        "--seed",
        "5",
        "--limit",
        "30s",
    ];
    let (stdout, _) = expect(&run.captime(&args), 0);
    let answer: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(
        answer["configuration"],
        json!({"x": 8.0, "mode": "plain", "y": 2})
    );
    assert_eq!(
        (&answer["reward"], &answer["limit"]),
        (&json!(0.8), &json!(30.0))
    );
    let (stdout, stderr) = expect(&run.captime(&["pull", "s.yaml", "x=80"]), 2);
    assert_eq!(stdout, "");
    assert!(stderr.contains("`80` is not a value of `x`"), "{stderr}");
    expect(&run.captime(&["pull", "s.yaml", "x"]), 2);
    expect(&run.captime(&["pull", "s.yaml", "x=1", "--arm", "2"]), 2);
    expect(&run.captime(&["pull", "s.yaml", "x=1", "--lines"]), 2);
    let (stdout, _) = expect(&run.captime(&["pull", "s.yaml", "mode=crash"]), 0);
    assert!(stdout.contains("\"outcome\":\"failed\""), "{stdout}");
}

#[test]
fn a_pull_is_cut_off_at_its_own_limit_and_two_run_at_a_time() {
    let run = TestRun::new(COMMAND);
    let mut pulled = Pulled::start(&run, &["--slots", "2"]);
    pulled
        .write(&json!({"configuration": {"mode": "sleep"}, "limit": 3, "id": "slow"}).to_string());
    let quick = pulled.say(&json!({"id": "quick"}));
    assert_eq!(quick["id"], "quick", "it does not wait for the other");
    let slow = pulled.read();
    assert_eq!(
        (&slow["id"], &slow["outcome"]),
        (&json!("slow"), &json!("censored"))
    );
    assert!(slow["consumption"].as_f64().unwrap() >= 3.0, "{slow}");
    assert!(slow["reward"].is_null());
    assert_eq!(pulled.end(), 0);
}

/// Starts a pull that sleeps until it is stopped; its seconds tell it from all others.
fn sleeping(seconds: &str, args: &[&str]) -> (TestRun, Pulled) {
    let run = TestRun::new(&COMMAND.replace("sleep 1000", &format!("sleep {seconds}")));
    let mut pulled = Pulled::start(&run, args);
    pulled.write(r#"{"configuration": {"mode": "sleep"}}"#);
    until(&mut pulled.child, "the command sleeps", || {
        !alive(seconds).is_empty()
    });
    (run, pulled)
}

#[test]
fn signals_and_readers_that_go_away_end_what_runs() {
    for (signal, seconds) in [
        (Signal::SIGINT, "1713.0713"),
        (Signal::SIGTERM, "1714.0714"),
    ] {
        let (_run, mut pulled) = sleeping(seconds, &[]);
        send(&pulled.child, signal);
        assert_eq!(pulled.child.wait().unwrap().code(), Some(130));
        nothing_is_left(seconds);
    }
    // Like `| head -1`: the next answer has no reader.
    let (_run, pulled) = sleeping("1715.0715", &["--slots", "2"]);
    let Pulled {
        mut child,
        input,
        output,
    } = pulled;
    drop(output);
    let mut input = input.unwrap();
    input.write_all(b"{}\n").unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    nothing_is_left("1715.0715");
}

#[test]
fn input_that_ends_lets_what_runs_end_too() {
    let run = TestRun::new(COMMAND);
    let line = json!({"configuration": {"mode": "sleep"}, "limit": 2});
    // Without a newline after it.
    let all = answers(&run, &format!("{{}}\n{line}"));
    assert_eq!(all.len(), 2);
    assert_eq!(all[1]["outcome"], "censored");
    assert_eq!(answers(&run, ""), Vec::<Value>::new());
}

#[test]
fn every_target_can_be_pulled() {
    let run = TestRun::new("target: {synthetic: {problem: indep}}\nbudget: {rounds: 1}\n");
    let lines = "{\"arm\": 3, \"seed\": 4}\n{\"arm\": 3, \"seed\": 4}\n{\"arm\": 3, \"seed\": 5}\n";
    let all = answers(&run, lines);
    let brought = |answer: &Value| (answer["outcome"].clone(), answer["consumption"].clone());
    assert_eq!(brought(&all[0]), brought(&all[1]));
    assert_ne!(brought(&all[0]), brought(&all[2]));

    let run = TestRun::new(
        "target: {recorded: {consumption: runs.csv, cutoff: 10s, test: [b]}}\narms: {list: [{x: 1, y: p}, {x: 2, y: p}, {x: 2, y: q}]}\n\
         limits: {grid: [5s, 10s]}\nbudget: {rounds: 1}\n",
    );
    run.write("runs.csv", "a,1,2,unsolved\nb,3,4,7\n");
    let lines = "{\"configuration\": {\"x\": 2}, \"instance\": \"a\"}\n{\"configuration\": {\"x\": 2, \"y\": \"q\"}, \"instance\": \"b\", \"limit\": 5}\n\
                 {\"arm\": 3, \"instance\": \"b\"}\n{\"configuration\": {\"y\": \"q\"}, \"instance\": \"a\"}\n{\"configuration\": {\"x\": 1, \"y\": \"q\"}}\n{}\n";
    let all = answers(&run, lines);
    assert_eq!(
        (&all[0]["arm"], &all[0]["consumption"]),
        (&json!(2), &json!(2.0))
    );
    assert_eq!(
        (&all[1]["outcome"], &all[1]["consumption"]),
        (&json!("censored"), &json!(5.0))
    );
    assert_eq!(
        (&all[2]["outcome"], &all[2]["consumption"]),
        (&json!("rewarded"), &json!(7.0))
    );
    assert_eq!(
        (&all[3]["arm"], &all[3]["outcome"]),
        (&json!(3), &json!("censored")),
        "the only arm with q"
    );
    assert_eq!(all[4]["error"]["what"], "no arm has these values");
    assert_eq!(
        (&all[5]["instance"], &all[5]["arm"]),
        (&json!("a"), &json!(1)),
        "b is held out"
    );

    let run = TestRun::new(
        "target: {forest: {data: houses.csv, predict: price}}\narms: {grid: {trees: [5, 10]}}\n\
         limits: {of: wall, grid: [20s, 100s]}\nbudget: {rounds: 1}\n",
    );
    run.write("houses.csv", &houses(60));
    let all = answers(
        &run,
        "{\"configuration\": {\"trees\": 10}}\n{\"configuration\": {\"trees\": 7}}\n",
    );
    assert_eq!(all[0]["outcome"], "rewarded", "{}", all[0]);
    assert_eq!(all[1]["error"]["fix"], "its values are 5, 10");

    let run = TestRun::new("target: external\narms: {grid: {x: [1]}}\nlimits: {grid: [1s]}\n");
    let (_, stderr) = expect(&run.captime(&["pull", "s.yaml"]), 2);
    assert!(stderr.contains("external"), "{stderr}");
}
