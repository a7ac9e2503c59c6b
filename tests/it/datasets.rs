//! The data sets that ship must stay as hard, and as costly, for the forest as the data they imitate.

use assert_cmd::Command;
use serde_json::Value;

/// Trees, predictors per node, smallest node, draws: the corners of the paper's configurations, with fewer trees, on which
/// leaves do not depend and the reward hardly does.
const CORNERS: [([&str; 4], f64); 3] = [
    (["30", "20", "9", "0.55"], 244.0),
    (["30", "24", "5", "0.632"], 444.0),
    (["30", "30", "3", "0.8"], 784.0),
];

fn forest(data: &str, target: &str, more: &[&str]) -> Value {
    let assert = Command::new(env!("CARGO_BIN_EXE_captime"))
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .args(["forest", data, "--predict", target, "--format", "json"])
        .args(more)
        .assert()
        .code(0);
    serde_json::from_slice(&assert.get_output().stdout).expect("one JSON object")
}

fn houses([trees, mtry, node, fraction]: [&str; 4], splits: &str) -> Value {
    let more = [
        "--trees",
        trees,
        "--mtry",
        mtry,
        "--min-node-size",
        node,
        "--sample-fraction",
        fraction,
        "--splits",
        splits,
    ];
    forest("datasets/ames_like.csv", "Sale_Price", &more)
}

fn number(report: &Value, field: &str) -> f64 {
    report[field].as_f64().expect("a number")
}

#[test]
fn a_forest_on_the_houses_looks_like_one_on_the_real_data() {
    for (corner, real_leaves) in CORNERS {
        let seen = houses(corner, "3");
        let reward = number(&seen, "reward");
        assert!((0.95..=0.975).contains(&reward), "{corner:?}: {reward}");
        let leaves = number(&seen, "leaves");
        assert!(
            (leaves / real_leaves - 1.0).abs() < 0.15,
            "{corner:?}: {leaves}"
        );
    }
}

#[test]
fn what_a_forest_on_the_houses_costs_depends_most_on_trees_and_least_on_the_node_size() {
    let work = |configuration| number(&houses(configuration, "1"), "work");
    let middle = ["30", "24", "5", "0.632"];
    let effect = |place: usize, low, high| {
        let [mut few, mut many] = [middle; 2];
        (few[place], many[place]) = (low, high);
        (work(many) / work(few) - 1.0).abs()
    };
    let trees = effect(0, "10", "70");
    let mtry = effect(1, "20", "30");
    let node = effect(2, "3", "9");
    let fraction = effect(3, "0.55", "0.8");
    assert!(
        trees > mtry && mtry > fraction && fraction > node,
        "{trees} {mtry} {fraction} {node}"
    );
}

#[test]
fn smaller_samples_cost_accuracy_on_the_houses() {
    let rmse = |fraction| number(&houses(["60", "24", "3", fraction], "4"), "rmse");
    let (small, large) = (rmse("0.55"), rmse("0.8"));
    assert!(small > 1.01 * large, "{small} {large}");
}

#[test]
fn what_grows_on_a_plot_can_be_told_but_not_always() {
    let seen = forest(
        "datasets/ground_like.csv",
        "Cover",
        &["--drop", "Plot", "--trees", "100", "--splits", "5"],
    );
    assert_eq!(seen["task"], "classification");
    assert_eq!(seen["predictors"], 10);
    let accuracy = number(&seen, "accuracy");
    assert!((0.75..0.93).contains(&accuracy), "{accuracy}");
}
