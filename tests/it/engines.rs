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
