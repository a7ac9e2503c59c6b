//! Engines of a forest that take less than ours: what they cannot do is said before the first pull.

use crate::scene::{Scene, expect, houses};

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
            "captime: houses.csv: engine `smartcore` cannot deal with missing numbers, and column `size` has some\n",
            "  hint: use the engine `builtin`, or drop the column\n",
        ),
    ] {
        let scene = Scene::new(&scenario(keys));
        scene.write("houses.csv", &table);
        for args in [
            &["check", "s.yaml"][..],
            &["check", "s.yaml", "--try", "1"],
            &["run", "s.yaml"],
            &["record", "s.yaml", "--out", "recorded"],
            &["study", "s.yaml", "--out", "studied"],
        ] {
            let (_, said) = expect(&scene.captime(args), 2);
            assert!(said.contains(reason) && said.ends_with(hint), "{said}");
        }
        for made in ["runs", "recorded", "studied"] {
            assert!(
                !scene.path().join(made).exists(),
                "{made}: nothing has begun"
            );
        }
    }
}

#[test]
fn data_that_an_engine_can_learn_from_are_learned_from() {
    let scene = Scene::new(&scenario("predict: zone, engine: linfa"));
    scene.write("houses.csv", &houses(60));
    expect(&scene.captime(&["check", "s.yaml"]), 0);
    let (summary, _) = scene.run(0, &[]);
    assert!(summary.contains("0.0 % failed"), "{summary}");
}

#[test]
fn options_that_an_engine_would_ignore_are_refused_by_name() {
    let scene = Scene::new("");
    scene.write("houses.csv", &houses(60));
    let forest = |exit: i32, engine: &str, options: &[&str]| {
        let args = ["forest", "houses.csv", "--predict", "zone", "--trees", "5"];
        let output = scene.captime(&[&args[..], &["--engine", engine], options].concat());
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
        let scene = Scene::new(&scenario(&format!(
            "predict: zone, engine: {engine}, threads: 1"
        )));
        scene.write("houses.csv", &houses(60));
        let (best, _) = scene.run(0, &["--quiet"]);
        let line = best
            .lines()
            .find_map(|line| line.split_once("-- captime forest "));
        let (_, options) = line.expect("a line to paste");
        let words: Vec<&str> = options.split(' ').collect();
        expect(&scene.captime(&[&["forest"], &words[..]].concat()), 0);
    }
}
