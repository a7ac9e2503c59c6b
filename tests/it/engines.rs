//! Engines of a forest that can do less than the built-in one: what they cannot do is an error before the first pull.

use crate::test_run::{TestRun, expect, houses};

/// A scenario of a forest on `houses.csv`, with these keys besides, of a classification where the target is `zone`.
fn scenario(keys: &str) -> String {
    format!(
        "name: forest\ntarget: {{forest: {{data: houses.csv, {keys}}}}}\narms: {{grid: {{trees: [5, 6]}}}}\n\
         limits: {{of: wall, grid: [60s]}}\nprice: {{cost: x, penalty: 10 * x}}\npolicy: uniform\n\
         budget: {{rounds: 3}}\nslots: 1\n"
    )
}

#[test]
fn data_that_an_engine_cannot_learn_from_are_refused_before_the_first_pull() {
    let gaps = houses(60).replacen("\n0,", "\nNA,", 1);
    for (keys, table, reason, hint) in [
        (
            "predict: price, engine: linfa",
            houses(60),
            "captime: houses.csv: engine `linfa` cannot do regression: ",
            "  hint: use the engine `builtin` or `smartcore`\n",
        ),
        (
            "predict: zone, engine: smartcore",
            gaps,
            "captime: houses.csv: engine `smartcore` cannot handle missing numbers, and column `size` has some\n",
            "  hint: use the engine `builtin`, or drop the column\n",
        ),
    ] {
        let test_run = TestRun::new(&scenario(keys));
        test_run.write("houses.csv", &table);
        for args in [
            &["check", "s.yaml"][..],
            &["check", "s.yaml", "--try", "1"],
            &["run", "s.yaml"],
            &["record", "s.yaml", "--out", "recorded"],
            &["study", "s.yaml", "--out", "studied"],
        ] {
            let (_, said) = expect(&test_run.captime(args), 2);
            assert!(said.contains(reason) && said.ends_with(hint), "{said}");
        }
        for made in ["runs", "recorded", "studied"] {
            assert!(
                !test_run.path().join(made).exists(),
                "{made}: nothing has begun"
            );
        }
    }
}

#[test]
fn data_that_an_engine_can_learn_from_are_learned_from() {
    let test_run = TestRun::new(&scenario("predict: zone, engine: linfa"));
    test_run.write("houses.csv", &houses(60));
    expect(&test_run.captime(&["check", "s.yaml"]), 0);
    let (summary, _) = test_run.run(0, &[]);
    assert!(summary.contains("0.0 % failed"), "{summary}");
}

#[test]
fn options_that_an_engine_would_ignore_are_refused_by_name() {
    let test_run = TestRun::new("");
    test_run.write("houses.csv", &houses(60));
    let forest = |exit: i32, engine: &str, options: &[&str]| {
        let args = ["forest", "houses.csv", "--predict", "zone", "--trees", "5"];
        let output = test_run.captime(&[&args[..], &["--engine", engine], options].concat());
        expect(&output, exit).1
    };
    for (engine, options, isolated) in [
        ("smartcore", &["--sample-fraction", "0.5"][..], false),
        ("smartcore", &["--threads", "2"], false),
        ("smartcore", &["--importance"], true),
        ("smartcore", &["--oob"], false),
        ("linfa", &["--threads", "2"], true),
        ("linfa", &["--importance", "permutation"], false),
        ("linfa", &["--oob"], false),
    ] {
        let isolation: &[&str] = if isolated {
            &["--isolation", "process"]
        } else {
            &[]
        };
        let said = forest(2, engine, &[isolation, options].concat());
        let option = options[0];
        assert!(
            said.starts_with(&format!("captime: engine `{engine}` ignores `{option}`: ")),
            "{said}"
        );
        let hint = format!("  hint: leave `{option}` out, or use `--engine builtin`\n");
        assert!(said.ends_with(&hint), "{said}");
        forest(0, "builtin", options);
    }
    forest(0, "linfa", &["--sample-fraction", "0.5"]);
    forest(
        0,
        "smartcore",
        &["--sample-fraction", "1", "--threads", "1"],
    );
}

#[test]
fn the_line_to_paste_has_no_option_that_the_engine_refuses() {
    for engine in ["smartcore", "linfa"] {
        let test_run = TestRun::new(&scenario(&format!(
            "predict: zone, engine: {engine}, threads: 1"
        )));
        test_run.write("houses.csv", &houses(60));
        let (best, _) = test_run.run(0, &["--quiet"]);
        let line = best
            .lines()
            .find_map(|line| line.split_once("-- captime forest "));
        let (_, options) = line.expect("a line to paste");
        let words: Vec<&str> = options.split(' ').collect();
        expect(&test_run.captime(&[&["forest"], &words[..]].concat()), 0);
    }
}

#[test]
fn a_scenario_may_reward_classes_by_auc_or_log_loss() {
    let mut figures = Vec::new();
    for (reward, isolation, words) in [
        ("auc", "thread", "mean AUC "),
        ("auc", "process", "mean AUC "),
        ("log_loss", "thread", "mean log loss "),
        ("log_loss", "process", "mean log loss "),
    ] {
        let test_run = TestRun::new(&scenario(&format!(
            "predict: zone, reward: {reward}, isolation: {isolation}"
        )));
        test_run.write("houses.csv", &houses(60));
        test_run.run(0, &["--quiet"]);
        let (rows, _) = expect(&test_run.captime(&["export", "runs/forest"]), 0);
        let mut table = csv::Reader::from_reader(rows.as_bytes());
        let header = table.headers().unwrap().clone();
        let place = |name| header.iter().position(|column| column == name).unwrap();
        let (reward_at, score_at) = (place("reward"), place("score"));
        let all: Vec<[f64; 2]> = table
            .records()
            .map(|row| {
                let row = row.unwrap();
                [reward_at, score_at].map(|place| row[place].parse().unwrap())
            })
            .collect();
        assert_eq!(all.len(), 3);
        for [worth, score] in &all {
            let exact = if reward == "auc" {
                *score
            } else {
                (-score).exp()
            };
            assert!((worth - exact).abs() < 1e-9, "{reward}: {worth} {score}");
        }
        let (best, _) = expect(&test_run.captime(&["best"]), 0);
        assert!(best.contains(words), "{best}");
        figures.push(all);
    }
    // A separate process computes the same figures, and another reward is another number.
    let is_near = |a: &[[f64; 2]], b: &[[f64; 2]]| {
        let mut both = a.as_flattened().iter().zip(b.as_flattened());
        both.all(|(a, b)| (a - b).abs() < 1e-9)
    };
    assert!(is_near(&figures[0], &figures[1]), "{figures:?}");
    assert!(is_near(&figures[2], &figures[3]), "{figures:?}");
    assert!(!is_near(&figures[0], &figures[2]), "{figures:?}");
    for (keys, reason) in [
        (
            "predict: zone, engine: smartcore, reward: auc",
            "it gives classes without probabilities",
        ),
        (
            "predict: price, reward: auc",
            "the reward `auc` is for classes, but the target is a number",
        ),
        ("predict: zone, reward: f1", "f1"),
    ] {
        let test_run = TestRun::new(&scenario(keys));
        test_run.write("houses.csv", &houses(60));
        let (_, said) = expect(&test_run.captime(&["check", "s.yaml"]), 2);
        assert!(said.contains(reason), "{said}");
    }
}
